"""Lesson 04's verdict, its search widened: depth and warm-up, which ``translation_rivals`` left as they were.

``COURSE_DATA=folder python experiments/rivals_searched.py --part transformer`` (or ``lstm``) trains the model at the
peak rate and dropout that it chose there (the Transformer at twice that rate, too), for as many steps as its final
runs there took; a deeper stack, whose steps take longer, for as many as fit in the same time. The file is written
after every run; started again, it goes on.
"""

import argparse
from functools import partial
from pathlib import Path

import torch
from translation_rivals import MODELS, Captions, chosen, train

from course_utils.claims.stored import store, stored
from course_utils.training import trapezoid
from course_utils.transformer import Config, Transformer

PACE = 30
"""Steps that tell how much longer a step of the deeper stack takes."""


def deeper(sizes, dropout: float) -> Transformer:
    """Twice as deep, and so narrow that it has about as many parameters."""
    return Transformer(*sizes, Config(d_model=152, n_heads=4, n_layers=4, d_ff=608, dropout=dropout))


DEEP = "Transformer, 4 + 4 layers"
SEARCHED = {"transformer": (("Transformer", 300, 1), (DEEP, 50, 1), (DEEP, 300, 1), ("Transformer", 300, 2)),
            "lstm": (("LSTM with attention", 300, 1),)}
"""Models, steps over which the rate rises, and how many times the chosen rate it reaches."""
SEED = 0
train = partial(train, models=MODELS | {DEEP: deeper})


def main(arguments: list[str] | None = None) -> None:
    """Begin, or go on with the runs that the file holds."""
    parser = argparse.ArgumentParser(description="A wider search; writes rivals_searched_PART.json.")
    parser.add_argument("--part", choices=SEARCHED, required=True, help="which of the two")
    options = parser.parse_args(arguments)
    out = Path(__file__).with_name(f"rivals_searched_{options.part}.json")
    command = f"python experiments/rivals_searched.py --part {options.part}"
    torch.set_num_threads(1)
    captions = Captions()
    base = SEARCHED[options.part][0][0]
    before = stored("translation_rivals", out.parent).results["models"][base]
    (rate, dropout), full = chosen(before["search"]), before["final"][0]["steps"]
    pace, runs = {}, []
    if out.is_file() and (earlier := stored(out.stem, out.parent)).command == command:
        runs = earlier.results["runs"]
    for name, warmup, times in SEARCHED[options.part][len(runs):]:
        for each in {base, name} - {*pace}:
            pace[each] = train(captions, each, (rate, dropout), SEED, PACE)[1]["cpu_seconds"]
        model, run = train(captions, name, (times * rate, dropout), SEED, round(full * pace[base] / pace[name]),
                           partial(trapezoid, warmup=warmup))
        runs.append({"name": name, "warmup": warmup, "parameters": sum(each.numel() for each in model.parameters())}
                    | run | captions.scores(model))
        print(runs[-1], flush=True)
        store(out, command, [SEED], {"runs": runs})


if __name__ == "__main__":
    main()
