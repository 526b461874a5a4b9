"""Rules that every committed notebook keeps. Each rule is itself tested on a notebook that breaks it."""

import ast
import math
import re
import statistics
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils.course import course_root, is_further, numbered
from course_utils.publish.code import binds, takes
from course_utils.publish.notebooks import METADATA, read, tags

NOTEBOOKS = numbered(course_root())
SLIDE_TYPES = {"slide", "subslide", "fragment", "notes", "skip", "-"}
CAN_FAIL = {"claim", "check", "same_output"}
MACHINE_PATH = re.compile(
    r"(?<![\w.])(?:/(?:home|Users|root|tmp|work|mnt|opt|usr|var)/\w|[A-Za-z]:\\\\?\w)|site-packages"
)
ADDRESS = re.compile(r"https?://[^\s\"'<>)]+")
NOTE = re.compile(r"<details><summary>Speaker notes[^<\n]*</summary>\n\n.+\n\n</details>", re.DOTALL)  # folded
MINUTES = re.compile(r"<details><summary>Speaker notes · (90 only · )?(\d*)(½?) min\.</summary>")
NAMESPACES = ("http://www.w3.org/",)  # names inside SVG and MathML; nothing is asked for there

Rule = Callable[[NotebookNode, Path], list[str]]
RULES: list[Rule] = []
FOR_SLIDES: list[Rule] = []


def rule(function: Rule) -> Rule:
    """Add a rule: it gets a notebook and its folder and returns what breaks it."""
    RULES.append(function)
    return function


def for_slides(function: Rule) -> Rule:
    """Mark a rule that further notebooks, which are made for reading, need not keep."""
    FOR_SLIDES.append(function)
    return function


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def text_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def output_texts(notebook: NotebookNode) -> list[str]:
    """All that outputs say in letters (pictures are left out)."""
    texts = [output.text for output in outputs(notebook) if output.output_type == "stream"]
    for output in outputs(notebook):
        texts += [str(data) for kind, data in output.get("data", {}).items() if not re.match("image/(png|jpeg)", kind)]
    return texts


def first_line(cell: NotebookNode) -> str:
    return (cell.source.strip().splitlines() or [""])[0][:70]


def slide_type(cell: NotebookNode) -> str | None:
    return cell.metadata.get("slideshow", {}).get("slide_type")


def length(cell: NotebookNode) -> int:
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def images(notebook: NotebookNode) -> list[tuple[str, str]]:
    """(alternative text, address) of every picture in the text cells."""
    found = []
    for cell in text_cells(notebook):
        found += re.findall(r"!\[([^\]]*)\]\(\s*([^)\s]+)", cell.source)
        for tag in re.findall(r"<img\b[^>]*>", cell.source):
            alt, src = (re.search(rf'\b{name}\s*=\s*"([^"]*)"', tag) for name in ("alt", "src"))
            found.append((alt[1] if alt else "", src[1] if src else ""))
    return found


@rule
def executed_in_one_go(notebook, folder):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    return [] if counts == list(range(1, len(counts) + 1)) else [f"execution counts are {counts}; run `course run`"]


@rule
def nothing_failed(notebook, folder):
    return [
        f"{output.ename} in: {first_line(cell)}"
        for cell in code_cells(notebook)
        for output in cell.outputs
        if output.output_type == "error" and "raises-exception" not in tags(cell)
    ]


@rule
def nothing_on_standard_error(notebook, folder):
    return [output.text[:80] for output in outputs(notebook) if output.get("name") == "stderr"]


@rule
def pictures_are_local_and_described(notebook, folder):
    problems = []
    for alt, src in images(notebook):
        if not alt.strip():
            problems.append(f"{src} has no alternative text")
        if re.match(r"\w+:", src) or not (folder / src).is_file():
            problems.append(f"{src} is not a file beside the notebook")
    return problems


@rule
def code_cells_are_short(notebook, folder):
    lengths = [length(cell) for cell in code_cells(notebook)]
    problems = [f"{length(cell)} lines: {first_line(cell)}" for cell in code_cells(notebook) if length(cell) > 25]
    if lengths and statistics.median(lengths) > 8:
        problems.append(f"the median code cell has {statistics.median(lengths):g} lines, at most 8 are wanted")
    return problems


