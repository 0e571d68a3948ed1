"""Every error that the client raises, in one tree.

    SlurmError
    ├── Authentication      no token, a wrong or an expired one
    ├── PermissionDenied    the user may not do this
    ├── NotFound            no such job, node or partition (or purged from slurmctld's memory)
    ├── InvalidRequest      Slurm refuses the request as it stands; asking again gives the same answer
    ├── Unavailable         slurmrestd or slurmctld can't be asked; the request had no effect, later it may succeed
    ├── Ambiguous           the answer was lost; the request may or may not have had its effect
    ├── Unsupported         this slurmrestd has no API version that the client speaks, or lacks the call
    └── ProtocolError       an answer that isn't what the API promises

`Unavailable` and `Ambiguous` are the two worth another try. What always holds: the message is one line and holds no
token, `method` and `path` tell which call it was (both empty when nothing was sent).
"""

from __future__ import annotations


class SlurmError(Exception):
    """Base of all errors of the client. `number` is Slurm's own error number, 0 when it gave none."""

    def __init__(self, message: str, *, number: int = 0, method: str = "", path: str = "") -> None:
        super().__init__(" ".join(message.split()))
        self.number = number
        self.method = method
        self.path = path

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.method} {self.path}: {text}" if self.method else text


class Authentication(SlurmError):  # noqa: N818 - named after what is wrong, as all below
    """slurmrestd or slurmctld does not take the token."""


class PermissionDenied(SlurmError):  # noqa: N818
    """The token is good, and its user may not do this."""


class NotFound(SlurmError):  # noqa: N818
    """slurmctld answered, and knows no such thing."""


class InvalidRequest(SlurmError):  # noqa: N818
    """Slurm's refusal, `text` in its own words."""

    def __init__(self, text: str, *, number: int = 0, method: str = "", path: str = "") -> None:
        super().__init__(f"{text} (Slurm error {number})" if number else text, number=number, method=method, path=path)
        self.text = text


class Unavailable(SlurmError):  # noqa: N818
    """Nobody could be asked; nothing has changed."""


class Ambiguous(SlurmError):  # noqa: N818
    """The request was sent and its answer lost. Look before asking again."""


class Unsupported(SlurmError):  # noqa: N818
    """The other side is too old or too new."""


class ProtocolError(SlurmError):
    """The answer breaks the API's promise; the message says in what."""
