"""Which names a piece of a notebook's code binds, and which it takes from elsewhere; read from the source."""

import ast
import symtable


def binds(node: ast.stmt) -> frozenset[str]:
    """The names that a statement defines or assigns; neither what it imports nor the variables of its loops."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return frozenset({node.name})
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name)
                     and isinstance(part.ctx, ast.Store)) - _loop_variables(node)


def takes(source: str) -> frozenset[str]:
    """The names that code takes from outside: read at its top, or in a function that does not bind them."""
    def free(table: symtable.SymbolTable) -> set[str]:
        inner = table.get_type() != "module"
        return {symbol.get_name() for symbol in table.get_symbols()
                if symbol.is_referenced() and (symbol.is_global() or not inner)}.union(*map(free, table.get_children()))

    return frozenset(free(symtable.symtable(source, "", "exec"))) - _loop_variables(ast.parse(source))


def _loop_variables(tree: ast.AST) -> frozenset[str]:
    return frozenset(name.id for part in ast.walk(tree) if isinstance(part, ast.For | ast.comprehension)
                     for name in ast.walk(part.target) if isinstance(name, ast.Name))
