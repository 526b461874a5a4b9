"""The script behind lesson 04's verdict: equal search, equal time, and runs that go on where they stopped."""

import importlib
import sys
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from course_utils.attention import CosineScore
from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.data.text import PAD, Vocab
from course_utils.seq2seq import LuongDecoder
from course_utils.training import trapezoid

sys.path.insert(0, str(EXPERIMENTS))
rivals, equal, deeper, same, deep, turned, dropped = map(importlib.import_module, (
    "translation_rivals", "rivals_equal_time", "rivals_deeper", "rivals_same_layer", "rivals_deep_transformer",
    "rivals_rotary", "rivals_dropout"))

RUNS = [{"rate": 1e-3, "dropout": 0.3, "steps": 100, "cpu_seconds": 50.0, "validation_loss": 3.0},
        {"rate": 2e-3, "dropout": 0.1, "steps": 200, "cpu_seconds": 50.0, "validation_loss": 2.5}]
SEARCH, SEEDS = len(rivals.GRID), [0, 1]
PAIRS = [("A man's dog runs in the big park.", "Le chien d'un homme court dans le parc."),
         ("A dog runs.", "Un chien court.")] * 4


def test_the_pace_of_all_earlier_runs_gives_the_steps():
    assert rivals.steps_in(80, RUNS) == 240
    assert rivals.steps_in(0.01, RUNS) == 1


def test_the_lowest_loss_chooses_rate_and_dropout_together():
    assert rivals.chosen(RUNS) == (2e-3, 0.1)


def test_they_have_as_many_parameters():
    sizes = [sum(weights.numel() for weights in make((5930, 6483), 0.1).parameters())
             for make in (*rivals.MODELS.values(), deeper.Deeper, same.SameLayers, turned.rotary)]
    assert max(sizes) < 1.02 * min(sizes)


@pytest.mark.parametrize("make", [*rivals.MODELS.values(), deeper.Deeper, same.SameLayers, turned.rotary])
def test_they_see_and_read_what_they_should(make):
    """Lesson 04's test: no later word is seen, every word of the source is read, and no padding is."""
    torch.manual_seed(0)
    model = make((90, 90), 0.1).double().eval()
    source, words = torch.randint(4, 80, (1, 6)), torch.randint(4, 80, (1, 4))

    def logits(source_2, words_2):
        with torch.no_grad():
            return model(source_2, words_2)[0]

    before = logits(source, words)
    assert torch.allclose(logits(source, words[:, :2]), before[:, :2], rtol=0, atol=1e-12)
    assert torch.allclose(logits(torch.nn.functional.pad(source, (0, 3), value=PAD), words), before, rtol=0, atol=1e-12)
    for j in range(6):
        other = source.clone()
        other[0, j] += 1
        assert (logits(other, words) - before).abs().amax(dim=-1).min() > 1e-6


def test_the_recurrent_rival_has_the_score_and_the_query_that_learn_fastest():
    decoder = rivals.MODELS["LSTM with attention"]((20, 20), 0.1).decoder
    assert isinstance(decoder, LuongDecoder)
    assert isinstance(decoder.score, CosineScore)


@pytest.fixture
def trained(monkeypatch):
    """Every call of a ``train`` that trains nothing; the seventh is interrupted."""
    calls = []

    def train(captions, name, setting, seed, steps):
        calls.append((name, setting, seed, steps))
        if len(calls) == 7:
            raise KeyboardInterrupt
        loss = abs(setting[0] - 4e-3) + setting[1]
        return None, {"rate": setting[0], "dropout": setting[1], "seed": seed, "steps": steps,
                      "cpu_seconds": steps * (2.0 if name == "Transformer" else 1.0), "validation_loss": loss}

    monkeypatch.setattr(rivals, "train", train)
    monkeypatch.setattr(rivals, "Captions", lambda: SimpleNamespace(groups={"4-9": [0]}, sizes=(20, 20),
                                                                    scores=lambda model: {"bleu": 1.0}))
    return calls


