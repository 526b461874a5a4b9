"""Sentence pairs and reviews to learn from: a synchronous grammar with true alignments, Multi30k, the course's own film
reviews, SST-2; and vocabularies and batches.

The names below are imported on first use: a model that needs ``PAD`` loads no grammar.
"""

from importlib import import_module

BUCKETS = ((4, 9), (10, 14), (15, 19), (20, 24), (25, 29), (30, 34), (35, 40))
_FROM = {"EXAMPLE": "grammar", "PHENOMENA": "grammar", "Pair": "grammar", "corpus": "grammar", "train_test": "grammar",
         "load_multi30k": "multi30k", "Review": "reviews", "load_reviews": "reviews", "load_sst2": "sst2",
         "Vocab": "text", "token_batches": "text"}
__all__ = ["BUCKETS", *_FROM]


def __getattr__(name: str):
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_FROM[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
