"""What may stand in slurm.conf: names, keys and values that users give, checked before anything is rendered.

Used by the models (as field validators) and, once more, by the templates' filters. What always holds: no checked text can
end its line, open a comment, or start another key. Source: slurm.conf(5) of Slurm 24.11 to 26.05.
"""

from __future__ import annotations

import re
from typing import Final

NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$"
_NAME = re.compile(NAME[:-1] + r"\Z")
_VALUE = re.compile(r"[ -~]{1,1024}\Z")


def _words(text: str) -> list[str]:
    return text.split()


_FORBIDDEN: Final = frozenset(";#\\\"'`$ ")

OWNED: Final = frozenset(
    _words(
        """
    ClusterName SlurmctldHost SlurmctldPort SlurmdPort SlurmUser SlurmdUser AuthType AuthInfo AuthAltTypes
    AuthAltParameters CredType StateSaveLocation SlurmdSpoolDir SlurmctldPidFile SlurmdPidFile SlurmctldLogFile
    SlurmdLogFile GresTypes NodeName NodeSet PartitionName DownNodes Include ReturnToService ResumeProgram
    SuspendProgram SuspendTime Prolog PrologFlags ProctrackType TaskPlugin JobAcctGatherType SelectType TreeWidth
    PluginDir PlugStackConfig Epilog PrologSlurmctld EpilogSlurmctld TaskProlog TaskEpilog SrunProlog SrunEpilog
    HealthCheckProgram RebootProgram MailProg UnkillableStepProgram JobSubmitPlugins CliFilterPlugins
    AccountingStorageEnforce AccountingStorageType AccountingStorageHost AccountingStoragePass
    AccountingStoragePort AccountingStorageUser
    JobCompType JobCompHost JobCompLoc JobCompPass JobContainerType CommunicationParameters X11Parameters
    ResumeFailProgram SlurmctldPrimaryOnProg SlurmctldPrimaryOffProg SlurmdTimeout
        """
    )
)
"""Keys that this operator writes itself, or that name programs to run: never taken from a spec."""

ALLOWED: Final = frozenset(
    _words(
        """
    AccountingStorageTRES AccountingStoreFlags BatchStartTimeout BcastExclude
    BcastParameters BurstBufferType CompleteWait CpuFreqDef CpuFreqGovernors DebugFlags DefCpuPerGPU DefMemPerCPU
    DefMemPerGPU DefMemPerNode DependencyParameters DisableRootJobs EioTimeout EnforcePartLimits EpilogMsgTime
    FairShareDampeningFactor FirstJobId GetEnvTimeout GroupUpdateForce GroupUpdateTime HashPlugin
    HealthCheckInterval HealthCheckNodeState InactiveLimit InteractiveStepOptions JobAcctGatherFrequency
    JobAcctGatherParams JobDefaults JobFileAppend JobRequeue KeepAliveTime KillOnBadExit KillWait LaunchParameters
    Licenses LogTimeFormat MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode
    MaxNodeCount MaxStepCount MaxTasksPerNode MessageTimeout MinJobAge MpiDefault MpiParams OverTimeLimit
    PreemptExemptTime PreemptMode PreemptParameters PreemptType PriorityCalcPeriod PriorityDecayHalfLife
    PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityParameters PrioritySiteFactorParameters PriorityType
    PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize
    PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData PropagatePrioProcess
    PropagateResourceLimits PropagateResourceLimitsExcept RequeueExit RequeueExitHold ResumeRate ResumeTimeout
    ResvOverRun SchedulerParameters SchedulerTimeSlice SchedulerType SelectTypeParameters
    SlurmctldDebug SlurmctldParameters SlurmctldTimeout SlurmdDebug SlurmdParameters SrunPortRange
    SuspendRate SuspendTimeout SwitchParameters TaskPluginParam TCPTimeout TopologyParam
    TopologyPlugin TrackWCKey UnkillableStepTimeout VSizeFactor WaitTime
        """
    )
)
"""Keys that a spec may set."""

ONE_OR_ZERO: Final = frozenset(
    {"GroupUpdateForce", "JobFileAppend", "JobRequeue", "KillOnBadExit", "PropagatePrioProcess"}
)
"""Keys that are on by 1 and off by 0; slurmctld does not start on the YES and NO that others take."""

_BY_LOWER: Final = {key.lower(): key for key in ALLOWED | OWNED}


def check_name(text: str) -> str:
    """A partition's, feature's or GPU type's name; ValueError when it could be read as anything else."""
    if not _NAME.match(text):
        raise ValueError(
            f"{text[:64]!r}: only letters, digits, '_', '.' and '-', at most 63, beginning with no '-' or '.'"
        )
    return text


def check_partition(name: str) -> str:
    """A partition's name; in slurm.conf, DEFAULT is no partition but what all later lines start from."""
    if name.upper() == "DEFAULT":
        raise ValueError(f"{name!r} is reserved")
    return check_name(name)


def check_key(key: str) -> str:
    """A slurm.conf key in slurm.conf's own spelling; ValueError for those that we own and for unknown ones."""
    known = _BY_LOWER.get(key.lower())
    if known in OWNED:
        raise ValueError(f"{known} is written by the operator and can't be set")
    if known is None:
        raise ValueError(f"{key[:64]!r} is no slurm.conf key that can be set here")
    return known


def boolean(key: str, value: bool) -> str:
    """True or false in the words that the key takes."""
    if key in ONE_OR_ZERO:
        return "1" if value else "0"
    return "YES" if value else "NO"


def check_value(text: str) -> str:
    """One value, or one element of a list."""
    if not _VALUE.match(text):
        raise ValueError(f"{text[:64]!r}: a value is printable ASCII on one line, 1 to 1024 characters")
    bad = sorted(set(text) & _FORBIDDEN)
    if bad:
        raise ValueError(f"{text[:64]!r}: a value can't hold {' '.join(repr(one) for one in bad)}")
    return text
