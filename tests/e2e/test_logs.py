"""`kubectl logs` of mirror pods on the test cluster: whole and in part, while the job runs and after, and who may not."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.demo.steps import SYSTEM
from tests.e2e.product import POOL, TENANT, Product, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("tidy")]

PORT = 10250


def logs(product: Product, pod: str, *options: str, check: bool = True) -> str:
    """What kubectl logs shows of a pod of the tenant's; with an error, that."""
    done = product.cluster.kubectl("logs", "-n", TENANT, pod, *options, check=check, timeout=60)
    return done.stdout if check else done.stdout + done.stderr


def run(product: Product, name: str, script: str, *, workers: int = 0, gpus: int = 8) -> None:
    """Submit a shell script as a job."""
    product.submit(training_job(name, workers=workers, command=("sh", "-c", script), gpus=gpus))


@contextmanager
def following(product: Product, pod: str) -> Iterator[subprocess.Popen[str]]:
    """kubectl logs -f."""
    command = product.cluster.kubectl_command(["logs", "-f", "-n", TENANT, pod])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def readers(product: Product) -> list[str]:
    """Programs that read logs in any pod of the pool."""
    nodes = [name for name, _ in product.node_states().items()]
    return [line for node in nodes for line in product.on_node(node, "pgrep -f '[m]apfile -t said' || true").split()]


def _wait_for(product: Product, pod: str, words: str) -> None:
    """Until kubectl logs says so."""
    product.wait(words, lambda: words in logs(product, pod, check=False), 60)


def test_the_whole_log_its_last_lines_and_its_times(product: Product) -> None:
    """Each replica's own; --tail, --limit-bytes, --timestamps and --since; still there when the operator was made anew."""
    run(product, "whole", 'for n in 1 2 3; do echo "$RANK line $n"; done; echo last >&2', workers=1)
    product.wait_condition("whole", "Succeeded")
    assert logs(product, "whole-master-0") == "0 line 1\n0 line 2\n0 line 3\nlast\n"
    assert logs(product, "whole-worker-0") == "1 line 1\n1 line 2\n1 line 3\nlast\n"
    assert logs(product, "whole-master-0", "--tail=2") == "0 line 3\nlast\n"
    assert logs(product, "whole-worker-0", "--limit-bytes=8") == "1 line 1"
    assert logs(product, "whole-worker-0", "--since=1h").count("\n") == 4
    assert logs(product, "whole-worker-0", "--since-time=2999-01-01T00:00:00Z") == ""
    stamps = [line.split()[0] for line in logs(product, "whole-worker-0", "--timestamps").splitlines()]
    assert (len(stamps), stamps[0][:2], stamps[0][-1]) == (4, "20", "Z")
    product.kill_operator()
    product.cluster.kubectl("-n", SYSTEM, "rollout", "status", "deployment/kubeslurm", "--timeout=90s", timeout=100)
    there = product.wait("logs again", lambda: _whole(product, "whole-worker-0"), 30)
    assert there == "1 line 1\n1 line 2\n1 line 3\nlast\n"
    product.remove("whole")


def _whole(product: Product, pod: str) -> str:
    said = logs(product, pod, check=False)
    return said if "line" in said else ""


def test_a_line_shows_while_the_job_runs(product: Product) -> None:
    """Within a second or so of its writing; the follower ends with the job, and its reader on the node with it."""
    script = "sleep 6; n=0; while [ $n -lt 8 ]; do n=$((n+1)); date +%s.%N; sleep 1; done; echo end"
    run(product, "live", script, workers=1)
    product.wait_condition("live", "Running")
    product.wait("its pod runs", lambda: "waiting" not in logs(product, "live-worker-0", check=False), 20)
    with following(product, "live-worker-0") as process:
        assert process.stdout is not None
        seen = [(line, time.time()) for line in process.stdout]
        code = process.wait(30)
    delays = [at - float(line) for line, at in seen if line != "end\n"]
    print(f"a line shows after {max(delays[1:]):.2f} s at most, {sum(delays) / len(delays):.2f} s in the mean")
    assert (code, seen[-1][0], len(delays)) == (0, "end\n", 8)
    assert max(delays[1:]) < 5
    product.wait("no reader is left", lambda: not readers(product), 30)
    product.remove("live")


