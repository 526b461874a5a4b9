"""Slides and pages from executed notebooks: one HTML file each, which asks the network for nothing.

reveal.js and MathJax are taken from the installed packages sphinx-revealjs and sphinx-mathjax-offline and written
into the file. The cells' ``slideshow.slide_type`` and tags say what is shown: cells tagged ``solution`` or ``skip``
are left out of the slides, and so is the output of cells tagged ``exercise``: all that a stub has to say is that it is
not written yet. The code of cells tagged ``hide-input`` is left out of slides and pages.
"""

from copy import deepcopy
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from nbconvert import HTMLExporter, SlidesExporter
from nbformat import NotebookNode
from traitlets.config import Config

from .notebooks import CourseError, attach_images, tags

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
    raise CourseError(f"{ending} from the package {package} is missing. Type: pip install -c requirements.lock -e .")


def _script(package: str, ending: str) -> str:
    """A packaged script, made safe to stand inside a <script> element."""
    return packaged(package, ending).replace("</script", r"<\/script")


def deck(notebook: NotebookNode, folder: Path, title: str = "") -> str:
    """A reveal.js deck of 1280 x 720 with speaker view (key S).

    Args:
        notebook: an executed notebook; nothing is executed and it is not changed.
        folder: the notebook's folder, from which its pictures are read.
        title: of the browser's tab; default: the notebook's first heading.

    Returns:
        The HTML page.

    Raises:
        CourseError: if no cell is to be shown, or a package is missing.
    """
    shown = _prepared(notebook, folder, without={"skip"})
    shown.cells = [cell for cell in shown.cells if "solution" not in tags(cell) or cell.cell_type != "code"]
    for cell in shown.cells:
        if "exercise" in tags(cell) and cell.cell_type == "code":
            cell.outputs = []
    kinds = [cell.metadata.get("slideshow", {}).get("slide_type", "-") for cell in shown.cells]
    for cell, kind in zip(shown.cells, kinds, strict=True):
        if kind == "notes":                            # folded in the notebook, open in the speaker view
            cell.source = cell.source.replace("<details>", "<details open>", 1)
    if not set(kinds) - {"notes", "skip"}:
        raise CourseError("no cell of this notebook belongs on a slide: every slide type is 'skip' or 'notes'.")
    parts = {
        "reveal_css": packaged("sphinx-revealjs", "revealjs/dist/reveal.css"),
        "reveal_js": _script("sphinx-revealjs", "revealjs/dist/reveal.js"),
        "notes_js": _script("sphinx-revealjs", "revealjs/plugin/notes/notes.js"),
    }
    return _export(SlidesExporter, "deck", shown, folder, title, parts)


def page(notebook: NotebookNode, folder: Path, title: str = "") -> str:
    """The whole notebook as one page to read; arguments and errors as for `deck`."""
    return _export(HTMLExporter, "page", _prepared(notebook, folder, without=set()), folder, title, {})


def _prepared(notebook: NotebookNode, folder: Path, without: set[str]) -> NotebookNode:
    """A copy with its pictures inside, without the cells that carry one of these tags, and without widget state."""
    copy = deepcopy(notebook)
    copy.metadata.pop("widgets", None)
    copy.cells = [cell for cell in copy.cells if not tags(cell) & without]
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            attach_images(cell, folder)                # nbconvert embeds no file from outside the notebook's folder
        if "hide-input" in tags(cell):
            cell.metadata["transient"] = {"remove_source": True}
    return copy


def _export(exporter, template: str, notebook: NotebookNode, folder: Path, title: str, parts: dict) -> str:
    headings = (line for cell in notebook.cells for line in cell.source.splitlines() if line.startswith("# "))
    title = title or next(headings, "# Notebook")[2:].strip()
    exporter = exporter(
        template_name=template,
        extra_template_basedirs=[str(TEMPLATES)],
        extra_template_paths=[str(TEMPLATES)],
        embed_images=False,                # attach_images did; nbconvert would break <details>
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        config=Config({"NbConvertBase": {"display_data_priority": PRIORITY}}),
    )
    resources = {
        "metadata": {"name": title, "path": str(folder)},
        "course": {"mathjax": _script("sphinx-mathjax-offline", "mathjax/tex-svg-full.js"), **parts},
    }
    html, _ = exporter.from_notebook_node(notebook, resources)
    return html
