"""The Python side of the decoding tree: what it accepts and refuses, what is selected, what an output holds."""

import base64
import io
import math
import re
import warnings

import numpy as np
import pytest
import torch
import traitlets
from PIL import Image
from sample_tree import tree
from sample_widgets import exported

from course_utils.beam_tree import beam_tree
from course_utils.data.text import BOS, EOS, Vocab
from course_utils.decoding import beam_search, greedy, sample
from course_utils.seq2seq import Seq2Seq
from course_utils.widgets import DecodingTree
from course_utils.widgets.base import _lean, javascript, stylesheet

LIVE = "application/vnd.jupyter.widget-view+json"


def test_the_last_step_and_the_best_hypothesis_are_shown_first():
    view = DecodingTree(tree(), title="a tree")
    assert (view.step, view.node, view.title) == (4, 9, "a tree")
    assert view.path == ("b", "x", "<eos>")
    assert repr(view) == "DecodingTree(steps=4, nodes=14)"
    assert view.tree == tree()


@pytest.mark.parametrize(("given", "step", "node"), [
    ({"step": 0}, 0, 0), ({"step": 1}, 1, 1), ({"step": 2}, 2, 4), ({"step": 3}, 3, 9), ({"step": 4}, 4, 9),
    ({"node": 5}, 4, 5), ({"node": 5, "step": 2}, 2, 5), ({"node": 12, "step": 1}, 4, 12)])
def test_a_step_selects_who_leads_and_a_node_is_always_shown(given, step, node):
    view = DecodingTree(tree(), **given)
    assert (view.step, view.node) == (step, node)


def test_step_and_node_follow_each_other():
    view, seen = DecodingTree(tree()), []
    view.observe(lambda change: seen.append((change.name, change.new)), ["step", "node"])
    view.step = 2
    assert (view.step, view.node) == (2, 4)
    view.node = 6
    assert (view.step, view.path) == (2, ("a", "y"))
    view.step = 3                                      # what is selected is still shown
    assert view.node == 6
    view.node = 12
    assert (view.step, view.node) == (4, 12)
    view.step = 0
    assert (view.node, view.path) == (0, ())
    assert sorted(seen) == sorted([("step", 2), ("node", 4), ("node", 6), ("step", 3), ("node", 12), ("step", 4),
                                   ("step", 0), ("node", 0)])


def test_a_front_end_may_change_both_at_once():
    view = DecodingTree(tree())
    view.set_state({"step": 1, "node": 2})
    assert (view.step, view.node) == (1, 2)
    view.set_state({"node": 12, "step": 4})
    assert (view.step, view.node) == (4, 12)


def test_the_caller_keeps_the_tree():
    mine = tree()
    view = DecodingTree(mine)
    mine["nodes"][1]["word"] = "changed"
    assert view.tree == tree()


def test_nodes_may_come_without_samples():
    nodes = [{name: value for name, value in node.items() if name != "sampled"} for node in tree()["nodes"]]
    assert all(node["sampled"] == 0 for node in DecodingTree({"nodes": nodes, "best": 9}).tree["nodes"])


@pytest.mark.parametrize(("given", "kept", "said"), [
    ({"temperature": 0.8, "top_k": 5}, {"temperature": 0.8, "top_k": 5}, "Samples: temperature 0.8, top-k 5."),
    ({"top_p": 0.9, "top_k": None, "temperature": np.float32(1)}, {"temperature": 1.0, "top_p": 0.9},
     "Samples: temperature 1, top-p 0.9."), ({}, {}, None)])
def test_a_tree_says_how_its_samples_were_drawn(given, kept, said):
    view = DecodingTree(tree() | {"sampling": given})
    assert view.tree == tree() | {"sampling": kept}
    line = view._in_words().split("\n")[0]
    assert line.endswith(f"14 nodes. {said} Outputs by score:" if said else "14 nodes. Outputs by score:")
    notes = [text.get_text() for text in view.figure().axes[0].texts]
    assert f"×1, dots: sampled{said.replace('Samples', '')[:-1] if said else ''}" in notes
    assert "Samples" not in DecodingTree({"nodes": tree()["nodes"][:3], "best": 2, "sampling": None})._in_words()


