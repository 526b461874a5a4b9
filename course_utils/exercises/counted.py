"""Exercises with random numbers in their answers: judged by counting."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.exercises.engine import (
    N_INPUTS,
    Exercise,
    Verdict,
    attempt,
    check_signature,
    unwritten,
    wrong_form,
    wrong_result,
)


def _share(cases: Tensor) -> float:
    return cases.mean().item() if cases.numel() else 0.0


def _wrong_count(counted: dict[str, Tensor], expected: dict[str, Tensor]) -> str:
    """The first sentence whose share is not by chance another than expected."""
    for sentence, right in expected.items():
        wanted, n = _share(right), max(min(counted[sentence].numel(), right.numel()), 1)
        if abs(_share(counted[sentence]) - wanted) > 0.005 + 5 * math.sqrt(2 * wanted * (1 - wanted) / n):
            return sentence
    return ""


@dataclass(frozen=True, kw_only=True)
class Counted(Exercise):
    """An exercise whose right answers differ, since they draw random numbers: judged by counting.

    Type, shape and arguments are judged as everywhere. Then shares are counted over all inputs of a condition, beside
    those of the solution. Chance is let off: a share of ``n`` cases may be wrong by five standard deviations of the
    difference, and half a point. The first fault is named that has all of the student's shares.

    Args:
        counts: ``counts(function, arguments, result)`` -> what is counted, a sentence with {} for the share, and for
            each case whether it is so, a boolean tensor.
    """

    counts: Callable[[Callable, tuple, tuple], dict[str, Tensor]]

    def _judge(self, function) -> Verdict:
        check_signature(self, function)
        with torch.random.fork_rng(devices=[]):  # an answer may forget the generator
            return self._judged(function)

    def _judged(self, function) -> Verdict:
        first = next(iter(self.cases))
        for condition, make in self.cases.items():
            special = condition if condition != first else ""
            inputs = [make(torch.Generator().manual_seed(seed)) for seed in range(N_INPUTS)]
            for arguments in inputs:
                mine, changed = attempt(function, arguments)
                if not special and (what := unwritten(self, mine)):
                    return Verdict("unwritten", what)
                right, _ = attempt(self.solution, arguments)
                if changed is not None and isinstance(arguments[changed], torch.Generator):
                    changed = None
                if what := wrong_result(self, mine, mine if self._well_formed(mine, right) else right, changed):
                    self.reject(special, what, arguments, mine)
            counted, expected = self._count(function, inputs), self._count(self.solution, inputs)
            if sentence := _wrong_count(counted, expected):
                why = next((why for why, wrong in self.known if not _wrong_count(counted, self._count(wrong, inputs))),
                           "")
                self.reject(special, f"Wrong shares: {sentence.format(f'{_share(counted[sentence]):.1%}')}; expected "
                                     f"about {_share(expected[sentence]):.0%}.", inputs[0], None, why)
        n = len(self.cases) - 1
        return Verdict("right", f"{self.name}: right on {N_INPUTS} random inputs and in {n} special case{'s' * (n > 1)}"
                                f", counted on {inputs[0][0].numel() * N_INPUTS:,} places each.")

    def _well_formed(self, mine, right) -> bool:
        return (isinstance(mine, tuple | list) and len(mine) == len(right)
                and not any(wrong_form(name, axes, a, b)
                            for (name, axes), a, b in zip(self.returns.items(), mine, right, strict=True)))

    def _count(self, function, inputs) -> dict[str, Tensor]:
        found = [self.counts(function, arguments, attempt(function, arguments)[0]) for arguments in inputs]
        return {sentence: torch.cat([counted[sentence] for counted in found]).double() for sentence in found[0]}
