"""The copy that live slides show, and its kernel's way to catch up."""

import ast
import json
import re
from functools import partial
from html import escape
from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_utils.course import KEEP_GOING, PRESENTED, TOLD, course_root, is_further, numbered
from course_utils.kernel import rehearsal
from course_utils.publish.code import binds, takes
from course_utils.publish.handouts import without_asserts
from course_utils.publish.notebooks import read, show_clock, slide_type, tags
from course_utils.publish.presenting import CatchUp, load_ipython_extension, prepare

LESSON = course_root() / "notebooks" / "02_bahdanau_attention.ipynb"
LESSONS = [path for path in numbered(course_root()) if not is_further(path)]


@pytest.fixture
def shell():
    made = InteractiveShell()
    yield made
    made.history_manager.end_session()


def cell(id, source):
    made = new_code_cell(source)
    made.id = id
    return made


def before(catch_up, id, source=None):
    catch_up(SimpleNamespace(cell_id=id, raw_cell=catch_up.cells.get(id) if source is None else source))


def left(capsys):
    """What stands there when all is done: the line that counts is cleared."""
    return capsys.readouterr().out.split("\r")[-1]


CELLS = new_notebook(cells=[cell("a", "ran = ['a']"), cell("b", "ran.append('b'); print('b runs')"),
                            cell("c", "ran.append('c')"), cell("d", "ran.append('d')")])


def test_what_stands_above_runs_once_and_the_cell_itself_does_not(shell, capsys):
    catch_up = CatchUp(shell, CELLS)
    before(catch_up, "c")
    assert shell.user_ns["ran"] == ["a", "b"]
    counted = capsys.readouterr().out
    assert "first, what stands above: 1 of 2 cells" in counted
    assert "b runs" not in counted                     # it would be on the slide of c
    assert counted.endswith("\r")
    before(catch_up, "d")                              # c ran on its slide
    before(catch_up, "b")
    assert shell.user_ns["ran"] == ["a", "b"]


def on(slide, made):
    made.metadata.slideshow = {"slide_type": slide}
    return made


@pytest.mark.parametrize(("slide", "source", "ran"), [
    ("skip", "ran = ['a']; print('a')", ["a"]), ("-", "ran = ['a']", ["b"]), ("skip", "missing", ["b"])])
def test_imports_run_while_the_page_opens(shell, capsys, slide, source, ran):
    catch_up = CatchUp(shell, new_notebook(cells=[on(slide, cell("a", source)), cell("b", "")]))
    catch_up.begin()
    assert capsys.readouterr().out == ""
    shell.user_ns.setdefault("ran", ["b"])
    assert shell.user_ns["ran"] == ran
    before(catch_up, "b")
    assert ("what stands above" in capsys.readouterr().out) == (ran == ["b"])


def test_a_jump_passes_over_what_only_another_section_needs(shell):
    slow, late = cell("b", "ran.append('b')"), cell("f", "ran.append('f')")
    slow.metadata.tags = late.metadata.tags = ["own-section"]
    cells = [on("slide", cell("a", "ran = ['a']")), slow, cell("c", "ran.append('c')"),
             on("slide", cell("d", "ran.append('d')")), cell("e", "ran.append('e')"), late,
             cell("g", "ran.append('g')")]
    catch_up = CatchUp(shell, new_notebook(cells=cells))
    before(catch_up, "g")
    assert shell.user_ns["ran"] == ["a", "c", "d", "e", "f"]
    before(catch_up, "c")                              # back in the first section, its measurement runs
    assert shell.user_ns["ran"] == ["a", "c", "d", "e", "f", "b"]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_no_other_section_needs_what_a_jump_passes_over(path):
    section, own, common, wanted = 0, {}, set(), []
    for cell in read(path).cells:
        section += slide_type(cell) == "slide"
        if cell.cell_type == "code":
            taken, bound = set(), set()
            for statement in ast.parse(without_asserts(cell.source)).body:
                taken |= takes(ast.unparse(statement)) - bound
                bound |= binds(statement)
            wanted.append((section, taken))
            if "own-section" in tags(cell):
                own.setdefault(section, set()).update(bound)
            else:
                common |= bound
    assert not [(part, needed, taken & names - common) for part, names in own.items() for needed, taken in wanted
                if needed != part and taken & names - common]


