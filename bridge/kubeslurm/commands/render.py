"""`kubeslurm render`: the files that Slurm would read."""

from __future__ import annotations

from pathlib import Path

import click

from kubeslurm.commands import documents
from kubeslurm.errors import BridgeError
from kubeslurm.layout import plan_pool
from kubeslurm.rendering import render


@click.command("render")
@click.option(
    "-f", "--filename", "files", multiple=True, required=True, help="YAML with a SlurmCluster and NodeSets; - is stdin."
)
@click.option("--output-dir", type=click.Path(file_okay=False), help="Write all files there instead of showing two.")
def render_command(files: tuple[str, ...], output_dir: str | None) -> None:
    """Show slurm.conf and gres.conf of a pool."""
    found = documents.pool(documents.read(files))
    if found is None:
        raise BridgeError("no SlurmCluster is given")
    rendered = render(plan_pool(*found))
    if output_dir is None:
        for name in ("slurm.conf", "gres.conf"):
            click.echo(f"# ==== {name}\n{rendered.files[name]}", nl=False)
        return
    directory = Path(output_dir)
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in rendered.files.items():
        (directory / name).write_text(text)
