"""What students get: nothing that they are to find out stands in it, and what it asks can be done with it alone."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from students import secret_lines, text

from course_utils import cli, training
from course_utils.course import course_root, numbered
from course_utils.exercises import WrongAnswer, check, solved
from course_utils.exercises import _yours as yours
from course_utils.publish import handouts, release
from course_utils.publish.code import takes
from course_utils.publish.notebooks import read, slide_type, tags
from course_utils.publish.tasks import alone, needed, only_defines, tasks

NOTEBOOKS = {path.stem: (path, read(path)) for path in numbered(course_root())}
LESSONS = [name for name, (path, _) in NOTEBOOKS.items() if path.parent.name == "notebooks"]
MARKS = re.compile(r"^ *#+ BEGIN SOLUTION\n.*?^ *#+ END SOLUTION\n", re.DOTALL | re.MULTILINE)
every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


def made(name, form):
    path, notebook = NOTEBOOKS[name]
    return form(notebook, path.parent)


# --- no answer in sight -------------------------------------------------------------------------------------------

@every_notebook
def test_no_line_of_a_solution_is_in_a_students_file(name):
    secret = secret_lines(NOTEBOOKS[name][1])
    assert bool(secret) == any(task.solution for task in tasks(NOTEBOOKS[name][1]))
    files = [text(student) for form in (handouts.handout, handouts.blank, handouts.home)
             if (student := made(name, form))]
    for form in (release.nbgrader, release.otter):
        if assignment := made(name, form):
            assert [line for line in secret if line in text(assignment)], "the instructor's has them"
            files.append("\n".join(MARKS.sub("", cell.source) for cell in assignment.cells))
    for file in files:
        lines = {line.strip() for line in file.splitlines()}
        assert lines & secret == set()


def described(notebook):
    """What folded code says of its pictures: what it gives a function that takes an `alt`."""
    folded = [ast.parse(cell.source) for cell in notebook.cells
              if cell.cell_type == "code" and "hide-input" in tags(cell)]
    places = {node.name: [one.arg for one in node.args.args].index("alt") for tree in folded for node in ast.walk(tree)
              if isinstance(node, ast.FunctionDef) and "alt" in [one.arg for one in node.args.args]}
    return [ast.unparse(call) for tree in folded for call in ast.walk(tree) if isinstance(call, ast.Call)
            if len(call.args) > places.get(getattr(call.func, "id", None), 99)]


@every_notebook
def test_a_blank_notebook_tells_no_result(name):
    _, notebook = NOTEBOOKS[name]
    student = made(name, handouts.blank)
    nbformat.validate(student)
    assert ".ipynb)" not in text(student)                                        # it is one file
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in student.cells)
    found = text(student)
    assert not re.search(r"What did we see\?|How firm is this\?|What we measured|Speaker notes|^claim\(", found, re.M)
    assert described(student) == [], "a picture is described; give `alt` by its name, so that it is withheld"
    explained = {why for cell in notebook.cells if cell.cell_type == "code" for why in explanations(cell.source)}
    assert explained
    assert [why for why in explained if why in found] == []
    if name != "00_start_here":                                                  # its quiz opens it
        after = student.cells[[tags(cell) for cell in student.cells].index({"quiz"}) + 1:]
        titles = [cell.source.split("\n")[0] for cell in after if cell.cell_type == "markdown"]
        assert [title for title in titles if not title.startswith("### Further")] == []
    kept = [cell for cell in notebook.cells if cell.cell_type == "markdown" and "**Predict" in cell.source
            and slide_type(cell) != "notes"]
    at_home = made(name, handouts.home)
    asked = [cell for part in (student, at_home) if part for cell in part.cells if "**Predict" in cell.source]
    assert len(asked) == len(kept)


def explanations(source):
    """What the quizzes in a cell say to each choice; sentences only."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Question":
            yield from (why for _, why, _ in ast.literal_eval(call.args[1]) if len(why) > 25)


