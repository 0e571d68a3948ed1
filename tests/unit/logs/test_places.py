"""Where output is: places, their seals, and the reader itself, run on this machine as the directory's owner."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kubeslurm import log_lines, log_places
from kubeslurm.log_places import Place

KEY = b"k" * 32
PLACE = Place(7, "gpu-node-1", 8, 15)
SEALED = log_places.seal(str(PLACE), KEY, "uid", "pod")


def test_a_gangs_member_has_its_tasks() -> None:
    """So many on each node, in the nodes' order."""
    assert log_places.of(7, "gpu-node-1", 1, 8) == PLACE


def test_a_member_without_a_node_has_no_place() -> None:
    """Nothing was written yet."""
    assert log_places.of(7, "", 0, 8) is None


def test_several_ranks_are_prefixed_and_one_alone_is_not() -> None:
    """The batch script's messages always are; they go with the first task."""
    assert Place(7, "n", 2, 3).prefixes == ("[2] ", "[3] ")
    assert (Place(7, "n", 0, 0).files, Place(7, "n", 0, 0).prefixes) == (("0", "batch"), ("", "[batch] "))


def test_a_sealed_place_opens() -> None:
    """With the same key, for the same pod of the same object."""
    assert log_places.opened(SEALED, KEY, "uid", "pod") == PLACE
    assert log_places.unsealed(SEALED) == log_places.unsealed(str(PLACE)) == str(PLACE)


@pytest.mark.parametrize(
    ("text", "key", "owner", "pod"),
    [
        (SEALED, b"other", "uid", "pod"),
        (SEALED, KEY, "other", "pod"),
        (SEALED, KEY, "uid", "other"),
        (SEALED.replace("//7/", "//8/"), KEY, "uid", "pod"),
        (str(PLACE), KEY, "uid", "pod"),
    ],
)
def test_what_we_did_not_seal_does_not_open(text: str, key: bytes, owner: str, pod: str) -> None:
    """Another key, object or pod; another place under the same seal; no seal."""
    assert log_places.opened(text, key, owner, pod) is None


@pytest.mark.parametrize("text", ["", "slurm://", "docker://7/n/0-1", "slurm://7/../0-1x", "slurm://7/n/3-1", "é/é"])
def test_other_ids_are_no_places(text: str) -> None:
    """Nor do they break anything."""
    assert log_places.parse(text) is None
    assert log_places.opened(text, KEY, "uid", "pod") is None


