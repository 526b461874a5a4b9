"""Does lesson 04's gap close? The two translators of ``translation_rivals``, trained several times as long.

``COURSE_DATA=folder python experiments/rivals_longer.py`` takes the peak rate that each chose there, and more processor
time for each run. Longer training wants other dropout, and a Transformer may want a longer warm-up, so both models are
trained with both dropouts and two warm-ups; the best on the validation set counts. ``--part`` runs one of the models,
so that each can have a core; started again, it goes on where it stopped.
"""

import argparse
from functools import partial
from itertools import product
from pathlib import Path

import torch
from translation_rivals import MODELS, Captions, chosen, steps_in, train

from course_utils.claims.stored import store, stored
from course_utils.training import trapezoid

SETTINGS = tuple(product((0.3, 0.1), (50, 400)))
"""Dropouts and steps of warm-up, the same for both."""


def main(arguments: list[str] | None = None) -> None:
    """Begin, or go on with the runs that the file holds."""
    parser = argparse.ArgumentParser(description="Two translators, longer; writes rivals_longer_PART.json.")
    parser.add_argument("--part", choices=("transformer", "lstm"), required=True, help="which of the two")
    parser.add_argument("--seconds", type=float, default=1400, help="CPU seconds of a run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    out = Path(__file__).with_name(f"rivals_longer_{options.part}.json")
    command = f"python experiments/rivals_longer.py --part {options.part} --seconds {options.seconds:g}"
    torch.set_num_threads(1)
    captions = Captions()
    name = next(name for name in MODELS if name.lower().startswith(options.part))
    before = stored("translation_rivals", out.parent).results["models"][name]
    rate, _ = chosen(before["search"])
    runs = []
    if out.is_file() and (earlier := stored(out.stem, out.parent)).command == command:
        runs = earlier.results["runs"]
    for dropout, warmup in SETTINGS[len(runs):]:
        steps = steps_in(options.seconds, runs or before["final"])
        model, run = train(captions, name, (rate, dropout), options.seed, steps, partial(trapezoid, warmup=warmup))
        runs.append(run | {"warmup": warmup} | captions.scores(model))
        print(name, runs[-1], flush=True)
        store(out, command, [options.seed], {"name": name, "runs": runs})


if __name__ == "__main__":
    main()
