"""A claim's terms, among them its condition: comparisons of what was measured, parsed, evaluated and shown.

``'"BLEU, with" >= 80 and "BLEU, without" <= 25'``: quoted labels of measured numbers, numbers, ``+ - * /``, ``min``,
``max``, ``abs``, comparisons, and ``and`` between them. Nothing else is understood, and nothing is executed.
"""

import ast
import math
import operator
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

KINDS = ("experiment", "identity")
DRAWS = 300
_EXAMPLE = "Write it like '\"BLEU, with\" >= 80 and \"BLEU, without\" <= 25'."
_COMPARE = {ast.Lt: (operator.lt, "<"), ast.LtE: (operator.le, "≤"), ast.Gt: (operator.gt, ">"),
            ast.GtE: (operator.ge, "≥"), ast.Eq: (operator.eq, "="), ast.NotEq: (operator.ne, "≠")}
_ARITHMETIC = {ast.Add: (operator.add, "+"), ast.Sub: (operator.sub, "−"), ast.Mult: (operator.mul, "×"),
               ast.Div: (operator.truediv, "/")}
_FUNCTIONS = {"min": min, "max": max, "abs": abs}
_WORDS = {"min": "smallest of ", "max": "largest of "}


@dataclass(frozen=True)
class Terms:
    """When a claim holds, and against which rival; `claim` describes each field.

    Raises:
        TypeError, ValueError: if the condition is not one (see `parse`), or the kind or `expected` is something else.
    """

    condition: str
    kind: str = "experiment"
    rival: str = ""
    expected: bool = True

    def __post_init__(self):
        parse(self.condition)
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r}; expected 'experiment', or 'identity' for what only a bug can break.")
        if not isinstance(self.rival, str):
            raise TypeError(f"rival is {self.rival!r}, a {type(self.rival).__name__}; expected text.")
        if not isinstance(self.expected, bool):
            raise TypeError(f"expected is {self.expected!r}, a {type(self.expected).__name__}; expected True or False.")


def parse(text: str) -> tuple[ast.Compare, ...]:
    """The comparisons that must all be true.

    Raises:
        TypeError: if the condition is not text.
        ValueError: if it is not made of comparisons, or one of them compares nothing measured, or comes out the same
            for all numbers that are tried.
    """
    if not isinstance(text, str):
        raise TypeError(f"the condition is {text!r}, a {type(text).__name__}; expected text, because it is shown and "
                        f"kept. {_EXAMPLE}")
    return _parsed(text)


@cache
def _parsed(text: str) -> tuple[ast.Compare, ...]:
    try:
        comparisons = tuple(_clauses(ast.parse(text.strip(), mode="eval").body))
    except SyntaxError as problem:
        raise ValueError(f"the condition {text!r} is not an expression ({problem.msg}). {_EXAMPLE}") from None
    for comparison in comparisons:
        for left, sign, right in _links(comparison):
            for side in (left, right):
                _check(side)
            link = ast.unparse(ast.Compare(left, [sign], [right]))
            if type(sign) not in _COMPARE:
                raise ValueError(f"{link} in the condition {text!r} does not compare numbers. {_EXAMPLE}")
            if not _labels(left) | _labels(right):
                raise ValueError(f"{link} in the condition {text!r} compares nothing that was measured. {_EXAMPLE}")
            if (always := _always(left, sign, right)) is not None:
                raise ValueError(f"{link} in the condition {text!r} is {always} in each of {DRAWS} draws of what could "
                                 f"be measured. Compare what a measurement decides. {_EXAMPLE}")
    return comparisons


def check(text: str, measured: Mapping[str, float], shown: Mapping[str, str]) -> None:
    """Check that a condition can be evaluated.

    Args:
        text: the condition.
        measured: label to number.
        shown: label to what the card shows; also what cannot be compared.

    Raises:
        TypeError, ValueError: as `parse`, and if a label is not measured or is not a number.
    """
    for label in sorted(labels_of(text)):
        if label not in shown:
            raise ValueError(f"the condition {text!r} names {label!r}, which is not measured; measured are: "
                             f"{', '.join(map(repr, measured)) or 'no numbers'}. Use one of them, or measure it.")
        if label not in measured:
            raise ValueError(f"the condition {text!r} compares {label!r}, which is the text {shown[label]!r}. Give the "
                             "number, or (number, format), for example (0.961, '{:.0%}').")


def holds(text: str, measured: Mapping[str, float]) -> bool:
    """Whether all comparisons are true; one with NaN (also from a division by zero) never is."""
    return all(_truth(left, sign, right, measured) for comparison in parse(text)
               for left, sign, right in _links(comparison))


def in_words(text: str, percentages: Collection[str], label: Callable[[str], str] = "“{}”".format,
             sign: Callable[[str], str] = str) -> str:
    """The condition as a reader sees it: ``“BLEU, with” ≥ 80 and “BLEU, without” ≤ 25``.

    Args:
        text: the condition.
        percentages: the labels whose numbers are shown as percentages; beside them numbers are written so, too.
        label: how a label is written.
        sign: how everything else is written (for HTML: ``escape``).
    """
    return " and ".join(_comparison(comparison, text, percentages, label, sign) for comparison in parse(text))


