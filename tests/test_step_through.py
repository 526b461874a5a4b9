"""The Python side of StepThrough: what it computes, what it refuses and what it leaves behind."""

import base64
import io

import matplotlib
import numpy as np
import pytest
import torch
import traitlets
from PIL import Image
from sample_steps import BLIND, MASK, SOURCE, WEIGHTS, WORDS, K, Q, V, numbers, writing
from sample_widgets import exported

from course_utils.attention import causal_mask, masked_softmax
from course_utils.widgets import StepThrough
from course_utils.widgets.base import _lean, javascript, stylesheet

LIVE = "application/vnd.jupyter.widget-view+json"


# --- numbers ---


@pytest.mark.parametrize("mask", [None, MASK, BLIND])
def test_weights_are_those_of_the_course(mask):
    expected = masked_softmax(Q.double() @ K.double().T / 6**0.5, mask)
    np.testing.assert_allclose(numbers(mask=mask).weights, expected, atol=1e-7)


def test_of_several_heads_the_weights_are_the_mean():
    np.testing.assert_allclose(writing().weights, WEIGHTS.mean(0), atol=1e-7)
    np.testing.assert_allclose(writing(weights=WEIGHTS[0]).weights, WEIGHTS[0], atol=1e-7)


@pytest.mark.parametrize("convert", [torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.double,
                                     lambda x: x.clone().requires_grad_()])
def test_arrays_of_any_kind(convert):
    np.testing.assert_allclose(numbers(queries=convert(Q), keys=convert(K), values=convert(V)).weights,
                               numbers().weights)


def test_scores_that_are_far_apart():
    view = numbers(queries=Q * 1e4, keys=K * 1e4)
    assert np.isfinite(view.weights).all()
    np.testing.assert_allclose(view.weights.sum(axis=1), 1)


def test_self_attention_needs_one_list_of_words():
    view = StepThrough(K, K, V, SOURCE, mask=causal_mask(5))
    assert view.columns == view.rows == tuple(SOURCE)
    assert (np.triu(view.weights, 1) == 0).all()
    assert repr(view) == "StepThrough(attention, queries=5, keys=5, query=0, step=scores)"
    assert repr(writing(step=1)) == "StepThrough(decoding, queries=4, keys=5, query=0, step=write)"


# --- traits ---


@pytest.mark.parametrize(("make", "steps"), [(numbers, 5), (writing, 2)])
def test_traits_are_two_way_and_observed(make, steps):
    view, seen = make(query=1, step=1), []
    assert (view.query, view.step) == (1, 1)
    view.observe(lambda change: seen.append((change.name, change.new)), ["query", "step", "title"])
    view.step, view.title = 0, "new"
    view.set_state({"query": 3, "step": steps - 1})  # as the front end sends it
    assert sorted(seen) == [("query", 3), ("step", 0), ("step", steps - 1), ("title", "new")]
    for name, value, message in [("query", 4, "query is 4, but there are 4: 0 to 3"),
                                 ("step", steps, f"step is {steps}, but there are {steps}: 0 to {steps - 1}")]:
        with pytest.raises(traitlets.TraitError, match=message):
            view.set_trait(name, value)
        with pytest.raises(traitlets.TraitError, match=message):
            make(**{name: value})
    assert (view.query, view.step) == (3, steps - 1)


# --- in place ---


# --- refused ---


@pytest.mark.parametrize(("changes", "message"), [
    ({"queries": Q[None, None]}, r"queries have 4 axes, shape \(1, 1, 4, 6\); .* choose one: queries\[0, 0\]"),
    ({"values": V[0]}, r"values have 1 axes, shape \(3,\)"),
    ({"keys": K[:, :5]}, "queries have d = 6, keys have d = 5: their product needs the same"),
    ({"values": V[:4]}, "there are 5 keys and 4 values: each key needs one value"),
    ({"rows": WORDS[:3]}, r"there are 4 queries, shape \(4, 6\), and 3 tokens in rows: each of the queries needs one"),
    ({"columns": SOURCE[:3]}, r"there are 5 keys, shape \(5, 6\), and 3 tokens in columns: each of the keys needs one"),
    ({"columns": None}, r"there are 5 keys, shape \(5, 6\), and 4 tokens in rows, which are the columns too \(no col"),
    ({"mask": torch.ones(4, 5)}, "mask has dtype .*float32; expected booleans, true = may attend"),
    ({"mask": torch.ones(4, 4, dtype=torch.bool)}, r"mask has shape .* does not broadcast to \(4, 5\)"),
    ({"keys": K / 0}, "keys are not all finite"),
    ({"queries": torch.zeros(4, 200), "keys": torch.zeros(5, 200)}, "d = 200 numbers a vector; at most 128"),
    ({"queries": torch.zeros(41, 6), "rows": ["x"] * 41}, "41 tokens in rows; at most 40 can be followed"),
])
def test_bad_vectors_name_what_is_wrong(changes, message):
    with pytest.raises(ValueError, match=message):
        numbers(**changes)


