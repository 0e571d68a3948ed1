"""Every option of sbatch: its name, letter, value, place in the REST API, and the variable that stands for it.

Read by `slurmrest.sbatch`, which parses scripts, and by whoever turns options into jobs. Sources: `sbatch --help` and
sbatch(1) of Slurm 24.11 and 26.05; a test holds the table against the real command. What always holds: a name, a letter
and a variable each belong to one option.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Takes(Enum):
    """Does an option take a value? One that may (`OPTIONAL`) takes it after `=` or glued to its letter, never apart."""

    NO = "no"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    `fields`: the fields of the REST API's job description that it sets (none: it steers sbatch itself). `variable`: the
    environment variable that sbatch reads it from. `everywhere`: in a heterogeneous job it holds for the later
    components too, until they say otherwise. `since`: the Slurm release that first has it, where 24.11 does not.
    """

    name: str
    letter: str = ""
    takes: Takes = Takes.REQUIRED
    fields: tuple[str, ...] = ()
    variable: str = ""
    everywhere: bool = False
    since: str = ""


_NO, _MAY = Takes.NO, Takes.OPTIONAL

_FOR_ALL: Final = (
    Option("account", "A", fields=("account",), variable="SBATCH_ACCOUNT"),
    Option("acctg-freq", fields=("account_gather_frequency",), variable="SBATCH_ACCTG_FREQ"),
    Option("begin", "b", fields=("begin_time",)),
    Option("chdir", "D", fields=("current_working_directory",)),
    Option("cluster-constraint", fields=("cluster_constraint",), variable="SBATCH_CLUSTER_CONSTRAINT"),
    Option("clusters", "M", fields=("clusters",), variable="SBATCH_CLUSTERS"),
    Option("comment", fields=("comment",)),
    Option("deadline", fields=("deadline",)),
    Option("delay-boot", fields=("delay_boot",), variable="SBATCH_DELAY_BOOT"),
    Option("dependency", "d", fields=("dependency",)),
    Option("exclude", "x", fields=("excluded_nodes",)),
    Option("extra", fields=("extra",)),
    Option("hint", fields=("threads_per_core", "tasks_per_core"), variable="SBATCH_HINT"),
    Option("job-name", "J", fields=("name",), variable="SBATCH_JOB_NAME"),
    Option("kill-on-invalid-dep", fields=("flags",)),
    Option("mcs-label", fields=("mcs_label",)),
    Option("mem", fields=("memory_per_node",), variable="SBATCH_MEM_PER_NODE"),
    Option("nice", takes=_MAY, fields=("nice",)),
    Option("no-requeue", takes=_NO, fields=("requeue",), variable="SBATCH_NO_REQUEUE"),
    Option("prefer", fields=("prefer",)),
    Option("profile", fields=("profile",), variable="SBATCH_PROFILE"),
    Option("qos", "q", fields=("qos",), variable="SBATCH_QOS"),
    Option("reboot", takes=_NO, fields=("reboot",)),
    Option("requeue", takes=_MAY, fields=("requeue",), variable="SBATCH_REQUEUE"),
    Option("time", "t", fields=("time_limit",), variable="SBATCH_TIMELIMIT"),
    Option("time-min", fields=("time_minimum",)),
    Option("wckey", fields=("wckey",), variable="SBATCH_WCKEY"),
)
"""Those that a later component of a heterogeneous job inherits (measured on 24.11)."""

