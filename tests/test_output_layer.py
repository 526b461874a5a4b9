"""The script behind lesson 02's output layer: what it adds, and what is stored."""

import importlib
import sys

import torch

from course_utils.attention import AdditiveScore
from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.seq2seq import BahdanauDecoder, Memory

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("output_layer")


def test_its_output_layer_is_that_of_the_decoder_with_attention():
    decoder = script.WithOutputLayer(d_embed=4, d_model=6, cell="gru")
    other = BahdanauDecoder(d_embed=4, d_model=6, cell="gru", score=AdditiveScore(6, 6))
    assert decoder.combine.weight.shape == other.combine.weight.shape
    memory = Memory(torch.randn(2, 5, 6), None, torch.randn(2, 6), torch.ones(2, 1, 5).bool())
    words, state = torch.randn(2, 3, 4), torch.randn(2, 6)
    outputs, weights, last = decoder(words, state, memory)
    assert weights is None
    assert outputs.shape == (2, 3, 6)
    expected = decoder.combine(torch.cat([last, memory.summary, words[:, -1]], dim=-1)).tanh()
    torch.testing.assert_close(outputs[:, -1], expected)


def test_what_is_stored_has_a_row_for_each_of_three_seeds():
    measured = stored("output_layer")
    rows = measured.results["bleu"]
    assert len(rows) == len(measured.seeds) == 3
    assert all(row.keys() == rows[0].keys() for row in rows)
