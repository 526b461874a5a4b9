"""Recurrent encoder-decoders, with and without attention.

Shapes: ``source (B, T_k)`` and ``target (B, T_q)`` are ids, ``logits (B, T_q, vocab)``; ``weights (B, T_q, T_k)`` are
the attention weights, ``None`` for a decoder that has none; ``state (B, d_model)`` is what a decoder carries to its
next step, of an LSTM the pair of hidden state and cell.
Every decoder is called the same way, on one step or on many::

    outputs, weights, state = decoder(embedded, state, memory)
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .arguments import at_least, check_ids, check_share, check_source, check_target
from .attention import SCORES, attend
from .data.text import PAD
from .models import Embedding, EncoderDecoder, of_each

RNNS = {"gru": (nn.GRU, nn.GRUCell), "lstm": (nn.LSTM, nn.LSTMCell)}


def run(rnn: nn.GRU | nn.LSTM, inputs: Tensor, state):
    """One layer over ``inputs (B, T, d)``: outputs ``(B, T, d_model)``, the last state. States have the batch first."""
    outputs, state = rnn(inputs, of_each(lambda part: part.unsqueeze(0), state))           # (layers = 1, B, d_model)
    return outputs, of_each(lambda part: part.squeeze(0), state)


def hidden(state) -> Tensor:
    """The hidden state; an LSTM carries its cell beside it."""
    return state[0] if isinstance(state, tuple) else state


class Memory(NamedTuple):
    """What the encoder leaves for the decoder."""

    states: Tensor
    """``(B, T_k, d_model)``: one state per source word, the *values*."""
    keys: Tensor
    """``(B, T_k, d_key)``: the states, projected once for the score function."""
    summary: Tensor
    """``(B, d_model)``: the last state of each direction, all that a decoder without attention gets."""
    src_mask: Tensor
    """``(B, 1, T_k)``: ``True`` where there is a word, ``False`` where there is padding."""


class Encoder(nn.Module):
    """A GRU or LSTM over the source, in both directions by default; ``d_model`` is what both give together."""

    def __init__(self, vocab_size: int, d_embed: int, d_model: int, cell: str, bidirectional: bool, dropout: float):
        super().__init__()
        self.embed = Embedding(vocab_size, d_embed, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        if bidirectional and d_model % 2:
            raise ValueError(f"d_model={d_model} cannot be shared between two directions; take an even number.")
        width = d_model // 2 if bidirectional else d_model
        self.rnn = RNNS[cell][0](d_embed, width, batch_first=True, bidirectional=bidirectional)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """States ``(B, T_k, d_model)`` and their summary ``(B, d_model)``; padding is not read.

        What is refused: see `check_source`.
        """
        check_ids(source=source)
        lengths = check_source(source, source != PAD)
        embedded = self.dropout(self.embed(source))
        if lengths.min() == source.size(1):                                 # no padding: much faster on a CPU
            states, last = self.rnn(embedded)
        else:
            packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
            states, last = self.rnn(packed)
            states, _ = pad_packed_sequence(states, batch_first=True, total_length=source.size(1))
        return states, torch.cat(list(hidden(last)), dim=-1)


class PlainDecoder(nn.Module):
    """No attention: the summary is read at every step (Cho et al. 2014, section 2.2)."""

    score = None

    def __init__(self, d_embed: int, d_model: int, cell: str):
        super().__init__()
        self.rnn = RNNS[cell][0](d_embed + d_model, d_model, batch_first=True)

    def forward(self, embedded: Tensor, state, memory: Memory):
        """Steps ``embedded (B, T_q, d_embed)`` -> outputs ``(B, T_q, d_model)``, no weights, the last state."""
        summary = memory.summary.unsqueeze(1).expand(-1, embedded.size(1), -1)
        outputs, state = run(self.rnn, torch.cat([embedded, summary], dim=-1), state)
        return outputs, None, state


class AttentionDecoder(nn.Module):
    """What both decoders with attention do: look with a query at the memory."""

    def __init__(self, score: nn.Module):
        super().__init__()
        self.score = score

    def look(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Queries ``(B, T_q, d_model)`` -> a context for each ``(B, T_q, d_model)``, the weights ``(B, T_q, T_k)``."""
        return attend(query, memory.keys, memory.states, self.score.compare, memory.src_mask)