def test_titles_that_tell_the_result_are_replaced_and_others_stay():
    cells = [new_markdown_cell("### It falls"), new_code_cell("plot()", metadata={"tags": ["hide-input"]}),
             new_markdown_cell("### The loop"), new_code_cell("loop()"),
             new_markdown_cell("### It rises\n\nand more"), new_code_cell("x", metadata={"tags": ["hide-input"]}),
             new_markdown_cell("### A question?\n\nand more"), new_code_cell("x", metadata={"tags": ["hide-input"]})]
    student = handouts.blank(new_notebook(cells=cells), course_root())
    titles = [cell.source.splitlines()[0] for cell in student.cells if cell.cell_type == "markdown"]
    assert titles == ["### What do you see?", "### The loop", "### What do you see?", "### A question?"]
    assert [cell.source for cell in student.cells][4] == "### What do you see?\n\nand more"


def test_text_below_a_picture_is_left_out_where_the_title_is_and_a_prediction_stays():
    def at(kind, text):
        return new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}})

    plot = new_code_cell("plot()", metadata={"tags": ["hide-input"], "slideshow": {"slide_type": "-"}})
    cells = [at("subslide", "### It falls"), plot, at("fragment", "To 21."), at("fragment", "**Predict:** and then?"),
             at("skip", "A text."), at("subslide", "### The loop"), new_code_cell("1"), at("fragment", "It stays.")]
    student = handouts.blank(new_notebook(cells=cells), course_root())
    assert [cell.source for cell in student.cells] == [
        "### What do you see?", "plot()", "**Predict:** and then?", "A text.", "### The loop", "1", "It stays."]


def test_a_further_notebook_is_named_where_its_link_was():
    text = ("- [How far?](further/03_far.ipynb) It measures.\n- How: [See here](further/03_here.ipynb).\n"
            "- [Lesson 02](02_attention.ipynb), [arXiv](https://arxiv.org/abs/1706.03762)")
    (cell,) = handouts.handout(new_notebook(cells=[new_markdown_cell(text)]), course_root()).cells
    assert cell.source == ("- *How far?* (further notebook): It measures.\n- How: *See here* (further notebook).\n"
                           "- Lesson 02, [arXiv](https://arxiv.org/abs/1706.03762)")


def test_code_neither_claims_nor_asserts_and_folded_code_describes_no_picture():
    code = ('# plot\nfigure = draw({"alt": 85})\nplotting.show(figure, alt="BLEU falls to "\n'
            '                     f"{low}, the größte drop.")\nassert low < 25, "not low"   # falls to 21')
    claims = 'claim("02.x", "It falls",\n      holds="low <= 25")'
    cells = [new_code_cell(code, metadata={"tags": ["hide-input"]}), new_markdown_cell("A text."),
             new_code_cell(claims, metadata={"tags": ["hide-input"]}), new_code_cell("shown = 85\nassert shown > 80")]
    student = handouts.blank(new_notebook(cells=cells), Path())
    assert [cell.source for cell in student.cells] == [
        '# plot\nfigure = draw({"alt": 85})\nplotting.show(figure, alt="What was measured.")', "A text.",
        "shown = 85"]


@pytest.mark.parametrize(("told", "left"), [
    ("Before.\n\n**How firm is this?** Very.\n\nMore.", ["Before."]),
    ("**What did we see?** It.\n\nMore.\n\nThen. **Predict:** what?", ["Then. **Predict:** what?"]),
    ("**What did we see?** It.\n\n### Next\n\nA loop.", ["### Next\n\nA loop."]),
    ("**What did we see?** It.", []),
    ("### What we measured\n\nThe cards.\n\n### Next\n\nA loop.", ["### Next\n\nA loop."]),
])
def test_what_was_seen_is_cut_and_what_stands_around_it_stays(told, left):
    student = handouts.blank(new_notebook(cells=[new_markdown_cell(told)]), Path())
    assert [cell.source for cell in student.cells] == left


