"""The script behind sentiment without labels, in *With the library*: its parts, and what is stored."""

import importlib
import sys

import torch
from torch import nn

from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.gpt import GPT, llama_config

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("no_labels")

ROWS = [(f"a {word} film", label) for word, label in
        (("good", 1), ("bad", 0), ("fine", 1), ("poor", 0), ("great", 1), ("dull", 0), ("warm", 1), ("cold", 0))]


class Letters:
    """A tokenizer by letters."""

    def encode(self, text):
        return type("Encoded", (), {"ids": [min(ord(letter), 127) for letter in text[1 - len(text):]]})


def test_examples_are_half_of_each_label_in_turns():
    lines = script.examples(ROWS, 0).split("\n\n")
    assert [line.split()[-1] for line in lines[:-1]] == ["positive", "negative"] * 4
    assert len(set(lines)) == 9
    assert script.examples(ROWS, 0) == script.examples(ROWS, 0) != script.examples(ROWS, 1)


def test_batches_and_the_cache_change_no_answer():
    torch.manual_seed(0)
    model = GPT(128, llama_config(d_model=24, n_heads=6, n_kv_heads=2, d_ff=40)).eval()
    for weights in model.parameters():
        nn.init.normal_(weights, std=0.3)
    rows = [(text + " indeed" * (i % 3), label) for i, (text, label) in enumerate(ROWS * 3)]
    before = script.examples(ROWS, 0, n=2)
    words = [Letters().encode(answer).ids[0] for answer in script.ANSWERS]

    def right(text, label):
        ids = Letters().encode(before).ids + Letters().encode(script.PROMPT.format(text)).ids
        with torch.no_grad():
            return int(model(torch.tensor([ids])).logits[0, -1, words].argmax()) == label

    together = script.accuracy(model, Letters(), rows, before)
    assert together == sum(right(*row) for row in rows) / len(rows)


def test_what_is_stored_has_both_sets():
    results = stored("no_labels").results
    assert {name: row["sentences"] for name, row in results.items()} == {"SST-2": 300, "own reviews": 210}
    assert all(len(row["eight examples"]) == 3 for row in results.values())
