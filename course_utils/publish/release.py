"""Assignments: a notebook's exercises in the source form of nbgrader and of otter-grader, with the checks as tests.

Neither package is needed to write them.
"""

import ast
from collections.abc import Callable
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from .exporting import heading
from .handouts import handout
from .notebooks import METADATA
from .tasks import Task, alone, tasks

NBGRADER_CONFIG = 'c = get_config()\n\nc.CourseDirectory.course_id = "attention"\n'
OTTER_CONFIG = "# ASSIGNMENT CONFIG\ninit_cell: true\ncheck_all_cell: false\nexport_cell: false"


def nbgrader(notebook: NotebookNode, folder: Path) -> NotebookNode | None:
    """The instructor's notebook for ``nbgrader generate_assignment``: a point for each exercise that has a check.

    Args:
        notebook: an executed notebook; it is not changed.
        folder: the notebook's folder, from which its pictures are read.

    Returns:
        The notebook, or ``None`` if no exercise has a check.

    Raises:
        CourseError: if a picture is missing.
    """
    def written(task: Task) -> list[NotebookNode]:
        name, shared = task.function, {"schema_version": 3, "task": False}
        answer = new_code_cell(_answer(task, "### BEGIN SOLUTION", "### END SOLUTION"), metadata={"nbgrader": shared | {
            "grade": False, "grade_id": name, "locked": False, "solution": True}})
        test = new_code_cell(f'solved("{name}")', metadata={"nbgrader": shared | {
            "grade": True, "grade_id": f"test_{name}", "locked": True, "points": 1, "solution": False}})
        return [*_texts(task), answer, test]

    made = _assignment(notebook, folder, written)
    if made:
        made.cells[1].metadata["nbgrader"] = {"schema_version": 3, "task": False, "grade": False, "grade_id": "setup",
                                              "locked": True, "solution": False}
    return made


def otter(notebook: NotebookNode, folder: Path) -> NotebookNode | None:
    """The instructor's notebook for ``otter assign``: a point for each exercise that has a check.

    Args, result and errors are those of `nbgrader`.
    """
    def written(task: Task) -> list[NotebookNode]:
        question = new_raw_cell(f"# BEGIN QUESTION\nname: {task.function}\npoints: 1")
        answer = new_code_cell(_answer(task, "# BEGIN SOLUTION", "# END SOLUTION"))
        test = new_code_cell(f'solved("{task.function}")')
        return [question, *_texts(task), *_between("SOLUTION", answer), *_between("TESTS", test),
                new_raw_cell("# END QUESTION")]

    made = _assignment(notebook, folder, written)
    if made:
        made.cells.insert(0, new_raw_cell(OTTER_CONFIG))
    return made


def _assignment(notebook: NotebookNode, folder: Path,
                written: Callable[[Task], list[NotebookNode]]) -> NotebookNode | None:
    """A title, what the exercises need, and each exercise as `written` writes it."""
    chosen = [task for task in tasks(notebook) if task.function]
    if not chosen:
        return None
    title = new_markdown_cell(f"# {heading(notebook)}: exercises\n\nRun the first cell. Each exercise ends with a "
                              "check, which says what is wrong and why; leave its line as it is.")
    setup, *cells = alone(notebook, chosen, written)
    setup.source += "\n\nfrom course_utils.exercises import solved"
    made = handout(new_notebook(cells=[title, setup, *cells], metadata=METADATA), folder)
    for cell in made.cells:
        cell.metadata = NotebookNode({"nbgrader": cell.metadata["nbgrader"]} if "nbgrader" in cell.metadata else {})
    return made


def _texts(task: Task) -> list[NotebookNode]:
    """What is asked, without the stub."""
    return [cell for cell in task.cells if cell is not task.stub]


def _answer(task: Task, begin: str, end: str) -> str:
    """The stub with the solution's lines between two marks."""
    stub, solution = (_function(cell.source, task.function) for cell in (task.stub, task.solution))
    lines, right = task.stub.source.splitlines(), task.solution.source.splitlines()
    body = right[solution.body[0].lineno - 1:solution.end_lineno]
    marked = [f"    {begin}", *body, f"    {end}"]
    return "\n".join([*lines[:stub.body[0].end_lineno], *marked, *lines[stub.end_lineno:]])


def _function(source: str, name: str) -> ast.FunctionDef:
    return next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name)


def _between(kind: str, cell: NotebookNode) -> list[NotebookNode]:
    return [new_raw_cell(f"# BEGIN {kind}"), cell, new_raw_cell(f"# END {kind}")]
