"""`python -m tests.cluster`: the test cluster by hand. What each command does is in `--help`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import click

from tests.cluster import cluster as clusters
from tests.cluster import engine
from tests.cluster.cluster import Cluster
from tests.cluster.shell import CommandError

_PASS = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}
_name = click.option("--name", default=clusters.NAME, show_default=True, help="the cluster's name")
_args = click.argument("args", nargs=-1, type=click.UNPROCESSED)


def _progress() -> Callable[[str], None]:
    start = time.monotonic()
    return lambda text: click.echo(f"{time.monotonic() - start:6.1f} s  {text}", err=True)


def _become(argv: Sequence[str]) -> None:
    """Turn into `argv`: its input, output, signals and exit code are ours."""
    os.execvp(argv[0], list(argv))  # noqa: S606


@click.group()
def main() -> None:
    """A Kubernetes cluster (kind) on this machine, for tests. $KUBE=<kubeconfig> takes another cluster instead."""


@main.command()
@_name
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 8))
@click.option("--load", multiple=True, help="an image to load: slurm, operator, or an archive")
def up(name: str, workers: int, load: tuple[str, ...]) -> None:
    """Bring a cluster up; build what is missing."""
    Cluster.at_hand(name).up(_progress(), workers=workers, load=load)


@main.command()
@_name
def down(name: str) -> None:
    """Delete a cluster; the engine ends with the last one."""
    Cluster(name).down()


@main.command()
def stop() -> None:
    """Take down all clusters and the engine; leave nothing."""
    clusters.stop(_progress())


@main.command()
@_name
def status(name: str) -> None:
    """Say what is up. Exit code 1 when the cluster is not."""
    cluster = Cluster.at_hand(name)
    if not cluster.is_up():
        click.echo(f"{cluster.name}: down")
        raise SystemExit(1)
    click.echo(f"{cluster.name}: up, KUBECONFIG={cluster.kubeconfig}")
    click.echo(cluster.kubectl("get", "nodes", "-o", "wide").stdout, nl=False)


@main.command(context_settings=_PASS)
@_name
@_args
def kubectl(name: str, args: tuple[str, ...]) -> None:
    """Run kubectl on the cluster."""
    _become(Cluster.at_hand(name).kubectl_command(args))


@main.command(context_settings=_PASS)
@_name
@_args
def helm(name: str, args: tuple[str, ...]) -> None:
    """Run helm on the cluster."""
    _become(Cluster.at_hand(name).command(["helm", *args]))


@main.command(name="exec", context_settings=_PASS)
@_name
@_args
def execute(name: str, args: tuple[str, ...]) -> None:
    """Run any command where the API server can be reached, KUBECONFIG set."""
    _become(Cluster.at_hand(name).command(args))


@main.command()
@_name
@click.argument("image")
def load(name: str, image: str) -> None:
    """Load an image into the workers: slurm, operator, or an archive."""
    Cluster(name).load(image)


@main.command()
def build() -> None:
    """Build everything into the cache."""
    clusters.build(_progress())


@main.command()
@_name
@click.argument("node")
def crash(name: str, node: str) -> None:
    """Kill a node, as a power cut does."""
    Cluster(name).crash(node)


@main.command()
@_name
@click.argument("node")
def cut(name: str, node: str) -> None:
    """Cut a node off the network."""
    Cluster(name).cut(node)


@main.command()
@_name
@click.argument("node")
def heal(name: str, node: str) -> None:
    """Undo crash and cut."""
    Cluster(name).heal(node)


@main.command()
@_name
@click.argument("node")
@click.argument("index", type=click.IntRange(0, 255))
@click.argument("health", type=click.Choice(["unhealthy", "healthy"]))
def gpu(name: str, node: str, index: int, health: str) -> None:
    """Make a GPU of a node unhealthy, or healthy again."""
    Cluster(name).gpu(node, index, healthy=health == "healthy")


@main.command(name="docker", context_settings=_PASS)
@_args
def docker_command(args: tuple[str, ...]) -> None:
    """Run docker on the engine."""
    os.environ.update(engine.choose().environment())
    _become(["docker", *args])


if __name__ == "__main__":
    try:
        main()
    except (CommandError, RuntimeError, TimeoutError) as error:
        raise SystemExit(f"tests.cluster: {error}") from error
