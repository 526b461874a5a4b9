"""`course claims`: claims are listed, tried at seeds, and accepted."""

import json
import os
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_utils import cli
from course_utils.claims import accepted, declared, repeat, seeds

SETUP = "import os\nfrom course_utils.claims import claim\nseed = int(os.environ['COURSE_SEED'])"
CLAIM = """claim("{id}", "It stays.", source="A 2015", published="1", measured={{"x": 1.0 * {x}}},
      holds='"x" <= 1'{more})"""


def one(id, x="seed", more=""):
    return new_code_cell(CLAIM.format(id=id, x=x, more=more))


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two lessons with a record and a file of conditions of its own."""
    monkeypatch.setattr(seeds, "RECORD", tmp_path / "claims_at_seeds.json")
    monkeypatch.setattr(accepted, "FILE", tmp_path / "conditions.json")
    folder = tmp_path / "notebooks"
    folder.mkdir()
    cells = [new_markdown_cell("# A"), new_code_cell(SETUP), one("01.at-0-and-1"), new_code_cell("assert seed < 1"),
             one("01.never", "unknown"), one("01.same", 1, ', kind="identity"'), new_code_cell("open('late', 'w')")]
    nbformat.write(new_notebook(cells=cells), folder / "01_a.ipynb")
    cells = [new_code_cell(SETUP), one("02.not-at-all", 2, ", expected=False"), one("02.other", 1, ', stored=None')]
    nbformat.write(new_notebook(cells=cells), folder / "02_b.ipynb")
    nbformat.write(new_notebook(cells=[new_code_cell("claims.table(rows)")]), folder / "00_start_here.ipynb")
    return tmp_path


def test_a_claim_that_was_not_reached_has_not_held(course):
    claims = declared.declared(course / "notebooks" / "02_b.ipynb")
    told = {"version": "abc", "machine": "here", "date": "2026-01-01"}
    line = repeat._keep(claims[:1], 0, {"found": {}, "stopped": "cell 1: it broke"}, told, "02_b seed 0")
    assert line == "02_b seed 0: 0 of 1 claims as expected; not as expected: 02.not-at-all (cell 1: it broke)"
    assert not seeds.read()["02.not-at-all"].seeds[0].holds


def run(course, *words):
    return cli.main(["claims", *words], root=course)


@pytest.mark.slow
def test_claims_are_tried_up_to_the_last_cell_asked_for_and_kept(course, capfd):
    before = [path.read_bytes() for path in sorted((course / "notebooks").iterdir())]
    assert run(course, "--seeds", "0", "2", "--jobs", "2") == 0
    out, err = capfd.readouterr()
    assert err == ""
    for line in ["01_a.ipynb seed 0: 1 of 2 claims as expected; not as expected: 01.never (cell 5: NameError: name "
                 "'unknown' is not defined)",
                 "01_a.ipynb seed 2: 0 of 2 claims as expected; not as expected: 01.at-0-and-1 (does not hold), "
                 "01.never (cell 4: AssertionError: )", "02_b.ipynb seed 2: 1 of 1 claims as expected",
                 "    held at 1 of 2 seeds (not at 2)", "    held at 0 of 2 seeds (not reached at 0 and 2)"]:
        assert line in out.splitlines()
    assert "\r" not in out                                         # no progress where nobody sees it move
    assert "01.same" not in out                                    # an identity is tried when it is asked for by name
    record = json.loads(seeds.RECORD.read_text())
    assert list(record) == ["01.at-0-and-1", "01.never", "02.not-at-all"]
    trial = record["01.at-0-and-1"]["seeds"]["2"]
    assert (trial["holds"], trial["measured"], trial["stopped"]) == (False, {"x": 2.0}, "")
    assert trial["version"]
    assert "torch" in trial["machine"]
    assert record["02.not-at-all"]["seeds"]["0"]["holds"] is False
    assert [path.read_bytes() for path in sorted((course / "notebooks").iterdir())] == before

    assert run(course, "01.same", "--seeds", "1") == 0
    out, _ = capfd.readouterr()
    assert "01_a.ipynb seed 1: 1 of 1 claims as expected" in out
    assert [trial.holds for trial in seeds.read()["01.same"].seeds.values()] == [True]
    assert seeds.read()["01.at-0-and-1"].short == "1 of 2"     # what was there stays
    assert not (course / "notebooks" / "late").exists()


@pytest.mark.slow
def test_a_kernel_that_dies_is_on_record(course, capfd):
    cells = [new_code_cell(SETUP), one("01.before", 1), new_code_cell("os._exit(1)"), one("01.after", 1)]
    nbformat.write(new_notebook(cells=cells), course / "notebooks" / "01_a.ipynb")
    assert run(course, "1", "--seeds", "0") == 0
    assert "01.after (cell 3: The kernel died" in capfd.readouterr().out
    assert "The kernel died" in seeds.read()["01.after"].seeds[0].stopped


@pytest.mark.slow
def test_a_claim_that_is_not_reached_says_what_was_raised_before(course, capfd):
    cells = [new_code_cell(SETUP), new_code_cell("raise NotImplementedError('your turn')"), one("01.after", "unknown")]
    nbformat.write(new_notebook(cells=cells), course / "notebooks" / "01_a.ipynb")
    assert run(course, "1", "--seeds", "0") == 0
    assert "01.after (cell 2: NotImplementedError: your turn)" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to all processes of a console itself")
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(course):
    cells = [new_code_cell(SETUP), new_code_cell("import pathlib, time\nif seed:\n"
             "    pathlib.Path('pid').write_text(str(os.getpid()))\n    time.sleep(60)"), one("01.x", 1)]
    nbformat.write(new_notebook(cells=cells), course / "notebooks" / "01_a.ipynb")
    program = ("import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom pathlib import Path\n"
               "from course_utils import cli; from course_utils.claims import seeds\n"
               f"seeds.RECORD = Path({str(seeds.RECORD)!r})\n"
               f"exit(cli.main(['claims', '01', '--seeds', '0', '1', '2'], Path({str(course)!r})))")
    pid, end = course / "notebooks" / "pid", time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (pid.is_file() and pid.read_text()):
                assert time.monotonic() < end, "waited too long"
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == cli.EXIT_INTERRUPTED
    assert "Traceback" not in error
    assert list(seeds.read()["01.x"].seeds) == [0]
    assert not psutil.pid_exists(int(pid.read_text())), "the kernel is still running"


def test_claims_are_listed(course, capsys):
    assert run(course, "1") == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        '01.at-0-and-1 (experiment): holds when "x" <= 1', "    not yet tried at other seeds"]


def test_changed_conditions_are_accepted(course, capsys):
    assert run(course, "--accept") == 0
    assert capsys.readouterr().out.splitlines()[0] == '01.at-0-and-1 is new; it holds when "x" <= 1'
    assert run(course, "--accept") == 0
    assert capsys.readouterr().out == "nothing changed\n"
    path = course / "notebooks" / "02_b.ipynb"
    path.write_text(path.read_text().replace("<= 1", "<= 7"))
    assert run(course, "--accept") == 0
    assert '02.other, condition:\n  was "x" <= 1\n  now "x" <= 7\n' in capsys.readouterr().out


@pytest.mark.parametrize(("words", "says"), [
    (["03"], "no claim and no lesson with claims is called '03'. There is:\n  01.at-0-and-1"),
    (["01.nothing"], "no claim and no lesson with claims is called '01.nothing'"),
    (["--seeds", "0", "--jobs", "0"], "--jobs 0; expected 1 or more"),
    (["--accept", "01"], "--accept writes the conditions of all claims and tries none; it takes no names"),
    (["--accept", "--seeds", "0"], "Type: course claims --accept"),
])
def test_another_wish_is_refused(course, capsys, words, says):
    assert run(course, *words) == cli.EXIT_FAILED
    assert says in capsys.readouterr().err
    assert not accepted.FILE.exists()


def test_a_slip_in_the_program_is_no_wish_of_the_user(course, monkeypatch):
    def tried(id, condition, made_by):
        raise ValueError("a slip")

    monkeypatch.setattr(seeds, "tried", tried)
    with pytest.raises(ValueError, match="a slip"):
        run(course)


@pytest.mark.parametrize(("file", "says"), [("claims_at_seeds.json", "is not a record of claims at seeds"),
                                            ("notebooks/02_b.ipynb", "02_b.ipynb is not readable as JSON")])
def test_a_broken_file_is_named(course, capsys, file, says):
    (course / file).write_text("{")
    assert run(course) == cli.EXIT_FAILED
    assert says in capsys.readouterr().err


def test_a_claim_that_cannot_be_read_is_named(course, capsys):
    path = course / "notebooks" / "02_b.ipynb"
    path.write_text(path.read_text().replace("<= 1'", "<= 1 or True'"))
    assert run(course) == cli.EXIT_FAILED
    assert "02_b.ipynb, cell 2, claim 02.not-at-all: " in capsys.readouterr().err
