"""Two processes on one machine train one model with the loop that one process uses."""

import json
import os
import re
import socket
import subprocess
import sys

import pytest
import several_processes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """What each of two CPU processes saw and ended with, for both kinds of loader; and how it trained a Transformer."""
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # `accelerate launch --cpu --num_processes 2` starts one process only
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1",
               "--master_port", str(port), several_processes.__file__, str(folder)]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    launcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = launcher.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        launcher.terminate()                                     # it ends its two processes, too
        output, errors = launcher.communicate()
    assert launcher.returncode == 0, f"the processes failed, or waited for each other:\n{errors[-3000:]}"
    bars = [line for line in output.splitlines() if "training" in line]
    return [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)], bars


@pytest.mark.parametrize("loader", ["tokens", "shuffled"])
def test_two_processes_train_one_model(two_processes, loader):
    """They start from different seeds and see different batches; gradients are shared, so they end as one."""
    (zero, one), _ = two_processes
    zero, one = zero[loader], one[loader]
    assert zero["parameters"] == one["parameters"]
    assert len(zero["loss"]) == len(one["loss"]) == 30
    assert zero["loss"] != one["loss"]
    for process in (zero, one):
        assert sum(process["loss"][-5:]) < 0.9 * sum(process["loss"][:5])
        assert process["tokens"] == sum(3 * len(batch) for batch in process["seen"])
        assert not process["training"]


def test_batches_of_tokens_are_shared_out_not_repeated(two_processes):
    """Of the five batches of an epoch one process takes three, the other two; together each example once."""
    (zero, one), _ = two_processes
    words = [*zero["tokens"]["seen"][:3], *one["tokens"]["seen"][:2]]
    assert sorted(word for batch in words for word in batch) == list(range(5, 20))


def test_an_ordinary_shuffled_loader_is_shared_out_evenly(two_processes):
    """Three steps each: every example is there, and three of them twice, to fill the sixth batch."""
    (zero, one), _ = two_processes
    words = [word for process in (zero, one) for batch in process["shuffled"]["seen"][:3] for word in batch]
    assert len(words) == 18
    assert set(words) == set(range(5, 20))


def test_two_processes_train_as_one_does_on_batches_twice_as_large(two_processes):
    """Four sentences in each process, or eight in one: the same gradient at every step, so the same curve.

    A process records the loss of its own batch, and the mean of the two is compared. What may differ is rounding:
    the two sides add the same numbers in another order, and Adam carries that on from step to step.
    """
    (zero, one), _ = two_processes
    zero, one = zero["transformer"], one["transformer"]
    alone = several_processes.train_transformer(batch_size=8)
    curve = [(a + b) / 2 for a, b in zip(zero["loss"], one["loss"], strict=True)]
    assert len(curve) == 40
    assert curve[-1] < 0.7 * curve[0]
    assert max(abs(a - b) for a, b in zip(zero["loss"], one["loss"], strict=True)) > 0.01      # two batches, not one
    assert curve == pytest.approx(alone.loss, abs=1e-5)
    assert zero["grad_norm"] == one["grad_norm"] == pytest.approx(alone.grad_norm, rel=1e-4)


def test_only_the_first_process_shows_its_progress(two_processes):
    _, bars = two_processes
    starts = [bar for bar in bars if re.search(r"\b0/30", bar)]   # its last step may be drawn twice, its start is not
    assert len(starts) == 2                                      # one for each of the two models with 30 steps
