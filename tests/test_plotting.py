"""The plots that notebooks share: what they show, what they say to those who do not see them, and that they close."""

import base64
import io
import math
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib.patches import Rectangle
from traitlets.config import Config

from course_utils import plotting
from course_utils.attention import AttentionRecord
from course_utils.plotting import (
    LiveCurve,
    attention_heatmap,
    in_notebook,
    plot_groups,
    show,
    smooth,
    use_course_style,
)

ROWS, COLUMNS = ["le", "chat"], ["the", "cat", "."]
WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])


@pytest.fixture(autouse=True)
def style_of_the_course():
    """Draw into memory, in the course's style; leave neither style nor figures behind."""
    plt.switch_backend("agg")
    with plt.rc_context():
        use_course_style()
        yield
    plt.close("all")


@pytest.fixture
def shell():
    """An IPython without a kernel, which displays as a notebook does."""
    yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    InteractiveShell.clear_instance()


class Display:
    """Stands in for ``IPython.display.display``: notes what is displayed anew and what is replaced."""

    def __init__(self):
        self.new, self.replaced = [], []

    def __call__(self, picture, raw, display_id):
        assert raw is display_id is True
        self.new.append(picture)
        return self

    def update(self, picture, raw):
        assert raw is True
        self.replaced.append(picture)


@pytest.fixture
def notebook(monkeypatch):
    """A notebook, and a clock to set by hand."""
    display = Display()
    display.now = 1000.0
    monkeypatch.setattr(plotting, "in_notebook", lambda: True)
    monkeypatch.setattr(plotting, "display", display)
    monkeypatch.setattr(plotting.time, "monotonic", lambda: display.now)
    return display


# --- show ----------------------------------------------------------------------------------------------------------

def picture_in(data):
    """The one picture of an output: its text alternative and its file."""
    pictures, parser = [], HTMLParser()
    parser.handle_starttag = lambda tag, attributes: pictures.append((tag, dict(attributes)))
    parser.feed(data["text/html"])
    (tag, attributes), = pictures
    assert tag == "img"
    return attributes["alt"], base64.b64decode(attributes["src"].removeprefix("data:image/png;base64,"))


def test_a_figure_is_shown_as_a_picture_with_its_text_alternative(shell):
    alt = 'le looks at "the" & <eos>, chat looks at cat'
    with capture_output() as captured:
        show(attention_heatmap(WEIGHTS, ROWS, COLUMNS), alt)
    output, = captured.outputs
    assert set(output.data) == {"text/html", "text/plain"}
    assert output.data["text/plain"] == alt
    assert output.metadata == {}
    shown_alt, png = picture_in(output.data)
    assert shown_alt == alt
    picture = plt.imread(io.BytesIO(png))
    assert picture.shape[2] == 4
    assert picture[..., :3].std() > 0.05, "the picture is empty"
    assert (picture[0, 0] == 1).all(), "the paper is white, not transparent"


def test_figures_are_closed_when_they_have_been_shown(shell):
    """More than 20 open ones make matplotlib warn, and warnings are errors here."""
    with capture_output() as captured:
        for _ in range(22):
            figure, _ = plt.subplots(figsize=(1, 1))
            show(figure, "nothing")
    assert len(captured.outputs) == 22
    assert plt.get_fignums() == []


# --- heatmap -------------------------------------------------------------------------------------------------------

def test_the_heatmap_shows_the_weights_and_names_rows_and_columns():
    figure = attention_heatmap(WEIGHTS.clone().requires_grad_(), ROWS, COLUMNS)
    axes = figure.axes[0]
    torch.testing.assert_close(torch.tensor(axes.images[0].get_array()), WEIGHTS)
    assert axes.images[0].get_clim() == (0, 1)
    assert [label.get_text() for label in axes.get_yticklabels()] == ROWS
    assert [label.get_text() for label in axes.get_xticklabels()] == COLUMNS
    assert {label.get_color() for label in axes.get_yticklabels()} == {plotting.QUERY}
    assert {label.get_color() for label in axes.get_xticklabels()} == {plotting.KEY}


