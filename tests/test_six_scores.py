"""The scripts behind *Six ways to score* and *Which state asks?*: what is compared is trained alike."""

import importlib
import inspect
import json
import sys

import pytest
import torch

from course_utils.attention import SCORES, AttentionRecord
from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.data import train_test
from course_utils.seq2seq import BahdanauDecoder, LuongDecoder, Memory

sys.path.insert(0, str(EXPERIMENTS))
scores = importlib.import_module("six_scores")
states = importlib.import_module("which_state")


@pytest.fixture
def given(monkeypatch):
    """What each training gets, without training."""
    calls = []

    def fit(model, batches, steps, *, lr, label, live):
        first = {name: values.clone() for name, values in model.state_dict().items()}
        calls.append((model, first, steps, lr, [batch.target.tolist() for batch in batches]))

    monkeypatch.setattr(scores, "fit", fit)
    monkeypatch.setattr(scores, "train_test", lambda *_, seed: train_test(300, 12, seed=seed))
    monkeypatch.setattr(scores, "translate", lambda model, sources, *_: [[] for _ in sources])
    return calls


@pytest.mark.parametrize("name", ["LuongPrevious", "BahdanauCurrent", "wrong_links"])
def test_the_notebook_trains_and_counts_the_same(name):
    path = EXPERIMENTS.parent / "notebooks" / "further" / "02_which_state.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert any(inspect.getsource(getattr(states, name)).strip() in "".join(cell["source"]) for cell in cells)


def test_all_scores_are_trained_alike(given):
    """But for the score; scaled dot goes on with the model that it is, in another order."""
    for score in SCORES:
        row = scores.measure(score, 5, seed=3)
        assert ("twice_the_steps" in row) == (score == "scaled_dot")
    assert [type(model.decoder.score) for model, *_ in given] == [*SCORES.values(), SCORES["scaled_dot"]]
    (model, first, steps, rate, order), *others, again = given
    assert (steps, rate, len(order) > 1) == (5, scores.RATE, True)
    for _, weights, *same in others:
        assert same == [steps, rate, order]
        for name in set(first) & set(weights):
            assert first[name].shape == weights[name].shape
            if name.startswith("encoder."):
                assert torch.equal(first[name], weights[name])
    assert again[0] is others[-1][0]
    assert again[2:4] == (5, scores.RATE)
    assert again[-1] != order


def test_both_queries_of_a_decoder_start_and_are_trained_alike(given):
    for of, asks in states.KINDS:
        states.measure(of, asks, 5, seed=3)
    assert [type(model.decoder) for model, *_ in given] == list(states.KINDS.values())
    assert [isinstance(model.decoder, LuongDecoder) for model, *_ in given] == [True, True, False, False]
    for previous, current in (given[:2], given[2:]):
        assert previous[1].keys() == current[1].keys()
        assert all(torch.equal(values, current[1][name]) for name, values in previous[1].items())
        assert previous[2:] == current[2:] == (5, scores.RATE, given[0][-1])


@pytest.mark.parametrize(("kind", "looks_at_the_word"), [
    (states.LuongPrevious, False), (LuongDecoder, True), (BahdanauDecoder, False), (states.BahdanauCurrent, True)])
def test_which_state_asks(kind, looks_at_the_word):
    """A word moves the weights of its own step if the current state asks, and those of the next step anyway."""
    torch.manual_seed(0)
    decoder = kind(6, 8, "lstm", SCORES["additive"](8, 8))
    words, values, state = torch.randn(2, 4, 6), torch.randn(2, 5, 8), (torch.randn(2, 8), torch.randn(2, 8))
    memory = Memory(values, decoder.score.project_keys(values), values[:, 0], torch.ones(2, 1, 5) > 0)
    other = words.clone()
    other[:, 2] += 1
    weights, moved = (decoder(embedded, state, memory)[1] for embedded in (words, other))       # (B, T_q, T_k)
    steps = (weights - moved).abs().amax((0, 2))
    assert (steps > 1e-6).tolist() == [False, False, looks_at_the_word, True]


def test_how_far_apart_the_scores_of_a_row_are():
    row = torch.tensor([[1.0, 2.0, 3.0]])
    record = AttentionRecord(row.softmax(dim=-1), ["a"], ["b", "c", "d"])
    assert scores.spread([record]) == pytest.approx(1)
    assert scores.spread([record.with_weights((row / 10).softmax(dim=-1))]) == pytest.approx(0.1)


def test_where_wrong_links_point():
    """The first row's link is right; the others' are the previous word's, the next one's, and nobody's."""
    pair = train_test(1, 1, seed=0)[0][0]._replace(source=list("abcd"), target=list("wxyz"),
                                                   links={(0, 0), (1, 1), (2, 2), (3, 3)})
    assert states.wrong_links({(0, 0), (1, 0), (2, 3), (3, 0)}, pair).tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("script", [scores, states])
def test_all_are_trained_at_all_seeds(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "measure", lambda *which: {"trained": which})
    script.main(["--steps", "20", "--seeds", "0", "1", "--out", str(tmp_path / "out.json")])
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["command"] == f"python experiments/{script.__name__}.py --steps 20 --seeds 0 1"
    rows = ({(row["decoder"], row["asks"]): row["runs"] for row in written["results"]["rows"]} if script is states else
            {(score,): runs for score, runs in written["results"]["scores"].items()})
    assert list(rows) == (list(states.KINDS) if script is states else [(score,) for score in SCORES])
    for which, runs in rows.items():
        assert runs == [{"trained": [*which, 20, seed]} for seed in (0, 1)]


def test_what_is_stored_is_what_the_script_says():
    kept = stored("which_state")
    assert kept.results["steps"] == scores.STEPS
    assert [(row["decoder"], row["asks"]) for row in kept.results["rows"]] == list(states.KINDS)
    for row in kept.results["rows"]:
        assert len(row["runs"]) == len(kept.seeds) == 5
