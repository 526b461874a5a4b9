"""From a trained model to words: decoding, and the attention weights of a given translation.

A model offers ``encode(source) -> memory, state`` and ``decode(target, state, memory) -> logits, weights, state``, in
which weights may be ``None`` unless they are asked for with ``need_weights=True``; for a search, too,
``reorder(kept, index)``: the rows ``index`` of a memory or a state, some several times or not at all.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .arguments import at_least, check_number, no_nan
from .attention import AttentionRecord
from .data.text import BOS, EOS, SPECIALS, Vocab, collate, encode_pairs, encode_sources, words_of
from .models import device_of, evaluating


def greedy(model: nn.Module, source: Tensor, max_len: int = 60,
           need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
    """Take the most probable word at every step until all sentences have ended.

    Args:
        model: with ``encode`` and ``decode`` as above; set to evaluation mode for the call.
        source: ids ``(B, T_k)``, or whatever the model encodes, such as image features ``(B, C, H, W)``.
        max_len: longest output in tokens.
        need_weights: whether to ask for the weights of every step; a `Seq2Seq` gives its own unasked.

    Returns:
        ids ``(B, T_q)`` (after EOS they mean nothing; ``Vocab.decode`` stops there), weights
        ``(B, …, T_q, T_k)``, or ``None`` if the model gives none.

    Raises:
        ValueError: if ``max_len`` is below 1, or there is no sentence.
        FloatingPointError: if the model's logits are NaN; likewise in the other functions here.
    """
    return _write(model, source, max_len, lambda logits: logits.argmax(dim=-1, keepdim=True), need_weights)


def _write(model: nn.Module, source: Tensor, max_len: int, choose: Callable[[Tensor], Tensor],
           need_weights: bool) -> tuple[Tensor, Tensor | None]:
    """Decode as `greedy` describes; ``choose`` makes the next words ``(B, 1)`` of the last logits ``(B, vocab)``."""
    at_least(1, max_len=max_len)
    _some_sentences(source)
    device, options = device_of(model), {"need_weights": True} if need_weights else {}
    words, all_weights = [], []
    with evaluating(model):
        memory, state = model.encode(source.to(device))
        word = torch.full((source.size(0), 1), BOS, device=device)
        done = torch.zeros_like(word, dtype=torch.bool)
        while not done.all() and len(words) < max_len:
            logits, weights, state = model.decode(word, state, memory, **options)
            no_nan(logits)
            word = choose(logits[:, -1]).to(device)
            done |= word == EOS
            words.append(word)
            if weights is not None:
                all_weights.append(weights)
    weights = torch.cat(all_weights, dim=-2).cpu() if all_weights else None
    return torch.cat(words, dim=1).cpu(), weights


class Hypothesis(NamedTuple):
    """One output of a beam search."""

    ids: list[int]
    """Without BOS; the last is EOS, unless ``max_len`` cut it off."""
    log_prob: float
    """Sum of the words' log-probabilities, in nats."""
    score: float
    """``log_prob`` divided by the length penalty: what finished hypotheses are ranked by."""


def length_penalty(length: int, alpha: float) -> float:
    """``((5 + length) / 6) ** alpha`` (Wu et al. 2016, equation 14); 1 for ``alpha=0`` and for a single word.

    Every further word lowers the log-probability; divided by this, long sentences are not last for length alone.

    Raises:
        ValueError: if ``alpha`` is NaN or infinite: nothing could be ranked.
    """
    if not math.isfinite(alpha):
        raise ValueError(f"alpha is {alpha}; expected a finite number, such as 0.6.")
    return ((5 + length) / 6) ** alpha


class Beam(NamedTuple):
    """The ``K`` hypotheses of each beam after one more word; ``log_prob`` is -inf where a place is empty."""

    parent: Tensor      # (B, K): the place it continues
    word: Tensor        # (B, K)
    log_prob: Tensor    # (B, K): of everything up to this word
    candidates: Tensor  # (B, K, V): the same for every continuation that was compared