def test_only_the_place_in_a_status_is_sealed() -> None:
    """Both where the container runs and where it has ended; the status given stays as it was."""
    container: dict[str, Any] = {"containerID": str(PLACE), "state": {"terminated": {"containerID": str(PLACE)}}}
    status = {"phase": "Failed", "containerStatuses": [container]}
    (sealed,) = log_places.with_seal(status, KEY, "uid", "pod")["containerStatuses"]
    assert (sealed["containerID"], sealed["state"]["terminated"]["containerID"]) == (SEALED, SEALED)
    assert container["containerID"] == str(PLACE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's directory."""
    made = tmp_path / "7"
    made.mkdir()
    return made


def here(argv: list[str], folder: Path) -> list[str]:
    """The inner program on this directory; what it does as which user is in the end-to-end tests."""
    return ["bash", "-c", argv[4], "logs", str(folder), *argv[7:]]


def read(folder: Path, place: Place, **options: Any) -> list[tuple[int, bytes]]:
    """What the reader gives of each file."""
    wanted = {"follow": False, "since": 0, "tails": [None] * len(place.files), "tries": 0, **options}
    argv = here(log_places.read_argv(place, **wanted), folder)
    done = subprocess.run(argv, capture_output=True, timeout=20, check=True, stdin=subprocess.DEVNULL)
    first, *lines = done.stdout.splitlines()
    assert first == b"ok"
    frames = [log_lines.read_frame(line, len(place.files)) for line in lines]
    return [(frame.index, frame.data) for frame in frames if frame and frame.data]


def test_files_are_read_in_their_order(folder: Path) -> None:
    """Bytes as they are; what is not there is left out."""
    (folder / "0.out").write_bytes(b"a\0\xff\n")
    (folder / "batch.out").write_bytes(b"why")
    assert read(folder, Place(7, "n", 0, 1)) == [(0, b"a\0\xff\n"), (2, b"why")]


def test_a_long_file_comes_in_pieces(folder: Path) -> None:
    """None larger than a frame may be."""
    data = os.urandom(500_000)
    (folder / "1.out").write_bytes(data)
    pieces = read(folder, Place(7, "n", 1, 1))
    assert (len(pieces), b"".join(piece for _, piece in pieces)) == (3, data)


def test_the_last_lines_alone(folder: Path) -> None:
    """Of each file its own number; an unfinished line is one."""
    (folder / "1.out").write_text("a\nb\nc\n")
    (folder / "2.out").write_text("x\ny\nz")
    assert read(folder, Place(7, "n", 1, 2), tails=[2, 1]) == [(0, b"b\nc\n"), (1, b"z")]


def test_an_old_file_gives_nothing(folder: Path) -> None:
    """Last written before `since`."""
    (folder / "1.out").write_text("old\n")
    (folder / "2.out").write_text("new\n")
    os.utime(folder / "1.out", (1000, 1000))
    assert read(folder, Place(7, "n", 1, 2), since=2000) == [(1, b"new\n")]


def test_what_is_no_file_is_not_read(folder: Path) -> None:
    """A named pipe would never end."""
    os.mkfifo(folder / "1.out")
    (folder / "2.out").mkdir()
    assert read(folder, Place(7, "n", 1, 2)) == []


def test_lines_are_counted_up_to_a_number(folder: Path) -> None:
    """0 where there is no file."""
    (folder / "1.out").write_text("a\nb\nc")
    argv = here(log_places.count_argv(Place(7, "n", 1, 2), 5), folder)
    done = subprocess.run(argv, capture_output=True, timeout=20, check=True, stdin=subprocess.DEVNULL)
    assert done.stdout.split() == [b"3", b"0"]


def following(folder: Path) -> subprocess.Popen[bytes]:
    """The reader, following the files of one task."""
    argv = log_places.read_argv(Place(7, "n", 1, 1), follow=True, since=0, tails=[None], tries=0)
    return subprocess.Popen(here(argv, folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def next_data(process: subprocess.Popen[bytes]) -> bytes:
    """Of the next frame."""
    assert process.stdout is not None
    while (line := process.stdout.readline()) in (b"\n", b"ok\n"):
        continue
    frame = log_lines.read_frame(line.rstrip(b"\n"), 1)
    assert frame is not None
    return frame.data


def test_a_follower_sees_what_comes_and_what_begins_anew(folder: Path) -> None:
    """A file that appears, grows, is cut off by a requeued job; told of the end, it reads to it."""
    with following(folder) as process:
        assert process.stdin is not None
        for mode, text in (("w", b"one\n"), ("a", b"two\n"), ("w", b"3\n")):
            with (folder / "1.out").open(mode) as file:
                file.write(text.decode())
            assert next_data(process) == text
        with (folder / "1.out").open("a") as file:
            file.write("end\n")
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert next_data(process) == b"end\n"
        assert process.wait(10) == 0


def test_a_reader_nobody_listens_to_ends(folder: Path) -> None:
    """By the end of its input: a program in a container is not killed when its stream breaks."""
    with following(folder) as process:
        time.sleep(0.3)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_job_without_a_directory_is_told_by_a_code(tmp_path: Path) -> None:
    """After so many tries."""
    argv = log_places.read_argv(Place(99_999_999_999, "n", 0, 0), follow=False, since=0, tails=[None] * 2, tries=1)
    done = subprocess.run(argv, capture_output=True, timeout=20, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (log_places.GONE, b"")
