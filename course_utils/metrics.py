"""How good is a translation, how good is an alignment, and where.

Alignments are collections of ``(target position, source position)`` pairs, counted from zero.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from sacrebleu.metrics import BLEU
from torch import Tensor

from .data.grammar import BUCKETS

Link = tuple[int, int]


def bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Corpus BLEU, 0 to 100, of tokenised sentences (Papineni et al. 2002, as computed by sacrebleu).

    Raises:
        ValueError: if there are no sentences, or not as many hypotheses as references.
    """
    _same_number(hypotheses, references)
    metric = BLEU(tokenize="none", force=True)
    return metric.corpus_score([" ".join(h) for h in hypotheses], [[" ".join(r) for r in references]]).score


def exact_match(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Share of sentences that equal their reference word for word, 0 to 1; errors as for :func:`bleu`."""
    _same_number(hypotheses, references)
    return sum(list(h) == list(r) for h, r in zip(hypotheses, references, strict=True)) / len(hypotheses)


def _same_number(hypotheses: Sequence, references: Sequence) -> None:
    if any(isinstance(sentence, str) for sentence in (*hypotheses, *references)):
        raise TypeError("a sentence was given as one string; expected a list of words, e.g. sentence.split().")
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses and {len(references)} references; expected the same number "
                         "of both, at least one.")


def hard_alignment(weights: Tensor, n_source: int) -> set[Link]:
    """Link each target word to the source word with its largest weight.

    Args:
        weights: ``(T_q, T_k)``; columns from ``n_source`` on (the end symbol) mean *no link*.
        n_source: number of source words.
    """
    return {(row, column) for row, column in enumerate(weights.argmax(dim=-1).tolist()) if column < n_source}


def alignment_error_rate(predicted: Iterable[Collection[Link]], true: Iterable[Collection[Link]]) -> float:
    """``1 - 2 |A and S| / (|A| + |S|)`` over a whole corpus, 0 is best (Och & Ney 2003; all true links are sure)."""
    hits = total = 0
    for a, s in zip(predicted, true, strict=True):
        hits += len(set(a) & set(s))
        total += len(set(a)) + len(set(s))
    return 1 - 2 * hits / total if total else 0.0


def length_groups(pairs: Sequence, buckets: Sequence[tuple[int, int]] = BUCKETS) -> dict[str, list[int]]:
    """Indices of the pairs by the number of source words: ``{"4-9": [...], "10-14": [...], ...}``.

    Pairs outside all buckets are in no group; empty groups are left out.
    """
    return {f"{low}-{high}": chosen for low, high in buckets
            if (chosen := [i for i, pair in enumerate(pairs) if low <= len(pair[0]) <= high])}


def phenomenon_groups(pairs: Sequence) -> dict[str, list[int]]:
    """Indices of the grammar's pairs by what they contain; a pair is in every group that fits."""
    names = sorted({name for pair in pairs for name in pair.phenomena})
    return {name: [i for i, pair in enumerate(pairs) if name in pair.phenomena] for name in names}


def by_group(metric: Callable[..., float], groups: dict[str, list[int]], *columns: Sequence) -> dict[str, float]:
    """A metric for each group: ``by_group(bleu, length_groups(test), hypotheses, references)``."""
    return {name: metric(*([column[i] for i in chosen] for column in columns)) for name, chosen in groups.items()}
