"""Limit the jobs and GPUs of a user: limit_user.py USER JOBS GPUS."""

import sys

import slurmrest.pyslurm as pyslurm

user, jobs, gpus = sys.argv[1:]
changes = pyslurm.db.Association(max_jobs=int(jobs), max_tres_per_job=f"gres/gpu={gpus}")
with pyslurm.db.Connection.open() as conn:
    pyslurm.db.Associations.modify(pyslurm.db.AssociationFilter(users=[user]), changes, conn)
    conn.commit()
