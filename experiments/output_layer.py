"""Lesson 02: does the output layer of the decoder with attention explain what it gains?

Bahdanau's decoder mixes state, context and last word in one more layer. ``python experiments/output_layer.py`` gives
the decoder without attention the same layer, trains it as the lesson does (850 steps), and writes
``output_layer.json``: BLEU by length of the source.
"""

import argparse
from pathlib import Path

import torch
from bottleneck import Lesson
from torch import Tensor, nn

from course_utils.claims.stored import store
from course_utils.data import token_batches
from course_utils.seq2seq import Memory, PlainDecoder, Seq2Seq
from course_utils.training import fit


class WithOutputLayer(PlainDecoder):
    """No attention, and the output layer of ``BahdanauDecoder``, with the summary in place of the context."""

    def __init__(self, d_embed: int, d_model: int, cell: str):
        super().__init__(d_embed, d_model, cell)
        self.combine = nn.Linear(2 * d_model + d_embed, d_model)

    def forward(self, embedded: Tensor, state, memory: Memory):
        """Steps ``embedded (B, T_q, d_embed)`` -> outputs ``(B, T_q, d_model)``, no weights, the last state."""
        states, _, state = super().forward(embedded, state, memory)
        summary = memory.summary.unsqueeze(1).expand_as(states)
        return torch.tanh(self.combine(torch.cat([states, summary, embedded], dim=-1))), None, state


def by_length(lesson: Lesson, steps: int) -> dict[str, float]:
    """BLEU by length without attention, with the output layer."""
    torch.manual_seed(lesson.seed)
    model = Seq2Seq(*map(len, lesson.vocabs), attention=None)
    model.decoder = WithOutputLayer(d_embed=64, d_model=128, cell="gru")
    batches = token_batches(lesson.train_ids, tokens=800, seed=lesson.seed)
    fit(model, batches, steps, lr=8e-3, label=f"output layer, seed {lesson.seed}", live=False)
    scores = lesson.bleu_by_length(model)
    return {group: scores[group] for group in scores if group != "all"}


def main(arguments: list[str] | None = None) -> None:
    """Measure and store after each training."""
    parser = argparse.ArgumentParser(description="Does one more output layer help the model without attention?")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="(default: 0 to 2)")
    parser.add_argument("--steps", type=int, default=850, help="updates (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    found: list[dict[str, float]] = []
    for seed in options.seeds:
        found.append(by_length(Lesson(seed), options.steps))
        seeds = options.seeds[:len(found)]
        command = f"python experiments/output_layer.py --seeds {' '.join(map(str, seeds))} --steps {options.steps}"
        store(options.out, command, seeds, {"bleu": found})
        print(seed, found[-1], flush=True)


if __name__ == "__main__":
    main()
