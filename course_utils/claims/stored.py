"""Stored measurements: what takes longer than a lesson, measured once by a command and kept with its provenance.

A script in ``experiments/`` calls `store`, a notebook draws what `stored` reads.
"""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from ..course import cpu_facts, write_file

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@dataclass(frozen=True)
class Stored:
    """One measurement, and what it takes to repeat it."""

    command: str
    """What to type, in the folder of the course."""
    seeds: list[int]
    version: str
    """The commit that was run; ends in ``+`` if files were changed since."""
    machine: str
    date: str
    """Of the measurement, ``YYYY-MM-DD``."""
    results: dict

    def __str__(self) -> str:
        seeds = "seed" if len(self.seeds) == 1 else "seeds"
        return (f"stored measurement of {self.date} ({seeds} {', '.join(map(str, self.seeds))}; {self.machine}; "
                f"version {self.version}); to repeat it: {self.command}")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f'<p style="font-size:.85em;margin:.3em 0">▣ {escape(str(self))}</p>'


def store(path: Path, command: str, seeds: Sequence[int], results: dict) -> Stored:
    """Write results to a JSON file atomically, with the commit, the machine and the date.

    Args:
        path: the file; usually the script's name with ``.json``.
        command: what repeats the measurement.
        seeds: those that were run.
        results: numbers, strings, lists and dicts with strings as keys.
    """
    measured = Stored(command, list(seeds), version(), machine(), datetime.now(UTC).date().isoformat(), results)
    write_file(path, json.dumps(asdict(measured), ensure_ascii=False, indent=1) + "\n")
    return measured


def stored(name: str, folder: Path = EXPERIMENTS) -> Stored:
    """Read the stored measurement ``experiments/NAME.json``.

    Raises:
        ValueError: if there is none of this name, or the file is not a stored measurement.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(file.stem for file in folder.glob("*.json"))) or "none"
        raise ValueError(f"no stored measurement {name!r} in {folder}; there is: {there}.")
    try:
        return Stored(**json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{path} is not a stored measurement ({problem}). Repeat it with the script "
                         f"experiments/{name}.py.") from problem


def version(*more: str) -> str:
    """The commit of the course that runs; ``unknown`` outside a clone.

    Args:
        more: folders whose changes count, beside the package and the scripts in ``experiments/``.

    Returns:
        The commit, short, with ``+`` where files differ from it.
    """
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=EXPERIMENTS.parent, capture_output=True, text=True,
                              check=True).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "course_utils", "experiments/*.py", *more)
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    """The processor and PyTorch's version, for example ``AMD EPYC, 2 cores, torch 2.13.0+cpu``."""
    from importlib.metadata import version as installed

    name, *_ = cpu_facts("model name") or [platform.machine()]
    return f"{name}, {os.cpu_count()} cores, torch {installed('torch')}"
