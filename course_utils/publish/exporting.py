"""What slides and pages have in common: one HTML file from an executed notebook, which asks the network for nothing.

MathJax and reveal.js are taken from the installed packages sphinx-mathjax-offline and sphinx-revealjs and written into
the file. The code of cells tagged ``hide-input`` is left out.
"""

import re
from collections.abc import Callable, Set
from copy import deepcopy
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from bs4 import BeautifulSoup
from nbconvert.filters import markdown2html
from nbformat import NotebookNode
from traitlets.config import Config

from ..course import CourseError, install
from .notebooks import embedded, place_pictures, tags

NOTEBOOK = re.compile(r"\]\((?![a-z]+:)(?:[\w.-]+/)*(\w+)\.ipynb(#[^)\s]*)?\)")   # a link to one
TEMPLATES = Path(__file__).parent / "templates"
# A widget's HTML works without a kernel, its live view does not; PNG before text.
PRIORITY = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex", "text/plain"]


@cache
def packaged(package: str, ending: str) -> str:
    """The text of the file of an installed package whose path ends so.

    Raises:
        CourseError: if the package or the file is missing.
    """
    try:
        for file in distribution(package).files or []:
            if str(file).replace("\\", "/").endswith(ending):
                return Path(file.locate()).read_text(encoding="utf-8")
    except PackageNotFoundError:
        pass
    raise CourseError(f"{ending} from the package {package} is missing. Type: {install()}")


def script(package: str, ending: str) -> str:
    """A packaged script, made safe to stand inside a <script> element."""
    return packaged(package, ending).replace("</script", r"<\/script")


def prepared(notebook: NotebookNode, folder: Path, without: Set[str] = frozenset(),
             place: Callable[[Path], str] = embedded) -> NotebookNode:
    """A copy with its pictures placed, without the cells that carry one of these tags, and without widget state.

    Links to notebooks become links to their pages, which lie together in one folder.
    """
    copy = deepcopy(notebook)
    copy.metadata.pop("widgets", None)
    copy.cells = [cell for cell in copy.cells if not tags(cell) & without]
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            place_pictures(cell, folder, place)        # nbconvert embeds no file from outside the notebook's folder
            cell.source = NOTEBOOK.sub(r"](\1.html\2)", cell.source)
        if "hide-input" in tags(cell):
            cell.metadata["transient"] = {"remove_source": True}
    return copy


def heading(notebook: NotebookNode) -> str:
    """The notebook's title: its first heading of the first order."""
    return next((name for cell in notebook.cells for name in headings(cell, 1)), "Notebook")


def headings(cell: NotebookNode, order: int) -> list[str]:
    """The words of a text cell's headings of one order; formulas stay as they are written."""
    return list(_headings(cell.source).get(f"h{order}", ())) if cell.cell_type == "markdown" else []


@cache
def _headings(source: str) -> dict[str, list[str]]:
    """The words of a text's headings, order for order: a site asks for those of each cell five times."""
    html = BeautifulSoup(markdown2html(source), "html.parser")
    for link in html(class_="anchor-link"):
        link.decompose()
    found = {}
    for node in html(re.compile(r"^h\d$")):
        found.setdefault(node.name, []).append(node.get_text())
    return found


def export(exporter, template: str, notebook: NotebookNode, folder: Path, title: str, parts: dict,
           mathjax: str | None = None) -> str:
    """The HTML that one of nbconvert's exporters makes with a template of ours.

    Args:
        exporter: a class, ``HTMLExporter`` or ``SlidesExporter``.
        template: a folder in templates/.
        notebook: as `prepared` gives it.
        folder: the notebook's folder.
        title: of the browser's tab.
        parts: what the template inserts, as ``resources.course``.
        mathjax: its address; default: it stands in the file.
    """
    inside = f"<script>{script('sphinx-mathjax-offline', 'mathjax/tex-svg-full.js')}</script>" if not mathjax else ""
    resources = {
        "metadata": {"name": title, "path": str(folder)},
        "course": {"mathjax": inside or f'<script src="{mathjax}"></script>', **parts},
    }
    html, _ = _exporter(exporter, template).from_notebook_node(notebook, resources)
    return html


@cache
def _exporter(kind, template: str):
    """One exporter for all notebooks: each of its own would compile the templates again."""
    return kind(
        template_name=template,
        extra_template_basedirs=[str(TEMPLATES)],
        extra_template_paths=[str(TEMPLATES)],
        embed_images=False,                # place_pictures did; nbconvert would break <details>
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        filters={"clean_html": lambda html: html},      # of code, which Pygments escapes: a quarter of the time
        config=Config({"NbConvertBase": {"display_data_priority": PRIORITY}}),
    )
