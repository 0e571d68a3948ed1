"""How the tasks of a job are spread over nodes, sockets and cores: pyslurm's `TaskDistribution`.

Used by scripts, and by `JobSubmitDescription.distribution`. Pure. What always holds: every text that `sbatch -m` takes
has one object, and the object's text stands for the same. Source: sbatch(1), option --distribution; numbers of
slurm/slurm.h, task_dist_states_t.
"""

from __future__ import annotations

from typing import Any, Final

_METHODS: Final = {"block": 1, "cyclic": 2, "fcyclic": 3}
_DEFAULTS: Final = ("block", "cyclic")
_PACK: Final = 0x800000
_NO_PACK: Final = 0x400000
_ARBITRARY: Final = 0x0003
_PLANE: Final = 0x0004
_SHIFT: Final = 4


class TaskDistribution:
    """The methods of the three levels, and what goes with them.

    `nodes` is "block", "cyclic", "arbitrary" or "plane"; `sockets` and `cores` are "block", "cyclic" or "fcyclic";
    `cores` is by default that of `sockets`. "*" is a level's default. `pack`: fill nodes first (None: Slurm decides).
    `plane`: tasks in a block of "plane". Raises ValueError for anything else.
    """

    def __init__(
        self,
        nodes: str = "block",
        sockets: str = "cyclic",
        cores: str | None = None,
        pack: bool | None = None,
        plane: int | None = None,
    ) -> None:
        self.nodes = _one_of(nodes, ("block", "cyclic", "arbitrary", "plane"), _DEFAULTS[0])
        self.sockets = _one_of(sockets, _METHODS, _DEFAULTS[1])
        self.cores = _one_of(cores or "*", _METHODS, self.sockets)
        if pack is not None and not isinstance(pack, bool):
            raise ValueError(f"{pack!r:.80} is not True, False or None")
        self.pack = pack
        if (self.nodes == "plane") != (plane is not None):
            raise ValueError("the distribution `plane` and its size go together")
        self.plane = None if plane is None else _plane(plane)

    @classmethod
    def from_str(cls, dist_str: str) -> TaskDistribution:
        """Of what `sbatch -m` takes: "cyclic", "block:cyclic:fcyclic,NoPack", "*:block", "plane=4", "arbitrary"."""
        if not isinstance(dist_str, str) or not dist_str.strip():
            raise ValueError(f"{dist_str!r:.80} is not a distribution")
        methods, *flags = dist_str.strip().lower().split(",")
        packs = {"pack": True, "nopack": False}
        if len(flags) > 1 or any(flag not in packs for flag in flags):
            raise ValueError(f"{dist_str!r:.80} is not a distribution")
        pack = packs[flags[0]] if flags else None
        name, _, size = methods.partition("=")
        if size:
            return cls(nodes=name, pack=pack, plane=_plane(size))
        levels = methods.split(":")
        if len(levels) > 3:
            raise ValueError(f"{dist_str!r:.80} has more than three levels")
        nodes, sockets, cores = (*(level or "*" for level in levels), "*", "*")[:3]
        return cls(nodes, sockets, cores, pack)

    @classmethod
    def from_int(cls, dist: int) -> TaskDistribution | None:
        """Of Slurm's number (the size of a plane isn't in it: 1); None for no distribution."""
        level, known = dist & 0xF, {number: name for name, number in _METHODS.items()}
        names = {**known, _ARBITRARY: "arbitrary", _PLANE: "plane"}
        if level not in names:
            return None
        inner = [known.get(dist >> shift & 0xF) for shift in (_SHIFT, 2 * _SHIFT)]
        pack = True if dist & _PACK else False if dist & _NO_PACK else None
        return cls(names[level], inner[0] or "*", inner[1], pack, 1 if names[level] == "plane" else None)

    def as_int(self) -> int:
        """Slurm's number, without the size of a plane."""
        level = {**_METHODS, "arbitrary": _ARBITRARY, "plane": _PLANE}[self.nodes]
        flag = 0 if self.pack is None else _PACK if self.pack else _NO_PACK
        if self.nodes in ("arbitrary", "plane"):
            return level | flag
        return level | _METHODS[self.sockets] << _SHIFT | _METHODS[self.cores] << 2 * _SHIFT | flag

    def to_str(self) -> str:
        """What `sbatch -m` takes."""
        flag = "" if self.pack is None else ",Pack" if self.pack else ",NoPack"
        if self.nodes == "plane":
            return f"plane={self.plane}{flag}"
        return (self.nodes if self.nodes == "arbitrary" else f"{self.nodes}:{self.sockets}:{self.cores}") + flag

    def to_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Its values by name."""
        return {name: getattr(self, name) for name in ("nodes", "sockets", "cores", "plane", "pack")}

    def __str__(self) -> str:
        return self.to_str()

    def __repr__(self) -> str:
        return f"TaskDistribution.from_str({self.to_str()!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskDistribution) and self.to_str() == other.to_str()

    def __hash__(self) -> int:
        return hash(self.to_str())


def _one_of(word: str, allowed: tuple[str, ...] | dict[str, int], default: str) -> str:
    lowered = word.strip().lower() if isinstance(word, str) else word
    if lowered == "*":
        return default
    if lowered not in allowed:
        raise ValueError(f"{word!r:.80} is none of {', '.join(allowed)}")
    return lowered


def _plane(size: int | str) -> int:
    if not (isinstance(size, int) or (isinstance(size, str) and size.isascii() and size.isdigit())) or int(size) < 1:
        raise ValueError(f"{size!r:.80} is not the size of a plane")
    return int(size)
