"""Lesson 06 as a table: time and memory of seven kinds of attention against the length, on this machine.

``python experiments/bench_efficient.py`` writes ``bench_efficient.json``, from which ``tables.py`` makes a table:
forward, and forward with backward, n = 1,024 to 16,384, one sequence, two heads of width 64. On a GPU if there is one,
then ``bench_efficient_gpu.json`` (``--device cpu`` for the processor all the same). Each cell of the table is a process
of its own, so that no memory is left over from the one before. What would not fit into the free memory is left out,
with the memory that it would have needed. ``tiled`` is measured forward only: with backward, plain PyTorch keeps every
tile and makes a gradient as long as the text for each (minutes from n = 8,192 on).
"""

import argparse
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import tables
import torch
from torch import Tensor

from course_utils import efficient
from course_utils.claims.stored import store
from course_utils.measuring import best_of, peak_memory

LENGTHS = (1024, 2048, 4096, 8192, 16384)
KINDS = {
    "dense": efficient.dense,
    "sdpa": efficient.sdpa,
    "tiled": efficient.tiled,
    "sliding_window": partial(efficient.sliding_window, window=128),
    "strided": partial(efficient.strided, stride=128),
    "fixed": partial(efficient.fixed, stride=128, c=8),
    "linear": efficient.linear,
}
SECONDS, TIMES = 2.0, 7  # a case is repeated until it has run for so long, at most so often; the fastest counts
SPARE = 0.8             # share of the free memory that a case may need


def run(kind: str, tensors: list[Tensor], backward: bool) -> None:
    """Once forward; with ``backward`` the gradients of q, k and v, too."""
    with torch.set_grad_enabled(backward):
        output = KINDS[kind](*tensors)
        if backward:
            torch.autograd.grad(output, tensors, torch.ones_like(output))


def seconds(f) -> float:
    """Of the fastest call, see `best_of`."""
    first = best_of(f, 1)
    more = int(min(TIMES - 1, SECONDS / max(first, 1e-9)))
    return min(first, best_of(f, more)) if more else first


def megabytes(f, device: str) -> float:
    """The most that is alive beside q, k and v: tensor by tensor on a CPU, on a GPU as its allocator says."""
    if device == "cpu":
        return peak_memory(f) / 1e6
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    f()
    return (torch.cuda.max_memory_allocated() - before) / 1e6


def measure(kind: str, n: int, backward: bool, device: str, dtype: str) -> dict[str, float]:
    """What a process of its own does for one cell of the table."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(1, 2, n, 64, generator=generator).to(device, getattr(torch, dtype)).requires_grad_(backward)
               for _ in range(3)]
    f = partial(run, kind, tensors, backward)
    if n < 8192 or device == "cuda":
        f()                                                        # what only the first call does
    return {"seconds": seconds(f), "megabytes": megabytes(f, device)}


def free_megabytes(device: str) -> float:
    """Memory that is free at this moment."""
    return (torch.cuda.mem_get_info()[0] if device == "cuda" else psutil.virtual_memory().available) / 1e6


def row(kind: str, backward: bool, device: str, dtype: str, lengths: tuple[int, ...]) -> list[dict[str, float]]:
    """Seconds and megabytes for each length, from short to long; what may need too much (as the square) is not tried:
    of it only ``megabytes_needed``.
    """
    cells, per_pair = [], 0.0
    for n in lengths:
        if (needed := per_pair * n**2) > SPARE * free_megabytes(device):
            cells.append({"megabytes_needed": needed})
            continue
        case = ["--case", kind, str(n), str(int(backward)), device, dtype]
        done = subprocess.run([sys.executable, __file__, *case], capture_output=True, text=True, check=True)
        cells.append(json.loads(done.stdout))
        per_pair = cells[-1]["megabytes"] / n**2
    return cells


def main(arguments: list[str] | None = None) -> None:
    """Measure all cells of the table and store them, or measure one in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--out", type=Path, help="file to store it in; default: beside this script")
    parser.add_argument("--print", action="store_true", help="only print the table, store nothing")
    parser.add_argument("--case", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.case:
        kind, n, backward, device, dtype = given.case
        print(json.dumps(measure(kind, int(n), backward == "1", device, dtype)))
        return
    results = {"device": torch.cuda.get_device_name() if given.device == "cuda" else "CPU, one thread",
               "dtype": given.dtype, "lengths": list(given.lengths), "forward": {}, "backward": {}}
    for backward, rows in enumerate((results["forward"], results["backward"])):
        for kind in (kind for kind in KINDS if not (backward and kind == "tiled")):
            rows[kind] = row(kind, bool(backward), given.device, given.dtype, given.lengths)
            print(kind, "with backward" * backward, rows[kind], file=sys.stderr)
    print("\n".join(tables.efficient(results)))
    if given.print:
        return
    lengths = " ".join(map(str, given.lengths))
    command = f"python experiments/bench_efficient.py --device {given.device} --dtype {given.dtype} --lengths {lengths}"
    out = given.out or Path(__file__).with_name(f"bench_efficient{'_gpu' * (given.device == 'cuda')}.json")
    store(out, command, [0], results)


if __name__ == "__main__":
    main()
