"""Imports run one way: notebooks → models → attention → torch; plotting → widgets, which need nothing of the course."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import course_utils
from course_utils import data, widgets

PACKAGE = Path(course_utils.__file__).parent
# A room of the package, and the rooms that it may import. What is not here is not allowed.
ALLOWED = {
    "__init__": {"course", "plotting"},
    "attention": {"arguments"},
    "bert": {"arguments", "course", "data.download", "data.wordpiece", "models", "transformer"},
    "beam_tree": {"arguments", "data.text", "decoding", "models"},
    "claims": {"course", "publish", "widgets.colours"},
    "arguments": set(),
    "cli": {"claims", "course", "doctor", "exercises", "gpt", "kernel", "publish"},
    "course": set(),
    "data": {"course"},
    "decoding": {"attention", "arguments", "data.text", "models"},
    "doctor": {"bert", "course"},
    "efficient": {"attention", "arguments"},
    "exercises": {"attention", "bert", "course", "data.text", "metrics", "pretraining", "widgets.colours"},
    "gpt": {"attention", "arguments", "course", "data.download", "decoding", "models", "transformer"},
    "kernel": {"course", "data.download", "gpt", "plotting"},
    "language_models": {"attention", "arguments", "efficient", "models", "transformer"},
    "measuring": set(),
    "metrics": {"attention", "arguments", "data.BUCKETS", "data.text"},
    "models": set(),
    "plotting": {"widgets"},
    "pretraining": {"arguments", "bert", "data.wordpiece", "models", "training", "transformer"},
    "publish": {"course", "widgets"},
    "seq2seq": {"attention", "arguments", "data.text", "models"},
    "sizes": {"bert", "gpt", "language_models", "transformer"},
    "training": {"arguments", "data.text", "kernel", "plotting"},
    "transformer": {"attention", "arguments", "data.text", "models"},
    "vision": {"arguments", "models", "training", "transformer"},
    "widgets": set(),
}
# Of these, what only a function may import, when it is called.
LATE = {"training": {"kernel"}}
OUTSIDE = {"notebooks", "tests", *(path.stem for path in Path(__file__).parent.glob("*.py"))}


def imported(source: str, module: tuple[str, ...]) -> set[str]:
    """Full names of all that a module imports, also inside functions.

    ``module`` is the module's name in parts, ``"__init__"`` included. Of ``from a import b`` both ``a`` and ``a.b``
    are given, since ``b`` may be a module.
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = [*module[:len(module) - node.level]] if node.level else []
            origin = ".".join([*start, *filter(None, [node.module])])
            names |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
    return names


