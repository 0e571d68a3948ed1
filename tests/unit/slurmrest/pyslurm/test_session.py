"""Where pyslurm's face connects to, as whom, and what its errors are."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

import httpx
import pytest

import slurmrest.pyslurm as pyslurm
from slurmrest import TLS, SignedTokens, StaticToken
from slurmrest.errors import (
    Ambiguous,
    Authentication,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    SlurmError,
    Unavailable,
    Unsupported,
)
from slurmrest.pyslurm import PyslurmError, RPCError, _session
from slurmrest.pyslurm.error import (
    get_last_slurm_error,
    slurm_errno,
    slurm_strerror,
    translated,
    verify_rpc,
)
from tests.unit.slurmrest.fake import reply
from tests.unit.slurmrest.pyslurm.recorded import Recorded

URL = "http://slurm:6820"


def token_of(user: str) -> str:
    """A token that nobody's key has signed."""
    return SignedTokens(b"0" * 32).token(user)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Request]:
    """The requests of each connection that a test makes by itself."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return reply(200, {"paths": {"/slurm/v0.0.42/ping/": {}}, "pings": [], "errors": [], "warnings": []})

    monkeypatch.setattr("httpx.HTTPTransport.handle_request", lambda _, request: answer(request))
    return requests


def test_nothing_configured_says_what_to_set() -> None:
    """A script without an environment gets told the names."""
    with pytest.raises(PyslurmError, match=r"set SLURM_REST_URL, or call pyslurm\.connect\(url\)"):
        pyslurm.Nodes.load()


def test_no_way_to_authenticate_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL alone is not enough."""
    monkeypatch.setenv("SLURM_REST_URL", URL)
    with pytest.raises(PyslurmError, match="set SLURM_JWT, SLURM_JWT_FILE or SLURM_REST_KEY_FILE"):
        pyslurm.Nodes.load()


def test_environment_is_enough(monkeypatch: pytest.MonkeyPatch, sent: list[httpx.Request]) -> None:
    """URL and token; the user is whom the token is for."""
    monkeypatch.setenv("SLURM_REST_URL", URL)
    monkeypatch.setenv("SLURM_JWT", token_of("alice"))
    pyslurm.slurmctld.ping_all()
    assert {request.headers["X-SLURM-USER-NAME"] for request in sent} == {"alice"}
    assert sent[-1].url.path == "/slurm/v0.0.42/ping/"