def test_a_follower_that_goes_leaves_nothing(product: Product) -> None:
    """Killed while the job writes nothing."""
    run(product, "quiet", "echo begun; sleep 120")
    product.wait_condition("quiet", "Running")
    _wait_for(product, "quiet-master-0", "begun")
    with following(product, "quiet-master-0") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        assert readers(product)
    product.wait("no reader is left", lambda: not readers(product), 30)
    product.remove("quiet")


def test_ranks_of_one_replica_are_told_apart(product: Product) -> None:
    """One task for each GPU: prefixed, in their order; --tail counts all of them."""
    raw = training_job("ranks", command=("sh", "-c", "echo rank $RANK"), gpus=4)
    raw["metadata"]["annotations"] = {"slurm.bridge/launcher": "rank"}
    product.submit(raw)
    product.wait_condition("ranks", "Succeeded")
    assert logs(product, "ranks-master-0") == "".join(f"[{n}] rank {n}\n" for n in range(4))
    assert logs(product, "ranks-master-0", "--tail=3") == "".join(f"[{n}] rank {n}\n" for n in range(3))
    product.remove("ranks")


def test_the_first_replica_tells_why_the_job_failed(product: Product) -> None:
    """The batch script's messages follow the program's own."""
    run(product, "why", "echo trying; exit 3")
    product.wait_condition("why", "Failed")
    said = logs(product, "why-master-0").splitlines()
    assert said[0] == "trying"
    assert any(line.startswith("[batch] srun: error:") and "exit code 3" in line for line in said[1:])
    assert "previous terminated container" in logs(product, "why-master-0", "--previous", check=False)
    product.remove("why")


def test_the_attempt_before_has_its_logs(product: Product) -> None:
    """--previous, after a restart by the restartPolicy."""
    script = "echo $SLURM_JOB_ID; [ -e /tmp/again ] && sleep 60; touch /tmp/again; exit 1"
    raw = training_job("again", command=("sh", "-c", script.replace("$SLURM_JOB_ID", "before")), policy="OnFailure")
    product.submit(raw)
    product.wait("a second attempt", lambda: _attempt(product, "again") == "2", 60)
    _wait_for(product, "again-master-0", "before")
    assert logs(product, "again-master-0", "--previous").startswith("before\n")
    for node in product.node_states():
        product.on_node(node, "rm -f /tmp/again")
    product.remove("again")


def _attempt(product: Product, name: str) -> str:
    return str((product.job(name)["metadata"].get("annotations") or {}).get("slurm.bridge/attempt"))


def test_old_output_is_removed(product: Product) -> None:
    """A week after its job's end, when another job ends on the node; not that of a job which still runs."""
    made = (
        "cd /var/log/jobs; mkdir -p 900001 900002 900003 /run/kubeslurm/900002; touch -d '8 days ago' 900001 900002;"
        "touch -d '6 days ago' 900003"
    )
    for node in product.node_states():
        product.on_node(node, made)
    run(product, "broom", "true")
    node = product.slurm_job(product.wait_condition("broom", "Succeeded"))["NodeList"]
    left = "cd /var/log/jobs; ls -d 90000[1-3]"
    product.wait("the Epilog", lambda: product.on_node(node, left).split() == ["900002", "900003"], 20)
    for node in product.node_states():
        product.on_node(node, "rm -rf /run/kubeslurm/900002 /var/log/jobs/90000[1-3]")
    product.remove("broom")


