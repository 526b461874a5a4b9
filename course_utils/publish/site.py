"""The course as a web site: a first page, every notebook as a page, the lessons' slides, the ledger, all linked.

Everything lies in one folder and asks no host for anything; the links are relative, so that the site opens from a disk
and from any path of a server. What single pages hold inside (MathJax, pictures), the site has once. Beside the pages
lies the course itself, as an archive.
"""

import base64
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from nbformat import NotebookNode

from ..course import is_further, numbered, write_file
from ..widgets import AttentionView, Translator
from . import archive
from .exporting import TEMPLATES, heading, headings, script
from .notebooks import read, slide_type, tags
from .pages import page
from .slides import deck

# what a newcomer types in the course's folder, as in README: on Linux and macOS, on Windows
INSTALL = ("python3 -m venv .venv && .venv/bin/pip install -c requirements.lock -e . && .venv/bin/course fetch && "
           ".venv/bin/course lab",
           r"py -3.13 -m venv .venv; .venv\Scripts\pip install -c requirements.lock -e .; .venv\Scripts\course fetch; "
           r".venv\Scripts\course lab")
MATHJAX = "assets/mathjax.js"
_FIGURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+\.svg)\)")
_EMBEDDED = re.compile(r'(<img\b[^>]*?\bsrc=")data:image/(png|jpeg);base64,([^"]+)"')     # in outputs
_FORMULA = re.compile(r"\$[^$]*\$")
_WORD = re.compile(r"[^\W\d_][^\W_]+")
_ROW = re.compile(r"^\|[^|\n]*\d[^|\n]*\|.*\|\s*([\d½]+)\s*\|\s*$", re.MULTILINE)      # of a timetable: part … minutes


class Entry:
    """A notebook and what the site says of it."""

    def __init__(self, path: Path):
        self.path, self.notebook = path, read(path)
        self.file, self.slides = f"{path.stem}.html", None if is_further(path) else f"{path.stem}.slides.html"
        self.number, self.further = path.name[:2], []
        name = heading(self.notebook)
        self.title = name.partition(" · ")[2] or name
        opening = [cell for cell in self.notebook.cells[:3] if cell.cell_type == "markdown"]
        self.question = next((name for cell in opening for name in headings(cell, 2)), "")
        self.minutes = _minutes(self.notebook)
        self.picture = ""                              # where it lies in the site

    @property
    def link(self) -> tuple[str, str]:
        """Address and title of its page."""
        return self.file, heading(self.notebook)

    def drawing(self) -> tuple[str, bytes] | None:
        """Kind and content of the notebook's first drawing; else of its first attention view's."""
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown" and (found := _FIGURE.search(cell.source)):
                return "svg", (self.path.parent / found[1]).read_bytes()
        for cell in self.notebook.cells:
            for output in cell.get("outputs", ()):
                if png := AttentionView.still_in(output.get("data", {}).get("text/html", "")):
                    return "png", png
        return None

    def index(self) -> list:
        """What the search looks through: the page, its title and words, and its headings with their places and words.

        The words of a section are each there once, those of its text and of the code that is shown.
        """
        sections = [[self.file, heading(self.notebook), set()]]
        for cell in self.notebook.cells:
            if tags(cell) & {"solution", "hide-input"} or slide_type(cell) == "notes":
                continue
            if not headings(cell, 1):
                sections += [[f"cell-id={cell.id}", name, set()] for order in (2, 3) for name in headings(cell, order)]
            sections[-1][2] |= _words(cell.source)
        (file, title, words), *rest = [[*section, " ".join(sorted(words))] for *section, words in sections]
        return [file, title, words, rest]


def _words(text: str) -> set[str]:
    """The words of a text without accents and formulas, in lower case, as site.js looks for them."""
    bare = "".join(letter for letter in unicodedata.normalize("NFD", _FORMULA.sub(" ", text))
                   if not unicodedata.combining(letter))
    return set(_WORD.findall(bare.lower()))


def _minutes(notebook: NotebookNode) -> int | None:
    """Of the timetable, or those that a further notebook names in its first cells; ``None`` where neither does."""
    opening = "\n".join(cell.source for cell in notebook.cells[:3])
    rows = [float(row.replace("½", ".5")) for row in _ROW.findall(opening)]
    said = re.search(r"(\d+) minutes", opening)
    return round(sum(rows)) if rows else int(said[1]) if said else None


