"""The course's folder, and the errors that a user can mend. It needs the standard library only."""

from pathlib import Path


class CourseError(Exception):
    """Something the user can mend; the message says how. The ``course`` command prints it without a traceback."""


def course_root() -> Path:
    """The folder that holds ``notebooks/``: beside this package, else the current folder.

    Raises:
        CourseError: if neither has a folder ``notebooks``.
    """
    for root in (Path(__file__).resolve().parents[1], Path.cwd()):
        if (root / "notebooks").is_dir():
            return root
    raise CourseError(f"no folder notebooks/ in {Path.cwd()}. Change to the folder that the course was cloned into.")
