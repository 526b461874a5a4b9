"""Exercises that put a layer together from parts: what a wrong one computes is told as a formula."""

import inspect
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor

from .engine import Exercise, Verdict, WrongAnswer, check_signature

IN_PLACE = "+= writes into a tensor that a part still needs for its gradient. Write x = x + … ."
LONGEST = 1000  # letters in a formula, ten times a layer's: beyond it, a loop runs away


@dataclass(frozen=True, repr=False)
class Formula:
    """A sum of symbols, ``"x"``, and of calls, ``("norm_1", Formula(("x",)))``; their order does not count."""

    terms: tuple

    def __post_init__(self):
        object.__setattr__(self, "terms", tuple(sorted(self.terms, key=lambda term: (len(str(term)), str(term)))))
        if len(str(self)) > LONGEST:
            raise WrongAnswer("the sum grows and grows. Each part is called once: does a loop run too often?")

    def __add__(self, other) -> "Formula":
        return Formula(self.terms + other.terms) if isinstance(other, Formula) else NotImplemented

    add = __add__

    def __radd__(self, other) -> "Formula":
        return self if other == 0 else NotImplemented  # sum([a, b]) begins with 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is not torch.add or len(args) != 2 or kwargs:
            raise TypeError(f"{function.__name__} is none of the parts.")
        return args[0] + args[1]

    def __getitem__(self, index):
        raise TypeError(f"it takes a part of `{self}`, by [ ]. All of it is needed, the whole batch.")

    def __repr__(self) -> str:
        return self.written({})

    def written(self, names: dict["Formula", str]) -> str:
        """As text, in which some formulas have names."""
        left, words = Counter(self.terms), []
        for formula, name in names.items():
            while (known := Counter(formula.terms)) <= left:
                left -= known
                words.append(name)
        words += [f"{term[0]}({term[1].written(names)})" if isinstance(term, tuple) else term
                  for term in left.elements()]
        return " + ".join(words)

    @property
    def symbols(self) -> list[str]:
        """Its terms that are no calls."""
        return [term for term in self.terms if isinstance(term, str)]

    def given(self) -> dict[str, "Formula"]:
        """What each of its calls, and of those inside them, was given."""
        calls = dict(term for term in self.terms if isinstance(term, tuple))
        return {name: part for inner in calls.values() for name, part in inner.given().items()} | calls

    def inner(self) -> set["Formula"]:
        """What its calls were given, and the calls in that; no single symbols."""
        given = [term[1] for term in self.terms if isinstance(term, tuple)]
        return {part for part in given if not str(part).isidentifier()}.union(*(part.inner() for part in given))


class Alone(Formula):
    """What a part returned, where `x +` was forgotten: what it is added to is lost."""

    def __add__(self, other) -> Formula:
        return Formula(self.terms)

    __radd__ = __add__


@dataclass(frozen=True, repr=False)
class Part:
    """What stands for one of the parts: it returns a formula, and writes down that it was called, and with what."""

    name: str
    signature: inspect.Signature
    made: type[Formula]
    calls: list[str]
    given: dict[tuple[str, str], object]

    def __call__(self, *args, **kwargs) -> Formula:
        """Its result; `WrongAnswer` where the part takes another number of things."""
        roles = list(self.signature.parameters)
        try:
            bound = self.signature.bind(*args, **kwargs).arguments
        except TypeError:
            n, expected = len(args) + len(kwargs), "one" if len(roles) == 1 else f"{len(roles)}: {', '.join(roles)}"
            raise WrongAnswer(f"{self.name} is called with {n} argument{'s' * (n != 1)}; expected {expected}."
                              ) from None
        self.calls.append(self.name)
        if len(roles) > 1:
            self.given.update({(self.name, role): bound[role] for role in roles})
        return self.made(((self.name, bound[roles[0]]),))

    def __repr__(self) -> str:
        return self.name


def named(right: Formula, mine: Formula) -> dict[Formula, str]:
    """Short names for what one of the two repeats: first what is right, the longest first."""
    names: dict[Formula, str] = {}
    for part in sorted(right.inner() | mine.inner(), key=lambda part: (part not in right.inner(), -len(str(part)))):
        tried = {**names, part: "smnpqr"[len(names)]}                     # h is a name in exercise 2
        if any(len(re.findall(rf"\b{tried[part]}\b", formula.written(tried))) > 1 for formula in (right, mine)):
            names = tried
        if len(names) == 6:
            break
    return names


class Parts(SimpleNamespace):
    """A layer, for a function that is its ``forward``: its parts by name."""

    def __repr__(self) -> str:
        return f"a layer with {', '.join(vars(self))}"


class Run(NamedTuple):
    """What a function makes of symbols."""

    result: object
    """A formula, or the exception that stopped it, or whatever else it returned."""
    calls: list[str]
    """The parts' names in the order of their calls."""
    given: dict[tuple[str, str], object]
    """By part and parameter: what the parts that take several things were given."""


