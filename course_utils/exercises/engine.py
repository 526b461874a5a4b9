"""Runs a student's function beside the solution and says what is wrong and why."""

import ast
import inspect
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import permutations
from textwrap import dedent
from traceback import format_tb, walk_tb
from typing import Any

import torch
from torch import Tensor

from .. import attention
from .compared import at_most, close, in_words, inexact, kind_of, largest_difference, same_type, wrong_form, wrong_value

N_INPUTS = 5  # random inputs a condition: enough that sizes differ, few enough to be instant
SLOWER = 1.2  # times the solution's time: more is said
SLOW = 4.0  # times: more, and a lesson that trains with it leaves its seconds, so that the solution runs
CLOCK = time.perf_counter if sys.platform == "win32" else time.thread_time  # Windows counts the latter by 16 ms
QUICK = 5e-5  # seconds: a solution that takes less counts as so much, or one copy would be slow beside a view

REMEMBERS = ("Called twice with the same input it gives two results: something is remembered between calls (a global "
             "name, a list as default value, a tensor that is used again), or drawn at random.")

EXPLAINED = {  # what an exception says → what it means
    r"must match|size mismatch|cannot be multiplied|Expected size for":
        "These shapes do not line up: write down each one's axes.",
    r"index.* out of (bounds|range)": "Of n things, places are counted from 0 to n - 1.",
    r"Boolean value of Tensor":
        "Python's `if`, `and`, `not`, all() and max() need one answer, not one per number: `.all()` or `.any()` makes "
        "one. Number by number go torch.where, `&`, `~` and torch.maximum.",
}


class WrongAnswer(AssertionError):  # noqa: N818 (a verdict, not an error of the program)
    """The message says what is wrong and why.

    Attributes:
        of_values: whether the form is right, and only numbers differ.
        fault: what answers that are wrong alike have in common: a known fault's sentence, or how the message begins.
    """

    def __init__(self, text: str, of_values: bool = False, fault: str = ""):
        super().__init__(text)
        self.of_values, self.fault = of_values, fault or _first_clause(text)


def _first_clause(text: str) -> str:
    return re.split(r"[:;.](?:\s|$)", text)[0]


@dataclass(frozen=True)
class Verdict:
    """What was found: `kind` is "right", "slow" (right, but too slow to go on with), "unwritten" or "wrong".

    On cards without a judge there is "missed", too: a prediction that failed, code that was broken on purpose.
    """

    kind: str
    text: str
    trace: str = ""  # of the student's own lines, if they raised
    fault: str = ""  # of a wrong answer, see `WrongAnswer`