def test_token_file_and_user_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, sent: list[httpx.Request], tmp_path: Path
) -> None:
    """The user named wins over the token's."""
    (tmp_path / "token").write_text(f"SLURM_JWT={token_of('root')}\n")
    monkeypatch.setenv("SLURM_REST_URL", URL)
    monkeypatch.setenv("SLURM_JWT_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("SLURM_REST_USER", "bob")
    pyslurm.slurmctld.ping_all()
    assert sent[-1].headers["X-SLURM-USER-NAME"] == "bob"


def test_key_file_signs_for_who_runs_the_script(
    monkeypatch: pytest.MonkeyPatch, sent: list[httpx.Request], tmp_path: Path
) -> None:
    """With the cluster's key anybody is who they are."""
    (tmp_path / "key").write_bytes(b"0" * 32)
    monkeypatch.setenv("SLURM_REST_URL", URL)
    monkeypatch.setenv("SLURM_REST_KEY_FILE", str(tmp_path / "key"))
    pyslurm.slurmctld.ping_all()
    assert sent[-1].headers["X-SLURM-USER-NAME"] == pwd.getpwuid(os.getuid()).pw_name


def test_arguments_win_over_the_environment(monkeypatch: pytest.MonkeyPatch, sent: list[httpx.Request]) -> None:
    """What is said in the script counts."""
    monkeypatch.setenv("SLURM_REST_URL", "http://other:1")
    monkeypatch.setenv("SLURM_JWT", token_of("alice"))
    pyslurm.connect(URL, token=token_of("carol"), version="v0.0.41")
    pyslurm.slurmctld.ping_all()
    assert str(sent[-1].url) == f"{URL}/slurm/v0.0.41/ping/"
    assert sent[-1].headers["X-SLURM-USER-NAME"] == "carol"


def test_opaque_token_is_for_who_runs_the_script(sent: list[httpx.Request]) -> None:
    """A token that isn't a JWT tells nobody's name."""
    pyslurm.connect(URL, token="opaque")  # noqa: S106 - not one
    pyslurm.slurmctld.ping_all()
    assert sent[-1].headers["X-SLURM-USER-NAME"] == pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.parametrize("url", ["ftp://x", "slurm:6820", "http://user:pass@x", "unix://x/y"])
def test_bad_url_is_refused(url: str) -> None:
    """At once, not at the first call."""
    with pytest.raises(PyslurmError, match="neither http"):
        pyslurm.connect(url, token="t")  # noqa: S106 - not one


@pytest.mark.parametrize("options", [{"token": "a b"}, {"token_file": "/nonexistent"}, {"key_file": "/nonexistent"}])
def test_unusable_token_is_refused_without_being_shown(options: dict[str, Any]) -> None:
    """At once; a token stands in no text."""
    with pytest.raises(PyslurmError, match="no token can be had") as caught:
        pyslurm.connect(URL, **options)
    assert "a b" not in str(caught.value)


def test_authority_comes_from_the_environment_or_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that isn't there is named, whoever named it."""
    with pytest.raises(PyslurmError, match="no certificates in /nonexistent/a"):
        pyslurm.connect("https://slurm:6820", token="t", tls=TLS(ca="/nonexistent/a"))  # noqa: S106 - not one
    monkeypatch.setenv("SLURM_REST_CA_FILE", "/nonexistent/b")
    with pytest.raises(PyslurmError, match="no certificates in /nonexistent/b"):
        pyslurm.connect("https://slurm:6820", token="t")  # noqa: S106 - not one


def test_local_cluster_is_learned_from_any_answer(newest: Recorded) -> None:
    """No call of its own is made for it, unless it is asked for first."""
    assert _session.local_cluster() == ""
    pyslurm.Nodes.load()
    assert _session.local_cluster() == "recorded"
    assert len(newest.requests) == 1
    pyslurm.connect(client=newest.client())
    assert pyslurm.settings.LOCAL_CLUSTER == "recorded"


def test_start_and_end_of_libslurm_are_taken(newest: Recorded) -> None:
    """Scripts that call them run; a configuration file is refused, not ignored."""
    pyslurm.slurm_init()
    pyslurm.settings.init()
    with pytest.raises(PyslurmError, match=r"slurm\.conf is not read"):
        pyslurm.slurm_init("/etc/slurm/slurm.conf")
    pyslurm.slurm_fini()
    with pytest.raises(PyslurmError, match="SLURM_REST_URL"):
        pyslurm.Nodes.load()


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (InvalidRequest("x", number=2028), 2028),
        (InvalidRequest("x"), 2018),
        (InvalidRequest("x", number=9000), 2018),
        (NotFound("x"), 2018),
        (Authentication("x"), 1007),
        (PermissionDenied("x"), 2002),
        (PermissionDenied("x", number=2010), 2010),
        (Unavailable("x"), 1001),
        (Ambiguous("x"), 1003),
        (SlurmError("x"), 2018),
    ],
)
def test_errors_of_the_client_have_slurms_numbers(error: SlurmError, number: int) -> None:
    """Slurm's own where it gave one, else the kind's, else what wasn't there."""
    found = translated(error, not_found=2018)
    assert isinstance(found, RPCError)
    assert found.errno == number
    assert "x" in found.msg


def test_what_a_version_lacks_is_no_rpc_error() -> None:
    """Nothing was asked of slurmctld."""
    assert type(translated(Unsupported("needs v0.0.45"))) is PyslurmError


def test_last_error_is_kept(newest: Recorded) -> None:
    """As errno is, for scripts that ask for it."""
    newest.refuse("node/n0", 2018)
    with pytest.raises(RPCError) as caught:
        pyslurm.Node.load("n0")
    assert slurm_errno() == caught.value.errno == 2018
    assert get_last_slurm_error() == (2018, caught.value.msg)


def test_error_numbers_have_texts() -> None:
    """Slurm's, the system's, and those nobody knows."""
    assert slurm_strerror(2017) == "No such job"
    assert slurm_strerror(2) == os.strerror(2)
    assert slurm_strerror(123456) == "Slurm error 123456"
    assert str(RPCError(2017)) == "No such job"
    verify_rpc(0)
    with pytest.raises(RPCError, match="No such node"):
        verify_rpc(2018)


def test_nothing_shows_a_token(newest: Recorded) -> None:
    """Neither an error nor its causes."""
    server = newest
    server.refuse("ping/", 1007)
    with pytest.raises(RPCError) as caught:
        pyslurm.slurmctld.ping_all()
    chain: BaseException | None = caught.value
    while chain is not None:
        assert "secret" not in f"{chain!r} {chain} {json.dumps(vars(chain), default=repr)}"
        chain = chain.__cause__
    assert "secret" not in repr(StaticToken("secret"))
