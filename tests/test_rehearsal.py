"""What was rehearsed is loaded where training would give the same, and nowhere else."""

import inspect
import json
import linecache
import os
import random
import re
import time
import types
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_notebook
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader

from course_utils import cli
from course_utils import training as training_loop
from course_utils.course import course_root, numbered
from course_utils.data.text import EOS, TokenBatchSampler, collate, token_batches
from course_utils.exercises import EXERCISES
from course_utils.kernel import rehearsal
from course_utils.publish.notebooks import METADATA, execute, read, write
from course_utils.publish.tasks import alone, tasks
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit, inverse_sqrt

LOSS = """
def loss(model, points):
    return (scale * model(points) - points.sum()).square().mean(), len(points)
"""


@pytest.fixture(autouse=True)
def in_class(monkeypatch, tmp_path):
    """A notebook's kernel with an empty cache; `keep` and `load` say what happens there."""
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    monkeypatch.setattr(training_loop, "in_notebook", lambda: True)
    monkeypatch.delenv("COURSE_REHEARSAL")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def keep(monkeypatch):
    def kept(training):
        with monkeypatch.context() as patch:
            patch.setenv("COURSE_REHEARSAL", "a_notebook")
            return training()
    return kept


def from_notebook(code, **names):
    """A function as a notebook's cell defines it; its source can be read."""
    names |= {"__name__": "__main__"}
    cell = f"<cell {len(linecache.cache)}>"
    linecache.cache[cell] = len(code), None, code.splitlines(keepends=True), cell
    exec(compile(code, cell, "exec"), names)
    return names["loss"]


def a_line(code=LOSS, scale=1.0, seed=0, weight=None, points=20, **settings):
    """Train a line with a loss from a notebook; the model, its history, and how the points end."""
    torch.manual_seed(seed)
    model = nn.Linear(3, 1)
    if weight is not None:
        model.bias.data[0] = weight
    data = list(torch.arange(3.0 * points).view(-1, 2, 3) / points)
    history = fit(model, data, **{"steps": 3, "loss": from_notebook(code, scale=scale), "label": "a line"} | settings)
    return model, history


def a_translator():
    """With dropout, an order of batches that changes in every epoch, and a loss with random numbers of its own."""
    generator = torch.Generator().manual_seed(3)

    def loss(model, batch):
        logits, *_ = model(batch.source, batch.target[:, :-1], need_weights=False)
        hidden = torch.rand(batch.target[:, 1:].shape, generator=generator) < 0.5
        return nn.functional.cross_entropy(logits[hidden], batch.target[:, 1:][hidden]), int(hidden.sum())

    torch.manual_seed(1)
    words = [torch.randint(4, 9, (2 + i % 3,)) for i in range(30)]
    pairs = [(torch.tensor([*w, EOS]), torch.tensor([1, *w, EOS])) for w in words]
    model, batches = Seq2Seq(9, 9, 8, 8, attention="additive", dropout=0.2), token_batches(pairs, 40)
    history = fit(model, batches, 12, loss=loss, label="a translator")
    again = fit(model, batches, 5, loss=loss, label="again")              # goes on with all that the first has left
    return model, history, again, torch.rand(3), torch.rand(3, generator=generator), batches.batch_sampler.epoch


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


# --- it is the same -----------------------------------------------------------------------------------------------

def test_loading_gives_what_training_gives(keep, capsys):
    trained, kept, loaded = a_translator(), keep(a_translator), a_translator()
    said = capsys.readouterr().out
    assert len(re.findall(r"^(?:a translator|again): loaded as rehearsed on ", said, re.MULTILINE)) == 2
    for other in (kept, loaded):
        assert same(trained[0], other[0])
        assert (other[1].loss, other[1].grad_norm, other[1].tokens) == (
            trained[1].loss, trained[1].grad_norm, trained[1].tokens)
        assert other[2].loss == trained[2].loss
        assert all(torch.equal(a, b) for a, b in zip(trained[3:5], other[3:5], strict=True))
        assert other[5] == trained[5] > 1
    assert loaded[1].seconds == kept[1].seconds
    assert not loaded[0].training
    assert all(weight.grad is None for weight in loaded[0].parameters())


def test_it_says_what_was_loaded(keep, capsys, monkeypatch):
    told = []
    monkeypatch.setattr(rehearsal, "TOLD", [lambda *what: told.append(what)])
    a_line()
    keep(a_line)
    a_line()
    assert told == [("a line", False), ("a line", True)]
    said = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"a line: loaded as rehearsed on \d{4}-\d\d-\d\d, 3 steps in 0 s\.", said)