@pytest.mark.parametrize(("changes", "message"), [
    ({"weights": WEIGHTS[None].expand(3, 2, 4, 5)}, r"weights have 3 layers, shape \(3, 2, 4, 5\); .*weights\[-1\]"),
    ({"weights": WEIGHTS - 1}, "expected weights from 0 to 1"),
    ({"rows": WORDS[:2]}, r"2 tokens in rows, but the weights have 4 row"),
    ({"probabilities": [0.5] * 3}, r"probabilities have shape \(3,\), \[0.5, 0.5, 0.5\]; expected 4 from 0 to 1"),
    ({"probabilities": [0.5, 0.5, 2, 0]}, r"shape \(4,\), \[0.5, 0.5, 2.0, 0.0\]; expected 4 from 0 to 1"),
    ({"probabilities": []}, r"shape \(0,\), \[\]; expected 4 from 0 to 1"),
    ({"weights": torch.ones(1, 41) / 41, "rows": ["x"], "columns": ["x"] * 41}, "41 tokens in columns"),
])
def test_bad_weights_name_what_is_wrong(changes, message):
    with pytest.raises(ValueError, match=message):
        writing(**changes)


def test_rows_that_do_not_sum_to_one_warn_where_it_was_called():
    with pytest.warns(UserWarning, match="rows do not sum to one") as caught:
        StepThrough.decoding(WEIGHTS * 0.5, WORDS, SOURCE)
    assert [warning.filename for warning in caught] == [__file__]


# --- what an output holds ---


def test_output_has_a_live_view_and_what_lasts():
    view = numbers(mask=MASK, query=2, title="by hand")
    data, _ = view._repr_mimebundle_()
    assert data[LIVE]["model_id"] == view.model_id
    lines = data["text/plain"].splitlines()
    assert lines[0] == "by hand: attention of the query a to 5 keys, d = 6:"
    scores = (Q @ K.T / 6**0.5)[2]
    weights = masked_softmax(scores, MASK)
    assert lines[1:5] == [f"{SOURCE[j]}: score {scores[j]:.4f}, weight {weights[j]:.4f}" for j in range(4)]
    assert lines[5] == "<eos>: score masked, weight 0.0000"
    assert lines[6] == "output: " + ", ".join(f"{number:.4f}" for number in weights @ V)
    assert view.to_html() == numbers(mask=MASK, query=2, title="by hand").to_html() != numbers().to_html()


def test_words_of_a_sentence_being_written():
    lines = writing(probabilities=[0.9, 0.8, 0.7, 1])._in_words().splitlines()
    mean = WEIGHTS.mean(0)
    assert lines[0] == "4 words written, and what each looked at most in the source:"
    assert lines[2] == f"chat (p 0.8000) ← {SOURCE[mean[1].argmax()]} {mean[1].max():.4f}"
    assert writing()._in_words().splitlines()[1].startswith("le ← ")


def test_export_holds_the_numbers():
    arrays = exported(numbers(mask=MASK))["_content"]["arrays"]
    for name, tensor in (("queries", Q), ("keys", K), ("values", V)):
        sent = np.frombuffer(base64.b64decode(arrays[name]["float32"]), "<f4")
        np.testing.assert_array_equal(sent, tensor.numpy().ravel())
    sent = exported(writing())["_content"]["arrays"]["weights"]
    steps = np.frombuffer(base64.b64decode(sent["uint16"]), "<u2")
    np.testing.assert_allclose(steps / 65535 * sent["peak"], WEIGHTS.numpy().ravel(), atol=7.7e-6)


HOSTILE = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "$x^2$ 注意", ""]


@pytest.mark.parametrize("make", [numbers, writing])
def test_words_cannot_leave_their_place(make):
    html = make(rows=HOSTILE, title=HOSTILE[0]).to_html()
    assert html.count("</script>") == 1
    assert "<img src=x" not in html
    assert "<!--" not in html
    assert exported(make(rows=HOSTILE))["_content"]["rows"] == HOSTILE


def picture(view):
    return np.array(Image.open(io.BytesIO(view._still())).convert("RGB")).astype(int)


def test_the_still_picture_shows_the_whole_computation():
    one_key = torch.zeros(4, 5, dtype=torch.bool)
    one_key[:, 2] = True
    for mask, keys in ((one_key, 1), (None, 5)):
        pixels = picture(numbers(mask=mask, values=torch.ones(5, 3)))
        blue = (abs(pixels - [0x1F, 0x6F, 0xB2]) < 12).all(axis=-1).any(axis=1)
        assert (np.diff(blue.astype(int)) == 1).sum() == keys + 1  # rows with bars: the keys that count, and the output
    assert len(numbers()._still()) < 20_000
    assert len(writing()._still()) < 10_000


@pytest.mark.parametrize("make", [numbers, writing])
def test_figures_do_not_depend_on_the_notebooks_style(make):
    before = make()._still()
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True}):
        assert make()._still() == before


def test_sizes():
    assert len(_lean(javascript("step_through"))) + len(_lean(stylesheet("step_through"))) < 40_000


@pytest.mark.parametrize(("queries", "keys", "shape"), [
    (np.zeros((0, 2)), np.eye(2), r"queries have shape \(0, 2\)"), (np.zeros((2, 0)), np.eye(2), r"\(2, 0\)"),
    (np.eye(2), np.zeros((0, 2)), r"keys have shape \(0, 2\)")])
def test_nothing_to_show_is_called_so(queries, keys, shape):
    with pytest.raises(ValueError, match=shape + ".*are empty; there is nothing to show"):
        StepThrough(queries, keys, np.eye(2), ["a", "b"])
