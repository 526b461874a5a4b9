"""Rehearsed training: what ``course rehearse`` trained is loaded in class if training again would give the same result.

A training is identified by a hash of everything that determines it: the model's weights and code, the data, the loss,
the settings, the random state, this package, the versions and the processor. Nothing stale is ever loaded.
"""

import ast
import dis
import hashlib
import inspect
import json
import os
import platform
import random
import types
import weakref
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from datetime import date
from functools import cache, partial
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import accelerate
import numpy as np
import torch
from IPython import get_ipython
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ..course import LOADED, REHEARSAL, TOLD, UNKEPT, write_file
from ..plotting import LiveCurve

LIVE = "off"                                               # the value of COURSE_REHEARSAL at which all is trained
MARK = "_is_accelerate_prepared"                           # accelerate's, on each model that it has seen
SIMPLE = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice, torch.dtype, torch.device,
          torch.Size, np.dtype, np.generic, Path)
LOADS = []                                                 # of the cell that runs: label, day, steps, seconds
BY_NAME = (types.ModuleType, types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType,
           types.WrapperDescriptorType, types.GetSetDescriptorType, np.ufunc)
CODE = (types.MethodType, types.FunctionType, partial, staticmethod, classmethod, property, type, *BY_NAME)


def train_or_load(fit: Callable, result: type, model: nn.Module, *args, **settings):
    """What ``fit(model, *args, **settings)`` returns, in a notebook: as rehearsed, and it says so, or else trained.

    ``result`` is the class of what `fit` returns, made anew of a kept training. The environment variable
    ``COURSE_REHEARSAL`` overrides this: ``off`` always trains; any other value (set by ``course rehearse``) names the
    folder in which trainings are kept.
    """
    mode = os.environ.get(REHEARSAL, "")
    waits = mode or any_kept()
    if mode == LIVE or not (waits or TOLD):
        return fit(model, *args, **settings)
    call = inspect.signature(fit).bind(model, *args, **settings)
    label = call.arguments.get("label", "the model")
    call.apply_defaults()
    before = _walked(call.arguments) if waits else None
    kept = _load(model, before, call.arguments) if before and not mode else None
    for tell in TOLD if not mode else ():
        tell(label, kept is not None)
    if kept:
        return result(**kept)
    history = fit(model, *args, **settings)
    if before and mode and not history.interrupted:
        _keep(folder() / mode / f"{before.key}.safetensors", model, history, before, call.arguments)
    return history


def folder() -> Path:
    """Where trainings are kept, a folder for each notebook."""
    from ..data.download import data_folder

    return data_folder() / "rehearsed"


def is_current(file: Path) -> bool:
    """Whether a kept training was made by this package, with these versions, on a processor of this kind."""
    with suppress(SafetensorError, OSError), safe_open(file, "pt") as kept:
        return json.loads(kept.metadata()["about"]).get("environment") == _environment()
    return False


def any_kept() -> bool:
    """Whether anything is kept."""
    with suppress(ValueError):                             # of a COURSE_DATA that is no folder
        return any(folder().glob("*/*.safetensors"))
    return False


def _walked(arguments: Mapping) -> "_Walk | None":
    """None if anything cannot be hashed: then it is trained. A rehearsal says what it was."""
    try:
        return _Walk(arguments)
    except Exception as problem:
        _tell_unkept(arguments, str(problem))
        return None


def _tell_unkept(arguments: Mapping, why: str) -> None:
    if os.environ.get(REHEARSAL):
        print(f"{arguments['label']}: {UNKEPT}, so it is trained in class: {why}")


def _keep(path: Path, model: nn.Module, history, before: "_Walk", arguments: Mapping) -> None:
    """Save weights, history, and other state that the training changed: random states, counters such as epochs."""
    if (after := _walked(arguments)) is None:
        return
    if (after.fixed.digest(), after.others) != (before.fixed.digest(), before.others):
        _tell_unkept(arguments, "it changes something that loading could not put back")
        return
    tensors = {f"model.{name}": weight for name, weight in model.state_dict().items()}
    tensors |= {"loss": torch.tensor(history.loss, dtype=torch.float64),
                "grad_norm": torch.tensor(history.grad_norm, dtype=torch.float64)}
    states = [state.value() for state in after.states]
    tensors |= {f"state.{i}": value for i, value in enumerate(states) if isinstance(value, Tensor)}
    numbers = [None if isinstance(value, Tensor) else value for value in states]
    about = {"tokens": history.tokens, "seconds": history.seconds, "numbers": numbers, "day": str(date.today()),
             "environment": _environment()}
    write_file(path, save({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()},
                          {"about": json.dumps(about)}))


