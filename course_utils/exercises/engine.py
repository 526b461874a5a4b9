"""Runs a student's function beside the reference and says what is wrong and why."""

import inspect
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from numbers import Real
from traceback import format_exception, walk_tb
from typing import Any

import torch
from torch import Tensor

from course_utils import attention

N_INPUTS = 5  # random inputs a condition: enough that sizes differ, few enough to be instant


class WrongAnswer(AssertionError):  # noqa: N818 (a verdict, not an error of the program)
    """The message says what is wrong and why."""

    def _render_traceback_(self) -> list[str]:
        """In a notebook: the message, and of the traceback only the student's own lines."""
        cause = self.__cause__
        lines = format_exception(type(cause), cause, cause.__traceback__.tb_next) if cause else []
        return ["".join(lines) + f"WrongAnswer: {self}"]


@dataclass(frozen=True)
class Exercise:
    """What a student is asked to write, and the ways in which it goes wrong.

    Args:
        reference: the right function; its name is the exercise's, its parameters are the signature.
        returns: each returned thing's name and axes, for example ``{"weights": "B, T_q, T_k"}``.
            More than one: the function returns a tuple.
        cases: condition → maker of random arguments, ``make(generator) -> tuple``. The first condition is
            the ordinary one, mostly "on ordinary inputs"; with it they complete "right …, but wrong …".
        faults: known wrong functions, with the sentence that explains each. The first whose results
            equal the student's, up to and including the failing condition, is named.
    """

    reference: Callable
    returns: dict[str, str]
    cases: dict[str, Callable[[torch.Generator], tuple]]
    faults: tuple[tuple[str, Callable], ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.reference.__name__

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, in order."""
        return list(inspect.signature(self.reference).parameters)

    def judge(self, function) -> tuple[bool, str]:
        """Compare a function with the exercise's reference.

        Returns:
            `True` and what was compared; or `False` and what is still to be written: the function is a stub (it raises
            `NotImplementedError`, or returns `None` or an ellipsis), or it calls one.

        Raises:
            WrongAnswer: what is wrong, why, and on which inputs; chained to the function's own exception.
        """
        _check_signature(self, function)
        largest, tried = None, []
        for condition, make in self.cases.items():
            inputs = [make(torch.Generator().manual_seed(seed)) for seed in range(N_INPUTS)]
            results, changed = zip(*(_attempt(function, arguments) for arguments in inputs), strict=True)
            if largest is None and (unwritten := _unwritten(self, results[0])):
                return False, unwritten
            tried += zip(inputs, results, strict=True)
            expected = [_attempt(self.reference, arguments)[0] for arguments in inputs]
            for arguments, mine, right, moved in zip(inputs, results, expected, changed, strict=True):
                what = _wrong_result(self, mine, right, moved)
                why = _named_fault(self, tried) if what and moved is None else ""
                what = what or _wrong_gradient(self, function, arguments)
                if what:
                    self._reject("" if largest is None else condition, what, arguments, mine, why)
            if largest is None:
                largest = max(largest_difference(*pair)[0] for pair in zip(results, expected, strict=True))
        special = len(self.cases) - 1
        also = f" and in {special} special case{'s' * (special > 1)}" if special else ""
        gap = f"; largest difference {at_most(largest)}" if _is_rounded(right) else ""
        return True, f"{self.name}: right on {N_INPUTS} random inputs{also}{gap}."

    def _reject(self, condition: str, what: str, arguments: tuple, mine, why: str = ""):
        """Raise the verdict; `condition` is that of a special case."""
        where = f"Right {next(iter(self.cases))}, but wrong {condition}.\n" if condition else ""
        given = ", ".join(map(_describe, self.parameters, arguments))
        cause = mine if isinstance(mine, Exception) else None
        raise WrongAnswer(f"{self.name}: {where}{what}\nInputs: {given}.{why}") from cause


def largest_difference(mine, right) -> tuple[float, str]:
    """The largest absolute difference between two results, and where it is, for example ``[0, 2]``."""
    if isinstance(right, tuple | list):
        found = [largest_difference(a, b) for a, b in zip(mine, right, strict=True)]
        number = max(range(len(found)), key=lambda i: found[i][0])
        return found[number][0], f"[{number}]{found[number][1]}"
    if isinstance(right, Tensor):
        gap = (mine.detach().double() - right.detach().double()).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
        gap[mine == right] = 0.0                                               # two equal infinities
        if gap.numel() == 0:
            return 0.0, ""
        where = [int(i) for i in torch.unravel_index(gap.argmax(), gap.shape)]
        return gap.max().item(), str(where) if where else ""
    return (abs(mine - right) if isinstance(right, Real) else float(mine != right)), ""


def _is_rounded(right) -> bool:
    """Whether a result has floating-point numbers, of which a difference can be told; a dict's are not looked at."""
    if isinstance(right, tuple | list):
        return any(map(_is_rounded, right))
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
        if not isinstance(mine, Tensor) or mine.shape != right.shape or mine.dtype != right.dtype:
            return False
        tol = max(tol, 4 * torch.finfo(right.dtype).eps) if right.is_floating_point() else 0.0
        return torch.allclose(mine.detach(), right.detach(), rtol=tol, atol=tol, equal_nan=True)
    if isinstance(right, Real) and isinstance(mine, Real):
        return abs(mine - right) <= tol
    return type(mine) is type(right) and mine == right


def _unwritten(exercise: Exercise, result) -> str:
    """What is still to be written, this function or one that it calls; an empty string if nothing is."""
    if isinstance(result, NotImplementedError):
        if "not implemented for '" in str(result):  # torch: this operation, on this dtype
            return ""
        frames = [frame.f_code.co_name for frame, _ in walk_tb(result.__traceback__)]  # _attempt, function, called …
        called = frames[-1] if len(frames) > 2 else exercise.name
        if called != exercise.name:
            ours = f" (or use attention.{called})" if hasattr(attention, called) else ""
            return f"{exercise.name} calls {called}, which is not written yet. Write that first{ours}."
    elif result is not None and result is not ...:
        return ""
    return f"{exercise.name}: not written yet. (If you did write it: does it end with `return`?)"


def _check_signature(exercise: Exercise, function) -> None:
    wanted = f"{exercise.name}({', '.join(exercise.parameters)})"
    if not callable(function):
        raise WrongAnswer(f"{exercise.name} is a {type(function).__name__}, not a function. Was the name used "
                          f"again for a result? Run the cell with `def {wanted}` once more.")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-in functions have none
        return
    named = [name for name in signature.parameters if name in exercise.parameters]
    try:
        signature.bind(*exercise.parameters)
        fits = len(named) < len(exercise.parameters) or named == exercise.parameters
    except TypeError:
        fits = False
    if not fits:
        raise WrongAnswer(f"{exercise.name} has the signature {exercise.name}{signature}; expected {wanted}, "
                          "called with the arguments in this order.")


def _attempt(function, arguments: tuple) -> tuple[Any, int | None]:
    """The result or the exception, and the number of the first argument that was changed."""
    copies = tuple(_copy(argument) for argument in arguments)
    try:
        result = function(*copies)
    except Exception as error:  # whatever a student's code raises is part of the diagnosis
        result = error
    changed = (i for i, pair in enumerate(zip(copies, arguments, strict=True)) if not close(*pair, tol=0.0))
    return result, next(changed, None)


def _copy(argument):
    return argument.clone() if isinstance(argument, Tensor) else deepcopy(argument)


def _wrong_result(exercise: Exercise, mine, right, changed: int | None) -> str:
    """What is wrong with one result, or an empty string."""
    if isinstance(mine, Exception):
        return f"It raised {type(mine).__name__}: {mine}"
    names = list(exercise.returns)
    if len(names) == 1:
        mine, right = (mine,), (right,)
    elif not isinstance(mine, tuple | list) or len(mine) != len(names):
        got = f"{len(mine)} things" if isinstance(mine, tuple | list) else f"one {type(mine).__name__}"
        return f"Wrong type: it returns {got}; expected {len(names)}: return {', '.join(names)}."
    for name, a, b in zip(names, mine, right, strict=True):
        if what := _wrong_form(name, exercise.returns[name], a, b):
            return what
    if changed is not None:
        name = exercise.parameters[changed]
        return (f"The argument `{name}` was changed: the caller's {name} is different after the call. Methods that "
                "end in _ , a list's append or sort, and += or [...] = on an argument, write into it. Make a new "
                "tensor, list or set instead.")
    for name, a, b in zip(names, mine, right, strict=True):
        if what := _wrong_value(name, a, b):
            return what
    return ""


def _wrong_form(name: str, axes: str, mine, right) -> str:
    """Type, shape, dtype and NaN."""
    number = isinstance(right, float) and isinstance(mine, Real) and not isinstance(mine, bool)
    if isinstance(mine, tuple) and any(isinstance(part, type(right)) for part in mine):
        return f"Wrong type: it returns a tuple of {len(mine)}; return only the {name}."
    if not isinstance(mine, type(right)) and not number:
        hint = ""
        if isinstance(right, Tensor):
            hint = (" Stay in torch: NumPy and lists carry no gradient." if right.is_floating_point()
                    else " torch.tensor(...) makes one.")
        elif isinstance(right, bool) and isinstance(mine, Tensor):
            hint = " bool(...) makes one, of a tensor with one number."
        return (f"Wrong type: {name} is a {type(mine).__name__}; expected a {type(right).__name__}.{hint}")
    if isinstance(right, set):
        odd = next((part for pair in mine for part in (pair if isinstance(pair, tuple) else (pair,))
                    if type(part) is not int), None)
        if odd is not None:
            return f"Wrong type: {name} contains {odd!r}, a {type(odd).__name__}; expected plain ints (.tolist())."
    if isinstance(right, dict):
        missing, extra = [key for key in right if key not in mine], [key for key in mine if key not in right]
        if missing or extra:
            return f"Wrong keys: {name} lacks {missing or 'nothing'} and has {extra or 'nothing'} too much."
        forms = (_wrong_form(f"{name}[{key!r}]", axes, mine[key], right[key]) for key in right)
        return next(filter(None, forms), "")
    if not isinstance(right, Tensor):
        return "" if mine == mine else f"{name} is NaN."
    if mine.shape != right.shape:
        named = f"({axes}) = " if axes else ""
        return (f"Wrong shape: {name} is {tuple(mine.shape)}; expected {named}{tuple(right.shape)}."
                + _shape_hint(mine.shape, right.shape))
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
    if len(mine) != len(right):
        return f" It has {len(mine)} axes instead of {len(right)}."
    return ""


def _wrong_value(name: str, mine, right) -> str:
    if close(mine, right):
        return ""
    if isinstance(right, set):
        missing, extra = (_as_text(part, 4) if part else "nothing" for part in (right - mine, mine - right))
        return f"Wrong values: {name} lacks {missing} and has {extra} too much."
    if isinstance(right, dict):
        return next(filter(None, (_wrong_value(f"{name}[{key!r}]", mine[key], right[key]) for key in right)))
    if isinstance(right, bool) or not isinstance(right, Tensor | Real):
        return f"Wrong value: {name} is {mine!r}; expected {right!r}."
    if not isinstance(right, Tensor):
        return f"Wrong value: {name} is {mine:.4g}; expected {right:.4g}."
    if right.dtype == torch.bool:
        wrong = mine != right
        first = wrong.nonzero()[0].tolist()
        return (f"Wrong values: {int(wrong.sum())} of {wrong.numel()} in {name} are wrong, the first at {first}: "
                f"{mine[tuple(first)].item()} instead of {right[tuple(first)].item()}.")
    gap, where = largest_difference(mine, right)
    at = tuple(int(i) for i in where.strip("[]").split(",")) if where else ()
    return (f"Wrong values: the largest difference is {gap:.3g}, at {name}{where}: "
            f"{mine[at].item():.4g} instead of {right[at].item():.4g}.")


def _wrong_gradient(exercise: Exercise, function, arguments: tuple) -> str:
    """The values are right: do gradients flow to the same arguments, with the same values?"""
    right = _gradients(exercise.reference, arguments)
    mine = _gradients(function, arguments) if right else {}
    for i, gradient in right.items():
        name, found = exercise.parameters[i], mine.get(i)
        if isinstance(found, Exception):
            return f"Right values, but it raised {type(found).__name__} when gradients were asked for: {found}"
        if gradient.any() and (found is None or not found.any()):
            return (f"The gradient is cut: no gradient reaches `{name}`, so nothing could be learned through it. "
                    "Look for .detach(), .data, .item(), torch.tensor(...), torch.no_grad() or NumPy on the way.")
        if found is not None and not close(found, gradient, tol=1e-4):
            kind, look = ("not the function's gradient", ".detach(), .data or torch.no_grad() on a part of the way")
            if not found.isfinite().all():
                kind, look = "not finite", ("0/0, log 0 or infinity on the way: `nan_to_num` and `where` repair such a "
                                            "value, and not its gradient")
            return (f"The gradient is wrong: the values are right, but what flows back to `{name}` is {kind}. "
                    f"Look for {look}.")
    return ""


def _gradients(function, arguments: tuple) -> dict[int, Tensor | Exception]:
    """Gradient of a fixed random sum of the outputs, for each float32 argument that gets one."""
    leaves = {i: argument.clone().requires_grad_() for i, argument in enumerate(arguments)
              if isinstance(argument, Tensor) and argument.dtype == torch.float32}
    try:
        outputs = function(*(leaves.get(i, argument) for i, argument in enumerate(arguments)))
        outputs = [out for out in (outputs if isinstance(outputs, tuple | list) else [outputs])
                   if isinstance(out, Tensor) and out.requires_grad]
        if not outputs:
            return {}
        rng = torch.Generator().manual_seed(0)
        total = sum((out * torch.randn(out.shape, generator=rng)).sum() for out in outputs)
        found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    except Exception as error:  # e.g. an in-place write that autograd refuses
        return dict.fromkeys(leaves, error)
    return {i: gradient for i, gradient in zip(leaves, found, strict=True) if gradient is not None}


def _named_fault(exercise: Exercise, tried: list[tuple]) -> str:
    """The explanation of the known wrong function that gives the same results."""
    for why, wrong in exercise.faults:
        if all(close(mine, _attempt(wrong, arguments)[0]) for arguments, mine in tried):
            return f"\nWhy: {why}"
    return ""


def _as_text(items: set, most: int | None = None) -> str:
    """A set of ints or tuples of ints in order, which is the same in every run; at most so many of them."""
    ordered = sorted(items, key=lambda item: (isinstance(item, tuple), item))
    shown = ", ".join([*map(repr, ordered[:most]), *["…"] * (len(ordered) > len(ordered[:most]))])
    return f"{{{shown}}}" if items else "set()"


def _describe(name: str, value) -> str:
    if isinstance(value, Tensor):
        kind = "" if value.dtype == torch.float32 else f" {str(value.dtype).removeprefix('torch.')}"
        return f"{name} {tuple(value.shape)}{kind}"
    if isinstance(value, list) and len(str(value)) > 200 and all(isinstance(part, list) for part in value):
        return f"{name}: {len(value)} lists of length {', '.join(str(len(part)) for part in value)}"
    return f"{name} = {_as_text(value) if isinstance(value, set) else value}"
