"""Pages from executed notebooks: the whole notebook as one HTML file to read, solutions and notes folded."""

import re
from pathlib import Path

from nbconvert import HTMLExporter
from nbformat import NotebookNode

from .exporting import export, prepared
from .notebooks import slide_type

_SECTION = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)


def page(notebook: NotebookNode, folder: Path, title: str = "", before: tuple[str, str] | None = None,
         after: tuple[str, str] | None = None) -> str:
    """A notebook as a page with a table of contents.

    Args:
        notebook: an executed notebook; nothing is executed and it is not changed.
        folder: the notebook's folder, from which its pictures are read.
        title: of the browser's tab; default: the notebook's first heading.
        before: address and title of the page of the lesson before, to which this one links.
        after: the same of the lesson after it.

    Returns:
        The HTML page.

    Raises:
        CourseError: if a picture or a package is missing.
    """
    shown = prepared(notebook, folder)
    html = export(HTMLExporter, "page", shown, folder, title, {"before": before, "after": after})
    below_title, names = _subtitles(shown), []

    def name(match: re.Match) -> str:
        names.append(re.sub("<[^>]*>", "", match[1]))
        return f'<h2 id="section-{len(names)}">{match[1]}</h2>'

    html = _SECTION.sub(name, html)
    sections = list(enumerate(names, 1))[below_title:]
    links = "\n".join(f'<li><a href="#section-{number}">{name}</a></li>' for number, name in sections)
    return html.replace("<!-- contents -->", f"<ol>\n{links}\n</ol>", 1)


def _subtitles(notebook: NotebookNode) -> int:
    """How many headings of the second order stand in the title's cell."""
    title = next((cell for cell in notebook.cells if slide_type(cell) == "slide"), None)
    return len(re.findall(r"(?m)^## ", title.source)) if title and title.source.startswith("# ") else 0
