"""The script behind lesson 04's *Is attention enough?*: every part is left out of the same model, trained alike."""

import importlib
import sys
from functools import cache

import pytest
import torch
from torch import nn

from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.data import train_test

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("parts_left_out")


def test_all_are_trained_alike(monkeypatch, tmp_path):
    given, kept = {}, []

    def fit(model, batches, *, label, **settings):
        part, rest = label.split(", rate")
        order = [batch.target.tolist() for batch in batches]
        given.setdefault(part, []).append((rest, settings, type(model), model.config, order))

    monkeypatch.setattr(script, "fit", fit)
    monkeypatch.setattr(script, "train_test", cache(lambda *_, seed: train_test(1100, 7, seed=seed)))
    monkeypatch.setattr(script, "translate", lambda model, sources, *_: [[] for _ in sources])
    monkeypatch.setattr(script, "store", lambda path, command, seeds, results: kept.append((command, results)))
    script.main(["--seeds", "0", "1", "--out", str(tmp_path / "here.json")])
    assert list(given) == [*script.PARTS][:-1]
    first, *others = given.values()
    assert all(other == first for other in others)
    assert [settings["lr"] for _, settings, *_ in first] == [*script.RATES, first[-1][1]["lr"]]
    assert {settings["steps"] for _, settings, *_ in first} == {script.STEPS}
    assert len(first[0][-1]) > 1
    command, results = kept[-1]
    assert command.startswith("python experiments/parts_left_out.py --steps 1000 --seeds 0 1")
    assert [len(row["bleu"]) for row in results["parts"].values()] == [2] * len(given)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return script.Transformer(12, 12, script.Config(d_model=16, n_heads=2, d_ff=32))


def test_what_is_left_out_is_left_out(model):
    """A norm that is none, a network and an attention that add nothing, positions that are zero."""
    x = torch.randn(2, 5, 16)
    script.PARTS["attention, path, positions"](model)
    for layer in script.layers(model):
        assert not layer.feed_forward(x).any()
        assert all(isinstance(part, nn.Identity) for name, part in layer.named_children() if name.startswith("norm"))
    assert isinstance(model.encoder.norm, nn.Identity)
    assert model.positions.any()
    script.PARTS["no positions"](model)
    assert not model.positions.any()
    script.PARTS["no self-attention"](model)
    for layer in script.layers(model):
        output = layer.self_attention(x, need_weights=False)[0]
        assert torch.equal(output, output[:, :1].expand_as(output))        # the bias at most


def test_the_stored_runs_are_those_of_the_script():
    measured = stored("parts_left_out")
    assert list(measured.results["parts"]) == [*script.PARTS][:-1]
    assert (measured.results["steps"], tuple(measured.results["rates"])) == (script.STEPS, script.RATES)
    for row in measured.results["parts"].values():
        losses = row["held_out_loss"]
        assert losses[str(row["rate"])] == min(losses.values())
        assert row["bleu"][0] == row["bleu_at_rate"][str(row["rate"])]
        assert len(row["bleu"]) == len(measured.seeds)


@pytest.mark.parametrize("name", script.PARTS)
def test_a_model_without_a_part_sees_and_reads_what_it_should(name):
    """Lesson 04's test: no later word is seen, every word of the source is read, and no padding is."""
    torch.manual_seed(0)
    n_layers = 1 if name == "no residual path" else 2      # without the path two make all words alike, to rounding
    model = script.Transformer(12, 12, script.Config(d_model=16, n_heads=2, d_ff=32, n_layers=n_layers)).double().eval()
    script.PARTS[name](model)
    source, words = torch.tensor([[4, 5, 6, 7, 8, 9, 0, 0]]), torch.tensor([[1, 4, 5, 6, 7]])

    def moved(source_2, words_2):
        with torch.no_grad():
            change = model(source_2, words_2)[0] - model(source, words)[0]
        return change[0].abs().amax(dim=-1) > 1e-12

    def other(ids, at):
        ids = ids.clone()
        ids[0, at] = 10
        return ids

    earlier = torch.ones(5, 5).tril().bool() if name != "no self-attention" else torch.eye(5).bool()
    assert torch.equal(torch.stack([moved(source, other(words, t)) for t in range(5)], dim=1), earlier)
    assert all(moved(other(source, j), words).all() for j in range(6))
    assert not moved(source[:, :6], words).any()