@dataclass(frozen=True)
class Exercise:
    """What a student is asked to write, and the ways in which it goes wrong.

    Args:
        solution: the right function, as in the notebook's solution cell but for the docstring; its name is the
            exercise's, its parameters are the signature.
        returns: each returned thing's name and axes, for example ``{"weights": "B, T_q, T_k"}``.
            More than one: the function returns a tuple.
        cases: condition → maker of random arguments, ``make(generator) -> tuple``. The first condition is
            the ordinary one, mostly "on ordinary inputs"; with it they complete "right …, but wrong …".
        faults: known faults as edits of the solution: ``(sentence, old, new)`` or ``(sentence, old, new, old, new …)``.
            Each `old` occurs once in the solution's code. The first fault whose results equal the student's, up to and
            including the failing condition, is named.
        reasons: a special case's condition, or an exception's name → the sentence for who fails so, and no fault does.
        timed: a maker of arguments as large as the lesson's, if the lesson's seconds hang on the function: on these
            it may take ``SLOW`` times the solution's time. Without it, time is not looked at.
        why_slow: what a slow answer does, if it is known; without it, a loop is asked about.
        measures: whether it only measures, so that no gradient is asked of it.
    """

    solution: Callable
    returns: dict[str, str]
    cases: dict[str, Callable[[torch.Generator], tuple]]
    faults: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    reasons: dict[str, str] = field(default_factory=dict, repr=False)
    timed: Callable[[torch.Generator], tuple] | None = None
    why_slow: str = ""
    measures: bool = False

    def __post_init__(self):
        self.solution.is_solution = True  # a rehearsed training asks for it

    @property
    def name(self) -> str:
        """The function's name."""
        return self.solution.__name__

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, in order."""
        return list(inspect.signature(self.solution).parameters)

    @property
    def right(self) -> str:
        """How a right function's verdict begins."""
        n = len(self.cases) - 1
        special = f" and in {n} special case{'s' * (n > 1)}" if n else ""
        return f"{self.name}: right on {N_INPUTS} random inputs{special}"

    @cached_property
    def known(self) -> list[tuple[str, Callable]]:
        """The sentence and the wrong function of each fault."""
        return [(why, edited(self.solution, *edits)) for why, *edits in self.faults]

    def judge(self, function) -> Verdict:
        """Compare a function with the exercise's solution.

        A stub that raises `NotImplementedError`, or returns `None` or an ellipsis, or calls one, is "unwritten".
        Whatever the function does, this does not raise.
        """
        try:
            with torch.random.fork_rng(devices=[]):                    # later cells draw what they would draw
                torch.default_generator.manual_seed(1234)              # no input's seed; the same verdict in every run
                return self._judge(function)
        except WrongAnswer as wrong:
            return Verdict("wrong", str(wrong), _own_lines(wrong.__cause__), wrong.fault)
        except (Exception, SystemExit) as error:
            fault = "it cannot be compared with the solution"
            return Verdict("wrong", f"{self.name}: {fault} ({type(error).__name__}: {error}).", fault=fault)

    def inputs(self) -> Iterator[tuple[str, list[tuple]]]:
        """Random arguments of each condition, with its name if it is a special case, else an empty string."""
        for n, (condition, make) in enumerate(self.cases.items()):
            yield condition if n else "", [make(torch.Generator().manual_seed(seed)) for seed in range(N_INPUTS)]

    def _judge(self, function) -> Verdict:
        check_signature(self, function)
        tried = []
        for special, inputs in self.inputs():
            once = _kept(attempt(function, inputs[0])[0])
            results, changed = zip(*(attempt(function, arguments) for arguments in inputs), strict=True)
            if not special and (what := unwritten(self, results[0])):
                return Verdict("unwritten", what)
            expected = [attempt(self.solution, arguments)[0] for arguments in inputs]
            once, *results = map(_plain, (once, *results), (expected[0], *expected))
            tried += zip(inputs, results, strict=True)
            if self._well_formed(once, expected[0]) and not close(results[0], once):
                self.reject(special, REMEMBERS, inputs[0], once)
            for arguments, mine, right, moved in zip(inputs, results, expected, changed, strict=True):
                if what := wrong_result(self, mine, right, moved):
                    why = "" if moved is not None else (self._named(tried) or _unused(self, function, arguments, tried)
                                                        or self._reason(special, mine))
                    of_values = moved is None and self._well_formed(mine, right)
                    self.reject(special, what, arguments, mine, why, of_values)
                if not self.measures and (what := _wrong_gradient(self, function, arguments, right)):
                    why = self._named(tried, gradient=what) or self._reason(special, mine)
                    self.reject(special, what, arguments, mine, why)
            if not special:
                largest = max(largest_difference(*pair)[0] for pair in zip(results, expected, strict=True))
        times = _times_slower(function, self.solution, self.timed) if self.timed else 1.0
        if times > SLOW:
            return Verdict("slow", f"{self.name}: right, but about {times:.0f} times as slow as it can be. "
                                   f"{self.why_slow or _ask_why_slow(inputs[0])}")
        gap = f"; largest difference {at_most(largest)}" if inexact(right) else ""
        slower = f"; about {times:.1f} times as slow as the course's" if times > SLOWER else ""
        return Verdict("right", f"{self.right}{gap}{slower}.")

    def _well_formed(self, mine, right) -> bool:
        if len(self.returns) == 1:
            mine, right = (mine,), (right,)
        return (isinstance(mine, tuple | list) and len(mine) == len(right)
                and not any(wrong_form(name, axes, a, b)
                            for (name, axes), a, b in zip(self.returns.items(), mine, right, strict=True)))

    def reject(self, condition: str, what: str, arguments: tuple, mine, why: str = "", of_values: bool = False):
        """Raise `WrongAnswer`; `condition` is that of a special case, `why` a fault's sentence."""
        where = f"Right {next(iter(self.cases))}, but wrong {condition}." if condition else "wrong." * bool(why)
        given = ", ".join(map(in_words, self.parameters, arguments))
        cause = mine if isinstance(mine, Exception) else None
        raise self.wrong(where, why, what, f"Inputs: {given}.", of_values=of_values) from cause

    def wrong(self, where: str, why: str = "", *more: str, of_values: bool = False) -> WrongAnswer:
        """To be raised: a line each, what explains it before ``more``; empty ones are left out."""
        told = [*filter(None, (where, f"Why: {why}" * bool(why), *more))]
        return WrongAnswer(f"{self.name}: " + "\n".join(told), of_values, why or _first_clause(told[0]))

    def _named(self, tried: list[tuple], gradient: str = "") -> str:
        """The sentence of the known fault that gives the same results, of the same types, and as wrong a gradient."""
        for why, wrong in self.known:
            results = ((attempt(wrong, arguments)[0], mine) for arguments, mine in reversed(tried))
            if all(same_type(mine, result) and close(mine, result) for result, mine in results) and (
                    not gradient or any(_wrong_gradient(self, wrong, *pair) == gradient for pair in tried)):
                return why
        return ""

    def _reason(self, special: str, mine) -> str:
        """The sentence for this special case, or for the exception that was raised."""
        return self.reasons.get(special) or self.reasons.get(type(mine).__name__, "")