@rule
def shown_lines_fit_the_cell(notebook, folder):
    """At 1,440 px JupyterLab shows about 100 characters of a line; what is wider is cut off, or scrolls."""
    return [f"{len(line)} characters: {line.strip()}"
            for cell in code_cells(notebook) if not cell.metadata.get("jupyter", {}).get("source_hidden")
            for line in cell.source.splitlines() if len(line) > 100]


@rule
def hidden_lines_can_be_read(notebook, folder):
    """Hidden code is opened, too, and compared line by line from one commit to the next."""
    return [f"{len(line)} characters: {line.strip():.70}"
            for cell in code_cells(notebook) if cell.metadata.get("jupyter", {}).get("source_hidden")
            for line in cell.source.splitlines() if len(line) > 460]


@rule
def hidden_code_is_hidden_everywhere(notebook, folder):
    """``hide-input`` hides it on slides and pages, ``jupyter.source_hidden`` in JupyterLab."""
    return [first_line(cell) for cell in code_cells(notebook)
            if "hide-input" in tags(cell) and not cell.metadata.get("jupyter", {}).get("source_hidden")]


@rule
def text_between_code(notebook, folder):
    problems, row = [], 0
    for cell in notebook.cells:
        row = row + 1 if cell.cell_type == "code" else 0
        if row == 3:
            problems.append(f"third code cell in a row: {first_line(cell)}")
    return problems


@rule
@for_slides
def every_cell_has_a_slide_type(notebook, folder):
    return [f"{slide_type(cell)}: {first_line(cell)}" for cell in notebook.cells if slide_type(cell) not in SLIDE_TYPES]


@rule
@for_slides
def every_section_has_notes(notebook, folder):
    sections: list[list[NotebookNode]] = []
    for cell in notebook.cells:
        if slide_type(cell) == "slide" or not sections:
            sections.append([])
        sections[-1].append(cell)
    return [first_line(cells[0]) for cells in sections if "notes" not in map(slide_type, cells)]


@rule
def notes_are_folded(notebook, folder):
    notes = [cell for cell in text_cells(notebook) if slide_type(cell) == "notes"]
    return [first_line(cell) for cell in notes if not NOTE.fullmatch(cell.source)]


def minutes(whole: str, half: str) -> float:
    return float(whole or 0) + (0.5 if half else 0)


def timetable(notebook: NotebookNode) -> dict[str, list[float]]:
    """Minutes by section, in a lesson of 75 minutes and, where the table has a second column, of 90."""
    table = next((cell.source for cell in text_cells(notebook) if "| part | section |" in cell.source), "")
    rows = re.findall(r"(?m)^\| (\d*) ?\| [^|]* \| ([\d½ |]+) \|$", table)
    return {part: [minutes(*re.fullmatch(r"(\d*)(½?)", cell).groups()) for cell in cells.split(" | ")]
            for part, cells in rows}


@rule
def notes_take_the_minutes_of_the_timetable(notebook, folder):
    """What stands before section 1 counts there, a section without a number in the last part; "" is for questions."""
    planned = timetable(notebook)
    if not planned:
        return []
    parts = [part for part in planned if part]
    section, taken = parts[0], {part: [0.0, 0.0] for part in parts}
    for cell in text_cells(notebook)[1:]:
        if heading := re.search(r"(?m)^## (?:<a [^>]*></a>)?(?:(\d+) · )?", cell.source):
            section = heading[1] or parts[-1]
        if slide_type(cell) == "notes" and (note := MINUTES.match(cell.source)):
            longer, *time = note.groups()
            taken[section][0] += 0 if longer else minutes(*time)
            taken[section][1] += minutes(*time)
    problems = [f"part {part}: {planned[part]} in the timetable, {taken[part]} in the notes"
                for part in parts if planned[part] != taken[part][:len(planned[part])]]
    totals = [sum(column) for column in zip(*planned.values(), strict=True)]
    return problems + ([] if totals == [75, 90][:len(totals)] else [f"{totals} minutes in all"])


@rule
def slides_of_the_longer_lesson_say_so(notebook, folder):
    """``90 only`` in the notes, for the timetable, and ``optional`` in the heading, for who reads alone."""
    problems, headings, longer = [], [], False
    for cell in [*text_cells(notebook), text("", "slide")]:  # the last one closes what stands before it
        if slide_type(cell) in ("slide", "subslide"):
            if headings and longer != headings[0].endswith(" · optional"):
                problems.append(headings[0])
            headings, longer = re.findall(r"(?m)^#+ (.*)", cell.source), False
        elif slide_type(cell) == "notes":
            longer |= cell.source.startswith("<details><summary>Speaker notes · 90 only")
    return problems


