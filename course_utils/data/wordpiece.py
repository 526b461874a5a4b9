"""WordPiece, BERT's way from a text to ids: cut into words, then each word into the longest pieces that are known.

The idea is Schuster & Nakajima's (2012, section 4), as told by Wu et al. (2016, section 4.1); BERT's vocabularies were
made with it, but its trainer was never published. A piece that begins inside a word is written with ``##``:
``embeddings -> em ##bed ##ding ##s``.
"""

import math
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .text import look_up

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_LETTERS = 100
"""Longer words are ``[UNK]``, as in BERT."""
# Chinese characters stand alone. The ranges are those of the tokenizers library; BERT's own code begins one at 2B820.
CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f"
                     "\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f]")


class Encoded(NamedTuple):
    """A batch for BERT, three tensors ``(B, T)``: ``model(*encoded)``."""

    ids: Tensor
    mask: Tensor
    """Boolean: ``True`` where there is a piece, ``False`` where there is padding."""
    segments: Tensor
    """0 in the first text, 1 in the second (and 0 in the padding)."""


def split_words(text: str, lowercase: bool = True) -> list[str]:
    """BERT's words: no accents, lower case; every punctuation mark and every Chinese character is a word of its own.

    With ``lowercase=False`` accents stay, too. Control characters are dropped. Unicode's categories are Python's; the
    tokenizers library has older ones, and knows fewer rare marks.
    """
    kept = (c for c in text if c in "\t\n\r" or not (unicodedata.category(c) in ("Cc", "Cf", "Co") or c == "\ufffd"))
    text = CHINESE.sub(r" \g<0> ", "".join(kept))
    if lowercase:       # letter by letter: Python's lower() would write a sigma at the end of a word in another way
        text = "".join(c.lower() for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    return "".join(f" {c} " if c in string.punctuation or unicodedata.category(c)[0] == "P" else c
                   for c in text).split()


class WordPiece:
    """A vocabulary of pieces, and the way to cut texts with it.

    Args:
        vocab: the pieces; a piece's place is its id. The five ``SPECIALS`` must be among them.
        lowercase: see `split_words`; ``False`` for a *cased* vocabulary.

    Raises:
        ValueError: if a special piece is missing or a piece stands there twice.
    """

    def __init__(self, vocab: Iterable[str], lowercase: bool = True):
        self.vocab, self.lowercase = list(vocab), lowercase
        self.ids = {piece: i for i, piece in enumerate(self.vocab)}
        missing = [piece for piece in SPECIALS if piece not in self.ids]
        if missing or len(self.ids) < len(self.vocab):
            wrong = f"lacks {', '.join(missing)}" if missing else "has a piece twice"
            raise ValueError(f"This vocabulary of {len(self.vocab)} pieces {wrong}. It needs each of "
                             f"{', '.join(SPECIALS)} once, and every other piece once.")

    def __len__(self) -> int:
        return len(self.vocab)

    def cut(self, word: str) -> list[str]:
        """The longest piece that the word begins with, then the longest one that the rest begins with, and so on.

        A word that cannot be cut to its end becomes one ``[UNK]``.
        """
        pieces, start = [], 0
        while start < len(word) <= MAX_LETTERS:
            mark = "##" if start else ""
            end = next((end for end in range(len(word), start, -1) if mark + word[start:end] in self.ids), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(mark + word[start:end])
            start = end
        return pieces or ["[UNK]"]

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text. A special piece in it, such as ``[MASK]``, stays whole."""
        parts = re.split("(" + "|".join(map(re.escape, SPECIALS)) + ")", text)       # every second one is special
        return [piece for i, part in enumerate(parts)
                for word in ([part] if i % 2 else split_words(part, self.lowercase))
                for piece in ([word] if i % 2 else self.cut(word))]

    def encode(self, text: str, second: str | None = None, max_len: int = 512) -> tuple[list[int], list[int]]:
        """Ids of ``[CLS] text [SEP]`` or ``[CLS] text [SEP] second [SEP]``, and the segment of each (0, then 1).

        What is longer than ``max_len`` loses its last pieces, one after the other from the longer text (as in BERT).
        """
        a, b = self.tokenize(text), [] if second is None else self.tokenize(second)
        n_special = 2 if second is None else 3
        if max_len < n_special:
            raise ValueError(f"max_len={max_len} leaves no room for [CLS] and [SEP]; give at least {n_special}.")
        while len(a) + len(b) > max_len - n_special:
            (a if len(a) > len(b) else b).pop()
        first, rest = ["[CLS]", *a, "[SEP]"], [*b, "[SEP]"] if second is not None else []
        return [self.ids[piece] for piece in first + rest], [0] * len(first) + [1] * len(rest)

    def batch(self, texts: Sequence[str], seconds: Sequence[str | None] | None = None, max_len: int = 512,
              cut: bool = True) -> Encoded:
        """Texts, or pairs of texts, as tensors: `encode` each, and pad to the longest.

        ``cut=False``: a text of more than ``max_len`` pieces is a ``ValueError`` and does not lose its end.
        """
        if isinstance(texts, str) or not texts:
            raise ValueError(f"batch was given {texts!r}; expected a list of at least one text.")
        if isinstance(seconds, str) or (seconds is not None and len(seconds) != len(texts)):
            raise ValueError(f"{len(texts)} texts, and as second texts {seconds!r:.80}; expected a list of as many.")
        pairs = list(zip(texts, [None] * len(texts) if seconds is None else seconds, strict=True))
        longest = max_len if cut else sys.maxsize
        ids, segments = zip(*(map(torch.tensor, self.encode(*pair, longest)) for pair in pairs), strict=True)
        lengths = torch.tensor([len(row) for row in ids])
        if lengths.max() > max_len:
            text = " ".join(filter(None, pairs[lengths.argmax()]))
            raise ValueError(f"{text!r:.60} has {lengths.max()} pieces with [CLS] and [SEP]; expected at most "
                             f"max_len={max_len}. Cut it into sentences, leave it out, or give a larger max_len here "
                             "and in the model's config.")
        return Encoded(pad_sequence(ids, batch_first=True, padding_value=self.ids["[PAD]"]),
                       torch.arange(int(lengths.max())) < lengths.unsqueeze(1),
                       pad_sequence(segments, batch_first=True))

    def decode(self, ids: Iterable[int]) -> str:
        """The pieces, joined to words; special pieces are left out. Errors as of `look_up`."""
        pieces = (look_up(self.vocab, i) for i in ids)
        return " ".join(piece for piece in pieces if piece not in SPECIALS).replace(" ##", "")

    @classmethod
    def read(cls, path: str | Path, lowercase: bool = True) -> "WordPiece":
        """The vocabulary in a file with one piece a line, BERT's ``vocab.txt``."""
        return cls(Path(path).read_text(encoding="utf-8").rstrip("\n").split("\n"), lowercase)


def join(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    """A word's pieces, with every occurrence of the pair made one: ``("t", "##h", "##e")`` -> ``("th", "##e")``."""
    joined, i = [], 0
    while i < len(symbols):
        width = 2 if symbols[i:i + 2] == pair else 1
        joined.append(symbols[i] + "".join(symbols[i + 1:i + width]).removeprefix("##"))
        i += width
    return tuple(joined)


def train(texts: Iterable[str], size: int, lowercase: bool = True) -> WordPiece:
    """Learn a vocabulary: begin with letters, and join the pair of neighbours that the text's likelihood gains most by.

    Take the text as pieces drawn independently. Joining ``a`` and ``b``, which stand together ``n_ab`` times, raises
    its log-likelihood by about ``n_ab log(N n_ab / (n_a n_b))``, with ``N`` pieces in all: how often, times how
    surprising. That is Schuster & Nakajima's criterion, to first order. BPE (Sennrich et al. 2016) takes ``n_ab``
    alone, and so does the trainer of the tokenizers library.

    Args:
        texts: what to learn from.
        size: pieces in all, with the special ones and the letters. Every letter is a piece at the beginning of a word
            and inside one, so that no word of these letters is unknown. If the words run out of pairs, it gets less.
        lowercase: see `split_words`.

    Raises:
        TypeError: if the texts are one string.
        ValueError: if the size does not hold the letters.
    """
    if isinstance(texts, str):
        raise TypeError(f"texts is one string, {texts!r:.60}; expected a list of texts, such as [text].")
    counts = Counter(word for text in texts for word in split_words(text, lowercase))
    letters = sorted(set().union(*counts))
    vocab = dict.fromkeys([*SPECIALS, *letters, *("##" + letter for letter in letters)])
    if size < len(vocab):
        raise ValueError(f"size={size}, but the special pieces and {len(letters)} letters, at the beginning of words "
                         f"and inside, are {len(vocab)} already; give more than that.")
    words = {(word[0], *("##" + letter for letter in word[1:])): n for word, n in counts.items()}
    single, pairs = Counter(), Counter()

    def count(word: tuple[str, ...], n: int) -> None:
        for piece in word:
            single[piece] += n
        for pair in pairwise(word):
            pairs[pair] += n

    for word, n in words.items():
        count(word, n)
    while len(vocab) < size:
        N = single.total()
        gain = {(a, b): n * math.log(N * n / (single[a] * single[b])) for (a, b), n in pairs.items() if n}
        if not gain:
            break
        best = max(gain, key=lambda pair: (gain[pair], pair))                  # a tie: the last in the alphabet
        vocab[best[0] + best[1].removeprefix("##")] = None
        for word in [word for word in words if best in pairwise(word)]:        # the other words stay as they are
            n, joined = words.pop(word), join(word, best)
            count(word, -n)
            count(joined, n)
            words[joined] = n
    return WordPiece(vocab, lowercase)