@pytest.mark.parametrize(("alignment", "links"), [(None, 1), ((), 0), (np.array([(0, 0), (1, 1)]), 2)])
def test_the_heatmap_outlines_the_links_it_is_given_else_those_of_the_record(alignment, links):
    record = AttentionRecord(WEIGHTS, ROWS, COLUMNS, {(1, 2)})
    figure = attention_heatmap(record, alignment=alignment)
    assert len([p for p in figure.axes[0].patches if isinstance(p, Rectangle)]) == 2 * links


def test_the_heatmap_has_the_colours_of_the_course_whatever_the_style():
    with plt.rc_context({"image.cmap": "magma"}):
        assert attention_heatmap(WEIGHTS, ROWS, COLUMNS).axes[0].images[0].get_cmap().name == "cividis"


@pytest.mark.parametrize(("wrong", "message"), [
    (float("nan"), r"weights are nan at .*row \(query\) 1, column \(key\) 0.*expected finite numbers"),
    (-3.0, "weights are -3.0 at .*give what the softmax returns, not the scores")])
def test_the_heatmap_refuses_what_no_softmax_returns(wrong, message):
    weights = WEIGHTS.clone()
    weights[1, 0] = wrong
    with pytest.raises(ValueError, match=message):
        attention_heatmap(weights, ROWS, COLUMNS)


def test_the_heatmap_of_several_heads_asks_for_one():
    record = AttentionRecord(WEIGHTS.expand(2, 2, 2, 3), ROWS, COLUMNS)
    with pytest.raises(ValueError, match=r"Of several heads choose one: it.with_weights\(it.weights\[layer, head\]\)"):
        attention_heatmap(record)


def test_the_scale_says_what_the_colours_mean():
    assert attention_heatmap(WEIGHTS, ROWS, COLUMNS).axes[1].get_ylabel() == "weight"
    figure = attention_heatmap(WEIGHTS, ROWS, COLUMNS, label="share of the gradient")
    assert figure.axes[1].get_ylabel() == "share of the gradient"


def test_true_links_are_outlined_in_their_cell():
    figure = attention_heatmap(WEIGHTS, ROWS, COLUMNS, alignment=[(1, 2)])
    outlines = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert {(*p.get_xy(), p.get_width(), p.get_height(), p.get_fill()) for p in outlines} == {(1.5, 0.5, 1, 1, False)}


def test_the_heatmap_draws_where_it_is_told_to():
    figure, (left, right) = plt.subplots(1, 2)
    assert attention_heatmap(WEIGHTS.tolist(), ROWS, COLUMNS, axes=right) is figure
    assert not left.images
    assert right.images
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("words", [(COLUMNS, ROWS), (ROWS, ROWS), (ROWS, [*COLUMNS, "<eos>"])])
def test_words_that_do_not_fit_the_weights_are_refused(words):
    rows, columns = words
    with pytest.raises(ValueError, match=rf"shape \(2, 3\), but there are {len(rows)} rows and {len(columns)} columns"):
        attention_heatmap(WEIGHTS, rows, columns)
    assert plt.get_fignums() == []


# --- groups --------------------------------------------------------------------------------------------------------

RESULTS = {"attention": {"4-9": 60.0, "10-14": 58.0}, "plain": {"4-9": 50.0, "10-14": 20.0},
           "reversed": {"4-9": 40.0, "10-14": 58.0}}


