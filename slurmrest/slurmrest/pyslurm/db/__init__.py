"""`pyslurm.db`: what slurmdbd knows, for scripts.

Jobs with their steps and what they used, associations, qualities of service, trackable resources. Needs a slurmrestd
that serves slurmdbd (`-s slurmctld,slurmdbd`, which is its default where slurmdbd is configured).
"""

from __future__ import annotations

from slurmrest.pyslurm.db.assoc import Association, Associations
from slurmrest.pyslurm.db.connection import Connection
from slurmrest.pyslurm.db.filters import AssociationFilter, JobFilter, QualityOfServiceFilter
from slurmrest.pyslurm.db.job import Job, Jobs
from slurmrest.pyslurm.db.qos import QualitiesOfService, QualityOfService
from slurmrest.pyslurm.db.stats import JobStatistics, JobStepStatistics
from slurmrest.pyslurm.db.step import JobStep, JobSteps
from slurmrest.pyslurm.db.tres import (
    GPU,
    FilesystemResources,
    GenericResourceLayout,
    GenericResources,
    InterconnectResources,
    LicenseResources,
    OtherResources,
    TrackableResource,
    TrackableResourceFilter,
    TrackableResources,
)

__all__ = [
    "GPU",
    "Association",
    "AssociationFilter",
    "Associations",
    "Connection",
    "FilesystemResources",
    "GenericResourceLayout",
    "GenericResources",
    "InterconnectResources",
    "Job",
    "JobFilter",
    "JobStatistics",
    "JobStep",
    "JobStepStatistics",
    "JobSteps",
    "Jobs",
    "LicenseResources",
    "OtherResources",
    "QualitiesOfService",
    "QualityOfService",
    "QualityOfServiceFilter",
    "TrackableResource",
    "TrackableResourceFilter",
    "TrackableResources",
]
