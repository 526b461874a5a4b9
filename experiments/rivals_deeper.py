"""Lesson 04's verdict with a deeper rival: the LSTM with two layers in encoder and decoder, in equal time.

``COURSE_DATA=folder python experiments/rivals_deeper.py`` trains it as ``rivals_longer.py`` trains the one of one
layer, at the rate that was best there by BLEU, at half of it and at twice as much; it has as many parameters, and as
many steps as the Transformer's time for eight epochs holds, at the pace of the first thirty of each. What the second
layer computes is added to the first one's output (Wu et al. 2016, section 3.1). ``rivals_deeper.json`` is written
after every run; started again, it goes on.
"""

from pathlib import Path

import torch
from rivals_equal_time import go_on
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_utils.attention import CosineScore
from course_utils.data.text import PAD
from course_utils.seq2seq import LuongDecoder, Memory, Seq2Seq, run

OUT, COMMAND = Path(__file__).with_suffix(".json"), "python experiments/rivals_deeper.py"
NAME, STEPS, D_MODEL = "LSTM with attention, two layers", 4950, 222
SETTINGS = [(4e-3, 0.1, 0), (4e-3, 0.1, 1), (2e-3, 0.1, 0), (4e-3, 0.1, 2), (8e-3, 0.1, 0)]
"""Rate, dropout and seed of each run."""


class TwoLayers(LuongDecoder):
    """Its state is that of both layers, side by side: hidden and cell, ``(B, 2 * d_model)`` each."""

    def __init__(self, d_embed: int, d_model: int):
        super().__init__(d_embed, d_model, "lstm", CosineScore(d_model, d_model))
        self.upper = nn.LSTM(d_model, d_model, batch_first=True)

    def forward(self, embedded, state, memory):
        lower, upper = zip(*(part.chunk(2, dim=-1) for part in state), strict=True)
        first, lower = run(self.rnn, embedded, lower)                                     # (B, T_q, d_model)
        second, upper = run(self.upper, first, upper)
        query = first + second
        context, weights = self.look(query, memory)
        state = tuple(torch.cat(parts, dim=-1) for parts in zip(lower, upper, strict=True))
        return torch.tanh(self.combine(torch.cat([query, context], dim=-1))), weights, state


class Deeper(Seq2Seq):
    """Lesson 02's, with a second layer on both sides."""

    def __init__(self, sizes, dropout: float, d_embed: int = 128, d_model: int = D_MODEL):
        super().__init__(*sizes, d_embed, d_model, "cosine", "current", "lstm", dropout=dropout)
        self.decoder = TwoLayers(d_embed, d_model)
        self.upper = nn.LSTM(d_model, d_model // 2, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(d_model, 2 * d_model)

    def encode(self, source):
        states, summary = self.encoder(source)
        mask = source != PAD
        packed = pack_padded_sequence(states, mask.sum(dim=1), batch_first=True, enforce_sorted=False)
        more, _ = pad_packed_sequence(self.upper(packed)[0], batch_first=True, total_length=source.size(1))
        states = states + more
        state = torch.tanh(self.bridge(summary))
        keys = self.decoder.score.project_keys(states)
        return Memory(states, keys, summary, mask.unsqueeze(1)), (state, torch.zeros_like(state))


def main() -> None:
    """Begin, or go on with the runs that the file holds."""
    go_on(OUT, COMMAND, NAME, SETTINGS, STEPS, {NAME: Deeper})


if __name__ == "__main__":
    main()
