"""Submit a batch file with its own #SBATCH options: submit_options.py FILE."""

import sys

import slurmrest.pyslurm as pyslurm

desc = pyslurm.JobSubmitDescription(script=sys.argv[1], working_directory="/tmp", time_limit=7)
desc.load_sbatch_options()
print(desc.submit())
