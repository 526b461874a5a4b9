"""Handwritten digits, captioned scenes of them, and small vision networks, for lesson 08's notebooks.

The digits are scikit-learn's (Alpaydin and Kaynak 1998): 1,797 pictures of 8 x 8 pixels by 13 hands, no network needed.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from .arguments import at_least
from .models import evaluating
from .training import fit, label_loss
from .transformer import Config, EncoderLayer

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SIDE, GRID, DIGIT = 28, 7, 8
"""A scene's pixels, the regions that the CNN sees in it, and a digit's pixels; each a side."""


class Labelled(NamedTuple):
    """Pictures ``(n, H, W)``, 0 to 1, and their classes ``(n,)``."""

    images: Tensor
    labels: Tensor


class Scene(NamedTuple):
    """A picture of two to four digits, and what is true of it."""

    image: Tensor
    """``(28, 28)``, 0 to 1."""
    caption: list[str]
    """Row by row: ``a three left of an eight above a seven``."""
    corners: list[tuple[int, int]]
    """Top and left pixel of each digit, in the caption's order."""


def digits(seed: int = 0, n_test: int = 360) -> tuple[Labelled, Labelled]:
    """The 1,797 digits in a random order: a training set, and ``n_test`` (0 to 1,797) to test on."""
    at_least(0, n_test=n_test)
    data = load_digits()
    images, labels = torch.tensor(data.images / 16, dtype=torch.float32), torch.tensor(data.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    return tuple(Labelled(images[part], labels[part]) for part in (order[n_test:], order[:n_test]))


def scenes(n: int, pool: Labelled, seed: int) -> list[Scene]:
    """``n`` scenes of digits drawn from ``pool``, each anywhere in its own quarter of the picture."""
    rng = torch.Generator().manual_seed(seed)

    def draw(high: int, low: int = 0) -> int:
        return int(torch.randint(low, high, (), generator=rng))

    drawn = []
    for _ in range(n):
        image, rows, corners = torch.zeros(SIDE, SIDE), ([], []), []
        for quarter in sorted(torch.randperm(4, generator=rng)[:draw(5, 2)].tolist()):
            half = SIDE // 2
            top, left = (half * at + draw(half - DIGIT + 1) for at in divmod(quarter, 2))
            i = draw(len(pool.images))
            image[top:top + DIGIT, left:left + DIGIT] = pool.images[i]
            word = DIGITS[pool.labels[i]]
            rows[quarter // 2].append(f"an {word}" if word == "eight" else f"a {word}")
            corners.append((top, left))
        caption = " above ".join(" left of ".join(row) for row in rows if row)
        drawn.append(Scene(image, caption.split(), corners))
    return drawn


def on_digit(scene: Scene, number: int) -> Tensor:
    """Which of the 49 regions, row after row, show ink of the scene's digit of this number: boolean ``(49,)``."""
    top, left = scene.corners[number]
    own = torch.zeros_like(scene.image)
    own[top:top + DIGIT, left:left + DIGIT] = scene.image[top:top + DIGIT, left:left + DIGIT]
    return F.max_pool2d(own.unsqueeze(0), SIDE // GRID).flatten() > 0


class DigitCNN(nn.Module):
    """Three convolutions, learned on single digits: ``features (B, 64, H / 4, W / 4)``, and a class from their maximum.

    In Xu et al. 2015 the CNN is a VGG that was trained on ImageNet; the caption's training does not change it.
    """

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(*self._block(1, 16), nn.MaxPool2d(2), *self._block(16, 32), nn.MaxPool2d(2),
                                      *self._block(32, 64))
        self.output = nn.Linear(64, 10)

    @staticmethod
    def _block(n_in: int, n_out: int) -> tuple[nn.Module, ...]:
        return nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        """Images ``(B, H, W)`` to logits ``(B, 10)``."""
        return self.output(self.features(images.unsqueeze(1)).amax(dim=(2, 3)))


def learn_digits(pool: Labelled, seed: int, steps: int = 400) -> DigitCNN:
    """A `DigitCNN` trained on digits of ``pool``, each anywhere in a picture of 16 x 16; left in evaluation mode."""
    rng = torch.Generator().manual_seed(seed)

    class Batches:
        def __iter__(self):
            for chosen in torch.randperm(len(pool.images), generator=rng).split(64):
                images = torch.zeros(len(chosen), 16, 16)
                corners = torch.randint(16 - DIGIT + 1, (len(chosen), 2), generator=rng).tolist()
                for image, i, (top, left) in zip(images, chosen, corners, strict=True):
                    image[top:top + DIGIT, left:left + DIGIT] = pool.images[i]
                yield images, pool.labels[chosen]

    cnn = DigitCNN()
    fit(cnn, Batches(), steps, lr=3e-3, loss=label_loss, label="CNN on digits", live=False)
    return cnn


def small_cnn() -> nn.Sequential:
    """Three convolutions for digits of 8 x 8: images ``(B, 8, 8)`` to logits ``(B, 10)``, with 70,000 weights."""
    c = 27                                                 # channels of the first convolution
    return nn.Sequential(
        nn.Unflatten(1, (1, DIGIT)), nn.Conv2d(1, c, 3, padding=1), nn.ReLU(),
        nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(2 * c, 4 * c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * c, 10))


class ViT(nn.Module):
    """A Vision Transformer for digits of 8 x 8 (Dosovitskiy et al. 2021, section 3.1): 16 patches, a class token first.

    As *Can a picture be a sentence?* (further, lesson 08) builds it; a patch has 2 x 2 pixels.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.embed, self.cls = nn.Linear(4, config.d_model), nn.Parameter(torch.zeros(config.d_model))
        self.places = nn.Parameter(0.1 * torch.randn(17, config.d_model))
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.norm, self.output = config.last_norm(), nn.Linear(config.d_model, 10)

    def forward(self, images: Tensor, need_weights: bool = False):
        """Images ``(B, 8, 8)`` to logits ``(B, 10)``; if asked, the weights ``(B, n_layers, n_heads, 17, 17)``, too."""
        patches = images.unfold(1, 2, 2).unfold(2, 2, 2).flatten(3).flatten(1, 2)               # (B, 16, 4)
        x = torch.cat([self.cls.expand(len(images), 1, -1), self.embed(patches)], dim=1)
        x = self.dropout(x + self.places)                                                       # (B, 17, d_model)
        weights = []
        for layer in self.layers:
            x, of_layer = layer(x, need_weights=need_weights)
            weights.append(of_layer)
        logits = self.output(self.norm(x[:, 0]))
        return (logits, torch.stack(weights, dim=1)) if need_weights else logits


def features(cnn: DigitCNN, drawn: list[Scene]) -> Tensor:
    """The CNN's features of scenes: ``(n, 64, 7, 7)``."""
    images = torch.stack([scene.image for scene in drawn]).unsqueeze(1)                     # (n, 1, 28, 28)
    with evaluating(cnn):
        return torch.cat([cnn.features(part) for part in images.split(500)])
