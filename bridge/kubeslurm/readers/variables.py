"""Reads a container's command and variables: the kubelet's `$(NAME)`, ConfigMaps and Secrets, the pod's own facts.

Pure; called by `readers.pytorch`. What always holds: each text arrives as it was written, but for the references in it and
for the names that only Kubernetes' DNS knows: the first replica's becomes its address in Slurm, any other is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubeslurm import expansion, material_scripts
from kubeslurm.errors import Untranslated
from kubeslurm.expansion import Ref, Word
from kubeslurm.materials import Materials, usable
from kubeslurm.readers import downward
from kubeslurm.readers import materials as material_reader
from kubeslurm.readers.downward import PodFacts
from kubeslurm.readers.texts import env_name, text

Raw = Mapping[str, Any]

DEVICES: Final = "CUDA_VISIBLE_DEVICES"
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_BEFORE: Final = re.compile(r"[A-Za-z0-9_.-]\Z|(^|[^/])/\Z")
_BEHIND: Final = re.compile(r"[A-Za-z0-9_-]|\.[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one container. `runtime`: variables that only the running task knows. `first`: the first replica's pod."""

    path: str
    facts: PodFacts
    runtime: Sequence[str]
    materials: Materials
    first: str

    def plain_argv(self) -> list[str]:
        """Command and arguments as they are written."""
        container, words = self.facts.container, []
        for field in ("command", "args"):
            for index, word in enumerate(container.get(field) or ()):
                words.append(text(f"{self.path}.{field}[{index}]", word))
        if container.get("command") and "=" in words[0]:
            raise Untranslated(f"{self.path}.command[0]", "a program's name can't hold '='")
        return words

    def argv(self, known: Mapping[str, Word]) -> tuple[Word, ...]:
        """Command and arguments, references expanded."""
        container = self.facts.container
        return tuple(
            self._word(f"{self.path}.{field}[{index}]", word, known)
            for field in ("command", "args")
            for index, word in enumerate(container.get(field) or ())
        )

    def environment(self) -> dict[str, Word]:
        """Each variable's value; of one that materials give, a reference to where the task will have it."""
        known: dict[str, Word] = {}
        for index, one in enumerate(self.facts.container.get("env") or ()):
            where, name = f"{self.path}.env[{index}]", one["name"]
            env_name(f"{where}.name", name)
            if name == DEVICES:
                continue
            known[name] = self._value(where, one, known)
            if material_scripts.late(known[name]) and not usable(name):
                raise Untranslated(f"{where}.name", f"{name[:40]!r} can't hold what a ConfigMap or Secret gives")
        return known

    def ignored(self) -> Iterator[str]:
        """Slurm says which GPUs a task has."""
        for index, one in enumerate(self.facts.container.get("env") or ()):
            if one["name"] == DEVICES:
                yield f"{self.path}.env[{index}]"

    def _value(self, where: str, entry: Raw, known: Mapping[str, Word]) -> Word:
        source = entry.get("valueFrom")
        if not source:
            return self._word(f"{where}.value", text(f"{where}.value", entry.get("value") or ""), known)
        found = downward.value(f"{where}.valueFrom", source, self.facts)
        if found is not None:
            return found
        if material_reader.variable(where, entry):
            return (Ref(material_scripts.CHOSEN + str(entry["name"])),)
        raise Untranslated(f"{where}.valueFrom", "not supported")

    def _word(self, path: str, given: str, known: Mapping[str, Word]) -> Word:
        """A name that nothing here knows may still be one of envFrom's."""
        unknown = expansion.references(given) - known.keys() if self.materials.every else frozenset()
        late = {name: (Ref(material_scripts.ALL + name),) for name in unknown if _IDENTIFIER.match(name)}
        word = expansion.expand(given, {**known, **late}, self.runtime)
        return tuple(piece for one in word for piece in (self._hosts(path, one) if isinstance(one, str) else (one,)))

    def _hosts(self, path: str, given: str) -> Iterator[str | Ref]:
        """The text, with the first replica's address where its name in Kubernetes' DNS stands as a whole word."""
        at = 0
        for match in _names(self.facts).finditer(given):
            if _BEFORE.search(given[max(0, match.start() - 2) : match.start()]) or _BEHIND.match(
                given[match.end() : match.end() + 2]
            ):
                continue
            if match.group(1) != self.first:
                raise Untranslated(path, f"{match.group(1)} has no name in Slurm; only {self.first}'s address is known")
            yield given[at : match.start()]
            yield Ref("MASTER_ADDR")
            at = match.end()
        if at < len(given) or not at:
            yield given[at:]

    def names_first(self) -> bool:
        """Does the first replica's name stand anywhere?"""
        texts = [*self.plain_argv(), *(one.get("value") or "" for one in self.facts.container.get("env") or ())]
        return any(self.first in one for one in texts)


def _names(facts: PodFacts) -> re.Pattern[str]:
    pod = rf"({re.escape(facts.job)}-(?:master|worker)-[0-9]{{1,6}})"
    return re.compile(rf"{pod}(?:\.{re.escape(facts.namespace)}(?:\.svc(?:\.cluster\.local)?)?)?")


def given(known: Mapping[str, Word], runtime: Sequence[str]) -> tuple[tuple[str, Word], ...]:
    """What the script sets; what materials give as it is, a task takes from them."""
    return tuple(
        (name, value)
        for name, value in known.items()
        if name not in runtime and name != "PYTHONUNBUFFERED" and value != (Ref(material_scripts.CHOSEN + name),)
    )
