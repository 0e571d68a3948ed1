"""kubeslurm_templates: jinja2 templates of the files that Slurm reads."""
