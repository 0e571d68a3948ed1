"""kubeslurm_operator: adapters."""
