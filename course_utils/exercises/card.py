"""The card on which a verdict is shown."""

import re
from html import escape

from ..course import UNWRITTEN
from ..widgets.colours import BAD, GOOD, MUTED
from .engine import Verdict

MARKS = {"right": ("✓", GOOD), "slow": ("✓", MUTED), "unwritten": (UNWRITTEN.strip(), MUTED), "missed": ("≠", MUTED),
         "wrong": ("✗", BAD)}


class Card:
    """A verdict, and a second line on what runs from here on."""

    def __init__(self, verdict: Verdict, runs: str = ""):
        self.text = verdict.text + (f"\n{runs}" if runs else "")
        self.trace = verdict.trace
        self.mark, self.colour = MARKS[verdict.kind]

    def __repr__(self) -> str:
        return f"{self.mark} {self.text}" + (f"\n{self.trace.rstrip()}" if self.trace else "")

    def _repr_html_(self) -> str:
        text = re.sub("`([^`]+)`", r"<code>\1</code>", escape(self.text)).replace("\n", "<br>")
        text = re.sub(r"(?<![\w*])\*(\w[\w ]*)\*(?![\w*])", r"<em>\1</em>", text)
        trace = f'<pre style="margin:.3em 0 0">{escape(self.trace.rstrip())}</pre>' if self.trace else ""
        return (f'<div style="border-left:6px solid {self.colour};padding:.3em .8em">'
                f'<span style="background:{self.colour};color:#FFFFFF;padding:0 .4em;border-radius:.3em">'
                f"{self.mark}</span> {text}{trace}</div>")
