"""Submit three jobs, each of which waits for the one before it."""

import slurmrest.pyslurm as pyslurm

before = None
for name in ("prepare", "train", "report"):
    desc = pyslurm.JobSubmitDescription(name=name, working_directory="/tmp", script="#!/bin/sh\nsleep 300\n")
    if before:
        desc.dependencies = {"afterok": [before]}
    before = desc.submit()
    print(before)