def test_the_blank_quiz_has_every_question_and_a_box_for_each_choice():
    student = made("02_bahdanau_attention", handouts.blank)
    (quiz,) = (cell.source for cell in student.cells if "quiz" in tags(cell))
    assert quiz.startswith("**1.** Scores 2, 1, 1 and scores 102, 101, 101: how do the weights compare?\n\n- ☐ The sec")
    assert (len(re.findall(r"^\*\*\d+\.\*\*", quiz, re.MULTILINE)), quiz.count("- ☐ ")) == (3, 9)


# --- class and home -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", LESSONS)
def test_exercises_are_where_the_lesson_says(name):
    """`In class: exercises 2 and 5. At home: 1, 3, 4 and 6.`"""
    _, notebook = NOTEBOOKS[name]
    said = re.search(r"^In class: exercises?(.+?)\.(?: At home:(.+?)\.)?", notebook.cells[1].source, re.MULTILINE)
    if name == "00_start_here":
        assert said is None
        return
    expected = [re.findall(r"\d", part or "") for part in said.groups()]
    found = [[re.search(r"exercise (\d)", task.title)[1] for task in tasks(notebook) if task.at_home is home]
             for home in (False, True)]
    assert found == expected


@pytest.mark.parametrize("name", LESSONS)
def test_class_and_home_share_no_exercise_and_lose_none(name):
    _, notebook = NOTEBOOKS[name]
    in_class, at_home = (form and {task.title for task in tasks(form)}
                         for form in (made(name, handouts.blank), made(name, handouts.home)))
    assert not at_home or not in_class & at_home
    assert in_class | (at_home or set()) == {task.title for task in tasks(notebook)}
    for task in tasks(notebook):
        if task.at_home:
            assert f'{task.function} = EXERCISES["{task.function}"].solution' in text(made(name, handouts.blank))


@every_notebook
def test_the_exercises_can_be_solved_without_the_lesson(name, capsys):
    """Imports, what is given and the solutions, in a fresh namespace: each check finds its function right."""
    _, notebook = NOTEBOOKS[name]
    chosen = [task for task in tasks(notebook) if task.function]
    for group in ([task for task in chosen if task.at_home], chosen):
        yours.clear()
        answers = {task.stub.source: task.solution.source.replace(", solution=True", "") for task in group}
        known = {}
        for cell in alone(notebook, group) if group else ():
            if cell.cell_type == "code":
                exec(answers.get(cell.source, cell.source), known)
        for task in group:
            solved(task.function)
    plt.close("all")


def one_step(*given, **settings):
    return training.fit(*given, **settings | {"steps": 1})


def test_what_exercise_5_of_lesson_02_looks_into_is_made_without_what_the_class_predicts():
    cells = made("02_bahdanau_attention", handouts.blank).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert code[1].metadata.jupyter.source_hidden
    assert "def hide_word(" in code[1].source
    assert re.findall(r"^\w+ = trained\((.+)\)$", code[1].source, re.M) == ['untrained("location"), "location"']
    assert not re.search("bleu|aer|inverted|plain|bahdanau", code[1].source)
    below = next(number for number, cell in enumerate(cells) if cell.source.startswith('hide_word("hôpitaux")'))
    assert not any('"hospitals"' in cell.source for cell in cells[below:])


def test_what_a_stub_needs_comes_by_statements_and_loops_do_not_count():
    cells = [new_code_cell("a = 1\nb = 2  # two\nfor c in range(3): print(c)"), new_markdown_cell("c = 4"),
             new_code_cell("rows = [b for b in range(3)]\ndef shown(x):\n    return helper(x) + b\nclaim(b)"),
             new_code_cell("def helper(c):\n    return c")]
    assert needed(cells[:1] + cells[3:] + cells[1:3], "shown(3)") == (
        "b = 2\ndef helper(c):\n    return c\ndef shown(x):\n    return helper(x) + b")


