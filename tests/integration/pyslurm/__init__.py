"""The pyslurm face of the client against a real Slurm."""
