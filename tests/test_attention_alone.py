"""The script behind lesson 04's answer on captions: what is left out, what is chosen, and what is stored."""

import importlib
import json
import sys
from types import SimpleNamespace

import torch
from torch import nn

from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.transformer import Config, Transformer

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("attention_alone")
ALONE = "attention, path, positions"


def test_what_is_left_is_attention_the_path_and_positions():
    torch.manual_seed(0)
    model = Transformer(9, 9, Config(d_model=8, n_heads=2, d_ff=16)).eval()
    script.without_norm_and_feed_forward(model)
    kept = {name for name, part in model.named_modules() if list(part.parameters(recurse=False))}
    assert all("attention" in name or "embed" in name for name in kept)
    assert not any(isinstance(part, nn.LayerNorm) for part in model.modules())
    source, target = torch.randint(4, 9, (2, 5)), torch.randint(4, 9, (2, 4))
    assert not torch.allclose(model(source, target), model(source.flip(1), target))          # positions


def test_depth_and_rate_are_chosen_in_short_trainings(tmp_path, monkeypatch):
    trained = []

    def train(captions, name, n_layers, lr, steps, seed):
        trained.append((name, n_layers, lr, steps, seed))
        return None, {"layers": n_layers, "rate": lr, "validation_loss": abs(n_layers - 5) + abs(lr - 2e-3)}

    scores = {"bleu": 1.0, "by_length": {}}
    monkeypatch.setattr(script, "Captions", lambda: SimpleNamespace(scores=lambda model: scores))
    monkeypatch.setattr(script, "train", train)
    out = tmp_path / "alone.json"
    script.main(["--search", "3", "--steps", "7", "--seeds", "1", "2", "--out", str(out)])
    assert [one for one in trained if one[3] == 7] == [("all parts", 2, 2e-3, 7, 1), (ALONE, 5, 2e-3, 7, 1),
                                                       ("all parts", 2, 2e-3, 7, 2), (ALONE, 5, 2e-3, 7, 2)]
    assert {one[4] for one in trained if one[3] == 3} == {1}
    written = json.loads(out.read_text())
    assert [len(row["search"]) for row in written["results"]["models"].values()] == [3, 6]
    assert written["command"] == "python experiments/attention_alone.py --search 3 --steps 7 --seeds 1 2"


def test_what_is_stored_was_chosen_as_the_script_says():
    kept = stored("attention_alone")
    for row in kept.results["models"].values():
        best = min(row["search"], key=lambda found: found["validation_loss"])
        assert [run["seed"] for run in row["final"]] == kept.seeds == [0, 1, 2]
        assert {(run["layers"], run["rate"]) for run in row["final"]} == {(best["layers"], best["rate"])}
