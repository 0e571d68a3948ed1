"""The Kubernetes objects that we read, as pydantic models; `python -m kubeslurm.crds` makes the CRDs of them."""
