"""Is the controller there?"""

import slurmrest.pyslurm as pyslurm

primary = pyslurm.slurmctld.ping_primary()
print(primary.hostname, primary.is_responding, primary.is_primary)
