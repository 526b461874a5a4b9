"""What notebooks leave to the package: another default is another experiment, though no call of it has changed."""

import ast
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest
from torch import nn

import course_utils
from course_utils import bert, decoding, gpt, pretraining, training, vision
from course_utils.attention import AdditiveScore, LocationScore, MultiHeadAttention
from course_utils.data import corpus, train_test
from course_utils.data.text import Vocab, token_batches
from course_utils.seq2seq import Seq2Seq
from course_utils.transformer import Config, FeedForward, Transformer

TRANSFORMER = {"d_model": 64, "n_heads": 2, "n_layers": 2, "d_ff": 256, "dropout": 0.0, "pre_norm": True,
               "max_len": 512, "activation": nn.ReLU, "norm_eps": 1e-5, "bias": True, "norm": nn.LayerNorm,
               "feed_forward": FeedForward}
GPT = {**TRANSFORMER, "rotary": False, "base": 10_000.0, "n_kv_heads": None}
BERT = {**TRANSFORMER, "pre_norm": False, "activation": nn.GELU, "norm_eps": 1e-12}
DEFAULTS = {
    Config: TRANSFORMER,
    gpt.Config: GPT,
    Transformer: {"target_size": None, "config": Config()},
    gpt.GPT: {"config": gpt.Config()},
    bert.Bert: {"vocab_size": 30522, "config": bert.BASE, "n_segments": 2, "pooler": True, "layer": bert.EncoderLayer},
    pretraining.new_bert: {"config": pretraining.LITTLE, "trunk": bert.Bert},
    Seq2Seq: {"d_embed": 64, "d_model": 128, "attention": None, "query": "previous", "cell": "gru",
              "bidirectional": True, "dropout": 0.0},
    MultiHeadAttention: {"dropout": 0.0, "rotary": False, "base": 10_000.0, "n_kv_heads": None, "bias": True},
    AdditiveScore: {"d_hidden": 64},
    LocationScore: {"max_len": 64},
    training.fit: {"lr": 2e-3, "loss": training.sequence_loss, "schedule": training.trapezoid,
                   "label": "training", "live": True, "unit": "token"},
    training.sequence_loss: {"label_smoothing": 0.0},
    training.trapezoid: {"warmup": 50, "decay": 0.5},
    training.inverse_sqrt: {"warmup": 50},
    decoding.greedy: {"max_len": 60, "need_weights": False},
    decoding.beam_search: {"beam": 4, "alpha": 0.6, "max_len": 60},
    decoding.translate: {"max_len": 60, "beam": 1, "alpha": 0.6},
    Vocab: {"min_count": 1},
    token_batches: {"tokens": 2500, "seed": 0},
    corpus: {"seed": 0, "lexicon": "mini", "min_len": 4, "max_len": 40, "lengths": "natural", "exclude": ()},
    train_test: {"seed": 0},
    vision.digits: {"seed": 0, "n_test": 360},
    vision.learn_digits: {"steps": 400},
}


@pytest.mark.parametrize("call", DEFAULTS, ids=lambda call: f"{call.__module__.split('.')[1]}.{call.__name__}")
def test_defaults_are_those_of_the_notebooks(call):
    given = {name: each.default for name, each in signature(call).parameters.items() if each.default is not each.empty}
    assert given == DEFAULTS[call]


def test_weights_are_returned_by_default_by_an_attention_and_by_nothing_else():
    """Those of a model are large."""
    found = []
    for path in Path(course_utils.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                defaults = zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)
                found += [(path.stem, node.name, default.value) for name, default in defaults
                          if name.arg == "need_weights"]
    assert len(found) > 10
    assert [where for *where, default in found if default] == [["attention", "forward"], ["attention", "attend"]]


@pytest.mark.parametrize(("config", "expected"), [
    (pretraining.LITTLE, {**BERT, "d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 128, "max_len": 64}),
    (bert.BASE, {**BERT, "d_model": 768, "n_heads": 12, "n_layers": 12, "d_ff": 3072, "dropout": 0.1}),
    (bert.LARGE, {**BERT, "d_model": 1024, "n_heads": 16, "n_layers": 24, "d_ff": 4096, "dropout": 0.1}),
], ids=["LITTLE", "BASE", "LARGE"])
def test_berts_have_their_sizes(config, expected):
    assert {field.name: getattr(config, field.name) for field in fields(config)} == expected