def test_started_again_it_goes_on_in_turns_until_both_have_had_the_same(trained, tmp_path):
    words = ["--search", "40", "--final", "400", "--seeds", *map(str, SEEDS), "--out", str(tmp_path / "here.json")]
    with pytest.raises(KeyboardInterrupt):
        rivals.main(words)
    rivals.main(words)
    assert trained[6] == trained[7]                                   # the one that was cut off, and none before it
    done = trained[:6] + trained[7:]
    names = list(rivals.MODELS)
    assert [name for name, *_ in done] == names * (len(done) // 2)
    assert [call[1:3] for call in done[::2]] == [call[1:3] for call in done[1::2]] == [
        (rivals.GRID[0], 0), *((setting, 0) for setting in rivals.GRID), *(((4e-3, 0.1), seed) for seed in SEEDS)]
    assert [steps for *_, steps in done[2:4]] == [20, 40]             # the same seconds
    assert [steps for *_, steps in done[-2:]] == [200, 400]
    rows = stored("here", tmp_path).results["models"]
    assert [(len(row["search"]), len(row["final"])) for row in rows.values()] == [(SEARCH, len(SEEDS))] * 2
    rivals.main(words)
    assert len(trained) == len(done) + 1                              # nothing is left to do
    rivals.main([*words, "--final", "500"])
    assert len(trained) == 2 * len(done) + 1                          # another experiment begins anew


def test_both_are_trained_alike(monkeypatch):
    """Nothing weakens a rival on the way from the grid to `fit`: dropout, rate, steps, batches, loss, schedule."""
    given = []

    def fit(model, batches, steps, *, loss, label, **settings):
        dropouts = {part.p for part in model.modules() if isinstance(part, nn.Dropout)}
        order = [batch.target.tolist() for batch in batches]
        given.append((label.split(",")[0], dropouts, steps, settings, loss.func, loss.keywords, order))
        return SimpleNamespace(tokens=1)

    monkeypatch.setattr(rivals, "fit", fit)
    words = [torch.full((n,), 4 + n % 9) for n in (300, 400, 500, 600, 350, 450, 550)]
    captions = SimpleNamespace(sizes=(20, 20), train_ids=list(zip(words, words, strict=True)),
                               validation_loss=lambda model: 1.0)
    for setting in rivals.GRID:
        for name in rivals.MODELS:
            run = rivals.train(captions, name, setting, 0, 7)[1]
            assert (run["rate"], run["dropout"], run["steps"]) == (*setting, 7)
        (one, *of_one), (other, *of_other) = given[-2:]
        assert [one, other] == list(rivals.MODELS)
        assert of_one == of_other
        assert of_one[:2] == [{setting[1]}, 7]
        assert of_one[2] == {"lr": setting[0], "schedule": trapezoid, "live": False}
        assert len(of_one[-1]) > 1


@pytest.mark.slow
def test_training_and_scores_in_miniature(monkeypatch):
    monkeypatch.setattr(importlib.import_module("real_captions"), "load_multi30k", lambda *_: PAIRS)
    captions = rivals.Captions()
    assert all(isinstance(vocab, Vocab) for vocab in captions.vocabs)
    for name in rivals.MODELS:
        model, run = rivals.train(captions, name, (2e-3, 0.1), 0, 30)
        assert run["steps"] == 30
        assert run["validation_loss"] < 1.5                            # of pairs that it was trained on
        scores = captions.scores(model)
        assert scores["bleu"] > 60
        assert scores["decoded_tokens_per_cpu_second"] > 0


def test_the_stored_runs_are_those_of_the_script():
    measured = stored("translation_rivals")
    rows = measured.results["models"]
    assert list(rows) == list(rivals.MODELS)
    for row in rows.values():
        assert [(run["rate"], run["dropout"]) for run in row["search"]] == list(rivals.GRID)
        assert [run["seed"] for run in row["final"]] == measured.seeds
        assert {(run["rate"], run["dropout"]) for run in row["final"]} == {rivals.chosen(row["search"])}


@pytest.mark.parametrize("part", ["transformer", "lstm"])
def test_the_wider_search_is_as_it_says_and_costs_as_much(part):
    searched = importlib.import_module("rivals_searched")
    assert searched.DEEP not in rivals.MODELS
    runs, full = stored(f"rivals_searched_{part}").results["runs"], stored("translation_rivals").results["models"]
    assert [(run["name"], run["warmup"]) for run in runs] == [row[:2] for row in searched.SEARCHED[part]]
    base = full[searched.SEARCHED[part][0][0]]
    rate, dropout = rivals.chosen(base["search"])
    for run, (*_, times) in zip(runs, searched.SEARCHED[part], strict=True):
        assert run["parameters"] == pytest.approx(base["parameters"], rel=0.02)
        assert (run["rate"], run["dropout"]) == (times * rate, dropout)
        assert run["steps"] == pytest.approx(base["final"][0]["steps"], rel=0.3)


def test_the_longer_runs_are_as_they_say():
    longer = importlib.import_module("rivals_longer")
    measured, before = stored("rivals_longer"), stored("translation_rivals").results["models"]
    assert measured.seeds == longer.SEEDS
    for name, row in measured.results["models"].items():
        settings = [rivals.chosen(before[name]["search"]), *longer.OTHERS[name]]
        assert [(run["rate"], run["dropout"]) for run in row["search"]] == settings
        assert {run["seed"] for run in row["search"]} == {longer.SEEDS[0]}
        assert [run["seed"] for run in row["final"]] == longer.SEEDS[1:]
        assert {(run["rate"], run["dropout"]) for run in row["final"]} == {rivals.chosen(row["search"])}
        assert {run["steps"] for runs in row.values() for run in runs} == {4 * before[name]["final"][0]["steps"]}


def test_the_longer_runs_go_on_where_they_stopped_with_the_best_of_the_search(monkeypatch, tmp_path):
    longer, calls = importlib.import_module("rivals_longer"), []

    def train(captions, name, setting, seed, steps, schedule):
        calls.append((name, tuple(setting), seed))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return None, {"rate": setting[0], "dropout": setting[1], "validation_loss": setting[1] - setting[0]}

    before = stored("translation_rivals")
    monkeypatch.setattr(longer, "before", lambda: before)
    monkeypatch.setattr(longer, "OUT", tmp_path / "here.json")
    monkeypatch.setattr(longer, "train", train)
    monkeypatch.setattr(longer, "Captions", lambda: SimpleNamespace(scores=lambda model: {}))
    with pytest.raises(KeyboardInterrupt):
        longer.main([])
    longer.main([])
    assert calls[3] == calls[4]                                       # the one that was cut off
    ours, lstm = longer.MODELS
    assert calls[:3] == [(ours, (rate, 0.1), 0) for rate in (0.002, 0.001, 0.004)]
    assert calls[4:] == [(ours, (0.004, 0.1), 1), (ours, (0.004, 0.1), 2),     # the lowest "loss"
                         (lstm, (0.008, 0.1), 0), (lstm, (0.008, 0.3), 0), (lstm, (0.004, 0.1), 0),
                         (lstm, (0.008, 0.1), 1), (lstm, (0.008, 0.1), 2)]
    longer.main([])
    assert len(calls) == 11                                           # nothing is left to do


@pytest.mark.parametrize("make", [
    partial(deeper.Deeper, d_embed=16, d_model=12), partial(same.SameLayers, d_model=12), turned.rotary])
def test_a_rival_writes_what_it_computes_at_once(make):
    """Word by word, its state is that of both layers."""
    torch.manual_seed(0)
    model = make((90, 90), 0.1).double().eval()
    source, words = torch.randint(4, 80, (2, 6)), torch.randint(4, 80, (2, 4))
    with torch.no_grad():
        memory, state = model.encode(source)
        steps = []
        for word in words.split(1, dim=1):
            logits, _, state = model.decode(word, state, memory)
            steps.append(logits)
    assert torch.allclose(torch.cat(steps, dim=1), model(source, words)[0], rtol=0, atol=1e-12)


def test_the_rival_in_the_same_layers_differs_from_the_transformer_in_self_attention_only():
    ours = rivals.transformer((90, 90), 0.1)
    theirs = same.SameLayers((90, 90), 0.1, d_model=192)
    kinds = [{name: type(part) for name, part in model.named_modules()} for model in (ours, theirs)]
    differ = {name for names in kinds for name in names if kinds[0].get(name) != kinds[1].get(name)}
    assert all(".self_attention" in name or name in ("", "decoder.layers.0", "decoder.layers.1") for name in differ)
    assert not theirs.positions.any()
    assert {type(part) for name, part in theirs.named_modules() if "self_attention" in name} == {
        same.BothWays, torch.nn.LSTM}


def test_a_rotary_transformer_has_no_other_positions():
    """One with the same weights that does not rotate ignores the order of the source."""
    torch.manual_seed(0)
    model = turned.rotary((90, 90), 0.0).double().eval()
    plain = rivals.transformer((90, 90), 0.0).double().eval()
    plain.load_state_dict(model.state_dict())
    plain.positions.zero_()
    source, words = torch.randint(4, 80, (1, 6)), torch.randint(4, 80, (1, 4))
    with torch.no_grad():
        moved = [(m(source.flip(1), words)[0] - m(source, words)[0]).abs().max() for m in (plain, model)]
    assert moved[0] < 1e-12 < 1e-6 < moved[1]


@pytest.mark.parametrize(("name", "script"), [("rivals_deeper", deeper), ("rivals_same_layer", same),
                                             ("rivals_deep_transformer", deep), ("rivals_rotary", turned),
                                             ("rivals_dropout", dropped)])
def test_the_deeper_runs_are_as_they_say(name, script):
    runs = stored(name).results["runs"]
    assert [(run["rate"], run["dropout"], run["seed"]) for run in runs] == script.SETTINGS
    assert all(run["steps"] == script.STEPS for run in runs)


def test_three_models_of_the_same_layers_are_tried_in_the_same_settings():
    def tried(runs):
        return {(run["rate"], run["dropout"]) for run in runs if run["seed"] == 0}

    longer = stored("rivals_longer").results["models"]["Transformer"]["search"]
    sinusoids = tried([*longer, *stored("rivals_dropout").results["runs"]])
    assert sinusoids == {(2e-3, 0.1), (1e-3, 0.1), (4e-3, 0.1), (2e-3, 0.2)}
    for name in ("rivals_same_layer", "rivals_rotary"):
        assert tried(stored(name).results["runs"]) == sinusoids


def test_one_rival_alone_goes_on_where_it_stopped(monkeypatch, tmp_path):
    calls = []

    def train(captions, name, setting, seed, steps, schedule, models):
        calls.append((name, setting, seed, steps, models))
        return None, {"rate": setting[0], "seed": seed}

    monkeypatch.setattr(equal, "Captions", lambda: SimpleNamespace(scores=lambda model: {"bleu": 1.0}))
    monkeypatch.setattr(equal, "train", train)
    wanted = [(4e-3, 0.1, 1), (4e-3, 0.1, 0), (2e-3, 0.1, 0)]
    for some in (wanted[:2], wanted, wanted):
        equal.go_on(tmp_path / "one.json", "python experiments/one.py", "LSTM", some, 7, {"LSTM": deeper.Deeper})
    assert calls == [("LSTM", (rate, dropout), seed, 7, {"LSTM": deeper.Deeper}) for rate, dropout, seed in wanted]
    kept = stored("one", tmp_path)
    assert list(kept.seeds) == [0, 1]
    assert [(run["rate"], run["seed"], run["bleu"]) for run in kept.results["runs"]] == [
        (rate, seed, 1.0) for rate, _, seed in wanted]
