"""`make bench ARGS=many`: a thousand PyTorchJobs of one node at once, against a loop of `sbatch` of the same script.

Called by `python -m tests.bench` on the test cluster. The partition is DOWN while they come, so that submitting is all that
is timed; then a hundred run to their end, and what the operator wrote is counted at the API server.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import yaml

from kubeslurm.readers.pytorch import read_pytorchjob
from kubeslurm.scripts import write_script
from tests.demo.steps import SYSTEM
from tests.e2e.product import POOL, TENANT, Product, newest, training_job
from tests.unit import examples

Row = tuple[str, str, str]
Raw = dict[str, Any]

MANY: Final = 1000
LIVES: Final = 100
AT_ONCE: Final = 4
PARTITION: Final = "gpu_partition"
LABEL: Final = "bench=many"
_WRITES: Final = re.compile(
    r'^apiserver_request_total\{.*resource="(pytorchjobs|pods|events)".*verb="(POST|PUT|PATCH|APPLY|DELETE)".*\} (\S+)$',
    re.MULTILINE,
)


def bench(product: Product, cpu: Callable[[Product], float]) -> list[Row]:
    """All of it; `cpu` tells the operator's CPU seconds so far."""
    with _down(product):
        loop = _sbatch(product)
        took, used, submitting = _submit(product, cpu)
        _clear(product)
    living = _live(product)
    replayed = _replay(product)
    _clear(product)
    return [
        (f"{MANY} x sbatch, one after the other", f"{loop:.1f} s", ""),
        (f"{MANY} PyTorchJobs, first create to last Slurm job", f"{took:.1f} s", ""),
        ("ratio", f"{loop / took:.2f}", ">= 2"),
        ("operator CPU per job until it is submitted", f"{1000 * used / MANY:.1f} ms", ""),
        ("API writes per job until it is submitted", f"{submitting:.1f}", ""),
        (f"API writes per job from submission to its end ({LIVES} jobs)", f"{living:.1f}", "<= 8"),
        ("API writes on jobs and pods when the operator starts anew", f"{replayed}", "0"),
    ]


def _job(index: int, command: list[str]) -> Raw:
    raw = training_job(f"many-{index}", command=command, gpus=1)
    raw["metadata"]["labels"] = dict([LABEL.split("=")])
    container = raw["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": 1, "cpu": "1", "memory": "64Mi"}}
    return raw


@contextmanager
def _down(product: Product) -> Iterator[None]:
    """No job starts."""
    product.in_controller("scontrol", "update", f"partitionname={PARTITION}", "state=down")
    try:
        yield
    finally:
        product.in_controller("scontrol", "update", f"partitionname={PARTITION}", "state=up")


def _sbatch(product: Product) -> float:
    """In a pod of the pool, as alice, who then takes them back."""
    raw = _job(0, ["true"]) | {}
    raw["metadata"]["uid"] = "bench"
    script = write_script(read_pytorchjob(examples.training(lambda one: one.update(raw)), examples.cluster()))
    loop = f"cd /tmp; date +%s.%N; for i in $(seq {MANY}); do sbatch job.sh >/dev/null || exit 1; done; date +%s.%N"
    command = f"cat > /tmp/job.sh; chmod 644 /tmp/job.sh; exec su -s /bin/bash alice -c '{loop}; scancel -u alice'"
    arguments = ["exec", "-i", "-n", POOL, "gpu-node-0", "-c", "slurmd", "--", "bash", "-c", command]
    begun, ended = product.cluster.kubectl(*arguments, input=script, timeout=600).stdout.split()
    return float(ended) - float(begun)


def _submit(product: Product, cpu: Callable[[Product], float]) -> tuple[float, float, float]:
    """Seconds until Slurm has them all, the operator's CPU seconds and the API writes per job for that."""
    used, writes = cpu(product), _written(product)
    begun = time.monotonic()
    _create(product, [_job(index, ["true"]) for index in range(MANY)])
    product.wait("all are in Slurm", lambda: _pending(product) >= MANY, 600, every=0.5)
    took = time.monotonic() - begun
    used = cpu(product) - used
    return took, used, (_written(product) - writes - MANY) / MANY


def _pending(product: Product) -> int:
    return int(product.in_controller("sh", "-c", "squeue -h -t PD -u alice -o %i | wc -l"))


def _create(product: Product, jobs: list[Raw]) -> None:
    """A few kubectl side by side: one alone is slower than the operator."""
    parts = [yaml.safe_dump_all(jobs[start::AT_ONCE]) for start in range(AT_ONCE)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda text: product.cluster.kubectl("create", "-f", "-", input=text, timeout=300), parts))


def _live(product: Product) -> float:
    """API writes per job in all its life, the user's own create aside."""
    before = _written(product)
    _create(product, [_job(index, ["sleep", "2"]) for index in range(LIVES)])
    product.wait("all have ended well", lambda: _succeeded(product) == LIVES, 300, every=2)
    time.sleep(5)
    return (_written(product) - before - LIVES) / LIVES


def _succeeded(product: Product) -> int:
    found = product.cluster.kubectl_json("get", "-n", TENANT, "pytorchjobs", "-l", LABEL)["items"]
    return sum(newest(raw) == "Succeeded" for raw in found)


def _replay(product: Product) -> int:
    """What a new operator writes on what stands as it should: jobs and their mirror pods, by their versions."""

    def versions() -> dict[str, str]:
        kinds = [("pytorchjobs", LABEL), ("pods", "slurm.bridge/virtual-node=true")]
        found = [product.cluster.kubectl_json("get", "-n", TENANT, kind, "-l", label)["items"] for kind, label in kinds]
        return {raw["metadata"]["uid"]: raw["metadata"]["resourceVersion"] for items in found for raw in items}

    before = versions()
    product.kill_operator()
    arguments = ("-n", SYSTEM, "deployment/kubeslurm", "--timeout=60s")
    product.cluster.kubectl("rollout", "status", *arguments, timeout=70)
    time.sleep(10)
    after = versions()
    return sum(before.get(uid) != version for uid, version in after.items())


def _written(product: Product) -> int:
    """POST, PUT, PATCH and DELETE of jobs, pods and events that the API server has answered."""
    text = product.cluster.kubectl("get", "--raw", "/metrics").stdout
    return int(sum(float(found.group(3)) for found in _WRITES.finditer(text)))


def _clear(product: Product) -> None:
    product.cluster.kubectl("delete", "-n", TENANT, "pytorchjobs", "-l", LABEL, "--timeout=300s", timeout=310)