def grow(model: nn.Module, source: Tensor, beam: int, max_len: int) -> Iterator[Beam]:
    """Beam search, one word at a time, until every hypothesis has ended. Call it inside ``evaluating``."""
    device, n = device_of(model), source.size(0)
    memory, state = model.encode(source.to(device))
    first = beam * torch.arange(n, device=device).unsqueeze(1)              # (B, 1): where a sentence's places begin
    rows = torch.arange(n, device=device).repeat_interleave(beam)
    memory, state = model.reorder(memory, rows), model.reorder(state, rows)  # every place its own copy: B * K rows
    word = torch.full((n, beam), BOS, device=device)
    log_prob = torch.full((n, beam), -math.inf, device=device)
    log_prob[:, 0] = 0.0                                                    # one empty hypothesis to begin with
    free = torch.full((n, 1), beam, device=device)                          # who has ended keeps its place
    for _ in range(max_len):
        logits, _, state = model.decode(word.view(-1, 1), state, memory)
        no_nan(logits)
        steps = logits[:, -1].float().log_softmax(dim=-1).view(n, beam, -1)
        candidates = log_prob.masked_fill(word == EOS, -math.inf).unsqueeze(-1) + steps    # (B, K, V)
        log_prob, best = candidates.flatten(1).topk(beam)
        log_prob = log_prob.masked_fill(torch.arange(beam, device=device) >= free, -math.inf)
        parent, word = best // steps.size(-1), best % steps.size(-1)
        yield Beam(parent.cpu(), word.cpu(), log_prob.cpu(), candidates)
        alive, ended = log_prob > -math.inf, word == EOS
        if not (alive & ~ended).any():
            return
        free = free - (alive & ended).sum(dim=1, keepdim=True)
        state = model.reorder(state, (first + parent).flatten())


def beam_search(model: nn.Module, source: Tensor, beam: int = 4, alpha: float = 0.6,
                max_len: int = 60) -> list[list[Hypothesis]]:
    """Keep the ``beam`` most probable prefixes at every step.

    A finished hypothesis keeps its place in the beam; the others share the remaining places. All hypotheses compared
    at one step have the same length, so the length penalty matters only for the final ranking. ``beam=1`` is
    :func:`greedy`. The defaults are those of Vaswani et al. 2017, section 6.1.

    Args:
        model: with ``encode``, ``decode`` and ``reorder`` as above; set to evaluation mode for the call.
        source: ids ``(B, T_k)``.
        beam: number of hypotheses per sentence.
        alpha: strength of the :func:`length_penalty`; 0 ranks by log-probability.
        max_len: longest output in tokens; hypotheses unfinished by then are ranked with the others.

    Returns:
        For each sentence at most ``beam`` hypotheses, best score first. Lengths include EOS.

    Raises:
        ValueError: if ``beam`` or ``max_len`` is below 1, alpha is not finite, or there is no sentence.
    """
    at_least(1, beam=beam, max_len=max_len)
    _some_sentences(source)
    found: list[list[Hypothesis]] = [[] for _ in range(source.size(0))]
    ids = torch.empty(source.size(0), beam, 0, dtype=torch.long)
    with evaluating(model):
        for parent, word, log_prob, _ in grow(model, source, beam, max_len):
            ids = torch.cat([ids.gather(1, parent.unsqueeze(-1).expand_as(ids)), word.unsqueeze(-1)], dim=-1)
            length = ids.size(-1)
            complete = ((word == EOS) | (length == max_len)) & (log_prob > -math.inf)
            for i, k in complete.nonzero().tolist():
                total = float(log_prob[i, k])
                found[i].append(Hypothesis(ids[i, k].tolist(), total, total / length_penalty(length, alpha)))
    return [sorted(hypotheses, key=lambda h: h.score, reverse=True) for hypotheses in found]