def test_one_line_for_each_model_over_the_groups():
    axes = plot_groups(RESULTS, "words", "BLEU").axes[0]
    assert [list(line.get_ydata()) for line in axes.lines] == [[60, 58], [50, 20], [40, 58]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4-9", "10-14"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("words", "BLEU")
    assert axes.get_ylim()[0] == 0
    assert len({line.get_marker() for line in axes.lines}) == 3, "colour must not be the only difference"
    colours = {line.get_color() for line in axes.lines}
    assert len(colours) == 3
    assert not colours & {plotting.QUERY, plotting.KEY, plotting.VALUE}, "a model is not a query, key or value"


def test_the_same_model_can_have_the_same_colour_in_two_plots():
    lines = plot_groups(RESULTS, "words", "BLEU", colours=["#111111", "#222222"]).axes[0].lines
    assert [line.get_color() for line in lines][:2] == ["#111111", "#222222"][:len(RESULTS)]


def test_each_line_is_named_at_its_end_in_its_colour_and_names_do_not_overlap():
    figure = plot_groups(RESULTS, "words", "BLEU")
    figure.canvas.draw()
    axes = figure.axes[0]
    names = {text.get_text(): text for text in axes.texts}
    assert set(names) == set(RESULTS)
    for line, name in zip(axes.lines, RESULTS, strict=True):
        assert names[name].get_color() == line.get_color()
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 2 for below, above in zip(boxes, boxes[1:], strict=False))
    assert all(box.x1 <= figure.bbox.x1 and box.x0 >= axes.bbox.x1 for box in boxes), "names stand beside the plot"
    assert names["plain"].xy[1] == 20


# --- curves --------------------------------------------------------------------------------------------------------

def test_smoothing_is_a_mean_over_the_last_values():
    assert smooth([4, 2, 6]) == [4, 3, 4]
    assert smooth([104, *[4] * 24, 29])[-2:] == pytest.approx([8, 5])
    assert smooth([]) == []
    assert smooth([0.1] * 1000) == pytest.approx([0.1] * 1000)


def test_nothing_here_is_a_notebook(shell):
    assert not in_notebook()


def test_the_curve_is_silent_outside_a_notebook(shell, capsys):
    with capture_output() as captured:
        curve = LiveCurve("GRU", 10)
        curve.due = -math.inf
        curve.update([2.0, 1.0])
        curve.update([2.0, 1.0], final=True)
    assert captured.outputs == []
    assert captured.stdout == ""
    assert capsys.readouterr().out == ""


def test_the_curve_is_redrawn_in_place_now_and_then(notebook):
    cleared, losses = [], []
    curve = LiveCurve("GRU", 100, before_first=lambda: cleared.append(len(notebook.new)))
    for _ in range(14):                                                     # a second a step
        losses.append(2.0)
        notebook.now += 1
        curve.update(losses)
    assert len(notebook.new) == 1
    assert cleared == [0]                                                   # once, before it
    assert len(notebook.replaced) == 2
    curve.update([2.0, 1.0], final=True)
    assert len(notebook.replaced) == 3
    assert plt.get_fignums() == []


def test_a_curve_that_is_drawn_slowly_takes_a_thirtieth_of_the_time(notebook, monkeypatch):
    def slow(figure, alt):
        notebook.now += 1
        plt.close(figure)
        return {"text/plain": alt}

    monkeypatch.setattr(plotting, "_picture", slow)
    curve, drawn = LiveCurve("GRU", 100), []
    for _ in range(100):                                                    # a second a step
        notebook.now += 1
        curve.update([2.0])
        drawn.append(len(notebook.new) + len(notebook.replaced))
    assert [drawn.index(n) for n in (1, 2, 3)] == [3, 34, 65]


def test_the_last_curve_is_drawn_however_short_the_run_and_says_what_it_shows(notebook):
    LiveCurve("GRU", 2).update([2.5, 1.5], final=True)
    data, = notebook.new
    assert picture_in(data)[0] == "Training loss of GRU: from 2.50 to 2.00 nats per token in 2 steps."


def test_the_curve_has_a_logarithmic_axis_where_that_shows_every_loss(notebook, monkeypatch):
    axes = []
    monkeypatch.setattr(plotting, "_picture", lambda figure, alt: axes.append(figure.axes[0]) or {"text/plain": alt})
    for losses in ([5.0] * 25 + [0.1] * 25, [5.0, 4.8], [1.0, 0.0], [1.0, -1.0]):
        LiveCurve("GRU", 2).update(losses, final=True)
    assert [each.get_yscale() for each in axes] == ["log", "log", "linear", "linear"]
    for each, ticks in zip(axes, (["0.1", "0.3", "1", "3"], ["2.5", "3", "3.5", "4", "4.5", "5"]), strict=False):
        each.figure.draw_without_rendering()
        low, high = each.get_ylim()
        shown = [label.get_text() for label in each.get_yticklabels() if low <= label.get_position()[1] <= high]
        assert shown == ticks
    plt.close("all")