# --- refused ---


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r'not \{"nodes".*beam_tree\(model, source, vocab\) makes one'),
        ({"nodes": []}, "the tree is not"),
        ({"nodes": [], "best": 0}, "with at least one node"),
        (tree(best=14), "best is 14, but there are 14 nodes: 0 to 13"),
        (tree(n3={"id": 7}), "node 3 has the id 7; ids count from 0"),
        (tree(n3={"parent": None}), "node 3 has the parent None; the first node has None, every other"),
        (tree(n0={"parent": 1}), "node 0 has the parent 1"),
        (tree(n3={"parent": 3}), "node 3 has the parent 3"),
        (tree(n3={"step": 2}), "node 3 is at step 2, but the path to it has 1 words"),
        (tree(n3={"log_prob": -math.inf}), "node 3 has log_prob -inf and score .*; expected finite numbers"),
        (tree() | {"sampling": "top_k"}, "the tree's sampling is 'top_k'; expected numbers named temperature, top_k"),
        (tree() | {"sampling": {"top-k": 5}}, "sampling is {'top-k': 5}; expected"),
        (tree() | {"sampling": {"top_k": "five"}}, "sampling is {'top_k': 'five'}; expected numbers"),
        (tree(n3={"score": math.nan}), "node 3 has log_prob .* and score nan"),
        ({"nodes": [{"id": 0, "parent": None}], "best": 0}, "node 0 has no word, log_prob, score, step, kept"),
    ],
)
def test_bad_trees_say_what_is_wrong(given, message):
    with pytest.raises(ValueError, match=message):
        DecodingTree(given)


@pytest.mark.parametrize(("changes", "message"), [
    ({"step": 5}, "step is 5, but there are 5: 0 to 4"), ({"step": -1}, "step is -1"),
    ({"node": 14}, "node is 14, but there are 14: 0 to 13"), ({"node": -1}, "node is -1")])
def test_places_that_do_not_exist(changes, message):
    with pytest.raises(traitlets.TraitError, match=message):
        DecodingTree(tree(), **changes)
    view = DecodingTree(tree())
    with pytest.raises(traitlets.TraitError, match=message):
        view.set_trait(*next(iter(changes.items())))
    assert (view.step, view.node) == (4, 9)


# --- what an output holds ---


def test_columns_are_ordered_by_probability_the_beam_first():
    nodes = exported(DecodingTree(tree()))["_content"]["nodes"]
    columns = [[n["id"] for n in sorted(nodes, key=lambda n: n["row"]) if n["step"] == step] for step in range(5)]
    assert columns == [[0], [1, 2, 3], [4, 5, 6, 7, 8], [9, 10, 11], [12, 13]]
    assert all(sorted(nodes[i]["row"] for i in column) == list(range(len(column))) for column in columns)


def test_export_holds_what_is_shown():
    state = exported(DecodingTree(tree(), step=2, node=5, title="a tree"))
    assert (state["step"], state["node"], state["title"], state["_content"]["best"]) == (2, 5, "a tree", 9)
    for sent, given in zip(state["_content"]["nodes"], tree()["nodes"], strict=True):
        assert sent["log_prob"] == pytest.approx(given["log_prob"], abs=1e-5)
        assert sent["score"] == pytest.approx(given["score"], abs=1e-5)
    assert DecodingTree(tree()).to_html() == DecodingTree(tree()).to_html()
    assert DecodingTree(tree()).to_html() != DecodingTree(tree(), step=1).to_html()


def test_in_words_the_outputs_stand_by_score():
    data, _ = DecodingTree(tree(), title="a tree")._repr_mimebundle_()
    assert LIVE in data
    assert data["text/plain"].split("\n") == [
        "a tree: beam search, 4 of 4 steps, 14 nodes. Outputs by score:",
        "-0.77 (log p -1.02) b x <eos> · best",
        "-1.77 (log p -2.66) a x y <eos> · greedy",
        "-3.45 (log p -4.61) c z <eos> · sampled ×1, not in the beam",
        "-3.95 (log p -4.61) c <eos> · sampled ×1, not in the beam",
    ]
    assert DecodingTree(tree(), step=2)._in_words().count("\n") == 1


def test_sampled_edges_are_dotted_in_print():
    drawn = [line for line in DecodingTree(tree()).figure().axes[0].lines if line.get_linestyle() == ":"]
    assert len(drawn) == sum(bool(node["sampled"]) and node["id"] != 0 for node in tree()["nodes"]) > 0


def test_what_max_len_cut_is_an_output_too():
    nodes = [node for node in tree()["nodes"] if node["step"] <= 2 and not node["sampled"] or not node["id"]]
    ids = {node["id"]: i for i, node in enumerate(nodes)}
    nodes = [node | {"id": ids[node["id"]], "parent": ids.get(node["parent"])} for node in nodes]
    words = DecodingTree({"nodes": nodes, "best": 3})._in_words()
    assert "b x · best" in words
    assert "a x · greedy" in words
    assert "a y" not in words


HOSTILE = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "'\"&\u2028$x^2$", "", "שלום 👩‍👩‍👧"]