def test_a_cell_says_once_what_it_loaded(keep, capsys, monkeypatch):
    shell = InteractiveShell()
    monkeypatch.setattr(rehearsal, "get_ipython", lambda: shell)
    shell.user_ns["a_line"] = a_line
    keep(a_line)
    keep(lambda: a_line(seed=1))
    capsys.readouterr()
    for _ in range(2):
        shell.run_cell("a_line(); a_line(seed=1); print('a result')")
        first, said = capsys.readouterr().out.splitlines()
        assert first == "a result"
        assert re.fullmatch(r"2 trainings: loaded as rehearsed on \d{4}-\d\d-\d\d, 6 steps in 0 s\.", said)
    shell.run_cell("print('no training')")
    assert capsys.readouterr().out == "no training\n"
    shell.history_manager.end_session()


def test_comments_docstrings_and_lines_do_not_count(keep, capsys):
    keep(a_line)
    documented = LOSS.replace("    return", '    """The loss."""\n    return')
    a_line("\n\n\n" + documented.replace("len(points)", "len(points)  # so many"))
    assert "loaded" in capsys.readouterr().out


@pytest.mark.parametrize("path", numbered(course_root()), ids=lambda path: path.stem)
def test_the_courses_solution_stands_for_the_notebooks(path, capsys):
    """In class the exercise's cell hands back the course's; in the rehearsal the solution's cell ran."""
    def fixed(function):
        return rehearsal._Walk({"model": nn.Linear(1, 1), "function": function}).fixed.digest()

    notebook = read(path)
    chosen = [task for task in tasks(notebook) if task.function]
    answers = {task.stub.source: task.solution.source.split(f"\n\n{task.function} = check")[0] for task in chosen}
    cells = [answers.get(cell.source, cell.source) for cell in alone(notebook, chosen) if cell.cell_type == "code"]
    names = from_notebook("\n\n".join(cells) + "\ndef loss(): ...").__globals__
    for task in chosen:
        if task.function == "window_by_blocks":                         # calls the lesson's functions; trains nothing
            continue
        assert fixed(names[task.function]) == fixed(EXERCISES[task.function].solution), task.function
    plt.close("all")


def test_a_right_answer_counts_as_the_solution_once_it_stands_for_it():
    def fixed(function):
        return rehearsal._Walk({"model": nn.Linear(1, 1), "function": function}).fixed.digest()

    theirs = from_notebook("def loss(model, points):\n    return model(points).sum(), len(points)").__globals__["loss"]
    ours = EXERCISES["decoder_layer"].solution
    assert fixed(theirs) != fixed(ours)
    theirs.stands_for = ours
    assert fixed(theirs) == fixed(ours)


# --- stale is never loaded ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("change", [
    {"code": LOSS.replace("square", "abs")}, {"code": LOSS.replace("sum()", "sum() + 1")}, {"scale": 1.5},
    {"seed": 1}, {"weight": 0.5}, {"points": 22}, {"steps": 4}, {"lr": 1e-3},
    {"schedule": inverse_sqrt}, {"schedule": partial(inverse_sqrt, warmup=3)},
], ids=lambda change: next(iter(change)))
def test_another_training_is_not_loaded(keep, capsys, change):
    keep(a_line)
    trained = a_line(**change)
    assert "loaded" not in capsys.readouterr().out
    assert len(trained[1].loss) == change.get("steps", 3)


@pytest.mark.parametrize("environment", ["torch 0.1", "other code"])
def test_with_another_version_it_is_not_loaded(keep, capsys, monkeypatch, environment):
    keep(a_line)
    monkeypatch.setattr(rehearsal, "_environment", lambda: environment)
    a_line()
    assert "loaded" not in capsys.readouterr().out


def test_with_another_number_of_threads_it_is_not_loaded(keep, capsys):
    """Sums are then of other parts, and rounded otherwise."""
    keep(a_line)
    torch.set_num_threads(2)
    a_line()
    assert "loaded" not in capsys.readouterr().out
    torch.set_num_threads(1)
    a_line()
    assert "loaded" in capsys.readouterr().out


def test_the_environment_has_this_packages_code_and_versions(monkeypatch, tmp_path):
    rehearsal._environment.cache_clear()
    found = rehearsal._environment()
    assert torch.__version__ in found.split()
    (tmp_path / "model.py").write_text("width = 1")
    monkeypatch.setattr(rehearsal, "__file__", str(tmp_path / "kernel" / "rehearsal.py"))
    assert rehearsal._environment.__wrapped__().split()[1:] == found.split()[1:]
    before = rehearsal._environment.__wrapped__()
    assert before != found
    (tmp_path / "model.py").write_text("width = 2")
    changed = rehearsal._environment.__wrapped__()
    assert changed != before, "the same file with other content"
    (tmp_path / "publish").mkdir()
    (tmp_path / "publish" / "slides.py").write_text("height = 720")
    assert rehearsal._environment.__wrapped__() == changed, "what shows a lesson trains nothing"
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")       # as in a notebook that calls `setup`
    in_notebook = rehearsal._environment.__wrapped__()
    monkeypatch.delenv("ACCELERATE_USE_CPU")
    assert rehearsal._environment.__wrapped__() == in_notebook, "the command asks without `setup`"
    for what in ("torch.backends.cpu.get_cpu_capability", "platform.machine"):
        with monkeypatch.context() as patch:
            patch.setattr(what, lambda: "another")
            assert rehearsal._environment.__wrapped__() != in_notebook, what