class _Made:
    """The site's files so far, by name; each is told of when it is written."""

    def __init__(self, folder: Path, tell: Callable[[Path], None]):
        self.folder, self.tell, self.files = folder, tell, {}

    def add(self, name: str) -> None:
        """A file that lies there."""
        self.files[name] = self.folder / name
        self.tell(self.folder / name)

    def text(self, name: str, text: str) -> None:
        """A file of text; the pictures in a page become files of their own."""
        write_file(self.folder / name, _EMBEDDED.sub(self._apart, text) if name.endswith(".html") else text)
        self.add(name)

    def picture(self, kind: str, content: bytes) -> str:
        """Where a picture lies; the same one, on a page and on a slide, is written once."""
        name = f"assets/{hashlib.sha256(content).hexdigest()[:16]}.{kind}"
        if name not in self.files:
            write_file(self.folder / name, content)
            self.add(name)
        return name

    def drawing(self, file: Path) -> str:
        """Where a notebook's drawing lies."""
        return self.picture(file.suffix.removeprefix("."), file.read_bytes())

    def _apart(self, found: re.Match) -> str:
        return f'{found[1]}{self.picture(found[2], base64.b64decode(found[3]))}"'


def build(root: Path, folder: Path, ledger: str = "",
          tell: Callable[[Path], None] = lambda file: None) -> list[Path]:
    """Write the site from the notebooks as they are saved; nothing is executed.

    Args:
        root: the folder that holds ``notebooks/``.
        folder: where the site goes; made if it is missing. Files of an earlier site are replaced.
        ledger: the ledger of claims as HTML; without it the site has none.
        tell: called with each page's file when it is written.

    Returns:
        The files.

    Raises:
        CourseError: if a notebook is broken, or a picture or a package is missing.
    """
    everything = [Entry(path) for path in numbered(root)]
    lessons = [entry for entry in everything if not is_further(entry.path)]
    for lesson in lessons:
        lesson.further = [entry for entry in everything if is_further(entry.path) and entry.number == lesson.number]
    index = [entry.index() for entry in everything]
    made, taken = _Made(folder, tell), f"{archive.NAME}.zip"
    archive.write(root, folder / taken)
    made.add(taken)
    size = math.ceil((folder / taken).stat().st_size / 1e6)
    site = {"ledger": bool(ledger), "archive": taken, "megabytes": size}

    made.text(MATHJAX, script("sphinx-mathjax-offline", "mathjax/tex-svg-full.js"))
    made.text("assets/headings.js", f"const HEADINGS = {json.dumps(index, ensure_ascii=False)};\n")
    for name in ("site.css", "site.js"):
        made.text(f"assets/{name}", (TEMPLATES / "site" / name).read_text(encoding="utf-8"))
    for lesson in lessons:
        if drawing := lesson.drawing():
            lesson.picture = made.picture(*drawing)
    for entry in everything:
        before, after = _neighbours(entry, lessons)
        addresses = site | {"slides": entry.slides, "mathjax": MATHJAX}
        made.text(entry.file, page(entry.notebook, entry.path.parent, before, after, addresses, made.drawing))
        if entry.slides:
            made.text(entry.slides, deck(entry.notebook, entry.path.parent, MATHJAX, made.drawing))
    if ledger:
        made.text("ledger.html", _template("ledger").render(site=site, table=Markup(ledger)))
    translator = Markup(Translator().to_html())
    made.text("index.html", _template("index").render(site=site, lessons=lessons, everything=everything,
                                                      translator=translator, install=INSTALL))
    return list(made.files.values())


def _neighbours(entry: Entry, lessons: list[Entry]) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
    """Links before and after: of a lesson the lessons; of a further notebook its lesson, and what comes next."""
    place = next(i for i, lesson in enumerate(lessons) if lesson.number == entry.number)
    following = lessons[place + 1].link if place + 1 < len(lessons) else None
    if entry is lessons[place]:
        return lessons[place - 1].link if place else None, following
    row = lessons[place].further
    later = row[row.index(entry) + 1:]
    return lessons[place].link, later[0].link if later else following


@cache
def _template(name: str):
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    styles = (f"{part}.css" for part in ("shared/content", "page/page"))
    environment.globals["styles"] = Markup("\n".join((TEMPLATES / style).read_text(encoding="utf-8")
                                                     for style in styles))
    return environment.get_template(f"site/{name}.html.j2")
