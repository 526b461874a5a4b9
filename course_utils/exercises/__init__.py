"""Checks for exercises: ``masked_softmax = check("masked_softmax")`` says what is wrong, and gives what runs on."""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches

import torch
from IPython.display import display
from torch import Tensor, nn

from ..course import PRESENTED
from .card import Card
from .compared import at_most, close, largest_difference, place
from .engine import N_INPUTS, Exercise, Verdict, WrongAnswer, code, edited
from .experiments import Prediction
from .lesson_00 import LESSON_00
from .lesson_01 import LESSON_01
from .lesson_02 import LESSON_02
from .lesson_03 import LESSON_03
from .lesson_04 import LESSON_04
from .lesson_05 import LESSON_05
from .lesson_06 import LESSON_06
from .lesson_07 import LESSON_07
from .lesson_08 import LESSON_08
from .progress import record

__all__ = ["EXERCISES", "Exercise", "Prediction", "Verdict", "WrongAnswer", "break_it", "check", "same_output",
           "solved", "your_parts"]

LESSONS = LESSON_00, LESSON_01, LESSON_02, LESSON_03, LESSON_04, LESSON_05, LESSON_06, LESSON_07, LESSON_08
EXERCISES = {exercise.name: exercise for lesson in LESSONS for exercise in lesson}


_yours: dict[str, Callable] = {}  # the student's functions that run, by exercise


def check(name: str, namespace: Mapping | None = None, solution: bool = False) -> Callable:
    """Compare the function called `name` with the course's own, show a card, and give the function to go on with.

    ``masked_softmax = check("masked_softmax")``: from here on the student's function runs if it is right, and the
    course's if it is wrong, not yet written (a stub that raises `NotImplementedError`, or returns `None` or an
    ellipsis), or so slow that the lesson would leave its seconds. A wrong answer never stops the notebook: the card
    says what is wrong and why, whether one cell was run or all.

    Args:
        name: the function's name, which is also the exercise's.
        namespace: where to look it up; by default the globals of the caller, that is, the notebook.
        solution: whether this is a solution's cell: the student's own function goes on running if it was right. In
            live slides it then stands for the solution, so that what was rehearsed with that is loaded.

    Returns:
        The student's function, or the course's.

    Raises:
        ValueError: if the course has no exercise of this name.
    """
    exercise = _exercise(name)
    if namespace is None:
        namespace = inspect.currentframe().f_back.f_globals
    # a solution's cell is not timed: that would race the course's function against itself
    verdict = _verdict(replace(exercise, timed=None) if solution else exercise, namespace)
    if solution:
        theirs = _yours.get(name)
        rehearsed = inspect.isfunction(theirs) and PRESENTED in os.environ
        if rehearsed:
            theirs.stands_for = exercise.solution
        goes_on = "; what was rehearsed with the course's is loaded" if rehearsed else ""
        display(Card(verdict, f"Yours was right, too, and goes on running{goes_on}." if theirs else ""))
        return theirs or (namespace[name] if verdict.kind == "right" else exercise.solution)
    record(name, verdict, namespace.get(name))
    if verdict.kind == "right":
        _yours[name] = namespace[name]
        display(Card(verdict, "Yours runs from here on."))
        return namespace[name]
    _yours.pop(name, None)
    display(Card(verdict, "The course's function runs until yours is right."
                  if verdict.kind != "slow" else "The course's function runs from here on."))
    return exercise.solution


def _verdict(exercise: Exercise, namespace: Mapping) -> Verdict:
    name = exercise.name
    if name in namespace:
        return exercise.judge(namespace[name])
    functions = [key for key, value in namespace.items() if inspect.isfunction(value)]
    close_names = get_close_matches(name, functions, n=1)
    spelling = f" There is a `{close_names[0]}`: is that a misspelling?" if close_names else ""
    fault = f"there is no function called {name} yet"
    return Verdict("wrong", f"{fault}. Did you run the cell that defines it?{spelling}", fault=fault)


