"""Sentences about films that do not exist, each with its sentiment and what makes it easy or hard to read.

Written for this course, one by one, as if by many visitors: 84 films, ten sentences each, half of them positive. They
stand in ``reviews.tsv``; its split is by film, so no film is both learned and tested. In four of ten sentences the
words give the sentiment away. In the others one has to read: *not for a second is it boring*. Words that a bag of
words used to guess these (*I*, *my*) were evened out, in both parts. Now it gets 0.81 of the plain ones and 0.59 of
the others right (``tests/test_reviews.py``). All of it is one author's English, not a sample of real reviews; for that
there is ``load_sst2``.
"""

from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "reviews.tsv"
SPLITS = ("train", "test")
PHENOMENA = {
    "plain": "the words say it: a delightful village mystery",
    "negation": "a word such as not, never or nobody decides: not for a second is it boring",
    "contrast": "two halves disagree and the second decides: the view is stunning, but …",
    "concession": "one point is granted and the other decides: although it is slow, …",
    "comparison": "measured against something else: I have read parking tickets with a lighter touch",
    "expectation": "what was hoped, feared or possible is not what came: I dreamed of giants; …",
    "litotes": "understatement by denying the opposite: no mean feat",
    "irony": "the opposite is meant, or a complaint is praise: bravo, kitchens are hot",
}


class Review(NamedTuple):
    """A sentence about a film.

    Attributes:
        text: 6 to 25 words in ordinary spelling, ASCII.
        label: 1 for positive, 0 for negative.
        phenomenon: a name from ``PHENOMENA``.
        film: its title; the sentence need not contain it.
    """

    text: str
    label: int
    phenomenon: str
    film: str


def load_reviews(split: str = "train") -> list[Review]:
    """The course's own reviews, film by film; shuffle them before you train.

    Args:
        split: ``"train"`` (630 sentences about 63 films) or ``"test"`` (210 about 21 others). In both, half of each
            film's sentences and half of each phenomenon's are positive.

    Raises:
        ValueError: for another split.
    """
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r}; expected one of {', '.join(SPLITS)}.")
    rows = [line.split("\t") for line in FILE.read_text(encoding="utf-8").splitlines()[1:]]
    return [Review(text, int(label), phenomenon, film) for film, part, label, phenomenon, text in rows if part == split]
