"""From an sbatch script to a PyTorchJob: `kubeslurm translate --to pytorchjob`. See `manifest.read_script`."""
