"""Exercises on experiments: predict a measurement before it is made."""

import math
from collections.abc import Mapping
from numbers import Real

from IPython.display import display

from ..course import UNPREDICTED
from .card import Card
from .engine import Verdict


class Prediction:
    """What a student expects of a measurement, written down before it: ``Prediction({"4-9": 95, "35-40": 50}, 10)``.

    Args:
        expected: label → number; `None` stands for "no prediction yet".
        within: how far off, in the measurement's unit, still counts as right.

    Raises:
        TypeError: for an expectation that is no number.
        ValueError: for one that is not finite, or `within` below 0.
    """

    def __init__(self, expected: Mapping[str, float | None], within: float):
        odd = {label: value for label, value in expected.items()
               if value is not None and (not isinstance(value, Real) or isinstance(value, bool))}
        if odd:
            raise TypeError(f"a prediction is a number for each label, or None; given {odd}.")
        if odd := {label: value for label, value in expected.items() if value is not None and not math.isfinite(value)}:
            raise ValueError(f"a prediction is a finite number, or None for none yet; given {odd}.")
        if not within >= 0:
            raise ValueError(f"within is {within}; expected how far off is still right, 0 or more.")
        self.expected, self.within = dict(expected), within

    def compare(self, measured: Mapping[str, float]) -> None:
        """Show a card: how many of the predictions were right, and which was furthest off.

        Raises:
            ValueError: if a label was not measured.
        """
        if missing := [label for label in self.expected if label not in measured]:
            raise ValueError(f"nothing was measured for {missing}; measured: {list(measured)}.")
        made = {label: value for label, value in self.expected.items() if value is not None}
        if not made:
            shown = ", ".join(f"{label}: {measured[label]:.4g}" for label in self.expected)
            display(Card(Verdict("unwritten", f"{UNPREDICTED}Measured: {shown}.")))
            return
        off = {label: abs(value - measured[label]) for label, value in made.items()}
        right, worst = sum(gap <= self.within for gap in off.values()), max(off, key=off.get)
        within = f" within {self.within:g}" if self.within else ""                    # ranks are right or not
        display(Card(Verdict("right" if right == len(made) else "missed", (
            f"{right} of {len(made)} predictions are right{within}. Furthest off: {worst}, predicted "
            f"{made[worst]:.4g}, measured {measured[worst]:.4g}."))))