def _ask_why_slow(arguments: tuple) -> str:
    if any(isinstance(argument, Tensor) for argument in arguments):
        return "Is there a loop that one operation on whole tensors can do?"
    return "Is something done again and again that could be done once?"


def _unused(exercise: Exercise, function: Callable, arguments: tuple, tried: list[tuple]) -> str:
    """A sentence on the first tensor that changes the solution's result here, but this function's on no input tried."""
    for i, argument in enumerate(arguments):
        if isinstance(argument, Tensor) and (argument.is_floating_point() or argument.dtype == torch.bool):
            right = [attempt(exercise.solution, one)[0] for one in (arguments, _varied(arguments, i))]
            if not close(*right) and same_type(attempt(function, arguments)[0], right[0]) and all(
                    close(attempt(function, _varied(one, i))[0], mine) for one, mine in tried):
                return f"`{exercise.parameters[i]}` makes no difference to what your function returns."
    return ""


def _varied(arguments: tuple, i: int) -> tuple:
    other = ~arguments[i] if arguments[i].dtype == torch.bool else 0.3 - 0.7 * arguments[i]
    return *arguments[:i], other, *arguments[i + 1:]


def _kept(result):
    """A copy that a later call cannot write into."""
    if type(result) in (tuple, list):
        return type(result)(map(_kept, result))
    if isinstance(result, Tensor):
        return result.clone()
    return copy(result) if isinstance(result, set | dict) else result


@cache
def code(function: Callable) -> str:
    """A function's source without its docstring."""
    source = dedent(inspect.getsource(function))
    if function.__doc__:
        docstring, lines = ast.parse(source).body[0].body[0], source.splitlines(keepends=True)
        source = "".join(lines[:docstring.lineno - 1] + lines[docstring.end_lineno:])
    return source


EDITED = ", edited>"  # how the name of such a function's file ends


def edited_code(function: Callable, *edits: str) -> str:
    """A function's code with pieces replaced: ``edited_code(f, old, new, old, new, …)``.

    Raises:
        ValueError: if an `old` does not occur exactly once in the code, as it is after the edits before it.
    """
    text = code(function)
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        if text.count(old) != 1:
            raise ValueError(f"{function.__name__}: {old!r} occurs {text.count(old)} times; expected once in\n{text}")
        text = text.replace(old, new)
    return text


def edited(function: Callable, *edits: str) -> Callable:
    """The function that `edited_code` gives, among the names of the original's module."""
    names = dict(inspect.unwrap(function).__globals__)
    exec(compile(edited_code(function, *edits), f"<{function.__name__}{EDITED}", "exec"), names)
    return names[function.__name__]


