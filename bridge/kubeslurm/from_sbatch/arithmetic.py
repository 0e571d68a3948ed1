"""Works out `$((SLURM_NNODES * 8))` where all of it is known. Pure; called by `body`.

What always holds: whole numbers, the four operations, brackets, and nothing else; None for all other text.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

LONGEST: Final = 200
_PLAIN: Final = re.compile(r"[A-Za-z0-9_ ${}()+*/%-]*\Z")
_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def value(text: str, known: Callable[[str], str | None]) -> int | None:
    """The number; `known` says what a variable holds, None where nobody knows."""
    inner = text.removeprefix("$((").removesuffix("))")
    if not text.startswith("$((") or len(text) > LONGEST or not _PLAIN.match(inner):
        return None
    try:
        return _number(ast.parse(re.sub(r"\$\{?([A-Za-z_]\w*)\}?", r"\1", inner).strip(), mode="eval").body, known)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


def _number(node: ast.expr, known: Callable[[str], str | None]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and re.fullmatch(r"[0-9]{1,9}", text := known(node.id) or ""):
        return int(text)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_number(node.left, known), _number(node.right, known))
    raise ValueError("not known")
