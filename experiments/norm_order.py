"""Lesson 04: where does the norm go? Its model with norms in the branch (pre-LN) and on the path (post-LN).

``python experiments/norm_order.py`` trains the lesson's Transformer on the lesson's sentences, with a short and with a
longer warm-up; on the path also at a third of the rate. Losses and BLEU go to ``norm_order.json``.
"""

import argparse
from functools import partial
from pathlib import Path

import torch

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import Vocab, token_batches, train_test
from course_utils.data.text import encode_pairs
from course_utils.decoding import translate
from course_utils.metrics import bleu
from course_utils.training import fit, trapezoid
from course_utils.transformer import Config, Transformer

HERE = Path(__file__).resolve().parent
SETTINGS = (("pre-LN", 50, 6e-3), ("pre-LN", 200, 6e-3), ("post-LN", 50, 6e-3), ("post-LN", 200, 6e-3),
            ("post-LN", 50, 2e-3))
"""Order, steps of warm-up, peak rate. The lesson trains with the first."""


def train(order: str, warmup: int, lr: float, steps: int, seed: int) -> dict:
    """The loss at the end and along the way, in nats per token, and BLEU of the test sentences."""
    setup(seed)
    pairs, test = train_test(20_000, 420, seed=seed)
    vocabs = [Vocab(pair[side] for pair in pairs) for side in (0, 1)]
    torch.manual_seed(seed)
    model = Transformer(*map(len, vocabs), Config(n_heads=4, pre_norm=order == "pre-LN"))
    log = fit(model, token_batches(encode_pairs(pairs, *vocabs), tokens=500, seed=seed), steps, lr=lr, live=False,
              schedule=partial(trapezoid, warmup=warmup), label=f"{order}, warm-up {warmup}, rate {lr}, seed {seed}")
    sources, references = [pair.source for pair in test], [pair.target for pair in test]
    return {"loss": round(sum(log.loss[-20:]) / len(log.loss[-20:]), 3),
            "bleu": round(bleu(translate(model, sources, *vocabs), references), 1),
            "curve": [round(sum(log.loss[i:i + 10]) / 10, 3) for i in range(0, steps, 10)]}


def main(arguments: list[str] | None = None) -> None:
    """All settings at all seeds; what is there is stored after each setting."""
    parser = argparse.ArgumentParser(description="Norms on the path and in the branch; writes norm_order.json.")
    parser.add_argument("--steps", type=int, default=1000, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 1 2 3 4)")
    parser.add_argument("--out", default="norm_order.json", help="file beside this script (default: %(default)s)")
    options = parser.parse_args(arguments)
    command = (f"python experiments/norm_order.py --steps {options.steps} "
               f"--seeds {' '.join(map(str, options.seeds))}")
    rows = []
    for order, warmup, rate in SETTINGS:
        runs = [train(order, warmup, rate, options.steps, seed) for seed in options.seeds]
        rows.append({"order": order, "warmup": warmup, "rate": rate, "runs": runs})
        store(HERE / options.out, command, options.seeds, {"steps": options.steps, "rows": rows})


if __name__ == "__main__":
    main()
