"""The bare Slurm of the harness: that it is a real one, apart from the machine, and gone when its owner is."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.cluster import slurmconf
from tests.cluster.slurm import BareSlurm
from tests.integration.conftest import need_root_file_system

pytestmark = pytest.mark.slurm


def _listening() -> set[str]:
    """What listens in the machine's own network: local addresses of the kernel's table."""
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    return {line.split()[1] for table in tables for line in table if line.split()[3] == "0A"}


def test_job_of_a_user_runs_on_every_node_with_its_gpus(slurm: BareSlurm) -> None:
    """Four nodes run a task each as alice, and each sees the GPUs it was given."""
    script = 'echo "$(hostname) $(id -un) $CUDA_VISIBLE_DEVICES"'
    lines = slurm.run("srun", "-N4", "--gres=gpu:2", "sh", "-c", script, user="alice").stdout.splitlines()
    assert sorted(lines) == [f"n{i} alice 0,1" for i in range(4)]


def test_slurmrestd_answers_on_its_socket_from_outside(slurm: BareSlurm) -> None:
    """The unix socket is reached from this network, with a token signed by the key."""
    headers = {"X-SLURM-USER-TOKEN": slurm.token("alice")}
    with httpx.Client(transport=httpx.HTTPTransport(uds=slurm.url.removeprefix("unix://"))) as client:
        answer = client.get("http://slurm/slurm/v0.0.42/ping", headers=headers)
    assert answer.json()["pings"][0]["responding"] is True


def test_slurmrestd_refuses_a_token_of_another_key(slurm: BareSlurm) -> None:
    """Only tokens signed with Slurm's own key are taken."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=slurm.url.removeprefix("unix://"))) as client:
        answer = client.get(
            "http://slurm/slurm/v0.0.42/nodes", headers={"X-SLURM-USER-TOKEN": slurm.token("alice")[:-4] + "AAAA"}
        )
    assert "uthentication" in answer.text
    assert "n0" not in answer.text


def test_nothing_listens_in_the_machines_network() -> None:
    """slurmctld's and slurmrestd's ports are in their own network only."""
    with BareSlurm(nodes=1):
        ports = {address.split(":")[1] for address in _listening()}
    assert not ports & {f"{port:04X}" for port in (6817, 6818, 6820)}


def test_killed_node_is_gone_and_comes_back(slurm: BareSlurm) -> None:
    """A node that dies whole and is started again is DOWN as one that rebooted; resumed, it runs jobs."""
    # slurmctld reckons in whole seconds: a node that is back soon after it was last heard of has not rebooted for it
    assert any(_seen_to_reboot(slurm, away) for away in (2, 5, 10))
    slurm.run("scontrol", "update", "nodename=n3", "state=resume")
    slurm.wait_ready()
    assert slurm.run("srun", "-w", "n3", "hostname", user="bob").stdout == "n3\n"


def _seen_to_reboot(slurm: BareSlurm, away: float) -> bool:
    """Kill the whole node n3 for so many seconds: does slurmctld then say that it has rebooted?"""
    slurm.kill("n3", whole=True)
    time.sleep(away)
    slurm.start("n3")
    end = time.monotonic() + 15
    while "unexpectedly rebooted" not in slurm.run("sinfo", "-h", "-N", "-n", "n3", "-o", "%E").stdout:
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_slurm_runs_on_files_given() -> None:
    """With conf_files, nodes and names are those of the files."""
    files = slurmconf.default_files(1, 0, ["NodeName=other-[7-8] CPUs=2 RealMemory=100 State=CLOUD"])
    with BareSlurm(conf_files=files, start=["other-8"]) as slurm:
        assert "State=IDLE+CLOUD " in slurm.run("scontrol", "show", "node", "other-8").stdout


def test_slurm_ends_with_its_owner() -> None:
    """A test run that is killed leaves no process and no mount of its Slurm."""
    start = "from tests.cluster.slurm import BareSlurm; s = BareSlurm(nodes=1); s.open();"
    script = f"{start} print(s._pid, flush=True); input()"
    owner = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdin is not None
    init = Path("/proc") / owner.stdout.readline().decode().strip()
    assert init.exists()
    owner.kill()
    owner.wait(timeout=10)
    owner.stdin.close()
    owner.stdout.close()
    end = time.monotonic() + 10
    while init.exists():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_wrong_configuration_shows_what_slurmctld_says() -> None:
    """A slurm.conf that slurmctld does not take is an error with slurmctld's own words."""
    with pytest.raises(RuntimeError, match="NoSuchKey"), BareSlurm(nodes=1, config_lines=["NoSuchKey=1"]):
        pass


@pytest.mark.parametrize(("suite", "release"), [("trixie", "24.11."), ("sid", "26.")])
def test_each_release_runs_with_accounting(suite: str, release: str) -> None:
    """Jobs run and are accounted to their user's own account; slurmdbd comes back after a crash of its database."""
    need_root_file_system(suite, accounting=True)
    with BareSlurm(nodes=2, suite=suite, accounting=True) as slurm:
        assert slurm.run("sinfo", "--version").stdout.startswith(f"slurm-wlm {release}")
        assert sorted(slurm.run("srun", "-N2", "hostname", user="bob").stdout.split()) == ["n0", "n1"]
        assert accounted(slurm) == "bob|chemistry|COMPLETED"
        for daemon in ("slurmdbd", "mariadb"):
            slurm.kill(daemon)
        slurm.start("mariadb")
        slurm.start("slurmdbd")
        assert accounted(slurm) == "bob|chemistry|COMPLETED"


def accounted(slurm: BareSlurm) -> str:
    """User, account and state of the only job there has been, once slurmdbd knows its end."""
    sacct = ("sacct", "-aXnP", "-o", "user,account,state")
    end = time.monotonic() + 30
    while not (said := slurm.run(*sacct, check=False).stdout.strip()).endswith("COMPLETED"):
        assert time.monotonic() < end, said
        time.sleep(0.2)
    return said
