"""Jobs that failed, with their exit codes."""

import slurmrest.pyslurm as pyslurm

jobs = pyslurm.db.Jobs.load(pyslurm.db.JobFilter(start_time="2020-01-01"))
for job in jobs.values():
    if job.state == "FAILED":
        print(job.id, job.exit_code, job.exit_code_signal)
