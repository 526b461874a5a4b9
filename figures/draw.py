"""Draw the course's figures: ``python figures/draw.py`` writes every SVG, ``--check`` only compares.

A lesson's figures stand in ``draw_NN.py``: functions that return a card, and ``ALT``, their alternative texts by
file name.
"""

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from style import svg  # noqa: E402


def alt_texts() -> dict[str, str]:
    """Alternative text of every figure of every lesson, by file name without its ending."""
    lessons = [importlib.import_module(file.stem) for file in sorted(HERE.glob("draw_*.py"))]
    return {name: alt for lesson in lessons for name, alt in lesson.ALT.items()}


def draw(name: str) -> str:
    """The SVG of figure ``NN_name``: what function ``name`` of ``draw_NN.py`` draws."""
    number, _, function = name.partition("_")
    lesson = importlib.import_module(f"draw_{number}")
    return svg(getattr(lesson, function)(), name, lesson.ALT[name])


def main(arguments: list[str] | None = None) -> int:
    """Write (or with ``--check`` compare) all figures, or those named; returns the number that differ."""
    parser = argparse.ArgumentParser(description="Draw the course's figures as SVG.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a figure, such as 02_bottleneck; default: all")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a committed figure differs")
    options = parser.parse_args(arguments)
    known = list(alt_texts())
    if unknown := set(options.names) - set(known):
        parser.error(f"no figure {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    changed = 0
    for name in options.names or known:
        file, drawing = HERE / f"{name}.svg", draw(name)
        same = file.exists() and file.read_text(encoding="utf-8") == drawing
        changed += not same
        if not options.check:
            file.write_text(drawing, encoding="utf-8", newline="\n")
        print(f"{name}: {'same' if same else 'differs' if options.check else 'drawn'}")
    return changed if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
