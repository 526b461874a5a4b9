"""The code behind a claim: which of a notebook's statements make its numbers. Read from the source, not executed."""

import ast
import re
import symtable
import tokenize
from collections.abc import Sequence
from typing import NamedTuple


class Statement(NamedTuple):
    """A statement of a notebook, and the names by which it hangs together with others."""

    text: str
    """Without comments and white space."""
    binds: frozenset[str]
    """Names that it assigns or defines; neither what it imports nor the variables of its loops."""
    changes: frozenset[str]
    """Names whose object it changes: ``found`` of ``found[1] = 2``, ``model`` of ``model.eval()``."""
    uses: frozenset[str]
    """Names that it takes from elsewhere in the notebook; of a function those that its call will take."""
    defines: bool
    """Whether it is a function or a class: what that uses is looked up when it is called."""
    given: frozenset[tuple[str, str]]
    """Functions that it calls, each with the name that is the first argument."""


def statements(source: str) -> list[Statement]:
    """The statements of a piece of a notebook's code, in order."""
    lines = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column] + "\n"
    text, found = "".join(lines), []
    for node in ast.parse(text).body:
        parts, defines = list(ast.walk(node)), isinstance(node, ast.FunctionDef | ast.ClassDef)
        stored = [part for part in parts if isinstance(getattr(part, "ctx", None), ast.Store)]
        binds = {node.name} if defines else {part.id for part in stored if isinstance(part, ast.Name)}
        changes = {_root(part) for part in stored if not isinstance(part, ast.Name)}
        if isinstance(node, ast.Expr):
            changes.add(_root(node.value))
        given = {(function, part.args[0].id) for part in parts if isinstance(part, ast.Call) and part.args
                 and isinstance(part.args[0], ast.Name) and (function := _root(part.func))}
        segment = ast.get_source_segment(text, node)
        found.append(Statement("".join(segment.split()), frozenset(binds - _loop_variables(node)),
                               frozenset(changes - {None}), _used(segment), defines, frozenset(given)))
    return found


def behind(measured: ast.expr, before: Sequence[Statement]) -> list[Statement]:
    """The statements before a claim that make what it has ``measured``, from name to name, backwards."""
    trains = {"fit"}.union(*(each.binds for each in before
                             if each.defines and re.search(r"fit\(|\.backward\(", each.text)))
    kept: set[int] = set()
    todo = [(name, len(before)) for name in _used(ast.unparse(measured))]
    while todo:
        name, end = todo.pop()
        start = max((i for i in range(end) if name in before[i].binds), default=end)
        makes = [i for i in range(start, end) if i == start or name in before[i].changes
                 or any(function in trains and first == name for function, first in before[i].given)]
        for i in sorted({*makes} - kept):
            kept.add(i)
            todo += [(used, end if before[i].defines else i) for used in before[i].uses]
    return [before[i] for i in sorted(kept)]


def _used(source: str) -> frozenset[str]:
    """Names that a piece of code takes from outside."""
    def free(table: symtable.SymbolTable) -> set[str]:
        inner = table.get_type() != "module"
        return {symbol.get_name() for symbol in table.get_symbols()
                if symbol.is_referenced() and (symbol.is_global() or not inner)}.union(*map(free, table.get_children()))

    return frozenset(free(symtable.symtable(source, "", "exec"))) - _loop_variables(ast.parse(source))


def _loop_variables(tree: ast.AST) -> set[str]:
    return {name.id for part in ast.walk(tree) if isinstance(part, ast.For | ast.comprehension)
            for name in ast.walk(part.target) if isinstance(name, ast.Name)}


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
