"""The code behind a claim: which of a notebook's statements make its numbers. Read from the source, not executed."""

import ast
import re
import tokenize
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from ..publish.code import binds, takes


class Statement(NamedTuple):
    """A statement of a notebook, and the names by which it hangs together with others."""

    text: str
    """Without comments and white space; where a line of a block begins stands a mark, and how deep it is in it."""
    binds: frozenset[str]
    """Names that it assigns or defines; neither what it imports nor the variables of its loops."""
    changes: frozenset[str]
    """Names whose object it changes: ``found`` of ``found[1] = 2``, ``model`` of ``model.eval()``."""
    uses: frozenset[str]
    """Names that it takes from elsewhere in the notebook; of a function those that its call will take."""
    defines: bool
    """Whether it is a function or a class: what that uses is looked up when it is called."""
    acts: bool
    """Whether it may change whatever it reaches: loops and the like, and calls that do more than show."""


CHANGES = re.compile(r"fit\(|\.backward\(|\.step\(|\.load_state_dict\(|\w_\(")
"""How code changes the objects that it is given: training, loading weights, a method in place such as ``zero_()``."""

SHOWS = {"axes", "claim", "display", "figure", "plotting", "plt", "print"}
"""Who only draws or shows. A cell that begins with ``# plot`` does no more than that either."""


@cache
def statements(source: str) -> tuple[Statement, ...]:
    """The statements of a piece of a notebook's code, in order."""
    lines = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column] + "\n"
    text, found, draws = "".join(lines), [], source.lstrip().startswith("# plot")
    for node in ast.parse(text).body:
        parts, defines = list(ast.walk(node)), isinstance(node, ast.FunctionDef | ast.ClassDef)
        stored = [part for part in parts if isinstance(getattr(part, "ctx", None), ast.Store)]
        changes = {_root(part) for part in stored if not isinstance(part, ast.Name)}
        if _keeps_nothing(node):
            changes.add(_root(node.value))
        decorators = [each.lineno for each in getattr(node, "decorator_list", ())]
        above = "".join(lines[min(decorators, default=node.lineno) - 1:node.lineno - 1])
        segment = above + ast.get_source_segment(text, node)
        written, used = _written(segment), takes(segment)
        if "=check(" in written:
            used |= binds(node)                            # an exercise: check("part") takes the part written before it
        found.append(Statement(written, binds(node), frozenset(changes - {None}), used,
                               defines, not draws and _acts(node)))
    return tuple(found)


def _written(segment: str) -> str:
    lines, depth, begins = segment.splitlines(keepends=True), 0, False
    for token in tokenize.generate_tokens(iter(segment.splitlines(keepends=True)).__next__):
        depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
        if token.type in (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.ENDMARKER):
            continue
        if begins:
            lines[token.start[0] - 1] = f"¶{depth}" + lines[token.start[0] - 1]
        begins = token.type == tokenize.NEWLINE
    return "".join("".join(lines).split())


def behind(measured: ast.expr, before: Sequence[Statement]) -> list[Statement]:
    """The statements before a claim that make what it has ``measured``, from name to name, backwards.

    What may have changed a name counts as making it: a statement that acts, or trains something, and reaches the name,
    itself or through the functions that it calls. So does the seed last set before each.
    """
    defined: dict[str, list[Statement]] = {}
    for each in before:
        for name in each.binds if each.defines else ():
            defined.setdefault(name, []).append(each)
    changed = [each.changes | _may_change(each, defined) for each in before]
    kept: set[int] = set()
    todo = [(name, len(before)) for name in takes(ast.unparse(measured))]
    for name, end in todo:                                 # grows; a name before each of those who use it
        start = max((i for i in range(end) if name in before[i].binds), default=end)
        by = [before[i].changes if before[start].defines else changed[i] for i in range(start, end)]
        makes = {i for i, names in enumerate(by, start) if i == start or name in names}
        makes |= {max(seeds) for i in makes if (seeds := [j for j in range(i) if "manual_seed(" in before[j].text
                                                          and before[j].changes == {"torch"}])}
        kept |= makes
        todo += {(used, end if before[i].defines else i) for i in makes for used in before[i].uses}.difference(todo)
    return [before[i] for i in sorted(kept)]


def _may_change(statement: Statement, defined: Mapping[str, Sequence[Statement]]) -> frozenset[str]:
    """All names that a statement reaches, if it acts or changes something; a function's definition does nothing."""
    reached, parts = set(), [statement]
    for part in parts:                                     # grows: the functions that it calls, and theirs
        new = part.uses - reached
        reached |= new
        parts += [each for name in new for each in defined.get(name, ())]
    does = statement.acts or any(CHANGES.search(part.text) for part in parts)
    return frozenset(reached if does and not statement.defines else ())


def _acts(node: ast.stmt) -> bool:
    if _keeps_nothing(node):
        return any(isinstance(part, ast.Call) for part in ast.walk(node)) and _root(node.value) not in SHOWS
    return hasattr(node, "body") and not all(isinstance(part, ast.Expr) and not _acts(part) for part in node.body)


def _keeps_nothing(node: ast.stmt) -> bool:
    """Whether a value is made for what that does: ``found.sort()``, ``_ = found.sort()``."""
    return isinstance(node, ast.Expr) or (isinstance(node, ast.Assign) and binds(node) == {"_"})


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
