"""What was accepted of each claim: ``conditions.json``.

It is written by ``course claims --accept`` and by nothing else; a test compares it with the notebooks.
"""

import ast
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ..course import CourseError, stamp, write_file

FILE = Path(__file__).parent / "conditions.json"


def read_json(path: Path) -> dict:
    """What a file holds; a ``CourseError`` that names it if it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise CourseError(f"{path} is not readable as JSON ({problem}). Restore it (git restore).") from None


def kept() -> dict[str, dict]:
    """What ``conditions.json`` holds: id to row (see `declared.Declared.row`).

    Raises:
        CourseError: if the file is not JSON.
    """
    def written(source: str) -> str:
        return ast.unparse(ast.parse(source, mode="eval"))      # as this Python writes it; they differ in that

    return {id: row | {name: written(row[name]) for name in ("published", "measured") if name in row}
            for id, row in read_json(FILE).items()}


def made_by(id: str) -> str:
    """The digest of the code that makes a claim's numbers, as it was accepted; empty for an unknown claim."""
    return _digests(FILE, stamp(FILE)).get(id, "") if FILE.is_file() else ""


@cache
def _digests(path: Path, changed: tuple) -> dict[str, str]:
    return {id: row.get("made_by", "") for id, row in read_json(path).items()}


def changes(was: Mapping[str, Mapping], now: Mapping[str, Mapping]) -> list[str]:
    """What differs between rows, old and new, one text per field; empty if nothing does."""
    found = []
    for id in sorted(was.keys() | now.keys()):
        if id not in now:
            found.append(f"{id} is gone; it held when {was[id]['condition']}")
        elif id not in was:
            found.append(f"{id} is new; it holds when {now[id]['condition']}")
        else:
            old, new = was[id], now[id]
            found += [f"{id}, {name}:\n  was {old.get(name, 'not kept')}\n  now {new.get(name, 'not kept')}"
                      for name in old | new if old.get(name) != new.get(name)]
    return found


def accept(now: Mapping[str, Mapping]) -> list[str]:
    """Write ``conditions.json`` anew, in one step; returns what changed."""
    changed = changes(kept() if FILE.is_file() else {}, now)
    write_file(FILE, json.dumps({id: now[id] for id in sorted(now)}, ensure_ascii=False, indent=1) + "\n")
    return changed
