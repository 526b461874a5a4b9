"""Pages from executed notebooks: the whole notebook as one HTML file to read, solutions and notes folded."""

import re
from pathlib import Path

from nbconvert import HTMLExporter
from nbformat import NotebookNode

from .exporting import export, headings, prepared

BAR = re.compile(r"100%\|█+\| ")               # of a training that came to its end: the numbers beside it say so


def page(notebook: NotebookNode, folder: Path, title: str = "", before: tuple[str, str] | None = None,
         after: tuple[str, str] | None = None, site: dict | None = None) -> str:
    """A notebook as a page with a table of contents.

    Args:
        notebook: an executed notebook; nothing is executed and it is not changed.
        folder: the notebook's folder, from which its pictures are read.
        title: of the browser's tab; default: the notebook's first heading.
        before: address and title of the page of the lesson before, to which this one links.
        after: the same of the lesson after it.
        site: if the page is part of one, the addresses in it: ``mathjax``, ``slides`` of the notebook or ``None``, and
            whether there is a ``ledger``.

    Returns:
        The HTML page.

    Raises:
        CourseError: if a picture or a package is missing.
    """
    # a heading below the title, in the same cell, opens no section
    sections = [(cell.id, name) for cell in notebook.cells if not headings(cell, 1) for name in headings(cell, 2)]
    parts = {"sections": sections, "before": before, "after": after, "site": site}
    mathjax = site and site["mathjax"]
    shown = prepared(notebook, folder)
    for output in (output for cell in shown.cells for output in cell.get("outputs", ())):
        if output.output_type == "stream":
            output.text = BAR.sub("", output.text)
    return export(HTMLExporter, "page", shown, folder, title, parts, mathjax)