def a_class(body):
    """A model whose class a notebook defines."""
    made = from_notebook(f"def helper(x):\n    return {body}\n\nclass Model(nn.Module):\n    def __init__(self):\n"
                         "        super().__init__()\n        self.layer = nn.Linear(3, 1)\n"
                         "    def forward(self, x):\n        return helper(self.layer(x))\nloss = Model", nn=nn)
    torch.manual_seed(0)
    return made()


def test_a_models_code_counts_and_what_it_calls(keep, capsys):
    loss = from_notebook(LOSS, scale=1.0)

    def training(body):
        return fit(a_class(body), [torch.ones(2, 3)], 2, loss=loss, label="m")

    keep(lambda: training("x.tanh()"))
    training("x.tanh()")
    assert "m: loaded" in capsys.readouterr().out
    training("x.relu()")
    assert "loaded" not in capsys.readouterr().out


def test_the_order_of_batches_counts(keep, capsys):
    pairs = [(torch.tensor([i, EOS]), torch.tensor([1, i, EOS])) for i in range(4, 9)]

    def training(seed):
        torch.manual_seed(0)
        sampler = TokenBatchSampler([(2, 2)] * 5, 6, seed)
        return fit(Seq2Seq(9, 9, 4, 4, attention="dot"), DataLoader(pairs, batch_sampler=sampler, collate_fn=collate),
                   2, label="m")

    keep(lambda: training(0))
    training(1)
    assert "loaded" not in capsys.readouterr().out
    training(0)
    assert "m: loaded" in capsys.readouterr().out


# --- when it does nothing -----------------------------------------------------------------------------------------

def test_outside_a_notebook_and_when_asked_it_trains(keep, capsys, monkeypatch):
    keep(a_line)
    monkeypatch.setattr(training_loop, "in_notebook", lambda: False)
    a_line()
    monkeypatch.setattr(training_loop, "in_notebook", lambda: True)
    monkeypatch.setenv("COURSE_REHEARSAL", "off")
    a_line()
    assert "loaded" not in capsys.readouterr().out


def test_without_a_rehearsal_nothing_is_summed_up(monkeypatch):
    monkeypatch.setattr(rehearsal, "_Walk", lambda arguments: pytest.fail("it was"))
    a_line()


def test_what_cannot_be_summed_up_is_trained_and_not_kept(keep, tmp_path, capsys):
    source = (i for i in range(9))
    loss = from_notebook(LOSS.replace("scale", "(1 + next(source))"), source=source)
    keep(lambda: fit(nn.Linear(3, 1), [torch.ones(2, 3)], 2, loss=loss, label="a line"))
    assert next(source) == 2
    assert list(tmp_path.rglob("*.safetensors")) == []
    assert "a line: cannot be rehearsed, so it is trained in class: a generator cannot be summed up" in (
        capsys.readouterr().out)
    keep(a_line)                                           # in class, with something kept, it only trains
    fit(nn.Linear(3, 1), [torch.ones(2, 3)], 2, loss=loss)
    assert "cannot be" not in capsys.readouterr().out


def test_a_training_that_changes_what_cannot_be_put_back_is_not_kept(keep, tmp_path, capsys):
    seen = []
    loss = from_notebook(LOSS.replace("    return", "    seen.append(len(seen))\n    return"), scale=1.0, seen=seen)
    keep(lambda: fit(nn.Linear(3, 1), [torch.ones(2, 3)], 2, loss=loss))
    assert len(seen) == 2
    assert list(tmp_path.rglob("*.safetensors")) == []
    assert "it changes something that loading could not put back" in capsys.readouterr().out


@pytest.mark.parametrize(("draw", "names"), [
    ("random.random()", {"random": random}), ("np.random.rand()", {"np": np})])
def test_a_training_that_draws_from_python_or_numpy_is_not_kept(keep, tmp_path, draw, names):
    loss = from_notebook(LOSS.replace("scale", draw), **names)
    keep(lambda: fit(nn.Linear(3, 1), [torch.ones(2, 3)], 2, loss=loss))
    assert list(tmp_path.rglob("*.safetensors")) == []
    keep(a_line)                                           # which draws from neither
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1


def test_an_interrupted_training_is_not_kept(keep, tmp_path):
    def stop(model, points):
        raise KeyboardInterrupt

    keep(lambda: fit(nn.Linear(3, 1), [torch.ones(2, 3)], 2, loss=stop))
    assert list(tmp_path.rglob("*.safetensors")) == []


