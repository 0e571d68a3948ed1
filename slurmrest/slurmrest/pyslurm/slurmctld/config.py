"""slurmctld's configuration, as `scontrol show config` shows it. Needs API v0.0.45 (Slurm 26.05).

Used by scripts as `pyslurm.slurmctld.Config.load()`. Units: memory in MiB, times in seconds, moments in seconds since
1970. Names are slurm.conf's in other words: slurm.conf(5) tells what each means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

from slurmrest.pyslurm import _forms as forms
from slurmrest.pyslurm._fields import Field, Record, field, missing
from slurmrest.pyslurm._session import api_version, impossible, request
from slurmrest.pyslurm.error import PyslurmError

T = TypeVar("T")


def _conf(key: str, read: Callable[[Any], T]) -> Field[T]:
    return field(f"slurm_conf.{key}", read=read)


def _flag(name: str) -> Field[bool]:
    """Whether a word is among `ConfFlags`."""
    return field("slurm_conf.ConfFlags", read=lambda raw: name in forms.texts(raw))


def _is_above_zero(raw: Any) -> bool:
    return forms.count(raw) > 0


def _port_range(raw: Any) -> str | None:
    return f"{raw['minimum']}-{raw['maximum']}" if raw and raw.get("set") else None


def _job_defaults(raw: Any) -> dict[str, int]:
    return {forms.words(one["type"]) or "": int(one["value"]) for one in raw or []}


class _Untold(Record):
    """A file's content that no call of the REST API tells: making one raises PyslurmError."""

    __slots__ = ()
    _FILE = ""

    def __init__(self) -> None:
        raise impossible(f"{type(self).__name__} ({self._FILE})", "scontrol show config prints it")


class MPIConfig(_Untold):
    """Of mpi.conf."""

    __slots__ = ()
    _FILE = "mpi.conf"


class CgroupConfig(_Untold):
    """Of cgroup.conf."""

    __slots__ = ()
    _FILE = "cgroup.conf"


class AccountingGatherConfig(_Untold):
    """Of acct_gather.conf."""

    __slots__ = ()
    _FILE = "acct_gather.conf"


