"""The Python side of the attention view: what it accepts, what it refuses and what it leaves behind."""

import base64
import io
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import traitlets
from PIL import Image
from sample_attentions import sent_weights, softmax
from sample_widgets import exported

from course_utils.widgets import AttentionView, attention_view, still, strip_widget_state
from course_utils.widgets.still import GREY
from course_utils.widgets.tensors import thumbnails

ROWS = ("l'", "accord", "signé")
COLUMNS = ("the", "agreement", "was", "signed")
WEIGHTS = torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.1, 0.8, 0.05, 0.05], [0.02, 0.03, 0.02, 0.93]])
LIVE = "application/vnd.jupyter.widget-view+json"


def view(**changes):
    return AttentionView(**{"weights": WEIGHTS, "rows": ROWS, "columns": COLUMNS, **changes})


@pytest.mark.parametrize("shape", [(3, 4), (5, 3, 4), (2, 5, 3, 4)])
@pytest.mark.parametrize(
    "convert",
    [lambda w: w, lambda w: w.numpy(), lambda w: w.tolist(), lambda w: w.double().requires_grad_()],
    ids=["tensor", "array", "lists", "float64 with gradient"],
)
def test_takes_two_to_four_axes_of_any_kind(shape, convert):
    weights = softmax(*shape)
    shown = view(weights=convert(weights)).weights
    assert shown.shape == (1,) * (4 - len(shape)) + shape
    assert shown.dtype == np.float32
    np.testing.assert_array_equal(shown.reshape(shape), weights.numpy())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_no_reason_to_warn(dtype):
    weights = softmax(64, 64).to(dtype)
    shown = AttentionView(weights, [str(i) for i in range(64)]).weights
    np.testing.assert_array_equal(shown[0, 0], weights.float().numpy())


def test_numpy_tokens_pairs_and_defaults():
    square = view(weights=softmax(3, 3), rows=np.array(ROWS), columns=None, alignment=np.array([[2, 0], [0, 1]]))
    assert square.columns == square.rows == ROWS
    assert square.alignment == ((0, 1), (2, 0))
    assert (square.layer, square.head, square.view) == (0, 0, "matrix")


def test_caller_keeps_the_weights():
    mine = WEIGHTS.clone()
    shown = view(weights=mine)
    mine.zero_()
    assert shown.weights[0, 0, 2, 3] == np.float32(0.93)
    with pytest.raises(ValueError, match="read-only"):
        shown.weights[0, 0, 0, 0] = 0


def batches(n_layers, *shape):
    """What a transformers model returns as ``attentions``: a tuple, one tensor a layer."""
    return tuple(softmax(*shape, seed=layer) for layer in range(n_layers))


def test_takes_what_transformers_returns():
    layers = batches(3, 1, 2, 3, 4)
    shown = view(weights=layers).weights
    np.testing.assert_array_equal(shown, torch.cat(layers).numpy())
    np.testing.assert_array_equal(view(weights=list(layers)).weights, shown)


@torch.no_grad()
def test_takes_the_output_of_a_transformers_encoder():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=3, num_attention_heads=2,
                                     intermediate_size=8, attn_implementation="eager")
    model = transformers.BertModel(config).eval()
    ids = torch.tensor([[7, 8, 4]])
    outputs = model(ids, output_attentions=True)
    shown = AttentionView(outputs, ROWS)
    np.testing.assert_array_equal(shown.weights, torch.cat(outputs.attentions).numpy())
    with pytest.raises(ValueError, match="weights are None. Load .*eager.* output_attentions=True"):
        AttentionView(model(ids), ROWS)


def test_a_batch_of_one_needs_no_choice():
    weights = softmax(1, 6, 2, 3, 4)
    np.testing.assert_array_equal(view(weights=weights).weights, weights[0].numpy())


def test_first_cell_is_a_telling_one():
    assert view().cell == (2, 3)  # the only row whose strongest key is off the diagonal
    assert view(weights=WEIGHTS[:2], rows=ROWS[:2]).cell == (1, 1)  # all on the diagonal: the strongest
    assert view(cell=(0, 2)).cell == (0, 2)
    assert view(columns=[*COLUMNS[:3], "<pad>"]).cell == (2, 1)
    assert view(rows=[*ROWS[:2], "[PAD]"]).cell == (1, 1)