def _load(model: nn.Module, before: "_Walk", arguments: Mapping) -> dict | None:
    """Restore the state after the training with this key; returns its history's fields, None if none was kept."""
    path = next(folder().glob(f"*/{before.key}.safetensors"), None)
    if path is None:
        return None
    try:
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["about"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}    # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as problem:
        print(f"{path} cannot be read ({problem}); it is trained.")
        return None
    model.load_state_dict({name.removeprefix("model."): tensor for name, tensor in tensors.items()
                           if name.startswith("model.")})
    for i, (state, number) in enumerate(zip(before.states, about["numbers"], strict=True)):
        state.put(tensors.get(f"state.{i}", number))
    model.zero_grad()
    loss, label = tensors["loss"].tolist(), arguments["label"]
    _say(label, about["day"], len(loss), about["seconds"])
    if arguments["live"]:
        LiveCurve(label, arguments["steps"], unit=arguments["unit"]).update(loss, final=True)
    return {"loss": loss, "grad_norm": tensors["grad_norm"].tolist(), "tokens": about["tokens"],
            "seconds": about["seconds"]}


def _say(*load) -> None:
    """Say what was loaded: in a notebook once per cell, at its end, since one cell may load fifteen."""
    if (shell := get_ipython()) and not LOADS:
        shell.events.register("post_run_cell", _say_all)
    LOADS.append(load)
    if not shell:
        _say_all()


def _say_all(_=None) -> None:
    if shell := get_ipython():
        shell.events.unregister("post_run_cell", _say_all)
    labels, days, steps, seconds = zip(*LOADS, strict=True)
    what = labels[0] if len(LOADS) == 1 else f"{len(LOADS)} trainings"
    LOADS.clear()
    print(f"{what}: {LOADED} on {max(days)}, {sum(steps)} steps in {sum(seconds):.0f} s.")


