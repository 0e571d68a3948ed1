"""Reservations: nodes, users, length in seconds."""

import slurmrest.pyslurm as pyslurm

for resv in pyslurm.Reservations.load().values():
    print(resv.name, resv.nodes, ",".join(resv.users), resv.end_time - resv.start_time)