def each(why: str, *edits: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Several faults with one sentence."""
    return [(why, *edit) for edit in edits]


def _own_lines(error: BaseException | None) -> str:
    """Where a student's exception was raised, without the engine's lines and the message, which the card has."""
    if error is None or error.__traceback__ is None:
        return ""
    return "".join(format_tb(error.__traceback__.tb_next))


def _times_slower(function: Callable, solution: Callable, make: Callable) -> float:
    """How many times the solution's time a function takes: the quickest of at least ten runs each, taken in turns.

    It is the processor's time, in which other programs do not count. What looks slow is run up to fifty times; a
    second is enough. Beside three busy programs on two cores, 4 of 900 copies of the course's own functions were called
    slower, and 2 of these by more than 1.21; without the forty further runs it would have been 6 %.
    """
    arguments = make(torch.Generator().manual_seed(0))
    fastest = [torch.inf, torch.inf]
    began = time.perf_counter()
    with torch.no_grad():
        for turn in range(50):
            for i, candidate in enumerate((function, solution)):
                started = CLOCK()
                candidate(*arguments)
                fastest[i] = min(fastest[i], CLOCK() - started)
            slower = fastest[0] / max(fastest[1], QUICK)
            if time.perf_counter() - began > 1.0 or (turn >= 9 and slower <= SLOWER):
                break
    return slower


def unwritten(exercise: Exercise, result) -> str:
    """What is still to be written, this function or one that it calls; an empty string if nothing is."""
    if isinstance(result, NotImplementedError):
        if "not implemented for '" in str(result):  # torch: this operation, on this dtype
            return ""
        frames = [frame.f_code.co_name for frame, _ in walk_tb(result.__traceback__)]  # attempt, function, called …
        called = frames[-1] if len(frames) > 2 else exercise.name
        if called != exercise.name:
            ours = f" (or use attention.{called})" if hasattr(attention, called) else ""
            return f"{exercise.name} calls {called}, which is not written yet. Write that first{ours}."
    elif result is not None and result is not ...:
        return ""
    ask = "is the `raise` line still there" if "delete this line" in str(result) else "does it end with `return`"
    return f"{exercise.name}: not written yet. (If you did write it: {ask}?)"


def check_signature(exercise: Exercise, function) -> None:
    """Raise `WrongAnswer` if this is no function, or takes other arguments."""
    wanted = f"{exercise.name}({', '.join(exercise.parameters)})"
    if not callable(function):
        raise WrongAnswer(f"{exercise.name} is {kind_of(function)}, not a function. Was the name used "
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


def attempt(function, arguments: tuple) -> tuple[Any, int | None]:
    """The result or the exception, and the number of the first argument that was changed."""
    copies = tuple(_copy(argument) for argument in arguments)
    result = result_of(function, copies)
    changed = (i for i, pair in enumerate(zip(copies, arguments, strict=True)) if not close(*pair, tol=0.0))
    return result, next(changed, None)


def _plain(mine, right):
    """A truth value that is still a tensor, as the bool that the solution gives."""
    if isinstance(right, tuple) and isinstance(mine, tuple) and len(mine) == len(right):
        return tuple(map(_plain, mine, right))
    is_one = isinstance(right, bool) and isinstance(mine, Tensor) and mine.dtype == torch.bool and mine.dim() == 0
    return bool(mine) if is_one else mine


def result_of(function, arguments: tuple | list):
    """The result, or the exception: whatever a student's code raises is part of the diagnosis."""
    try:
        with _quiet(function):
            return function(*arguments)
    except SystemExit:
        return RuntimeError("exit() ends the notebook; a function ends with return.")
    except Exception as error:
        return error


def _quiet(function) -> AbstractContextManager:
    """Silence for a known mistake, wrapped or not: what it warns of is not the student's to see."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    of_a_fault = getattr(code, "co_filename", "").endswith(EDITED)
    return warnings.catch_warnings(action="ignore") if of_a_fault else nullcontext()


def _copy(argument):
    return argument.clone() if isinstance(argument, Tensor) else deepcopy(argument)


def wrong_result(exercise: Exercise, mine, right, changed: int | None) -> str:
    """What is wrong with one result, or an empty string."""
    if isinstance(mine, Exception):
        means = [meaning for said, meaning in EXPLAINED.items() if re.search(said, str(mine))]
        message = f"It raised {type(mine).__name__}: {mine}"
        return "\n".join([*means, message])
    names = list(exercise.returns)
    if len(names) == 1:
        mine, right = (mine,), (right,)
    elif not isinstance(mine, tuple | list) or len(mine) != len(names):
        got = f"{len(mine)} things" if isinstance(mine, tuple | list) else f"one {type(mine).__name__}"
        return f"Wrong type: it returns {got}; expected {len(names)}: return {', '.join(names)}."
    if not isinstance(right[0], bool) and not close(mine, right) and any(
            close(mixed, right) for mixed in permutations(mine)):
        return f"Wrong order: return {', '.join(names)}."
    for name, a, b in zip(names, mine, right, strict=True):
        if what := wrong_form(name, exercise.returns[name], a, b):
            return what
    if changed is not None:
        name = exercise.parameters[changed]
        return (f"The argument `{name}` was changed: the caller's {name} is different after the call. Methods that "
                "end in _ , a list's append or sort, and += or [...] = on an argument, write into it. Make a new "
                "tensor, list or set instead.")
    for name, a, b in zip(names, mine, right, strict=True):
        if what := wrong_value(name, a, b):
            return what
    return ""


def _cut_off(exercise: Exercise, function: Callable, arguments: tuple) -> str:
    """A sentence on the first argument through which no gradient can flow after the call."""
    copies = [argument.clone().requires_grad_().clone()
              if isinstance(argument, Tensor) and argument.is_floating_point() else _copy(argument)
              for argument in arguments]
    tracked = [name for name, copy in zip(exercise.parameters, copies, strict=True) if _tracked(copy)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of float(tensor) where a gradient is asked of it
        result_of(function, copies)
    left = [name for name, copy in zip(exercise.parameters, copies, strict=True) if _tracked(copy)]
    return next((f"The argument `{name}` was cut off: no gradient flows through the caller's tensor after the call. "
                 "detach_() works on the argument itself; detach() makes a new tensor."
                 for name in tracked if name not in left), "")


def _tracked(value) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _wrong_gradient(exercise: Exercise, function, arguments: tuple, right) -> str:
    """The values are right: do gradients flow to the same arguments, with the same values, and no argument is cut?"""
    with torch.enable_grad():
        if cut := _cut_off(exercise, function, arguments):
            return cut
        expected = _gradients(exercise.solution, arguments) if inexact(right) else {}
        mine = _gradients(function, arguments) if expected else {}
    for i, gradient in expected.items():
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
        with _quiet(function):
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
