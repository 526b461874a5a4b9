"""The training loop of all notebooks: on any device, in any number of processes, for a number of steps."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps

import torch
import torch.nn.functional as F
from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.utils.data import DataLoader
from tqdm import tqdm

from .arguments import at_least, check_number
from .data.text import PAD, Batch
from .plotting import SMOOTHED, LiveCurve, in_notebook, smooth

CLIP = 1.0
"""Largest norm of a step's gradient (Pascanu et al. 2013)."""


@dataclass
class History:
    """One entry per step. ``seconds`` is wall time, ``tokens`` counts the target words of this process."""

    loss: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0
    interrupted: bool = False


def sequence_loss(model: nn.Module, batch: Batch, label_smoothing: float = 0.0) -> tuple[Tensor, int]:
    """Mean cross-entropy in nats of the next target words, without padding; and the number of words.

    ``label_smoothing`` is the share of each target's probability that is spread evenly over the whole vocabulary
    (Szegedy et al. 2016, section 7; 0.1 in Vaswani et al. 2017, section 5.4). For `fit`, set it beforehand:
    ``loss=partial(sequence_loss, label_smoothing=0.1)``. A batch without a next word is a ``ValueError``, one without
    a ``target`` a ``TypeError``. The model is called as a `Transformer` is: ``model(source, target,
    need_weights=False)``, of which the first result are logits.
    """
    if not hasattr(batch, "target"):
        raise TypeError(f"a batch is a {type(batch).__name__} without a target; expected a data.text.Batch, as "
                        "token_batches gives. Other batches need a loss of their own: fit(…, loss=label_loss).")
    words = batch.target[:, 1:]                                    # what follows each input word
    n_words = int((words != PAD).sum())
    if n_words == 0:
        raise ValueError(f"target has shape {tuple(batch.target.shape)} and no word to predict; expected two ids or "
                         "more that are not padding, <bos> first.")
    logits, *_ = model(batch.source, batch.target[:, :-1], need_weights=False)
    loss = F.cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=PAD, label_smoothing=label_smoothing)
    return loss, n_words


def label_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> tuple[Tensor, int]:
    """Mean cross-entropy in nats of a batch ``(*inputs, labels)`` with labels ``(B,)``; and their number."""
    *inputs, labels = batch
    return F.cross_entropy(model(*inputs), labels), len(labels)


def trapezoid(step: int, steps: int, warmup: int = 50, decay: float = 0.5) -> float:
    """Factor on the learning rate: up in ``warmup`` steps (a quarter of a short run), flat, then down to 0.

    ``decay`` is the share of the steps over which it falls, in a straight line.
    """
    down = (steps - step) / max(decay * steps, 1)
    return min(1.0, _up(step, steps, warmup), down)


def inverse_sqrt(step: int, steps: int, warmup: int = 50) -> float:
    """Factor on the learning rate: up in ``warmup`` steps (a quarter of a short run), then down as ``1 / sqrt(step)``.

    Vaswani et al. 2017, section 5.3, eq. 3, divided by its peak, which `fit` takes as ``lr``: there ``warmup`` is
    4,000 of 100,000 steps, and the peak ``(d_model * warmup) ** -0.5``.
    """
    up = _up(step, steps, warmup)
    return min(up, up ** -0.5)