@pytest.mark.parametrize("path", numbered(course_root()), ids=lambda path: path.stem)
def test_on_paper_a_quiz_asks_for_no_click(path):
    student = handouts.blank(read(path), path.parent)
    assert [cell.source[:80] for cell in student.cells if re.search("Click on|press its number", cell.source)] == []


@pytest.mark.parametrize("name", LESSONS)
def test_in_class_the_first_cells_and_the_exercises_are_enough(name, capsys):
    """Sixty people run the first code cells, and then what they are asked to write. Here they train for one step."""
    in_class = [task for task in tasks(NOTEBOOKS[name][1]) if not task.at_home]
    chosen = [task for task in in_class if task.function]
    answers = {task.stub.source: task.solution.source.replace(", solution=True", "") for task in chosen}
    answers |= {task.stub.source: task.stub.source for task in in_class if not task.solution}
    student = made(name, handouts.blank).cells
    asked = [cell.id for text, cell in pairwise(student) if text.source.startswith("**Run the next cell now, too.**")]
    cells = [cell for cell in student if cell.cell_type == "code"]
    yours.clear()
    known = {}
    for number, cell in enumerate(cells):
        first = number < 4 and (cell.id in asked or only_defines(cell.source))
        if number == 0 or first or cell.source in answers:
            exec(answers.get(cell.source, cell.source), known)
        if number == 0 and "fit" in known:
            known["fit"] = one_step
    for task in chosen:
        solved(task.function)
    plt.close("all")


def test_a_function_named_as_a_parameter_is_does_not_move():
    """In lesson 04 a solution takes norms as arguments, and the wrong parts of section 4 stay where they are."""
    assert takes("def f(x, norm_2, *rest, k=1, **more):\n    return norm_2(x, k, rest, more) + helper(x)") == {"helper"}
    cells = [cell.source for cell in made("04_transformer", handouts.blank).cells]
    number = next(number for number, source in enumerate(cells) if "class NormA" in source)
    assert "The suspects" in cells[number - 1]


def test_what_comes_with_a_click_after_a_prediction_is_not_in_the_blank_one():
    def shown(text, kind):
        return new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}})

    cells = [shown("**Predict:** which?", "slide"), shown("**The 7B.**", "fragment"), shown("## Next", "slide"),
             shown("It stays.", "fragment"), shown("**Decide:** one.", "subslide"), shown("1. This one.", "fragment")]
    student = handouts.blank(new_notebook(cells=[new_code_cell("1"), *cells]), Path())
    left = ["**Predict:** which?", "## Next", "It stays.", "**Decide:** one."]
    assert [cell.source for cell in student.cells[1:]] == left


# --- the other forms ----------------------------------------------------------------------------------------------

def test_the_opened_version_hides_nothing_but_notes():
    student = made("02_bahdanau_attention", handouts.opened)
    assert "Speaker notes" not in text(student)
    assert not any("<details>" in cell.source for cell in student.cells)
    assert "<details open><summary>Hint" in text(student)
    assert sum("solution" in tags(cell) for cell in student.cells if cell.cell_type == "code") == 5
    assert not any(cell.metadata.get("jupyter", {}).get("source_hidden") for cell in student.cells)
    assert any(cell.get("outputs") for cell in student.cells)


def test_a_sheet_has_what_is_asked_and_lines_to_write_on():
    path, notebook = NOTEBOOKS["02_bahdanau_attention"]
    page = handouts.sheet(notebook, path.parent)
    body = page[page.index("<main>"):]
    predictions = [cell for cell in notebook.cells if cell.cell_type == "markdown" and "**Predict" in cell.source
                   and slide_type(cell) != "notes"]
    assert body.count("<hr ") == 2 * (len(predictions) - 1) > 0
    curve = re.search(r"Draw the curve([^<]*)</p>\s*<div><svg (.*?)</svg>", body, re.DOTALL)
    assert "None" not in curve[1]
    assert re.findall(r">(\d+)</text>", curve[2]) == ["0", "50", "100"]
    for task in tasks(notebook):
        assert task.title.split(" · ")[1].split("?")[0] in body
    assert body.count("☐") == 9
    assert "<summary>" not in body
    assert "Loading" not in body
    assert "masked_fill" not in body