@cache
def _environment() -> str:
    """What determines a training besides its arguments: this package's code, the versions, the processor."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] in ("claims", "cli.py", "doctor.py", "publish", "widgets"):
            continue
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode() + path.read_bytes())
    return " ".join([digest.hexdigest(), platform.python_version(), torch.__version__, np.__version__,
                     accelerate.__version__, platform.machine(), torch.backends.cpu.get_cpu_capability(),
                     str(torch.cuda.is_available()), os.environ.get("ACCELERATE_USE_CPU", "true")])    # `setup` sets it


class _State(NamedTuple):
    """State that a training changes and loading can restore: a random state, or a number in an object."""

    value: Callable
    put: Callable


class _Walk:
    """Hashes a training's arguments and everything that they refer to.

    Attributes:
        fixed: the hash of what training does not change.
        others: the random states of Python and NumPy; a training that draws from them is not kept.
        states: random states and numbers, in the order in which they were met.
        key: of the training: both, and of its environment.
    """

    def __init__(self, arguments: Mapping):
        self.fixed, self.states, self.seen = hashlib.sha256(), [], {}
        self.trained = {id(tensor) for tensor in arguments["model"].state_dict(keep_vars=True).values()}
        self.varied = hashlib.sha256()
        self.others = random.getstate(), repr(np.random.get_state())
        self.states.append(_State(torch.get_rng_state, torch.set_rng_state))
        self.add({name: value for name, value in arguments.items() if name not in ("label", "live", "unit")})
        for state in self.states:
            value = state.value()
            self.varied.update(value.numpy().tobytes() if isinstance(value, Tensor) else repr(value).encode())
        parts = (self.fixed.hexdigest(), self.varied.hexdigest(), _environment(), str(torch.get_num_threads()))
        self.key = hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def add(self, value) -> None:
        """One value and what it refers to; each object once."""
        if isinstance(value, Tensor):
            self.tensor(value)
            return
        kind = type(value)
        self.word(f"{kind.__module__}.{kind.__qualname__}")
        if isinstance(value, SIMPLE):
            self.word(repr(value))
        elif id(value) in self.seen:
            self.word(f"again {self.seen[id(value)][0]}")
        else:
            self.seen[id(value)] = len(self.seen), value   # keeps it alive, so that its id is its own
            self.object(value)

    def word(self, text: str) -> None:
        """A piece of text, with its end marked."""
        self.fixed.update(text.encode() + b"\0")

    def object(self, value) -> None:
        """A value that may refer to others."""
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.word(f"{value.dtype} {value.shape}")
            self.fixed.update(value.tobytes())
        elif isinstance(value, torch.Generator):
            self.states.append(_State(value.get_state, value.set_state))
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self.add(key)
                self.add(item)
            self.attributes(value)
        elif isinstance(value, list | tuple):
            self.word(str(len(value)))
            for item in value:
                self.add(item)
        elif isinstance(value, Set):
            for item in sorted(value, key=repr):
                self.add(item)
        elif isinstance(value, weakref.ref):
            self.add(value())
        elif isinstance(value, CODE):
            self.code(value)
        elif hasattr(value, "__dict__") and not hasattr(value, "__next__"):
            self.add(type(value))
            self.attributes(value)
        else:
            raise TypeError(f"a {type(value).__name__} cannot be summed up")

    def code(self, value) -> None:
        """A function, a method or a class, or what holds one."""
        if isinstance(value, types.MethodType):
            self.add(value.__self__)
            self.add(value.__func__)
        elif isinstance(value, partial):
            self.add((value.func, value.args, value.keywords))
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, staticmethod | classmethod):
            self.add(value.__func__)
        elif isinstance(value, property):
            self.add((value.fget, value.fset))
        elif isinstance(value, type):
            self.type(value)
        else:
            self.word(getattr(value, "__qualname__", value.__name__))

    def tensor(self, value: Tensor) -> None:
        """Shape, type and numbers; those of weights are summed apart, because training changes them."""
        if value.layout != torch.strided or value.device.type != "cpu":
            raise TypeError(f"a tensor on {value.device} cannot be summed up")
        self.word(f"tensor {value.dtype} {value.shape} {value.requires_grad}")
        (self.varied if id(value) in self.trained else self.fixed).update(value.detach().numpy().tobytes())

    def attributes(self, value) -> None:
        """An object's attributes; numbers among them may change and are put back."""
        for name, item in getattr(value, "__dict__", {}).items():
            if name == MARK:
                continue
            self.word(name)
            if isinstance(item, bool | int | float):
                self.states.append(_State(partial(value.__dict__.get, name), partial(value.__dict__.__setitem__, name)))
            else:
                self.add(item)

    def function(self, value: types.FunctionType) -> None:
        """A notebook's function, or an exercise's, by its code and all that the code names; another by its name.

        A student's, found right, counts as the solution in live slides.
        """
        value = getattr(value, "stands_for", value)
        self.add((value.__defaults__, value.__kwdefaults__, [cell.cell_contents for cell in value.__closure__ or ()]))
        if _by_code(value):
            self.source(value)
        else:
            self.word(f"{value.__module__}.{value.__qualname__}")

    def source(self, value: types.FunctionType) -> None:
        """What is written, and the globals that it loads; comments, docstrings and lines do not count.

        Byte code will not do: the same lines give another one where the module is imported in the same cell.
        """
        written = ast.parse(dedent(inspect.getsource(value))).body[0]
        if value.__doc__:
            del written.body[0]
        self.word(ast.dump(written))
        for name in dict.fromkeys(_loaded(value.__code__)):
            if name in value.__globals__:
                self.word(name)
                self.add(value.__globals__[name])

    def type(self, value: type) -> None:
        """A notebook's class by what it defines; another by its name."""
        self.word(f"{value.__module__}.{value.__qualname__}")
        if _by_code(value):
            self.add(value.__bases__)
            for name, item in vars(value).items():
                if not name.startswith("__") or isinstance(item, types.FunctionType):
                    self.word(name)
                    self.add(item)


def _loaded(code: types.CodeType) -> list[str]:
    """The names of globals that code loads, that of inner functions too."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    own = [step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return sum(map(_loaded, inner), own)


def _by_code(value) -> bool:
    """Whether it is compared by its code: a notebook's, or an exercise's solution, which may replace it."""
    return value.__module__ == "__main__" or getattr(value, "is_solution", False)
