"""kubeslurm: the domain of the bridge."""
