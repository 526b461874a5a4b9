"""Slides from an executed notebook: a reveal.js deck in one HTML file.

The cells' ``slideshow.slide_type`` and tags say what is shown. Left out are cells tagged ``skip`` and the output of
cells tagged ``exercise``: all that a stub has to say is that it is not written yet; what only compares a class's
predictions, of which a file has none; and what code asserts.
"""

from collections.abc import Callable
from pathlib import Path

from nbconvert import SlidesExporter
from nbformat import NotebookNode

from ..course import CourseError
from .exporting import export, heading, packaged, prepared, script
from .handouts import without_asserts
from .notebooks import compares, embedded, show_clock, slide_type, tags


def deck(notebook: NotebookNode, folder: Path, mathjax: str | None = None,
         place: Callable[[Path], str] = embedded) -> str:
    """A reveal.js deck of 1280 x 720 with speaker view (key S).

    Args:
        notebook: an executed notebook; nothing is executed and it is not changed.
        folder: the notebook's folder, from which its pictures are read.
        mathjax: its address, in a site; default: it stands in the file.
        place: gives the address of a picture's file; default: it stands in the file, too.

    Returns:
        The HTML page.

    Raises:
        CourseError: if no cell is to be shown, or a package is missing.
    """
    shown = prepared(notebook, folder, without={"skip"}, place=place)
    show_clock(shown)
    shown.cells = [cell for cell in shown.cells if not compares(cell)]
    for cell in shown.cells:
        if "exercise" in tags(cell) and cell.cell_type == "code":
            cell.outputs = []
        elif cell.cell_type == "code":
            cell.source = without_asserts(cell.source)
        if slide_type(cell) == "notes":                # folded in the notebook, open in the speaker view
            cell.source = cell.source.replace("<details>", "<details open>", 1)
    if not {slide_type(cell) for cell in shown.cells} - {"notes", "skip"}:
        raise CourseError("no cell of this notebook belongs on a slide: every slide type is 'skip' or 'notes'.")
    parts = {
        "reveal_css": packaged("sphinx-revealjs", "revealjs/dist/reveal.css"),
        "reveal_js": script("sphinx-revealjs", "revealjs/dist/reveal.js"),
        "notes_js": script("sphinx-revealjs", "revealjs/plugin/notes/notes.js"),
    }
    return export(SlidesExporter, "deck", shown, folder, heading(notebook), parts, mathjax)