# --- refused ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": ROWS[:2]}, r"2 tokens in rows, but the weights have 3 row \(query\)s: shape \(1, 1, 3, 4\)"),
        ({"columns": COLUMNS + ("x",)}, r"5 tokens in columns, but the weights have 4 column \(key\)s"),
        ({"columns": None}, r"columns are the 3 tokens in rows .* weights have 4 column"),
        ({"weights": WEIGHTS.T}, r"3 tokens in rows, but the weights have 4 row"),
        ({"weights": WEIGHTS[0]}, r"1 axes, shape \(4,\); expected \[T_q, T_k\]"),
        ({"weights": WEIGHTS[None, None, None, None]}, r"6 axes.*expected .* or \[1, layers, heads, T_q, T_k\]"),
        ({"weights": softmax(5, 2, 2, 3, 4)}, r"batch axis of the weights has 5 examples, .* first is weights\[0\]\."),
        ({"weights": [[1, 2], [3]]}, "cannot be read as an array of numbers"),
        ({"weights": torch.zeros(0, 3, 4)}, r"weights have no head: shape \(1, 0, 3, 4\)"),
        ({"weights": torch.zeros(0, 4), "rows": []}, r"weights have no row \(query\)"),
        ({"weights": torch.zeros(3, 0), "columns": []}, r"weights have no column \(key\)"),
        ({"weights": WEIGHTS - 1}, r"weights are -0.3.* at layer 0, head 0, row \(query\) 0, column \(key\) 0"),
        ({"alignment": [(0, 0), (0, 4)]}, r"alignment has \(0, 4\), outside 3 rows and 4 columns"),
        ({"alignment": [(-1, 0)]}, r"alignment has \(-1, 0\)"),
        ({"weights": batches(2, 5, 2, 3, 4)}, r"has 5 examples, .* first is \[layer\[:1\] for layer in weights\]\."),
        ({"weights": ()}, "empty tuple: the model returned no attention.*eager"),
        ({"weights": (WEIGHTS, None)}, r"weights\[1\] is None: this layer has no attention.*eager"),
        ({"weights": (batches(2, 1, 2, 3, 4),) * 2}, r"weights\[0\] is a tuple: generate\(\)"),
        ({"weights": [WEIGHTS, WEIGHTS[:, :3]]}, r"weights\[1\] has shape \(3, 3\), weights\[0\] has \(3, 4\)"),
        ({"queries": torch.zeros(3, 2)}, "queries and keys belong together"),
        ({"queries": torch.zeros(4, 2), "keys": torch.zeros(4, 2)}, "queries have 4 tokens, the weights have 3"),
        ({"queries": torch.zeros(2, 3, 2), "keys": torch.zeros(4, 2)}, "queries have 2 heads, the weights have 1"),
        ({"queries": torch.zeros(3, 2), "keys": torch.zeros(4, 5)}, "queries have d = 2, keys have d = 5"),
        ({"queries": torch.zeros(2), "keys": torch.zeros(4, 2)}, r"queries have 1 axes, shape \(2,\)"),
        ({"queries": torch.zeros(3, 2) / 0, "keys": torch.zeros(4, 2)}, "queries are not all finite"),
        ({"queries": torch.zeros(3, 2), "keys": torch.zeros(4, 2)},
         r"not give these weights: at layer 0, head 0, row 2, column 3 softmax\(q·k/√d\) is 0.250, the weight is 0.93"),
    ],
)
def test_bad_input_names_what_is_wrong(changes, message):
    with pytest.raises(ValueError, match=message):
        view(**changes)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_finite_says_where(bad):
    weights = softmax(2, 3, 3, 4)
    weights[1, 2, 0, 3] = bad
    with pytest.raises(ValueError, match=rf"{bad} at layer 1, head 2, row \(query\) 0, column \(key\) 3 \(1 such"):
        view(weights=weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": (3, 0)}, "row is 3, but there are 3: 0 to 2"),
        ({"cell": (0, 4)}, "column is 4, but there are 4: 0 to 3"),
        ({"cell": (-1, 0)}, "row is -1"),
        ({"cell": (1, 2, 3)}, "cell"),
        ({"layer": 1}, "layer is 1, but there are 1: 0 to 0"),
        ({"head": 2}, "head is 2, but there are 2: 0 to 1"),
        ({"view": "circle"}, "view"),
        ({"view": "neuron"}, "needs queries= and keys="),
        ({"heads": [0, 2]}, "head is 2, but there are 2: 0 to 1"),
    ],
)
def test_places_that_do_not_exist(changes, message):
    weights = softmax(2, 3, 4)
    with pytest.raises(traitlets.TraitError, match=message):
        view(weights=weights, **changes)
    there = view(weights=weights, cell=(1, 1))
    with pytest.raises(traitlets.TraitError, match=message):
        there.set_trait(*changes.popitem())
    assert (there.cell, there.layer, there.head, there.view) == ((1, 1), 0, 0, "matrix")