class LuongDecoder(AttentionDecoder):
    """Step first, then look: the query is the *current* state (Luong et al. 2015, section 3, without input feeding).

    No step waits for a context, so one call scores all steps.
    """

    def __init__(self, d_embed: int, d_model: int, cell: str, score: nn.Module):
        super().__init__(score)
        self.rnn = RNNS[cell][0](d_embed, d_model, batch_first=True)
        self.combine = nn.Linear(2 * d_model, d_model)

    def forward(self, embedded: Tensor, state, memory: Memory):
        """Steps ``embedded (B, T_q, d_embed)`` -> outputs ``(B, T_q, d_model)``, weights, the last state."""
        query, state = run(self.rnn, embedded, state)                                     # (B, T_q, d_model)
        context, weights = self.look(query, memory)                                       # (B, T_q, d_model)
        return torch.tanh(self.combine(torch.cat([query, context], dim=-1))), weights, state


class BahdanauDecoder(AttentionDecoder):
    """Look first, then step: the query is the *previous* state (Bahdanau et al. 2015, section 3.1, appendix A.2.2)."""

    def __init__(self, d_embed: int, d_model: int, cell: str, score: nn.Module):
        super().__init__(score)
        self.cell = RNNS[cell][1](d_embed + d_model, d_model)
        self.combine = nn.Linear(2 * d_model + d_embed, d_model)

    def forward(self, embedded: Tensor, state, memory: Memory):
        """Steps ``embedded (B, T_q, d_embed)`` -> outputs ``(B, T_q, d_model)``, weights, the last state."""
        outputs, all_weights = [], []
        for word in embedded.unbind(dim=1):                                               # (B, d_embed)
            context, weights = self.look(hidden(state).unsqueeze(1), memory)              # (B, 1, d_model)
            context = context.squeeze(1)
            state = self.cell(torch.cat([word, context], dim=-1), state)
            outputs.append(torch.cat([hidden(state), context, word], dim=-1))             # (B, 2 * d_model + d_embed)
            all_weights.append(weights)
        return torch.tanh(self.combine(torch.stack(outputs, dim=1))), torch.cat(all_weights, dim=1), state


class Seq2Seq(EncoderDecoder):
    """Encoder, decoder, and a softmax layer over the target's words.

    Args:
        source_size, target_size: sizes of the two vocabularies.
        d_embed: width of the word vectors.
        d_model: width of the encoder's states (both directions together) and of the decoder's state; equal, so that
            every score function fits without a further matrix.
        attention: a name in :data:`course_utils.attention.SCORES`, or ``None`` for the summary alone. ``"location"``
            has 64 positions; for longer sources replace ``model.decoder.score`` before training.
        query: ``"previous"`` (Bahdanau) or ``"current"`` (Luong) decoder state; ignored without attention.
        cell: ``"gru"`` or ``"lstm"``, on both sides.
        bidirectional: whether the encoder also reads from right to left.
        dropout: on the word vectors and before the softmax layer.

    Raises:
        ValueError: for a size below 1, or a name that is not known; it lists those that are.
    """

    def __init__(self, source_size: int, target_size: int, d_embed: int = 64, d_model: int = 128,
                 attention: str | None = None, query: str = "previous", cell: str = "gru",
                 bidirectional: bool = True, dropout: float = 0.0):
        super().__init__()
        at_least(1, source_size=source_size, target_size=target_size, d_embed=d_embed, d_model=d_model)
        check_share(dropout=dropout)
        decoders = {"previous": BahdanauDecoder, "current": LuongDecoder}
        for name, given, known in [("attention", attention, [None, *SCORES]), ("query", query, list(decoders)),
                                   ("cell", cell, list(RNNS))]:
            if given not in known:
                raise ValueError(f"{name}={given!r} is not known; choose one of {known}.")
        self.cell = cell
        self.encoder = Encoder(source_size, d_embed, d_model, cell, bidirectional, dropout)
        self.bridge = nn.Linear(d_model, d_model)
        self.embed = Embedding(target_size, d_embed, padding_idx=PAD)
        if attention is None:
            self.decoder = PlainDecoder(d_embed, d_model, cell)
        else:
            self.decoder = decoders[query](d_embed, d_model, cell, SCORES[attention](d_model, d_model))
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_model, target_size)

    def encode(self, source: Tensor):
        """Read ids ``(B, T_k)``; returns the :class:`Memory` and the decoder's first state."""
        states, summary = self.encoder(source)
        score = self.decoder.score
        keys = states if score is None else score.project_keys(states)
        memory = Memory(states, keys, summary, (source != PAD).unsqueeze(1))
        state = torch.tanh(self.bridge(summary))                                          # (B, d_model)
        return memory, (state, torch.zeros_like(state)) if self.cell == "lstm" else state

    def decode(self, target: Tensor, state, memory: Memory, need_weights: bool = False):
        """Logits ``(B, T_q, target_size)`` for what follows each id, the weights (unasked, too), the last state."""
        check_target(target, memory.src_mask)
        outputs, weights, state = self.decoder(self.dropout(self.embed(target)), state, memory)
        return self.output(self.dropout(outputs)), weights, state
