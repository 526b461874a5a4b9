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


@dataclass(frozen=True, kw_only=True)
class Counted(Exercise):
    """An exercise whose right answers differ, since they draw random numbers: judged by counting.

    Type, shape and arguments are judged as everywhere. Then shares are counted over all inputs of a condition, beside
    those of the reference. Chance is let off: a share of ``n`` cases may be wrong by five standard deviations of the
    difference, and half a point. The first fault is named that has all of the student's shares; or, if there is none,
    those up to the first wrong one.

    Args:
        counts: ``counts(function, arguments, result)`` -> what is counted, a sentence with {} for the share, and for
            each case whether it is so, a boolean tensor.
    """

    counts: Callable[[Callable, tuple, tuple], dict[str, Tensor]]

    def _judge(self, function) -> Verdict:
        """As `Exercise.judge`."""
        check_signature(self, function)
        for number, (condition, make) in enumerate(self.cases.items()):
            inputs = [make(torch.Generator().manual_seed(seed)) for seed in range(N_INPUTS)]
            results = []
            for arguments in inputs:
                mine, changed = attempt(function, arguments)
                if number == 0 and not results and (what := unwritten(self, mine)):
                    return Verdict("unwritten", what)
                right, _ = attempt(self.solution, arguments)
                moved = None if changed is None or isinstance(arguments[changed], torch.Generator) else changed
                if what := wrong_result(self, mine, mine if self._well_formed(mine, right) else right, moved):
                    self.reject(condition if number else "", what, arguments, mine)
                results.append(mine)
            counted, expected = self._count(function, inputs, results), self._count(self.solution, inputs)
            if sentence := self._wrong_count(counted, expected):
                what = f"Wrong shares: {sentence.format(f'{_share(counted[sentence]):.1%}')}; expected about " \
                       f"{_share(expected[sentence]):.0%}."
                faults = [(why, self._count(wrong, inputs)) for why, wrong in self.faults]
                up_to_here = list(expected)[:list(expected).index(sentence) + 1]
                why = next((f"\nWhy: {why}" for sentences in (list(expected), up_to_here) for why, shares in faults
                            if not self._wrong_count(counted, shares, sentences)), "")
                self.reject(condition if number else "", what, inputs[0], None, why)
        special = len(self.cases) - 1
        return Verdict("right", f"{self.name}: right on {N_INPUTS} random inputs and in {special} special "
                      f"case{'s' * (special > 1)}, counted on {inputs[0][0].numel() * N_INPUTS:,} places each.")

    def _well_formed(self, mine, right) -> bool:
        return (isinstance(mine, tuple | list) and len(mine) == len(right)
                and not any(wrong_form(name, axes, a, b)
                            for (name, axes), a, b in zip(self.returns.items(), mine, right, strict=True)))

    def _count(self, function, inputs, results=None) -> dict[str, Tensor]:
        results = results or [attempt(function, arguments)[0] for arguments in inputs]
        found = [self.counts(function, *pair) for pair in zip(inputs, results, strict=True)]
        return {sentence: torch.cat([counted[sentence] for counted in found]).double() for sentence in found[0]}

    def _wrong_count(self, counted, expected, sentences=None) -> str:
        """The first of the sentences whose share is not by chance another than expected."""
        for sentence in sentences or expected:
            mine, right = counted[sentence], expected[sentence]
            wanted, n = _share(right), max(min(mine.numel(), right.numel()), 1)
            if abs(_share(mine) - wanted) > 0.005 + 5 * math.sqrt(2 * wanted * (1 - wanted) / n):
                return sentence
        return ""
