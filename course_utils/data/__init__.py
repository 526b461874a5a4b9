"""Sentence pairs and reviews to learn from: a synchronous grammar with true alignments, Multi30k, film reviews of our
own, SST-2; and their words as numbers.
"""

from .grammar import BUCKETS, EXAMPLE, PHENOMENA, Pair, corpus, train_test
from .multi30k import load_multi30k
from .reviews import Review, load_reviews
from .sst2 import load_sst2
from .text import Vocab, token_batches

__all__ = ["BUCKETS", "EXAMPLE", "PHENOMENA", "Pair", "Review", "Vocab", "corpus", "load_multi30k", "load_reviews",
           "load_sst2", "token_batches", "train_test"]
