"""The softmax lab: scores that can be moved, and what a softmax makes of them."""

import math
from collections.abc import Sequence

import numpy as np
import traitlets
from matplotlib.figure import Figure

from .base import CourseWidget
from .colours import INK, KEY, MUTED, TEAL
from .still import paper

MOST_KEYS = 10  # what fits a slide
WIDEST = 1024


class SoftmaxLab(CourseWidget):
    """One query's scores as bars that can be moved, and the weights, entropy and gradient that follow from them.

    The dot product of two random vectors with ``d`` components of variance 1 has the variance ``d`` (Vaswani et al.
    2017, section 3.2.1, footnote 4). So ``scores`` are those of width 1, and into the softmax goes ``score * sqrt(d)
    / temperature``; with ``scaled`` it is divided by ``sqrt(d)`` again. Drag a bar, or use the keys: left and right
    move what has the focus, Tab goes on, Escape leaves. Python sees the same, and can set it::

        lab = SoftmaxLab([1.0, 0.5, -0.5], ["the", "animal", "street"])
        lab                                     # the last line of a cell shows it
        lab.width = 256                         # one key gets nearly everything
        lab.scaled = True                       # no longer
        lab.weights.round(3)                    # array([0.547, 0.331, 0.122])

    A saved or exported notebook does the same without a kernel.

    Args:
        scores: one to ten numbers ``(T_k,)``: a list, an array or a tensor.
        labels: a name for every key. Default: "key 0", "key 1", ...
        temperature: the scores are divided by it. Default 1: not divided.
        width: ``d``, a power of two from 1 to 1024. Default 1: the scores as they are.
        scaled: whether to divide by ``sqrt(d)``.
        title: a line above the lab. Default: none.

    Attributes:
        scores, labels, temperature, width, scaled, title: two-way; set them from Python, or observe them. Their
            number of keys stays.
        inputs, weights: arrays ``(T_k,)``, what goes into the softmax and what comes out (read only).
        entropy: of the weights, in bits; ``2 ** entropy`` is an effective number of keys (read only).
        gradient: the Frobenius norm of the softmax's Jacobian ``diag(p) - p p^T`` with respect to its inputs; at
            most 0.5, when two keys share everything, and 0 when one key has everything (read only).

    Raises:
        ValueError: for scores that are not one to ten numbers.
        traitlets.TraitError: for a score that is not finite, another number of scores or labels than there are keys,
            a temperature that is not positive, or a width that is no power of two from 1 to 1024.
    """

    _widget = "SoftmaxLab"
    _files = "softmax_lab"
    _names = ("scores", "labels", "temperature", "width", "scaled", "title")

    scores = traitlets.List(traitlets.Float()).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    width = traitlets.Int(1).tag(sync=True)
    scaled = traitlets.Bool(False).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, scores: Sequence[float], labels: Sequence[str] | None = None, temperature: float = 1.0,
                 width: int = 1, scaled: bool = False, title: str = ""):
        shape = _shape(scores)
        if len(shape) != 1 or not 1 <= shape[0] <= MOST_KEYS:
            raise ValueError(f"scores have shape {shape}; expected one to {MOST_KEYS} numbers, those of one query. "
                             "Of a matrix of scores, choose a row: scores[0].")
        scores = scores.tolist() if hasattr(scores, "tolist") else list(scores)
        labels = [f"key {k}" for k in range(len(scores))] if labels is None else list(labels)
        self._n_keys = len(scores)
        super().__init__(scores=scores, labels=labels, temperature=temperature, width=width, scaled=scaled,
                         title=title)

    @property
    def inputs(self) -> np.ndarray:
        """What goes into the softmax."""
        spread = 1.0 if self.scaled else math.sqrt(self.width)
        return np.array(self.scores) * spread / self.temperature

    @property
    def weights(self) -> np.ndarray:
        """What comes out of the softmax."""
        inputs = self.inputs
        powers = np.exp(inputs - inputs.max())
        return powers / powers.sum()

    @property
    def entropy(self) -> float:
        """Entropy of the weights in bits."""
        weights = self.weights[self.weights > 0]
        return abs(float((weights * np.log2(weights)).sum()))

    @property
    def gradient(self) -> float:
        """Frobenius norm of ``diag(p) - p p^T``."""
        products = np.outer(self.weights, self.weights)
        np.fill_diagonal(products, 0)
        diagonal = products.sum(axis=1)  # p_i (1 - p_i), without the difference, which loses digits
        return float(np.sqrt((products**2).sum() + (diagonal**2).sum()))

    @traitlets.validate("scores", "labels")
    def _one_for_each_key(self, proposal):
        name, values = proposal["trait"].name, proposal["value"]
        if len(values) != self._n_keys:
            raise traitlets.TraitError(f"{name} has {len(values)} entries, but there are {self._n_keys} keys; give one "
                                       "for each key, or make another SoftmaxLab.")
        if name == "scores" and not all(map(math.isfinite, values)):
            raise traitlets.TraitError(f"scores are {values}; expected finite numbers.")
        return values

    @traitlets.validate("temperature")
    def _temperature_is_positive(self, proposal):
        if not (math.isfinite(proposal["value"]) and proposal["value"] > 0):
            raise traitlets.TraitError(f"temperature is {proposal['value']}; expected a number greater than 0.")
        return proposal["value"]

    @traitlets.validate("width")
    def _width_is_a_power(self, proposal):
        width = proposal["value"]
        if not 1 <= width <= WIDEST or width & (width - 1):
            raise traitlets.TraitError(f"width is {width}; expected a power of two from 1 to {WIDEST}.")
        return width

    def __repr__(self) -> str:
        return f"SoftmaxLab(keys={self._n_keys}, width={self.width}, scaled={self.scaled})"

    def figure(self) -> Figure:
        """Scores and weights side by side, as a matplotlib figure for print."""
        figure = paper(8, 1.2 + 0.4 * self._n_keys)
        axes = figure.subplots(1, 2, sharey=True)
        panels = [(self.inputs, MUTED, "into the softmax", "%.2f"), (self.weights, TEAL, "weight", "%.4f")]
        for side, (values, colour, name, digits) in zip(axes, panels, strict=True):
            bars = side.barh(range(self._n_keys), values, color=colour, height=0.6)
            side.bar_label(bars, fmt=digits, padding=3, fontsize=10)
            side.margins(x=0.3)
            side.set_xlabel(name)
            side.spines[["top", "right"]].set_visible(False)
        axes[0].axvline(0, color=INK, linewidth=0.8)
        axes[1].set(xlim=(0, 1.2), xticks=[0, 0.5, 1])
        axes[0].invert_yaxis()
        names = [label if len(label) <= 16 else f"{label[:15]}…" for label in self.labels]
        axes[0].set_yticks(range(self._n_keys), names, color=KEY, parse_math=False)
        figure.suptitle(self._summary(), fontsize=10, color=INK)
        return figure

    def _summary(self) -> str:
        scaled = ", divided by its root" if self.scaled else ""
        return (f"width {self.width}{scaled}, temperature {self.temperature:g}: entropy {self.entropy:.2f} bits "
                f"(like {2**self.entropy:.1f} of {self._n_keys} keys), gradient {self.gradient:.4f}")

    def _in_words(self) -> str:
        lines = [f"{self.title}: {self._summary()}" if self.title else self._summary()]
        for label, score, fed, weight in zip(self.labels, self.scores, self.inputs, self.weights, strict=True):
            lines.append(f"{label}: score {score:.2f}, into the softmax {fed:.2f}, weight {weight:.4f}")
        return "\n".join(lines)


def _shape(scores) -> tuple[int, ...]:
    try:
        return tuple(np.shape(scores))
    except ValueError:
        raise ValueError(f"scores are {scores!r:.80}, with rows of different lengths; expected one to {MOST_KEYS} "
                         "numbers, those of one query.") from None
