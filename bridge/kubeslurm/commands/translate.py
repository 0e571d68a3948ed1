"""`kubeslurm translate`: the Slurm job that a Kubernetes job becomes, and with `--to pytorchjob` the way back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kubeslurm.api.nodeset import NodeSet
from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.api.slurmcluster import SlurmCluster
from kubeslurm.commands import documents
from kubeslurm.descriptions import components
from kubeslurm.errors import BridgeError, InvalidObject
from kubeslurm.from_sbatch.found import NoJob
from kubeslurm.from_sbatch.manifest import MAX_BYTES, read_script
from kubeslurm.from_sbatch.written import written
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script

Raw = Mapping[str, Any]

NOT_JOBS = frozenset(
    {"Namespace", "SlurmCluster", "NodeSet", "ConfigMap", "Secret", "Service", "PersistentVolumeClaim"}
)
"""What may stand beside jobs in a file, and is no job."""


@click.command("translate")
@click.argument("scripts", nargs=-1, metavar="[FILE]...")
@click.option("-f", "--filename", "files", multiple=True, help="YAML with PyTorchJobs, or a script; - is stdin.")
@click.option("--cluster", "clusters", multiple=True, help="YAML with the SlurmCluster and its NodeSets.")
@click.option("--json", "as_json", is_flag=True, help="Show the body of the REST submission instead of the script.")
@click.option(
    "--to", type=click.Choice(["sbatch", "pytorchjob"]), default="sbatch", help="What to make. Default: sbatch."
)
@click.option("--image", help="With --to pytorchjob: the image, where the script has none.")
@click.option("-n", "--namespace", help="With --to pytorchjob: the object's namespace.")
def translate_command(
    scripts: tuple[str, ...],
    files: tuple[str, ...],
    clusters: tuple[str, ...],
    as_json: bool,
    to: str,
    image: str | None,
    namespace: str | None,
) -> None:
    """Show the sbatch script of each PyTorchJob in the files, or the PyTorchJob of each sbatch script.

    Without --cluster there is no user, no partition and no default. What is left out is told on stderr.
    """
    paths = (*files, *scripts)
    if not paths:
        raise click.UsageError("no file is given; - is stdin")
    if to == "pytorchjob":
        if clusters or as_json:
            raise click.UsageError("--cluster and --json go with --to sbatch")
        _each(paths, lambda path: _back(path, image, namespace))
        return
    if image or namespace:
        raise click.UsageError("--image and --namespace go with --to pytorchjob")
    _forth(paths, clusters, as_json=as_json)


def _each(things: Sequence[Any], make: Callable[[Any], str], between: str = "---\n") -> None:
    """Show what is made of each; one that can't be made hides no other, and ends with status 2."""
    failed = shown = 0
    for thing in things:
        try:
            text = make(thing)
        except BridgeError as error:
            click.echo(f"kubeslurm: {error}", err=True)
            failed += 1
            continue
        click.echo((between if shown else "") + text, nl=False)
        shown += 1
    if failed:
        sys.exit(2)


def _forth(paths: Sequence[str], clusters: Sequence[str], *, as_json: bool) -> None:
    found = documents.read(paths)
    everything = [*found, *documents.read(clusters)]
    pool = documents.pool(everything)
    if clusters and pool is None:
        raise BridgeError("no SlurmCluster is given")
    jobs = [raw for raw in found if raw.get("kind") not in NOT_JOBS]
    if not jobs:
        raise BridgeError("no PyTorchJob is given")
    _each(jobs, lambda raw: _job(raw, everything, pool, as_json=as_json), "" if as_json else "\n")


def _job(raw: Raw, everything: Sequence[Raw], pool: tuple[SlurmCluster, list[NodeSet]] | None, *, as_json: bool) -> str:
    if raw.get("kind") != PyTorchJob.KIND:
        raise BridgeError(f"{documents.named(raw)}: of this kind nothing is translated, only {PyTorchJob.KIND}")
    job = documents.parse(PyTorchJob, raw)
    try:
        plan = read_pytorchjob(
            job, *(pool or (None, ())), labels=documents.labels_of(everything, job.metadata.namespace)
        )
        script = write_script(plan)
    except InvalidObject as error:
        raise BridgeError(f"{documents.named(raw)}: {error}") from None
    for line in _told(plan):
        click.echo(f"kubeslurm: {line}", err=True)
    if not as_json:
        return script
    described = components(plan)
    body = {"script": script, "job" if isinstance(described, dict) else "jobs": described}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def _told(plan: JobPlan) -> Iterator[str]:
    yield from (f"ignored: {path}" for path in plan.ignored)
    yield from plan.notes


def _back(path: str, image: str | None, namespace: str | None) -> str:
    name = "stdin" if path == "-" else path
    try:
        made, left = read_script(_script(path), image=image, namespace=namespace)
    except NoJob as error:
        raise BridgeError(f"{name}:{error}" if error.line else f"{name}: {error}") from None
    for one in left:
        click.echo(f"{name}:{one}", err=True)
    return written(made)


def _script(path: str) -> str:
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else Path(path).read_bytes()
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError(f"{path}: {error}") from None
