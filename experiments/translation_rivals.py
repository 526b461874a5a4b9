"""Lesson 04's verdict: a Transformer and an LSTM with attention translate captions, at equal cost and at their best.

``COURSE_DATA=folder python experiments/translation_rivals.py`` trains both on Multi30k English-French, on one thread,
and writes ``translation_rivals.json`` after every run; started again, it goes on where it stopped. Both have the same
batches, loss, optimizer, schedule and greedy decoding, and about as many parameters. Peak learning rate and dropout are
chosen from the same grid for both, by the loss on the validation set. All runs of a search, and all final ones, take
the same processor time: how many steps that is follows from the seconds per step of the runs before. The two models
take turns, so that other work on the machine slows both. Without ``COURSE_DATA`` the files are downloaded.

BLEU is of tokenised, lower-cased text, as in ``real_captions.py``.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import torch
from real_captions import BUCKETS, load
from torch import nn

from course_utils import setup
from course_utils.claims.stored import store, stored
from course_utils.data import Vocab, token_batches
from course_utils.data.text import encode_pairs
from course_utils.decoding import evaluating, translate
from course_utils.metrics import bleu, by_group, length_groups
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit, sequence_loss, trapezoid
from course_utils.transformer import Config, Transformer

GRID = tuple(product((1e-3, 2e-3, 4e-3, 8e-3), (0.1, 0.3)))
"""Peak learning rates and dropouts, the same for both."""


def transformer(sizes: Sequence[int], dropout: float) -> Transformer:
    """Lesson 04's, wider."""
    return Transformer(*sizes, Config(d_model=192, n_heads=4, n_layers=2, d_ff=768, dropout=dropout))


def recurrent(sizes: Sequence[int], dropout: float) -> Seq2Seq:
    """Lesson 02's with an LSTM, and with the score function and the query that learn fastest."""
    return Seq2Seq(*sizes, d_embed=128, d_model=284, attention="cosine", query="current", cell="lstm", dropout=dropout)


MODELS: dict[str, Callable[..., nn.Module]] = {"Transformer": transformer, "LSTM with attention": recurrent}


class Captions:
    """The three parts of Multi30k, and the vocabularies of its training part."""

    def __init__(self):
        self.train, self.val, self.test = (load(split) for split in ("train", "val", "test"))
        self.vocabs = [Vocab((pair[side] for pair in self.train), min_count=2) for side in (0, 1)]
        self.sizes = [len(vocab) for vocab in self.vocabs]
        self.groups = length_groups(self.test, BUCKETS)
        self.train_ids, self.val_ids = (encode_pairs(pairs, *self.vocabs) for pairs in (self.train, self.val))

    def validation_loss(self, model: nn.Module) -> float:
        """Mean loss per target token of the validation set, without smoothing."""
        with evaluating(model):
            losses = [sequence_loss(model, batch) for batch in token_batches(self.val_ids, tokens=1000)]
        return round(float(sum(loss * n for loss, n in losses) / sum(n for _, n in losses)), 4)

    def scores(self, model: nn.Module) -> dict:
        """BLEU of the test set, of all and by length, and how fast it was written."""
        sources, references = zip(*self.test, strict=True)
        started = time.process_time()
        hypotheses = translate(model, sources, *self.vocabs)
        seconds = time.process_time() - started
        by_length = by_group(bleu, self.groups, hypotheses, references)
        return {"bleu": round(bleu(hypotheses, references), 2),
                "by_length": {group: round(score, 2) for group, score in by_length.items()},
                "decoded_tokens_per_cpu_second": round(sum(len(words) + 1 for words in hypotheses) / seconds)}


def train(captions: Captions, name: str, setting: Sequence[float], seed: int, steps: int,
          schedule: Callable[[int, int], float] = trapezoid, models=MODELS) -> tuple[nn.Module, dict]:
    """One of ``models``, trained from ``seed`` with a rate and a dropout; and what it took."""
    rate, dropout = setting
    setup(seed)
    model = models[name](captions.sizes, dropout)
    batches = token_batches(captions.train_ids, tokens=1000, seed=seed)
    started = time.process_time()
    history = fit(model, batches, steps, lr=rate, loss=partial(sequence_loss, label_smoothing=0.1), live=False,
                  schedule=schedule, label=f"{name}, rate {rate:g}, dropout {dropout:g}, seed {seed}")
    seconds = time.process_time() - started
    return model, {"rate": rate, "dropout": dropout, "seed": seed, "steps": steps, "cpu_seconds": round(seconds, 1),
                   "trained_tokens_per_cpu_second": round(history.tokens / seconds),
                   "validation_loss": captions.validation_loss(model)}


def steps_in(seconds: float, runs: Sequence[dict]) -> int:
    """How many steps take so much processor time, after those of earlier runs."""
    return max(1, round(seconds * sum(run["steps"] for run in runs) / sum(run["cpu_seconds"] for run in runs)))


def chosen(search: Sequence[dict]) -> tuple[float, float]:
    """Rate and dropout of the run with the lowest loss on the validation set."""
    best = min(search, key=lambda run: run["validation_loss"])
    return best["rate"], best["dropout"]


def measure(captions: Captions, results: dict, options: argparse.Namespace, command: str) -> None:
    """Every run that ``results`` does not hold yet, stored as soon as it is there."""
    def save() -> None:
        store(options.out, command, options.seeds, results)
    first, rows = options.seeds[0], results["models"]
    for name, row in rows.items():
        if "pace" not in row:
            row["pace"] = train(captions, name, GRID[0], first, options.pace)[1]
            save()
    for (i, setting), (name, row) in product(enumerate(GRID), rows.items()):
        if len(row["search"]) == i:
            steps = steps_in(options.search, row["search"] or [row["pace"]])
            row["search"].append(train(captions, name, setting, first, steps)[1])
            print(name, row["search"][-1], flush=True)
            save()
    for (i, seed), (name, row) in product(enumerate(options.seeds), rows.items()):
        if len(row["final"]) == i:
            steps = steps_in(options.final, row["search"])
            model, run = train(captions, name, chosen(row["search"]), seed, steps)
            row["final"].append(run | captions.scores(model))
            print(name, row["final"][-1], flush=True)
            save()


def main(arguments: list[str] | None = None) -> None:
    """Begin, or go on with the runs that the file holds."""
    parser = argparse.ArgumentParser(description="Two translators at equal cost; writes translation_rivals.json.")
    parser.add_argument("--pace", type=int, default=30, help="steps that tell the first pace (default: %(default)s)")
    parser.add_argument("--search", type=float, default=80, help="CPU seconds of a run (default: %(default)s)")
    parser.add_argument("--final", type=float, default=600, help="CPU seconds of a run (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="the first is searched at")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    command = (f"python experiments/translation_rivals.py --pace {options.pace} --search {options.search:g} "
               f"--final {options.final:g} --seeds {' '.join(map(str, options.seeds))}")
    torch.set_num_threads(1)
    captions = Captions()
    results = {"sentences": {group: len(numbers) for group, numbers in captions.groups.items()}, "models": {
        name: {"parameters": sum(weights.numel() for weights in make(captions.sizes, 0.0).parameters()),
               "search": [], "final": []} for name, make in MODELS.items()}}
    if options.out.is_file() and (earlier := stored(options.out.stem, options.out.parent)).command == command:
        results = earlier.results
    measure(captions, results, options, command)


if __name__ == "__main__":
    main()
