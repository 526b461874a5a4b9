"""The course's folder, files and environment, and errors that a user can fix. Needs only the standard library."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

SEED = "COURSE_SEED"                # environment: the seed that notebooks take in place of their own
PROGRESS = "COURSE_PROGRESS"        # environment: "on" lets checks write progress.jsonl
REHEARSAL = "COURSE_REHEARSAL"      # environment: "off" trains all; another name: the folder to keep trainings in
PRESENTED = "COURSE_PRESENTED"      # environment of live slides' kernel: the file that is shown
LOADED = "loaded as rehearsed"       # what is printed of a training that was
UNKEPT = "cannot be rehearsed"       # and, while one rehearses, of a training that is not kept
UNWRITTEN = "… "                     # how a card begins while its reader has written nothing: in pages it is left out
UNPREDICTED = "You predicted nothing. "     # before what was measured, on such a card
TOLD: list[Callable[[str, bool], None]] = []  # by live slides: hears a training's label, and whether it was loaded
KEEP_GOING = "COURSE_KEEP_GOING"    # environment: a claim that surprises shows its card and does not raise


class CourseError(Exception):
    """An error that the user can fix; the message says how. The ``course`` command prints it without a traceback."""


def course_root() -> Path:
    """The folder that holds ``notebooks/``: beside this package, else the current folder.

    Raises:
        CourseError: if neither has a folder ``notebooks``.
    """
    for root in (Path(__file__).resolve().parents[1], Path.cwd()):
        if (root / "notebooks").is_dir():
            return root
    raise CourseError(f"no folder notebooks/ in {Path.cwd()}. Change to the folder that the course was cloned into.")


def numbered(root: Path) -> list[Path]:
    """The course's notebooks in their order: each lesson, and after it its further ones (``notebooks/further/``)."""
    found = [*root.glob("notebooks/[0-9][0-9]_*.ipynb"), *root.glob("notebooks/further/[0-9][0-9]_*.ipynb")]
    return sorted(found, key=lambda path: (path.name[:2], is_further(path), path.name))


def with_claims(notebooks: Iterable[Path]) -> list[Path]:
    """These notebooks without 00, whose ledger only reads the others."""
    return [path for path in notebooks if not path.name.startswith("00")]


def is_further(path: Path) -> bool:
    """Whether a notebook is no step of a lesson's argument: it lies in ``notebooks/further/``."""
    return path.parent.name == "further"


def seed_asked_for() -> int | None:
    """The seed in the environment variable ``COURSE_SEED``; None if it is not set or empty.

    Raises:
        ValueError: if it is something else than a whole number.
    """
    given = os.environ.get(SEED, "").strip()
    try:
        return int(given) if given else None
    except ValueError:
        raise ValueError(f"{SEED} is {given!r}; expected a whole number such as 1.") from None


def cpu_facts(*names: str) -> list[str]:
    """The fields of ``/proc/cpuinfo`` with these names, for the first processor, in the file's order (Linux only).

    Args:
        names: as in ``/proc/cpuinfo``, for example ``"model name"``.
    """
    about = Path("/proc/cpuinfo")
    first = about.read_text(encoding="utf-8").split("\n\n")[0].splitlines() if about.is_file() else []
    facts = (line.partition(":") for line in first)
    return [fact.strip() for name, _, fact in facts if name.strip() in names]


@contextmanager
def replace_file(path: Path, mode: str = "w") -> Iterator[IO]:
    """Write a file atomically: it is either the old one or the new one, never half of it.

    Args:
        path: the file; its folder is made where it is missing.
        mode: ``"w"`` for text (UTF-8, lines end as on Linux), ``"wb"`` for bytes.

    Returns:
        For ``with``: an open file beside `path`, which replaces it unless an exception is raised.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")          # two processes may write the same file
    try:
        with part.open(mode, **({} if "b" in mode else {"encoding": "utf-8", "newline": "\n"})) as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_file(path: Path, content: str | bytes) -> None:
    """`replace_file` with all of its content at once."""
    with replace_file(path, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content)


def install(*extras: str) -> str:
    """The command that installs the course, with extras such as ``live``."""
    what = f'".[{",".join(extras)}]"' if extras else "."
    return f"python -m pip install -c requirements.lock -e {what}"


def reinstall(requirement: str) -> str:
    """The command that repairs a damaged package."""
    return f"{sys.executable} -m pip install --force-reinstall --no-deps {requirement}"


def stamp(path: Path) -> tuple[int, int, int]:
    """Changes with every version of a file that `replace_file` writes, however quickly they follow each other."""
    facts = path.stat()
    return facts.st_mtime_ns, facts.st_ino, facts.st_size
