"""One job as JSON: job_json.py ID."""

import json
import sys

import slurmrest.pyslurm as pyslurm

job = pyslurm.Job.load(int(sys.argv[1]))
print(json.dumps(job.to_dict(recursive=True)))
