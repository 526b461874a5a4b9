"""Lesson 04's verdict with the Transformer's best-known remedy for positions: rotary ones (Su et al. 2021).

``COURSE_DATA=folder python experiments/rivals_rotary.py`` trains the Transformer of ``translation_rivals.py`` with
queries and keys of its self-attentions rotated by their positions, instead of sinusoids that are added to the words:
like an LSTM, it then knows how far apart two words are. Settings, warm-up and steps are those of
``rivals_same_layer.py``; rotating takes its time on top of that. ``rivals_rotary.json`` is written after every run;
started again, it goes on.
"""

from collections.abc import Sequence
from pathlib import Path

from rivals_equal_time import go_on
from rivals_same_layer import STEPS
from translation_rivals import transformer

from course_utils.transformer import Transformer

OUT, COMMAND = Path(__file__).with_suffix(".json"), "python experiments/rivals_rotary.py"
NAME = "Transformer, rotary positions"
SETTINGS = [(2e-3, 0.1, 0), (2e-3, 0.1, 1), (2e-3, 0.1, 2), (4e-3, 0.1, 0), (1e-3, 0.1, 0), (2e-3, 0.2, 0)]
"""Rate, dropout and seed of each run."""


def rotary(sizes: Sequence[int], dropout: float) -> Transformer:
    """The Transformer, which knows positions from rotation only."""
    model = transformer(sizes, dropout)
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.self_attention.rotary = True
    model.positions.zero_()
    return model


def main() -> None:
    """Begin, or go on with the runs that the file holds."""
    go_on(OUT, COMMAND, NAME, SETTINGS, STEPS, {NAME: rotary})


if __name__ == "__main__":
    main()
