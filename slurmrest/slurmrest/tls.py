"""Whom to believe and what to show over https. Given to the clients; the transport reads the files when it is made.

What always holds: the other side's certificate is checked, and so is the host's name in it; there is no way to switch
that off. A reverse proxy in front of slurmrestd usually does the server's part: slurmrestd itself speaks plain HTTP.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True)
class TLS:
    """`ca`: a file of PEM certificates, the only ones believed (None: those that everybody believes).

    `certificate` is our own, in PEM, its chain behind it; `key` its private key without a password (None: it is in the
    same file).
    """

    ca: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None

    def __post_init__(self) -> None:
        if self.key is not None and self.certificate is None:
            raise ValueError("a key without its certificate")

    def context(self, believed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        """The files, read. `believed` is what to use where no `ca` is named. Raises ValueError naming the file."""
        import ssl  # here: with it `import slurmrest` would take 20 ms more

        context = believed if self.ca is None and believed is not None else _believing(self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password=_no_password)
            except (OSError, ssl.SSLError, _PasswordAskedError) as error:
                where = f"{os.fspath(self.certificate)} with {os.fspath(self.key or self.certificate)}"
                raise ValueError(f"no certificate in {where}: {_reason(error)}") from None
        return context


class _PasswordAskedError(Exception):
    """The key is locked."""


def _no_password() -> str:
    """OpenSSL would ask at the terminal otherwise, and wait there."""
    raise _PasswordAskedError("the key has a password")


def _believing(ca: str | Path | None) -> ssl.SSLContext:
    import ssl

    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"no certificates in {os.fspath(ca or '')}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """What is wrong, without anything of the file's content."""
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error or type(error).__name__)
