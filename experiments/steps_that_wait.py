"""Lesson 04: what is won when no step waits for another? Words per second by length, by cores, and of deep stacks.

``python experiments/steps_that_wait.py`` times a forward and a backward pass with teacher forcing, of the two
translators of ``translation_rivals.py`` and of stacks of causal layers with as many parameters, and writes
``steps_that_wait.json``. Every batch has the same number of tokens, cut into fewer and longer sentences. The LSTM
reads a sentence in one call (``nn.LSTM``), and all its states ask for attention at once. Both models, with one thread
and with two, run once a round; what is stored is the median of the rounds, also of their ratios. One thread is timed
in processor seconds; two threads by the clock on the wall, so that a second core which others use is no gain.

``waits`` is counted on the graph that the backward pass follows: the matrix products on its longest path. An LSTM has
one for every word. ``nn.LSTM`` runs its layers one after the other; if each word's upper layer started as soon as the
lower one is through, ``length + layers`` products would still have to wait.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn
from translation_rivals import MODELS

from course_utils import setup
from course_utils.attention import causal_mask
from course_utils.claims.stored import store
from course_utils.data.text import Batch
from course_utils.measuring import longest_chain, products
from course_utils.training import sequence_loss
from course_utils.transformer import Config, EncoderLayer

TOKENS = 1024
LENGTHS, LAYERS, STACK_LENGTHS = (8, 16, 32, 64, 128, 256, 512), (2, 4, 8), (32, 512)
SIZES = (5930, 6483)
"""Of the vocabularies of Multi30k in ``translation_rivals.py``."""
D_MODEL, D_LSTM = 256, 314  # as many parameters: 12 * 256 ** 2, about 8 * 314 ** 2


class Stack(nn.Module):
    """Lesson 04's layers, each under a causal mask."""

    def __init__(self, n_layers: int):
        super().__init__()
        config = Config(D_MODEL, n_heads=4, d_ff=4 * D_MODEL)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(n_layers))

    def forward(self, x: Tensor) -> Tensor:
        """``(B, T, d_model)`` to the same shape."""
        mask = causal_mask(x.size(1), x.size(1))
        for layer in self.layers:
            x, _ = layer(x, mask)
        return x


def translators(length: int) -> dict[str, Callable[[], Tensor]]:
    """For each translator a function from nothing to its loss on random sentences of one length."""
    source, target = (torch.randint(4, size, (TOKENS // length, length + i)) for i, size in enumerate(SIZES))
    batch = Batch(source, target)
    models = {name: make(SIZES, 0.1) for name, make in MODELS.items()}
    return {name: partial(lambda model: sequence_loss(model, batch, 0.1)[0], model) for name, model in models.items()}


def stacks(n_layers: int, length: int) -> dict[str, Callable[[], Tensor]]:
    """The same for stacks without words: the mean of what comes out at the top."""
    deep, cell = Stack(n_layers), nn.LSTM(D_LSTM, D_LSTM, n_layers, batch_first=True)
    x, y = (torch.randn(TOKENS // length, length, d, requires_grad=True) for d in (D_MODEL, D_LSTM))
    return {"Transformer": lambda: deep(x).mean(), "LSTM": lambda: cell(y)[0].mean()}


def waits(loss: Tensor) -> int:
    """How many matrix products stand on the longest path of the graph behind ``loss``."""
    return longest_chain(loss, products)


def counted(works: dict[str, Callable[[], Tensor]]) -> dict[str, int]:
    """`waits` of each; without oneDNN, which puts a whole layer of an LSTM into one node."""
    with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None):
        return {name: waits(work()) for name, work in works.items()}


def seconds(work: Callable[[], Tensor], threads: int) -> float:
    """Of a forward and a backward pass: processor time of one thread, wall time of several."""
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    started = clock()
    work().backward()
    return clock() - started


def timed(works: dict[str, Callable[[], Tensor]], rounds: int,
          threads: Sequence[int]) -> dict[tuple[str, int], list[float]]:
    """`seconds` of each with each number of threads, round by round."""
    times = {(name, n): [] for name in works for n in threads}
    for i in range(rounds + 1):
        for name, n in times:
            taken = seconds(works[name], n)
            if i > 0:                                             # the first round warms up
                times[name, n].append(taken)
    return times


def compare(works: dict[str, Callable[[], Tensor]], rounds: int, threads: Sequence[int] = (1, 2)) -> dict:
    """Tokens per second of each, by threads; and the ratios within the rounds."""
    times = timed(works, rounds, threads)

    def ratio(a: tuple, b: tuple) -> float:
        return round(median(y / x for x, y in zip(times[a], times[b], strict=True)), 3)
    first, second = works
    waiting = counted(works)
    return {"ratio": {str(n): ratio((first, n), (second, n)) for n in threads}} | {
        name: {"tokens_per_second": {str(n): round(TOKENS / median(times[name, n])) for n in threads},
               "gain_of_threads": ratio((name, max(threads)), (name, min(threads))), "waits": waiting[name]}
        for name in works}


def main(arguments: list[str] | None = None) -> None:
    """Measure and store after each pair."""
    parser = argparse.ArgumentParser(description="Words per second of both; writes steps_that_wait.json.")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="(default: 1 2)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    command = (f"python experiments/steps_that_wait.py --rounds {options.rounds} "
               f"--threads {' '.join(map(str, options.threads))}")
    seed = setup()
    results = {"tokens_in_a_batch": TOKENS, "rounds": options.rounds, "translators": {}, "stacks": {}}
    cases = [("translators", (length,), partial(translators, length)) for length in LENGTHS]
    cases += [("stacks", (n, length), partial(stacks, n, length)) for n in LAYERS for length in STACK_LENGTHS]
    busy = []
    for kind, (*outer, length), make in cases:
        row = results[kind]
        for n in outer:
            row = row.setdefault(str(n), {})
        row[str(length)] = compare(make(), options.rounds, options.threads)
        busy.append(os.getloadavg()[0])
        results["machine"] = f"shared with other work; load average {min(busy):.1f} to {max(busy):.1f}"
        store(options.out, command, [seed], results)
        print(kind, *outer, length, row[str(length)], flush=True)


if __name__ == "__main__":
    main()