class Config(Record):
    """The whole configuration, by slurmctld's account."""

    __slots__ = ()

    cgroup_config = missing(CgroupConfig._of, "the answer has slurm.conf only")
    accounting_gather_config = missing(AccountingGatherConfig._of, "the answer has slurm.conf only")
    mpi_config = missing(MPIConfig._of, "the answer has slurm.conf only")
    accounting_storage_enforce = _conf("AccountingStorageEnforce", forms.texts)
    accounting_storage_backup_host = _conf("AccountingStorageBackupHost", forms.text)
    accounting_storage_external_hosts = _conf("AccountingStorageExternalHost", forms.text)
    accounting_storage_host = _conf("AccountingStorageHost", forms.text)
    accounting_storage_parameters = _conf("AccountingStorageParameters", forms.texts)
    accounting_storage_port = _conf("AccountingStoragePort", forms.count)
    accounting_storage_tres = _conf("AccountingStorageTRES", forms.texts)
    accounting_storage_type = _conf("AccountingStorageType", forms.text)
    accounting_store_flags = _conf("AccountingStoreFlags", forms.texts)
    accounting_gather_node_frequency = _conf("AcctGatherNodeFreq", forms.count)
    accounting_gather_energy_type = _conf("AcctGatherEnergyType", forms.texts)
    accounting_gather_interconnect_type = _conf("AcctGatherInterconnectType", forms.text)
    accounting_gather_filesystem_type = _conf("AcctGatherFilesystemType", forms.text)
    accounting_gather_profile_type = _conf("AcctGatherProfileType", forms.text)
    allow_spec_resource_usage = _flag("AllowSpecResourcesUsage")
    auth_alt_types = _conf("AuthAltTypes", forms.texts)
    auth_info = _conf("AuthInfo", forms.text)
    auth_alt_parameters = _conf("AuthAltParameters", forms.text)
    auth_type = _conf("AuthType", forms.text)
    batch_start_timeout = _conf("BatchStartTimeout", forms.count)
    bcast_exclude_paths = _conf("BcastExclude", forms.texts)
    bcast_parameters = _conf("BcastParameters", forms.texts)
    burst_buffer_type = _conf("BurstBufferType", forms.text)
    slurmctld_boot_time = field("slurm_conf_meta.BOOT_TIME", read=forms.moment)
    certmgr_parameters = _conf("CertmgrParameters", forms.text)
    certmgr_type = _conf("CertmgrType", forms.text)
    cli_filter_plugins = _conf("CliFilterPlugins", forms.texts)
    cluster_name = _conf("ClusterName", forms.text)
    communication_parameters = _conf("CommunicationParameters", forms.texts)
    complete_wait_time = _conf("CompleteWait", forms.count)
    default_cpu_frequency_governor = _conf("CpuFreqDef", forms.text)
    cpu_frequency_governors = _conf("CpuFreqGovernors", forms.texts)
    credential_type = _conf("CredType", forms.text)
    data_parser_parameters = _conf("DataParserParameters", forms.text)
    debug_flags = _conf("DebugFlags", forms.texts)
    default_memory_per_cpu = _conf("DefMemPerCPU", forms.memory_limit)
    default_memory_per_node = missing(forms.memory_limit, "the answer has the limits per CPU only")
    dependency_parameters = _conf("DependencyParameters", forms.texts)
    disable_root_jobs = _flag("DisableRootJobs")
    eio_timeout = _conf("EioTimeout", forms.count)
    enforce_partition_limits = _conf("EnforcePartLimits", forms.texts)
    epilog = _conf("Epilog", forms.texts)
    epilog_timeout = _conf("EpilogTimeout", forms.limit)
    epilog_msg_time = _conf("EpilogMsgTime", forms.count)
    epilog_slurmctld = _conf("EpilogSlurmctld", forms.texts)
    fair_share_dampening_factor = _conf("FairShareDampeningFactor", forms.count)
    federation_parameters = _conf("FederationParameters", forms.texts)
    first_job_id = _conf("FirstJobId", forms.count)
    gres_types = _conf("GresTypes", forms.texts)
    group_update_force = _conf("GroupUpdateForce", forms.truth)
    group_update_time = _conf("GroupUpdateTime", forms.count)
    default_gpu_frequency = _conf("GpuFreqDef", forms.text)
    hash_plugin = _conf("HashPlugin", forms.text)
    hash_value = field("slurm_conf_meta.HashValue", read=forms.count)
    health_check_interval = _conf("HealthCheckInterval", forms.count)
    health_check_node_state = _conf("HealthCheckNodeState", forms.texts)
    health_check_program = _conf("HealthCheckProgram", forms.text)
    inactive_limit = _conf("InactiveLimit", forms.count)
    interactive_step_options = _conf("InteractiveStepOptions", forms.text)
    job_accounting_gather_type = _conf("JobAcctGatherType", forms.text)
    job_accounting_gather_frequency = _conf("JobAcctGatherFrequency", forms.texts)
    job_accounting_gather_parameters = _conf("JobAcctGatherParams", forms.texts)
    job_completion_host = _conf("JobCompHost", forms.text)
    job_completion_location = _conf("JobCompLoc", forms.text)
    job_completion_parameters = _conf("JobCompParams", forms.text)
    job_completion_port = _conf("JobCompPort", forms.count)
    job_completion_type = _conf("JobCompType", forms.text)
    job_completion_user = _conf("JobCompUser", forms.text)
    namespace_plugin = _conf("NamespaceType", forms.text)
    job_defaults = _conf("JobDefaults", _job_defaults)
    job_file_append = _conf("JobFileAppend", forms.truth)
    job_requeue = _conf("JobRequeue", forms.truth)
    job_submit_plugins = _conf("JobSubmitPlugins", forms.texts)
    kill_on_bad_exit = _conf("KillOnBadExit", forms.truth)
    kill_wait_time = _conf("KillWait", forms.count)
    launch_parameters = _conf("LaunchParameters", forms.texts)
    licenses = _conf("Licenses", forms.texts)
    log_time_format = _conf("LogTimeFormat", forms.text)
    mail_domain = _conf("MailDomain", forms.text)
    mail_program = _conf("MailProg", forms.text)
    max_array_size = _conf("MaxArraySize", forms.count)
    max_batch_requeue = _conf("MaxBatchRequeue", forms.count)
    max_dbd_msgs = _conf("MaxDBDMsgs", forms.count)
    max_job_count = _conf("MaxJobCount", forms.count)
    max_job_id = _conf("MaxJobId", forms.count)
    max_memory_per_cpu = _conf("MaxMemPerCPU", forms.memory_limit)
    max_memory_per_node = missing(forms.memory_limit, "the answer has the limits per CPU only")
    max_node_count = _conf("MaxNodeCount", forms.count)
    max_step_count = _conf("MaxStepCount", forms.count)
    max_tasks_per_node = _conf("MaxTasksPerNode", forms.count)
    mcs_plugin = _conf("MCSPlugin", forms.text)
    mcs_parameters = _conf("MCSParameters", forms.texts)
    metrics_type = _conf("MetricsType", forms.text)
    min_job_age = _conf("MinJobAge", forms.count)
    mpi_default = _conf("MpiDefault", forms.text)
    mpi_parameters = _conf("MpiParams", forms.texts)
    message_timeout = _conf("MessageTimeout", forms.count)
    next_job_id = field("slurm_conf_meta.NEXT_JOB_ID", read=forms.count)
    node_features_plugins = _conf("NodeFeaturesPlugins", forms.texts)
    over_time_limit = _conf("OverTimeLimit", forms.count)
    plugin_dirs = _conf("PluginDir", forms.text)
    plugin_stack_config = _conf("PlugStackConfig", forms.text)
    preempt_exempt_time = _conf("PreemptExemptTime", forms.limit)
    preempt_mode = _conf("PreemptMode", forms.texts)
    preempt_parameters = _conf("PreemptParameters", forms.texts)
    preempt_type = _conf("PreemptType", forms.text)
    prep_parameters = _conf("PrEpParameters", forms.text)
    prep_plugins = _conf("PrEpPlugins", forms.texts)
    priority_decay_half_life = _conf("PriorityDecayHalfLife", forms.seconds)
    priority_calc_period = _conf("PriorityCalcPeriod", forms.seconds)
    priority_favor_small = _conf("PriorityFavorSmall", forms.truth)
    priority_flags = _conf("PriorityFlags", forms.texts)
    priority_max_age = _conf("PriorityMaxAge", forms.seconds)
    priority_parameters = _conf("PriorityParameters", forms.text)
    priority_usage_reset_period = _conf("PriorityUsageResetPeriod", forms.text)
    priority_type = _conf("PriorityType", forms.text)
    priority_weight_age = _conf("PriorityWeightAge", forms.count)
    priority_weight_assoc = _conf("PriorityWeightAssoc", forms.count)
    priority_weight_fair_share = _conf("PriorityWeightFairshare", forms.count)
    priority_weight_job_size = _conf("PriorityWeightJobSize", forms.count)
    priority_weight_partition = _conf("PriorityWeightPartition", forms.count)
    priority_weight_qos = _conf("PriorityWeightQOS", forms.count)
    priority_weight_tres = _conf("PriorityWeightTRES", forms.text)
    private_data = _conf("PrivateData", forms.texts)
    proctrack_type = _conf("ProctrackType", forms.text)
    prolog = _conf("Prolog", forms.texts)
    prolog_timeout = _conf("PrologTimeout", forms.limit)
    prolog_slurmctld = _conf("PrologSlurmctld", forms.texts)
    propagate_prio_process = _conf("PropagatePrioProcess", forms.text)
    prolog_flags = _conf("PrologFlags", forms.texts)
    propagate_resource_limits = _conf("PropagateResourceLimits", forms.texts)
    propagate_resource_limits_except = _conf("PropagateResourceLimitsExcept", forms.texts)
    reboot_program = _conf("RebootProgram", forms.text)
    reconfig_flags = _conf("ReconfigFlags", forms.texts)
    requeue_exit = _conf("RequeueExit", forms.texts)
    requeue_exit_hold = _conf("RequeueExitHold", forms.texts)
    resume_fail_program = _conf("ResumeFailProgram", forms.text)
    resume_program = _conf("ResumeProgram", forms.text)
    resume_rate = _conf("ResumeRate", forms.count)
    resume_timeout = _conf("ResumeTimeout", forms.count)
    reservation_epilog = _conf("ResvEpilog", forms.text)
    reservation_over_run = _conf("ResvOverRun", forms.count)
    reservation_prolog = _conf("ResvProlog", forms.text)
    return_to_service = _conf("ReturnToService", forms.text)
    scheduler_log_file = _conf("SlurmSchedLogFile", forms.text)
    scheduler_logging_enabled = _conf("SlurmSchedLogLevel", _is_above_zero)
    scheduler_parameters = _conf("SchedulerParameters", forms.texts)
    scheduler_time_slice = _conf("SchedulerTimeSlice", forms.count)
    scheduler_type = _conf("SchedulerType", forms.text)
    scron_parameters = _conf("ScronParameters", forms.texts)
    select_type = _conf("SelectType", forms.text)
    select_type_parameters = _conf("SelectTypeParameters", forms.texts)
    priority_site_factor_plugin = _conf("PrioritySiteFactorPlugin", forms.text)
    priority_site_factor_parameters = _conf("PrioritySiteFactorParameters", forms.text)
    slurm_conf_path = field("slurm_conf_meta.SLURM_CONF", read=forms.text)
    slurm_user_id = _conf("SlurmUserId", forms.count)
    slurm_user_name = _conf("SlurmUser", forms.text)
    slurmd_user_id = _conf("SlurmdUserId", forms.count)
    slurmd_user_name = _conf("SlurmdUser", forms.text)
    slurmctld_log_level = _conf("SlurmctldDebug", forms.text)
    slurmctld_log_file = _conf("SlurmctldLogFile", forms.text)
    slurmctld_pid_file = _conf("SlurmctldPidFile", forms.text)
    slurmctld_port = _conf("SlurmctldPort", forms.count)
    slurmctld_primary_off_program = _conf("SlurmctldPrimaryOffProg", forms.text)
    slurmctld_primary_on_program = _conf("SlurmctldPrimaryOnProg", forms.text)
    slurmctld_syslog_level = _conf("SlurmctldSyslogDebug", forms.text)
    slurmctld_timeout = _conf("SlurmctldTimeout", forms.count)
    slurmctld_parameters = _conf("SlurmctldParameters", forms.texts)
    slurmd_log_level = _conf("SlurmdDebug", forms.text)
    slurmd_log_file = _conf("SlurmdLogFile", forms.text)
    slurmd_parameters = _conf("SlurmdParameters", forms.texts)
    slurmd_pid_file = _conf("SlurmdPidFile", forms.text)
    slurmd_port = _conf("SlurmdPort", forms.count)
    slurmd_spool_directory = _conf("SlurmdSpoolDir", forms.text)
    slurmd_syslog_level = _conf("SlurmdSyslogDebug", forms.text)
    slurmd_timeout = _conf("SlurmdTimeout", forms.count)
    srun_epilog = _conf("SrunEpilog", forms.text)
    srun_port_range = _conf("SrunPortRange", _port_range)
    srun_prolog = _conf("SrunProlog", forms.text)
    state_save_location = _conf("StateSaveLocation", forms.text)
    suspend_exclude_nodes = _conf("SuspendExcNodes", forms.texts)
    suspend_exclude_partitions = _conf("SuspendExcParts", forms.texts)
    suspend_exclude_states = _conf("SuspendExcStates", forms.texts)
    suspend_program = _conf("SuspendProgram", forms.text)
    suspend_rate = _conf("SuspendRate", forms.count)
    suspend_time = _conf("SuspendTime", forms.limit)
    suspend_timeout = _conf("SuspendTimeout", forms.count)
    switch_type = _conf("SwitchType", forms.text)
    switch_parameters = _conf("SwitchParameters", forms.texts)
    task_epilog = _conf("TaskEpilog", forms.text)
    task_plugin = _conf("TaskPlugin", forms.texts)
    task_plugin_parameters = _conf("TaskPluginParam", forms.texts)
    task_prolog = _conf("TaskProlog", forms.text)
    tls_parameters = _conf("TLSParameters", forms.texts)
    tls_type = _conf("TLSType", forms.text)
    tcp_timeout = _conf("TCPTimeout", forms.count)
    temporary_filesystem = _conf("TmpFS", forms.text)
    topology_parameters = _conf("TopologyParam", forms.texts)
    topology_plugin = _conf("TopologyPlugin", forms.text)
    tree_width = _conf("TreeWidth", forms.count)
    unkillable_step_program = _conf("UnkillableStepProgram", forms.text)
    unkillable_step_timeout = _conf("UnkillableStepTimeout", forms.count)
    track_wckey = _flag("TrackWCKey")
    use_pam = _flag("UsePam")
    version = field("slurm_conf_meta.SLURM_VERSION", read=forms.text)
    virtual_memory_size_factor = _conf("VSizeFactor", forms.count)
    wait_time = _conf("WaitTime", forms.count)
    x11_parameters = _conf("X11Parameters", forms.texts)

    @classmethod
    def load(cls) -> Self:
        """The configuration in use. Raises PyslurmError before API v0.0.45."""
        payload = request("GET", "conf").payload
        if not isinstance(payload.get("slurm_conf"), dict):
            raise PyslurmError("the answer holds no slurm_conf")
        return cls._of(payload, api_version())
