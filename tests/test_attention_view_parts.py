"""The Python side of the attention view with three attentions: of an encoder, of a decoder, and between them."""

import io

import numpy as np
import pytest
import torch
import traitlets
from PIL import Image
from sample_attentions import SOURCE, TARGET, Three, outputs, softmax, three, view
from sample_widgets import exported

from course_utils.widgets import AttentionView


def test_every_part_has_its_own_tokens():
    shown = view()
    assert shown.part == "cross"
    for part, rows, columns, links in [("encoder", SOURCE, SOURCE, ()), ("decoder", TARGET, TARGET, ()),
                                       ("cross", TARGET, SOURCE, ((1, 1),))]:
        shown.part = part
        assert (shown.rows, shown.columns, shown.alignment) == (rows, columns, links)
        np.testing.assert_array_equal(shown.weights, getattr(three(), part).numpy())
    assert repr(view(part="encoder")) == "AttentionView(part='encoder', layers=2, heads=3, queries=5, keys=5)"


@pytest.mark.parametrize("convert", [lambda one: one, lambda one: one[None],
                                     lambda one: tuple(layer[None] for layer in one)],
                         ids=["layers and heads", "batch of one", "as transformers returns them"])
def test_takes_what_models_return(convert):
    shown = view(weights=outputs(Three(*map(convert, three()))), part="encoder")
    np.testing.assert_array_equal(shown.weights, three().encoder.numpy())


def test_of_a_batch_one_example():
    batch = Three(*(torch.stack([one, other]) for one, other in zip(three(), three(), strict=True)))
    batch.cross[1] = three().cross.flip(-1)
    second = outputs(Three(*(one[1:] for one in batch)))
    np.testing.assert_array_equal(view(weights=second).weights, batch.cross[1].numpy())
    with pytest.raises(ValueError, match=r"encoder: the batch axis of the weights has 2 examples, .* weights\[0\]"):
        view(weights=outputs(batch))


@torch.no_grad()
def test_takes_the_output_of_a_transformers_encoder_decoder():
    transformers = pytest.importorskip("transformers")
    config = transformers.BartConfig(vocab_size=9, d_model=8, max_position_embeddings=8, encoder_layers=2,
                                     decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
                                     encoder_ffn_dim=8, decoder_ffn_dim=8, attn_implementation="eager")
    model = transformers.BartForConditionalGeneration(config).eval()
    read = {"input_ids": torch.tensor([[4, 5, 6, 7, 8]]), "decoder_input_ids": torch.tensor([[2, 4, 5, 6]])}
    returned = model(**read, output_attentions=True)
    shown = view(weights=returned)
    for shown.part in Three._fields:
        given = torch.cat(returned[f"{shown.part}_attentions"])
        np.testing.assert_array_equal(shown.weights, given.numpy())
    assert shown._content["decoder"]["causal"]
    with pytest.raises(ValueError, match="output's encoder_attentions are None. Load .*eager.* output_attentions=True"):
        view(weights=model(**read))


@pytest.mark.parametrize(("changes", "message"), [
    ({"columns": None}, "rows are the target's tokens and columns the source's; no columns were given"),
    ({"columns": SOURCE[:4]}, r"encoder: 4 tokens in columns, but the weights have 5 row \(query\)s"),
    ({"rows": TARGET[:3]}, r"decoder: 3 tokens in rows, but the weights have 4 row \(query\)s"),
    ({"weights": outputs(three()._replace(cross=softmax(2, 3, 4, 6)))}, r"cross: 5 tokens in columns, .* 6 column"),
    ({"weights": outputs(three()._replace(encoder=softmax(5)))}, r"encoder: weights have 1 axes, shape \(5,\)"),
    ({"alignment": [(4, 0)]}, r"cross: alignment has \(4, 0\), outside 4 rows and 5 columns"),
    ({"queries": softmax(2, 3, 4, 2), "keys": softmax(2, 3, 5, 2)}, "queries and keys belong to one attention, but th"),
])
def test_bad_input_names_the_part_and_both_sizes(changes, message):
    with pytest.raises(ValueError, match=message):
        view(**changes)


@pytest.mark.parametrize(("weights", "there"), [(outputs(three()), "encoder, decoder, cross"),
                                                (three().cross, "one attention only")])
def test_a_part_that_does_not_exist(weights, there):
    with pytest.raises(traitlets.TraitError, match=f"part is 'memory'; this view has {there}"):
        view(weights=weights, part="memory", causal=False)
    shown = view(weights=weights, causal=False)
    with pytest.raises(traitlets.TraitError, match=there):
        shown.part = "memory"
    assert shown.part == ("cross" if there.startswith("encoder") else "")


def test_a_cell_must_be_in_the_part():
    with pytest.raises(traitlets.TraitError, match="row is 4, but there are 4"):
        view(cell=(4, 0))
    assert view(cell=(4, 0), part="encoder").cell == (4, 0)