def truncate(probabilities: Tensor, top_k: int | None = None, top_p: float | None = None) -> Tensor:
    """Keep only the likely words and renormalise.

    Args:
        probabilities: ``(…, vocab)``, each row sums to one.
        top_k: keep that many (Fan et al. 2018).
        top_p: then keep the smallest set of words whose probability, after ``top_k``, reaches ``top_p``: the
            *nucleus* (Holtzman et al. 2020, section 3.1).

    Raises:
        ValueError: for a ``top_k`` below 1 or a ``top_p`` outside (0, 1].
    """
    if top_k is not None:
        at_least(1, top_k=top_k)
        likely = probabilities.topk(min(top_k, probabilities.size(-1)), dim=-1)
        probabilities = torch.zeros_like(probabilities).scatter(-1, likely.indices, likely.values)
        probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p}; expected a probability above 0 and up to 1.")
    if top_p is not None and top_p < 1:
        ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
        before = F.pad(ordered.cumsum(dim=-1)[..., :-1], (1, 0))     # what the more likely words have together
        ordered = ordered.masked_fill(before >= top_p, 0.0)
        probabilities = torch.zeros_like(probabilities).scatter(-1, order, ordered)
        probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    return probabilities


def sample_token(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None,
                 generator: torch.Generator | None) -> Tensor:
    """Draw a word from each row of ``logits (B, vocab)`` divided by the temperature: ids ``(B, 1)``; see `truncate`.

    The largest logit is subtracted first: what is left is at most 0, and stays a number at any temperature above 0.
    """
    temperature = max(temperature, torch.finfo(logits.dtype).tiny)         # which a smaller one would round to 0
    logits = (logits - logits.amax(dim=-1, keepdim=True)) / temperature
    return truncate(logits.softmax(dim=-1), top_k, top_p).multinomial(1, generator=generator)


def sample(model: nn.Module, source: Tensor, temperature: float = 1.0, top_k: int | None = None,
           top_p: float | None = None, generator: torch.Generator | None = None, max_len: int = 60) -> Tensor:
    """Draw every word from the model's distribution until all sentences have ended.

    Args:
        model: with ``encode`` and ``decode`` as above; set to evaluation mode for the call.
        source: ids ``(B, T_k)``; repeat a sentence to get several samples of it.
        temperature: the logits are divided by it; below 1 likely words get likelier, towards 0 it is :func:`greedy`.
        top_k, top_p: leave unlikely words out, see :func:`truncate`. Default: all words can be drawn.
        generator: on the CPU; the same generator gives the same words. Default: PyTorch's own.
        max_len: longest output in tokens.

    Returns:
        ids ``(B, T_q)``; after EOS they mean nothing (``Vocab.decode`` stops there).

    Raises:
        ValueError: if ``temperature`` is not above 0, ``top_k`` or ``max_len`` is below 1, ``top_p`` is outside (0, 1],
            or there is no sentence.
    """
    check_number(temperature=temperature)
    if not temperature > 0:
        raise ValueError(f"temperature={temperature}; expected a number above 0. For the most probable word each "
                         f"time, use greedy.")

    def choose(logits: Tensor) -> Tensor:
        return sample_token(logits.float().cpu(), temperature, top_k, top_p, generator)

    return _write(model, source, max_len, choose, need_weights=False)[0]


def _some_sentences(source: Tensor) -> None:
    if not isinstance(source, Tensor):
        raise TypeError(f"source is a {type(source).__name__}; expected a tensor of ids (B, T_k). For sentences: "
                        "translate.")
    if source.dim() < 2 or len(source) == 0:
        raise ValueError(f"source has shape {tuple(source.shape)}; expected ids (B, T_k) of at least one sentence.")


def batches_by_length(sentences: Sequence[Sequence[str]], batch_size: int = 100) -> Iterator[list[int]]:
    """Indices of the sentences, ``batch_size`` at a time, similar lengths together: little padding."""
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    for start in range(0, len(order), batch_size):
        yield order[start:start + batch_size]


