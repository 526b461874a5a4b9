"""Sentences about a restaurant with one to five stars, in which a single word decides, and it is known which."""

from torch import Tensor, tensor

from .grammar import seeded

STARS = (("awful", "horrid", "terrible"), ("poor", "bland", "weak"), ("ordinary", "average", "fair"),
         ("good", "nice", "pleasant"), ("superb", "brilliant", "perfect"))
"""The words that decide, by stars."""
THINGS = ("food", "service", "music", "room", "menu", "staff", "view", "soup", "garden", "wine")
COLOURS = ("red", "large", "round", "local", "new", "quiet")
ASIDES = ("we came on friday", "it rained all day", "my sister was there", "they close at nine")


def star_sentences(n: int, seed: int) -> tuple[list[list[str]], Tensor, Tensor]:
    """``n`` sentences of four clauses of four words, one of which is an opinion.

    Returns:
        the sentences, lists of 16 words; the class ``(n,)``, 0 to 4; the place of the word that decides ``(n,)``.
    """
    rng = seeded(n, seed)
    sentences, classes, places = [], [], []
    for _ in range(n):
        stars, place = rng.randrange(5), rng.randrange(4)
        clauses = [rng.choice([rng.choice(ASIDES), f"the {rng.choice(THINGS)} was {rng.choice(COLOURS)}"])
                   for _ in range(3)]
        clauses.insert(place, f"the {rng.choice(THINGS)} was {rng.choice(STARS[stars])}")
        sentences.append(" ".join(clauses).split())
        classes.append(stars)
        places.append(4 * place + 3)
    return sentences, tensor(classes), tensor(places)
