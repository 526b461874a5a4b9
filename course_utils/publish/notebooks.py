"""Find the course's notebooks, execute them, read and write them."""

import base64
import logging
import mimetypes
import os
import platform
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import nbformat
import psutil
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from ..course import KEEP_GOING, REHEARSAL, SEED, CourseError, cpu_facts, is_further, numbered, write_file

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
MINUTES = re.compile(r"(?<=· )(\d*)(½?) min\.")
_IMAGE = re.compile(r"(!\[[^\]]*\]\(|<img\b[^>]*?\bsrc=\")(?!https?:|data:|attachment:)([^)\"\s]+)")


class CellError(CourseError):
    """A cell raised, or its kernel died.

    Attributes:
        cell: number of the cell in the notebook, counted from 1, text cells included.
        source: the cell's code.
        traceback: the kernel's traceback with its terminal colours, or one line when there is none.
    """

    def __init__(self, cell: int, source: str, traceback: str):
        super().__init__(f"cell {cell} failed")
        self.cell, self.source, self.traceback = cell, source, traceback


@dataclass(frozen=True)
class Run:
    """One execution: the executed notebook, the seconds it took, and the kernel's peak memory in bytes."""

    notebook: NotebookNode
    seconds: float
    peak_memory: int


def find(name: str | None, root: Path) -> list[Path]:
    """The lesson with this number, the notebook with this name or path, or with ``None`` every numbered notebook.

    Args:
        name: ``"02"``, ``"2"``, ``"02_bahdanau_attention"`` with or without ``.ipynb``, or the path of any notebook.
            A number is the lesson's; its further notebooks have names.
        root: the folder that holds ``notebooks/``.

    Raises:
        CourseError: if there is none, or several have the number; the message lists them.
    """
    everything = numbered(root)
    if name is None:
        found = everything
    elif Path(name).suffix == ".ipynb" and Path(name).is_file():
        found = [Path(name).resolve()]
    else:
        found = [path for path in everything if name in (path.name, path.stem)
                 or path.name[:2] == name.zfill(2) and not is_further(path)]
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise CourseError(f"{len(found)} notebooks have the number {name!r}: {names}. Keep one of them, and give "
                              "the others names without a number in front, such as my_copy.ipynb.")
    if found:
        return found
    there = "\n  ".join(path.name for path in everything) or "(none yet)"
    what = "no notebook" if name is None else f"no notebook with the number, name or path {name!r}"
    raise CourseError(f"{what} in {root / 'notebooks'}. There is:\n  {there}")


def read(path: Path) -> NotebookNode:
    """Read a notebook.

    Raises:
        CourseError: if the file is not a notebook.
    """
    try:
        return nbformat.read(path, as_version=4)
    except (ValueError, KeyError, AttributeError) as problem:
        raise CourseError(f"{path} is not readable as a notebook: {problem}") from problem