_FOR_ONE: Final = (
    Option("array", "a", fields=("array",), variable="SBATCH_ARRAY_INX"),
    Option("batch", fields=("batch_features",), variable="SBATCH_BATCH"),
    Option("bb", fields=("burst_buffer",), variable="SBATCH_BURST_BUFFER"),
    Option("bbf", fields=("burst_buffer",)),
    Option("consolidate-segments", takes=_NO, fields=("flags",), variable="SBATCH_CONSOLIDATE_SEGMENTS", since="26.05"),
    Option("constraint", "C", fields=("constraints",), variable="SBATCH_CONSTRAINT"),
    Option("container", fields=("container",), variable="SBATCH_CONTAINER"),
    Option("container-id", fields=("container_id",), variable="SBATCH_CONTAINER_ID"),
    Option("container-type", fields=("container_type",), variable="SBATCH_CONTAINER_TYPE", since="26.05"),
    Option("context", fields=("selinux_context",)),
    Option("contiguous", takes=_NO, fields=("contiguous",)),
    Option("core-spec", "S", fields=("core_specification",), variable="SBATCH_CORE_SPEC"),
    Option("cores-per-socket", fields=("cores_per_socket",)),
    Option("cpu-freq", fields=("cpu_frequency",), variable="SBATCH_CPU_FREQ_REQ"),
    Option("cpus-per-gpu", fields=("cpus_per_tres",), variable="SBATCH_CPUS_PER_GPU"),
    Option("cpus-per-task", "c", fields=("cpus_per_task",)),
    Option("distribution", "m", fields=("distribution", "distribution_plane_size"), variable="SBATCH_DISTRIBUTION"),
    Option("error", "e", fields=("standard_error",), variable="SBATCH_ERROR"),
    Option("exclusive", takes=_MAY, fields=("shared",), variable="SBATCH_EXCLUSIVE"),
    Option("export", fields=("environment",), variable="SBATCH_EXPORT"),
    Option("export-file", fields=("environment",)),
    Option("external", takes=_NO, fields=("flags",), since="26.05"),
    Option("extra-node-info", "B", fields=("sockets_per_node", "cores_per_socket", "threads_per_core")),
    Option("get-user-env", takes=_MAY, fields=("environment",), variable="SBATCH_GET_USER_ENV"),
    Option("gid", fields=("group_id",)),
    Option("gpu-bind", fields=("tres_bind",), variable="SBATCH_GPU_BIND"),
    Option("gpu-freq", fields=("tres_freq",), variable="SBATCH_GPU_FREQ"),
    Option("gpus", "G", fields=("tres_per_job",), variable="SBATCH_GPUS"),
    Option("gpus-per-node", fields=("tres_per_node",), variable="SBATCH_GPUS_PER_NODE"),
    Option("gpus-per-socket", fields=("tres_per_socket",), variable="SBATCH_GPUS_PER_SOCKET"),
    Option("gpus-per-task", fields=("tres_per_task",), variable="SBATCH_GPUS_PER_TASK"),
    Option("gres", fields=("tres_per_node",), variable="SBATCH_GRES"),
    Option("gres-flags", fields=("flags",), variable="SBATCH_GRES_FLAGS"),
    Option("hold", "H", takes=_NO, fields=("hold",)),
    Option("input", "i", fields=("standard_input",), variable="SBATCH_INPUT"),
    Option("licenses", "L", fields=("licenses",)),
    Option("mail-type", fields=("mail_type",)),
    Option("mail-user", fields=("mail_user",)),
    Option("mem-bind", fields=("memory_binding", "memory_binding_type"), variable="SBATCH_MEM_BIND"),
    Option("mem-per-cpu", fields=("memory_per_cpu",), variable="SBATCH_MEM_PER_CPU"),
    Option("mem-per-gpu", fields=("memory_per_tres",), variable="SBATCH_MEM_PER_GPU"),
    Option("mem-update", fields=("memory_update_margin", "memory_update_delay"), since="26.05"),
    Option("mincpus", fields=("minimum_cpus_per_node",)),
    Option("network", fields=("network",), variable="SBATCH_NETWORK"),
    Option("no-kill", "k", takes=_MAY, fields=("kill_on_node_fail",), variable="SBATCH_NO_KILL"),
    Option("nodefile", "F", fields=("required_nodes",)),
    Option("nodelist", "w", fields=("required_nodes",)),
    Option("nodes", "N", fields=("minimum_nodes", "maximum_nodes")),
    Option("ntasks", "n", fields=("tasks",)),
    Option("ntasks-per-core", fields=("tasks_per_core",)),
    Option("ntasks-per-gpu", fields=("ntasks_per_tres",)),
    Option("ntasks-per-node", fields=("tasks_per_node",)),
    Option("ntasks-per-socket", fields=("tasks_per_socket",)),
    Option("oom-kill-step", takes=_MAY, fields=("oom_kill_step",)),
    Option("open-mode", fields=("open_mode",), variable="SBATCH_OPEN_MODE"),
    Option("output", "o", fields=("standard_output",), variable="SBATCH_OUTPUT"),
    Option("overcommit", "O", takes=_NO, fields=("overcommit",), variable="SBATCH_OVERCOMMIT"),
    Option("oversubscribe", "s", takes=_NO, fields=("shared",)),
    Option("partition", "p", fields=("partition",), variable="SBATCH_PARTITION"),
    Option("priority", fields=("priority",)),
    Option("propagate", takes=_MAY, fields=("rlimits",)),
    Option("reservation", fields=("reservation",), variable="SBATCH_RESERVATION"),
    Option("resources", since="26.05"),
    Option("resv-ports", takes=_MAY, fields=("reserve_ports",)),
    Option("segment", fields=("segment_size",), variable="SBATCH_SEGMENT_SIZE"),
    Option("signal", fields=("kill_warning_signal",), variable="SBATCH_SIGNAL"),
    Option("sockets-per-node", fields=("sockets_per_node",)),
    Option("spread-job", takes=_NO, fields=("flags",), variable="SBATCH_SPREAD_JOB"),
    Option("spread-segments", takes=_NO, fields=("flags",), variable="SBATCH_SPREAD_SEGMENTS", since="26.05"),
    Option("stepmgr", takes=_NO, fields=("flags",)),
    Option("switches", fields=("required_switches", "wait_for_switch"), variable="SBATCH_REQ_SWITCH"),
    Option("thread-spec", fields=("thread_specification",), variable="SBATCH_THREAD_SPEC"),
    Option("threads-per-core", fields=("threads_per_core",), variable="SBATCH_THREADS_PER_CORE"),
    Option("tmp", fields=("temporary_disk_per_node",)),
    Option("tres-bind", fields=("tres_bind",), variable="SBATCH_TRES_BIND"),
    Option("tres-per-task", fields=("tres_per_task",), variable="SBATCH_TRES_PER_TASK"),
    Option("uid", fields=("user_id",)),
    Option("use-min-nodes", takes=_NO, fields=("flags",), variable="SBATCH_USE_MIN_NODES"),
    Option("wait-all-nodes", fields=("wait_all_nodes",), variable="SBATCH_WAIT_ALL_NODES"),
)

