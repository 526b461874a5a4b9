"""The script behind lesson 04's answer on captions: what is left out, what is chosen, and what is stored."""

import importlib
import json
import sys

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
    script.PARTS[ALONE](model)
    kept = {name for name, part in model.named_modules() if list(part.parameters(recurse=False))}
    assert all("attention" in name or "embed" in name for name in kept)
    assert not any(isinstance(part, nn.LayerNorm) for part in model.modules())
    source, target = torch.randint(4, 9, (2, 5)), torch.randint(4, 9, (2, 4))
    assert not torch.allclose(model(source, target)[0], model(source.flip(1), target)[0])    # positions


def test_depth_and_rate_are_chosen_at_the_first_seed(tmp_path, monkeypatch):
    trained = []

    def train(captions, name, n_layers, lr, steps, warmup, seed):
        trained.append((name, n_layers, lr, seed))
        assert (steps, warmup) == (7, 50)
        return {"layers": n_layers, "rate": lr, "seed": seed, "validation_loss": abs(n_layers - 5) + abs(lr - 2e-3)}

    monkeypatch.setattr(script, "Captions", lambda: None)
    monkeypatch.setattr(script, "train", train)
    out = tmp_path / "alone.json"
    script.main(["--steps", "7", "--seeds", "1", "2", "--out", str(out)])
    assert [one for one in trained if one[3] == 2] == [("all parts", 2, 2e-3, 2), (ALONE, 5, 2e-3, 2)]
    written = json.loads(out.read_text())
    assert [len(row["search"]) for row in written["results"]["models"].values()] == [2, 4]
    assert [[run["seed"] for run in row["final"]] for row in written["results"]["models"].values()] == [[1, 2]] * 2
    assert written["command"] == f"python experiments/attention_alone.py --steps 7 --seeds 1 2 --out {out}"
    trained.clear()
    script.main(["--steps", "7", "--seeds", "1", "--layers", "3", "--rates", "0.001", "--out", str(out)])
    assert trained == [("all parts", 2, 1e-3, 1), (ALONE, 3, 1e-3, 1)]


def test_what_is_stored_was_chosen_as_the_script_says():
    kept = stored("attention_alone")
    for row in kept.results["models"].values():
        best = min(row["search"], key=lambda found: found["validation_loss"])
        assert [run["seed"] for run in row["final"]] == kept.seeds == [0, 1, 2]
        assert {(run["layers"], run["rate"]) for run in row["final"]} == {(best["layers"], best["rate"])}
