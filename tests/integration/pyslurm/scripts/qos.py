"""All qualities of service."""

import slurmrest.pyslurm as pyslurm

for name, qos in pyslurm.db.QualitiesOfService.load().items():
    print(qos.id, name, qos.description)
