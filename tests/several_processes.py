"""What each process of test_several_processes.py runs; its only argument is the folder for what it saw."""

import json
import os
import sys

import torch
from torch.utils.data import DataLoader

from course_utils.data.text import BOS, EOS, collate, token_batches
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit, sequence_loss
from course_utils.transformer import Config, Transformer

VOCAB = 8


def train_transformer(batch_size):
    """Its history. Every four sentences have 4, 5, 6 and 7 words, so batches of four have as many as each other.

    Then the mean of two batches' means, which is what processes share, is the mean of the batch of eight.
    """
    torch.manual_seed(0)
    model = Transformer(VOCAB, config=Config(d_model=16, n_heads=2, d_ff=32))
    words = torch.randint(4, VOCAB, (32, 7), generator=torch.Generator().manual_seed(0))
    examples = [(torch.tensor([*row[:4 + i % 4], EOS]), torch.tensor([BOS, *row[:4 + i % 4].flip(0), EOS]))
                for i, row in enumerate(words)]
    return fit(model, DataLoader(examples, batch_size=batch_size, collate_fn=collate), steps=40, lr=1e-2)


def train_on(batches, seed):
    """Train a small recurrent model; which sentences it saw, what it recorded, and with what it ended."""
    torch.manual_seed(seed)
    model, seen = Seq2Seq(20, 20, 8, 8, attention="additive"), []

    def loss(model, batch):
        seen.append(batch.source[:, 1].tolist())
        return sequence_loss(model, batch)

    history = fit(model, batches, steps=30, lr=1e-2, loss=loss)
    return {"seen": seen, "loss": history.loss, "tokens": history.tokens, "training": model.training,
            "parameters": [p.tolist() for p in model.parameters()]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    sentences = [(torch.tensor([4, 5 + i, 2]), torch.tensor([1, 5 + i, 4, 2])) for i in range(15)]
    # five batches in two processes: an odd number in both cases
    result = {"tokens": train_on(token_batches(sentences, 12), rank),
              "shuffled": train_on(DataLoader(sentences, batch_size=3, shuffle=True, collate_fn=collate), rank)}
    history = train_transformer(batch_size=4)
    result["transformer"] = {"loss": history.loss, "grad_norm": history.grad_norm}
    with open(f"{sys.argv[1]}/{rank}.json", "w", encoding="utf-8") as file:
        json.dump(result, file)
