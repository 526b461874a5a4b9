"""What all widgets share: the same JavaScript live and exported, the encoding of numbers, the still picture.

A widget is shown twice in one output: as a live anywidget, which needs a kernel, and as ``text/html`` with the same
JavaScript inside, which needs nothing. The front end shows the first if it can. The HTML begins with a still
picture, which its script replaces: where scripts do not run (an untrusted notebook, a code-hosting site), the
picture stays.
"""

import base64
import hashlib
import html
import json
import re
import warnings
from numbers import Integral
from pathlib import Path

import anywidget
import numpy as np
import traitlets

from .colours import cividis
from .still import figure_picture

STATIC = Path(__file__).parent / "static"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# what a widget builds on beside the foundation: a widget that is shown inside it, or what several share
INSIDE = {"translator": ("attention_view", "sentence"), "two_translators": ("sentence",)}
PNG = "data:image/png;base64,"
STEPS = 65535  # an exported number is one of 65536 steps between 0 and the largest


def javascript(name: str) -> str:
    """The colour scale, the shared foundation and one widget's files, as one piece of JavaScript.

    The files are ``name.js`` and, where that would be long, ``name_*.js``; before them those it builds on.
    """
    paths = [STATIC / "foundation.js"]
    for one in (*INSIDE.get(name, ()), name):
        paths += [*sorted(STATIC.glob(f"{one}_*.js")), STATIC / f"{one}.js"]
    files = [path.read_text(encoding="utf-8") for path in paths]
    return "\n".join([f'const CIVIDIS = "{cividis().tobytes().hex()}";', *files])


def stylesheet(name: str) -> str:
    """The shared foundation's CSS and one widget's own, before it that of what it builds on."""
    parts = ("foundation", *INSIDE.get(name, ()), name)
    return "\n".join((STATIC / f"{part}.css").read_text(encoding="utf-8") for part in parts)


def script_json(value) -> str:
    """JSON that may stand inside a ``<script>``: nothing in it can end the script or a line of it."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def quantised(values: np.ndarray) -> dict:
    """Numbers from 0 up for an exported page: 16 bits each, off by at most ``peak / 131070``."""
    peak = float(values.max()) or 1.0
    steps = np.rint(values.astype(np.float64) / peak * STEPS).astype("<u2")
    return {"peak": peak, "uint16": base64.b64encode(steps.tobytes()).decode("ascii")}


def float32(values: np.ndarray) -> dict:
    """Numbers of either sign for an exported page, as they are."""
    return {"float32": base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")}


def _lean(source: str) -> str:
    """JavaScript or CSS without indentation and comment lines: the readable text is in this folder."""
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def check_index(name: str, index: int, size: int) -> int:
    """The index, if it exists; otherwise a ``TraitError`` that says how many there are."""
    if not isinstance(index, Integral) or isinstance(index, bool):
        raise traitlets.TraitError(f"{name} is {index!r:.40}; expected a whole number from 0 to {size - 1}.")
    if not 0 <= index < size:
        raise traitlets.TraitError(f"{name} is {index}, but there are {size}: 0 to {size - 1}.")
    return int(index)


def check_text(text: str, longest: int) -> str:
    """The text, if it is not longer; otherwise a ``TraitError`` that says how long it is."""
    if len(text) > longest:
        raise traitlets.TraitError(f"text has {len(text)} characters; expected at most {longest}. Give a part of it.")
    return text


def check_cell(cell: tuple[int, int], sizes: tuple[int, int]) -> tuple[int, int]:
    """The query and the key, if both exist; otherwise the ``TraitError`` of `check_index`."""
    for name, index, size in zip(("cell[0] (query)", "cell[1] (key)"), cell, sizes, strict=True):
        check_index(name, index, size)
    return cell


def well_formed(value):
    """The value, with lone surrogates in its texts replaced by U+FFFD: UTF-8 has none, so nothing could be sent."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {well_formed(key): well_formed(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(well_formed, value))
    return value


class CourseWidget(anywidget.AnyWidget):
    """An anywidget that also leaves a copy which works without a kernel.

    A subclass that is shown names its JavaScript class and files in ``_widget`` and ``_files``, and in ``_names`` the
    traits that the JavaScript draws. It provides ``_in_words`` (a text), and ``figure`` (a matplotlib figure for print)
    or another ``_still`` (a PNG).
    """

    _widget: str
    _files: str
    _names: tuple[str, ...]

    def __init_subclass__(cls, **kwargs):
        if "_files" in vars(cls):  # not in the class that a widget makes of its own for its traits
            cls._esm = f"{javascript(cls._files)}\nexport default liveHost({cls._widget}, {list(cls._names)!r});\n"
            cls._css = stylesheet(cls._files)
        super().__init_subclass__(**kwargs)

    def __setattr__(self, name, value):
        super().__setattr__(name, well_formed(value) if self.has_trait(name) else value)

    def add_traits(self, **traits):
        """As in ipywidgets, without the deprecation warning that ipywidgets 8.1.2 causes here."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            super().add_traits(**traits)

    def to_html(self) -> str:
        """Return the widget as it is now, as HTML that needs no kernel, no network and no other file.

        Returns:
            An HTML fragment with its own script and style. The same state always gives the same text.
        """
        state = script_json(self._export_state())
        key = f"{self._files}-{hashlib.sha256(state.encode()).hexdigest()[:12]}"
        code, css = _lean(javascript(self._files)), json.dumps(_lean(stylesheet(self._files)))
        return (
            f'<div data-still="{key}">{self._still_html()}</div>\n<script>(() => {{\n{code}\n'
            f'document.head.append(Object.assign(document.createElement("style"), {{textContent: {css}}}));\n'
            f'exportHost({self._widget}, "{key}", {state});\n}})();</script>'
        )

    @classmethod
    def still_in(cls, page: str) -> bytes | None:
        """The still picture (PNG) of the first widget of this class in HTML that `to_html` has made; else ``None``."""
        # what to_html writes around _still_html's picture: <div data-still="KEY"><img alt="WORDS" src="PICTURE">
        found = re.search(rf'<div data-still="{cls._files}-\w+"><img alt="[^"]*" src="{PNG}([^"]+)">', page)
        return base64.b64decode(found[1]) if found else None

    def _export_state(self) -> dict:
        """What the JavaScript draws, as JSON."""
        return {name: getattr(self, name) for name in self._names}

    def _still(self) -> bytes:
        return figure_picture(self.figure)

    @property
    def _lead(self) -> str:
        """What a text begins with: the title, if there is one."""
        return f"{self.title}: " if self.title else ""

    def _still_html(self) -> str:
        """What is shown where scripts do not run: the still picture, with its description as alternative text."""
        picture = base64.b64encode(self._still()).decode("ascii")
        words = html.escape(self._in_words(), quote=True)
        return f'<img alt="{words}" src="{PNG}{picture}">'

    def _repr_mimebundle_(self, **kwargs):
        live, metadata = super()._repr_mimebundle_(**kwargs)
        return {**live, "text/plain": self._in_words(), "text/html": self.to_html()}, metadata


def strip_widget_state(notebook):
    """Remove from an executed notebook what would show "Loading widget..." for ever when it is reopened.

    An output that also has ``text/html`` loses its live view, which points to a kernel that is gone, and so shows
    the copy that needs none. The saved widget state goes too. Other outputs stay as they are.

    Args:
        notebook: a notebook as ``nbformat`` reads it (or the same as plain dictionaries). It is changed in place.

    Returns:
        The same notebook.
    """
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output["data"].pop(WIDGET_VIEW, None)
                output.get("metadata", {}).pop(WIDGET_VIEW, None)
    return notebook
