"""Exercises that put a layer together from parts: what a wrong one computes is told as a formula."""

import inspect
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import torch
from torch import Tensor

from .engine import Exercise, Verdict, WrongAnswer, check_signature

IN_PLACE = "\nWhy: += writes into a tensor that a part still needs for its gradient. Write x = x + … ."
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


def named(right: Formula, mine: Formula) -> dict[Formula, str]:
    """Short names for what one of the two repeats: first what is right, the longest first."""
    names: dict[Formula, str] = {}
    for part in sorted(right.inner() | mine.inner(), key=lambda part: (part not in right.inner(), -len(str(part)))):
        tried = {**names, part: "hkmnpq"[len(names)]}
        if any(len(re.findall(rf"\b{tried[part]}\b", formula.written(tried))) > 1 for formula in (right, mine)):
            names = tried
        if len(names) == 6:
            break
    return names


@dataclass(frozen=True)
class Layer(Exercise):
    """An exercise whose function gets a tensor, and parts to call.

    It first runs on symbols: if it computes something else than the solution, it is told why, or else both are shown.
    All else is judged on numbers, as everywhere, and so is what symbols cannot follow: any operation but calls of the
    parts and +. Where a part takes several things, a formula shows the first; `asks` has a question for each of them,
    put to whoever gives another than the solution.
    """

    asks: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def _judge(self, function) -> Verdict:
        check_signature(self, function)
        expected = {condition: self._run(self.solution, make) for condition, make in self.cases.items()}
        stopped = often = ""
        for condition, (right, once, roles) in expected.items():
            mine, calls, given = self._run(function, self.cases[condition])
            if isinstance(mine, WrongAnswer):
                raise WrongAnswer(f"{self.name}: {condition}, {mine}")
            if isinstance(mine, Formula) and (odd := self._roles(given, roles)):
                raise WrongAnswer(f"{self.name}: wrong {condition}.\nWhy: {' '.join(odd)}")
            odd = [_times(part, calls.count(part)) for part in self.parameters if calls.count(part) != once.count(part)]
            if not isinstance(mine, Formula):
                told = re.sub("'Formula'( object)?", "a symbol", str(mine))
                stopped = stopped or ("\nWhy: perhaps that it does more than call its parts, each with one thing, and "
                                      f"add. (On symbols: {type(mine).__name__}: {told})")
            elif mine != right:
                odd += [f"what {part} returned is not used" for part in once if part in {*calls} - mine.given().keys()]
                odd += ["nothing is added: a residual connection is x + F(x)"] * (" + " not in str(mine))
                odd += [f"this is right {other}" for other, (formula, _, _) in expected.items() if formula == mine]
                if sorted(calls) == sorted(2 * once):
                    odd = ["every part is called twice: does one way through the function lack its `return`"]
                odd = odd or self._lost(mine, self.cases[condition])
                odd = odd or _misplaced(mine.given(), right.given())
                if not odd and sorted(calls) == sorted(once) and calls != once:
                    mine_first, first = next(pair for pair in zip(calls, once, strict=True) if pair[0] != pair[1])
                    after = first.startswith("norm") and not mine_first.startswith("norm")
                    odd = [f"{mine_first} is called before {first}, which comes first"
                           + "; norms after the sums are post-LN" * after]
                odd = odd or [f"{x} itself is missing from the sum: a residual adds it as it was before the norm"
                              for x in right.terms if isinstance(x, str) and x not in mine.terms]
                odd = odd or [f"{part} gets {x} as it came in, not what the part before made of it"
                              for part, x in mine.given().items()
                              if str(x).isidentifier() and " + " in str(right.given().get(part, x))]
                odd = odd or [f"the last sum adds {x} as it came in, not what the part before made of it"
                              for x in _last_sum(mine).terms if isinstance(x, str)
                              and {*_last_sum(mine).terms} - {x} < {*_last_sum(right).terms}]
                odd = odd or [f"a line adds to {x} as it came in, not to what the line before made of it"
                              for x in _last_sum(mine).terms if isinstance(x, str)
                              and len(_last_sum(mine).terms) < len(_last_sum(right).terms)]
                raise WrongAnswer(f"{self.name}: wrong {condition}.\nWhy: {', '.join(odd)}.\n{_computed(mine)}" if odd
                                  else f"{self.name}: {_compared(condition, mine, right)}")
            elif odd:
                often = often or f"{condition} {', '.join(odd)}"
        try:
            verdict = super()._judge(function)
        except WrongAnswer as wrong:
            text = str(wrong)
            if "inplace operation" in text:
                text = text.replace(f"{self.name}: ", f"{self.name}: wrong.{IN_PLACE}\n", 1)
            raise WrongAnswer(text + stopped * wrong.of_values) from wrong.__cause__
        if verdict.kind == "right" and often:
            return Verdict("slow", f"{self.name}: right, but {often}. That costs its time again, and two calls of a "
                                   "part with dropout differ. Give what it returned a name.")
        return verdict

    def _roles(self, given: dict, roles: dict) -> list[str]:
        """What a part that takes several things was given in place of another."""
        odd = []
        for (part, role), right in roles.items():
            got = given.get((part, role), right)
            first, asked = next((key, asked) for key, asked in roles.items() if key[0] == part)
            told = f"{part} was given `{got}` as its {role}"
            if first != (part, role) and asked == right:      # both the same: whatever the first was given
                query = given.get(first, got)
                normed = isinstance(got, Formula) and got in query.given().values()
                odd += [f"{told}, and `{query}` as its {first[1]}. Both are what the norm returned."
                        if normed else f"{told}: {self.asks[role]}"] * (got != query)
            elif str(right).isidentifier():                   # one of the arguments, as it came
                changed = isinstance(got, Formula) and right in got.given().values()
                odd += [f"{told}. `{right}` goes in as it is." if changed else f"{told}: {self.asks[role]}"
                        ] * (got != right)
            elif str(got).isidentifier() and str(got) not in re.findall(r"\w+", str(right)):
                odd.append(f"{told}: {self.asks[role]}")      # how it is normed is told by the formula
        return odd

    def _lost(self, mine: Formula, make) -> list[str]:
        """The parts whose `x +` was forgotten, if this alone makes of the solution what is mine."""
        parts = [part for part in self.parameters if not part.startswith("norm")]
        for lost in (some for n in range(1, len(parts)) for some in combinations(parts, n)):
            if self._run(self.solution, make, lost)[0] == mine:
                return [f"the line with `{part}` lost its `x +`" for part in lost]
        return []

    def _run(self, function, make, lost=()) -> tuple[object, list[str], dict[tuple[str, str], object]]:
        """What a function makes of symbols, or its exception, the parts' names in the order of their calls, and what
        those that take several things were given.

        What is added to the result of a part in `lost` is lost.
        """
        calls, roles = [], {}

        def symbol(name, value):
            def part(*given, **more):
                signature = inspect.signature(value)
                names = [*signature.parameters]
                try:
                    bound = signature.bind(*given, **more).arguments
                except TypeError:
                    expected = "one" if len(names) == 1 else f"{len(names)}: {', '.join(names)}"
                    n = len(given) + len(more)
                    raise WrongAnswer(f"{name} is called with {n} argument{'s' * (n != 1)}; expected {expected}."
                                      ) from None
                calls.append(name)
                roles.update({(name, role): bound[role] for role in names if len(names) > 1})
                return (Alone if name in lost else Formula)(((name, bound[names[0]]),))
            return Formula((name,)) if isinstance(value, Tensor) else part if callable(value) else value

        try:
            return function(*map(symbol, self.parameters, make(torch.Generator().manual_seed(0)))), calls, roles
        except Exception as error:
            return error, calls, roles


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


def _caller(formula: Formula | None) -> str:
    """The part whose result a formula is, nothing added."""
    alone = formula is not None and len(formula.terms) == 1 and isinstance(formula.terms[0], tuple)
    return formula.terms[0][0] if alone else ""


def _last_sum(formula: Formula) -> Formula:
    """The outermost sum, without a call around it."""
    while _caller(formula):
        formula = formula.terms[0][1]
    return formula


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