def test_another_part_keeps_the_query_and_observers_hear_it():
    shown, seen = view(cell=(3, 3), layer=1, head=2), []
    shown.observe(lambda change: seen.append((change.name, change.new)), ["part", "cell", "layer", "head"])
    shown.part = "decoder"
    assert shown.cell == (3, three().decoder[1, 2, 3].argmax()) != view(part="decoder", layer=1, head=2).cell
    shown.part = "encoder"  # other queries: the cell that a new view would select
    assert shown.cell == view(part="encoder", layer=1, head=2).cell
    assert [name for name, _ in seen] == ["cell", "part", "cell", "part"]  # who hears of the part finds its cell
    shown.part, shown.cell = "cross", (2, 2)
    assert (shown.cell, shown.layer, shown.head) == ((2, 2), 1, 2)
    shown.cell, shown.part = None, "decoder"
    assert shown.cell == view(part="decoder", layer=1, head=2).cell


def test_the_front_end_sends_a_part_with_its_cell():
    shown = view(cell=(3, 4))
    shown.set_state({"part": "encoder", "cell": list(shown._content["encoder"]["cell"])})
    assert (shown.part, shown.cell) == ("encoder", shown._content["encoder"]["cell"])


def test_a_part_with_fewer_layers_and_heads():
    weights = outputs(three()._replace(decoder=three(1, 2).decoder))
    shown = view(weights=weights, layer=1, head=2, heads=[1, 2])
    shown.part = "decoder"
    assert (shown.layer, shown.head, shown.heads) == (0, 0, [])
    assert shown.cell[0] == view(weights=weights, layer=1, head=2).cell[0]


# --- masked ---


PREVIOUS = np.eye(4)[[0, 0, 1, 2]]  # of a head without a mask that looks at the word before


def test_only_the_caller_knows_of_a_causal_mask():
    assert AttentionView(PREVIOUS, TARGET)._content[""]["causal"] is False
    shown = AttentionView(PREVIOUS, TARGET, causal=True)
    assert shown._content[""]["causal"] is True
    assert {part: content["causal"] for part, content in view(causal=False)._content.items()} == {
        "encoder": False, "decoder": False, "cross": False}


def test_weights_that_are_said_to_be_causal_do_not_look_ahead():
    weights = three().decoder.clone()
    weights[1, 2, 0] = torch.tensor([0.9, 0.1, 0, 0])
    with pytest.raises(ValueError, match="decoder: weights are 0.1.* at layer 1, head 2, row .* 0, .* causal=True"):
        view(weights=outputs(three()._replace(decoder=weights)))
    with pytest.raises(ValueError, match="causal=True, but there are 4 queries and 5 keys"):
        AttentionView(three().cross, TARGET, SOURCE, causal=True)


def test_the_still_picture_leaves_masked_cells_white():
    def light(shown):
        pixels = np.array(Image.open(io.BytesIO(shown._still())).convert("RGB")).astype(int)
        return (abs(pixels - [241, 242, 245]) < 3).all(axis=2).sum()

    assert light(view(part="decoder")) == pytest.approx(6 * 26 * 26, rel=0.02)
    assert light(view()) < 100  # edges of letters


def test_padding_of_the_target_is_known_by_name():
    content = view(rows=(*TARGET[:3], "<pad>"))._content
    assert {part: one["padding"] for part, one in content.items()} == {
        "encoder": [[], []], "decoder": [[3], [3]], "cross": [[3], []]}


def test_padding_of_the_source_is_that_of_encoder_and_cross():
    content = view(columns=(*SOURCE[:4], "<pad>"))._content
    assert {part: one["padding"] for part, one in content.items()} == {
        "encoder": [[4], [4]], "decoder": [[], []], "cross": [[], [4]]}


# --- what leaves the kernel ---


def test_live_a_head_of_each_part_is_sent_and_others_wait(monkeypatch):
    shown, sent = view(layer=1, head=1), []
    content = shown.get_state("_content")["_content"]
    assert {part: list(one["heads"]) for part, one in content.items()} == dict.fromkeys(Three._fields, ["4"])
    monkeypatch.setattr(shown, "send", lambda content, buffers: sent.append((content, buffers)))
    for part in Three._fields:
        shown._handle_custom_msg({"head": 2, "part": part}, [])
        answer, buffers = sent.pop()
        assert answer == {"head": 2, "part": part, "arrays": ["weights"]}
        np.testing.assert_array_equal(np.frombuffer(buffers[0], "<f4"), getattr(three(), part)[0, 2].numpy().ravel())


def test_an_exported_page_holds_all_three():
    state = exported(view(part="encoder"))
    assert state["part"] == "encoder"
    assert {part: sorted(one["heads"]) for part, one in state["_content"].items()} == dict.fromkeys(
        Three._fields, [str(k) for k in range(6)])


def test_the_parts_share_the_room_of_a_page(monkeypatch):
    from course_utils.widgets import attention_view

    monkeypatch.setattr(attention_view, "EXPORTED_AT_MOST", 3 * 20 * 3)
    content = exported(view(layer=1))["_content"]
    assert sorted(content["cross"]["heads"]) == ["3", "4", "5"]
    assert sorted(content["encoder"]["heads"]) == ["3", "4"]
    assert "2 of 6 heads, the nearest to layer 1, head 0: 150 weights are more than the 60" in content["encoder"]["cut"]


def test_in_words_it_says_which_attention():
    data, _ = view(part="decoder", title="One")._repr_mimebundle_()
    assert data["text/plain"].startswith("One: decoder self-attention weights, layer 0, head 0, 4 queries by 4 keys")
    assert "\nl' → l' 1.000" in data["text/plain"]
