"""What students get of a notebook: the handout, the blank one for class, the home exercises, the solutions, a sheet."""

import ast
import re
from collections.abc import Sequence
from copy import deepcopy
from itertools import takewhile
from pathlib import Path

from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from .code import takes
from .exporting import export, heading, prepared
from .notebooks import METADATA, place_pictures, slide_type, tags
from .tasks import Task, alone, definitions, given, needed, only_defines, tasks

RESULT = re.compile(r"^(?:\*\*(?:What did we see\?|How firm is this\?)\*\*|### What we measured)")
PREDICT, ASKS = re.compile(r"\*\*Predict\b"), re.compile(r"\*\*(?:Predict|Decide)\b")
TITLE = re.compile(r"### [^\n]*[^\n?](\n+|$)")                        # no question
QUIZ = re.compile(r"^Quiz\(", re.MULTILINE)
ABOUT_QUIZ = re.compile(r"The questions and their answers are|The quiz at the end has|Click on a choice")
LINKS = re.compile(r"### (?:Further|What we measured)")
NEIGHBOUR = re.compile(r"(?m)(^- )?\[([^\]\n]+)\]\(([\w./]+)\.ipynb\)")     # a notebook that is not in a handout
LINES = "\n\n" + '<hr style="margin:2.4em 0 0;border:0;border-top:1px solid #888888">' * 2
AXES = (                                                          # of a percentage, to draw a curve in
    '\n\n<div><svg viewBox="0 0 640 200" style="max-width:640px;font:14px sans-serif">'
    '<path d="M40 15V185H630M40 100H630M40 15H630" fill="none" stroke="#888888"/>'
    '<text x="8" y="190">0</text><text x="8" y="105">50</text><text x="8" y="20">100</text></svg></div>')


