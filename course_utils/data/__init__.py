"""Sentence pairs to learn from: a synchronous grammar with true alignments, and Multi30k; their words as numbers."""

from .grammar import BUCKETS, EXAMPLE, PHENOMENA, Pair, corpus, train_test
from .multi30k import load_multi30k
from .text import Vocab, token_batches

__all__ = ["BUCKETS", "EXAMPLE", "PHENOMENA", "Pair", "Vocab", "corpus", "load_multi30k", "token_batches",
           "train_test"]
