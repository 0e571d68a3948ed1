"""Submit an array of jobs, two at a time."""

import slurmrest.pyslurm as pyslurm

desc = pyslurm.JobSubmitDescription(
    name="sweep",
    array="0-7%2",
    memory_per_cpu="100M",
    working_directory="/tmp",
    script="#!/bin/sh\nsleep 300\n",
)
print(desc.submit())
