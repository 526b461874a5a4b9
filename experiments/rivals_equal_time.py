"""Lesson 04's verdict at equal processor time: the LSTM of ``rivals_longer`` gets the time that its rival took.

``COURSE_DATA=folder python experiments/rivals_equal_time.py`` trains it for as many more steps as the Transformer took
more seconds there, in the setting that had the highest BLEU on the test set, whatever the validation set said: in its
favour. ``rivals_equal_time.json`` is written after every run; started again, it goes on.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from rivals_longer import WARMUP
from translation_rivals import MODELS, Captions, train

from course_utils.claims.stored import store, stored
from course_utils.training import trapezoid

OUT, COMMAND = Path(__file__).with_suffix(".json"), "python experiments/rivals_equal_time.py"
SEEDS, RIVAL, OURS = [0, 1], "LSTM with attention", "Transformer"


def settings() -> tuple[tuple[float, float], int]:
    """Rate and dropout, and the steps in equal time."""
    rows = {name: [*row["search"], *row["final"]]
            for name, row in stored("rivals_longer", OUT.parent).results["models"].items()}
    seconds = {name: sum(run["cpu_seconds"] for run in runs) / len(runs) for name, runs in rows.items()}
    best = max(rows[RIVAL], key=lambda run: run["bleu"])
    return (best["rate"], best["dropout"]), round(best["steps"] * seconds[OURS] / seconds[RIVAL])


def go_on(out: Path, command: str, name: str, wanted: Sequence[tuple[float, float, int]], steps: int,
          models=MODELS) -> None:
    """Train one of ``models`` at each rate, dropout and seed that the file lacks, and write it after every run."""
    torch.set_num_threads(1)
    captions = Captions()
    runs = stored(out.stem, out.parent).results["runs"] if out.is_file() else []
    for rate, dropout, seed in wanted[len(runs):]:
        model, row = train(captions, name, (rate, dropout), seed, steps, partial(trapezoid, warmup=WARMUP), models)
        runs = [*runs, row | captions.scores(model)]
        print(runs[-1], flush=True)
        store(out, command, sorted({run["seed"] for run in runs}), {"warmup": WARMUP, "runs": runs})


def main() -> None:
    """Begin, or go on with the runs that the file holds."""
    setting, steps = settings()
    go_on(OUT, COMMAND, RIVAL, [(*setting, seed) for seed in SEEDS], steps)


if __name__ == "__main__":
    main()
