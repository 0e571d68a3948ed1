"""Accounting of some jobs as JSON: jobs_json.py ID..."""

import sys

import slurmrest.pyslurm as pyslurm

db_filter = pyslurm.db.JobFilter(ids=[int(word) for word in sys.argv[1:]])
print(pyslurm.db.Jobs.load(db_filter).to_json())