def test_rows_that_do_not_sum_to_one_warn_once():
    with pytest.warns(UserWarning, match="2 of 3 rows do not sum to one: row 0 .* sums to 0.5") as caught:
        view(weights=WEIGHTS * torch.tensor([[0.5], [1.0], [2.0]]))
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("factor", "warns"), [(0.985, False), (1.015, False), (0.975, True), (1.025, True)])
def test_a_sum_may_be_off_by_a_fiftieth(factor, warns):
    """As much as bfloat16 costs in a long row; a row that lost a key's weight is further off."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        view(weights=WEIGHTS * factor)
    assert [str(warning.message).split(":")[0] for warning in caught] == ["3 of 3 rows do not sum to one"] * warns


def test_fully_masked_rows_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert view(weights=WEIGHTS * torch.tensor([[0.0], [1.0], [1.0]])).weights[0, 0, 0].sum() == 0
        assert view(weights=torch.zeros(3, 4)).to_html()


# --- changed from Python ---


def test_observers_are_called():
    shown, seen = view(weights=softmax(2, 3, 3, 4)), []
    shown.observe(lambda change: seen.append((change.name, change.new)), ["cell", "layer", "head", "view"])
    shown.cell = [1, 2]
    shown.layer, shown.head, shown.view, shown.cell = 1, 2, "links", None
    assert seen == [("cell", (1, 2)), ("layer", 1), ("head", 2), ("view", "links"), ("cell", None)]


def test_the_head_is_one_of_those_drawn():
    shown = view(weights=softmax(4, 3, 4), heads=[3, 1, 1])
    assert (shown.heads, shown.head) == ([1, 3], 1)
    assert view(weights=softmax(4, 3, 4), heads=[3, 1], head=3).head == 3
    with pytest.raises(ValueError, match=r"head is 0, but the heads drawn together are \[1, 3\]; expected one of them"):
        view(weights=softmax(4, 3, 4), heads=[3, 1], head=0)
    shown.head = 3
    assert shown.heads == [1, 3]
    shown.heads = [0, 2]
    assert shown.head == 0
    shown.head = 3
    assert (shown.heads, shown.head) == ([], 3)


def computed(*shape, d=8, seed=3):
    """Queries, keys and what their softmax gives; the last key of the first row is masked."""
    generator = torch.Generator().manual_seed(seed)
    queries, keys = (torch.randn(*shape, size, d, generator=generator) for size in (3, 4))
    scores = queries @ keys.transpose(-1, -2) / d**0.5
    scores[..., 0, -1] = -torch.inf
    return {"weights": scores.softmax(-1), "queries": queries, "keys": keys}


@pytest.mark.parametrize("shape", [(), (5,), (2, 5)])
def test_queries_and_keys_that_explain_the_weights(shape):
    tensors = computed(*shape)
    shown = view(**tensors, view="neuron")
    sent = exported(shown)["_content"][""]["heads"]["0"]
    for name in ("queries", "keys"):
        values = np.frombuffer(base64.b64decode(sent[name]["float32"]), "<f4")
        np.testing.assert_array_equal(values, tensors[name].reshape(-1, *tensors[name].shape[-2:])[0].numpy().ravel())
    with pytest.raises(traitlets.TraitError):
        view(view="neuron")


# --- what an output holds ---


def test_output_has_a_live_view_and_what_lasts():
    shown = view(title="Signed")
    data, _ = shown._repr_mimebundle_()
    assert data[LIVE]["model_id"] == shown.model_id
    assert "signé → signed 0.930" in data["text/plain"]
    assert data["text/html"] == shown.to_html()
    assert repr(shown) == "AttentionView(layers=1, heads=1, queries=3, keys=4)"


def test_export_holds_the_tensor_in_16_bits():
    weights = softmax(2, 3, 3, 4)
    shown = view(weights=weights, head=2, cell=(0, 3), view="links", alignment=[(1, 1)])
    state = exported(shown)
    assert list(state["_content"][""]["heads"]) == [str(k) for k in range(6)]
    np.testing.assert_allclose(sent_weights(state), weights.numpy(), rtol=0, atol=7.7e-6)
    assert (state["head"], state["cell"], state["view"]) == (2, [0, 3], "links")
    assert state["_content"][""]["alignment"] == [[1, 1]]


def test_export_is_the_same_text_every_time():
    assert view().to_html() == view().to_html()
    assert view().to_html() != view(cell=(0, 0)).to_html()


def test_colour_scale_ends_at_one_or_says_where():
    assert exported(view())["_content"][""]["top"] == 1
    flat = torch.full((3, 4), 0.25)
    assert exported(view(weights=flat))["_content"][""]["top"] == 0.25


HOSTILE = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "'\"&\u2028\u2029", ""]


def test_tokens_cannot_leave_their_place():
    shown = view(columns=HOSTILE, title="</script><b>")
    text = shown.to_html()
    assert text.count("</script>") == 1
    assert "<img src=x" not in text
    assert "<!--" not in text
    assert "\u2028" not in text.split("<script>")[1]
    state = exported(shown)
    assert state["_content"][""]["columns"] == HOSTILE
    assert state["title"] == "</script><b>"


def test_still_picture_shows_the_matrix():
    shown = view(columns=["the", "signé 👩‍👩‍👧 " + "x" * 60, "", "שלום"])
    picture = re.search(r'<img alt="([^"]*)" src="data:image/png;base64,([^"]*)"', shown.to_html())
    assert "3 queries by 4 keys" in picture[1]
    image = Image.open(io.BytesIO(base64.b64decode(picture[2]))).convert("RGB")
    yellow = sum(1 for red, green, blue in image.get_flattened_data() if red > 180 and green > 160 and blue < 130)
    assert 26 * 26 * 1.5 < yellow < 26 * 26 * 3.5  # of twelve cells, the three strong ones


def test_a_large_tensor_is_cut_to_the_heads_near_the_one_shown(monkeypatch):
    monkeypatch.setattr(attention_view, "EXPORTED_AT_MOST", 12 * 4)
    weights = softmax(3, 4, 3, 4)
    shown = view(weights=weights, layer=1, head=2)
    state = exported(shown)
    there = np.isfinite(sent_weights(state)).all(axis=(2, 3))
    np.testing.assert_array_equal(there, [[False] * 4, [True] * 4, [False] * 4])
    np.testing.assert_allclose(sent_weights(state)[1], weights[1].numpy(), rtol=0, atol=7.7e-6)
    cut = state["_content"][""]["cut"]
    assert "4 of 12 heads, the nearest to layer 1, head 2: 144 weights are more than the 48" in cut
    assert "cut" not in exported(view())["_content"][""]
    assert shown.weights.shape == (3, 4, 3, 4)


def test_a_large_head_is_cut_to_its_first_tokens(monkeypatch):
    monkeypatch.setattr(attention_view, "EXPORTED_AT_MOST", 5)
    state = exported(view(cell=(2, 3), alignment=[(1, 1), (1, 2), (2, 2)], columns=["<pad>", *COLUMNS[1:]]))
    np.testing.assert_allclose(sent_weights(state), WEIGHTS[None, None, :2, :2], rtol=0, atol=7.7e-6)
    content = state["_content"][""]
    assert (content["rows"], content["columns"]) == (list(ROWS[:2]), ["<pad>", "agreement"])
    assert content["alignment"] == [[1, 1]]
    assert (state["cell"], content["padding"]) == (None, [[], [0]])
    assert "the first 2 queries and 2 keys" in content["cut"]


def test_live_a_head_is_sent_when_it_is_asked_for(monkeypatch):
    tensors = computed(2, 5)
    shown, sent = view(**tensors, layer=1, head=3), []
    assert list(shown.get_state("_content")["_content"][""]["heads"]) == ["8"]  # the others wait
    monkeypatch.setattr(shown, "send", lambda content, buffers: sent.append((content, buffers)))
    shown._handle_custom_msg({"head": 2, "part": ""}, [])
    (content, buffers), *none = sent
    assert (content, none) == ({"head": 2, "part": "", "arrays": ["weights", "queries", "keys"]}, [])
    for name, buffer in zip(content["arrays"], buffers, strict=True):
        np.testing.assert_array_equal(np.frombuffer(buffer, "<f4"), tensors[name][0, 2].numpy().ravel())
    shown._handle_custom_msg({"thumbnails": True, "part": ""}, [])
    pictures = np.frombuffer(sent[1][1][0], np.uint8).reshape(2, 5, 3, 4)
    np.testing.assert_array_equal(pictures, (tensors["weights"] * 256).clamp(max=255).to(torch.uint8).numpy())


def test_thumbnails_keep_thin_lines():
    pictures = thumbnails(np.eye(100, dtype=np.float32)[None, None, :90], 1.0, 48)
    assert pictures.shape == (1, 1, 48, 48)
    assert (pictures[0, 0].max(axis=1) == 255).all()
    assert (pictures[0, 0] == 255).mean() < 0.05


def test_padding_is_known_by_name():
    named = AttentionView(softmax(3, 3), ["a", "b", "[PAD]"])
    assert named._content[""]["padding"] == [[2], [2]]
    assert view(columns=["<pad>", *COLUMNS[1:]])._content[""]["padding"] == [[], [0]]


def bright(shown):
    """Where the still picture is as yellow as a weight of one."""
    image = np.array(Image.open(io.BytesIO(shown._still())).convert("RGB"))
    return (image[..., 0] > 180) & (image[..., 1] > 160) & (image[..., 2] < 130)


def test_still_picture_hides_padding():
    weights = np.eye(4)[[3, 3, 3, 3]]
    assert bright(AttentionView(weights, list("abcd"))).sum() > 4 * 20 * 20
    assert bright(AttentionView(weights, ["a", "b", "c", "[PAD]"])).sum() == 0


def test_still_picture_of_a_grid_has_every_head():
    weights = np.broadcast_to(np.eye(4)[[3, 3, 3, 3]], (2, 3, 4, 4))
    found = bright(AttentionView(weights, list("abcd"), view="grid"))
    assert (np.diff(np.flatnonzero(found.any(axis=0))) > 1).sum() == 2  # three heads, each with a bright last column
    assert (np.diff(np.flatnonzero(found.any(axis=1))) > 1).sum() == 1


def is_grey(shown):
    image = np.array(Image.open(io.BytesIO(shown._still())).convert("RGB")).astype(int)
    return (abs(image - GREY) < 3).all(axis=2)


def test_still_picture_of_a_grid_has_grey_padding():
    def grid(name):
        weights = np.broadcast_to(np.eye(4)[[3, 3, 3, 3]], (2, 3, 4, 4))
        return AttentionView(weights, ["a", "b", "c", name], view="grid")

    assert is_grey(grid("d")).sum() < 100  # edges of letters
    assert bright(grid("[PAD]")).sum() == 0
    assert is_grey(grid("[PAD]")).sum() == pytest.approx(6 * 96 * 96 * 7 / 16, rel=0.01)


def test_a_pixel_of_the_grid_is_padding_if_all_its_tokens_are():
    tokens = ["[PAD]"] * 3 + ["a"] * 93  # two tokens a pixel
    _, hidden = AttentionView(np.full((96, 96), 1 / 96), tokens, view="grid")._thumbnails()
    assert np.flatnonzero(hidden.all(axis=0)).tolist() == np.flatnonzero(hidden.all(axis=1)).tolist() == [0]


def test_a_record_is_drawn_as_its_four_parts():
    """Any object with these names; the links drawn may be others than its own."""
    record = SimpleNamespace(weights=softmax(2, 3), rows=["le", "chat"], columns=["the", "cat", "<eos>"],
                             alignment={(0, 0), (1, 1)})
    parts = AttentionView(record.weights, record.rows, record.columns, record.alignment)
    assert AttentionView(record).to_html() == parts.to_html()
    assert AttentionView(record, alignment=[(1, 2)]).alignment == ((1, 2),)
    assert AttentionView(record, alignment=np.array([(1, 2)])).alignment == ((1, 2),)
    assert AttentionView(record, alignment=()).alignment == ()


def test_a_record_with_further_words_and_weights_without_words_are_refused():
    record = SimpleNamespace(weights=softmax(2, 2), rows=["a", "b"], columns=["c", "d"], alignment=())
    with pytest.raises(ValueError, match="rows and columns of its own"):
        AttentionView(record, ["a", "b"])
    with pytest.raises(ValueError, match="rows are missing"):
        AttentionView(softmax(2, 2))


def test_sizes():
    """What a page carries for each view, beside its numbers: far below BertViz's megabytes."""
    tokens = [f"token{i}" for i in range(14)]
    shown = AttentionView(softmax(14, 14), tokens)
    assert len(shown._still()) < 10_000
    assert len(shown.to_html()) < 100_000


