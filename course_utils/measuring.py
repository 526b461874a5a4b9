"""What a computation costs: the time of its fastest run, the memory of its tensors, its sequential steps."""

import time
import weakref
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def best_of(f: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest of several calls: CPU time, so that other programs do not count; on a GPU wall time."""
    clock = time.perf_counter if torch.cuda.is_initialized() else time.process_time

    def now() -> float:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        return clock()

    def once() -> float:
        start = now()
        f()
        return now() - start

    return min(once() for _ in range(times))


def peak_memory(f: Callable[[], object]) -> int:
    """Peak bytes of the tensors that ``f()`` allocates.

    Counted after every PyTorch operation, storage by storage: the same on every machine. Memory that an operation
    allocates and frees internally is not counted.
    """
    with _Watch() as watch:
        f()
    return watch.peak


class _Watch(TorchDispatchMode):
    """Adds up the storages that operations make, as long as they live."""

    def __init__(self):
        super().__init__()
        self.alive: dict[int, int] = {}
        self.now = self.peak = 0

    def _freed(self, key: int) -> None:
        self.now -= self.alive.pop(key)

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        """Run the operation and count what it made: a storage that none of its arguments has."""
        given = {x.untyped_storage()._cdata for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        result = operation(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            storage = x.untyped_storage() if isinstance(x, Tensor) else None
            if storage is not None and (key := storage._cdata) not in given and key not in self.alive:
                self.alive[key] = storage.nbytes()
                self.now += storage.nbytes()
                weakref.finalize(storage, self._freed, key)
        self.peak = max(self.peak, self.now)
        return result


PRODUCTS = "AddmmBackward0", "MmBackward0", "BmmBackward0"
KERNEL = "ScaledDotProduct"  # PyTorch's fused attention: two products, with the keys and with the values


def products(operation) -> int:
    """How many matrix products an operation of the graph (a ``grad_fn``) is: 0, 1 or 2.

    Raises:
        ValueError: for a recurrent network that a kernel computes in one operation.
    """
    if "Rnn" in operation.name():
        raise ValueError(f"{operation.name()} hides the steps of a recurrent network in one operation, as a CPU's "
                         "kernel for float32 does. Count those of model.double().")
    return 2 if operation.name().startswith(KERNEL) else int(operation.name() in PRODUCTS)


def longest_chain(output: Tensor, steps=lambda operation: 1) -> int:
    """Steps on the longest path through the graph of operations behind a tensor: each needs the one before.

    A machine with enough parallel units still takes as many. Not recursive, so that a chain may have thousands of
    operations.

    Args:
        output: any tensor that a gradient can start from.
        steps: how many an operation of the graph (a ``grad_fn``) counts for; by default every one is one.

    Raises:
        ValueError: if the tensor needs no gradient, so that no graph was kept.
    """
    length: dict = {}
    for node in _operations(output):
        length[node] = steps(node) + max((length[parent] for parent in _before(node)), default=0)
    return length[output.grad_fn]


def _before(operation) -> list:
    return [parent for parent, _ in operation.next_functions if parent is not None]


def _operations(output: Tensor) -> list:
    """All operations behind a tensor, each after those that it needs."""
    if output.grad_fn is None:
        raise ValueError("no graph behind this tensor: compute it from something with requires_grad=True.")
    found: dict = {}                                                    # a set that keeps its order
    stack = [output.grad_fn]
    while stack:
        waiting = [parent for parent in _before(stack[-1]) if parent not in found]
        if waiting:
            stack += waiting
        else:
            found[stack.pop()] = None
    return list(found)