def test_a_link_to_a_file_of_roots_shows_nothing(product: Product) -> None:
    """The reader is the job's user, though it comes by root's exec."""
    script = "ln -sf /etc/slurm/slurm.key /var/log/jobs/$SLURM_JOB_ID/0.out; sleep 3"
    raw = training_job("thief", command=("bash", "-c", script), gpus=1)
    raw["metadata"]["annotations"] = {"slurm.bridge/launcher": "rank"}
    product.submit(raw)
    raw = product.wait_condition("thief", "Succeeded")
    node, job_id = product.slurm_job(raw)["NodeList"], product.slurm_job(raw)["JobId"]
    assert "slurm.key" in product.on_node(node, f"readlink /var/log/jobs/{job_id}/0.out")
    assert logs(product, "thief-master-0") == ""
    product.remove("thief")


def test_a_forged_pod_shows_no_other_jobs_log(product: Product) -> None:
    """A pod of one job with the place of another's output in all that a namespace can write: not believed."""
    run(product, "mine", "echo output of mine; sleep 60")
    run(product, "yours", "echo output of yours; sleep 60")
    for name in ("mine", "yours"):
        product.wait_condition(name, "Running")
        _wait_for(product, f"{name}-master-0", f"output of {name}")
    theirs, pod = (product.get("pod", f"{name}-master-0") or {} for name in ("yours", "mine"))
    annotations = {"slurm.bridge/job-id": theirs["metadata"]["labels"]["slurm.bridge/job-id"]}
    labels = pod["metadata"]["labels"] | annotations
    meta = {"name": "forged", "namespace": TENANT, "labels": labels, "annotations": annotations}
    meta["ownerReferences"] = pod["metadata"]["ownerReferences"]
    spec = {name: pod["spec"][name] for name in ("nodeName", "containers", "tolerations")}
    product.cluster.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}])
    _wait_for(product, "forged", "waiting to start")
    patch = json.dumps({"status": {"containerStatuses": theirs["status"]["containerStatuses"]}})
    command = ("patch", "-n", TENANT, "pod", "forged", "--subresource=status", "--type=merge", "-p", patch)
    product.cluster.kubectl(*command)
    _wait_for(product, "forged", "not written by kubeslurm")
    product.cluster.kubectl("delete", "-n", TENANT, "pod", "forged", "--grace-period=0", "--force")
    product.remove("mine")
    product.remove("yours")


def test_strangers_are_turned_away(product: Product) -> None:
    """No certificate, a token of nobody, a token without the right: 401, 401, 403. Nothing but logs is served."""
    address = _address(product)
    assert _status(product, address, "") == "401"
    assert _status(product, address, "nonsense") == "401"
    token = product.cluster.kubectl("create", "token", "-n", TENANT, "default").stdout.strip()
    assert _status(product, address, token) == "403"
    run(product, "closed", "sleep 60")
    product.wait_condition("closed", "Running")
    done = product.cluster.kubectl("exec", "-n", TENANT, "closed-master-0", "--", "id", check=False)
    assert "not supported on a virtual node" in done.stdout + done.stderr
    product.remove("closed")


def _address(product: Product) -> str:
    nodes = product.cluster.kubectl_json("get", "nodes", "-l", "slurm.bridge/virtual-node")["items"]
    (found,) = [node["status"] for node in nodes]
    assert found["daemonEndpoints"]["kubeletEndpoint"]["Port"] == PORT
    (address,) = found["addresses"]
    assert address["type"] == "InternalIP"
    return str(address["address"])


_ASK = """
import ssl, sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[2]} if sys.argv[2] else {})
try:
    print(urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def _status(product: Product, address: str, token: str) -> str:
    """The HTTP status that a pod of the pool gets."""
    url = f"https://{address}:{PORT}/containerLogs/{TENANT}/x-master-0/pytorch"
    command = ("exec", "-n", POOL, "gpu-node-0", "-c", "slurmd", "--", "python3", "-c", _ASK, url, token)
    return product.cluster.kubectl(*command).stdout.strip()