@pytest.mark.parametrize("kind", ["matrix", "grid"])
def test_twelve_layers_of_twelve_heads_are_a_fifteenth_of_bertviz(kind):
    shown = AttentionView(softmax(12, 12, 64, 64), [f"token{i}" for i in range(64)], view=kind)
    assert len(shown.to_html().encode()) < 26.5e6 / 15


def notebook_with(data, **metadata):
    output = {"output_type": "display_data", "data": data, "metadata": {LIVE: {}}}
    cells = [{"cell_type": "markdown", "source": "text"}, {"cell_type": "code", "outputs": [output]}]
    return {"cells": cells, "metadata": metadata}


def test_strip_keeps_what_lasts():
    data, _ = view()._repr_mimebundle_()
    notebook = notebook_with(dict(data), widgets={"state": {}}, kernelspec={"name": "python3"})
    assert strip_widget_state(notebook) is notebook
    output = notebook["cells"][1]["outputs"][0]
    assert output["data"] == {name: data[name] for name in ("text/plain", "text/html")}
    assert output["metadata"] == {}
    assert notebook["metadata"] == {"kernelspec": {"name": "python3"}}


def test_strip_leaves_other_outputs():
    bar = {LIVE: {"model_id": "1"}, "text/plain": "100 %"}
    notebook = notebook_with(dict(bar))
    notebook["cells"][1]["outputs"].append({"output_type": "stream", "text": "hello"})
    strip_widget_state(notebook)
    assert notebook["cells"][1]["outputs"][0]["data"] == bar
    assert notebook["cells"][1]["outputs"][1] == {"output_type": "stream", "text": "hello"}


