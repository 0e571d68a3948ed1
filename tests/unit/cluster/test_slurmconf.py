"""What the bare Slurm reads off a slurm.conf."""

from __future__ import annotations

import pytest

from tests.cluster import slurmconf

CONF = """\
ClusterName=x
SlurmctldHost=slurmctld-0(slurmctld)
AuthAltParameters=jwt_key=/etc/slurm/keys/jwt,x=1
StateSaveLocation=/var/state
SlurmctldPidFile=/run/ctld/pid
NodeName=DEFAULT CPUs=2
NodeName=gpu-node-[0-2] State=CLOUD
NodeName=cpu State=CLOUD
"""


def test_node_names_are_expanded_in_order() -> None:
    """Every node of every line, the DEFAULT line not being one."""
    assert slurmconf.node_names(CONF) == ["gpu-node-0", "gpu-node-1", "gpu-node-2", "cpu"]


def test_hosts_know_controller_by_both_names() -> None:
    """The controller's host name and its service name lead to the same address."""
    assert f"{slurmconf.ADDRESS} slurmctld-0 slurmctld" in slurmconf.hosts_file(CONF, [])


def test_numeric_controller_address_is_no_host_name() -> None:
    """An address in SlurmctldHost does not become a name in /etc/hosts."""
    hosts = slurmconf.hosts_file("SlurmctldHost=c(10.77.0.1)\n", [])
    assert hosts.splitlines()[1] == "10.77.0.1 c"


@pytest.mark.parametrize(("number", "address"), [(0, "10.77.1.1"), (249, "10.77.1.250"), (250, "10.77.2.1")])
def test_node_addresses_stay_in_the_bridge_network(number: int, address: str) -> None:
    """Nodes are numbered through without the addresses .0 and .255."""
    assert slurmconf.node_address(number) == address


def test_jwt_key_path_ends_at_the_comma() -> None:
    """The key's path is one parameter among others."""
    assert slurmconf.jwt_key_path(CONF) == "/etc/slurm/keys/jwt"


def test_state_folders_include_those_of_pid_files() -> None:
    """slurmctld's user must own where it writes its state and its pid file."""
    assert slurmconf.state_folders(CONF) == ["/var/state", "/run/ctld"]
