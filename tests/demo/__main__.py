"""`python -m tests.demo`: the demo by hand. `up` is what `make demo` runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import click

from tests.cluster import Cluster
from tests.cluster import cluster as clusters
from tests.cluster.shell import CommandError
from tests.demo import place, views
from tests.demo.screen import Screen
from tests.demo.steps import Demo, DemoError

NAME = "demo"
_name = click.option("--name", default=NAME, show_default=True, help="the test cluster's name")


@click.group()
def main() -> None:
    """One Kubernetes, one Slurm of 64 nodes, one job on 512 GPUs."""


@main.command()
@_name
@click.option("--times", type=click.Path(path_type=Path, dir_okay=False), help="write the phases' seconds as JSON")
@click.option("--quiet", is_flag=True, help="don't show what both worlds see at the end")
def up(name: str, times: Path | None, quiet: bool) -> None:
    """Bring it all up, run the job, show it, and leave it up."""
    demo = Demo(Cluster(name), Screen())
    try:
        demo.run()
        place.write(demo.cluster, place.login(demo.cluster, demo.nodeset.namespace, demo.nodeset.name, demo.user))
        if times:
            times.write_text(json.dumps({**demo.screen.times, "total": round(demo.screen.total, 2)}, indent=1) + "\n")
        if not quiet:
            views.show(demo)
    except (DemoError, CommandError, RuntimeError, TimeoutError, subprocess.SubprocessError) as error:
        views.show_failure(demo, error)
        raise SystemExit(1) from error
    demo.screen.line(
        "\nIt stays up. In this shell: `. .demo/env`, then kubectl, helm, sinfo, squeue, sbatch, srun, scontrol."
    )
    demo.screen.line("Take it away: make demo-down")


@main.command()
@_name
def show(name: str) -> None:
    """Show what both worlds see now."""
    views.show(Demo(Cluster(name), Screen()))


@main.command()
@_name
def down(name: str) -> None:
    """Take it away: the cluster, the engine when nobody else uses it, and .demo."""
    cluster = Cluster(name)
    place.remove(cluster)
    cluster.down()
    engine = cluster.engine
    if engine.own and not (engine.running() and engine.docker("ps", "-q").stdout.split()):
        clusters.stop()


if __name__ == "__main__":
    main()