@dataclass(frozen=True)
class Layer(Exercise):
    """An exercise whose function gets a tensor, and parts to call: as arguments, or all in one (`Parts`).

    It first runs on symbols: if it computes something else than the solution, it is told why, or else both are shown.
    All else is judged on numbers, as everywhere, and so is what symbols cannot follow: any operation but calls of the
    parts and +. Where a part takes several things, a formula shows the first; `asks` has a question for each of them,
    put to whoever gives another than the solution.
    """

    asks: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def _judge(self, function) -> Verdict:
        check_signature(self, function)
        stopped, often = self._judge_on_symbols(function)
        try:
            verdict = super()._judge(function)
        except WrongAnswer as wrong:
            if "inplace operation" in (text := str(wrong)):
                raise self.wrong("wrong.", IN_PLACE, text.removeprefix(f"{self.name}: ")) from wrong.__cause__
            raise WrongAnswer(text + stopped * wrong.of_values, fault=wrong.fault) from wrong.__cause__
        if verdict.kind == "right" and often:
            return replace(verdict, text=f"{self.name}: right, but {often}. That costs its time again, and two calls "
                                         "of a part with dropout differ. Give what it returned a name.")
        return verdict

    def _judge_on_symbols(self, function) -> tuple[str, str]:
        """Raise `WrongAnswer` if a formula is wrong; else what symbols could not follow, and what is called too often.
        """
        stopped = often = ""
        for condition, make in self.cases.items():
            mine, right = self._run(function, make), self._run(self.solution, make)
            if isinstance(mine.result, WrongAnswer):
                raise self.wrong(f"{condition}, {mine.result}")
            if not isinstance(mine.result, Formula):
                stopped = stopped or _stopped(mine.result)
            elif why := self._misgiven(mine.given, right.given):
                raise self.wrong(f"wrong {condition}.", why)
            elif mine.result != right.result:
                why = ", ".join(self._suspicions(mine, right, make))
                raise (self.wrong(f"wrong {condition}.", f"{why}.", _computed(mine.result)) if why
                       else self.wrong(_compared(condition, mine.result, right.result)))
            elif counts := self._other_counts(mine, right):
                often = often or f"{condition} {', '.join(counts)}"
        return stopped, often

    def _suspicions(self, mine: Run, right: Run, make) -> list[str]:
        """Why a formula may be wrong: from what explains all of it to what explains one term."""
        return (self._other_counts(mine, right) + _unused(mine, right) + _nothing_added(mine)
                or self._lost(mine, make)
                or _misplaced(mine.result.given(), right.result.given())
                or _out_of_order(mine, right)
                or _missing_residual(mine.result, right.result)
                or _part_gets_input(mine.result.given(), right.result.given())
                or _sum_adds_input(_last_sum(mine.result), _last_sum(right.result))
                or _line_adds_to_input(_last_sum(mine.result), _last_sum(right.result)))

    def _misgiven(self, given: dict, expected: dict) -> str:
        """What parts that take several things were given in place of another."""
        return " ".join(filter(None, (self._misgiven_as(part, role, given, expected) for part, role in expected)))

    def _misgiven_as(self, part: str, role: str, given: dict, expected: dict) -> str:
        right = expected[part, role]
        got = given.get((part, role), right)
        told = f"{part} was given `{got}` as its {role}"
        first = next(key for key in expected if key[0] == part)
        if first != (part, role) and expected[first] == right:  # both the same: whatever the first was given
            query = given.get(first, got)
            if got == query:
                return ""
            if _goes_into(got, query):
                return f"{told}, and `{query}` as its {first[1]}. Both are what the norm returned."
            if _goes_into(query, got):
                return (f"{part} was given `{query}` as its {first[1]}, and `{got}` as its {role}. Both are what the "
                        "norm returned.")
        elif str(right).isidentifier():                         # one of the arguments, as it came
            if got == right:
                return ""
            if _goes_into(right, got):
                return f"{told}. `{right}` goes in as it is."
        elif not str(got).isidentifier() or str(got) in re.findall(r"\w+", str(right)):
            return ""                                           # how it is normed is told by the formula
        return f"{told}: {self.asks[role]}"

    def _other_counts(self, mine: Run, right: Run) -> list[str]:
        counts = [(part, mine.calls.count(part), right.calls.count(part)) for part in self.parts]
        return [_times(part, n) for part, n, expected in counts if n != expected]

    def _lost(self, mine: Run, make) -> list[str]:
        """The parts whose `x +` was forgotten, if this alone makes of the solution what is mine."""
        parts = [part for part in self.parts if not part.startswith("norm")]
        for lost in (some for n in range(1, len(parts)) for some in combinations(parts, n)):
            if self._run(self.solution, make, lost).result == mine.result:
                return [f"the line with `{part}` lost its `x +`" for part in lost]
        return []

    @property
    def parts(self) -> list[str]:
        """The names of what its function can call, in order."""
        arguments = next(iter(self.cases.values()))(torch.Generator().manual_seed(0))
        return [name for parameter, value in zip(self.parameters, arguments, strict=True)
                for name, part in (vars(value) if isinstance(value, Parts) else {parameter: value}).items()
                if callable(part)]

    def _run(self, function, make, lost=()) -> Run:
        """Call a function with symbols; what is added to the result of a part in `lost` is lost."""
        calls, given = [], {}

        def symbol(name, value):
            if isinstance(value, Tensor):
                return Formula((name,))
            if isinstance(value, Parts):
                return Parts(**{name: symbol(name, part) for name, part in vars(value).items()})
            made = Alone if name in lost else Formula
            return Part(name, inspect.signature(value), made, calls, given) if callable(value) else value

        try:
            return Run(function(*map(symbol, self.parameters, make(torch.Generator().manual_seed(0)))), calls, given)
        except Exception as error:
            return Run(error, calls, given)


