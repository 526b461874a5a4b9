"""Four tasks as pairs of words, for prompts: 24 pairs a task, each query and each answer's first token its own."""

import random


def _pairs(text: str) -> list[tuple[str, str]]:
    return [tuple(pair.split()) for pair in text.split(", ")]


TASKS = {
    "opposites": _pairs(
        "hot cold, big small, up down, fast slow, open closed, early late, happy sad, young old, light dark, "
        "rich poor, hard soft, long short, wet dry, strong weak, high low, left right, day night, full empty, "
        "first last, inside outside, true false, good bad, win lose, buy sell"),
    "capitals": _pairs(
        "France Paris, Germany Berlin, Italy Rome, Spain Madrid, Japan Tokyo, China Beijing, Russia Moscow, "
        "Egypt Cairo, Greece Athens, Portugal Lisbon, Ireland Dublin, Austria Vienna, Poland Warsaw, Norway Oslo, "
        "Sweden Stockholm, Cuba Havana, Iraq Baghdad, Peru Lima, Kenya Nairobi, Canada Ottawa, Denmark Copenhagen, "
        "Hungary Budapest, Iran Tehran, Syria Damascus"),
    "plurals": _pairs(
        "dog dogs, house houses, car cars, child children, city cities, box boxes, man men, baby babies, book books, "
        "foot feet, bus buses, mouse mice, tree trees, woman women, watch watches, day days, tooth teeth, leaf leaves, "
        "story stories, key keys, wolf wolves, person people, church churches, hero heroes"),
    "French": _pairs(
        "dog chien, cat chat, house maison, water eau, bread pain, book livre, king roi, red rouge, white blanc, "
        "one un, woman femme, green vert, sun soleil, school école, three trois, black noir, friend ami, day jour, "
        "hand main, time temps, city ville, two deux, door porte, sea mer"),
}
IN_WORDS = {"opposites": "opposite of", "capitals": "capital of", "plurals": "plural of", "French": "French word for"}
"""What one asks for in words: the … a word."""


def drawn(task: str, draw: int, seed: int = 0) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """A task's pairs in random order: eight as examples, and the others to be asked."""
    pairs = random.Random(f"{task} {seed} {draw}").sample(TASKS[task], len(TASKS[task]))
    return pairs[:8], pairs[8:]
