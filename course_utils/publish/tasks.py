"""The exercises of a notebook: what is asked, the stub, the solution, and whether it is for class or for home."""

import ast
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from .code import binds, takes
from .notebooks import slide_type, tags

HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CHECKED = re.compile(r'^(\w+) = check\("\1"\)$', re.MULTILINE)


@dataclass(frozen=True)
class Task:
    """One exercise.

    Attributes:
        cells: its cells as a student gets them: text with a heading, stub, hints.
        stub: the cell to be written in, one of `cells`.
        solution: the solution's cell; ``None`` for a prediction.
    """

    cells: tuple[NotebookNode, ...]
    stub: NotebookNode
    solution: NotebookNode | None

    @property
    def title(self) -> str:
        """The nearest heading above it."""
        return HEADING.findall(self.cells[0].source)[-1]

    @property
    def at_home(self) -> bool:
        """Whether the heading says that it is for home."""
        return "at home" in self.title

    @property
    def function(self) -> str:
        """The name of the function that is checked; ``""`` if there is none."""
        found = CHECKED.search(self.stub.source)
        return found[1] if found and self.solution else ""


def tasks(notebook: NotebookNode) -> list[Task]:
    """The exercises of a notebook in their order; the cells are the notebook's own."""
    return [_task(notebook.cells, number) for number, cell in enumerate(notebook.cells)
            if cell.cell_type == "code" and "exercise" in tags(cell)]


def _task(cells: Sequence[NotebookNode], number: int) -> Task:
    first = next(k for k in range(number, -1, -1) if _is_text(cells[k]) and HEADING.search(cells[k].source))
    end = number + 1
    while end < len(cells) and _is_text(cells[end]) and (
            "solution" in tags(cells[end]) or not HEADING.search(cells[end].source)):  # the heading of its slide
        end += 1
    solved = end < len(cells) and "solution" in tags(cells[end])
    shown = tuple(cell for cell in cells[first:end if solved else number + 1]
                  if slide_type(cell) != "notes" and "solution" not in tags(cell))
    return Task(shown, cells[number], cells[end] if solved else None)


def _is_text(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown"


def given(name: str) -> NotebookNode:
    """A cell in which the course's function stands for an exercise that is not asked here."""
    return new_code_cell("from course_utils.exercises import EXERCISES\n\n"
                         f'{name} = EXERCISES["{name}"].solution      # another exercise; here the course\'s runs')


def alone(notebook: NotebookNode, chosen: Sequence[Task],
          written: Callable[[Task], Sequence[NotebookNode]] = lambda task: task.cells) -> list[NotebookNode]:
    """The cells of these exercises without the lesson: its imports, what their solutions call, and what is asked.

    Args:
        notebook: the lesson.
        chosen: some of its `tasks`.
        written: gives an exercise's cells, where they are not its `cells`.

    Returns:
        Copies without outputs. A function that another exercise asks for is given; one that the lesson defines comes
        with its cell.
    """
    asked = {task.function for task in tasks(notebook)}
    defined = definitions(notebook.cells)
    setup = next(cell for cell in notebook.cells if cell.cell_type == "code")
    cells, known = [setup], set()
    for task in chosen:
        for name in sorted(takes(task.solution.source) - known if task.solution else ()):
            if name in asked and name != task.function:
                cells.append(given(name))
            elif name in defined and not any(cell is defined[name] for cell in cells):
                cells.append(defined[name])
            known.add(name)
        cells += written(task)
        known.add(task.function)                           # what is written there runs on
    cells = deepcopy(cells)
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return cells


def definitions(cells: Sequence[NotebookNode]) -> dict[str, NotebookNode]:
    """The functions that a lesson defines and no exercise asks for, by name, each with its cell."""
    return {node.name: cell for cell in cells if cell.cell_type == "code" and not tags(cell) & {"solution", "exercise"}
            for node in ast.parse(cell.source).body if isinstance(node, ast.FunctionDef)}


def needed(cells: Sequence[NotebookNode], source: str) -> str:
    """The statements of these cells, in their order, without which this code does not run."""
    wanted, kept = set(takes(source)), []
    for cell in reversed([cell for cell in cells if cell.cell_type == "code"]):
        for node in reversed(ast.parse(cell.source).body):
            if binds(node) & wanted:
                kept.append(ast.get_source_segment(cell.source, node))
                wanted |= takes(kept[-1])
    return "\n".join(reversed(kept))


def only_defines(source: str) -> bool:
    """Whether a cell consists of functions and classes."""
    return all(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.parse(source).body)