def test_words_cannot_leave_their_place():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strange = {f"n{i}": {"word": word} for i, word in enumerate(HOSTILE, start=1)}
        view = DecodingTree(tree(**strange), title="</script><b>")
        text = view.to_html()
    assert text.count("</script>") == 1
    assert "<img src=x" not in text
    assert "<!--" not in text
    assert "\u2028" not in text.split("<script>")[1]
    state = exported(view)
    assert [node["word"] for node in state["_content"]["nodes"][1:6]] == HOSTILE


def still(view):
    picture = re.search(r'<img alt="([^"]*)" src="data:image/png;base64,([^"]*)"', view.to_html())
    return picture[1], Image.open(io.BytesIO(base64.b64decode(picture[2]))).convert("RGB")


def count(image, test):
    return sum(test(*pixel) for pixel in image.get_flattened_data())


def is_green(red, green, blue):
    return green > red + 50 and green > blue + 15


def is_red(red, green, blue):
    return red > green + 60 and red > blue + 60


def is_dark(red, green, blue):
    return red + green + blue < 500


def test_the_still_picture_shows_the_winner_and_the_greedy_path():
    words, image = still(DecodingTree(tree()))
    assert "b x &lt;eos&gt; · best" in words
    _, begun = still(DecodingTree(tree(), step=1))
    assert count(image, is_green) > 500
    assert count(begun, is_green) == 0                       # nobody has won yet
    assert count(image, is_red) > 2 * count(begun, is_red) > 20
    assert begun.size == image.size
    assert count(begun, is_dark) < count(image, is_dark)


def test_figure_for_print():
    figure = DecodingTree(tree()).figure()
    assert {"a", "b", "x", "<eos>", "−1.02"} <= {text.get_text() for text in figure.axes[0].texts}


def test_sizes():
    assert len(_lean(javascript("decoding_tree"))) + len(_lean(stylesheet("decoding_tree"))) < 35_000
    assert len(DecodingTree(tree())._still()) < 15_000


# --- with the decoders ---


def test_takes_what_beam_tree_gives():
    torch.manual_seed(0)
    vocab = Vocab([list("abcde")])
    model = Seq2Seq(len(vocab), len(vocab), 8, 8)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    source = torch.tensor([[4, 5, 6, EOS]])
    drawn = sample(model, source.expand(3, -1), generator=torch.Generator().manual_seed(0), max_len=6)
    view = DecodingTree(beam_tree(model, source, vocab, beam=3, max_len=6, samples=drawn))
    best = beam_search(model, source, beam=3, max_len=6)[0][0]
    assert list(view.path) == [vocab.words[i] for i in best.ids]
    line = view._in_words().split("\n")
    assert line[1].startswith(f"{best.score:.2f} (log p {best.log_prob:.2f}) {' '.join(view.path)}")
    greedy_words = [vocab.words[i] for i in greedy(model, source, 6)[0][0]]
    greedy_words = greedy_words[: greedy_words.index("<eos>") + 1] if "<eos>" in greedy_words else greedy_words
    assert sum(" ".join(greedy_words) in text and "greedy" in text for text in line) == 1
    assert max(node["sampled"] for node in view.tree["nodes"]) == 3


@pytest.mark.parametrize(("settings", "said"), [
    ({"temperature": 2.0}, "temperature 2"), ({"temperature": 2.0, "top_k": 2}, "temperature 2, top-k 2"),
    ({"top_p": 0.6}, "top-p 0.6")])
def test_samples_come_with_their_settings(settings, said):
    """From the decoder to the legend; the same settings draw and are said."""
    torch.manual_seed(0)
    vocab = Vocab([list("abcde")])
    model = Seq2Seq(len(vocab), len(vocab), 8, 8)
    source = torch.tensor([[4, 5, 6, EOS]])
    drawn = sample(model, source.expand(5, -1), **settings, generator=torch.Generator().manual_seed(0), max_len=4)
    view = DecodingTree(beam_tree(model, source, vocab, beam=2, max_len=4, samples=drawn, sampling=settings))
    assert f"Samples: {said}." in view._in_words()
    nodes = exported(view)["_content"]["nodes"]
    assert nodes[0]["sampled"] == 5
    ends = [node["sampled"] for node in nodes if node["finished"] or node["step"] == 4]
    assert sum(ends) == 5
    if "top_k" in settings:  # every sampled word is one of the two most probable
        memory, state = model.encode(source)
        likely = model.decode(torch.tensor([[BOS]]), state, memory)[0][0, -1].topk(2).indices
        first = {node["word"] for node in nodes if node["parent"] == 0 and node["sampled"]}
        assert first <= {vocab.words[k] for k in likely}
