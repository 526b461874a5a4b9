"""Masked language modelling with a BERT of 0.1 million weights, and a classifier on its trunk (Devlin et al. 2019).

    pieces = wordpiece.train(read, 260)
    model = new_bert(len(pieces), seed)
    fit(model, batches_of(pieces, read, 32, seed), 1500, lr=3e-3, loss=masked_lm(pieces, seed))
"""

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import bert
from .arguments import at_least_one
from .data.wordpiece import WordPiece
from .models import evaluating
from .training import label_loss as class_loss  # noqa: F401 (lesson 05 knows it by this name)
from .transformer import Config

LITTLE = replace(bert.BASE, d_model=64, n_heads=4, n_layers=2, d_ff=128, dropout=0.0, max_len=64)
"""Two layers, 64 wide."""


class Pretraining(nn.Module):
    """A trunk, the encoder that tasks share, and a layer that predicts masked pieces, by every piece's embedding."""

    def __init__(self, trunk: bert.Bert):
        super().__init__()
        d, vocab = trunk.config.d_model, trunk.token_embed.num_embeddings
        self.trunk, self.bias = trunk, nn.Parameter(torch.zeros(vocab))
        self.transform = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d))

    def words(self, x: Tensor) -> Tensor:
        """``(n, d_model)`` -> logits ``(n, vocab)``."""
        return self.transform(x) @ self.trunk.token_embed.weight.T + self.bias

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor, is_target: Tensor) -> Tensor:
        """``(B, T)`` each -> logits ``(n, vocab)`` of the n targets."""
        return self.words(self.trunk(ids, mask, segments).x[is_target])


class Classifier(nn.Module):
    """A trunk and a new linear layer for two classes, on the pooled vector of ``[CLS]``."""

    def __init__(self, trunk: bert.Bert):
        super().__init__()
        self.trunk, self.head = trunk, nn.Linear(trunk.config.d_model, 2)

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        """``(B, T)`` each -> logits ``(B, 2)``."""
        return self.head(self.trunk.pool(self.trunk(ids, mask, segments).x))


class Texts(NamedTuple):
    """A batch: what ``WordPiece.batch`` gives, ``(B, T)`` each, and labels ``(B,)``."""

    ids: Tensor
    mask: Tensor
    segments: Tensor
    labels: Tensor


def new_bert(vocab_size: int, seed: int, config: Config = LITTLE, trunk: type[bert.Bert] = bert.Bert) -> Pretraining:
    """A small BERT with random weights; `trunk` is its class.

    BERT's matrices start with a standard deviation of 0.02 at width 768; here, at width 64, with 0.07, which is that
    times ``sqrt(768 / 64)``: with 0.02 it learns more slowly.
    """
    torch.manual_seed(seed)
    model = Pretraining(trunk(vocab_size, config))
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.07)
    return model


def batches_of(pieces: WordPiece, texts: Sequence[str | tuple[str, str]], size: int, seed: int,
               labels: Sequence[int] | None = None, max_len: int = LITTLE.max_len) -> list[Texts]:
    """Batches of texts, or of pairs of texts, of similar length, in random order; without labels these are 0.

    A text of more than ``max_len`` pieces is a ``ValueError``, here and in the other functions.
    """
    pairs = _pairs(texts)
    rows = sorted(zip(pairs, [0] * len(pairs) if labels is None else labels, strict=True),
                  key=lambda row: len(f"{row[0][0]} {row[0][1]}".split()))
    batches = []
    for i in range(0, len(rows), size):
        first, second = zip(*(pair for pair, _ in rows[i:i + size]), strict=True)
        batches.append(Texts(*pieces.batch(first, second, max_len, cut=False),
                             torch.tensor([label for _, label in rows[i:i + size]])))
    random.Random(seed).shuffle(batches)
    return batches


def _pairs(texts: Sequence[str | tuple[str, str]]) -> list[tuple[str, str | None]]:
    at_least_one(texts=texts)
    return [(text, None) if isinstance(text, str) else text for text in texts]


def in_order(rows: Sequence, epochs: int, seed: int) -> list[list]:
    """Rows with a ``text`` in batches of 16: roughly of similar length, in another random order in each epoch."""
    rng, batches = random.Random(seed), []
    for _ in range(epochs):
        ordered = sorted(rows, key=lambda row: len(row.text) + rng.uniform(0, 30))
        parts = [ordered[i:i + 16] for i in range(0, len(ordered), 16)]
        batches += rng.sample(parts, len(parts))
    return batches