def write(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook in one step: the file is either the old one or the new one, never half of it."""
    write_file(path, nbformat.writes(notebook) + "\n")


def execute(path: Path, seed: int | None = None, tell: Callable[[int, int], None] = lambda cell, of: None,
            cells: int | None = None, keep_going: bool = False, rehearse: bool = False) -> Run:
    """Execute a notebook from top to bottom in a fresh kernel, without writing it.

    Args:
        path: the notebook; its folder is the kernel's working folder.
        seed: becomes the kernel's ``COURSE_SEED``; ``None`` leaves the notebook's own seed.
        tell: called with (cell, number of cells) before each cell.
        cells: how many of its cells are executed; ``None`` for all.
        keep_going: pass over cells that raise; the error is in their output. Claims that surprise do not raise, which
            nothing else decides: a variable ``COURSE_KEEP_GOING`` around this process does not reach the kernel.
        rehearse: keep what is trained (`course_utils.kernel.rehearsal`). Else it is trained and not kept; never loaded.

    Returns:
        The executed and tidied notebook (see `tidy`), its time and its memory.

    Raises:
        CellError: if a cell raises and neither is tagged ``raises-exception`` nor passed over, or the kernel dies.
    """
    notebook = read(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    environment = {**os.environ, SEED: "" if seed is None else str(seed), KEEP_GOING: "1" * keep_going,
                   REHEARSAL: path.stem if rehearse else "off",
                   "PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # else the debugger warns on standard error
    client = NotebookClient(notebook, timeout=None, kernel_name="python3", record_timing=False,
                            resources={"metadata": {"path": str(path.parent)}},
                            coalesce_streams=True)  # a progress bar leaves its last line
    start = time.perf_counter()
    # Standard error is the kernel's own chatter: what cells write there comes back as their output.
    with (
        client.setup_kernel(env={name: value for name, value in environment.items() if value},
                            stderr=subprocess.DEVNULL),
        _peak_memory(client.km.provisioner.pid) as peak,
    ):
        for index, cell in enumerate(notebook.cells[:cells]):
            tell(index + 1, len(notebook.cells))
            try:
                client.execute_cell(cell, index, execution_count=client.code_cells_executed + 1)
            except CellExecutionError:
                if keep_going:
                    continue
                error = next(output for output in cell.outputs if output.output_type == "error")
                raise CellError(index + 1, cell.source, "\n".join(error.traceback)) from None
            except DeadKernelError:
                reason = "The kernel died. Most often the machine ran out of memory: close programs and run again."
                raise CellError(index + 1, cell.source, reason) from None
            except KeyboardInterrupt:
                # the unfinished cell would complain that its kernel is shut down
                logging.getLogger("asyncio").disabled = True
                raise
    seconds = time.perf_counter() - start
    notebook.metadata.processor = processor()
    return Run(tidy(notebook), seconds, peak())


@contextmanager
def _peak_memory(pid: int) -> Iterator[Callable[[], int]]:
    """Watch a process and the processes it started; the value, called, gives the largest sum of memory seen."""
    largest, stop = 0, threading.Event()

    def look() -> None:
        nonlocal largest
        while not stop.wait(0.1):
            try:
                kernel = psutil.Process(pid)
                family = [kernel, *kernel.children(recursive=True)]
                largest = max(largest, sum(process.memory_info().rss for process in family))
            except psutil.Error:
                continue  # one of them has just ended

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield lambda: largest
    finally:
        stop.set()
        watcher.join()


def tidy(notebook: NotebookNode) -> NotebookNode:
    """Remove from an executed notebook what differs between machines and runs: widget state, times, versions.

    A saved widget view shows "Loading widget…" for ever when the notebook is opened again without running it;
    without the view its HTML or picture is shown.
    """
    from ..widgets import strip_widget_state

    notebook = strip_widget_state(notebook)
    notebook.metadata.update(deepcopy(METADATA))
    for cell in notebook.cells:
        for key in ("execution", "ExecuteTime", "trusted"):
            cell.metadata.pop(key, None)
    return notebook


def processor() -> str:
    """Vendor, family and model of the processor; and the instructions, if PyTorch is told which to use.

    Processors add in different orders, and after thousands of steps of training the figures differ. So a notebook keeps
    where its outputs were made, and the tests compare numbers there only. Elsewhere every cell must run, every claim
    must hold, and the words must be the same.
    """
    found = cpu_facts("vendor_id", "cpu family", "model") or [platform.processor()]
    return " ".join([*found, os.environ.get("ATEN_CPU_CAPABILITY", "")]).strip()


def tags(cell: NotebookNode) -> set[str]:
    """A cell's tags."""
    return set(cell.metadata.get("tags", []))


def compares(cell: NotebookNode) -> bool:
    """Whether a folded cell shows how a class's prediction came out: until it runs there is none."""
    return "hide-input" in tags(cell) and ".compare(" in cell.source


def show_clock(notebook: NotebookNode) -> None:
    """Write into each speaker note, beside its minutes, the time since the beginning at which they begin."""
    halves = 0                                             # of a minute
    for cell in notebook.cells:
        if slide_type(cell) == "notes" and (found := MINUTES.search(cell.source)):
            begins = f"{halves // 120}:{halves // 2 % 60:02}{'½' * (halves % 2)}"
            cell.source = f"{cell.source[:found.start()]}{begins} · {cell.source[found.start():]}"
            halves += 2 * int(found[1] or 0) + len(found[2])


def slide_type(cell: NotebookNode) -> str:
    """A cell's slide type: ``"slide"``, ``"subslide"``, ``"fragment"``, ``"notes"``, ``"skip"`` or ``"-"``."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "-")


def embedded(picture: Path) -> str:
    """A picture as its own address, ``data:…``.

    JupyterLab shows no SVG that is a cell's attachment; an SVG at a ``data:`` address it shows even in a notebook
    that is not trusted.
    """
    kind = mimetypes.guess_type(picture.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(picture.read_bytes()).decode('ascii')}"


def place_pictures(cell: NotebookNode, folder: Path, place: Callable[[Path], str] = embedded) -> None:
    """Give the local pictures that a text cell shows other addresses.

    Args:
        cell: a text cell; its source is changed.
        folder: the notebook's folder, from which the pictures are read.
        place: gives a picture's address; default: the picture itself.

    Raises:
        CourseError: if a picture is missing.
    """

    def placed(match: re.Match) -> str:
        picture = folder / unquote(match[2])
        if not picture.is_file():
            raise CourseError(f"the picture {match[2]} is missing in {folder}. Restore it, or mend the link.")
        return match[1] + place(picture)

    cell.source = _IMAGE.sub(placed, cell.source)
