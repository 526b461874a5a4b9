"""Lesson 04: is attention enough on real captions? The Transformer, and what is left without some of its parts.

``COURSE_DATA=folder python experiments/attention_alone.py`` trains the whole model and the one without norms and
feed-forward on Multi30k English-French with the batches, loss, dropout and width of ``translation_rivals.py``, for the
same steps, and writes ``attention_alone.json``. Without feed-forward the model may choose its depth: 2 + 2 layers, or
5 + 5, about as many parameters as the whole one has. Each chooses depth and rate at the first seed, by the loss on the
validation set. Other parts left out, and eight epochs: ``parts_longer.py``. Without ``COURSE_DATA`` the files are
downloaded.
"""

import argparse
from functools import partial
from itertools import product
from pathlib import Path

import torch
from parts_left_out import DIVERGED, PARTS, in_command
from translation_rivals import Captions

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import token_batches
from course_utils.training import fit, sequence_loss, trapezoid
from course_utils.transformer import Config, Transformer

HERE = Path(__file__).resolve().parent
BOTH = ["all parts", "attention, path, positions"]
SMALLER = [BOTH[1], "no feed-forward"]
RATES, DROPOUT = (2e-3, 4e-3), 0.1


def train(captions: Captions, name: str, n_layers: int, lr: float, steps: int, warmup: int, seed: int) -> dict:
    """One training: its loss on the validation set, and BLEU on the test set; of one that diverges 1,000, and 0."""
    setup(seed)
    model = Transformer(*captions.sizes, Config(d_model=192, n_heads=4, n_layers=n_layers, d_ff=768, dropout=DROPOUT))
    PARTS[name](model)
    run = {"layers": n_layers, "rate": lr, "seed": seed,
           "parameters": sum(weights.numel() for weights in model.parameters())}
    try:
        fit(model, token_batches(captions.train_ids, tokens=1000, seed=seed), steps, lr=lr, live=False,
            schedule=partial(trapezoid, warmup=warmup),
            loss=partial(sequence_loss, label_smoothing=0.1),
            label=f"{name}, {n_layers} layers, rate {lr:g}, seed {seed}")
    except FloatingPointError:
        return run | {"validation_loss": DIVERGED, "bleu": 0.0, "by_length": {}}
    scores = captions.scores(model)
    return run | {"validation_loss": captions.validation_loss(model), "bleu": scores["bleu"],
                  "by_length": scores["by_length"]}


def main(arguments: list[str] | None = None) -> None:
    """Choose depth and rate at the first seed, train at the others, and store after each training."""
    parser = argparse.ArgumentParser(description="Attention alone on captions; writes attention_alone.json.")
    parser.add_argument("--steps", type=int, default=1000, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="(default: 0 1 2)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=BOTH, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 5],
                        help="depths to choose from without feed-forward (default: 2 5)")
    parser.add_argument("--warmup", type=int, default=50, help="steps (default: %(default)s)")
    parser.add_argument("--rates", type=float, nargs="+", default=RATES, help="learning rates to choose from")
    parser.add_argument("--out", default="attention_alone.json", help="file beside this script (default: %(default)s)")
    options = parser.parse_args(arguments)
    command = (f"python experiments/attention_alone.py --steps {options.steps} "
               f"--seeds {' '.join(map(str, options.seeds))}")
    command += in_command(parser, options, "parts", "layers", "rates", "warmup", "out")
    torch.set_num_threads(1)
    captions = Captions()
    first, *others = options.seeds
    results = {"steps": options.steps, "models": {name: {"search": [], "final": []} for name in options.parts}}

    def keep(name: str, kind: str, found: dict) -> None:
        results["models"][name][kind].append(found)
        store(HERE / options.out, command, options.seeds, results)

    def run(name: str, kind: str, n_layers: int, lr: float, seed: int) -> None:
        found = train(captions, name, n_layers, lr, options.steps, options.warmup, seed)
        print(name, kind, found, flush=True)
        keep(name, kind, found)

    for name in options.parts:
        for n_layers, lr in product(options.layers if name in SMALLER else (2,), options.rates):
            run(name, "search", n_layers, lr, first)
        row = results["models"][name]
        keep(name, "final", min(row["search"], key=lambda found: found["validation_loss"]))
    for seed, (name, row) in product(others, results["models"].items()):
        run(name, "final", row["final"][0]["layers"], row["final"][0]["rate"], seed)


if __name__ == "__main__":
    main()