def _stopped(result) -> str:
    told = re.sub("'Formula'( object)?", "a symbol", str(result))
    return ("\nWhy: perhaps that it does more than call its parts, each with one thing, and add. (On symbols: "
            f"{type(result).__name__}: {told})")


def _goes_into(part, whole) -> bool:
    """Whether a call in a formula was given this."""
    return isinstance(whole, Formula) and part in whole.given().values()


# --- suspicions: each gives its sentences, or none -----------------------------------------------------------

def _unused(mine: Run, right: Run) -> list[str]:
    lost = {*mine.calls} - mine.result.given().keys()
    return [f"what {part} returned is not used" for part in right.calls if part in lost]


def _nothing_added(mine: Run) -> list[str]:
    return [] if " + " in str(mine.result) else ["nothing is added: a residual connection is x + F(x)"]


def _misplaced(mine: dict[str, Formula], right: dict[str, Formula]) -> list[str]:
    """What is called too early or too late: a part that is given another part's result by itself, and should not be."""
    odd = []
    for part, given in mine.items():
        inside, expected = _caller(given), _caller(right.get(part))
        if not inside or expected or given == right.get(part) or inside not in right:
            continue
        if len(right[inside].terms) > 1:
            odd.append(f"{inside} stands in front of {part}, and belongs after the sum")
        else:
            place = "in front of it" if _caller(right[inside]) == part else "after the sum"
            odd.append(f"{part} takes what {inside} returned, and belongs {place}")
    return odd


def _out_of_order(mine: Run, right: Run) -> list[str]:
    if mine.calls == right.calls or sorted(mine.calls) != sorted(right.calls):
        return []
    called, first = next(pair for pair in zip(mine.calls, right.calls, strict=True) if pair[0] != pair[1])
    is_post = first.startswith("norm") and not called.startswith("norm")
    return [f"{called} is called before {first}, which comes first{'; norms after the sums are post-LN' * is_post}"]


def _missing_residual(mine: Formula, right: Formula) -> list[str]:
    return [f"{x} itself is missing from the sum: a residual adds it as it was before the norm"
            for x in right.symbols if x not in mine.symbols]


def _part_gets_input(mine: dict[str, Formula], right: dict[str, Formula]) -> list[str]:
    return [f"{part} gets {x} as it came in, not what the part before made of it"
            for part, x in mine.items() if str(x).isidentifier() and " + " in str(right.get(part, x))]


def _sum_adds_input(mine: Formula, right: Formula) -> list[str]:
    return [f"the last sum adds {x} as it came in, not what the part before made of it"
            for x in mine.symbols if {*mine.terms} - {x} < {*right.terms}]


def _line_adds_to_input(mine: Formula, right: Formula) -> list[str]:
    return [f"a line adds to {x} as it came in, not to what the line before made of it"
            for x in mine.symbols if len(mine.terms) < len(right.terms)]


def _caller(formula: Formula | None) -> str:
    """The part whose result a formula is, nothing added."""
    alone = formula is not None and len(formula.terms) == 1 and isinstance(formula.terms[0], tuple)
    return formula.terms[0][0] if alone else ""


def _last_sum(formula: Formula) -> Formula:
    """The outermost sum, without a call around it."""
    while _caller(formula):
        formula = formula.terms[0][1]
    return formula


# --- formulas as text ----------------------------------------------------------------------------------------

def _times(part: str, n: int) -> str:
    return f"{part} is never called" if n == 0 else f"{part} is called {'twice' if n == 2 else f'{n} times'}"


def _computed(mine: Formula) -> str:
    names = named(mine, mine)
    return f"You computed `{mine.written(names)}`{_where(names)}"


def _compared(condition: str, mine: Formula, right: Formula) -> str:
    names = named(right, mine)
    return (f"{condition[0].upper()}{condition[1:]} you computed\n`{mine.written(names)}`\n"
            f"expected\n`{right.written(names)}`{_where(names)}")


def _where(names: dict[Formula, str]) -> str:
    told = [f"`{name} = {part.written({other: names[other] for other in names if other != part})}`"
            for part, name in names.items()]
    return f"\nwhere {' and '.join(told)}." if told else ""
