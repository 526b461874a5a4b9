"""How good a translation or an alignment is, overall and by group; whether a difference could be chance.

Alignments are collections of ``(target position, source position)`` pairs, counted from zero.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import SequenceMatcher

from sacrebleu.metrics import BLEU

from .arguments import at_least_one
from .attention import AttentionRecord
from .data import BUCKETS
from .data.text import words_of

Link = tuple[int, int]


def bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Corpus BLEU, 0 to 100, of tokenised sentences (Papineni et al. 2002, as computed by sacrebleu).

    Raises:
        ValueError: if there are no sentences, or not as many hypotheses as references.
    """
    for sentence in (*hypotheses, *references):
        words_of(sentence)
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses and {len(references)} references; expected the same number "
                         "of both, at least one.")
    ids = {token: str(i) for i, token in enumerate({token for side in (hypotheses, references)
                                                    for sentence in side for token in sentence})}

    def joined(sentence: Sequence[str]) -> str:            # sacrebleu splits it at the blanks, of which an id has none
        return " ".join(ids[token] for token in sentence)

    metric = BLEU(tokenize="none")
    return metric.corpus_score([*map(joined, hypotheses)], [[*map(joined, references)]]).score


def hard_alignment(record: AttentionRecord) -> set[Link]:
    """Link each target word to the source word with its largest weight; there is no link to ``<eos>``.

    A word with no weight above 0, to which everything was masked, has no link either.

    Raises:
        ValueError: if the weights are not one matrix ``(T_q, T_k)``, or NaN.
    """
    weights = record.weights
    if weights.shape != (len(record.rows), len(record.columns)):
        raise ValueError(f"weights have shape {tuple(weights.shape)}, but there are {len(record.rows)} rows and "
                         f"{len(record.columns)} columns. Of several heads choose one: "
                         "it.with_weights(it.weights[layer, head]).")
    if weights.isnan().any():
        raise ValueError("weights are NaN; the largest of them is none. Was a whole row masked before the softmax?")
    largest = zip(weights.any(dim=-1).tolist(), weights.argmax(dim=-1).tolist(), strict=True)
    n_words = len(record.columns) if record.n_words is None else record.n_words
    return {(row, column) for row, (looks, column) in enumerate(largest) if looks and column < n_words}


def alignment_error_rate(predicted: Iterable, true: Iterable[Collection[Link]] | None = None) -> float:
    """``1 - 2 |A and S| / (|A| + |S|)`` over a whole corpus, 0 is best (Och & Ney 2003; all true links are sure).

    Args:
        predicted: for each sentence its links, or an `AttentionRecord`, whose `hard_alignment` is taken.
        true: for each sentence its true links. Default: the records' own.

    Raises:
        TypeError: for one record that is in no list, or links without ``true``.
        ValueError: if there is no sentence, there are not as many ``true`` as ``predicted``, or no record has a link.
    """
    one, predicted = isinstance(predicted, AttentionRecord), list(predicted)
    if one or true is None and not all(isinstance(it, AttentionRecord) for it in predicted):
        raise TypeError(f"predicted is {'one record' if one else 'links, true is None'}; expected a list of records, "
                        "or for each sentence its links, and the true ones.")
    at_least_one(predicted=predicted)
    if true is None and not any(it.alignment for it in predicted):
        raise ValueError("no record has a true link to compare with; give true=, or records of pairs that have links.")
    true = [it.alignment for it in predicted] if true is None else list(true)
    if len(predicted) != len(true):
        raise ValueError(f"{len(predicted)} predicted alignments and {len(true)} true ones; expected as many.")
    predicted = [hard_alignment(it) if isinstance(it, AttentionRecord) else it for it in predicted]
    hits = total = 0
    for a, s in zip(predicted, true, strict=True):
        hits += len(set(a) & set(s))
        total += len(set(a)) + len(set(s))
    return 1 - 2 * hits / total if total else 0.0


def length_groups(pairs: Sequence, buckets: Sequence[tuple[int, int]] = BUCKETS) -> dict[str, list[int]]:
    """Indices of the pairs by the number of source words: ``{"4-9": [...], "10-14": [...], ...}``.

    Pairs outside all buckets are in no group; empty groups are left out. A source must be a list of words.
    """
    return {f"{low}-{high}": chosen for low, high in buckets
            if (chosen := [i for i, pair in enumerate(pairs) if low <= len(words_of(pair[0])) <= high])}


def phenomenon_groups(pairs: Sequence) -> dict[str, list[int]]:
    """Indices of the grammar's pairs by what they contain; a pair is in every group that fits."""
    names = sorted({name for pair in pairs for name in pair.phenomena})
    return {name: [i for i, pair in enumerate(pairs) if name in pair.phenomena] for name in names}


def aligned_words_found(pairs: Sequence, translations: Sequence[Sequence[str]]) -> list[float]:
    """By source position: percent of the target words aligned with it that are found, in the reference's order.

    Args:
        pairs: the grammar's pairs, with their ``links``; all sources have one length, and the last word is left out,
            the full stop.
        translations: one for each pair.

    Raises:
        ValueError: if there is no pair, or the sources' lengths differ.
    """
    at_least_one(pairs=pairs)
    n = len(pairs[0].source)
    if (lengths := {len(pair.source) for pair in pairs}) != {n}:
        raise ValueError(f"sources of {', '.join(map(str, sorted(lengths)))} words; expected one length.")
    right, aligned = [0] * n, [0] * n
    for pair, words in zip(pairs, translations, strict=True):
        blocks = SequenceMatcher(None, pair.target, words, autojunk=False).get_matching_blocks()
        found = {j for block in blocks for j in range(block.a, block.a + block.size)}
        for j, i in pair.links:
            aligned[i] += 1
            right[i] += j in found
    return [100 * hits / of if of else float("nan") for hits, of in zip(right, aligned, strict=True)][:-1]


def by_group(metric: Callable[..., float], groups: dict[str, list[int]], *columns: Sequence) -> dict[str, float]:
    """A metric for each group: ``by_group(bleu, length_groups(test), hypotheses, references)``."""
    return {name: metric(*([column[i] for i in chosen] for column in columns)) for name, chosen in groups.items()}


def sign_test(one: Sequence[bool], other: Sequence[bool]) -> tuple[int, int, float]:
    """Two methods, right or not on the same examples: how many only one gets right, only the other, and two-sided p.

    If both were equally good, each of these would be a coin toss (McNemar's exact test). Different lengths are a
    ``ValueError``.
    """
    if len(one) != len(other):
        raise ValueError(f"{len(one)} examples and {len(other)}; expected as many, the same ones in the same order.")
    pairs = [(bool(a), bool(b)) for a, b in zip(one, other, strict=True)]
    a, b = pairs.count((True, False)), pairs.count((False, True))
    tail = sum(math.comb(a + b, k) for k in range(min(a, b) + 1)) / 2 ** (a + b)
    return a, b, min(1.0, 2 * tail)