def test_a_run_without_a_step_has_no_curve(notebook):
    LiveCurve("GRU", 2).update([], final=True)
    assert notebook.new == []


def test_every_function_that_is_made_here_is_offered():
    made = {name for name, value in vars(plotting).items() if getattr(value, "__module__", "") == plotting.__name__}
    assert {name for name in made if not name.startswith("_")} <= {*plotting.__all__}


def test_bars_of_runs_are_means_with_a_dot_for_each_run_from_the_top():
    figure, axes = plt.subplots()
    plotting.bars_of_runs(axes, {"ours": [90, 91, 95], "theirs": [40]}, [plotting.GOOD, plotting.BAD], fontsize=17)
    assert [(bar.get_width(), round(bar.get_y())) for bar in axes.patches] == [(92, 0), (40, -1)]
    assert [dots.get_xydata().tolist() for dots in axes.lines] == [[[90, 0], [91, 0], [95, 0]], [[40, -1]]]
    assert [(mean.get_text(), mean.get_position(), mean.get_fontsize()) for mean in axes.texts] == [
        ("92", (97, 0), 17), ("40", (42, -1), 17)]
    assert [(*label.get_position(), label.get_text()) for label in axes.get_yticklabels()] == [
        (0, 0, "ours"), (0, -1, "theirs")]


def test_bars_of_runs_are_written_as_their_axis_wants_it():
    figure, axes = plt.subplots()
    plotting.bars_of_runs(axes, {"it": [0.25, 0.5]}, [plotting.GOOD], "{:.2f}", gap=0.25)
    mean, = axes.texts
    assert (mean.get_text(), mean.get_position()) == ("0.38", (0.75, 0))


def test_every_bar_has_its_colour():
    figure, axes = plt.subplots()
    with pytest.raises(ValueError, match="shorter"):
        plotting.bars_of_runs(axes, {"ours": [1], "theirs": [2]}, [plotting.GOOD])


def test_runs_are_drawn_as_mean_and_range_and_labels_stand_apart():
    figure = plotting.plot_runs({"a": {50: [1.0, 3.0], 200: [4.0, 6.0]}, "b": {50: [0.0, 0.0], 200: [5.0, 5.0]}},
                                "labels", "accuracy", guessing=2.0)
    axes, = figure.axes
    assert [line.get_ydata().tolist() for line in axes.lines[:2]] == [[2.0, 5.0], [0.0, 5.0]]
    assert axes.lines[2].get_ydata()[0] == 2.0
    heights = sorted(text.xy[1] for text in axes.texts)
    assert heights[1] - heights[0] > 0.2
    band = axes.collections[0].get_paths()[0].vertices
    assert {(50.0, 1.0), (50.0, 3.0), (200.0, 4.0), (200.0, 6.0)} <= set(map(tuple, band.tolist()))


def test_every_method_has_a_line_with_fewer_colours_than_methods():
    figure = plotting.plot_runs({name: {1: [i], 2: [i]} for i, name in enumerate("abcdefg")}, "labels", "accuracy",
                                colours=("red", "blue"))
    assert [line.get_color() for line in figure.axes[0].lines] == ["red", "blue"] * 3 + ["red"]
    with pytest.raises(ValueError, match="No method is given"):
        plotting.plot_runs({}, "labels", "accuracy")


@pytest.mark.parametrize("runs", [{50: [1.0, 3.0], 200: [4.0]}, {50: [], 200: []}, {}])
def test_runs_that_are_not_as_many_at_each_number_are_refused(runs):
    with pytest.raises(ValueError, match="a has {.* runs; expected as many at each number, at least one"):
        plotting.plot_runs({"a": runs}, "labels", "accuracy")
    assert plt.get_fignums() == []
