"""From words to batches: a vocabulary, and batches that hold a fixed number of tokens."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD, BOS, EOS, UNK = range(4)
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")


def words_of(sentence: Sequence[str]) -> Sequence[str]:
    """The sentence, if it is a list of words; one string, whose letters would pass for words, is a TypeError."""
    if isinstance(sentence, str):
        raise TypeError(f"a sentence was given as one string, {sentence!r:.60}; expected a list of words, "
                        "e.g. sentence.split().")
    return sentence


def look_up(words: Sequence[str], i: int) -> str:
    """The word with this id; an id out of range is an IndexError, one that is not an integer a TypeError."""
    try:
        i = index(i)
    except TypeError:
        raise TypeError(f"id {i!r:.60} is not a whole number; expected one from 0 to {len(words) - 1}. Of a batch, "
                        "decode each row.") from None
    if not 0 <= i < len(words):
        raise IndexError(f"id {i} is not in this vocabulary; expected 0 to {len(words) - 1}.")
    return words[i]


class Vocab:
    """Words and their numbers. Ids 0-3 are padding, start, end and unknown."""

    def __init__(self, sentences: Iterable[Sequence[str]], min_count: int = 1):
        """Count the words of ``sentences``; keep those seen ``min_count`` times, the most frequent first.

        A sentence is a list of words; one string is a ``TypeError``, and so is a word that is not a string.
        """
        counts = Counter(word for sentence in sentences for word in words_of(sentence))
        kept = [word for word, count in counts.most_common() if count >= min_count and word not in SPECIALS]
        if other := [word for word in kept if not isinstance(word, str)]:
            raise TypeError(f"{other[0]!r:.60} was given as a word; expected sentences, lists of words. Of sentence "
                            "pairs, take one side: Vocab(pair[0] for pair in pairs).")
        self.words = [*SPECIALS, *kept]
        self.ids = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Sequence[str]) -> list[int]:
        """Ids of the words, ``<unk>`` for those not known. No start or end symbol is added."""
        return [self.ids.get(word, UNK) for word in words_of(words)]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Words up to the end symbol; padding and start symbols are left out. Errors as of `look_up`."""
        words = []
        for i in ids:
            word = look_up(self.words, i)
            if i == EOS:
                break
            if i not in (PAD, BOS):
                words.append(word)
        return words


class Batch(NamedTuple):
    """Sentence pairs, padded: ``source (B, T_k)`` ends in EOS, ``target (B, T_q + 1)`` has BOS and EOS."""

    source: Tensor
    target: Tensor


def encode_pairs(pairs: Iterable, source_vocab: Vocab, target_vocab: Vocab) -> list[tuple[Tensor, Tensor]]:
    """Sentence pairs as id tensors: ``source + EOS`` and ``BOS + target + EOS``.

    Args:
        pairs: anything whose first two fields are token sequences, such as ``grammar.Pair``.
        source_vocab: numbers for the first field.
        target_vocab: numbers for the second field.
    """
    return [(torch.tensor([*source_vocab.encode(source), EOS]), torch.tensor([BOS, *target_vocab.encode(target), EOS]))
            for source, target, *_ in pairs]


def collate(examples: Sequence[tuple[Tensor, Tensor]]) -> Batch:
    """Pad a list of encoded pairs to one batch; without any it raises a ``ValueError``."""
    if not examples:
        raise ValueError("collate was given no examples; it needs at least one encoded pair.")
    sources, targets = zip(*examples, strict=True)
    return Batch(pad_sequence(sources, batch_first=True, padding_value=PAD),
                 pad_sequence(targets, batch_first=True, padding_value=PAD))


def encode_sources(sentences: Iterable[Sequence[str]], vocab: Vocab) -> Tensor:
    """Sentences to translate as ids ``(B, T_k)``, each ``source + EOS``, padded; none is a ``ValueError``."""
    return collate(encode_pairs([(words, []) for words in sentences], vocab, vocab)).source


class TokenBatchSampler:
    """Index lists whose padded sides hold at most ``tokens`` tokens; equal lengths together, order shuffled.

    Every pass over the sampler is a new epoch with its own order, derived from ``seed`` and the epoch's number.
    """

    def __init__(self, lengths: Sequence[tuple[int, int]], tokens: int, seed: int = 0):
        """``lengths`` are the examples' two, source and target."""
        longest = max((max(pair) for pair in lengths), default=0)
        if tokens < longest:
            raise ValueError(f"tokens={tokens}, but the longest sentence has {longest}; give at least that many.")
        self.lengths, self.tokens, self.seed, self.epoch = lengths, tokens, seed, 0

    def __len__(self) -> int:
        """Batches per epoch: always as many, since only the order of equal lengths is random."""
        return len(self.cut(sorted(range(len(self.lengths)), key=lambda i: self.lengths[i])))

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed + 100_003 * self.epoch)
        self.epoch += 1
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        batches = self.cut(sorted(order, key=lambda i: self.lengths[i]))         # equal lengths keep their random order
        for b in torch.randperm(len(batches), generator=generator).tolist():
            yield batches[b]

    def cut(self, order: list[int]) -> list[list[int]]:
        """Cut a sorted list of examples where one more would not fit any longer."""
        batches, batch, width = [], [], 0
        for i in order:
            width = max(width, *self.lengths[i])
            if batch and width * (len(batch) + 1) > self.tokens:
                batches.append(batch)
                batch, width = [], max(self.lengths[i])
            batch.append(i)
        return [*batches, batch] if batch else batches


def token_batches(examples: Sequence[tuple[Tensor, Tensor]], tokens: int = 2500, seed: int = 0) -> DataLoader:
    """A ``DataLoader`` of :class:`Batch` of at most ``tokens`` padded tokens per side, reshuffled every epoch.

    Args:
        examples: encoded pairs, see :func:`encode_pairs`.
        tokens: upper limit of batch size × longest sentence, source and target alike, padding included.
        seed: of the order, which differs in every pass: to repeat a training, make a new loader.
    """
    if not examples:
        raise ValueError("token_batches was given no examples; it needs at least one encoded pair.")
    for i, example in enumerate(examples):
        if len(example) != 2 or not all(isinstance(ids, Tensor) for ids in example):
            raise TypeError(f"example {i} is {example!r:.60}; expected two tensors of ids, source and target: "
                            "encode_pairs(pairs, source_vocab, target_vocab).")
    lengths = [(len(source), len(target)) for source, target in examples]
    return DataLoader(examples, batch_sampler=TokenBatchSampler(lengths, tokens, seed), collate_fn=collate)
