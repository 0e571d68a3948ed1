"""The subcommands of `kubeslurm`."""
