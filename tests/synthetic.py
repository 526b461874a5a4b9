"""A small notebook with everything a lesson's slides may contain, made without executing anything."""

import base64
import io
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="700" height="260" viewBox="0 0 700 260">
<rect x="20" y="80" width="180" height="90" rx="8" fill="none" stroke="#B85C00" stroke-width="4"/>
<rect x="480" y="80" width="180" height="90" rx="8" fill="none" stroke="#6A1FB8" stroke-width="4"/>
<path d="M200 125H480" stroke="#1F6FB2" stroke-width="4"/>
<text x="110" y="132" text-anchor="middle" font-family="sans-serif" font-size="22">encoder</text>
<text x="570" y="132" text-anchor="middle" font-family="sans-serif" font-size="22">decoder</text></svg>"""
CODE = """scores = torch.tensor([13.0, 9.0, 9.0])         # (T_k,)
weights = torch.softmax(scores, dim=-1)         # sums to one
context = weights @ values                      # (d_v,)
print(weights.round(decimals=2))"""
HOSTILE = "<b>5</b> & $x$"  # tokens are data: neither markup nor a formula


def plot(width: float = 7, height: float = 4) -> str:
    """A line plot as base64 PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.plot([5, 12, 17, 22, 27, 32, 37], [88, 63, 42, 27, 19, 16, 14], marker="o")
    axes.set(xlabel="source length (tokens)", ylabel="BLEU")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)  # other tests set the course's style
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def text(kind: str, source: str, *tags: str) -> NotebookNode:
    """A text cell with this slide type."""
    return new_markdown_cell(source, metadata={"slideshow": {"slide_type": kind}, "tags": list(tags)})


def note(source: str) -> NotebookNode:
    """A speaker note, folded as in the lessons."""
    return text("notes", f"<details><summary>Speaker notes</summary>\n\n{source}\n\n</details>")


def code(kind: str, source: str, *tags: str, stdout: str = "", data: dict | None = None) -> NotebookNode:
    """An executed code cell with this slide type."""
    outputs = [new_output("stream", name="stdout", text=stdout)] if stdout else []
    if data:
        outputs.append(new_output("display_data", data=data))
    return new_code_cell(
        source, execution_count=1, outputs=outputs, metadata={"slideshow": {"slide_type": kind}, "tags": list(tags)}
    )


def lesson(folder: Path) -> NotebookNode:
    """The notebook; the picture it shows is written to the folder."""
    (folder.parent / "drawing.svg").write_text(DRAWING, encoding="utf-8")
    style = "width:300px;height:80px"
    widget = f'<div class="course-widget attention-view" tabindex="0" style="{style}">weights of $x$</div>'
    view = {
        "application/vnd.jupyter.widget-view+json": {"model_id": "abc", "version_major": 2, "version_minor": 0},
        "text/html": widget,
        "text/plain": "AttentionView",
    }
    return new_notebook(
        cells=[
            text("slide", "# Does the decoder have to remember everything?\n\nAfter this lesson you can **compute** "
                 "an attention step by hand, **explain** what the softmax does, and **measure** an alignment."),
            note("The point: one vector is too small. Usual wrong answer: *make it larger*. Two minutes."),
            text("skip", "A long text for the reader. UNSEEN"),
            text("slide", "## One attention step\n\n"
                 "$$c_i = \\sum_j \\alpha_{ij} h_j, \\qquad "
                 "\\alpha_{ij} = \\frac{\\exp(e_{ij})}{\\sum_k \\exp(e_{ik})}$$\n\n"
                 "- $e_{ij}$: score of target position $i$ and source position $j$\n- $h_j$: state of the encoder"),
            text("fragment", '<div class="alert alert-info"><b>Predict:</b> which weight is the largest?</div>'),
            code("fragment", CODE, stdout="tensor([0.9600, 0.0200, 0.0200])\n"),
            note("Let them guess first. Three minutes."),
            text("subslide", "## From source to target\n\n![Encoder and decoder, joined by one line](../drawing.svg)"),
            text("slide", "## BLEU falls with length"),
            code("-", "plot_bleu(by_length)", data={"image/png": plot(), "text/plain": "<Figure>"}),
            note("One idea: the curve. One minute."),
            text("subslide", "## The same as numbers\n\n| model | 4–9 | 10–14 | 35–40 |\n|---|---|---|---|\n"
                 "| without attention | 88 | 63 | 14 |\n| with attention | 97 | 95 | 88 |\n\n"
                 "> A question in a quotation."),
            code("subslide", "view", "hide-input", data=view),
            code("subslide", "def stub():\n    '''Returns nothing yet.'''\n    raise NotImplementedError", "exercise"),
            code("skip", "# solution UNSEEN\nprint(42)", "solution", stdout="42\n"),
            text("subslide", "## A full slide gives up a little size\n\nPicture and code still fit."),
            code("-", CODE, stdout="tensor([0.9600, 0.0200, 0.0200])\n"),
            code("-", "plot_bleu(by_length)", data={"image/png": plot(10, 7), "text/plain": "<Figure>"}),
            code("subslide", f"print({HOSTILE!r})", stdout=HOSTILE + "\n"),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
                  "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}}},
    )