@rule
def no_saved_widget_state(notebook, folder):
    views = [output for output in outputs(notebook) if any("widget-view" in kind for kind in output.get("data", {}))]
    return ["a widget view is saved"] * len(views) + ["metadata.widgets is saved"] * ("widgets" in notebook.metadata)


@rule
def uncompared_cells_can_fail(notebook, folder):
    def can_fail(cell):
        nodes = list(ast.walk(ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", cell.source))))
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        names = {getattr(function, "id", getattr(function, "attr", "")) for function in called}
        return any(isinstance(node, ast.Assert) for node in nodes) or bool(CAN_FAIL & names)

    uncompared = [cell for cell in code_cells(notebook) if "nbval-ignore-output" in tags(cell)]
    return [first_line(cell) for cell in uncompared if not can_fail(cell)]


@rule
def solutions_are_collapsed(notebook, folder):
    solutions = [cell for cell in code_cells(notebook) if "solution" in tags(cell)]
    return [
        first_line(cell)
        for cell in solutions
        if not cell.metadata.get("jupyter", {}).get("source_hidden") or not cell.source.startswith("#")
    ]


NUMBER = re.compile(r"(?<![\w.])(?:\d[\d,_]*(?:\.\d+)?|\.\d+)")


def numbers(*texts):
    return [re.sub("[,_]", "", number) for text in texts for number in NUMBER.findall(text)]


@rule
def what_a_title_counts_is_set_or_measured_in_the_notebook(notebook, folder):
    """A title's number stands, rounded, in an output or in the code: measured anew, it cannot stay as it was."""
    titles = [line for cell in text_cells(notebook) for line in cell.source.splitlines() if line.startswith("#")]
    own = re.compile(r"^#+ (?:<a [^>]*></a>)?(?:\d+ ·)?|(?:[Ee]xercise|[Ll]esson) \d+|\b(?:19|20)\d\d\b")
    known = {float(n) for n in numbers(*output_texts(notebook), *(cell.source for cell in code_cells(notebook)))}
    return [title for title in titles for number in numbers(own.sub("", title))
            if float(number) not in {round(n, len(number.partition(".")[2])) for n in known}]


@rule
def outputs_name_no_machine(notebook, folder):
    return [match[0] for text in output_texts(notebook) if (match := MACHINE_PATH.search(text))]


@rule
def nothing_is_fetched(notebook, folder):
    """Addresses stand in text as links, in comments and docstrings as sources; nowhere as something to load."""
    loaded = re.compile(r"<(?:img|script|link|iframe|video|source)\b[^>]*https?:[^>]*>|!\[[^\]]*\]\(\s*https?:[^)]*\)")
    problems = [match[0] for cell in text_cells(notebook) for match in loaded.finditer(cell.source)]
    for cell in code_cells(notebook):
        without_comments = re.sub(r'(?m)#.*$|"""[\s\S]*?"""', "", cell.source)
        problems += ADDRESS.findall(without_comments)
    for text in output_texts(notebook):
        without_links = re.sub(r"<a\b[^>]*>", "", text)
        problems += [address for address in ADDRESS.findall(without_links) if not address.startswith(NAMESPACES)]
    return problems


@rule
def metadata_is_what_course_run_writes(notebook, folder):
    return [f"{key}: {notebook.metadata.get(key)}" for key in METADATA if notebook.metadata.get(key) != METADATA[key]]


@pytest.mark.parametrize("check", RULES, ids=lambda check: check.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebook(path, check):
    if is_further(path) and check in FOR_SLIDES:
        pytest.skip("made for reading")
    assert check(read(path), path.parent) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_its_budget(path):
    counts = counted(read(path))
    budget = FURTHER if is_further(path) else LESSON
    assert {name: n for name, n in counts.items() if n > budget.get(name, math.inf)} == {}


def test_a_lesson_and_its_further_notebooks_link_to_each_other():
    for path in filter(is_further, NOTEBOOKS):
        lesson, = (other for other in NOTEBOOKS if other.name[:2] == path.name[:2] and not is_further(other))
        assert f"](further/{path.name})" in lesson.read_text(encoding="utf-8"), path.name
        assert f"](../{lesson.name})" in path.read_text(encoding="utf-8"), path.name
        assert f"](notebooks/further/{path.name})" in (course_root() / "README.md").read_text(encoding="utf-8")
        title = first_line(read(path).cells[0]).removeprefix("# ")
        assert f"[{title}](further/{path.name})" in NOTEBOOKS[0].read_text(encoding="utf-8"), "00 lists its title"


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if is_further(path)], ids=lambda path: path.stem)
def test_a_further_notebook_ends_with_how_many_parts_are_the_students(path):
    source = "\n".join(cell.source for cell in code_cells(read(path)))
    counted = re.findall(r"(?m)^your_parts\((.*)\)$", source)
    assert re.findall(r'"(\w+)"', "".join(counted)) == list(dict.fromkeys(re.findall(r'check\("(\w+)"\)', source)))


# --- budgets: what an hour holds ------------------------------------------------------------------------------------

LESSON = {"cells": 150, "words": 4500, "words of notes": 1500, "lines of code": 450, "slides": 40, "minutes": 75}
FURTHER = {"cells": 90, "words": 2500, "lines of code": 300}


def counted(notebook: NotebookNode) -> dict[str, float]:
    """What a student meets and what a class takes; notes count as notes only.

    Minutes: notes at 130 words each, words on slides at 400 (half is read while one talks), 12 lines of code, 40
    seconds a prediction, 8 minutes an exercise on a slide, and 5 for questions.
    """
    notes = [cell for cell in notebook.cells if slide_type(cell) == "notes"]
    met = [cell for cell in notebook.cells if slide_type(cell) != "notes"]
    shown, on_slide = [], False
    for cell in notebook.cells:
        kind = slide_type(cell) or "-"
        on_slide = on_slide if kind in ("-", "notes") else kind != "skip"       # "-" belongs to the cell before
        shown += [cell] * (on_slide and kind != "notes")
    words = {name: sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
             for name, cells in (("notes", notes), ("met", met), ("shown", shown))}
    code = [cell for cell in met if cell.cell_type == "code"]
    exercises = [cell for cell in shown if "exercise" in tags(cell)]
    lines = sum(length(cell) for cell in shown
                if cell.cell_type == "code" and not tags(cell) & {"exercise", "hide-input", "solution"})
    predictions = sum(len(re.findall(r"(?m)\*\*Predict|^#+ Predict", cell.source)) for cell in shown
                      if cell.cell_type == "markdown")
    minutes = (words["notes"] / 130 + words["shown"] / 400 + lines / 12 + predictions * 2 / 3 + 8 * len(exercises) + 5)
    return {"cells": len(met), "words": words["met"], "words of notes": words["notes"],
            "lines of code": sum(map(length, code)),
            "slides": sum(slide_type(cell) in ("slide", "subslide") for cell in notebook.cells), "minutes": minutes}


# --- the rules themselves -------------------------------------------------------------------------------------------


def code(source="x = 1", slide="skip", count=1, output=None, tags=(), **metadata):
    return new_code_cell(
        source,
        execution_count=count,
        outputs=[output] if output else [],
        metadata={"slideshow": {"slide_type": slide}, "tags": list(tags), **metadata},
    )


def text(source="Words.", slide="skip"):
    return new_markdown_cell(source, metadata={"slideshow": {"slide_type": slide}})


def note(*minutes):
    """The source of a speaker note."""
    return f"<details><summary>{' · '.join(['Speaker notes', *minutes])}</summary>\n\nThe point.\n\n</details>"


@pytest.fixture
def good(tmp_path):
    """A notebook that keeps every rule, and its folder."""
    (tmp_path / "a.svg").write_text("<svg/>", encoding="utf-8")
    picture = new_output("display_data", {"image/svg+xml": '<svg xmlns="http://www.w3.org/2000/svg"/>'})
    hidden = {"jupyter": {"source_hidden": True}}
    cells = [
        text('# A title\n\n![A line](a.svg) <img src="a.svg" alt="A line">', "slide"),
        text("[paper](https://arxiv.org/abs/1409.0473)"),
        text(note(), "notes"),
        code("import math  # https://arxiv.org/abs/1409.0473", output=picture),
        code("assert math.pi > 3", count=2, tags=["nbval-ignore-output"]),
        text(),
        code("# solution", count=3, tags=["solution"], **hidden),
    ]
    return new_notebook(cells=cells, metadata=deepcopy(METADATA)), tmp_path


@pytest.mark.parametrize("check", RULES, ids=lambda check: check.__name__)
def test_a_good_notebook_keeps_every_rule(good, check):
    assert check(*good) == []


def html(data):
    return new_output("display_data", {"text/html": data})


BREAKS = [
    (executed_in_one_go, code(count=7)),
    (executed_in_one_go, code(count=None)),
    (nothing_failed, code(output=new_output("error", ename="ValueError", evalue="", traceback=[]))),
    (nothing_on_standard_error, code(output=new_output("stream", name="stderr", text="a warning"))),
    (pictures_are_local_and_described, text("![](a.svg)")),
    (pictures_are_local_and_described, text("![missing](b.svg)")),
    (pictures_are_local_and_described, text('<img src="a.svg">')),
    (pictures_are_local_and_described, text('<img alt="x" src="https://example.org/a.svg">')),
    (code_cells_are_short, code("x = 1\n" * 26)),
    (shown_lines_fit_the_cell, code("x = 1  #" + 93 * "x")),
    (hidden_lines_can_be_read, code("x = 1  #" + 453 * "x", jupyter={"source_hidden": True})),
    (hidden_code_is_hidden_everywhere, code("x = 1", tags=["hide-input"])),
    (every_cell_has_a_slide_type, new_markdown_cell("no type")),
    (every_section_has_notes, text("## Section", "slide")),
    (notes_are_folded, text("> *Speaker notes.* The point.", "notes")),
    (notes_are_folded, text("<details><summary>Speaker notes</summary>\nno empty line\n</details>", "notes")),
    (no_saved_widget_state, code(output=new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}}))),
    (uncompared_cells_can_fail, code("%time fit(model)\nassertion = 1", tags=["nbval-ignore-output"])),
    (solutions_are_collapsed, code("# solution", tags=["solution"])),
    (solutions_are_collapsed, code("x = 1", tags=["solution"], jupyter={"source_hidden": True})),
    (what_a_title_counts_is_set_or_measured_in_the_notebook, text("### Found in .92 of them")),
    (outputs_name_no_machine, code(output=new_output("stream", text="/home/ada/course"))),
    (outputs_name_no_machine, code(output=new_output("stream", text="C:\\Users\\ada"))),
    (nothing_is_fetched, text('<script src="https://example.org/a.js"></script>')),
    (nothing_is_fetched, code("get('https://example.org/data')")),
    (nothing_is_fetched, code(output=html('<img src="https://example.org/a.png">'))),
]


