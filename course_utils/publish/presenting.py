"""Live slides: a lesson in RISE, with a kernel in which cells that were passed over catch up by themselves."""

import json
import os
import re
import sys
from copy import deepcopy
from html import escape, unescape
from itertools import accumulate, takewhile
from pathlib import Path

from IPython.display import clear_output
from IPython.utils.capture import capture_output
from nbconvert.filters import markdown2html
from nbformat import NotebookNode
from nbformat.v4 import new_output

from ..course import KEEP_GOING, LOADED, PRESENTED, TOLD
from .handouts import without_asserts
from .notebooks import compares, place_pictures, read, show_clock, slide_type, tags, write

TRAINED = re.compile(r"(?:.*>)?([^>]+): 100%.*\[(\d+):(\d\d)")          # what `fit` left: label, minutes, seconds
NOTES = (".speaker-controls-notes :is(.jp-Cell-inputWrapper, button, svg) { display: none } "
         ".speaker-controls-notes p { margin: .4em 0 }")
OWN_SECTION = "own-section"
STYLES = [Path(__file__).parent / "templates" / name for name in ("shared/slides.css", "live.css")]


def prepare(notebook: NotebookNode, source: Path, folder: Path) -> Path:
    """Write a copy of a lesson to show, and a kernel for it, to a folder that a Jupyter server then serves.

    Args:
        notebook: an executed notebook; it is not changed. Its pictures are on the slides until a cell runs again, the
            results of code that is shown behind a click.
        source: the notebook's file, beside which its pictures are found.
        folder: an empty one.

    Returns:
        The copy. With ``folder / "jupyter"`` in ``JUPYTER_PATH`` it gets the kernel, in ``JUPYTER_CONFIG_PATH`` it is
        never saved.

    Raises:
        CourseError: if a picture is missing.
    """
    shown = deepcopy(notebook)
    show_clock(shown)
    for cell in shown.cells:
        _stage(cell, source.parent)
    shown.cells = _with_notes(shown.cells)
    style = "".join(file.read_text(encoding="utf-8") for file in STYLES)
    shown.metadata["rise"] = {"theme": "white", "scroll": True, "width": 1280, "height": 720, "center": False,
                              "transition": "none", "auto_select": "code", "slideNumber": "c/t",
                              "overlay": f"<style>{style}</style>"}
    copy = folder / source.name
    write(shown, copy)
    kernel = folder / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps({
        "display_name": "Python 3 (ipykernel)", "language": "python", "env": {PRESENTED: str(copy), KEEP_GOING: "1"},
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--ext", __name__],
    }), encoding="utf-8")
    # the notes' window opens the same file twice: saved by one, the others would ask what to do with it
    settings = folder / "jupyter" / "labconfig"
    settings.mkdir()
    (settings / "default_setting_overrides.json").write_text(json.dumps(
        {"@jupyterlab/docmanager-extension:plugin": {"autosave": False}}), encoding="utf-8")
    return copy


def _stage(cell: NotebookNode, folder: Path) -> None:
    """Change a cell to what is on its slide before it runs."""
    if cell.cell_type == "markdown":
        place_pictures(cell, folder)
        if slide_type(cell) == "notes":
            _as_output(cell)
    elif "exercise" in tags(cell):
        cell.outputs = []
    elif "solution" in tags(cell):                         # folded in the lesson; on its slide it is what is shown
        cell.metadata.get("jupyter", {}).pop("source_hidden", None)
    elif compares(cell):                                   # with a prediction that the class has yet to make
        cell.outputs = [_html('<p class="compares">Shift+Enter compares it with your prediction.</p>')]
    elif cell.outputs and "hide-input" not in tags(cell):
        cell.outputs = [_html(_covered(cell.outputs))]
    elif ("nbval-ignore-output" in tags(cell) and slide_type(cell) != "skip"    # a plot of what it measures
          and not cell.source.startswith("# plot; stored")):
        cell.outputs.append(_html('<div class="course-loaded">stored; Shift+Enter measures it here</div>'))
    if cell.cell_type == "code" and not tags(cell) & {"exercise", "solution"}:
        cell.source = without_asserts(cell.source)         # a number may be changed in class