@pytest.mark.parametrize(("arguments", "said"), [
    ({"weights": []}, r"empty list; expected \[T_q, T_k\]"),
    ({"rows": None}, "rows are missing: the tokens that the weights belong to"),
    ({"columns": 2}, "columns are 2; expected a list of tokens"),
    ({"columns": "zone"}, "columns are 'zone'; expected a list of tokens"),
    ({"alignment": [(0.5, 1)]}, r"alignment has \(0.5, 1\); expected pairs of whole numbers"),
    ({"alignment": [(0, 1, 1)]}, r"alignment has \(0, 1, 1\); expected pairs"),
    ({"weights": np.ma.masked_array(np.eye(2), np.eye(2) == 0)}, r"2 hidden values.*weights.filled\(0\)"),
    ({"weights": torch.eye(2).to_sparse()}, r"sparse tensor; give weights.to_dense\(\)"),
])
def test_what_cannot_be_shown_is_said(arguments, said):
    with pytest.raises(ValueError, match=said):
        AttentionView(**{"weights": np.eye(2), "rows": ["a", "b"], **arguments})


@pytest.mark.parametrize("head", [0.0, "0", True])
def test_a_head_is_a_whole_number(head):
    with pytest.raises(traitlets.TraitError, match="expected a whole number from 0 to 0"):
        AttentionView(np.eye(2), ["a", "b"], head=head)


def test_a_masked_array_that_hides_nothing_is_an_array():
    assert AttentionView(np.ma.masked_array(np.eye(2)), ["a", "b"]).weights.tolist() == [[[[1, 0], [0, 1]]]]


def test_of_a_very_long_token_only_what_is_seen_is_measured(monkeypatch):
    measured = []
    font = still.ImageFont.FreeTypeFont
    monkeypatch.setattr(font, "getlength", lambda self, text, *rest, real=font.getlength: measured.append(len(text))
                        or real(self, text, *rest))
    AttentionView(np.eye(2), ["x" * 5000, "b"]).to_html()
    assert max(measured) <= 200


# --- a film ---


def test_a_film_names_its_steps():
    film = AttentionView(softmax(2, 3, 4, 4), ["a", "b", "c", "d"], head=2, steps=[0, 50, 600])
    assert "layer 0, step 600" in film._in_words()


@pytest.mark.parametrize("steps", [[0, 50], range(6)])
def test_a_film_has_a_step_for_each_head(steps):
    with pytest.raises(ValueError, match="expected one step per head"):
        AttentionView(softmax(2, 3, 4, 4), ["a", "b", "c", "d"], steps=steps)
