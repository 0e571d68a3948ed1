"""Slurm's commands from outside the demo: what is sent into the pod, and what of the caller's goes with it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.demo import client

LOGIN = client.Login(["kubectl"], "slurm", "slurm.bridge/nodeset=gpu-node", "slurmd", "alice")


@pytest.mark.parametrize(
    ("arguments", "script"),
    [
        (["job.sh"], "job.sh"),
        (["-N", "2", "job.sh", "more"], "job.sh"),
        (["-N2", "--time=5", "job.sh"], "job.sh"),
        (["--nodes", "2", "--hold", "job.sh"], "job.sh"),
        (["-W", "job.sh"], "job.sh"),
        (["--", "job.sh"], "job.sh"),
        (["-o", "out.txt"], None),
        (["--wrap", "hostname"], None),
        (["--wrap=hostname", "x"], None),
        ([], None),
    ],
)
def test_sbatch_finds_its_script(arguments: list[str], script: str | None) -> None:
    """The first word that is neither an option nor an option's value is the script."""
    index = client.script_index(arguments)
    assert (None if index is None else arguments[index]) == script


@pytest.mark.parametrize(
    ("program", "arguments", "reads"),
    [
        ("sinfo", [], False),
        ("squeue", ["-a"], False),
        ("sbatch", [], True),
        ("srun", ["cat"], True),
        ("scontrol", [], True),
    ],
)
def test_only_what_reads_gets_standard_input(program: str, arguments: list[str], reads: bool) -> None:
    """`squeue` in a shell loop must not eat the loop's input."""
    assert client.call(program, arguments).reads is reads


def test_the_user_is_the_tenants() -> None:
    """Nobody runs as root unasked."""
    words = client.command(LOGIN, "gpu-node-0", client.call("sinfo", []), {}, terminal=False)
    assert words[-3:] == ["as", "alice", "sinfo"]


def test_slurm_as_names_another_user() -> None:
    """SLURM_AS=root is the admin's way in."""
    words = client.command(LOGIN, "gpu-node-0", client.call("sinfo", []), {"SLURM_AS": "root"}, terminal=False)
    assert words[-3:] == ["as", "root", "sinfo"]


def test_a_terminal_is_passed_on() -> None:
    """`srun --pty bash` works as on a login node."""
    words = client.command(LOGIN, "gpu-node-0", client.call("srun", ["--pty", "bash"]), {}, terminal=True)
    assert {"-i", "-t"} <= set(words)


def test_a_script_from_a_file_has_no_terminal() -> None:
    """The script's text is the standard input, so there is no terminal on it."""
    words = client.command(LOGIN, "gpu-node-0", client.call("sbatch", ["job.sh"]), {}, terminal=True)
    assert "-t" not in words


def test_the_script_arrives_with_its_name_options_and_arguments(tmp_path: Path) -> None:
    """sbatch in the pod sees the same command line, and the file's text under the file's name."""
    fake = tmp_path / "sbatch"
    fake.write_text('#!/bin/bash\nprintf "%s\\n" "${@:1:2}" "${3##*/}" "${@:4}"; cat "$3"\n')
    fake.chmod(0o755)
    words = client.call("sbatch", ["-J", "a b", "dir/my job.sh", "x y", "*"]).words
    out = subprocess.run(
        words,
        input="the script\n",
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )
    assert out.stdout.splitlines() == ["-J", "a b", "my job.sh", "x y", "*", "the script"]


def test_the_script_leaves_nothing_in_the_pod(tmp_path: Path) -> None:
    """The folder that it was sent to is gone when sbatch has read it."""
    fake = tmp_path / "sbatch"
    fake.write_text("#!/bin/bash\nexit 3\n")
    fake.chmod(0o755)
    folder = tmp_path / "tmp"
    folder.mkdir()
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(folder)}
    done = subprocess.run(client.call("sbatch", ["job.sh"]).words, input="", text=True, check=False, env=environment)
    assert done.returncode == 3
    assert not list(folder.iterdir())


def test_a_missing_script_is_said_as_sbatch_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No job is made of a file that is not there."""
    login = tmp_path / "login.json"
    login.write_text('{"kubectl": ["true"], "namespace": "n", "selector": "s", "container": "c", "user": "u"}')
    monkeypatch.setattr(client, "find_pod", lambda _: "pod")
    with pytest.raises(SystemExit, match=r"sbatch: error: .*none\.sh: No such file"):
        client.main([str(login), "sbatch", str(tmp_path / "none.sh")])