def test_an_error_above_ends_the_catching_up_and_is_tried_again(shell, capsys):
    catch_up = CatchUp(shell, new_notebook(cells=[cell("a", "first = 1"), cell("b", "missing"), cell("c", "last = 1"),
                                                  cell("d", "")]))
    before(catch_up, "d")
    assert "NameError" in capsys.readouterr().out
    assert "last" not in shell.user_ns
    shell.user_ns["missing"] = 1
    before(catch_up, "d")
    assert shell.user_ns["last"] == 1


def test_a_number_that_is_changed_is_measured_again(shell):
    cells = [cell("a", "block = 1"), cell("b", "seen = [*globals().get('seen', []), block]"), cell("c", "")]
    catch_up = CatchUp(shell, new_notebook(cells=cells))
    before(catch_up, "c")
    for block in (2, 2, 3):
        before(catch_up, "a", f"block = {block}")
        shell.run_cell(f"block = {block}")
        before(catch_up, "c")
    assert shell.user_ns["seen"] == [1, 2, 3]


def test_one_line_says_that_trainings_above_were_loaded(shell, capsys):
    load = "fit('a line', loaded=True)"
    catch_up = CatchUp(shell, new_notebook(cells=[cell("a", load), cell("b", load), cell("c", ""), cell("d", load)]))
    shell.user_ns["fit"] = catch_up.trains
    before(catch_up, "c")
    shell.run_cell(load)
    assert left(capsys) == ""                          # not above the result, which it would push down
    catch_up.after()
    assert left(capsys) == "What is trained above was loaded as rehearsed.\n"
    before(catch_up, "d")
    shell.run_cell(load)                               # its own: it says so itself
    catch_up.after()
    assert left(capsys) == ""


def test_a_training_that_is_not_rehearsed_says_so_while_one_waits(shell, capsys, monkeypatch):
    monkeypatch.setenv(PRESENTED, str(LESSON))
    load_ipython_extension(shell)
    monkeypatch.delenv("COURSE_REHEARSAL", raising=False)
    shell.user_ns["fit"] = partial(rehearsal.train_or_load, lambda model, label="training": SimpleNamespace(
        interrupted=False), SimpleNamespace)
    catch_up = TOLD[-1].__self__
    catch_up.cells = {"a": "fit(None, label='with attention')\nfit(None, label='mine')\nprint('of a')", "b": ""}
    before(catch_up, "b")
    told = capsys.readouterr().out
    assert re.search(r"with attention: not rehearsed, training now, about \d+ s\n", told)
    assert "mine: not rehearsed, training now\n" in told
    assert "of a" not in told
    TOLD.remove(catch_up.trains)


def test_how_long_it_takes_is_known_of_each_training_by_its_label(shell, capsys, tmp_path):
    """A progress bar overwrites itself; the copy that a kernel reads holds it as HTML."""
    bars = "a < b: 50%|##  | 1/2 [00:01<00:01]\ra < b: 100%|####| 2/2 [02:05<00:00]\n" \
           "Luong's decoder: 100%|####| 2/2 [00:50<00:00, loss 1.2]\n"
    made = cell("a", "fit()")
    made.outputs = [new_output("stream", name="stdout", text=bars)]
    notebook = new_notebook(cells=[made])
    for given in (notebook, read(prepare(notebook, tmp_path / "01.ipynb", tmp_path))):
        catch_up = CatchUp(shell, given)
        catch_up.trains("a < b", loaded=False)
        catch_up.trains("Luong's decoder", loaded=False)
        told = capsys.readouterr().out.splitlines()
        assert [line.split("now, ")[-1] for line in told] == ["about 125 s", "about 50 s"]


def test_a_cell_that_the_lesson_does_not_have_runs_alone(shell):
    before(CatchUp(shell, CELLS), "new")
    before(CatchUp(shell, CELLS), None)
    assert "ran" not in shell.user_ns