def _up(step: int, steps: int, warmup: int) -> float:
    """The step, counted from one, as a share of the warm-up: 1 at its end."""
    return (step + 1) / max(1, min(warmup, steps // 4))


def endless(batches: Iterable) -> Iterator:
    """Repeat ``batches`` without end."""
    while True:
        n = 0
        for n, batch in enumerate(batches, start=1):       # noqa: B007
            yield batch
        if n == 0:
            raise ValueError("there are no batches to train on, or no more; give a list or a DataLoader, not a "
                             "generator, which can be gone through only once.")


def rehearsed(fit: Callable) -> Callable:
    """Give `fit` the memory of `kernel.rehearsal`, which is imported by a notebook's kernel only."""
    @wraps(fit)
    def loaded_or_trained(model, *args, **settings):
        if not in_notebook():
            return fit(model, *args, **settings)
        from .kernel.rehearsal import train_or_load

        return train_or_load(fit, History, model, *args, **settings)
    return loaded_or_trained


@rehearsed
def fit(model: nn.Module, batches: Iterable, steps: int, *, lr: float = 2e-3,
        loss: Callable[[nn.Module, object], tuple[Tensor, int]] = sequence_loss,
        schedule: Callable[[int, int], float] = trapezoid, label: str = "training", live: bool = True,
        unit: str = "token") -> History:
    """Train ``model`` in place with Adam for ``steps`` steps; gradients longer than `CLIP` are scaled down to it.

    Runs on whatever device ``accelerate`` finds and, under ``accelerate launch`` (on CPUs: ``torchrun``), in several
    processes that share the batches and average their gradients; afterwards the model is back on the device it came
    from. In a notebook, a live curve shows the loss. Interrupting (the stop button, Ctrl-C) keeps the model and the
    history so far. In a notebook that ``course rehearse`` has run, the stored training is loaded if training again
    would give the same result (:mod:`course_utils.kernel.rehearsal`).

    Args:
        model: trained in place, left in evaluation mode and without gradients.
        batches: an iterable of batches, repeated as often as needed; for several processes a ``DataLoader``.
        steps: number of updates: a budget that means the same on every machine, unlike seconds.
        lr: peak learning rate.
        loss: ``loss(model, batch) -> (mean loss of the batch, number of target words in it)``.
        schedule: ``schedule(step, steps) -> factor`` on ``lr``.
        label: name on the progress bar.
        live: show the loss beside the bar and (in a notebook) draw its curve; ``False`` if a plot comes later.
        unit: what the loss is averaged over; labels the curve's axis.

    Returns:
        The :class:`History`.

    Raises:
        ValueError: if ``steps`` is below 1, ``lr`` is not a finite number above 0, the model has no trainable
            parameters, there are no batches, or several processes cannot share them. The weights are then unchanged;
            if ``batches`` ends too early, or ``schedule`` gives no finite number, they are as trained so far.
        TypeError: if ``steps`` is not a whole number, ``lr`` not a number, or ``loss`` does not return two values, the
            first a tensor of shape () with a gradient.
        FloatingPointError: if the loss, its gradient or, at the end, a weight is no longer a finite number.
    """
    at_least(1, steps=steps)
    check_number(lr=lr)
    _trainable(model, lr)
    home = next(model.parameters()).device
    accelerator, trained, optimizer, batches = _prepare(model, batches, lr)
    history, started = History(), time.perf_counter()
    progress = _Progress(label, steps, unit, live, accelerator.is_main_process)
    trained.train()
    try:
        for step, batch in zip(range(steps), endless(batches), strict=False):
            factor = schedule(step, steps)
            if not math.isfinite(factor):
                raise ValueError(f"schedule({step}, {steps}) is {factor}; expected a finite factor on lr.")
            for group in optimizer.param_groups:
                group["lr"] = lr * factor
            value, n_tokens = _two_things(loss(trained, send_to_device(batch, accelerator.device)))
            _finite("loss", value.item(), step, lr)
            optimizer.zero_grad()
            accelerator.backward(value)
            grad_norm = float(accelerator.clip_grad_norm_(trained.parameters(), CLIP))
            if accelerator.scaler is None:                 # a scaler (float16) skips steps that are not finite
                _finite("gradient's length", grad_norm, step, lr)
            optimizer.step()
            history.grad_norm.append(grad_norm)
            history.loss.append(value.item())
            history.tokens += n_tokens
            progress.update(history.loss)
    except KeyboardInterrupt:
        history.interrupted = True
    finally:
        history.seconds = time.perf_counter() - started
        progress.close(history.loss)
        accelerator.free_memory()
        model.to(home).eval().zero_grad()                  # gradients take as much room as the weights
    if not all(weights.isfinite().all() for weights in model.parameters()):
        raise FloatingPointError(f"after step {len(history.loss)} of {steps} not all weights are finite numbers. Make "
                                 f"the model anew, with a learning rate below {lr}.")
    if history.interrupted:
        print(f"stopped by hand after {len(history.loss)} of {steps} steps; the model keeps what it learned.")
    return history


def _trainable(model: nn.Module, lr: float) -> None:
    if not 0 < lr < math.inf:
        raise ValueError(f"lr={lr}; expected a finite number above 0, such as 2e-3.")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(f"the model ({type(model).__name__}) has no parameters that can be trained.")


def _two_things(returned) -> tuple[Tensor, int]:
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise TypeError(f"loss returned {returned!r:.50}; expected two things: return mean_loss, n_words.")
    value, n_tokens = returned
    if not isinstance(value, Tensor) or value.dim() or not value.requires_grad:
        given = (f"a tensor of shape {tuple(value.shape)} with requires_grad={value.requires_grad}"
                 if isinstance(value, Tensor) else f"{value!r:.50}, a {type(value).__name__}")
        raise TypeError(f"the mean loss is {given}; expected a tensor with one number, of shape (), with a gradient: "
                        "take the mean, and neither .item() nor .detach() nor no_grad.")
    return value, n_tokens


def _prepare(model: nn.Module, batches: Iterable, lr: float):
    """The accelerator, and the model, optimizer and batches as it has prepared them."""
    # processes start an epoch together if a loader has a batch size; batches cut by tokens cannot be evened out
    even = getattr(batches, "batch_size", None) is not None
    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(even_batches=even))
    if accelerator.num_processes > 1 and not isinstance(batches, DataLoader):
        raise ValueError(f"{accelerator.num_processes} processes would all train on the same batches: they can share a "
                         f"DataLoader, but batches is a {type(batches).__name__}.")
    optimizer = torch.optim.Adam(model.parameters(), lr, betas=(0.9, 0.98), fused=True)     # Vaswani et al. 2017, 5.3
    return accelerator, *accelerator.prepare(model, optimizer, batches)


class _Progress:
    """A progress bar and, if ``live``, the loss beside it and its curve; shown by the first process only."""

    def __init__(self, label: str, steps: int, unit: str, live: bool, first: bool):
        self.bar = tqdm(total=steps, desc=label, file=sys.stdout, mininterval=0.5, ncols=88, disable=not first)
        # the bar is cleared above the curve and goes on below it
        self.curve = LiveCurve(label, steps, unit=unit, before_first=self.bar.clear) if live and first else None

    def update(self, loss: list[float]) -> None:
        """Advance by one step."""
        if self.curve:
            self.bar.set_postfix_str(f"loss {smooth(loss[-SMOOTHED:])[-1]:.3f}", refresh=False)
            self.curve.update(loss)
        self.bar.update()

    def close(self, loss: list[float]) -> None:
        """Leave the bar as it is, and draw the curve a last time."""
        self.bar.close()
        if self.curve:
            self.curve.update(loss, final=True)


def _finite(name: str, value: float, step: int, lr: float) -> None:
    if not math.isfinite(value):
        raise FloatingPointError(f"the {name} is {value} at step {step}; this step changed no weight, those before it "
                                 f"may have. Make the model anew, with a learning rate below {lr}, or look for a "
                                 "root, a logarithm or a quotient at 0.")
