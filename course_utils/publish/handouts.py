"""The students' version of a notebook: one file without solutions and speaker notes, its pictures inside."""

from copy import deepcopy
from pathlib import Path

from nbformat import NotebookNode

from .notebooks import embed_pictures, slide_type, tags


def handout(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The students' version: no solutions, no speaker notes, outputs of exercises and checks cleared; the rest stays.

    Args:
        notebook: an executed notebook; it is not changed.
        folder: the notebook's folder. Pictures are read from there and put into the handout, which is one file.

    Raises:
        CourseError: if a picture is missing.
    """
    student = deepcopy(notebook)
    student.cells = [cell for cell in student.cells if "solution" not in tags(cell) and slide_type(cell) != "notes"]
    for cell in student.cells:
        if cell.cell_type == "markdown":
            embed_pictures(cell, folder)
        elif tags(cell) & {"exercise", "check"}:
            cell.outputs, cell.execution_count = [], None
    return student
