"""Lesson 04: what does waiting cost? A training step on one sentence, and on several at once, of both translators.

``python experiments/one_sentence.py`` times a forward and a backward pass on one core, of the lesson's Transformer in
the paper's base width and of lesson 02's LSTM with attention, with as many parameters: by the sentence's length, and
by how many sentences of one length make a batch. Both models run once a round; ``one_sentence.json`` has the medians
of the rounds in seconds of processor time, and the median of their ratios.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch
from steps_that_wait import timed
from torch import Tensor

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data.text import Batch
from course_utils.seq2seq import Seq2Seq
from course_utils.training import sequence_loss
from course_utils.transformer import Config, Transformer

LENGTHS, SENTENCES, LENGTH = (10, 20, 40, 80, 160), (1, 4, 16, 64), 80
"""Words of one sentence; how many sentences in a batch, each of the last number of words."""
SIZES = (135, 150)
"""Small vocabularies, about the lesson's: what is timed are the layers."""
D_MODEL, D_LSTM = 512, 1064
MODELS = {"LSTM with attention": lambda: Seq2Seq(*SIZES, D_MODEL, D_LSTM, "cosine", "current", "lstm"),
          "Transformer": lambda: Transformer(*SIZES, Config(D_MODEL, n_heads=8, d_ff=4 * D_MODEL))}


def steps(sentences: int, length: int) -> dict[str, Callable[[], Tensor]]:
    """For each model a function from nothing to its loss on random sentences of one length."""
    source, target = (torch.randint(4, size, (sentences, length + i)) for i, size in enumerate(SIZES))
    batch = Batch(source, target)
    return {name: partial(lambda model: sequence_loss(model, batch)[0], make()) for name, make in MODELS.items()}


def compare(works: dict[str, Callable[[], Tensor]], rounds: int) -> dict:
    """Seconds of each, and how many times as long the first one takes."""
    times = timed(works, rounds, threads=(1,))
    return {name: round(median(taken), 4) for (name, _), taken in times.items()} | {
        "ratio": round(median(a / b for a, b in zip(*times.values(), strict=True)), 2)}


def main(arguments: list[str] | None = None) -> None:
    """Measure, and store after each pair."""
    parser = argparse.ArgumentParser(description="What waiting costs; writes one_sentence.json.")
    parser.add_argument("--rounds", type=int, default=9, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    seed = setup()
    results = {"rounds": options.rounds, "words_in_a_batch": LENGTH, "length": {}, "sentences": {}}
    cases = [("length", n, 1, n) for n in LENGTHS] + [("sentences", n, n, LENGTH) for n in SENTENCES]
    for kind, key, sentences, length in cases:
        results[kind][str(key)] = compare(steps(sentences, length), options.rounds)
        store(options.out, f"python experiments/one_sentence.py --rounds {options.rounds}", [seed], results)
        print(kind, key, results[kind][str(key)], flush=True)


if __name__ == "__main__":
    main()
