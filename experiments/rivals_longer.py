"""Lesson 04's verdict after eight epochs: the rivals of ``translation_rivals``, four times as long.

``COURSE_DATA=folder python experiments/rivals_longer.py`` trains both for four times the steps of their final runs
there. Each begins with the rate and the dropout that it chose there, and tries two other settings: the LSTM, whose rate
was the highest of that search, a larger dropout and half the rate; the Transformer half and twice the rate. The best by
the loss on the validation set goes on with the other seeds.
``rivals_longer.json`` is written after every run; started again, it goes on, and ``--model`` trains one of the two.
"""

import argparse
from functools import partial
from pathlib import Path

import torch
from translation_rivals import MODELS, Captions, chosen, train

from course_utils.claims.stored import Stored, store, stored
from course_utils.training import trapezoid

OUT, COMMAND = Path(__file__).with_suffix(".json"), "python experiments/rivals_longer.py"
LONGER, WARMUP = 4, 300
SEEDS = [0, 1, 2]
OTHERS = {"Transformer": ((1e-3, 0.1), (4e-3, 0.1)), "LSTM with attention": ((8e-3, 0.3), (4e-3, 0.1))}
"""Rates and dropouts that are tried beside the chosen one."""


def before() -> Stored:
    """The measurement that this one goes on from."""
    return stored("translation_rivals", OUT.parent)


def run(captions: Captions, name: str, kind: str, setting: tuple[float, float], seed: int) -> None:
    """Train one, and add it to the file."""
    steps = LONGER * before().results["models"][name]["final"][0]["steps"]
    model, row = train(captions, name, setting, seed, steps, partial(trapezoid, warmup=WARMUP))
    row |= captions.scores(model)
    models = results()
    models[name][kind].append(row)
    print(name, kind, row, flush=True)
    store(OUT, COMMAND, SEEDS, {"longer": LONGER, "warmup": WARMUP, "models": models})


def results() -> dict[str, dict[str, list]]:
    """What the file holds by now."""
    if OUT.is_file():
        return stored(OUT.stem, OUT.parent).results["models"]
    return {name: {"search": [], "final": []} for name in MODELS}


def main(arguments: list[str] | None = None) -> None:
    """Begin, or go on with the runs that the file holds."""
    parser = argparse.ArgumentParser(description="Two translators after eight epochs; writes rivals_longer.json.")
    parser.add_argument("--model", choices=MODELS, nargs="+", default=[*MODELS], help="(default: both)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    captions = Captions()
    for name in options.model:
        settings = [chosen(before().results["models"][name]["search"]), *OTHERS[name]]
        for setting in settings[len(results()[name]["search"]):]:
            run(captions, name, "search", setting, SEEDS[0])
        best = chosen(results()[name]["search"])
        for seed in SEEDS[1 + len(results()[name]["final"]):]:
            run(captions, name, "final", best, seed)


if __name__ == "__main__":
    main()
