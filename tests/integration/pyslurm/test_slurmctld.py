"""slurmctld of pyslurm's face on a real Slurm, against what scontrol and sdiag print."""

from __future__ import annotations

import re

import pytest

from slurmrest.pyslurm import PyslurmError, RPCError, slurmctld
from slurmrest.pyslurm.slurmctld import Config
from tests.cluster.slurm import BareSlurm
from tests.integration.pyslurm.reached import OLD, acting, begun, until

pytestmark = pytest.mark.slurm


def printed(slurm: BareSlurm) -> dict[str, str]:
    """What `scontrol show config` prints."""
    lines = slurm.run("scontrol", "show", "config").stdout.splitlines()
    pairs = (line.partition("=") for line in lines)
    return {name.strip(): value.strip() for name, sign, value in pairs if sign}


def test_ping_finds_the_controller(slurm: BareSlurm) -> None:
    """The primary one alone."""
    found = slurmctld.ping_all()
    assert [(one.hostname, one.is_primary, one.is_responding) for one in found] == [("controller", True, True)]
    with pytest.raises(PyslurmError, match="the cluster has 1"):
        slurmctld.ping_backup()


def test_ping_of_a_dead_controller() -> None:
    """It is told as not responding; other calls say that it can't be reached."""
    with begun(OLD) as slurm, acting(slurm):
        slurm.stop("slurmctld")
        assert not slurmctld.ping_primary().is_responding
        with pytest.raises(RPCError) as caught:
            slurmctld.diag()
        assert caught.value.errno in (1800, 1001)


def test_figures_are_those_of_sdiag(slurm: BareSlurm) -> None:
    """Jobs, and messages by kind."""
    slurm.run("sbatch", "--wrap", "true", user="alice")
    until(lambda: slurmctld.diag().jobs_completed >= 1)
    found, text = slurmctld.diag(), slurm.run("sdiag").stdout
    for label, value in (("submitted", found.jobs_submitted), ("started", found.jobs_started)):
        assert re.search(rf"Jobs {label}:\s+{value}\b", text)
    counted = re.search(r"REQUEST_SUBMIT_BATCH_JOB\s+\(\s*4003\) count:(\d+)", text)
    assert counted
    assert found.rpcs_by_type["REQUEST_SUBMIT_BATCH_JOB"].count == int(counted[1])
    assert found.rpcs_by_user["alice"].user_id == 1000


def test_reconfigure_takes_a_new_partition_in(slurm: BareSlurm) -> None:
    """The file is read again."""
    slurm.run("sh", "-c", "echo 'PartitionName=later Nodes=n0' >> /etc/slurm/slurm.conf")
    slurmctld.reconfigure()
    until(lambda: "later" in slurm.run("sinfo", "--noheader", "-o", "%R").stdout.split())


def test_nobody_but_an_administrator_reconfigures(slurm: BareSlurm) -> None:
    """Alice is refused."""
    with acting(slurm, "alice"), pytest.raises(RPCError) as caught:
        slurmctld.reconfigure()
    assert caught.value.errno in (2002, 2010)


def test_configuration_is_what_scontrol_shows(newest: BareSlurm) -> None:
    """Texts, lists, numbers and yes or no, by their names there."""
    conf, truth = Config.load(), printed(newest)
    assert (conf.cluster_name, conf.version) == (truth["ClusterName"], truth["SLURM_VERSION"])
    assert (conf.slurm_conf_path, conf.state_save_location) == (truth["SLURM_CONF"], truth["StateSaveLocation"])
    assert (conf.select_type, ",".join(conf.select_type_parameters)) == (
        truth["SelectType"],
        truth["SelectTypeParameters"],
    )
    assert (conf.auth_type, ",".join(conf.auth_alt_types)) == (truth["AuthType"], truth["AuthAltTypes"])
    assert (str(conf.slurmctld_port), str(conf.slurmd_port)) == (truth["SlurmctldPort"], truth["SlurmdPort"])
    assert (f"{conf.slurmd_timeout} sec", f"{conf.min_job_age} sec") == (truth["SlurmdTimeout"], truth["MinJobAge"])
    assert (str(conf.max_job_count), str(conf.max_node_count)) == (truth["MaxJobCount"], truth["MaxNodeCount"])
    assert (f"{conf.slurm_user_name}({conf.slurm_user_id})", conf.gres_types) == (truth["SlurmUser"], ["gpu"])
    assert (int(conf.job_requeue), ",".join(conf.licenses)) == (int(truth["JobRequeue"]), truth["Licenses"])
    assert (conf.scheduler_type, conf.proctrack_type) == (truth["SchedulerType"], truth["ProctrackType"])
    assert truth["SuspendTime"] == "INFINITE"
    assert conf.suspend_time == "UNLIMITED"


def test_what_the_configuration_tells_of_logging(newest: BareSlurm) -> None:
    """As scontrol sets it."""
    newest.run("scontrol", "setdebug", "debug")
    newest.run("scontrol", "setdebugflags", "+Backfill,Gres")
    assert slurmctld.get_log_level() == "debug"
    assert sorted(slurmctld.get_debug_flags()) == ["Backfill", "Gres"]
    assert not slurmctld.is_scheduler_logging_enabled()
    assert slurmctld.get_fair_share_dampening_factor() == 1


def test_configuration_on_a_slurm_without_it_says_since_when() -> None:
    """24.11's API doesn't tell it."""
    with begun(OLD) as slurm, acting(slurm), pytest.raises(PyslurmError, match=r"needs v0\.0\.45 \(Slurm 26\.05\)"):
        Config.load()
