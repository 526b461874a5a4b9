"""Exercises with random numbers in their answers: judged by counting."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .engine import N_INPUTS, Exercise, Verdict, attempt, check_signature, unwritten, wrong_result


def _share(cases: Tensor) -> float:
    return cases.mean().item() if cases.numel() else 0.0


Expected = dict[str, tuple[float, float, float]]  # sentence: share, variance of one case, of how many cases


def _wrong_count(counted: dict[str, Tensor], expected: Expected) -> str:
    """The sentence whose share is furthest from what chance allows, or an empty string.

    Five standard deviations of the difference are allowed, and half a point.
    """
    def beyond(sentence):
        (wanted, variance, n), cases = expected[sentence], counted[sentence]
        if not cases.numel():
            return 0.0
        spread = math.sqrt(variance * (1 / cases.numel() + 1 / max(n, 1)))
        return abs(_share(cases) - wanted) / (0.005 + 5 * spread)

    furthest = max(expected, key=beyond)
    return furthest if beyond(furthest) > 1 else ""


@dataclass(frozen=True, kw_only=True)
class Counted(Exercise):
    """An exercise whose right answers differ, since they draw random numbers: judged by counting.

    Type, shape and arguments are judged as everywhere. Then shares are counted over all inputs of a condition; the one
    furthest beyond chance is shown. The first fault is named that has all of the student's shares.

    Args:
        counts: ``counts(function, arguments, result)`` -> what is counted, a sentence with {} for the share, and the
            share of a right answer, with for each case whether it is so, a boolean tensor.
    """

    counts: Callable[[Callable, tuple, tuple], dict[tuple[str, float], Tensor]]

    def _judge(self, function) -> Verdict:
        check_signature(self, function)
        for special, inputs in self.inputs():
            for arguments in inputs:
                mine, changed = attempt(function, arguments)
                if not special and (what := unwritten(self, mine)):
                    return Verdict("unwritten", what)
                right, _ = attempt(self.solution, arguments)
                if changed is not None and isinstance(arguments[changed], torch.Generator):
                    changed = None
                if what := wrong_result(self, mine, mine if self._well_formed(mine, right) else right, changed):
                    self.reject(special, what, arguments, mine)
            counted, expected = self._count(function, inputs)
            if sentence := _wrong_count(counted, expected):
                why = next((why for why, wrong in self.known if not _wrong_count(counted, self._drawn(wrong, inputs))),
                           "")
                wanted = expected[sentence][0]
                self.reject(special, f"Wrong shares: {sentence.format(f'{_share(counted[sentence]):.1%}')}; expected "
                                     f"{'about ' * (0 < wanted < 1)}{wanted:.0%}.", inputs[0], None, why)
        return Verdict("right", f"{self.right}, counted on {inputs[0][0].numel() * N_INPUTS:,} places each.")

    def _count(self, function, inputs) -> tuple[dict[str, Tensor], Expected]:
        found = [self.counts(function, arguments, attempt(function, arguments)[0]) for arguments in inputs]
        counted = {sentence: torch.cat([counts[sentence, share] for counts in found]).double()
                   for sentence, share in found[0]}
        return counted, {sentence: (share, share * (1 - share), math.inf) for sentence, share in found[0]}

    def _drawn(self, wrong, inputs) -> Expected:
        """A fault's shares; none of 100 cases is not never, so that a right answer's variance is the least."""
        counted, right = self._count(wrong, inputs)
        shares = {sentence: _share(cases) for sentence, cases in counted.items()}
        return {sentence: (share, max(share * (1 - share), right[sentence][1]), counted[sentence].numel())
                for sentence, share in shares.items()}
