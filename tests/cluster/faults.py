"""What goes wrong with nodes and GPUs, on purpose. Called by Cluster; each undoes with `heal` or `healthy=True`."""

from __future__ import annotations

from tests.cluster.engine import Engine
from tests.cluster.shell import run


def crash(engine: Engine, node: str) -> None:
    """Kill the node's container: kubelet, containers, everything."""
    engine.docker("kill", node)


def host_interface(engine: Engine, node: str) -> str:
    """The engine's side of a node's cable: the interface whose index the node's eth0 names as its peer."""
    index = engine.docker("exec", node, "cat", "/sys/class/net/eth0/iflink").stdout.strip()
    listing = run(engine.inside(["ip", "-o", "link"]), timeout=20).stdout
    for line in listing.splitlines():
        number, name = line.split(": ")[:2]
        if number == index:
            return name.split("@")[0]
    raise RuntimeError(f"no interface {index} for {node}")


def _cable(engine: Engine, node: str, state: str) -> None:
    run(engine.inside(["ip", "link", "set", host_interface(engine, node), state]), timeout=20)


def cut(engine: Engine, node: str) -> None:
    """Pull the node's cable."""
    _cable(engine, node, "down")


def heal(engine: Engine, node: str) -> None:
    """Start the node if it is down, plug its cable in."""
    engine.docker("start", node)
    _cable(engine, node, "up")


def gpu(engine: Engine, node: str, index: int, *, healthy: bool) -> None:
    """Make or remove the file by which the device plugin takes a GPU for unhealthy."""
    action = ["rm", "-f"] if healthy else ["touch"]
    engine.docker("exec", node, *action, f"/run/fakegpu/unhealthy-{int(index)}")
