"""A plan's task texts, run in bash as srun would start them: what the program is given. Shared by the tests of jobs."""

from __future__ import annotations

import json
import re
import subprocess

from kubeslurm.plans import JobPlan
from kubeslurm.scripts import write_script

SHOW = ["python3", "-c", "import json,os,sys; print(json.dumps({'argv': sys.argv[1:], 'env': dict(os.environ)}))"]
"""A program that tells what it was given."""

_TASK = re.compile(
    r"^IFS= read -r -d '' task[0-9]* <<'(TASK_[0-9a-f]+)' \|\| true\n(.*?)^\1$", re.MULTILINE | re.DOTALL
)


def texts(plan: JobPlan) -> list[str]:
    """The text of each component's tasks."""
    return [match.group(2) for match in _TASK.finditer(write_script(plan))]


def run(plan: JobPlan, rank: int = 0, component: int = 0, **environment: str) -> tuple[list[str], dict[str, str]]:
    """The argv and the environment that the program of this rank gets. `environment`: what Slurm tells further."""
    base = {
        "PATH": "/usr/bin:/bin",
        "SLURM_PROCID": str(rank),
        "SLURM_NTASKS": str(plan.tasks),
        "SLURM_LOCALID": str(rank % plan.shapes[component].tasks_per_node),
        "SLURM_NODEID": str(plan.node_of(rank // plan.shapes[component].tasks_per_replica)),
        "SLURM_JOB_NUM_NODES": str(plan.nodes),
        "SLURMD_NODENAME": "gpu-node-0",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "20001",
    }
    text = re.sub(r"\Aexec > .*\n", "", texts(plan)[component])
    done = subprocess.run(["bash", "-c", text], env=base | environment, capture_output=True, check=True, timeout=20)
    found = json.loads(done.stdout)
    return found["argv"], found["env"]
