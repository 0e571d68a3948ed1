"""`make bench`: the claims of speed, measured now and here: figures and ratios, never a verdict.

    python -m tests.bench [demo] [nodeset] [job] [many] [quiet] [slurmrest]      all by default

All but the last run on the test cluster ($KUBESLURM_CLUSTER), which is brought up if need be and left as it was found.
Compare rows of one run with each other; on another machine all of them move.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kubeslurm import manifests, names
from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from tests.bench import many, rest
from tests.cluster import Cluster
from tests.cluster.shell import run
from tests.demo.steps import EXAMPLES, SYSTEM
from tests.e2e.product import EIGHT, NODESET, POOL, Product, newest
from tests.unit import examples

NODES = 64
ROUNDS = 3
QUIET_SECONDS = 60
OPERATOR = "deployment/kubeslurm"
CONSOLE = Console()

Row = tuple[str, str, str]


def main() -> None:
    """Run the benches that are named."""
    wanted = sys.argv[1:] or list(BENCHES)
    unknown = sorted(set(wanted) - BENCHES.keys())
    if unknown:
        click.echo(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}", err=True)
        sys.exit(2)
    for name in wanted:
        table = Table("figure", "value", "goal", title=f"bench {name}")
        for row in BENCHES[name]():
            table.add_row(*row)
        CONSOLE.print(table)


def _product() -> Product:
    product = Product(Cluster.at_hand(os.environ.get("KUBESLURM_CLUSTER", "kubeslurm")))
    product.cluster.up(load=("slurm", "operator"))
    product.install()
    return product


def demo() -> list[Row]:
    """make demo, warm, on a cluster of its own: the time of each phase."""
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.json"
        command = [sys.executable, "-m", "tests.demo"]
        try:
            run([*command, "up", "--name", "bench", "--times", str(times)], timeout=900)
        finally:
            run([*command, "down", "--name", "bench"], timeout=300)
        found: dict[str, float] = json.loads(times.read_text())
    goals = {"cluster": "<= 60 s"}
    rows = [(f"demo: {phase}", f"{seconds:.1f} s", goals.get(phase, "")) for phase, seconds in found.items()]
    return [*rows, ("demo: all up to Succeeded", f"{sum(found.values()):.1f} s", "<= 150 s")]


def nodeset() -> list[Row]:
    """64 pods from apply to registered: our NodeSet against a StatefulSet of the same pods."""
    product = _product()
    product.scale(NODES)
    product.wait_registered(NODES, 300)
    bare = _timed_registration(product, lambda: product.cluster.apply([_stateful_set()]), without_operator=True)
    ours = _timed_registration(product, lambda: None, without_operator=False)
    product.wait_registered(NODES, 300)
    product.scale(EIGHT)
    product.wait_registered(EIGHT, 300)
    return [
        ("64 pods registered, bare StatefulSet", f"{bare:.1f} s", ""),
        ("64 pods registered, NodeSet", f"{ours:.1f} s", ""),
        ("ratio", f"{ours / bare:.2f}", "<= 1.2"),
    ]


def _timed_registration(product: Product, start: Callable[[], Any], *, without_operator: bool) -> float:
    """Take all pods away while nobody brings them back, then time their return."""
    product.cluster.kubectl("scale", "-n", SYSTEM, OPERATOR, "--replicas=0")
    product.wait("operator gone", lambda: not _operator_pods(product), 60)
    label = f"{names.LABEL_NODESET}={NODESET}"
    where = ("-n", POOL, "--force", "--grace-period=0")
    product.cluster.kubectl("delete", "statefulset", NODESET, "-n", POOL, "--ignore-not-found", "--cascade=foreground")
    product.cluster.kubectl("delete", "pods", *where, "-l", label, timeout=180)
    product.wait("pods gone", lambda: not _pods(product), 120)
    time.sleep(2)
    begun = time.time()
    start()
    if not without_operator:
        product.cluster.kubectl("scale", "-n", SYSTEM, OPERATOR, "--replicas=1")
    product.wait("registered", lambda: _registered(product, begun), 300)
    took = time.time() - begun
    if without_operator:
        product.cluster.kubectl(
            "delete", "statefulset", NODESET, "-n", POOL, "--cascade=foreground", "--timeout=120s", timeout=130
        )
    return took


def _registered(product: Product, since: float) -> bool:
    """Has every node's slurmd started after that moment?"""
    script = "scontrol -o show node | grep -o 'SlurmdStartTime=[^ ]*' | cut -d= -f2 | grep -v None | date -f - +%s"
    lines = product.in_controller("sh", "-c", script, check=False).split()
    return sum(int(line) >= int(since) for line in lines) == NODES


def _operator_pods(product: Product) -> list[Any]:
    items: list[Any] = product.cluster.kubectl_json("get", "-n", SYSTEM, "pods")["items"]
    return items