_OF_SBATCH: Final = (
    Option("autocomplete"),
    Option("help", "h", takes=_NO),
    Option("ignore-pbs", takes=_NO, variable="SBATCH_IGNORE_PBS"),
    Option("parsable", takes=_NO),
    Option("quiet", "Q", takes=_NO),
    Option("test-only", takes=_NO),
    Option("usage", takes=_NO),
    Option("verbose", "v", takes=_NO, variable="SBATCH_DEBUG"),
    Option("version", "V", takes=_NO),
    Option("wait", "W", takes=_NO, variable="SBATCH_WAIT"),
    Option("wrap"),
)
"""They steer the command; a job knows nothing of them."""

OPTIONS: Final[dict[str, Option]] = {
    option.name: option
    for option in (
        *(Option(o.name, o.letter, o.takes, o.fields, o.variable, True, o.since) for o in _FOR_ALL),
        *_FOR_ONE,
        *_OF_SBATCH,
    )
}
"""By name."""

ALIASES: Final = {"tasks-per-node": "ntasks-per-node", "cluster": "clusters", "ntasks-per-tres": "ntasks-per-gpu"}
"""Further names, and the option that each stands for."""

LETTERS: Final[dict[str, Option]] = {option.letter: option for option in OPTIONS.values() if option.letter}
VARIABLES: Final[dict[str, Option]] = {option.variable: option for option in OPTIONS.values() if option.variable}
WAIT_VARIABLE: Final = "SBATCH_WAIT4SWITCH"
"""The second half of `--switches=count@time`; the one variable without an option of its own."""

OPPOSITES: Final = {"no-requeue": "requeue", "oversubscribe": "exclusive"}
"""Two names for one setting: of such a pair, too, the last one wins."""

CONTRADICTORY: Final = (("exclusive", "oversubscribe"), ("mem", "mem-per-cpu", "mem-per-gpu"))
"""Names that a script and a command line may not hold more than one of."""
