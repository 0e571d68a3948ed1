"""What both worlds see when the demo stands, and what is worth seeing when it fell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from kubeslurm import names
from tests.cluster.shell import CommandError
from tests.demo import client, place
from tests.demo.steps import EXAMPLES, OPERATOR, SYSTEM, Demo

SLURM_SECONDS = 60
RANKS_SHOWN = 4
PODS_SHOWN = 10
EVENTS = ("get", "events", "-A", "--sort-by=.metadata.creationTimestamp")


def slurm(demo: Demo, program: str, *arguments: str) -> str:
    """A Slurm command as the demo's user, as the wrappers in .demo/bin run it."""
    words = [str(place.FOLDER / "bin" / program), *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SLURM_SECONDS, input="")
    return done.stdout + done.stderr


def show(demo: Demo) -> None:
    """The objects, the queue, the script and the first ranks' words."""
    kinds = "slurmclusters,nodesets,pytorchjobs"
    _kubectl(demo, "get", kinds, "-A")
    _kubectl(demo, "get", "pods", "-A")
    demo.screen.section("sinfo", slurm(demo, "sinfo"))
    demo.screen.section("squeue --states=all", slurm(demo, "squeue", "--states=all"))
    translate = f"kubeslurm translate -f {EXAMPLES.name}/pytorchjob.yaml --cluster {EXAMPLES.name}/pool.yaml"
    demo.screen.section(translate, _translate(translate))
    if job := job_id(demo):
        _ranks(demo, job)


def job_id(demo: Demo) -> str | None:
    """The Slurm job behind the PyTorchJob."""
    job = demo.get(demo.job) or {}
    annotations = job.get("metadata", {}).get("annotations") or {}
    return annotations.get(names.ANNOTATION_JOB_ID)


def _translate(command: str) -> str:
    program, *arguments = command.split()
    words = [str(place.ROOT / ".venv" / "bin" / program), *arguments]
    done = subprocess.run(words, cwd=place.ROOT, capture_output=True, text=True, check=True, timeout=SLURM_SECONDS)
    return done.stdout


def _ranks(demo: Demo, job: str) -> None:
    pod = client.find_pod(place.login(demo.cluster, demo.nodeset.namespace, demo.nodeset.name, demo.user))
    script = f"cd /var/log/jobs/{job} && head -qn 1 $(ls *.out | grep -v batch | sort -n | head -n {RANKS_SHOWN})"
    _kubectl(demo, "-n", demo.nodeset.namespace, "exec", pod, "-c", "slurmd", "--", "sh", "-c", script)


def _kubectl(demo: Demo, *arguments: str) -> None:
    done = demo.cluster.kubectl(*arguments, check=False)
    demo.screen.section("kubectl " + " ".join(arguments), done.stdout + done.stderr)


def show_failure(demo: Demo, error: Exception) -> None:
    """What failed, and what the cluster last said about it."""
    demo.screen.line(f"\nThe demo failed: {error}")
    sections: dict[str, Callable[[], str]] = {
        "pods that are not ready": lambda: _not_ready(demo),
        "the last warnings": lambda: _last(demo, 10, *EVENTS, "--field-selector=type=Warning"),
        "the last events": lambda: _last(demo, 10, *EVENTS),
        "the operator's last lines": lambda: _last(demo, 20, "-n", SYSTEM, "logs", OPERATOR, "--tail=20"),
    }
    for title, get in sections.items():
        try:
            demo.screen.section(title, get())
        except (CommandError, RuntimeError) as reason:
            demo.screen.line(f"{title}: not to be had: {reason}")


def _not_ready(demo: Demo) -> str:
    lines = demo.cluster.kubectl("get", "pods", "-A", "--no-headers", check=False, timeout=30).stdout.splitlines()
    return "\n".join([line for line in lines if not _is_ready(line.split())][:PODS_SHOWN])


def _is_ready(columns: list[str]) -> bool:
    """Of a line NAMESPACE NAME READY STATUS ..."""
    ready, wanted = columns[2].split("/")
    return columns[3] == "Completed" or (columns[3] == "Running" and ready == wanted)


def _last(demo: Demo, lines: int, *arguments: str) -> str:
    done = demo.cluster.kubectl(*arguments, check=False, timeout=30)
    return "\n".join((done.stdout + done.stderr).splitlines()[-lines:])
