"""Lesson 04: what is left without a part after eight epochs of captions, each model with its best-known remedy.

``COURSE_DATA=folder python experiments/parts_longer.py`` trains the models of ``SETTINGS`` as ``attention_alone.py``
does, for as many steps and with as much warm-up as ``rivals_longer.py``, which has the whole model.
``parts_longer.json`` is written after every run, with the commit and the day of each; started again, it goes on.
"""

from datetime import UTC, datetime
from pathlib import Path

import torch
from attention_alone import train
from translation_rivals import Captions

from course_utils.claims.stored import store, stored, version

OUT, COMMAND = Path(__file__).with_suffix(".json"), "python experiments/parts_longer.py"
STEPS, WARMUP = 4144, 300
SETTINGS = {
    "no residual path": [(2, 2e-3, 1), (2, 1e-3, 1), (2, 5e-4, 1), (2, 2.5e-4, 1), (1, 1e-3, 2), (1, 2e-3, 1)],
    "all parts": [(1, 2e-3, 1)],
    "attention, path, positions": [(5, 2e-3, 1), (5, 1e-3, 3)],
    "no norm": [(2, 2e-3, 1), (2, 1e-3, 2)],
    "no positions": [(2, 1e-3, 1), (2, 2e-3, 2)],
    "no feed-forward": [(2, 2e-3, 1), (5, 2e-3, 1)],
    "no self-attention": [(2, 1e-3, 1), (2, 2e-3, 2), (3, 2e-3, 1)],
}
"""For each part left out: layers in encoder and decoder, learning rate, number of seeds. Without the feed-forward
networks five layers, and without self-attention three, have as many weights as two whole ones; without the path each
further layer makes words more alike, so that one is tried, beside all parts in one."""


def results() -> list[dict]:
    """The runs that the file holds by now."""
    return stored(OUT.stem, OUT.parent).results["runs"] if OUT.is_file() else []


def missing() -> list[tuple[str, int, float, int]]:
    """Part, layers, rate and seed of the runs to come, each part's first seed first."""
    there = {(run["part"], run["layers"], run["rate"], run["seed"]) for run in results()}
    wanted = [(part, layers, rate, seed) for part, settings in SETTINGS.items()
              for layers, rate, n_seeds in settings for seed in range(n_seeds)]
    return sorted((one for one in wanted if one not in there), key=lambda one: one[-1])


def main() -> None:
    """Begin, or go on with the runs that the file holds."""
    torch.set_num_threads(1)
    captions = Captions()
    for part, layers, rate, seed in missing():
        found = train(captions, part, layers, rate, STEPS, WARMUP, seed)
        run = {"part": part, **found, "version": version(), "date": datetime.now(UTC).date().isoformat()}
        print(run, flush=True)
        runs = [*results(), run]
        store(OUT, COMMAND, sorted({each["seed"] for each in runs}), {"steps": STEPS, "warmup": WARMUP, "runs": runs})


if __name__ == "__main__":
    main()
