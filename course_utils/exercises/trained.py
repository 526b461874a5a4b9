"""Exercises that train: judged by the losses they return and the weights they leave."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from .compared import close, wrong_form
from .engine import Exercise, Verdict, check_signature, result_of, unwritten

RATE = 0.5  # large enough that a step shows
Run = list[tuple[float, dict[str, Tensor]]]


@dataclass(frozen=True)
class Trained(Exercise):
    """One step of training, ``step(classifier, optimizer, texts, labels) -> loss``, taken several times in a row.

    A case makes ``(classifier, batches)``, with batches of ``(texts, labels)``. After each step the loss and all
    weights are compared. The first fault is named that gives the same losses and weights in all runs so far.
    """

    def _judge(self, function) -> Verdict:
        check_signature(self, function)
        tried = []
        for special, inputs in self.inputs():
            for arguments in inputs:
                mine, right = (_steps(step, *arguments) for step in (function, self.solution))
                if not tried and isinstance(mine, Exception | None) and (what := unwritten(self, mine)):
                    return Verdict("unwritten", what)
                tried.append((arguments, mine))
                if what := self._difference(mine, right, arguments[0]):
                    (texts, labels), *_ = arguments[1]
                    shapes = f"3 tensors {tuple(texts[0].shape)}"
                    given = _Named("a small classifier"), _Named("SGD"), _Named(shapes), labels
                    self.reject(special, what, given, mine, self._named_run(tried))
        return Verdict("right", f"{self.right}, three steps each; losses and weights differ by less than 1e-5.")

    def _difference(self, mine: Run | Exception, right: Run, before: torch.nn.Module) -> str:
        if isinstance(mine, Exception):
            return f"It raised {type(mine).__name__}: {mine}"
        old = before.state_dict()
        for n, ((loss, weights), (right_loss, right_weights)) in enumerate(zip(mine, right, strict=True), start=1):
            if what := wrong_form("loss", "", loss, right_loss):
                return what
            if not close(loss, right_loss):
                return f"Wrong value: in step {n} loss is {loss:.4g}; expected {right_loss:.4g}."
            for part in ("head", "trunk.layers"):
                if all(torch.equal(weights[name], old[name]) for name in old if name.startswith(part)):
                    return f"After step {n} no weight of classifier.{part} has moved."
            worst = max(old, key=lambda name: float((weights[name] - right_weights[name]).abs().max()))
            if not close(weights[worst], right_weights[worst]):
                return f"After step {n} the weights are wrong, most of all `{worst}`."
        return ""

    def _named_run(self, tried: list[tuple]) -> str:
        return next((why for why, wrong in self.known
                     if all(_same(_steps(wrong, *arguments), mine) for arguments, mine in tried)), "")


class _Named(str):
    """A description that is shown without quotation marks."""

    __repr__ = str.__str__


def _steps(step: Callable, classifier: torch.nn.Module, batches: list) -> Run | Exception | None:
    """Loss and weights after each step; or the exception, or None where the first step returns nothing."""
    classifier = deepcopy(classifier)
    optimizer, run = torch.optim.SGD(classifier.parameters(), RATE), []
    with torch.enable_grad():
        for texts, labels in batches:
            loss = result_of(step, (classifier, optimizer, texts, labels))
            if isinstance(loss, Exception) or (loss is None and not run):
                return loss
            run.append((loss, {name: weight.clone() for name, weight in classifier.state_dict().items()}))
    return run


def _same(one, other) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return all(type(a) is type(b) and close(a, b) and close(w, v)
                   for (a, w), (b, v) in zip(one, other, strict=True))
    return type(one) is type(other) and str(one) == str(other)
