"""What all API models share: strict camelCase models, metadata, conditions, and parsing with field paths.

Called by every module that reads an object off the API server or a file. A model never holds a value that its
validators did not see; `parse` is the one way in, and raises `InvalidObject` with the path of the first bad field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from kubeslurm.errors import InvalidObject


class Model(BaseModel):
    """Base of every part of a spec: frozen, camelCase outside and snake_case inside, unknown fields refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid", frozen=True
    )


class Loose(Model):
    """A part that others own (metadata, pod templates, status): unknown fields are let be."""

    model_config = ConfigDict(extra="ignore")


class Metadata(Loose):
    """The parts of ObjectMeta that decisions need."""

    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    deletion_timestamp: str | None = None
    creation_timestamp: str | None = None
    finalizers: list[str] = Field(default_factory=list)


class Condition(Loose):
    """metav1.Condition, as it stands in our status."""

    type: str = Field(description="The condition's name, such as Ready.")
    status: str = Field(description="True, False or Unknown.")
    reason: str = Field(default="", description="One CamelCase word for programs.")
    message: str = Field(default="", description="One sentence for people.")
    observed_generation: int = Field(default=0, description="The metadata.generation that this speaks of.")
    last_transition_time: str = Field(default="", description="When status last changed (RFC 3339).")


class Resource(Loose):
    """A whole object. Subclasses give `kind`, `api_version` and typed `spec` and `status`."""

    KIND: ClassVar[str]
    API: ClassVar[str]

    metadata: Metadata

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """The object as a value; `InvalidObject` names the first field that is wrong, by its path in the YAML."""
        _check_kind(cls, raw)
        body = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
        try:
            return cls.model_validate(body)
        except ValidationError as error:
            raise first_complaint(error) from None


def _check_kind(model: type[Resource], raw: Mapping[str, Any]) -> None:
    if raw.get("kind", model.KIND) != model.KIND:
        raise InvalidObject("kind", f"expected {model.KIND}, got {raw.get('kind')!r}")
    if raw.get("apiVersion", model.API) != model.API:
        raise InvalidObject("apiVersion", f"expected {model.API}, got {raw.get('apiVersion')!r}")


def first_complaint(error: ValidationError) -> InvalidObject:
    """The first of pydantic's complaints as one of ours: `spec.gpu.count: Input should be greater than 0`."""
    problem = error.errors(include_url=False, include_input=False)[0]
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, InvalidObject):
        return cause.below(field_path(problem["loc"])) if problem["loc"] else cause
    message = problem["msg"].removeprefix("Value error, ")
    return InvalidObject(field_path(problem["loc"]), message)


def field_path(location: tuple[int | str, ...]) -> str:
    """`("spec", "partitions", 0, "nodeSets")` as `spec.partitions[0].nodeSets`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
