"""The Python side of the softmax lab: what it computes, what it refuses and what it leaves behind."""

import base64
import io
import math
import re

import matplotlib
import numpy as np
import pytest
import torch
import traitlets
from PIL import Image
from sample_widgets import exported

from course_utils.widgets import SoftmaxLab
from course_utils.widgets.base import _lean, javascript, stylesheet

LIVE = "application/vnd.jupyter.widget-view+json"
SCORES = [1.2, 0.5, -0.5, 2.1]


def jacobian(inputs):
    return torch.autograd.functional.jacobian(lambda x: x.softmax(-1), torch.tensor(inputs, dtype=torch.float64))


# --- numbers ---


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("width", "temperature"), [(1, 1.0), (64, 1.0), (4, 0.5), (1024, 3.0)])
def test_weights_are_the_softmax_of_what_goes_in(width, temperature, scaled):
    lab = SoftmaxLab(SCORES, width=width, temperature=temperature, scaled=scaled)
    fed = torch.tensor(SCORES, dtype=torch.float64) * (1 if scaled else width**0.5) / temperature
    np.testing.assert_allclose(lab.inputs, fed, rtol=1e-12)
    np.testing.assert_allclose(lab.weights, fed.softmax(-1), rtol=1e-9)
    bits = torch.distributions.Categorical(logits=fed).entropy() / math.log(2)
    assert lab.entropy == pytest.approx(bits.item(), abs=1e-9)
    assert lab.gradient == pytest.approx(jacobian(lab.inputs).norm().item(), rel=1e-6, abs=1e-12)


def test_thinking_machines():
    lab = SoftmaxLab([14, 12], ["Thinking", "Machines"], width=64, scaled=True)
    np.testing.assert_allclose(lab.weights.round(2), [0.88, 0.12])
    lab.scaled = False
    np.testing.assert_allclose(lab.inputs, [112, 96])


def test_the_docstring_is_right():
    lab = SoftmaxLab([1.0, 0.5, -0.5], ["the", "animal", "street"])
    lab.width = 256
    assert lab.weights[0] > 0.99
    lab.scaled = True
    np.testing.assert_array_equal(lab.weights.round(3), [0.547, 0.331, 0.122])
    assert SoftmaxLab([2.0, 2.0]).gradient == pytest.approx(0.5)


def test_a_sharp_softmax_keeps_its_digits():
    """One minus a number near one would lose them: the gradient of two keys is 2 p (1 - p)."""
    lab = SoftmaxLab([40.0, 0.0])
    assert lab.gradient == pytest.approx(2 * math.exp(-40), rel=1e-9, abs=0)
    far = SoftmaxLab([100.0, -100.0], width=1024, temperature=0.1)
    assert (far.weights.tolist(), far.entropy, far.gradient) == ([1.0, 0.0], 0.0, 0.0)


def test_one_key_gets_everything():
    lab = SoftmaxLab([-3.0])
    assert (lab.weights.tolist(), lab.entropy, lab.gradient) == ([1.0], 0.0, 0.0)


# --- traits ---


@pytest.mark.parametrize("convert", [list, tuple, np.array, torch.tensor,
                                     lambda scores: torch.tensor(scores, requires_grad=True)])
def test_scores_of_any_kind(convert):
    lab = SoftmaxLab(convert([1.5, -0.25]))
    assert lab.scores == [1.5, -0.25]
    assert lab.labels == ["key 0", "key 1"]
    assert repr(lab) == "SoftmaxLab(keys=2, width=1, scaled=False)"


def test_traits_are_two_way_and_observed():
    lab, seen = SoftmaxLab(SCORES), []
    lab.observe(lambda change: seen.append((change.name, change.new)), ["scores", "width", "temperature", "scaled"])
    lab.scores = [0, 0, 0, 0]
    lab.set_state({"width": 16, "scaled": True, "temperature": 2})  # as the front end sends it
    assert sorted(seen, key=str) == sorted([("scores", [0] * 4), ("width", 16), ("scaled", True), ("temperature", 2)],
                                           key=str)
    np.testing.assert_allclose(lab.weights, [0.25] * 4)
    assert lab.entropy == pytest.approx(2)


