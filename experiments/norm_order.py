"""Lesson 04: where does the norm go? Stacks with it on the path (post-LN), in the branch (pre-LN), and without it.

``python experiments/norm_order.py`` trains 4 + 4 layers from Xavier's initial weights on the lesson's short sentences
and writes the losses to ``norm_order.json``. Each order is trained without and with
warm-up, and chooses its rate for either at the first seed.
"""

import argparse
from functools import partial
from itertools import product
from pathlib import Path

import torch
from torch import nn

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import Vocab, token_batches, train_test
from course_utils.data.text import encode_pairs
from course_utils.training import fit, trapezoid
from course_utils.transformer import Config, Transformer, without_norms

HERE = Path(__file__).resolve().parent
ORDERS = ("pre-LN", "post-LN", "no norm")
WARM_UPS, RATES = (0, 200), (5e-3, 2e-3, 1e-3)


def train(order: str, warmup: int, lr: float, steps: int, seed: int) -> list[float]:
    """The loss of every step, nats per token."""
    setup(seed)
    pairs, _ = train_test(20_000, 420, seed=seed)
    english, french = Vocab(pair.source for pair in pairs), Vocab(pair.target for pair in pairs)
    short = encode_pairs([pair for pair in pairs if len(pair.source) <= 12], english, french)
    torch.manual_seed(seed)
    model = Transformer(len(english), len(french), Config(d_model=32, n_heads=2, n_layers=4, d_ff=64,
                                                          pre_norm=order != "post-LN"))
    if order == "no norm":
        without_norms(model)                               # the last two stay: they set the size of the logits
    for name, weight in model.named_parameters():
        if weight.dim() > 1 and "embed" not in name:
            nn.init.xavier_uniform_(weight)
    log = fit(model, token_batches(short, tokens=400, seed=seed), steps=steps, lr=lr, live=False,
              schedule=partial(trapezoid, warmup=warmup), label=f"{order}, warm-up {warmup}, rate {lr}, seed {seed}")
    return log.loss


def end(losses: list[float]) -> float:
    """The mean over the last 20 steps."""
    return round(sum(losses[-20:]) / len(losses[-20:]), 3)


def main(arguments: list[str] | None = None) -> None:
    """Choose a rate for each order and warm-up at the first seed, train it at the others, and store after each."""
    parser = argparse.ArgumentParser(description="Norms on the path, in the branch, nowhere; writes norm_order.json.")
    parser.add_argument("--steps", type=int, default=800, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 1 2 3 4)")
    parser.add_argument("--out", default="norm_order.json", help="file beside this script (default: %(default)s)")
    options = parser.parse_args(arguments)
    command = (f"python experiments/norm_order.py --steps {options.steps} "
               f"--seeds {' '.join(map(str, options.seeds))}")
    first, *others = options.seeds
    results = {"steps": options.steps, "orders": {}}
    for order, warmup in product(ORDERS, WARM_UPS):
        tried = {lr: train(order, warmup, lr, options.steps, first) for lr in RATES}
        best = min(tried, key=lambda lr: end(tried[lr]))
        curves = [tried[best], *(train(order, warmup, best, options.steps, seed) for seed in others)]
        results["orders"].setdefault(order, {})[str(warmup)] = {
            "loss_at_rate": {str(lr): end(losses) for lr, losses in tried.items()}, "rate": best,
            "loss": [end(losses) for losses in curves],
            "curves": [[round(sum(losses[i:i + 10]) / 10, 3) for i in range(0, options.steps, 10)]
                       for losses in curves],
        }
        store(HERE / options.out, command, options.seeds, results)


if __name__ == "__main__":
    main()
