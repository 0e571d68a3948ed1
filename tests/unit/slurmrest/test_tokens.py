"""Where tokens come from, how long they serve, and that nobody sees them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import jwt
import pytest

from slurmrest import Authentication, FileToken, SignedTokens, StaticToken

KEY = b"k" * 32


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def signed(clock: Clock) -> SignedTokens:
    """Tokens that live for ten minutes."""
    return SignedTokens(KEY, timedelta(minutes=10), clock)


def test_a_signed_token_names_its_user_and_ends_in_time() -> None:
    """`iat` lies back, so that a slurmctld whose clock is behind takes it."""
    token = signed(Clock()).token("alice")
    claims = jwt.decode(token, KEY, algorithms=["HS256"], options={"verify_exp": False, "verify_iat": False})
    assert claims == {"sun": "alice", "iat": 999_850, "exp": 1_000_600}


def test_a_token_is_used_again_until_half_of_its_life() -> None:
    """Signing for each request would cost more than the request."""
    clock = Clock()
    tokens = signed(clock)
    first = tokens.token("alice")
    clock.now += 299
    assert tokens.token("alice") == first
    clock.now += 1
    assert tokens.token("alice") != first


def test_each_user_has_a_token_of_its_own() -> None:
    """Nobody acts as another."""
    tokens = signed(Clock())
    assert tokens.token("alice") != tokens.token("bob")


def test_a_refused_token_is_signed_anew() -> None:
    """`refresh` forgets what is remembered, as after a change of the clock."""
    clock = Clock()
    tokens = signed(clock)
    first = tokens.token("alice")
    clock.now += 1
    tokens.refresh()
    assert tokens.token("alice") != first


def test_a_file_is_read_again_after_a_refusal_only(tmp_path: Path) -> None:
    """The file's keeper replaces it; the old token serves as long as it is taken."""
    file = tmp_path / "token"
    file.write_text("SLURM_JWT=one\n")
    tokens = FileToken(file)
    assert tokens.token("root") == "one"
    file.write_text("two\n")
    assert tokens.token("root") == "one"
    tokens.refresh()
    assert tokens.token("root") == "two"


def test_a_key_file_is_read_again_after_a_refusal_only(tmp_path: Path) -> None:
    """A rotated key is found without a new start."""
    file = tmp_path / "jwt.key"
    file.write_bytes(KEY)
    tokens = SignedTokens(file)
    assert jwt.decode(tokens.token("alice"), KEY, algorithms=["HS256"])["sun"] == "alice"
    file.write_bytes(b"n" * 32)
    assert jwt.decode(tokens.token("bob"), KEY, algorithms=["HS256"])["sun"] == "bob"
    tokens.refresh()
    assert jwt.decode(tokens.token("bob"), b"n" * 32, algorithms=["HS256"])["sun"] == "bob"


@pytest.mark.parametrize("content", [None, b""])
def test_a_key_file_without_a_key_is_an_authentication_error_naming_it(tmp_path: Path, content: bytes | None) -> None:
    """An empty key would sign what everybody can sign."""
    if content is not None:
        (tmp_path / "jwt.key").write_bytes(content)
    with pytest.raises(Authentication, match=r"no key in .*jwt\.key"):
        SignedTokens(tmp_path / "jwt.key").token("alice")


def test_a_missing_file_is_an_authentication_error_naming_it(tmp_path: Path) -> None:
    """Not an OSError in the middle of a call."""
    with pytest.raises(Authentication, match="nowhere"):
        FileToken(tmp_path / "nowhere").token("root")


@pytest.mark.parametrize("token", ["", " \n", "a b", "a\r\nX-Evil: 1", "ü"])
def test_what_cant_be_a_token_never_reaches_a_header(token: str) -> None:
    """A line break would make a header of its own; the message doesn't repeat it."""
    with pytest.raises(Authentication) as caught:
        StaticToken(token)
    assert "Evil" not in str(caught.value)


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    """Reprs end up in logs."""
    tokens = signed(Clock())
    secret = tokens.token("alice")
    shown = repr([StaticToken("topsecret"), tokens, FileToken(tmp_path)])
    assert "topsecret" not in shown
    assert secret not in shown
    assert "kkk" not in shown


@pytest.mark.parametrize(("key", "lifespan"), [(b"", timedelta(minutes=1)), (KEY, timedelta(seconds=1))])
def test_a_useless_signer_is_refused_at_its_making(key: bytes, lifespan: timedelta) -> None:
    """An empty key would sign what everybody can sign."""
    with pytest.raises(ValueError, match=r"empty|two seconds"):
        SignedTokens(key, lifespan)