def test_a_broken_file_is_trained_over(keep, capsys, tmp_path):
    keep(a_line)
    (file,) = tmp_path.rglob("*.safetensors")
    file.write_bytes(b"broken")
    assert len(a_line()[1].loss) == 3
    assert "cannot be read" in capsys.readouterr().out


def test_a_decorated_fit_looks_like_itself():
    assert fit.__name__ == "fit"
    assert list(inspect.signature(fit).parameters)[:3] == ["model", "batches", "steps"]
    assert isinstance(fit, types.FunctionType)


# --- the command --------------------------------------------------------------------------------------------------

CELLS = ("import torch\nfrom torch import nn\nfrom course_utils import setup\nfrom course_utils.training import fit\n"
         "seed = setup()", LOSS, "scale = 1.0\nmodel = nn.Linear(3, 1)",
         'history = fit(model, [torch.ones(2, 3)], 4, loss=loss, label="it")', "print(model.weight.sum().item())")


def test_what_another_package_kept_is_not_promised(tmp_path, monkeypatch):
    (tmp_path / "01_line.ipynb").touch()
    kept = rehearsal.folder() / "01_line" / "a.safetensors"
    kept.parent.mkdir(parents=True)
    save_file({"x": torch.zeros(1)}, kept, {"about": json.dumps({"environment": rehearsal._environment()})})
    assert "will be loaded: 1." in cli._rehearsed(tmp_path / "01_line.ipynb")
    monkeypatch.setattr(rehearsal, "_environment", lambda: "another package")
    assert "by other code than is here now" in cli._rehearsed(tmp_path / "01_line.ipynb")


def test_a_rehearsal_that_fails_leaves_what_was_kept(tmp_path, capsys):
    path = tmp_path / "notebooks" / "01_line.ipynb"
    path.parent.mkdir()
    write(new_notebook(cells=[new_code_cell(cell) for cell in CELLS], metadata=METADATA), path)
    assert cli.main(["rehearse", "01"], root=tmp_path) == cli.EXIT_OK
    kept = [*tmp_path.rglob("*.safetensors")]
    write(new_notebook(cells=[new_code_cell("1 / 0")], metadata=METADATA), path)
    assert cli.main(["rehearse", "01"], root=tmp_path) == cli.EXIT_FAILED
    assert [*tmp_path.rglob("*.safetensors")] == kept != []


def test_the_command_says_what_it_cannot_keep(tmp_path, capsys):
    path = tmp_path / "notebooks" / "01_line.ipynb"
    path.parent.mkdir()
    loss = "source = (i for i in range(9))\n" + LOSS.replace("scale", "(1 + next(source))")
    write(new_notebook(cells=[new_code_cell(cell) for cell in (CELLS[0], loss, *CELLS[2:])], metadata=METADATA), path)
    assert cli.main(["rehearse", "01"], root=tmp_path) == cli.EXIT_OK
    told, kept = capsys.readouterr().out.splitlines()[-2:]
    assert told == "it: cannot be rehearsed, so it is trained in class: a generator cannot be summed up"
    assert "trainings kept: 0" in kept


def test_the_command_keeps_and_a_kernel_in_class_loads(tmp_path, capsys):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    path = folder / "01_line.ipynb"
    write(new_notebook(cells=[new_code_cell(cell) for cell in CELLS], metadata=METADATA), path)
    before = path.read_bytes()
    assert cli.main(["rehearse", "01"], root=tmp_path) == cli.EXIT_OK
    assert "trainings kept: 1, 0.0 MB" in capsys.readouterr().out
    assert path.read_bytes() == before
    assert "rehearsed trainings that will be loaded: 1." in cli._rehearsed(path)

    def outputs(run):
        return "".join(output.get("text", "") for cell in run.notebook.cells for output in cell.outputs)

    live = outputs(execute(path))
    assert "loaded" not in live                        # `course run` trains, whatever is kept
    write(new_notebook(cells=[new_code_cell("%env COURSE_REHEARSAL="), *(new_code_cell(cell) for cell in CELLS)],
                       metadata=METADATA), path)
    later = time.time() + 1
    os.utime(path, (later, later))
    assert "by other code than is here now, so trainings may run in class. Type: course rehearse 01_line" in \
        cli._rehearsed(path)
    loaded = outputs(execute(path))                    # as a kernel of JupyterLab begins: without the variable's value
    assert "it: loaded as rehearsed on" in loaded
    assert live.splitlines()[-1] in loaded.splitlines()
    assert cli.main(["rehearse", "01"], root=tmp_path) == cli.EXIT_OK
    assert "nothing is rehearsed" in cli._rehearsed(path)
    assert list(tmp_path.rglob("*.safetensors")) == []                # the old ones are gone, and this one trains
