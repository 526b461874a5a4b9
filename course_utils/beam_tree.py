"""A beam search as a tree: what `widgets.DecodingTree` draws."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from .arguments import at_least
from .data.text import BOS, EOS, PAD, Vocab
from .decoding import check_vocab, greedy, grow, length_penalty
from .models import device_of, evaluating


class Node(NamedTuple):
    """One word of a `BeamTree`, and the path that ends in it."""

    id: int
    """Its place in the list."""
    parent: int | None
    """An id; ``None`` for the root, which is BOS."""
    word: str
    log_prob: float
    """Nats, of the path from the root; the model's, whatever the temperature of samples."""
    score: float
    """``log_prob`` divided by the length penalty."""
    step: int
    """Number of words up to here."""
    kept: bool
    """Whether it was in the beam."""
    finished: bool
    """Whether it is EOS."""
    greedy: bool = False
    """Whether greedy decoding comes through here."""
    sampled: int = 0
    """How many of the samples do."""


class BeamTree(NamedTuple):
    """A beam search as a tree, see `beam_tree`."""

    nodes: list[Node]
    best: int
    """Where the hypothesis with the best score ends: an id."""
    sampling: Mapping | None = None
    """How samples were drawn."""


class _Tree:
    """The nodes of a `BeamTree` so far."""

    def __init__(self, words: Sequence[str], alpha: float):
        self.words, self.alpha, self.nodes = words, alpha, []
        self.children: dict[tuple[int | None, int], int] = {}        # (parent, word's id) -> node

    def add(self, parent: int | None, word: int, log_prob: float, kept: bool) -> int:
        """Add a node; returns its id."""
        step, id = 0 if parent is None else self.nodes[parent].step + 1, len(self.nodes)
        self.nodes.append(Node(id, parent, self.words[word], log_prob, log_prob / length_penalty(step, self.alpha),
                               step, kept, finished=word == EOS))
        self.children[parent, word] = id
        return id

    def follow(self, ids: Sequence[int], log_probs: Sequence[float]) -> Iterator[int]:
        """The ids of the nodes along one output, whose words have these log-probabilities; missing nodes are added."""
        here = self.children[None, BOS]
        yield here
        for word, log_prob in zip(ids, log_probs, strict=False):
            there = self.children.get((here, word))
            here = self.add(here, word, self.nodes[here].log_prob + log_prob, kept=False) if there is None else there
            yield here


def _log_probs(model: nn.Module, source: Tensor, paths: Sequence[Sequence[int]]) -> list[list[float]]:
    """Of each word of several outputs of one sentence, all by one pass; of padding, too."""
    device = device_of(model)
    memory, state = model.encode(source.to(device))
    rows = torch.zeros(len(paths), dtype=torch.long, device=device)
    memory, state = model.reorder(memory, rows), model.reorder(state, rows)
    words = pad_sequence([torch.tensor([BOS, *ids], device=device) for ids in paths], True, PAD)      # (n, 1 + T)
    logits, _, _ = model.decode(words[:, :-1], state, memory)
    return logits.float().log_softmax(dim=-1).gather(-1, words[:, 1:, None]).squeeze(-1).tolist()


def beam_tree(model: nn.Module, source: Tensor, vocab: Vocab, beam: int = 4, alpha: float = 0.6, max_len: int = 60,
              pruned: int = 2, samples: Sequence[Sequence[int]] = (),
              sampling: Mapping | None = None) -> BeamTree:
    """The beam search of one sentence as a tree, for `widgets.DecodingTree`.

    Args:
        model, beam, alpha: as for `decoding.beam_search`.
        source: ids ``(T_k,)`` or ``(1, T_k)``.
        vocab: words of the target.
        max_len: longest output in tokens.
        pruned: how many of the candidates that just missed the beam to show at each step.
        samples: further outputs to draw as paths: rows of ids, such as `decoding.sample` gives.
        sampling: how they were drawn, ``temperature``, ``top_k`` and ``top_p`` as given to `decoding.sample`; only for
            the legend. Default: not said.

    Returns:
        The tree: outside the beam are the pruned candidates and what greedy decoding and the samples add.

    Raises:
        ValueError: for more than one sentence, a vocabulary of another size than the model's, or if ``beam`` or
            ``max_len`` is below 1, ``pruned`` below 0.
    """
    at_least(1, beam=beam, max_len=max_len)
    at_least(0, pruned=pruned)
    source = source.unsqueeze(0) if source.dim() == 1 else source
    if source.dim() != 2 or source.size(0) != 1:
        raise ValueError(f"beam_tree draws one sentence, ids (T_k,) or (1, T_k); source has shape "
                         f"{tuple(source.shape)}. Of a batch, give one row: source[i].")
    check_vocab(model, source, vocab)
    tree = _Tree(vocab.words, alpha)
    nodes, places, complete = tree.nodes, [tree.add(None, BOS, 0.0, kept=True)], []
    with evaluating(model):
        for parent, word, log_prob, candidates in grow(model, source, beam, max_len):
            size = candidates.size(-1)
            totals, chosen = candidates.flatten().tolist(), (parent * size + word)[0].tolist()    # places in K * V
            kept = [c for c, total in zip(chosen, log_prob[0].tolist(), strict=True) if total > -math.inf]
            order = candidates.flatten().argsort(descending=True, stable=True)[:beam + pruned].tolist()
            missed = [c for c in order if c not in kept and totals[c] > -math.inf][:pruned]
            added = {c: tree.add(places[c // size], c % size, totals[c], c in kept) for c in [*kept, *missed]}
            places = [added.get(c, -1) for c in chosen]
            complete += [i for i in map(added.get, kept) if nodes[i].finished or nodes[i].step == max_len]
        paths = [greedy(model, source, max_len)[0][0].tolist(), *([int(i) for i in ids][:max_len] for ids in samples)]
        paths = [ids[:ids.index(EOS) + 1] if EOS in ids else ids for ids in paths]
        of_greedy, *of_samples = map(tree.follow, paths, _log_probs(model, source, paths))
    for i in of_greedy:
        nodes[i] = nodes[i]._replace(greedy=True)
    for i in chain.from_iterable(of_samples):
        nodes[i] = nodes[i]._replace(sampled=nodes[i].sampled + 1)
    best = max(complete, key=lambda i: nodes[i].score)
    return BeamTree(nodes, best, None if sampling is None else dict(sampling))