def handout(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The students' version: no solutions, speaker notes, links to other notebooks and outputs of exercises.

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
            place_pictures(cell, folder)
            cell.source = NEIGHBOUR.sub(_unlinked, cell.source)
        elif tags(cell) & {"exercise", "check"}:
            cell.outputs, cell.execution_count = [], None
    return student


def blank(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The version for class: nothing that tells what comes out, and no exercise that is for home.

    Besides solutions and notes it lacks all outputs, *What did we see?* and *How firm is this?*, titles that say what
    a picture shows and what comes with a click below it or after a prediction, claims, what folded code expects and
    says of its pictures, the summary after the quiz, and the quiz's answers: its questions stand there as on paper.
    Where an exercise is for home (`home`), the course's function runs. What it calls is made in the first cells.

    Args and errors are those of `handout`.
    """
    without = _on_paper(notebook)
    without.cells = _helpers_first(_not_answered(without.cells), tasks(without))
    for task in tasks(without):
        if task.at_home:
            places = [number for number, cell in enumerate(without.cells) if any(cell is one for one in task.cells)]
            without.cells[places[0]:places[-1] + 1] = [given(task.function)] if task.function else []
    without.cells = _unspoiled(without.cells)
    student = handout(without, folder)
    for cell in student.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            if "hide-input" in tags(cell) or "claim(" in cell.source:
                cell.source = _silent(cell.source)
            elif "exercise" not in tags(cell):
                cell.source = without_asserts(cell.source)             # it may tell what was predicted
        else:
            cell.source = _without_results(cell.source)
    student.cells = [cell for cell in student.cells if cell.source]
    return student


def home(notebook: NotebookNode, folder: Path) -> NotebookNode | None:
    """The exercises for home as a notebook of their own, which runs alone; ``None`` if there are none."""
    chosen = [task for task in tasks(notebook) if task.at_home]
    if not chosen:
        return None
    title = new_markdown_cell(f"# {heading(notebook)}: exercises for home\n\nRun the first cell. Each exercise has a "
                              "check, which says what is wrong and why.")
    return handout(new_notebook(cells=[title, *alone(notebook, chosen)], metadata=METADATA), folder)


def opened(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The version for afterwards: everything but the speaker notes, with solutions, code and hints unfolded."""
    student = deepcopy(notebook)
    student.cells = [cell for cell in student.cells if slide_type(cell) != "notes"]
    for cell in student.cells:
        if cell.cell_type == "markdown":
            place_pictures(cell, folder)
            cell.source = cell.source.replace("<details>", "<details open>")
        else:
            cell.metadata.get("jupyter", {}).pop("source_hidden", None)
    return student


def sheet(notebook: NotebookNode, folder: Path) -> str:
    """As one HTML page to print: predictions and decisions, with lines to write on (for a curve, axes from 0 to 100);
    on a new sheet, so that no exercise answers a prediction, the exercises and the quiz's questions."""
    paper = _on_paper(notebook)
    asked = [cell for task in tasks(paper) for cell in task.cells if not cell.source.startswith("<details>")]
    first, second = [paper.cells[0]], [new_markdown_cell('<div style="break-before: page"></div>')]
    for cell in paper.cells[1:]:
        if cell.cell_type == "code":
            cell.outputs = []
        exercise = any(cell is one for one in asked) or "quiz" in tags(cell)
        predicts = cell.cell_type == "markdown" and slide_type(cell) != "notes" and ASKS.search(cell.source)
        if predicts:
            cell.source += AXES if "Draw the curve" in cell.source else LINES
        if exercise:
            second.append(cell)
        elif predicts:
            first.append(cell)
    page = prepared(new_notebook(cells=first + second, metadata=METADATA), folder)
    parts = {"sections": [], "before": None, "after": None, "notes": False}
    return export(HTMLExporter, "page", page, folder, f"{heading(notebook)}: sheet", parts)


def _not_answered(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """The cells without what comes with a click: on a slide that asks for a prediction or a decision the text, on an
    exercise's the code, too."""
    kept, asks, exercise = [], False, False
    for cell in cells:
        text = cell.cell_type == "markdown"
        if slide_type(cell) in ("slide", "subslide"):
            asks = exercise = False
        if not (slide_type(cell) == "fragment" and (asks and text or exercise)):
            kept.append(cell)
        asks = asks or text and bool(ASKS.search(cell.source))
        exercise = exercise or "exercise" in tags(cell)
    return kept


def _helpers_first(cells: Sequence[NotebookNode], asked: Sequence[Task]) -> list[NotebookNode]:
    """Behind the first code cell those that only define functions which an exercise in class calls, and one, folded,
    that makes what an exercise without a solution looks into."""
    called = {name for task in asked if task.solution and not task.at_home
              for name in takes(task.solution.source)}
    first = next((number for number, cell in enumerate(cells) if cell.cell_type == "code"), 0)
    moved = {id(cell) for name, cell in definitions(cells).items() if name in called and only_defines(cell.source)}
    makes = [made for task in asked if not task.solution and not task.at_home
             for made in _makes(cells[first + 1:], task)]
    return [*cells[:first + 1], *(cell for cell in cells[first + 1:] if id(cell) in moved), *makes,
            *(cell for cell in cells[first + 1:] if id(cell) not in moved)]


def _makes(cells: Sequence[NotebookNode], task: Task) -> list[NotebookNode]:
    """What this exercise's stub needs of the cells above it, in a cell of its own; nothing if it needs none."""
    above = list(takewhile(lambda cell: cell is not task.stub, cells))
    code = needed(above, task.stub.source)
    if not code:
        return []
    number = re.search(r"exercise \d", task.title)[0]
    says = f"**Run the next cell now, too.** It takes up to a minute; {number} looks into what it makes."
    return [new_markdown_cell(says),
            new_code_cell(code, metadata={"tags": ["hide-input"], "jupyter": {"source_hidden": True}})]


def _unlinked(link: re.Match) -> str:
    """A link's text; of one to a further notebook, the title as such."""
    item, title, path = link.groups(default="")
    return item + (f"*{title}* (further notebook)" + ":" * bool(item) if "further/" in path else title)


def _unspoiled(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """The cells, but where a title stands alone above a measured picture neither it nor what comes with a click
    below the picture says what is to be seen."""
    kept, neutral = [], False
    for cell, after in zip(cells, [*cells[1:], NotebookNode(metadata={})], strict=True):
        if (TITLE.match(cell.source) and "hide-input" in tags(after) and slide_type(after) == "-"
                and not ASKS.search(cell.source)):
            neutral = TITLE.fullmatch(cell.source)         # with a text below, that stays, and so does what follows
            cell = NotebookNode(cell | {"source": TITLE.sub(r"### What do you see?\1", cell.source, count=1)})
        elif slide_type(cell) in ("slide", "subslide"):
            neutral = False
        if not (neutral and cell.cell_type == "markdown" and slide_type(cell) == "fragment"
                and not ASKS.search(cell.source)):
            kept.append(cell)
    return kept


def _without_results(text: str) -> str:
    """The text without what was seen: from there to the next heading or prediction."""
    kept, told = [], False
    for paragraph in text.split("\n\n"):
        told = bool(RESULT.match(paragraph)) or told and not (paragraph.startswith("#") or PREDICT.search(paragraph))
        if not told:
            kept.append(paragraph)
    return "\n\n".join(kept)


def without_asserts(code: str, or_calls: str = "") -> str:
    """Code without what it asserts, and without statements that call the function of this name."""
    if "assert " not in code and not or_calls:             # it may be none that Python reads: `%pip`
        return code
    told = code
    for statement in ast.parse(code).body:
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        if isinstance(statement, ast.Assert) or or_calls in [getattr(call.func, "id", None) for call in calls]:
            told = re.sub(re.escape(ast.get_source_segment(code, statement)) + r"[ \t]*(#.*)?", "", told)
    return told.strip()


def _silent(code: str) -> str:
    """Code without claims, without what it asserts, and with pictures that are not described."""
    told = without_asserts(code, or_calls="claim")
    for statement in ast.parse(code).body:
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        for keyword in (keyword for call in calls for keyword in call.keywords if keyword.arg == "alt"):
            value = ast.get_source_segment(code, keyword.value)
            told = told.replace(f"alt={value}", 'alt="What was measured."')
    return told.strip()


def _on_paper(notebook: NotebookNode) -> NotebookNode:
    """A copy in which the quiz is text without answers; where it ends the lesson, no summary comes after it."""
    student, questions, cells = deepcopy(notebook), [], []
    for cell in student.cells:
        shows = cell.cell_type == "code" and QUIZ.search(cell.source)
        if cell.cell_type == "code" and "Question(" in cell.source:
            questions += _questions(cell.source)
        if shows:
            cell = new_markdown_cell(_listed(questions), metadata={"tags": ["quiz"]})
            questions = []
        if not questions and not ABOUT_QUIZ.match(cell.source):
            cells.append(cell)
    end = max((number for number, cell in enumerate(cells) if "quiz" in tags(cell)), default=len(cells))
    if not any(cell.source.startswith("## ") for cell in cells[end:]):
        cells[end + 1:] = [cell for cell in cells[end + 1:] if cell.cell_type == "code" or LINKS.match(cell.source)]
    student.cells = cells
    return student


def _questions(source: str) -> list[tuple[str, list[str]]]:
    """Question and choices, without explanations, of each ``Question(…)`` in code."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
             and isinstance(node.func, ast.Name) and node.func.id == "Question"]
    found = [map(ast.literal_eval, call.args) for call in sorted(calls, key=lambda call: call.lineno)]
    return [(asks, [text for text, *_ in choices]) for asks, choices in found]


def _listed(questions: Sequence[tuple[str, list[str]]]) -> str:
    """Questions as text, each choice with a box."""
    return "\n\n".join(f"**{number}.** {asks}\n\n" + "\n".join(f"- ☐ {choice}" for choice in choices)
                       for number, (asks, choices) in enumerate(questions, 1))
