"""Sentences for a small masked language model, in three worlds of nouns, and the question whether their verb agrees."""

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

from . import grammar, lexicon

WORLDS = {
    "politics": "agreement law report minister queen council government city country",
    "school": "letter book question student doctor child university house hospital",
    "village": "poem story farmer neighbour girl market garden church family",
}
OTHER = {"is": "are", "are": "is", "was": "were", "were": "was"}        # the other number
ONE_NOUN, SAME = "one noun", "two nouns, same number"
HARD = {"p": "plural subject, singular neighbour", "s": "singular subject, plural neighbour"}

_mini, _full = lexicon.load_lexicon("mini"), lexicon.load_lexicon("full")
NOUNS = {form: (noun.english["s"], number) for noun in _full.nouns
         for number, form in noun.english.items()}                      # "laws" -> ("law", "p")
_no_phrase = {form for verb in (*_mini.transitive, *_mini.intransitive) for form in verb.english.values()} | {
    "that", "and", "do", "does", "did"}


def sentences(world: str, n: int, seed: int, every_verb: bool = False) -> list[str]:
    """Different sentences of a world, of at most 11 words: those of `n` drawn that have a form of *be*, or all."""
    own = tuple(noun for noun in _full.nouns if noun.english["s"] in WORLDS[world].split())
    words = replace(_mini, nouns=own, months=_mini.months[:1], years=_mini.years[:1], days=(), adverbs=(),
                    relative_days=(), places=(), clausal=(), tenses=("present", "past"))
    clauses = grammar.Grammar(words, random.Random(seed))
    drawn = dict.fromkeys(clauses.sentence(1).source for _ in range(n))
    return [" ".join(s) for s in drawn if len(s) <= 11 and not NOUNS.keys().isdisjoint(s)
            and (every_verb or not OTHER.keys().isdisjoint(s))]


def texts(seed: int, worlds: tuple[str, ...] = ("politics", "school"),
          n: int = 20_000) -> tuple[list[str], list[str]]:
    """Of each world the first 1,900 different sentences, to read, and the others, in random order; `n` are drawn."""
    drawn = [sentences(world, n, 3 * seed + [*WORLDS].index(world)) for world in worlds]
    read, unseen = ([s for part in drawn for s in part[cut]] for cut in (slice(1900), slice(1900, None)))
    random.Random(seed).shuffle(unseen)
    return read, unseen


def find_verb(sentence: str) -> tuple[list[str], int, str] | None:
    """Words, the place of the verb (is, are, was, were) and the kind; None if the first verb is another one.

    Before the verb stand one or two nouns. Of two the first is the subject (*the students of the minister*). Where they
    differ in number (`HARD`), only sentences that begin with *the* count: *a* or *these* would give the number away.
    """
    words = sentence.split()
    at = next((i for i, word in enumerate(words) if word in OTHER), None)
    if at is None or not _no_phrase.isdisjoint(words[:at]):
        return None
    numbers = [NOUNS[word][1] for word in words[:at] if word in NOUNS]
    if len(numbers) == 1:
        return words, at, ONE_NOUN
    if len(numbers) == 2 and numbers[0] == numbers[1]:
        return words, at, SAME
    return (words, at, HARD[numbers[0]]) if len(numbers) == 2 and words[0] == "the" else None


def by_kind(sentences: list[str]) -> dict[str, list[tuple[list[str], int]]]:
    """Kind → its sentences as (words, place of the verb)."""
    groups = {kind: [] for kind in (ONE_NOUN, SAME, *HARD.values())}
    for words, at, kind in filter(None, map(find_verb, sentences)):
        groups[kind].append((words, at))
    return groups


def by_neighbour(text: list[str], items: list[tuple[list[str], int]]) -> float:
    """How often the right form of the verb is the one that followed the word before it more often in the text."""
    follows = Counter(pair for sentence in text for pair in pairwise(sentence.split()))
    return sum(follows[words[at - 1], words[at]] > follows[words[at - 1], OTHER[words[at]]]
               for words, at in items) / len(items)


def judged(items: list[tuple[list[str], int]], rng: random.Random) -> list[tuple[str, int]]:
    """(sentence, 1 if grammatical): in half of them, drawn at random, the verb gets the other number."""
    rows = []
    for words, at in items:
        right = rng.random() < 0.5
        rows.append((" ".join(words if right else [*words[:at], OTHER[words[at]], *words[at + 1:]]), int(right)))
    return rows


def questions(unseen: list[str], seed: int, sizes: tuple[int, ...]) -> tuple[dict, dict]:
    """Sentences to test on, ``{"hard": …, "others": …}``, and for each size those to learn from, none of them a test's.

    Each is (sentence, 1 if grammatical). A fifth of those to learn from are hard.
    """
    kinds, rng = by_kind(unseen), random.Random(seed)
    hard = [item for kind in HARD.values() for item in kinds[kind]]
    others = kinds[ONE_NOUN] + kinds[SAME]
    rng.shuffle(hard)
    rng.shuffle(others)
    tests = {"hard": judged(hard[:150], rng), "others": judged(others[:300], rng)}
    hard, others = judged(hard[150:], rng), judged(others[300:], rng)
    short = {n for n in sizes if n // 5 > len(hard) or n - n // 5 > len(others)}
    if short:
        raise ValueError(f"too few sentences for {sorted(short)} labels: {len(hard)} hard and {len(others)} others "
                         "are left; draw more of them.")
    return tests, {n: random.Random(seed).sample(hard[:n // 5] + others[:n - n // 5], n) for n in sizes}
