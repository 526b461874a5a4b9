"""Lesson 02: if the gradient reaches every word through open gates, does the model without attention translate?

``python experiments/open_gates.py`` trains lesson 02's model without attention as the lesson does (850 steps), with the
encoder's update gates as PyTorch makes them and with 2 added to their bias, and writes ``open_gates.json``: BLEU by
length of the source.
"""

import argparse
from pathlib import Path

import torch
from bottleneck import Lesson

from course_utils.claims.stored import store
from course_utils.data import token_batches
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit


def by_length(open_gate: float, lesson: Lesson, steps: int) -> dict[str, float]:
    """BLEU by length of a model whose encoder's update gates start with so much more bias, so that they keep more."""
    torch.manual_seed(lesson.seed)
    model = Seq2Seq(*map(len, lesson.vocabs), attention=None)
    rnn = model.encoder.rnn
    with torch.no_grad():
        for bias in (rnn.bias_ih_l0, rnn.bias_ih_l0_reverse):
            bias[rnn.hidden_size:2 * rnn.hidden_size] += open_gate
    batches = token_batches(lesson.train_ids, tokens=800, seed=lesson.seed)
    fit(model, batches, steps, lr=8e-3, label=f"gates +{open_gate:g}, seed {lesson.seed}", live=False)
    scores = lesson.bleu_by_length(model)
    return {group: scores[group] for group in scores if group != "all"}


def main(arguments: list[str] | None = None) -> None:
    """Measure and store after each training."""
    parser = argparse.ArgumentParser(description="Do open gates help the model without attention to translate?")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="(default: 0 to 2)")
    parser.add_argument("--steps", type=int, default=850, help="updates (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    command = f"python experiments/open_gates.py --seeds {' '.join(map(str, options.seeds))} --steps {options.steps}"
    found: dict[str, list] = {"0": [], "2": []}
    for seed in options.seeds:
        lesson = Lesson(seed)
        for gate, rows in found.items():
            rows.append(by_length(float(gate), lesson, options.steps))
            store(options.out, command, options.seeds, {"bleu_by_gate_bias": found})
            print(gate, seed, rows[-1], flush=True)


if __name__ == "__main__":
    main()
