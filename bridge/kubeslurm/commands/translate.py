"""`kubeslurm translate`: the Slurm job that a Kubernetes job becomes."""

from __future__ import annotations

import json

import click

from kubeslurm.api.pytorchjob import PyTorchJob
from kubeslurm.commands import documents
from kubeslurm.descriptions import components
from kubeslurm.errors import BridgeError, InvalidObject
from kubeslurm.plans import JobPlan
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script


@click.command("translate")
@click.option("-f", "--filename", "files", multiple=True, required=True, help="YAML with one PyTorchJob; - is stdin.")
@click.option("--cluster", "clusters", multiple=True, help="YAML with the SlurmCluster and its NodeSets.")
@click.option("--json", "as_json", is_flag=True, help="Show the body of the REST submission instead of the script.")
def translate_command(files: tuple[str, ...], clusters: tuple[str, ...], as_json: bool) -> None:
    """Show the sbatch script of a job. Without --cluster there is no user, no partition and no default."""
    plan = _plan(files, clusters)
    try:
        script = write_script(plan)
    except InvalidObject as error:
        raise BridgeError(f"PyTorchJob {plan.namespace}/{plan.name}: {error}") from None
    for path in plan.ignored:
        click.echo(f"kubeslurm: ignored: {path}", err=True)
    for note in plan.notes:
        click.echo(f"kubeslurm: {note}", err=True)
    if as_json:
        job = components(plan)
        body = {"script": script, "job" if isinstance(job, dict) else "jobs": job}
        click.echo(json.dumps(body, indent=2, ensure_ascii=False))
    else:
        click.echo(script, nl=False)


def _plan(files: tuple[str, ...], clusters: tuple[str, ...]) -> JobPlan:
    found = documents.read(files)
    jobs = [raw for raw in found if raw.get("kind") == PyTorchJob.KIND]
    if len(jobs) != 1:
        raise BridgeError(f"{len(jobs)} PyTorchJobs are given; one is wanted")
    everything = [*found, *documents.read(clusters)]
    pool = documents.pool(everything)
    if clusters and pool is None:
        raise BridgeError("no SlurmCluster is given")
    job = documents.parse(PyTorchJob, jobs[0])
    try:
        return read_pytorchjob(
            job, *(pool or (None, ())), labels=documents.labels_of(everything, job.metadata.namespace)
        )
    except InvalidObject as error:
        raise BridgeError(f"{documents.named(jobs[0])}: {error}") from None
