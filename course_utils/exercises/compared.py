"""Two results held together: whether they agree, and what is wrong with the first, in words."""

from numbers import Real

import torch
from torch import Tensor

MANY = 40  # elements: a longer list is not shown whole


def largest_difference(mine, right) -> tuple[float, tuple[tuple[int, ...], ...]]:
    """The largest absolute difference between two results, and the indices that lead to it.

    ``((1,), (0, 2))`` is the number at ``[0, 2]`` of a tuple's second tensor; one number by itself has no index.
    """
    if isinstance(right, tuple | list):
        found = [largest_difference(a, b) for a, b in zip(mine, right, strict=True)]
        number = max(range(len(found)), key=lambda i: found[i][0])
        return found[number][0], ((number,), *found[number][1])
    if isinstance(right, Tensor):
        gap = (mine.detach().double() - right.detach().double()).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
        gap[mine == right] = 0.0                                               # two equal infinities
        if gap.numel() == 0:
            return 0.0, ()
        where = tuple(int(i) for i in torch.unravel_index(gap.argmax(), gap.shape))
        return gap.max().item(), (where,) if where else ()
    return (abs(mine - right) if isinstance(right, Real) else float(mine != right)), ()


def place(where: tuple[tuple[int, ...], ...]) -> str:
    """What `largest_difference` found as text: ``[1][0, 2]``."""
    return "".join(str(list(index)) for index in where)


def inexact(right) -> bool:
    """Whether a result has floating-point numbers, of which a difference can be told; a dict's are not looked at."""
    if isinstance(right, tuple | list):
        return any(map(inexact, right))
    return right.is_floating_point() if isinstance(right, Tensor) else isinstance(right, float)


def at_most(difference: float, tol: float = 1e-5) -> str:
    """A difference as text that is the same on every processor: rounding noise is only bounded."""
    return f"below {tol:.0e}".replace("e-0", "e-") if difference < tol else f"{difference:.1e}"


def close(mine, right, tol: float = 1e-5) -> bool:
    """Whether two results agree in type, shape, dtype and value (NaN agrees with NaN)."""
    if isinstance(right, Exception):
        return type(mine) is type(right) and str(mine) == str(right)
    if isinstance(right, tuple | list):
        return (isinstance(mine, tuple | list) and len(mine) == len(right)
                and all(close(a, b, tol) for a, b in zip(mine, right, strict=True)))
    if isinstance(right, dict):
        return (isinstance(mine, dict) and mine.keys() == right.keys()
                and all(close(mine[key], right[key], tol) for key in right))
    if isinstance(right, Tensor):
        if not (isinstance(mine, Tensor) and _beside(mine, right) and mine.shape == right.shape
                and mine.dtype == right.dtype):
            return False
        tol = max(tol, 4 * torch.finfo(right.dtype).eps) if right.is_floating_point() else 0.0
        return torch.allclose(mine.detach(), right.detach(), rtol=tol, atol=tol, equal_nan=True)
    if isinstance(right, Real) and isinstance(mine, Real):
        return abs(mine - right) <= tol
    return type(mine) is type(right) and mine == right


def _beside(mine: Tensor, right: Tensor) -> bool:
    """Whether a tensor's numbers lie where they can be compared: not sparse, nested or left out (meta)."""
    return mine.layout == torch.strided and not mine.is_nested and not mine.is_meta and mine.device == right.device


def wrong_form(name: str, axes: str, mine, right) -> str:
    """What is wrong with the type of a result, its keys, shape or dtype, or that it is NaN; or an empty string."""
    if what := _wrong_type(name, mine, right):
        return what
    if isinstance(right, Tensor):
        return _wrong_tensor(name, axes, mine, right)
    if isinstance(right, dict):
        forms = (wrong_form(f"{name}[{key!r}]", axes, mine[key], right[key]) for key in right)
        return _wrong_keys(name, mine, right) or next(filter(None, forms), "")
    if isinstance(right, set):
        return _wrong_elements(name, mine)
    return "" if mine == mine else f"{name} is NaN."


def _wrong_type(name: str, mine, right) -> str:
    if isinstance(mine, tuple) and any(isinstance(part, type(right)) for part in mine):
        return f"Wrong type: it returns a tuple of {len(mine)}; return only the {name}."
    is_number = isinstance(right, float) and isinstance(mine, Real) and not isinstance(mine, bool)
    if is_number or isinstance(mine, type(right)):
        return ""
    hint = ""
    if isinstance(right, Tensor):
        hint = (" Stay in torch: NumPy and lists carry no gradient." if right.is_floating_point()
                else " torch.tensor(...) makes one.")
    elif isinstance(right, bool | int | float | str):
        hint = f" {type(right).__name__}(...) makes one."
    return f"Wrong type: {name} is {kind_of(mine)}; expected {kind_of(right)}.{hint}"


def _wrong_keys(name: str, mine: dict, right: dict) -> str:
    missing, extra = [key for key in right if key not in mine], [key for key in mine if key not in right]
    if not missing and not extra:
        return ""
    return f"Wrong keys: {name} lacks {missing or 'nothing'} and has {extra or 'nothing'} too much."


def _wrong_elements(name: str, mine: set) -> str:
    """A set holds ints, or tuples of ints."""
    for element in mine:
        for number in element if isinstance(element, tuple) else (element,):
            if type(number) is not int:
                return (f"Wrong type: {name} contains {number!r}, a {type(number).__name__}; "
                        "expected plain ints (.tolist()).")
    return ""