@pytest.mark.parametrize(("check", "cell"), BREAKS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_rule_is_seen(good, check, cell):
    notebook, folder = good
    notebook.cells += [text(), cell]
    assert len(check(notebook, folder)) == 1


@pytest.mark.parametrize(("heading", "note"), [("### Short · optional", note("1 min.")),
                                               ("### Long", note("90 only · 1 min."))])
def test_a_slide_of_the_longer_lesson_without_its_mark_is_seen(good, heading, note):
    notebook, folder = good
    notebook.cells += [text(heading, "subslide"), text(note, "notes"), text("### Next", "subslide")]
    assert slides_of_the_longer_lesson_say_so(notebook, folder) == [heading.removeprefix("### ")]


def test_three_code_cells_in_a_row_are_seen(good):
    notebook, folder = good
    notebook.cells += [code(), code()]
    assert len(text_between_code(notebook, folder)) == 1


def test_long_cells_throughout_are_seen(good):
    notebook, folder = good
    notebook.cells += [code("x = 1\n" * 9)] * 4
    assert code_cells_are_short(notebook, folder) == ["the median code cell has 9 lines, at most 8 are wanted"]


def test_foreign_metadata_is_seen(good):
    notebook, folder = good
    notebook.metadata["language_info"]["version"] = "3.11.7"
    notebook.metadata["widgets"] = {}
    assert len(metadata_is_what_course_run_writes(notebook, folder)) == 1
    assert no_saved_widget_state(notebook, folder) == ["metadata.widgets is saved"]


TIMETABLE = """| part | section | minutes of 75 | of 90 |
|---|---|---|---|
| 1 | Begin | 70½ | 80 |
| 2 | End | 2 | 2 |
| | for questions | 2½ | 8 |"""


@pytest.mark.parametrize(("changed", "to", "problem"), [
    ("", "", []),
    ("70½", "71", ["part 1: [71.0, 80.0] in the timetable, [70.5, 80.0] in the notes", "[75.5, 90.0] minutes in all"]),
    ("90 only · ", "", ["part 1: [70.5, 80.0] in the timetable, [80.0, 80.0] in the notes"]),
    ("| 2½ | 8 |", "| 2½ | 9 |", ["[75.0, 91.0] minutes in all"]),
])
def test_a_timetable_that_the_notes_do_not_keep_is_seen(good, changed, to, problem):
    notebook, folder = good
    for cell in [text(TIMETABLE), text(note("½ min."), "notes"), text("## 1 · Begin", "slide"),
                 text(note("70 min."), "notes"), text(note("90 only · 9½ min."), "notes"),
                 text(note(), "notes"), text("## Quiz", "slide"),
                 text(note("2 min."), "notes")]:
        cell.source = cell.source.replace(changed, to) if changed else cell.source
        notebook.cells.append(cell)
    assert notes_take_the_minutes_of_the_timetable(notebook, folder) == problem


def test_every_rule_is_tested():
    apart = {text_between_code, metadata_is_what_course_run_writes, notes_take_the_minutes_of_the_timetable,
             slides_of_the_longer_lesson_say_so}
    assert {check for check, _ in BREAKS} | apart == set(RULES)


# --- back to an earlier slide: its cell runs again, after all that stands below it ------------------------------------

BOUND_AGAIN = {("05", "log"), ("05", "counted")}    # to be renamed there; nothing is to be added


def takes_and_binds(cell: NotebookNode) -> tuple[set[str], set[str]]:
    """What a code cell takes from the cells before it, and what it leaves behind: loops leave their variables."""
    taken, bound = set(), set()
    for statement in ast.parse(cell.source).body:
        taken |= takes(ast.unparse(statement)) - bound
        loops = [] if isinstance(statement, ast.FunctionDef | ast.ClassDef) else [
            part.target for part in ast.walk(statement) if isinstance(part, ast.For)]
        bound |= binds(statement) | {part.id for target in loops for part in ast.walk(target)
                                     if isinstance(part, ast.Name)}
    return taken, bound


def bound_again(notebook: NotebookNode) -> set[str]:
    """Names that the cell of a slide takes from above and that a cell below binds to something else. Exercises and
    their solutions are meant to."""
    found, above, on_slide, wanted = set(), set(), False, set()
    for cell in notebook.cells:
        kind = slide_type(cell) or "-"
        on_slide = on_slide if kind in ("-", "notes") else kind != "skip"
        if cell.cell_type == "code" and not tags(cell) & {"exercise", "solution"}:
            taken, bound = takes_and_binds(cell)
            found |= wanted & bound
            wanted |= taken & above if on_slide else set()
            above |= bound
    return found


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if not is_further(path)], ids=lambda path: path.stem)
def test_a_slide_that_one_goes_back_to_shows_its_own_data(path):
    known = {name for lesson, name in BOUND_AGAIN if path.name.startswith(lesson)}
    assert bound_again(read(path)) - known == set()


@pytest.mark.parametrize(("cells", "names"), [
    ([code("rows = 1"), code("print(rows)", "slide"), code("rows = 2", tags=["hide-input"])], {"rows"}),
    ([code("def bars(): pass"), code("bars()", "slide"), code("bars = 1", "slide")], {"bars"}),
    ([code("n = 1"), code("print(n)", "slide"), code("for n in (2, 3): pass")], {"n"}),
    ([code("n = 1"), code("print(n)", "slide"), code("[n for n in (2, 3)]")], set()),
    ([code("rows = 1", "slide"), code("rows = 2\nprint(rows)", "slide")], set()),
    ([code("f = 1"), code("f(1)", "slide"), code("f = 2", tags=["solution"])], set()),
])
def test_a_name_that_is_bound_again_is_seen(cells, names):
    assert bound_again(new_notebook(cells=[text("## Title", "slide"), *cells])) == names