def test_the_copy_is_for_showing_and_the_lesson_stays(tmp_path):
    notebook = read(LESSON)
    copy = prepare(notebook, LESSON, tmp_path)
    shown = read(copy)
    assert notebook == read(LESSON)
    ids = [cell.id for cell in notebook.cells]
    assert [cell.id for cell in shown.cells if cell.id in ids] == ids
    assert all(slide_type(cell) == "notes" for cell in shown.cells if cell.id not in ids)
    notes = [cell for cell in shown.cells if slide_type(cell) == "notes"]
    assert notes
    assert not any(note.source for note in notes)      # RISE would show it above the text
    texts = [note.outputs[0].data["text/html"] for note in notes]
    assert not any("<details" in text or "<summary" in text or "**" in text for text in texts)
    assert any("<strong>The point.</strong>" in text for text in texts)
    assert "](../" not in "".join(cell.source for cell in shown.cells if cell.cell_type == "markdown")
    assert shown.metadata.rise.overlay.startswith("<style>")
    kernel = json.loads((tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json").read_text("utf-8"))
    assert kernel["env"] == {PRESENTED: str(copy), KEEP_GOING: "1"}
    assert not any("\nassert " in cell.source for cell in shown.cells if not tags(cell) & {"exercise", "solution"})
    assert kernel["argv"][-1] == "course_utils.publish.presenting"
    settings = json.loads((tmp_path / "jupyter" / "labconfig" / "default_setting_overrides.json").read_text("utf-8"))
    assert settings["@jupyterlab/docmanager-extension:plugin"] == {"autosave": False}


def test_a_stored_plot_of_what_was_measured_says_so(tmp_path):
    path = next(path for path in LESSONS if path.name.startswith("06"))
    shown = read(prepare(read(path), path, tmp_path))
    measured = {"hide-input", "nbval-ignore-output"}
    plots = [cell for cell in shown.cells if slide_type(cell) != "skip" and tags(cell) >= measured]
    assert plots
    assert all("stored; Shift+Enter" in cell.outputs[-1].data["text/html"] for cell in plots)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_speaker_has_notes_on_every_slide(tmp_path, path):
    shown, slides = read(prepare(read(path), path, tmp_path)), []
    for cell in shown.cells:
        if slide_type(cell) in ("slide", "subslide"):
            slides.append(0)
        if slides:
            slides[-1] += slide_type(cell) == "notes"
    assert min(slides) > 0
    assert len({cell.id for cell in shown.cells}) == len(shown.cells)


def test_a_result_waits_behind_a_click_until_its_cell_runs_and_a_picture_does_not(tmp_path):
    lesson = {cell.id: cell for cell in read(LESSON).cells}
    shown = [cell for cell in read(prepare(read(LESSON), LESSON, tmp_path)).cells if cell.cell_type == "code"]
    behind = [cell for cell in shown if cell.outputs
              and "<summary>the stored result" in cell.outputs[0].get("data", {}).get("text/html", "")]
    at_home = {cell.id: escape(lesson[cell.id].outputs[0].get("text", "-")) for cell in behind}
    assert any(at_home[cell.id] in cell.outputs[0].data["text/html"] for cell in behind)
    assert not any("hide-input" in tags(cell) for cell in behind)
    compared = [cell for cell in shown if ".compare(" in cell.source]
    assert compared
    assert all("Shift+Enter" in cell.outputs[0].data["text/html"] for cell in compared)
    assert any(cell.outputs[:-1] == lesson[cell.id].outputs for cell in shown if "# plot" in cell.source)


@pytest.mark.parametrize("path", LESSONS[1:], ids=lambda path: path.stem)
def test_every_note_says_when_it_begins_and_the_sections_begin_as_the_first_note_says(path):
    notebook = read(path)
    show_clock(notebook)
    sections, begins, announced = {}, None, ""
    for cell in reversed(notebook.cells):
        if slide_type(cell) == "notes":
            begins = re.search(r"Speaker notes · (\d:\d\d½?) · \d*½? min\.", cell.source)[1]
            announced = cell.source if "**Clock:**" in cell.source else announced
        elif heading := re.match(r"## (?:<a [^>]*></a>)?(\d) ·", cell.source):
            sections[heading[1]] = begins
    clock = dict(re.findall(r"(\d) at (\d:\d\d½?)", announced))
    assert clock
    assert {number: sections[number] for number in clock} == clock


def test_a_solutions_code_is_shown_and_a_plots_stays_folded(tmp_path):
    cells = [cell for cell in read(prepare(read(LESSON), LESSON, tmp_path)).cells if cell.cell_type == "code"]
    solutions = [cell for cell in cells if "solution" in tags(cell)]
    assert solutions
    assert not any(cell.metadata.get("jupyter", {}).get("source_hidden") for cell in solutions)
    assert any(cell.metadata.get("jupyter", {}).get("source_hidden") for cell in cells)
