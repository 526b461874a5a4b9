"""What a computation costs: its fastest run's time, its tensors' memory, the steps that wait for each other."""

import math
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
    """The most bytes of tensors that are alive at a time during ``f()``, beside those that were there before.

    Counted after every operation of PyTorch, storage by storage: the same on every machine. What a single operation
    needs inside and frees again is not seen.
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
    """How many matrix products an operation of the graph (a ``grad_fn``) is: 0, 1 or 2."""
    return 2 if operation.name().startswith(KERNEL) else int(operation.name() in PRODUCTS)


def multiply_adds(operation) -> tuple[int, int]:
    """Multiply-adds of an operation's matrix products: those that one number of the result waits for, and all.

    A product ``(n, d) @ (d, m)`` is ``d`` and ``n * d * m``. What is no product counts as nothing.
    """
    if products(operation) == 0:
        return 0, 0
    if operation.name().startswith(KERNEL):
        (*_, d_k), n_keys = operation._saved_query.shape, operation._saved_key.size(-2)
        return d_k + n_keys, 2 * operation._saved_query.numel() * n_keys
    left = (operation._saved_mat1_sym_sizes if operation.name() == "AddmmBackward0" else
            operation._saved_self.shape if operation.name() == "BmmBackward0" else operation._saved_self_sym_sizes)
    return left[-1], left[-1] * math.prod(operation._input_metadata[0].shape)


def least_time(output: Tensor, workers: int) -> float:
    """Multiply-adds that pass before a result is there, if ``workers`` of them are done at a time: at least so many.

    All of them shared out evenly (the work law), or those on the longest chain (the span law), whichever is more. Each
    dot product is done one product after another; added in a tree, it would be a shorter chain. Brent's theorem (1974)
    is the other side: work and chain together are enough. Softmaxes, sums, look-ups and the way between workers cost
    nothing.
    """
    waits = longest_chain(output, lambda operation: multiply_adds(operation)[0])
    return max(waits, sum(multiply_adds(operation)[1] for operation in _operations(output)) / workers)


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
