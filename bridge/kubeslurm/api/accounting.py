"""Accounting: the slurmdbd behind a Slurm, and what is kept in it. Part of SlurmCluster's spec.

Read by `kubeslurm.accounting`, the renderer and the manifests. The password of the database stands in no model: it goes
from the admin's Secret into slurmdbd's pod.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from kubeslurm.api.base import Model
from kubeslurm.api.fields import IMAGE, AccountName

HOST = r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"
_WORD = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"


class SecretKey(Model):
    """A key of a Secret in the SlurmCluster's namespace."""

    name: str = Field(description="The Secret.", pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")
    key: str = Field(default="password", description="Its key.", pattern=r"^[A-Za-z0-9._-]{1,253}$")


class Database(Model):
    """A MariaDB or MySQL that is there already, with an empty database or one of slurmdbd's."""

    host: str = Field(description="Host name or address.", pattern=HOST)
    port: int = Field(default=3306, description="Port.", ge=1, le=65535)
    name: str = Field(default="slurm_acct_db", description="The database's name.", pattern=_WORD)
    user: str = Field(default="slurm", description="Who slurmdbd is there.", pattern=_WORD)
    password_secret: SecretKey = Field(description="Where the password is.")


def _enforced(value: list[str]) -> list[str]:
    return sorted(set(value))


Enforced = Annotated[list[Literal["associations", "limits", "qos", "safe"]], AfterValidator(_enforced)]


class QosSpec(Model):
    """A QOS that the operator makes where it is missing. It changes none that is there."""

    name: AccountName = Field(description="Its name.")
    priority: int = Field(default=0, description="Higher goes first.", ge=0, le=4_000_000_000)
    preempts: list[AccountName] = Field(
        default_factory=list, description="QOS whose jobs it may preempt.", max_length=64
    )
    gpus_per_user: int | None = Field(
        default=None, description="So many GPUs may one user's jobs hold at once.", ge=0, le=10_000_000
    )


class Accounting(Model):
    """slurmdbd, run by the operator."""

    database: Database = Field(description="The database behind slurmdbd.")
    image: str | None = Field(
        default=None, description="Image with slurmdbd; the controller's when absent.", pattern=IMAGE
    )
    enforce: Enforced = Field(
        default=["associations", "limits", "qos"],
        description="What slurmctld checks at submission, as in AccountingStorageEnforce.",
        max_length=4,
    )
    manage: bool = Field(
        default=False,
        description="Make the accounts, users, associations and QOS that the tenants name, where they are missing."
        " What is there is never changed or deleted, but for QOS added to a user's association.",
    )
    qos: list[QosSpec] = Field(
        default_factory=list, description="More about QOS that the operator makes.", max_length=64
    )