def check_vocab(model: nn.Module, source: Tensor, vocab: Vocab) -> None:
    """Refuse another vocabulary than the model writes in; ``source (B, T_k)`` is any sentence, to ask the model."""
    device = device_of(model)
    with evaluating(model):
        memory, state = model.encode(source[:1].to(device))
        size = model.decode(torch.tensor([[BOS]], device=device), state, memory)[0].size(-1)
    if size != len(vocab):
        raise ValueError(f"the model writes {size} words, vocab has {len(vocab)}; expected the target's vocabulary, "
                         "which the model was made for.")


def translate(model: nn.Module, sentences: Sequence[Sequence[str]], source_vocab: Vocab, target_vocab: Vocab,
              max_len: int = 60, beam: int = 1, alpha: float = 0.6) -> list[list[str]]:
    """Translations of tokenised sentences, in their order: greedy, or the best hypotheses of a beam search.

    Args:
        model: see :func:`greedy`.
        sentences: their tokens.
        source_vocab, target_vocab: their vocabularies.
        max_len: longest output in tokens.
        beam, alpha: see :func:`beam_search`; with ``beam=1`` decoding is greedy.

    Raises:
        TypeError: if a sentence is a string.
        ValueError: if ``beam`` or ``max_len`` is below 1, or the target's vocabulary is of another size than the
            model's.
    """
    at_least(1, beam=beam)
    sentences = [words_of(sentence) for sentence in sentences]
    if sentences:
        check_vocab(model, encode_sources(sentences[:1], source_vocab), target_vocab)
    translations: list[list[str]] = [[] for _ in sentences]
    for chosen in batches_by_length(sentences):
        source = encode_sources([sentences[i] for i in chosen], source_vocab)
        if beam == 1:
            rows = greedy(model, source, max_len)[0].tolist()
        else:
            rows = [found[0].ids for found in beam_search(model, source, beam, alpha, max_len)]
        for i, row in zip(chosen, rows, strict=True):
            translations[i] = target_vocab.decode(row)
    return translations


def attention_records(model: nn.Module, pairs: Sequence, source_vocab: Vocab,
                      target_vocab: Vocab) -> list[AttentionRecord]:
    """The attention weights while the model is forced to write the reference (*forced decoding*).

    Args:
        model: a model with attention.
        pairs: sentence pairs (first two fields: source and target tokens); their ``links`` are the true alignment.
        source_vocab, target_vocab: their vocabularies.

    Returns:
        A record for each pair: weights ``(…, len(target), len(source) + 1)``, for a Transformer the cross-attention's
        with layers and heads in front; rows are the target, columns the source and ``<eos>``.

    Raises:
        TypeError: for one pair instead of a list, or a sentence in one string.
        ValueError: if the model has no attention.
    """
    pairs, records = list(pairs), {}
    for i, pair in enumerate(pairs):
        if len(pair) < 2 or isinstance(pair[0], str):
            raise TypeError(f"pair {i} is {pair!r:.60}; expected two lists of words, source and target. For one pair: "
                            "[pair]. For a sentence in one string: sentence.split().")
    for chosen in batches_by_length([source for source, *_ in pairs]):
        batch = collate(encode_pairs([pairs[i] for i in chosen], source_vocab, target_vocab))
        with evaluating(model):
            logits, weights = model(batch.source.to(device_of(model)), batch.target[:, :-1].to(device_of(model)),
                                    need_weights=True)
        no_nan(logits)
        if weights is None:
            raise ValueError("this model has no attention, so there are no weights to read.")
        for i, matrix in zip(chosen, weights.cpu(), strict=True):
            rows, columns = list(pairs[i][1]), [*pairs[i][0], SPECIALS[EOS]]
            alone = matrix[..., :len(rows), :len(columns)].clone()      # not the whole batch's memory
            records[i] = AttentionRecord(alone, rows, columns, getattr(pairs[i], "links", ()), len(columns) - 1)
    return [records[i] for i in range(len(pairs))]
