"""What slurmdbd keeps account of."""

import slurmrest.pyslurm as pyslurm

for resource in pyslurm.db.TrackableResources.load():
    print(resource.id, resource.type_and_name)
