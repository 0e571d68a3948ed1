"""The configuration of a bare Slurm: a small one of the harness's own, and what can be read off any other.

Called by tests/cluster/slurm.py only. Nothing here is used by the product.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ClusterShell.NodeSet import NodeSet

ADDRESS = "10.77.0.1"  # of the controller's side of the bridge
JWT_KEY = "/etc/slurm/jwt_hs256.key"

_BASE = f"""\
ClusterName=bare
SlurmctldHost=controller({ADDRESS})
SlurmUser=slurm
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={JWT_KEY}
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=1
SlurmdParameters=config_overrides
SlurmdTimeout=30
MessageTimeout=10
MpiDefault=none
MailProg=/bin/true
TreeWidth=65533
SlurmctldParameters=enable_configless
SuspendTime=INFINITE
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SchedulerParameters=sched_interval=5,batch_sched_delay=0
"""

_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=controller
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment,job_env,job_extra,job_script
TrackWCKey=yes
"""


def default_files(nodes: int, gpus: int, lines: Sequence[str], *, accounting: bool = False) -> dict[str, str]:
    """slurm.conf, gres.conf and cgroup.conf of nodes n0... with 32 CPUs, 128 GB and `gpus` GPUs each, in partition main.

    With `accounting`, jobs are accounted in the slurmdbd of the same machine, and their steps measured.
    """
    shape = "CPUs=32 Boards=1 SocketsPerBoard=2 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=128000"
    gres = f" Gres=gpu:h100:{gpus}" if gpus else ""
    names = f"n[0-{nodes - 1}]" if nodes > 1 else "n0"
    base = _BASE.replace("jobacct_gather/none", "jobacct_gather/linux") + _ACCOUNTING if accounting else _BASE
    conf = [base, *(["GresTypes=gpu\n"] if gpus else []), *(f"{line}\n" for line in lines)]
    if nodes:
        conf.append(f"NodeName={names} {shape}{gres} State=CLOUD\n")
        conf.append(f"PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP\n")
    devices = (
        f"Name=gpu Type=h100 File=/dev/nvidia[0-{gpus - 1}]\n" if gpus > 1 else "Name=gpu Type=h100 File=/dev/nvidia0\n"
    )
    return {
        "slurm.conf": "".join(conf),
        "gres.conf": "AutoDetect=off\n" + (devices if gpus else ""),
        "cgroup.conf": "CgroupPlugin=disabled\n",
    }


def value(conf: str, key: str, default: str = "") -> str:
    """The value of a `Key=value` line of slurm.conf (the last one, as Slurm takes it)."""
    found = re.findall(rf"(?im)^\s*{key}\s*=\s*(\S+)", conf)
    return str(found[-1]) if found else default


def node_names(conf: str) -> list[str]:
    """The names on the NodeName lines, in order."""
    lines = re.findall(r"(?im)^\s*NodeName=(\S+)", conf)
    return [str(name) for line in lines if line.upper() != "DEFAULT" for name in NodeSet(line)]


def controller_host(conf: str) -> tuple[str, str]:
    """(host name, address or name to reach it by) of the first SlurmctldHost line."""
    match = re.match(r"([^()]+)(?:\(([^()]+)\))?$", value(conf, "SlurmctldHost", "controller"))
    if match is None:
        raise ValueError("SlurmctldHost is neither NAME nor NAME(ADDRESS)")
    return match[1], match[2] or match[1]


def jwt_key_path(conf: str) -> str:
    """Where slurmctld looks for the key of the tokens."""
    match = re.search(r"jwt_key=([^,\s]+)", conf)
    return match[1] if match else JWT_KEY


def node_address(number: int) -> str:
    """The address of the node number `number` on the bridge."""
    return f"10.77.{1 + number // 250}.{1 + number % 250}"


def hosts_file(conf: str, nodes: Sequence[str]) -> str:
    """/etc/hosts that knows the controller and every node: an unknown name would stall slurmctld for seconds."""
    name, address = controller_host(conf)
    names = " ".join(dict.fromkeys(n for n in (name, address) if not re.fullmatch(r"[0-9.]+", n)))
    lines = ["127.0.0.1 localhost", f"{ADDRESS} {names}"]
    lines += [f"{node_address(number)} {node}" for number, node in enumerate(nodes)]
    return "\n".join(lines) + "\n"


def state_folders(conf: str) -> list[str]:
    """The folders that slurmctld's user must own."""
    files = [value(conf, key) for key in ("SlurmctldPidFile", "SlurmctldLogFile")]
    parents = [path.rsplit("/", 1)[0] for path in files if path.count("/") > 1]
    return [value(conf, "StateSaveLocation", "/var/spool/slurmctld"), *parents]


def users_files(users: Mapping[str, int]) -> dict[str, str]:
    """passwd, group and shadow lines of users, as libnss-extrausers reads them."""
    return {
        "passwd": "".join(f"{name}:x:{uid}:{uid}::/tmp:/bin/bash\n" for name, uid in users.items()),
        "group": "".join(f"{name}:x:{uid}:\n" for name, uid in users.items()),
        "shadow": "".join(f"{name}:*:19000::::::\n" for name in users),
    }
