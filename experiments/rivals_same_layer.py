"""Lesson 04's verdict with the rival in the Transformer's own layers: an LSTM in place of each self-attention.

``COURSE_DATA=folder python experiments/rivals_same_layer.py`` trains the Transformer of ``translation_rivals.py`` with
an LSTM where its layers have self-attention, in both directions in the encoder, and without positions; path, norms,
cross-attention with four heads, feed-forward networks and shared softmax matrix stay (after Domhan 2018, *How Much
Attention Do You Need?*). It has as many parameters, the settings that the Transformer was given in
``rivals_longer.py`` and ``rivals_dropout.py``, and as many steps, which take as long (thirty steps, three times in
turns: 32.8 and 33.1 seconds). ``rivals_same_layer.json`` is written after every run; started again, it goes on.
"""

from pathlib import Path

from rivals_equal_time import go_on
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_utils.seq2seq import run
from course_utils.transformer import Config, DecoderLayer, Transformer

OUT, COMMAND = Path(__file__).with_suffix(".json"), "python experiments/rivals_same_layer.py"
NAME, STEPS, D_MODEL = "LSTM in the Transformer's layers", 4144, 180
SETTINGS = [(2e-3, 0.1, 0), (4e-3, 0.1, 0), (2e-3, 0.1, 1), (2e-3, 0.1, 2), (1e-3, 0.1, 0), (2e-3, 0.2, 0)]
"""Rate, dropout and seed of each run."""


class BothWays(nn.Module):
    """Called as the encoder's self-attention: each position sees every other one, through the states between."""

    def __init__(self, d_model: int):
        super().__init__()
        self.rnn = nn.LSTM(d_model, d_model // 2, batch_first=True, bidirectional=True)

    def forward(self, x, mask, need_weights):
        if mask.all():                                                      # no padding: much faster on a CPU
            return self.rnn(x)[0], None
        packed = pack_padded_sequence(x, mask.squeeze(1).sum(dim=-1), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.size(1))[0], None


class RecurrentDecoderLayer(DecoderLayer):
    """Its state is the LSTM's: hidden and cell, ``(B, d_model)`` each."""

    def __init__(self, config: Config):
        super().__init__(config)
        self.self_attention = nn.LSTM(config.d_model, config.d_model, batch_first=True)

    def forward(self, x, memory, src_mask, past, need_weights=False):
        def cross_attention(query):
            return self.cross_attention.attend(query, *memory, mask=src_mask, need_weights=need_weights)
        x, past = self.residual(x, self.norm_1, lambda h: run(self.self_attention, h, past))
        x, weights = self.residual(x, self.norm_2, cross_attention)
        return self.residual(x, self.norm_3, self.feed_forward), weights, past


class SameLayers(Transformer):
    """The Transformer with recurrence: it needs no positions."""

    def __init__(self, sizes, dropout: float, d_model: int = D_MODEL):
        config = Config(d_model=d_model, n_heads=4, n_layers=2, d_ff=4 * d_model, dropout=dropout)
        super().__init__(*sizes, config)
        for layer in self.encoder.layers:
            layer.self_attention = BothWays(d_model)
        self.decoder.layers = nn.ModuleList(RecurrentDecoderLayer(config) for _ in range(config.n_layers))
        self.positions.zero_()

    def encode(self, source):
        memory, caches = super().encode(source)
        zeros = self.positions.new_zeros(len(source), self.config.d_model)
        return memory, tuple((zeros, zeros) for _ in caches)

    def decode(self, target, state, memory, need_weights=False):
        x, weights, state = self.decoder(self.embed(target, self.target_embed), memory.caches, memory.src_mask, state,
                                         need_weights)
        return x @ self.target_embed.weight.T, weights, state


def main() -> None:
    """Begin, or go on with the runs that the file holds."""
    go_on(OUT, COMMAND, NAME, SETTINGS, STEPS, {NAME: SameLayers})


if __name__ == "__main__":
    main()
