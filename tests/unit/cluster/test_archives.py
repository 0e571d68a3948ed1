"""Image archives: what an engine reads out of them."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import archives


def _layer(path: Path, name: str, text: str) -> Path:
    source = path.with_suffix(".txt")
    source.write_text(text)
    archives.layer_of_files(path, {name: source})
    return path


def _read(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return file.read()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An image of two layers."""
    layers = [_layer(tmp_path / "one.tar", "/bin/x", "old"), _layer(tmp_path / "two.tar", "/bin/x", "new")]
    image = archives.Image("localhost/x:1", entrypoint=["/bin/x"], user="65532", environment={"A": "b"})
    archives.write(tmp_path / "image.tar", image, layers)
    return tmp_path / "image.tar"


def _manifest(archive: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(_read(archive, "manifest.json"))[0]
    return manifest


def test_manifest_names_the_tag(archive: Path) -> None:
    """The engine finds the name under which to keep the image."""
    assert _manifest(archive)["RepoTags"] == ["localhost/x:1"]


def test_layers_match_their_digests(archive: Path) -> None:
    """Every layer's bytes have the digest that the configuration promises, in the same order."""
    config = json.loads(_read(archive, _manifest(archive)["Config"]))
    digests = [f"sha256:{hashlib.sha256(_read(archive, name)).hexdigest()}" for name in _manifest(archive)["Layers"]]
    assert config["rootfs"]["diff_ids"] == digests


def test_configuration_carries_user_entrypoint_environment(archive: Path) -> None:
    """A container starts as the image says."""
    settings = json.loads(_read(archive, _manifest(archive)["Config"]))["config"]
    assert (settings["User"], settings["Entrypoint"], "A=b" in settings["Env"]) == ("65532", ["/bin/x"], True)


def test_equal_layers_give_equal_bytes(archive: Path, tmp_path: Path) -> None:
    """Written again, the archive is the same: engines then load nothing twice."""
    image = archives.Image("localhost/x:1", entrypoint=["/bin/x"], user="65532", environment={"A": "b"})
    archives.write(tmp_path / "again.tar", image, [tmp_path / "one.tar", tmp_path / "two.tar"])
    assert (tmp_path / "again.tar").read_bytes() == archive.read_bytes()


def test_layer_of_files_makes_the_folders_above(tmp_path: Path) -> None:
    """Folders come before what lies in them."""
    with tarfile.open(_layer(tmp_path / "one.tar", "/usr/local/bin/x", "1")) as tar:
        assert tar.getnames() == ["usr", "usr/local", "usr/local/bin", "usr/local/bin/x"]
