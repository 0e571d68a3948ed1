"""Writes docs/reference/crds.md out of the CRDs: `python -m tests.crd_reference FILE`, called by `make docs`.

The CRDs are made of the models, so the page says what the API server checks. A test fails when the page is old.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kubeslurm import crds

Schema = Mapping[str, Any]

HEAD = """# Reference: the objects and their fields

Made by `make docs` out of the CRDs; changes made here are lost. A field in **bold** must be given.
"""
COLUMNS = "| Field | Type | Default | What it is |\n| --- | --- | --- | --- |"


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(part for make in crds.FILES.values() for part in _kind(make()))])


def _kind(crd: Schema) -> Iterator[str]:
    spec = crd["spec"]
    version = spec["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    short = ", ".join(f"`{name}`" for name in spec["names"].get("shortNames", ()))
    yield f"## {spec['names']['kind']}\n"
    yield f"`{spec['group']}/{version['name']}`, in a namespace{f'; short name {short}' if short else ''}."
    yield f"{schema.get('description', '')}\n"
    for part in ("spec", "status"):
        if part in schema["properties"]:
            yield f"### {spec['names']['kind']} {part}\n"
            yield COLUMNS
            yield from _rows(schema["properties"][part], "")
            yield ""
    if columns := version.get("additionalPrinterColumns"):
        yield "`kubectl get` shows: " + ", ".join(column["name"] for column in columns) + ".\n"


def _rows(schema: Schema, prefix: str) -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        shown = f"**`{path}`**" if name in required else f"`{path}`"
        yield f"| {shown} | {_type(field)} | {_default(field)} | {_text(field)} |"
        yield from _rows(field, f"{path}.")
        if "items" in field:
            yield from _rows(field["items"], f"{path}[].")
        if isinstance(field.get("additionalProperties"), Mapping):
            yield from _rows(field["additionalProperties"], f"{path}.*.")


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "int or string"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if isinstance(field.get("additionalProperties"), Mapping):
        return f"map of {_type(field['additionalProperties'])}"
    return str(field.get("type", "any"))


def _default(field: Schema) -> str:
    default = field.get("default")
    return "" if default in (None, "") else f"`{json.dumps(default)}`"


def _text(field: Schema) -> str:
    parts = [str(field.get("description", ""))]
    parts += [str(rule["message"]) for rule in field.get("x-kubernetes-validations", ())]
    if "enum" in field:
        parts.append("One of " + ", ".join(f"`{one}`" for one in field["enum"]) + ".")
    if "pattern" in field:
        parts.append("Pattern `" + str(field["pattern"]) + "`.")
    lowest, highest = field.get("minimum"), field.get("maximum")
    if lowest is not None or highest is not None:
        parts.append(f"{'' if lowest is None else lowest} to {'' if highest is None else highest}.")
    return " ".join(part for part in parts if part).replace("|", "\\|").replace("\n", " ")


def main() -> None:
    """Write the file."""
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page())


if __name__ == "__main__":
    main()