def mask_tokens(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    """Ids ``(B, T)`` to inputs with 80/10/10 % of a share masked, and targets (Devlin et al. 2019, section 3.1)."""
    asked = (torch.rand(ids.shape, generator=generator) < share) & can_mask
    lot = torch.rand(ids.shape, generator=generator)            # a second draw
    other = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(asked & (lot < 0.8), mask_id, ids)     # 80 %
    inputs = torch.where(asked & (lot >= 0.9), other, inputs)   # 10 %
    return inputs, torch.where(asked, ids, -100)                # 10 % stay


def masker(pieces: WordPiece) -> Callable:
    """``masked(ids, generator) -> inputs, targets``: `mask_tokens` for these pieces, the special ones left alone, until
    something is masked; ids with nothing to mask are a ``ValueError``."""
    mask_id, *never = (pieces.ids[piece] for piece in ("[MASK]", "[PAD]", "[CLS]", "[SEP]"))

    def masked(ids: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        device, ids = ids.device, ids.cpu()                     # the generator's
        can_mask = ~torch.isin(ids, torch.tensor(never))
        if not can_mask.any():
            raise ValueError("these texts have no piece that can be masked; expected at least one word.")
        targets = torch.tensor(-100)
        while (targets == -100).all():                          # of a short text perhaps several times
            inputs, targets = mask_tokens(ids, can_mask, mask_id, len(pieces), generator)
        return inputs.to(device), targets.to(device)
    return masked


def masked_lm(pieces: WordPiece, seed: int) -> Callable:
    """A loss for `fit`: masks anew at each call, reproducibly for a seed."""
    masked, generator = masker(pieces), torch.Generator().manual_seed(seed)

    def loss(model: Pretraining, batch: Texts) -> tuple[Tensor, int]:
        inputs, targets = masked(batch.ids, generator)
        is_target = targets != -100
        logits = model(inputs, batch.mask, batch.segments, is_target)
        return F.cross_entropy(logits, targets[is_target]), int(is_target.sum())
    return loss


def held_out(model: Pretraining, pieces: WordPiece, texts: Sequence[str | tuple[str, str]],
             max_len: int = LITTLE.max_len) -> tuple[float, float]:
    """Mean loss in nats over the masked pieces of texts, and the accuracy; masked once, the same for every model."""
    masked, generator, losses, hits = masker(pieces), torch.Generator().manual_seed(7), [], []
    for batch in batches_of(pieces, texts, 100, seed=0, max_len=max_len):
        inputs, targets = masked(batch.ids, generator)
        is_target = targets != -100
        with evaluating(model):
            logits = model(inputs, batch.mask, batch.segments, is_target)
        losses.append(F.cross_entropy(logits, targets[is_target], reduction="none"))
        hits.append(logits.argmax(dim=-1) == targets[is_target])
    return float(torch.cat(losses).mean()), float(torch.cat(hits).float().mean())


def predicted(classifier: nn.Module, pieces: WordPiece, texts: Sequence[str | tuple[str, str]],
              max_len: int = LITTLE.max_len) -> Tensor:
    """The class with the highest logit for each text, ``(len(texts),)``."""
    pairs = _pairs(texts)
    encoded = [pieces.batch(*zip(*pairs[i:i + 64], strict=True), max_len, cut=False) for i in range(0, len(pairs), 64)]
    with evaluating(classifier):
        return torch.cat([classifier(*batch).argmax(dim=-1) for batch in encoded])


def copy_trunk(model: bert.Bert, n_frozen: int = 0) -> bert.Bert:
    """A copy to fine-tune, without dropout; the three tables and the lowest `n_frozen` layers keep their weights."""
    trunk = bert.Bert(model.token_embed.num_embeddings, replace(model.config, dropout=0.0),
                      layer=type(model.layers[0]))
    trunk.load_state_dict(model.state_dict())
    for part in (trunk.token_embed, trunk.position_embed, trunk.segment_embed, *trunk.layers[:n_frozen]):
        part.requires_grad_(False)
    return trunk


def classifier_on(model: Pretraining, seed: int) -> Classifier:
    """A classifier on a copy of a model's trunk; its new layer is drawn with the seed."""
    torch.manual_seed(seed)
    return Classifier(copy.deepcopy(model.trunk))
