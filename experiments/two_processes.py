"""Lesson 04 on one and on two processes: the same ``fit``, the same batches, the same losses.

``python experiments/two_processes.py`` trains a small Transformer twice and writes
``experiments/two_processes.json``: in one process with batches of 32 sentences, then in two with 16 each. All
sentences have one length, so that the mean of the two processes' losses is the loss of the whole batch. It trains in
double precision: what is left of a difference is rounding, about 1e-15.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from accelerate import PartialState
from torch.utils.data import DataLoader

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import Vocab, corpus
from course_utils.data.text import collate, encode_pairs
from course_utils.training import fit, inverse_sqrt
from course_utils.transformer import Config, Transformer

HERE = Path(__file__).resolve().parent
STEPS = 150
BATCH = 32
LENGTHS = (10, 11)
"""Ids of a source and of a target, with their start and end symbols."""


def rate(step: int, steps: int) -> float:
    """The schedule of the whole run, so that a shorter one has its first losses."""
    return inverse_sqrt(step, STEPS)


def train(steps: int, folder: Path) -> None:
    """What each process runs: train on its share of every batch, and write its losses into ``folder``."""
    seed = setup()
    pairs = corpus(6_000, seed=seed, min_len=6, max_len=12)
    vocabs = [Vocab([pair[side] for pair in pairs]) for side in (0, 1)]
    same = [ids for ids in encode_pairs(pairs, *vocabs) if tuple(map(len, ids)) == LENGTHS]
    state = PartialState(cpu=True)
    batches = DataLoader(same, batch_size=BATCH // state.num_processes, collate_fn=collate, drop_last=True)
    torch.manual_seed(seed)
    history = fit(Transformer(*map(len, vocabs), Config()).double(), batches, steps, lr=4e-3, schedule=rate, live=False)
    (folder / f"{state.process_index}.json").write_text(json.dumps(history.loss))


def launch(n_processes: int, steps: int) -> list[float]:
    """Run this script in so many processes; the losses of the whole batches."""
    with tempfile.TemporaryDirectory() as folder:
        # on CPUs `accelerate launch` starts one process only; this is what it calls on a machine with several GPUs
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(n_processes)]
        subprocess.run([sys.executable, *launcher, __file__, "--steps", str(steps), "--worker", folder], check=True,
                       env={**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"})
        losses = [json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())]
    return [sum(parts) / len(parts) for parts in zip(*losses, strict=True)]


def main(arguments: list[str] | None = None) -> None:
    """Train in one process and in two, and write both curves."""
    parser = argparse.ArgumentParser(description="Train in one process and in two; write two_processes.json.")
    parser.add_argument("--steps", type=int, default=STEPS, help="updates (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "two_processes.json", help="file (default: %(default)s)")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        train(options.steps, options.worker)
        return
    curves = {str(n): launch(n, options.steps) for n in (1, 2)}
    store(options.out, f"python experiments/two_processes.py --steps {options.steps}", [setup()], curves)
    print("largest difference:", max(abs(a - b) for a, b in zip(*curves.values(), strict=True)))


if __name__ == "__main__":
    main()
