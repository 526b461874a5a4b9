"""What the notebooks' sources declare of each claim."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from inspect import signature
from pathlib import Path

from ..course import CourseError
from . import card
from .accepted import read_json
from .code_behind import Statement, behind, statements
from .condition import Terms
from .stored import EXPERIMENTS

_LITERAL = ("id", "says", "source", "holds", "kind", "rival", "expected")


@dataclass(frozen=True)
class Declared:
    """A call of ``claim`` in a notebook's source."""

    id: str
    says: str
    source: str
    published: ast.expr
    """The source of what it says was published."""
    measured: ast.expr
    """The source of what it measures."""
    terms: Terms
    notebook: Path
    cell: int
    """Number of its cell, counted from 1, text cells included."""
    stored: bool
    """Whether its numbers come from a stored measurement."""
    made_by: str
    """A digest of the notebook's code that makes its numbers, see `code_behind`; if stored, also of the script."""

    def row(self) -> dict[str, str | bool]:
        """What may not change unnoticed, as ``conditions.json`` keeps it."""
        return {"says": self.says, "source": self.source, "published": ast.unparse(self.published),
                "measured": ast.unparse(self.measured), "made_by": self.made_by, **asdict(self.terms)}


def declared(path: Path) -> list[Declared]:
    """The claims that a notebook declares; nothing is executed.

    Raises:
        CourseError: if the file is not a notebook, an argument that is kept is not written out, or a condition is not
            one.
    """
    found, before = [], []
    for number, source in code_cells(path):
        before += statements(source)
        if re.search(r"\bclaim\(", source):
            calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
                     and "claim" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))]
            found += [_declared(call, path, number, before) for call in sorted(calls, key=lambda call: call.lineno)]
    return found


def code_cells(path: Path) -> Iterator[tuple[int, str]]:
    """Number, counted from 1, and source of each code cell; a line that only IPython understands is ``pass``."""
    for number, cell in enumerate(read_json(path)["cells"], start=1):
        if cell["cell_type"] == "code":
            yield number, re.sub(r"(?m)^\s*[%!].*$", "pass", "".join(cell["source"]))


def _declared(call: ast.Call, path: Path, cell: int, before: Sequence[Statement]) -> Declared:
    given = dict(zip(signature(card.claim).parameters, call.args, strict=False))
    given |= {word.arg: word.value for word in call.keywords}
    try:
        written = {name: ast.literal_eval(given[name]) for name in _LITERAL if name in given}
        id, says, source, holds = map(written.pop, ("id", "says", "source", "holds"))
        published, measured = given["published"], given["measured"]
    except (ValueError, KeyError):
        raise CourseError(f"{path.name}, cell {cell}: {ast.unparse(call)[:60]} …: give published and measured, and "
                          "write id, says, source, holds, kind, rival and expected out as text and True or False; "
                          "they are compared with conditions.json.") from None
    try:
        terms = Terms(holds, **written)
    except (ValueError, TypeError) as problem:
        raise CourseError(f"{path.name}, cell {cell}, claim {id}: {problem}") from None
    code = "".join(statement.text for statement in behind(measured, before))
    made_by = sha256((code + (_scripts(code) if "stored" in given else "")).encode()).hexdigest()[:12]
    return Declared(id, says, source, published, measured, terms, path, cell, "stored" in given, made_by)


def rows(claims: Iterable[Declared]) -> dict[str, dict]:
    """Id to row.

    Raises:
        CourseError: if an id occurs twice.
    """
    found: dict[str, dict] = {}
    for claim in claims:
        if claim.id in found:
            raise CourseError(f"claim {claim.id} is declared twice, the second time in {claim.notebook.name}, cell "
                              f"{claim.cell}. Give one of them another id.")
        found[claim.id] = claim.row()
    return found


def _scripts(code: str) -> str:
    """The code of the scripts in ``experiments/`` that made the stored measurements which ``code`` reads, and of the
    notebooks that such a script executes."""
    written = []
    for name in sorted(set(re.findall(r"""stored\(["'](\w+)""", code))):
        path = EXPERIMENTS / f"{name}.json"
        if path.is_file():
            script = (EXPERIMENTS / re.search(r"\w+\.py", read_json(path)["command"])[0]).read_text("utf-8")
            written += statements(script) + _of_notebooks(script)
    return "".join(statement.text for statement in written)


def _of_notebooks(script: str) -> tuple[Statement, ...]:
    """What a script executes of the notebooks that it names: what they bind to the names that stand there in quotes."""
    quoted = {part.value for part in ast.walk(ast.parse(script)) if isinstance(part, ast.Constant)}
    found = []
    for name in sorted(text for text in quoted if isinstance(text, str) and text.endswith(".ipynb")):
        path = EXPERIMENTS.parent / "notebooks" / name
        before = [each for _, source in code_cells(path) for each in statements(source)]
        wanted = sorted(quoted & {name for each in before for name in each.binds})
        found += behind(ast.parse(f"({', '.join(wanted)},)", mode="eval").body, before)
    return tuple(found)
