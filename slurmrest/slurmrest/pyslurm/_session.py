"""The connection that all calls of pyslurm's face go over: one `slurmrest.Slurm` per process.

Set by `connect`, or made from the environment at the first call. What always holds: a call raises `PyslurmError` and
nothing else of ours, and the local cluster's name is known once anything was answered.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import pwd
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from slurmrest.core import checked
from slurmrest.errors import Authentication, SlurmError
from slurmrest.pyslurm.error import SLURM_ERROR, PyslurmError, translated
from slurmrest.tls import TLS
from slurmrest.tokens import FileToken, SignedTokens, StaticToken, TokenSource

if TYPE_CHECKING:
    from slurmrest.answers import Answer
    from slurmrest.client import Slurm
    from slurmrest.core import Params
    from slurmrest.endpoints import Api
    from slurmrest.timeouts import Timeouts

URL: Final = "SLURM_REST_URL"
TOKEN: Final = "SLURM_JWT"  # noqa: S105 - the variable's name
TOKEN_FILE: Final = "SLURM_JWT_FILE"  # noqa: S105 - the variable's name
KEY_FILE: Final = "SLURM_REST_KEY_FILE"
USER: Final = "SLURM_REST_USER"
CA_FILE: Final = "SLURM_REST_CA_FILE"

_lock = threading.RLock()
_client: Slurm | None = None
_cluster = ""


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    key_file: str | Path | None = None,
    user: str | None = None,
    version: str | None = None,
    timeouts: Timeouts | None = None,
    tls: TLS | None = None,
    client: Slurm | None = None,
) -> Slurm:
    """Use this slurmrestd from now on; gives the client behind all calls.

    `url` is `http(s)://host:6820` or `unix:///path`. One of `token` (as `scontrol token` prints it), `token_file` (read
    again when refused) and `key_file` (the cluster's JWT key, signs a token per user) authenticates. What isn't given
    comes from SLURM_REST_URL, SLURM_JWT, SLURM_JWT_FILE, SLURM_REST_KEY_FILE and SLURM_REST_USER; `user` is by default
    whom the token is for, else who runs this process. `tls` names certificates for https, by default the authority in
    SLURM_REST_CA_FILE. `client` is used as it is, instead of all that. Raises PyslurmError when it isn't clear where to
    connect to, or as whom.
    """
    if client is None:
        address = _url(url)
        given = token is not None or token_file is not None or key_file is not None
        tokens, owner = _tokens(token, token_file, key_file) if given else _tokens_of_environment()
        who = user or os.environ.get(USER) or owner or _process_user()
        client = _make(address, tokens, who, version, timeouts, tls or _trust_of_environment(address))
    _exchange(client)
    return client


def disconnect() -> None:
    """Close the connection. The next call makes one from the environment."""
    _exchange(None)


def _exchange(client: Slurm | None) -> None:
    global _client, _cluster
    with _lock:
        old, _client, _cluster = _client, client, ""
    if old is not None and old is not client:
        old.close()


atexit.register(disconnect)  # a script needn't close what it never opened


def session() -> Slurm:
    """The client behind all calls; made from the environment at first need."""
    with _lock:
        return _client if _client is not None else connect()


def request(
    method: str,
    tail: str,
    *,
    api: Api = "slurm",
    params: Params | None = None,
    body: Mapping[str, Any] | None = None,
    not_found: int = SLURM_ERROR,
) -> Answer:
    """One call of the REST API, as `Slurm.request`. Raises PyslurmError; `not_found` as for `slurm_errors`."""
    with slurm_errors(not_found):
        answer = session().request(method, tail, api=api, params=params, body=body)
    _learn(answer.payload)
    return answer


def named(folder: str, pattern: re.Pattern[str], name: str, what: str, not_found: int = SLURM_ERROR) -> str:
    """The path of the thing of this name, such as "node/n0". Raises RPCError for what can't be a name."""
    with slurm_errors(not_found):
        return f"{folder}/{quote(checked(pattern, name, what), safe='')}"


@contextmanager
def slurm_errors(not_found: int = SLURM_ERROR) -> Iterator[None]:
    """Turns the client's errors into PyslurmError. `not_found`: Slurm's number for "no such thing" of this call."""
    try:
        yield
    except SlurmError as error:
        raise translated(error, not_found) from error


def local_cluster() -> str:
    """The name of the cluster at the other end, or "" before anything was answered."""
    return _cluster


def ask_local_cluster() -> str:
    """As `local_cluster`, asking for it if need be."""
    if not _cluster:
        request("GET", "ping/")
    return _cluster


def api_version() -> str:
    """The API version in use, such as "v0.0.42"."""
    with slurm_errors():
        return session().version()


def require(what: str, since: str) -> None:
    """Raise PyslurmError unless the API version in use is `since` or newer. `what` begins the message."""
    version = api_version()
    if version < since:
        raise PyslurmError(f"{what} needs API {since} or newer; this slurmrestd speaks {version}")


def impossible(what: str, instead: str = "") -> PyslurmError:
    """The error for what no version of the REST API can do. `instead`: what does it, such as "scontrol takeover"."""
    hint = f"; {instead}" if instead else ""
    return PyslurmError(f"{what}: no version of the REST API (up to v0.0.45) has a call for it{hint}")


def _learn(payload: Mapping[str, Any]) -> None:
    global _cluster
    meta = payload.get("meta")
    slurm = meta.get("slurm") if isinstance(meta, dict) else None
    name = slurm.get("cluster") if isinstance(slurm, dict) else None
    if name and isinstance(name, str):
        _cluster = name


def _url(url: str | None) -> str:
    found = url or os.environ.get(URL)
    if not found:
        raise PyslurmError(f"no slurmrestd is named: set {URL}, or call pyslurm.connect(url)")
    return found


def _tokens_of_environment() -> tuple[TokenSource, str]:
    get = os.environ.get
    return _tokens(get(TOKEN) or None, get(TOKEN_FILE) or None, get(KEY_FILE) or None)


def _tokens(token: str | None, token_file: str | Path | None, key_file: str | Path | None) -> tuple[TokenSource, str]:
    """The source of tokens, and whom it is for ("": whoever asks)."""
    try:
        if token is not None:
            return StaticToken(token), _owner(token)
        if token_file is not None:
            source = FileToken(token_file)
            return source, _owner(source.token(""))
        if key_file is not None:
            return SignedTokens(Path(key_file).read_bytes()), ""
    except (OSError, ValueError, Authentication) as error:
        raise PyslurmError(f"no token can be had: {error}") from error
    raise PyslurmError(f"no way to authenticate: set {TOKEN}, {TOKEN_FILE} or {KEY_FILE}, or call pyslurm.connect")


def _owner(token: str) -> str:
    """Whom a token is for (its claim `sun`), or "". It is not judged here: slurmrestd does that."""
    parts = token.strip().split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    except ValueError:
        return ""
    name = (claims.get("sun") or claims.get("username")) if isinstance(claims, dict) else None
    return name if isinstance(name, str) else ""


def _trust_of_environment(url: str) -> TLS | None:
    """The authority of the environment, where there is something to certify."""
    authority = os.environ.get(CA_FILE)
    return TLS(ca=authority) if authority and url.startswith("https:") else None


def _process_user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError as error:
        raise PyslurmError(f"user {os.getuid()} has no name: set {USER}, or call pyslurm.connect(user=...)") from error


def _make(
    url: str, tokens: TokenSource, user: str, version: str | None, timeouts: Timeouts | None, tls: TLS | None
) -> Slurm:
    from slurmrest.client import Slurm

    try:
        with slurm_errors():
            return Slurm(url, tokens, user=user, version=version, timeouts=timeouts, tls=tls)
    except ValueError as error:
        raise PyslurmError(f"{url!r:.200}: {error}") from error