def labels_of(text: str) -> set[str]:
    """The labels that a condition names; errors as for `parse`."""
    return set().union(*map(_labels, parse(text)))


def _labels(node: ast.AST) -> set[str]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def _clauses(node: ast.expr) -> Iterator[ast.Compare]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for value in node.values:
            yield from _clauses(value)
    elif isinstance(node, ast.Compare):
        yield node
    else:
        raise ValueError(f"{ast.unparse(node)} is not a comparison. Join comparisons by 'and'. {_EXAMPLE}")


def _links(comparison: ast.Compare) -> list[tuple[ast.expr, ast.cmpop, ast.expr]]:
    """The pairs of a chain: of ``a < b < c`` these are a < b and b < c."""
    sides = [comparison.left, *comparison.comparators]
    return list(zip(sides, comparison.ops, sides[1:], strict=False))


def _check(node: ast.expr) -> None:
    """Check that a side of a comparison consists of labels, numbers and known operations."""
    parts = _parts(node)
    if parts is None:
        raise ValueError(f"{ast.unparse(node)} is not understood in a condition; expected quoted labels, numbers, "
                         f"+ - * /, abs(one), min(two or more) or max(two or more). {_EXAMPLE}")
    for part in parts:
        _check(part)


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """The parts of a node; None if its kind is not allowed."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=str() | int() | float()):
            return []
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return [operand]
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
            return [left, right]
        case ast.Call(func=ast.Name(id="abs"), args=[_], keywords=[]):
            return node.args
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_], keywords=[]):
            return node.args
    return None


def _truth(left: ast.expr, sign: ast.cmpop, right: ast.expr, measured: Mapping[str, float]) -> bool:
    sides = _value(left, measured), _value(right, measured)
    return not any(map(math.isnan, sides)) and _COMPARE[type(sign)][0](*sides)


def _always(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> bool | None:
    """What a comparison gives for all numbers that are drawn, or None if they differ. NaN says nothing.

    None is certain; True or False is what `DRAWS` draws have shown.
    """
    rng, labels, found = random.Random(0), sorted(_labels(left) | _labels(right)), set()
    numbers = [abs(part.value) for side in (left, right) for part in ast.walk(side)
               if isinstance(part, ast.Constant) and not isinstance(part.value, str)]
    jumps = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) and _labels(part.right)
                for side in (left, right) for part in ast.walk(side))
    for _ in range(DRAWS):
        some = [0, 1, -1, *numbers, rng.uniform(0, 1), *(s * 10 ** rng.uniform(-6, 12) for s in (1, -1))]
        gap = _value(ast.BinOp(left, ast.Sub(), right), {label: rng.choice(some) for label in labels})
        if not math.isnan(gap):
            found.add((gap > 0) - (gap < 0))
        if {-1, 1} <= found and not jumps:                  # numbers between these make both sides equal
            found.add(0)
        if len({_COMPARE[type(sign)][0](gap, 0) for gap in found}) == 2:
            return None
    return _COMPARE[type(sign)][0](found.pop(), 0) if found else False


def _value(node: ast.expr, measured: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=str(label)):
            return measured[label]
        case ast.Constant(value=number):
            return number
        case ast.UnaryOp(operand=inner):
            return -_value(inner, measured)
        case ast.BinOp(op=op, left=left, right=right):
            try:
                return _ARITHMETIC[type(op)][0](_value(left, measured), _value(right, measured))
            except ZeroDivisionError:
                return math.nan
    values = [_value(argument, measured) for argument in node.args]
    # min and max would pass over a NaN that does not come first
    return math.nan if any(map(math.isnan, values)) else _FUNCTIONS[node.func.id](*values)


def _comparison(comparison: ast.Compare, text: str, percentages: Collection[str], label: Callable[[str], str],
                sign: Callable[[str], str]) -> str:
    scaled = any(isinstance(part, ast.Mult | ast.Div) for part in ast.walk(comparison))
    percent = not scaled and _labels(comparison) <= set(percentages)

    def write(node: ast.expr, inside: bool = False) -> str:
        match node:
            case ast.Constant(value=str(name)):
                return label(name)
            case ast.Constant(value=number):
                spelled = ast.get_source_segment(text.strip(), node)
                return f"{100 * number:g}%" if percent else spelled.replace("_", ",")
            case ast.UnaryOp(operand=operand):
                return f"−{write(operand, inside=True)}"
            case ast.BinOp(op=op, left=left, right=right):
                loose = isinstance(op, ast.Mult | ast.Div) and isinstance(left, ast.BinOp)
                words = f"{write(left, loose)} {_ARITHMETIC[type(op)][1]} {write(right, inside=True)}"
                return f"({words})" if inside else words
        arguments = "; ".join(map(write, node.args))
        return f"|{arguments}|" if node.func.id == "abs" else f"{_WORDS[node.func.id]}({arguments})"

    words = write(comparison.left)
    for _, op, right in _links(comparison):
        words += f" {sign(_COMPARE[type(op)][1])} {write(right)}"
    return words