def solved(name: str) -> None:
    """Raise if the last `check` did not find the student's function right: a test for nbgrader and otter-grader.

    Raises:
        WrongAnswer: if it was wrong, not written, too slow to run on, or not checked.
        ValueError: if the course has no exercise of this name.
    """
    if _exercise(name).name not in _yours:
        raise WrongAnswer(f"{name} is not solved: the card of its check says why. Is the line `{name} = "
                          f'check("{name}")` still there?')


def your_parts(*names: str) -> None:
    """Show how many of these exercises' functions are the student's own: a small card for a lesson's end.

    Raises:
        ValueError: if the course has no exercise of one of the names.
    """
    yours = [name for name in names if _exercise(name).name in _yours]
    others = [name for name in names if name not in yours]
    text = f"{len(yours)} of {len(names)} parts that ran here are your code"
    text += f": {', '.join(f'`{name}`' for name in yours)}." if yours else "."
    if others:
        text += f" The course's: {', '.join(f'`{name}`' for name in others)}."
    display(Card(Verdict("right" if yours else "unwritten", text)))


def break_it(name: str, old: str, new: str) -> tuple[Callable, Callable]:
    """An exercise's solution, and the same with one piece of its code replaced: for seeing what the piece is good for.

    Raises:
        ValueError: if the course has no exercise of this name, or `old` does not occur exactly once in the solution.
    """
    solution = _exercise(name).solution
    broken = edited(solution, old, new)
    line = next(line.split("  #")[0].strip() for line in code(solution).splitlines() if old in line)
    display(Card(Verdict("missed", f"`{name}` is broken on purpose: in `{line}`, `{old.strip()}` is now "
                                   f"`{new.strip() or 'nothing'}`.")))
    return solution, broken


def _exercise(name: str) -> Exercise:
    if name not in EXERCISES:
        raise ValueError(f"no exercise is called {name!r}; there are {', '.join(EXERCISES)}.")
    return EXERCISES[name]


def same_output(mine: Callable, reference: Callable, *inputs, tol: float = 1e-5) -> None:
    """Run two functions or modules on the same inputs, print the largest difference, and fail if it is large.

    Args:
        mine: a function or module.
        reference: another that should compute the same. Either may return a tensor, a number, or a tuple of them.
        inputs: the inputs themselves; or one function without parameters that makes random ones, a tuple or a
            single tensor. It is called five times, each with its own torch seed; the notebook's random state
            is left as it was.
        tol: the difference allowed, absolute and relative; 1e-5 is some hundred roundings of a float32.

    Raises:
        WrongAnswer: both shapes, or the largest difference and its position. NaN equals nothing, not even NaN.
    """
    make = inputs[0] if len(inputs) == 1 and callable(inputs[0]) and not isinstance(inputs[0], nn.Module) else None
    largest = 0.0
    with torch.random.fork_rng(devices=[]):
        for seed in range(N_INPUTS if make else 1):
            torch.manual_seed(seed)
            made = make() if make else inputs
            arguments = made if isinstance(made, tuple) else (made,)
            got, wanted = mine(*arguments), reference(*arguments)
            if (form := _form(got)) != _form(wanted):
                raise WrongAnswer(f"not the same output: mine returns {form}, the reference {_form(wanted)}.")
            gap, where = largest_difference(got, wanted)
            if not close(got, wanted, tol) or gap == torch.inf:
                why = " There, at least one of the two is NaN or infinite." if gap == torch.inf else ""
                raise WrongAnswer(f"not the same output: the largest difference is {gap:.3g}, at output{place(where)}; "
                                  f"allowed is {tol:.0e}.{why}")
            largest = max(largest, gap)
    times = f" on {N_INPUTS} random inputs" if make else ""
    print(f"Same output{times}: {_form(wanted)}, largest difference {at_most(largest, tol)}.")


def _form(value) -> str:
    """Shapes and dtypes as text."""
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_form, value))}]"
    return type(value).__name__
