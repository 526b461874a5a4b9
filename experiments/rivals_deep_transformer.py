"""Lesson 04's verdict with a deeper Transformer: four layers on each side, and so narrow that it has as many weights.

``COURSE_DATA=folder python experiments/rivals_deep_transformer.py`` trains it for the time of eight epochs, as
``rivals_same_layer.py`` trains the LSTM in the shallower one's layers: the same rate, dropout and warm-up, and as many
steps, which took as long in ``rivals_searched.py``. ``rivals_deep_transformer.json`` is written after every run;
started again, it goes on.
"""

from pathlib import Path

from rivals_equal_time import go_on
from rivals_same_layer import STEPS
from rivals_searched import DEEP, deeper

OUT, COMMAND = Path(__file__).with_suffix(".json"), "python experiments/rivals_deep_transformer.py"
SETTINGS = [(2e-3, 0.1, 0)]
"""Rate, dropout and seed of each run."""


def main() -> None:
    """Begin, or go on with the runs that the file holds."""
    go_on(OUT, COMMAND, DEEP, SETTINGS, STEPS, {DEEP: deeper})


if __name__ == "__main__":
    main()
