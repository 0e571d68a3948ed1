"""slurmrest: a REST client for slurmrestd."""