def _pods(product: Product) -> list[Any]:
    label = f"{names.LABEL_NODESET}={NODESET}"
    items: list[Any] = product.cluster.kubectl_json("get", "-n", POOL, "pods", "-l", label)["items"]
    return items


def _stateful_set() -> dict[str, Any]:
    """The NodeSet's own pods in a StatefulSet, all at once."""
    cluster, one = examples.cluster(), examples.nodeset()
    pod = manifests.slurmd_pod(cluster, one, 0, owner={})
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    del template["spec"]["hostname"]
    container = template["spec"]["containers"][0]
    container["env"] = [entry for entry in container["env"] if entry["name"] != "SLURM_NODE_NAME"]
    container["env"].append({"name": "SLURM_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NODESET, "namespace": POOL},
        "spec": {
            "serviceName": NODESET,
            "replicas": NODES,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": pod["metadata"]["labels"]},
            "template": template,
        },
    }


def job() -> list[Row]:
    """The reference job: kubectl apply to its end, against sbatch of the same script to its end, turn by turn."""
    product = _product()
    product.scale(NODES)
    product.wait_registered(NODES, 300)
    script = _script()
    plain, ours = [], []
    for _ in range(ROUNDS):
        plain.append(_sbatch(product, script))
        ours.append(_apply(product))
    product.scale(EIGHT)
    product.wait_registered(EIGHT, 300)
    a, b = statistics.median(plain), statistics.median(ours)
    return [
        ("reference job by sbatch, to its end (median of 3)", f"{a:.2f} s ({min(plain):.2f}-{max(plain):.2f})", ""),
        ("reference job by PyTorchJob, to its end", f"{b:.2f} s ({min(ours):.2f}-{max(ours):.2f})", ""),
        ("ratio", f"{b / a:.2f}", "<= 1.3"),
        ("difference", f"{b - a:.2f} s", "<= 1 s"),
    ]


def _script() -> str:
    return write_script(read_pytorchjob(examples.training(), examples.cluster(), [examples.nodeset()]))


def _sbatch(product: Product, script: str) -> float:
    """From sbatch to slurmctld's end time, in a pod of the pool as alice; the clocks are one machine's."""
    submit = "cd /tmp; date +%s.%N; sbatch --parsable job.sh"
    command = f"cat > /tmp/job.sh; chmod 644 /tmp/job.sh; exec su -s /bin/bash alice -c {submit!r}"
    arguments = ["exec", "-i", "-n", POOL, "gpu-node-0", "-c", "slurmd", "--", "bash", "-c", command]
    begun, number = product.cluster.kubectl(*arguments, input=script).stdout.split()
    return _end(product, number) - float(begun)


def _apply(product: Product) -> float:
    """From kubectl apply to the Slurm job's end and the Succeeded condition, whichever is later."""
    product.remove("ai-training")
    text = (EXAMPLES / "pytorchjob.yaml").read_text()
    begun = time.time()
    product.cluster.apply(text)
    product.wait("Succeeded", lambda: newest(product.job("ai-training")) == "Succeeded", 120, every=0.1)
    return time.time() - begun


def _end(product: Product, number: str) -> float:
    """When the job was seen to have ended."""
    product.wait(
        "its end",
        lambda: "JobState=COMPLETED" in product.in_controller("scontrol", "-o", "show", "job", number),
        120,
        every=0.1,
    )
    return time.time()


def quiet() -> list[Row]:
    """What the operator costs while nothing happens."""
    product = _product()
    time.sleep(10)
    before = _usage(product)
    time.sleep(QUIET_SECONDS)
    after = _usage(product)
    return [
        ("operator CPU in a quiet minute", f"{after[0] - before[0]:.2f} s", ""),
        ("operator bytes in and out in a quiet minute", f"{(after[1] - before[1]) / 1024:.0f} KiB", ""),
        ("operator memory", f"{after[2] / 1024:.0f} MiB", ""),
    ]


_USAGE = """
import os, re
fields = open('/proc/1/stat').read().rsplit(')', 1)[1].split()
cpu = (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
lines = [line.split(':')[1].split() for line in open('/proc/1/net/dev') if 'eth0' in line]
memory = int(re.search(r'VmRSS:\\s+(\\d+)', open('/proc/1/status').read()).group(1))
print(cpu, sum(int(line[0]) + int(line[8]) for line in lines), memory)
"""


def _usage(product: Product) -> tuple[float, int, int]:
    """CPU seconds, bytes on the network, resident KiB of the operator's process so far."""
    done = product.cluster.kubectl("exec", "-n", SYSTEM, OPERATOR, "--", "python3", "-c", _USAGE)
    cpu, size, memory = done.stdout.split()
    return float(cpu), int(size), int(memory)


BENCHES: dict[str, Callable[[], list[Row]]] = {
    "demo": demo,
    "nodeset": nodeset,
    "job": job,
    "many": lambda: many.bench(_product(), lambda product: _usage(product)[0]),
    "quiet": quiet,
    "slurmrest": rest.bench,
}

if __name__ == "__main__":
    main()
