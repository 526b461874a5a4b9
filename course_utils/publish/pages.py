"""Pages from executed notebooks: one HTML file to read, with solutions and imports folded.

A page has no kernel and mostly a reader who is not the speaker. So speaker notes are hidden until a switch shows them,
and left out are the bars of finished trainings and what only says that the reader has written nothing yet.
"""

import re
from collections.abc import Callable
from pathlib import Path

from nbconvert import HTMLExporter
from nbformat import NotebookNode

from ..course import UNPREDICTED, UNWRITTEN
from .exporting import export, heading, headings, prepared
from .notebooks import embedded, slide_type

BAR = re.compile(r"^.*100%\|█+\|.*\n?", re.MULTILINE)      # of a training that came to its end
TIMETABLE = re.compile(r"^\|[^\n]*\bminutes[^\n]*\|\n(?:\|[^\n]*(?:\n|\Z))+", re.MULTILINE)    # for who teaches
IMPORTS = re.compile(r"(?:import|from) ")


def page(notebook: NotebookNode, folder: Path, before: tuple[str, str] | None = None,
         after: tuple[str, str] | None = None, site: dict | None = None,
         place: Callable[[Path], str] = embedded) -> str:
    """A notebook as a page with a table of contents.

    Args:
        notebook: an executed notebook; nothing is executed and it is not changed.
        folder: the notebook's folder, from which its pictures are read.
        before: address and title of the page of the lesson before, to which this one links.
        after: the same of the lesson after it.
        site: if the page is part of one, the addresses in it: ``mathjax``, ``slides`` of the notebook or ``None``, and
            whether there is a ``ledger``.
        place: gives the address of a picture's file; default: it stands in the page.

    Returns:
        The HTML page.

    Raises:
        CourseError: if a picture or a package is missing.
    """
    # a heading below the title, in the same cell, opens no section
    sections = [(cell.id, name) for cell in notebook.cells if not headings(cell, 1) for name in headings(cell, 2)]
    parts = {"sections": sections, "before": before, "after": after, "site": site}
    mathjax = site and site["mathjax"]
    shown = prepared(notebook, folder, place=place)
    for cell in shown.cells[:3]:
        if cell.cell_type == "markdown":
            cell.source = TIMETABLE.sub(r'<div class="notes">\n\n\g<0>\n</div>\n', cell.source)
    parts["notes"] = any(slide_type(cell) == "notes" for cell in shown.cells)
    for cell in shown.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_told, cell.outputs) if output]
    first = next((cell for cell in shown.cells if cell.cell_type == "code"), None)
    if first and IMPORTS.match(first.source):
        first.metadata["setup"] = True
    return export(HTMLExporter, "page", shown, folder, heading(notebook), parts, mathjax)


def _told(output: NotebookNode) -> NotebookNode | None:
    """The output as a page shows it; ``None`` if nothing is left of it."""
    if output.output_type == "stream":
        output.text = BAR.sub("", output.text)
        return output if output.text.strip() else None
    data = output.get("data", {})
    card = data.get("text/plain", "")
    if card.startswith(UNWRITTEN) and UNPREDICTED not in card:
        return None
    for kind in {"text/html", "text/plain"} & set(data):
        data[kind] = data[kind].replace(UNPREDICTED, "")
    return output
