"""slurmctld of pyslurm's face: pings, figures, configuration, and what REST can't do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slurmrest.pyslurm import PyslurmError, slurmctld
from slurmrest.pyslurm.slurmctld import Config, PingResponse, ShutdownMode, Statistics
from tests.unit.slurmrest.pyslurm.recorded import Recorded


def test_ping_reads_the_same_from_every_version(recorded: Recorded) -> None:
    """One slurmctld, the primary one, well."""
    assert [one.to_dict() for one in slurmctld.ping_all()] == [slurmctld.ping_primary().to_dict()]
    found = slurmctld.ping(0)
    assert (found.index, found.hostname, found.is_primary, found.is_responding) == (0, "controller", True, True)
    assert found.latency > 0


@pytest.mark.parametrize("index", [1, -1, True])
def test_ping_of_one_that_is_not_there(newest: Recorded, index: int) -> None:
    """No backup is no answer of the primary one."""
    with pytest.raises(PyslurmError, match="the cluster has 1"):
        slurmctld.ping(index)
    with pytest.raises(PyslurmError, match="there is no slurmctld 1"):
        slurmctld.ping_backup()


def test_backup_that_does_not_respond() -> None:
    """Old and new words."""
    old = PingResponse._of({"hostname": "b", "pinged": "DOWN", "mode": "backup1"})
    new = PingResponse._of({"hostname": "b", "responding": False, "primary": False})
    assert (old.is_primary, old.is_responding) == (new.is_primary, new.is_responding) == (False, False)


def test_statistics_read_from_every_version(recorded: Recorded) -> None:
    """Six jobs were submitted and started, most of them by messages that are counted."""
    found = slurmctld.diag()
    assert (found.jobs_submitted, found.jobs_started) == (6, 6)
    assert (found.request_time or 0) >= (found.data_since or 0) > 10**9
    assert found.rpcs_by_type["REQUEST_SUBMIT_BATCH_JOB"].count == 3
    assert found.rpcs_by_type.count == sum(one.count for one in found.rpcs_by_type.values()) > 1
    assert found.rpcs_by_type.time > 0
    assert found.rpcs_by_user["root"].user_id == 0
    assert found.rpcs_by_user.count >= 1
    assert found.rpcs_by_user.time > 0
    assert found.schedule_exit.end_of_job_queue >= 0
    assert found.backfill_exit.max_time == 0


def test_every_figure_can_be_read_or_says_since_when(recorded: Recorded) -> None:
    """v0.0.40 lacks some."""
    found = slurmctld.diag()
    flat = found.to_dict(recursive=True)
    assert set(flat) == set(Statistics._fields)
    later = {name for name, one in Statistics._fields.items() if one.since}
    assert {name for name, value in flat.items() if value is None and name in later} == (
        later if recorded.version == "v0.0.40" else set()
    )
    if recorded.version == "v0.0.40":
        with pytest.raises(PyslurmError, match=r"Statistics\.rpcs_pending needs API v0\.0\.41"):
            _ = found.rpcs_pending
        with pytest.raises(PyslurmError, match=r"RPCType\.queued needs API v0\.0\.41"):
            _ = found.rpcs_by_type.queued
    else:
        assert (found.rpcs_pending.count, found.rpcs_by_type.queued, found.rpcs_by_type.dropped) == (0, 0, 0)


def test_answer_without_figures_is_no_answer(newest: Recorded) -> None:
    """200 and nothing is an error."""
    newest.answers["diag/"] = {}
    newest.answers["conf"] = {}
    with pytest.raises(PyslurmError, match="no statistics"):
        slurmctld.diag()
    with pytest.raises(PyslurmError, match="no slurm_conf"):
        Config.load()


CONF: dict[str, Any] = {
    "slurm_conf": {
        "ClusterName": "bare",
        "ConfFlags": ["TrackWCKey"],
        "DebugFlags": ["Backfill"],
        "DefMemPerCPU": {"set": True, "infinite": False, "number": 500},
        "FairShareDampeningFactor": 3,
        "GresTypes": ["gpu"],
        "JobDefaults": [{"type": ["DefCpuPerGPU"], "value": 2}],
        "JobRequeue": True,
        "PriorityMaxAge": "7-00:00:00",
        "SlurmSchedLogLevel": 1,
        "SlurmctldDebug": "info",
        "SrunPortRange": {"minimum": 60001, "maximum": 63000, "set": True},
        "SuspendTime": {"set": False, "infinite": True, "number": 0},
    },
    "slurm_conf_meta": {
        "BOOT_TIME": 1_796_105_465,
        "SLURM_VERSION": "26.05.5",
        "NEXT_JOB_ID": {"set": True, "number": 7},
    },
}


def test_configuration_reads(newest: Recorded) -> None:
    """Texts, lists, numbers, flags, durations and ranges."""
    newest.answers["conf"] = CONF
    conf = Config.load()
    assert (conf.cluster_name, conf.gres_types, conf.job_requeue) == ("bare", ["gpu"], True)
    assert (conf.default_memory_per_cpu, conf.priority_max_age, conf.suspend_time) == (500, 604_800, "UNLIMITED")
    assert (conf.job_defaults, conf.srun_port_range) == ({"DefCpuPerGPU": 2}, "60001-63000")
    assert (conf.track_wckey, conf.use_pam, conf.epilog, conf.mail_domain) == (True, False, [], None)
    assert (conf.version, conf.next_job_id, conf.slurmctld_boot_time) == ("26.05.5", 7, 1_796_105_465)
    assert set(conf.to_dict()) == set(Config._fields)


def test_what_is_in_the_configuration_is_told(newest: Recorded) -> None:
    """Logging and fair share."""
    newest.answers["conf"] = CONF
    assert slurmctld.get_debug_flags() == ["Backfill"]
    assert slurmctld.get_log_level() == "info"
    assert slurmctld.is_scheduler_logging_enabled()
    assert slurmctld.get_fair_share_dampening_factor() == 3


@pytest.mark.parametrize(
    "call",
    [
        Config.load,
        slurmctld.get_debug_flags,
        slurmctld.get_log_level,
        slurmctld.is_scheduler_logging_enabled,
        slurmctld.get_fair_share_dampening_factor,
    ],
)
def test_configuration_needs_a_version_that_has_it(oldest: Recorded, call: Callable[[], object]) -> None:
    """The first one is named."""
    with pytest.raises(PyslurmError, match=r"GET conf needs v0\.0\.45"):
        call()


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda: slurmctld.shutdown(ShutdownMode.ALL), "scontrol shutdown"),
        (lambda: slurmctld.shutdown(2), "CONTROLLER_ONLY"),
        (slurmctld.takeover, "scontrol takeover"),
        (lambda: slurmctld.add_debug_flags(["Backfill"]), "setdebugflags"),
        (lambda: slurmctld.remove_debug_flags(["Backfill"]), "setdebugflags"),
        (slurmctld.clear_debug_flags, "setdebugflags"),
        (lambda: slurmctld.set_log_level("debug"), "scontrol setdebug"),
        (slurmctld.enable_scheduler_logging, "schedloglevel"),
        (lambda: slurmctld.set_fair_share_dampening_factor(2), "fsdampeningfactor"),
        (Statistics.reset, "sdiag --reset"),
        (slurmctld.CgroupConfig, r"cgroup\.conf"),
        (slurmctld.MPIConfig, r"mpi\.conf"),
        (slurmctld.AccountingGatherConfig, r"acct_gather\.conf"),
    ],
)
def test_what_rest_can_not_do_says_what_does(newest: Recorded, call: Callable[[], object], instead: str) -> None:
    """And asks nobody."""
    with pytest.raises(PyslurmError, match=f"no version of the REST API.*{instead}|{instead}.*no version"):
        call()
    assert newest.requests == []


def test_reconfigure_is_one_call(newest: Recorded) -> None:
    """A GET that changes something."""
    slurmctld.reconfigure()
    assert newest.requests == [("GET", "reconfigure/", None)]