def _with_notes(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The cells; behind a slide without notes, such as a solution's, once more those of the slide before it."""
    found, slide, last = [], [], []
    for cell in [*cells, None]:
        if cell is None or slide_type(cell) in ("slide", "subslide"):
            notes = [each for each in slide if slide_type(each) == "notes"]
            if slide and not notes:
                notes = deepcopy(last)
                for each in notes:
                    each.id = f"{slide[0].id}-{each.id}"[-64:]
                slide += notes
            found, slide, last = found + slide, [], notes
        slide.append(cell)
    return found


def _html(text: str) -> NotebookNode:
    return new_output("display_data", {"text/html": text})


def _covered(outputs: list[NotebookNode]) -> str:
    """What a shown cell gave at home, behind a click: before it runs in class nothing tells what comes out."""
    return f"<details><summary>the stored result</summary>{''.join(map(_as_html, outputs))}</details>"


def _as_html(output: NotebookNode) -> str:
    data = output.get("data", {})
    return data.get("text/html") or f"<pre>{escape(output.get('text') or data.get('text/plain', ''))}</pre>"


def _as_output(note: NotebookNode) -> None:
    """Turn a note into the output of an empty code cell: RISE shows a text cell's source above its text.

    The style is for the notes' window, where none of JupyterLab's holds.
    """
    source = re.sub("</?(?:details|summary)>", "", note.pop("source"))
    note.pop("attachments", None)
    html = f"<style>{NOTES}</style>{markdown2html(source)}"
    note.update(cell_type="code", source="", execution_count=None, outputs=[_html(html)])


class CatchUp:
    """Before a cell runs, all code cells above it that have not run yet do: those on no slide, and those passed over.

    A cell that was changed runs with all cells below it again, once they are needed. A cell tagged ``own-section``
    measures what no other section needs: after a jump it is passed over, unless the jump went into its section.

    What they show stays away: on the slide is the result of its own cell. A line counts them while they run, one says
    which training was not rehearsed, and a small one below the result that trainings were loaded. An error ends it, and
    is shown.
    """

    def __init__(self, shell, notebook: NotebookNode):
        self.shell, self.busy, self.loaded, self.ran, self.screen = shell, False, False, set(), None
        lines = [line for cell in notebook.cells for output in cell.get("outputs", [])
                 for line in re.split("[\r\n]", _as_html(output))]
        self.seconds = {unescape(found[1]): 60 * int(found[2]) + int(found[3])
                        for line in lines if (found := TRAINED.match(line))}
        code = [cell for cell in notebook.cells if cell.cell_type == "code" and slide_type(cell) != "notes"]
        self.cells = {cell.id: cell.source for cell in code}
        sections = list(accumulate(slide_type(cell) == "slide" for cell in notebook.cells))
        self.section = {cell.id: section for cell, section in zip(notebook.cells, sections, strict=True)}
        self.own = {cell.id for cell in code if OWN_SECTION in tags(cell)}
        self.first = code[0].id if code and slide_type(code[0]) == "skip" else None

    def begin(self) -> None:
        """Run the first cell while the page opens: its imports take longest. If it fails, whoever runs it sees why."""
        self.busy = True
        with capture_output():
            if self.first and self.shell.run_cell(self.cells[self.first]).success:
                self.ran.add(self.first)
        self.busy = False

    def __call__(self, info) -> None:
        """IPython calls it with what is about to run."""
        if self.busy or info.cell_id not in self.cells:
            return
        self.busy, self.loaded, self.screen = True, False, sys.stdout
        above = list(takewhile(info.cell_id.__ne__, self.cells))
        here = self.section.get(info.cell_id)
        behind = [id for id in above if id not in self.ran and (id not in self.own or self.section[id] == here)]
        try:
            for k, id in enumerate(behind, 1):
                clear_output(wait=True)
                print(f"first, what stands above: {k} of {len(behind)} cells")
                with capture_output() as shown:
                    done = self.shell.run_cell(self.cells[id])
                if not done.success:
                    print(shown.stdout)
                    return
                self.ran.add(id)
            if behind:
                clear_output()
            if self.cells[info.cell_id] != info.raw_cell:      # changed: what was made of it below is old
                self.cells[info.cell_id] = info.raw_cell
                self.ran.intersection_update(above)
            self.ran.add(info.cell_id)
        finally:
            self.busy, self.screen = False, None

    def after(self, _=None) -> None:
        """IPython calls it when a cell has run."""
        if self.loaded and not self.busy:
            self.loaded, told = False, f"What is trained above was {LOADED}."
            html = f'<div class="course-loaded">{told}</div>'
            self.shell.display_pub.publish({"text/html": html, "text/plain": told})

    def trains(self, label: str, loaded: bool) -> None:
        """`fit` calls it when it has loaded what was rehearsed, and before it trains what was not."""
        if loaded:
            self.loaded = self.loaded or self.screen is not None   # the cell's own training says so itself
            return
        about = f", about {max(1, self.seconds[label])} s" if label in self.seconds else ""
        print(f"{label}: not rehearsed, training now{about}", file=self.screen or sys.stdout)


def load_ipython_extension(shell) -> None:
    """Of the kernel that `prepare` describes."""
    catch_up = CatchUp(shell, read(Path(os.environ[PRESENTED])))
    shell.events.register("pre_run_cell", catch_up)
    shell.events.register("post_run_cell", catch_up.after)
    TOLD.append(catch_up.trains)
    catch_up.begin()
