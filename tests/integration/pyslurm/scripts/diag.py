"""The controller's own figures."""

import slurmrest.pyslurm as pyslurm

stats = pyslurm.slurmctld.diag()
print("submitted", stats.jobs_submitted)
print("running", stats.jobs_running)
