"""Submit a job."""

import slurmrest.pyslurm as pyslurm

desc = pyslurm.JobSubmitDescription(
    name="from-pyslurm",
    nodes=2,
    ntasks=4,
    cpus_per_task=3,
    memory_per_node="2G",
    gres_per_node="gpu:h100:4",
    time_limit="1-12:00:00",
    working_directory="/tmp",
    standard_output="/tmp/from-pyslurm-%j.out",
    script="#!/bin/sh\nsleep 300\n",
)
print(desc.submit())