def at_once(source: str) -> str:
    """A module without the bodies of its functions, whose imports wait for a call."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Pass()]
    return ast.unparse(tree)


def within(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def wrong_imports(source: str, module: tuple[str, ...]) -> list[str]:
    """What a module of the package imports and may not."""
    room, names = module[1], imported(source, module)
    ours = {name.removeprefix("course_utils.") for name in names if name.startswith("course_utils.")}
    # of "from .data.text import PAD" the names are "data.text" and "data.text.PAD"
    allowed = {name for name in ours if any(within(name, other) for other in ALLOWED[room] | {room})}
    # "from . import x" gives "course_utils" itself, "from .data import text" gives "data", which "data.text" explains
    whole = {name for name in ours if any(longer != name and within(longer, name) for longer in allowed)}
    outside = {name for name in names if name.split(".")[0] in OUTSIDE}
    return sorted((ours - allowed - whole) | outside)


def modules() -> list[tuple[Path, tuple[str, ...]]]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return [(path, ("course_utils", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in paths]


@pytest.mark.parametrize(("path", "module"), modules(), ids=lambda value: ".".join(value[1:])
                         if isinstance(value, tuple) else "")
def test_imports_run_one_way(path, module):
    assert module[1] in ALLOWED, f"{module[1]} is new; write into the table of this test what it may import"
    assert wrong_imports(path.read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize("room", LATE)
def test_what_is_imported_late_is_not_imported_at_once(room):
    source = (PACKAGE / f"{room}.py").read_text(encoding="utf-8")
    for other in LATE[room]:
        waits = "course_utils." + other
        assert any(within(name, waits) for name in imported(source, ("course_utils", room)))
        assert not any(within(name, waits) for name in imported(at_once(source), ("course_utils", room)))
    back = f"from .{other}.rehearsal import train_or_load\n{source}"
    assert any(within(name, waits) for name in imported(at_once(back), ("course_utils", room)))


def test_every_row_of_the_table_has_its_room():
    assert {module[1] for _, module in modules()} == set(ALLOWED)


def test_every_import_that_is_allowed_is_made():
    made = {room: set() for room in ALLOWED}
    for path, module in modules():
        made[module[1]] |= imported(path.read_text(encoding="utf-8"), module)
    unused = [(room, other) for room, others in ALLOWED.items() for other in others
              if not any(within(name, f"course_utils.{other}") for name in made[room])]
    assert unused == []


def test_no_module_of_the_claims_comes_back_to_itself():
    """Not by a late import either."""
    rest = {path.stem: {name.split(".")[2] for name in imported(path.read_text(encoding="utf-8"), module)
                        if name.startswith("course_utils.claims.")}
            for path, module in modules() if module[1] == "claims" and path.stem != "__init__"}
    while first := [name for name, others in rest.items() if not others & rest.keys()]:
        rest = {name: others for name, others in rest.items() if name not in first}
    assert rest == {}


def test_no_test_file_imports_another():
    found = {file.name: [name for name in imported(file.read_text(encoding="utf-8"), ("tests", file.stem))
                         if name.split(".")[-1].startswith("test_") and name.split(".")[0] != "course_utils"]
             for file in Path(__file__).parent.glob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}


def test_attention_needs_torch_and_its_checks_and_nothing_else():
    for name, others in (("attention", {"course_utils"}), ("arguments", set())):
        tops = {found.split(".")[0] for found in imported((PACKAGE / f"{name}.py").read_text(encoding="utf-8"),
                                                          ("course_utils", name))}
        assert tops - sys.stdlib_module_names == {"torch"} | others


@pytest.mark.parametrize(("module", "line", "wrong"), [
    ("data.text", "from ..seq2seq import Seq2Seq", ["seq2seq", "seq2seq.Seq2Seq"]),
    ("data.__init__", "from ..attention import SCORES", ["attention", "attention.SCORES"]),
    ("attention", "from . import seq2seq", ["seq2seq"]),
    ("attention", "import course_utils.data", ["data"]),
    ("widgets.base", "def late():\n    from ..seq2seq import Memory", ["seq2seq", "seq2seq.Memory"]),
    ("plotting", "from course_utils import decoding as d", ["decoding"]),
    ("plotting", "from .training import fit", ["training", "training.fit"]),
    ("seq2seq", "from .data.grammar import corpus", ["data.grammar", "data.grammar.corpus"]),
    ("seq2seq", "from .data import corpus", ["data", "data.corpus"]),
    ("claims", "import notebooks.lesson", ["notebooks.lesson"]),
    ("claims", "from tests.synthetic import lesson", ["tests.synthetic", "tests.synthetic.lesson"]),
    ("claims", "import synthetic", ["synthetic"]),
    ("seq2seq", "import torch\nfrom .attention import SCORES\nfrom .data.text import PAD", []),
    ("seq2seq", "from .data import text", []),
    ("widgets.still", "from ..plotting import KEY", ["plotting", "plotting.KEY"]),
    ("widgets.still", "from .colours import KEY\nfrom . import base", []),
])
def test_a_wrong_import_is_seen_and_a_right_one_is_not(module, line, wrong):
    assert wrong_imports(line, ("course_utils", *module.split("."))) == wrong


def test_models_and_metrics_load_no_grammar_and_no_downloads():
    code = """
import sys
from course_utils import decoding, metrics, seq2seq, transformer
print(*sorted({f"course_utils.data.{name}" for name in ("download", "grammar", "lexicon", "reviews")} & {*sys.modules}))
from course_utils.data import EXAMPLE, Pair, grammar
print(isinstance(EXAMPLE, Pair) and Pair is grammar.Pair)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["", "True", ""]


def test_training_loads_no_widget_and_no_memory():
    """The memory of rehearsals waits for a notebook's kernel. Of the widgets only what plots share with them: the
    colours, and the still picture of a matrix."""
    code = "import sys, course_utils.training\nprint(*sorted({'anywidget'} & {*sys.modules}), *sorted(" \
           "name.partition('.')[2] for name in sys.modules if name.startswith('course_utils.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "arguments", "data", "data.text", "plotting", "training", "widgets", "widgets.colours", "widgets.still",
        "widgets.tensors"]


@pytest.mark.parametrize("room", [data, widgets], ids=lambda room: room.__name__)
def test_every_name_of_a_room_can_be_imported_and_no_other(room):
    assert all(getattr(room, name) is not None for name in room.__all__)
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError, match=f"'{room.__name__}' has no attribute 'corpora'"):
        room.corpora  # noqa: B018


def test_what_a_student_reads_fits_an_evening():
    """The modules that lessons build and use; what serves them stands in rooms of its own."""
    read = [*PACKAGE.glob("*.py"), PACKAGE / "data" / "text.py"]
    serving = {"__init__.py", "arguments.py", "beam_tree.py", "cli.py", "course.py", "doctor.py", "measuring.py",
               "sizes.py", "vision.py"}  # the trees: of a further notebook; the last two: of lessons 07 and 08
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines())
             for path in read if path.name not in serving}
    assert sum(lines.values()) < 2970, lines
