"""What the notebooks' sources declare of each claim (condition, kind, rival, expectation), and the file that keeps it.

``conditions.json`` is written by ``course claims --accept`` and by nothing else; a test compares it with the notebooks.
"""

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path

from ..course import replace_file
from . import card
from .condition import Terms

FILE = Path(__file__).parent / "conditions.json"
_LITERAL = ("id", "holds", "kind", "rival", "expected")


@dataclass(frozen=True)
class Declared:
    """A call of ``claim`` in a notebook's source."""

    id: str
    terms: Terms
    notebook: Path
    cell: int
    """Number of its cell, counted from 1, text cells included."""
    stored: bool
    """Whether its numbers come from a stored measurement."""
    measured: ast.expr | None
    """The source of what it measures."""


def declared(path: Path) -> list[Declared]:
    """The claims that a notebook declares; nothing is executed.

    Raises:
        ValueError: if an argument that is kept is not written out, or a condition is not one.
    """
    found = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], start=1):
        source = re.sub(r"(?m)^\s*[%!].*$", "pass", "".join(cell["source"]))
        if cell["cell_type"] == "code" and re.search(r"\bclaim\(", source):
            calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
                     and "claim" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))]
            found += [_declared(call, path, number) for call in sorted(calls, key=lambda call: call.lineno)]
    return found


def _declared(call: ast.Call, path: Path, cell: int) -> Declared:
    given = dict(zip(signature(card.claim).parameters, call.args, strict=False))
    given |= {word.arg: word.value for word in call.keywords}
    try:
        written = {name: ast.literal_eval(given[name]) for name in _LITERAL if name in given}
        id, holds = written.pop("id"), written.pop("holds")
    except (ValueError, KeyError):
        raise ValueError(f"{path.name}, cell {cell}: {ast.unparse(call)[:60]} …: write id, holds, kind, rival and "
                         "expected out as text and True or False; they are compared with conditions.json.") from None
    try:
        return Declared(id, Terms(holds, **written), path, cell, "stored" in given, given.get("measured"))
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{path.name}, cell {cell}, claim {id}: {problem}") from None


def kept() -> dict[str, Terms]:
    """The terms that ``conditions.json`` holds: id to terms."""
    return {id: Terms(**row) for id, row in json.loads(FILE.read_text(encoding="utf-8")).items()}


def terms(claims: Iterable[Declared]) -> dict[str, Terms]:
    """Id to terms.

    Raises:
        ValueError: if an id occurs twice.
    """
    rows: dict[str, Terms] = {}
    for claim in claims:
        if claim.id in rows:
            raise ValueError(f"claim {claim.id} is declared twice, the second time in {claim.notebook.name}, cell "
                             f"{claim.cell}. Give one of them another id.")
        rows[claim.id] = claim.terms
    return rows


def changes(was: Mapping[str, Terms], now: Mapping[str, Terms]) -> list[str]:
    """What differs, old and new, one text per claim; empty if nothing does."""
    found = []
    for id in sorted(was.keys() | now.keys()):
        if id not in now:
            found.append(f"{id} is gone; it held when {was[id].condition}")
        elif id not in was:
            found.append(f"{id} is new; it holds when {now[id].condition}")
        else:
            old, new = asdict(was[id]), asdict(now[id])
            found += [f"{id}, {name}:\n  was {old[name]}\n  now {new[name]}" for name in old if old[name] != new[name]]
    return found


def accept(now: Mapping[str, Terms]) -> list[str]:
    """Write ``conditions.json`` anew, in one step; returns what changed."""
    changed = changes(kept() if FILE.is_file() else {}, now)
    rows = {id: asdict(now[id]) for id in sorted(now)}
    with replace_file(FILE) as file:
        file.write(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return changed
