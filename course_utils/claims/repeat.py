"""Try claims at several seeds: each notebook is executed once per seed, up to the last of its claims.

``repeat`` starts one process per notebook and seed, ``python -m course_utils.claims.repeat NOTEBOOK SEED CELLS``. In it
claims show their card and do not raise, cells that raise are passed over, and what was found is printed as JSON.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

from . import seeds
from .card import MIME, Claim
from .declared import Declared
from .stored import machine, version


def repeat(claims: Iterable[Declared], at: Iterable[int], jobs: int, tell: Callable[[str], None],
           show: Callable[[str], None]) -> None:
    """Try claims at seeds, and add what comes out to the record after each run of a notebook.

    Args:
        claims: those to try.
        at: the seeds.
        jobs: how many notebooks run at once.
        tell: called with one line per finished run.
        show: called with a line that stands for the moment.
    """
    by_notebook: dict[Path, list[Declared]] = {}
    for claim in claims:
        by_notebook.setdefault(claim.notebook, []).append(claim)
    runs = [(path, seed) for seed in at for path in by_notebook]
    told = {"version": version("notebooks"), "machine": machine(), "date": datetime.now(UTC).date().isoformat()}
    children: set[subprocess.Popen] = set()
    now: dict[str, str] = {}

    def one(path: Path, seed: int) -> dict:
        cells, name = max(claim.cell for claim in by_notebook[path]), f"{path.name} seed {seed}"

        def on_cell(cell: int) -> None:
            now[name] = f"{name}: cell {cell} of {cells}"
            done = sum(run.done() for run in list(pending))
            show(f"{done} of {len(runs)} runs done; {'; '.join(list(now.values()))}")

        answer = _in_a_process(path, seed, cells, children, on_cell)
        now.pop(name, None)
        return answer

    pending: dict = {}
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for run in runs:
                pending[pool.submit(one, *run)] = run
            for future in as_completed(pending):
                path, seed = pending[future]
                tell(_keep(by_notebook[path], seed, future.result(), told, f"{path.name} seed {seed}"))
        except BaseException:
            for future in pending:
                future.cancel()
            for child in list(children):
                child.terminate()
            raise


def _in_a_process(path: Path, seed: int, cells: int, children: set[subprocess.Popen],
                  on_cell: Callable[[int], None]) -> dict:
    """What `_one` finds in a process, one of the ``children`` while it runs; ``on_cell`` hears each cell's number."""
    command = [sys.executable, "-m", __name__, str(path), str(seed), str(cells)]
    answer = {}
    # a session of its own: Ctrl-C reaches it from here only
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8",
                          start_new_session=True) as child:
        children.add(child)
        for line in child.stdout:
            answer = json.loads(line)
            on_cell(answer.get("cell", cells))
    children.discard(child)
    return answer if "found" in answer else {"found": {}, "stopped": f"the run ended with code {child.returncode}"}


def _keep(claims: list[Declared], seed: int, answer: dict, told: dict[str, str], name: str) -> str:
    """Add one run to the record; returns what it found, as a line."""
    failed = []
    for claim in claims:
        found = answer["found"].get(claim.id)
        stopped = "" if found else answer["stopped"] or "its cell showed no card"
        trial = seeds.Trial(bool(found) and found["holds"], dict(found["measured"]) if found else {}, **told,
                            stopped=stopped)
        seeds.add(claim.id, claim.terms.condition, claim.made_by, {seed: trial})
        if trial.holds != claim.terms.expected or stopped:
            failed.append(f"{claim.id} ({stopped or found['verdict']})")
    rest = f"; not as expected: {', '.join(failed)}" if failed else ""
    return f"{name}: {len(claims) - len(failed)} of {len(claims)} claims as expected{rest}"


def _one(path: Path, seed: int, cells: int) -> None:
    """Execute a notebook up to a cell; print the cells' numbers, then the claims and the first error, as JSON."""
    from ..publish.notebooks import CellError, execute

    def say(**words) -> None:
        print(json.dumps(words), flush=True)

    try:
        run = execute(path, seed, lambda cell, of: say(cell=cell), cells=cells, keep_going=True)
    except CellError as problem:
        last = re.sub(r"\x1b\[[0-9;]*m", "", problem.traceback).strip().splitlines()[-1:]
        say(found={}, stopped=f"cell {problem.cell}: {''.join(last)}"[:200])
        return
    outputs = [(number, output) for number, cell in enumerate(run.notebook.cells[:cells], start=1)
               for output in cell.get("outputs", ())]
    errors = [f"cell {number}: {output.ename}: {output.evalue}" for number, output in outputs
              if output.output_type == "error"]
    found = [Claim.from_record(output.data[MIME]) for _, output in outputs if MIME in output.get("data", {})]
    say(found={claim.id: {"holds": claim.holds, "measured": claim.record()["measured"], "verdict": claim.verdict}
               for claim in found}, stopped="".join(errors[:1])[:200])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)        # so that the kernel is shut down
    try:
        _one(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    except KeyboardInterrupt:
        sys.exit(130)