def _wrong_tensor(name: str, axes: str, mine: Tensor, right: Tensor) -> str:
    if not _beside(mine, right):
        kept = "nested" if mine.is_nested else str(mine.layout).removeprefix("torch.")
        return (f"Wrong kind of tensor: {name} is {kept} on {mine.device}; expected an ordinary tensor on "
                f"{right.device}.")
    if mine.shape != right.shape:
        named = f"({axes}) = " if axes else ""
        return (f"Wrong shape: {name} is {tuple(mine.shape)}; expected {named}{tuple(right.shape)}."
                f"{_shape_hint(mine.shape, right.shape)}")
    if mine.dtype != right.dtype:
        return f"Wrong dtype: {name} is {mine.dtype}; expected {right.dtype}."
    nan = mine.isnan()
    if nan.any() and not right.isnan().any():
        first = nan.nonzero()[0].tolist()
        return f"NaN: {int(nan.sum())} of {nan.numel()} numbers in {name} are NaN, the first at {first}."
    return ""


def _shape_hint(mine: torch.Size, right: torch.Size) -> str:
    if sorted(mine) == sorted(right):
        return " The sizes are right, their order is not: two axes are swapped."
    if len(mine) == len(right):
        return ""
    hint = f" It has {len(mine)} {'axis' if len(mine) == 1 else 'axes'} instead of {len(right)}."
    if len(mine) > len(right) and [n for n in mine if n != 1] == [n for n in right if n != 1]:
        hint += " One of length one is left over: squeeze(dim) or an index drops it."
    return hint


def kind_of(value) -> str:
    """A type's name with its article, and its library's unless it is Python's or torch's: numpy has its own bool."""
    library = type(value).__module__.split(".")[0]
    kind = f"{library}.{type(value).__name__}" if library == "numpy" else type(value).__name__
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def same_type(mine, other) -> bool:
    """Whether two results are of one type, parts of a tuple or list too: a fault is named only then."""
    if isinstance(mine, tuple | list) and type(mine) is type(other):
        return len(mine) == len(other) and all(map(same_type, mine, other))
    return type(mine) is type(other)


def wrong_value(name: str, mine, right) -> str:
    """What is wrong with the numbers of a result of the right form, or an empty string."""
    if close(mine, right):
        return ""
    if isinstance(right, set):
        missing, extra = (_as_text(part, 4) if part else "nothing" for part in (right - mine, mine - right))
        return f"Wrong values: {name} lacks {missing} and has {extra} too much."
    if isinstance(right, dict):
        return next(filter(None, (wrong_value(f"{name}[{key!r}]", mine[key], right[key]) for key in right)))
    if isinstance(right, list) and len(right) > MANY:
        if len(mine) != len(right):
            return f"Wrong length: {name} has {len(mine)} elements; expected {len(right)}."
        i = next(i for i, pair in enumerate(zip(mine, right, strict=True)) if not close(*pair))
        return f"Wrong value: {name}[{i}] is {mine[i]!r}; expected {right[i]!r}."
    if isinstance(right, bool) or not isinstance(right, Tensor | Real):
        return f"Wrong value: {name} is {mine!r}; expected {right!r}."
    if not isinstance(right, Tensor):
        return "Wrong value: {} is {}; expected {}.".format(name, *_apart(mine, right))
    if right.dtype == torch.bool:
        wrong = mine != right
        first = wrong.nonzero()[0].tolist()
        return (f"Wrong values: {int(wrong.sum())} of {wrong.numel()} in {name} are wrong, the first at {first}: "
                f"{mine[tuple(first)].item()} instead of {right[tuple(first)].item()}.")
    gap, where = largest_difference(mine, right)
    at = where[0] if where else ()
    form = ".3g" if right.is_floating_point() else ".0f"
    return (f"Wrong values: the largest difference is {gap:{form}}, at {name}{place(where)}: "
            f"{' instead of '.join(_apart(mine[at].item(), right[at].item()))}.")


def _apart(mine: Real, right: Real) -> tuple[str, str]:
    """Two different numbers as text: whole, or four digits, and more only if they would look the same."""
    if isinstance(mine, int) and isinstance(right, int):
        return str(mine), str(right)
    texts = ((f"{mine:.{digits}g}", f"{right:.{digits}g}") for digits in range(4, 18))
    return next((pair for pair in texts if pair[0] != pair[1]), (str(mine), str(right)))


def _as_text(items: set, most: int | None = None) -> str:
    """A set of ints or tuples of ints in order, which is the same in every run; at most so many of them."""
    ordered = sorted(items, key=lambda item: (isinstance(item, tuple), item))
    shown = [*map(repr, ordered[:most])]
    if len(shown) < len(ordered):
        shown.append("…")
    return f"{{{', '.join(shown)}}}" if items else "set()"


def in_words(name: str, value) -> str:
    """An argument, in words."""
    if isinstance(value, Tensor):
        kind = "" if value.dtype == torch.float32 else f" {str(value.dtype).removeprefix('torch.')}"
        return f"{name} {tuple(value.shape)}{kind}"
    if isinstance(value, torch.Generator):
        return f"{name} with seed {value.initial_seed()}"
    if isinstance(value, list) and len(str(value)) > 200 and all(isinstance(part, list) for part in value):
        several = "s" * (len(value) > 1)
        return f"{name}: {len(value)} list{several} of length {', '.join(str(len(part)) for part in value)}"
    if isinstance(value, list) and len(value) > MANY:
        return f"{name}: a list of length {len(value)}"
    if isinstance(value, float):
        return f"{name} = {value:.4g}"
    return f"{name} = {_as_text(value) if isinstance(value, set) else repr(value)}"