def test_a_sheet_asks_for_decisions_too():
    """Lesson 06 ends with three cases, and a class decides."""
    body = made("06_efficient_attention", handouts.sheet)
    assert re.search(r"<strong>Decide:</strong>[^<]*</p>\s*<hr ", body)
    assert "A model follows an endless conversation" in body


def test_no_exercise_on_a_sheet_answers_a_prediction():
    predictions, exercises = made("06_efficient_attention", handouts.sheet).split('<div style="break-before: page">')
    assert "Is the first sum lost?" in predictions
    assert "e^{m - m'}" not in predictions
    assert "e^{m - m'}" in exercises


def test_what_solves_an_exercise_or_decides_a_case_is_not_in_class():
    student = text(made("06_efficient_attention", handouts.blank))
    for told in ("One factor corrects", "A mask saves nothing", "(../figures/06_choice.svg)", "The choice as a chart",
                 "attention sinks"):
        assert told not in student, told
    assert "three cases" in student.lower()


@pytest.mark.parametrize(("options", "files"), [
    ([], ["02_bahdanau_attention.ipynb"]),
    (["--blank"], ["02_bahdanau_attention_class.ipynb", "02_bahdanau_attention_home.ipynb"]),
    (["--solutions"], ["02_bahdanau_attention_solutions.ipynb"]),
    (["--sheet"], ["02_bahdanau_attention_sheet.html"]),
])
def test_each_form_has_a_file_of_its_own(tmp_path, options, files):
    assert cli.main(["handout", "02", "--out", str(tmp_path), *options]) == cli.EXIT_OK
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_two_forms_at_once_are_not_understood(capsys):
    with pytest.raises(SystemExit):
        cli.main(["handout", "02", "--blank", "--sheet"])
    assert "not allowed with" in capsys.readouterr().err


# --- assignments --------------------------------------------------------------------------------------------------

def test_solved_raises_until_the_check_has_found_it_right(capsys):
    yours.clear()
    with pytest.raises(WrongAnswer, match='Is the line `causal_mask = check\\("causal_mask"\\)` still there'):
        solved("causal_mask")
    check("causal_mask", {"causal_mask": lambda n: None})
    with pytest.raises(WrongAnswer):
        solved("causal_mask")
    with pytest.raises(ValueError, match="no exercise is called 'nonsense'"):
        solved("nonsense")


def test_release_writes_both_forms_of_every_notebook_with_a_check(tmp_path, capsys):
    assert cli.main(["release", str(tmp_path), "00", "03", "03_heads"]) == cli.EXIT_OK
    assert "2 assignments" in capsys.readouterr().out
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*"))
    assert files == ["nbgrader/nbgrader_config.py",
                     "nbgrader/source/00_start_here/00_start_here.ipynb",
                     "nbgrader/source/03_self_attention/03_self_attention.ipynb",
                     "otter/00_start_here/00_start_here.ipynb",
                     "otter/03_self_attention/03_self_attention.ipynb"]
    nbformat.validate(read(tmp_path / files[2]))
    points = [cell.metadata.nbgrader.points for cell in read(tmp_path / files[2]).cells
              if cell.metadata.get("nbgrader", {}).get("grade")]
    assert points == [1] * 6


def test_at_home_a_function_that_was_written_there_is_not_given_again():
    path, notebook = NOTEBOOKS["02_bahdanau_attention"]
    cells = [cell.source for cell in handouts.home(notebook, path.parent).cells]
    assert any(source.startswith("def masked_softmax") for source in cells)
    assert not any("\n\nmasked_softmax = EXERCISES" in source for source in cells)
