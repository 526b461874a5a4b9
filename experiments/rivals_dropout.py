"""Lesson 04's verdict with more dropout: the Transformer at 0.2, as its rivals in the same layers are tried.

``COURSE_DATA=folder python experiments/rivals_dropout.py`` trains ``translation_rivals.py``'s Transformer as
``rivals_longer.py`` does, with twice the dropout; half and twice the rate stand there. ``rivals_dropout.json`` is
written after every run; started again, it goes on.
"""

from pathlib import Path

from rivals_equal_time import OURS, go_on
from rivals_same_layer import STEPS

OUT, COMMAND = Path(__file__).with_suffix(".json"), "python experiments/rivals_dropout.py"
SETTINGS = [(2e-3, 0.2, 0)]
"""Rate, dropout and seed of each run."""


def main() -> None:
    """Begin, or go on with the runs that the file holds."""
    go_on(OUT, COMMAND, OURS, SETTINGS, STEPS)


if __name__ == "__main__":
    main()
