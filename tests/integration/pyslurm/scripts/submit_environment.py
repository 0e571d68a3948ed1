"""Submit a job whose account, partition and so on come from PYSLURM_JOBDESC_* variables."""

import slurmrest.pyslurm as pyslurm

desc = pyslurm.JobSubmitDescription(script="#!/bin/sh\nsleep 300\n", working_directory="/tmp")
desc.load_environment()
print(desc.submit())