@pytest.mark.parametrize(("scores", "said"), [
    ([], r"have shape \(0,\)"), ([0.0] * 11, r"have shape \(11,\)"), (torch.zeros(3, 4), r"have shape \(3, 4\)"),
    (np.ones((1, 2, 2)).tolist(), r"have shape \(1, 2, 2\)"), (torch.tensor(1.0), r"have shape \(\)"),
    (2.0, r"have shape \(\)"), ([[1.0], [1.0, 2.0]], r"are \[\[1.0\], \[1.0, 2.0\]\], with rows of different")])
def test_scores_that_are_not_one_query(scores, said):
    with pytest.raises(ValueError, match=f"^scores {said}.*expected one to 10 numbers, those of one query"):
        SoftmaxLab(scores)


@pytest.mark.parametrize(("changes", "message"), [
    ({"scores": [1.0]}, "scores has 1 entries, but there are 4 keys; give one for each key, or make another"),
    ({"labels": ["a"]}, "labels has 1 entries, but there are 4 keys"),
    ({"scores": [math.nan, 0, 0, 0]}, r"scores are \[nan, .*; expected finite numbers"),
    ({"temperature": 0}, "temperature is 0.0; expected a number greater than 0"),
    ({"temperature": -1.0}, "temperature is -1.0"),
    ({"temperature": math.inf}, "temperature is inf"),
    ({"width": 0}, "width is 0; expected a power of two from 1 to 1024"),
    ({"width": 48}, "width is 48"),
    ({"width": 2048}, "width is 2048"),
])
def test_values_that_do_not_fit(changes, message):
    lab = SoftmaxLab(SCORES)
    with pytest.raises(traitlets.TraitError, match=message):
        lab.set_trait(*next(iter(changes.items())))
    assert (lab.scores, lab.temperature, lab.width) == (SCORES, 1.0, 1)
    if "scores" not in changes:
        with pytest.raises(traitlets.TraitError, match=message):
            SoftmaxLab(SCORES, **changes)


# --- what an output holds ---


def test_output_has_a_live_view_and_what_lasts():
    lab = SoftmaxLab([14, 12], ["Thinking", "Machines"], width=64, scaled=True, title="by hand")
    data, _ = lab._repr_mimebundle_()
    assert data[LIVE]["model_id"] == lab.model_id
    assert data["text/plain"].splitlines() == [
        "by hand: width 64, divided by its root, temperature 1: entropy 0.53 bits (like 1.4 of 2 keys), "
        "gradient 0.2100",
        "Thinking: score 14.00, into the softmax 14.00, weight 0.8808",
        "Machines: score 12.00, into the softmax 12.00, weight 0.1192",
    ]
    assert exported(lab) == {"scores": [14, 12], "labels": ["Thinking", "Machines"], "width": 64, "scaled": True,
                             "temperature": 1, "title": "by hand"}
    assert lab.to_html() == SoftmaxLab([14, 12], ["Thinking", "Machines"], 1, 64, True, "by hand").to_html()


HOSTILE = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "$x^2$ 注意", ""]


def test_labels_cannot_leave_their_place():
    html = SoftmaxLab(SCORES, HOSTILE, title=HOSTILE[0]).to_html()
    assert html.count("</script>") == 1
    assert "<img src=x" not in html
    assert "<!--" not in html
    assert exported(SoftmaxLab(SCORES, HOSTILE))["labels"] == HOSTILE


def teal(lab):
    """How much of the still picture is covered by weight bars."""
    picture = re.search(r'src="data:image/png;base64,([^"]*)"', lab.to_html())[1]
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")).astype(int)
    return (abs(pixels - [0x0E, 0x74, 0x90]) < 12).all(axis=-1)


def test_the_still_picture_shows_the_weights():
    rows = teal(SoftmaxLab([0.0, math.log(3)])).sum(axis=1)
    upper, lower = np.split(rows, 2)
    assert lower.max() == pytest.approx(3 * upper.max(), rel=0.05)
    assert upper.max() > 20


def test_figure_does_not_depend_on_the_notebooks_style():
    before = SoftmaxLab(SCORES)._still()
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True}):
        assert SoftmaxLab(SCORES)._still() == before


def test_sizes():
    assert len(_lean(javascript("softmax_lab"))) + len(_lean(stylesheet("softmax_lab"))) < 25_000
    assert len(SoftmaxLab([0.3] * 10)._still()) < 20_000
