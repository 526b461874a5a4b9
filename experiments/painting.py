"""Lesson 08: does a generator paint better when its pixels attend to each other?

``python experiments/painting.py`` trains the small GAN of ``08_painting_with_attention`` for twice as many steps: with
self-attention (Zhang et al. 2019), and with a 3 x 3 convolution of as many weights in its place. It writes
``painting.json``: what a judge says of five times 360 paintings, and of the real digits that the GAN learned from. A
painting is a string, a letter (0 to f) for each of its 64 pixels.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.data import DataLoader, TensorDataset

from course_utils import setup, vision
from course_utils.claims.stored import store
from course_utils.training import fit
from course_utils.vision import Labelled

WIDTH, NOISE, BATCH = 32, 32, 64
RATES = 1e-3, 4e-3  # of the generator and of the discriminator
DRAWS = 5


class PixelAttention(nn.Module):
    """Each pixel looks at all pixels; what it saw is added, times gamma (Zhang et al. 2019, section 3)."""

    def __init__(self, c: int):
        super().__init__()
        self.query, self.key, self.value = (spectral_norm(nn.Conv2d(c, n, 1)) for n in (c // 8, c // 8, c))
        self.gamma = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x).flatten(2) for part in (self.query, self.key, self.value))       # (B, d, N)
        weights = (q.transpose(1, 2) @ k).softmax(dim=-1)                                   # (B, N, N)
        return x + self.gamma * (v @ weights.transpose(1, 2)).view_as(x)


class Neighbours(nn.Module):
    """The rival: a 3 x 3 convolution in eight groups, which has about as many weights; gamma as above."""

    def __init__(self, c: int):
        super().__init__()
        self.near = spectral_norm(nn.Conv2d(c, c, 3, padding=1, groups=8))
        self.gamma = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.gamma * self.near(x)


LAYERS = {"attention": PixelAttention, "convolution": Neighbours}


class Generator(nn.Module):
    """Noise ``(B, 32)`` and digits ``(B,)`` to pictures ``(B, 8, 8)``."""

    def __init__(self, layer: type[nn.Module], c: int = WIDTH):
        super().__init__()
        self.start = nn.Sequential(spectral_norm(nn.Linear(NOISE + 10, 2 * c * 16)), nn.Unflatten(1, (2 * c, 4, 4)))
        self.paint = nn.Sequential(
            nn.BatchNorm2d(2 * c), nn.ReLU(), nn.Upsample(scale_factor=2),
            spectral_norm(nn.Conv2d(2 * c, c, 3, padding=1)), nn.BatchNorm2d(c), nn.ReLU(),
            layer(c),
            spectral_norm(nn.Conv2d(c, c, 3, padding=1)), nn.BatchNorm2d(c), nn.ReLU(),
            spectral_norm(nn.Conv2d(c, 1, 3, padding=1)), nn.Sigmoid())

    def forward(self, noise: Tensor, digits: Tensor) -> Tensor:
        return self.paint(self.start(torch.cat([noise, F.one_hot(digits, 10)], dim=1)))[:, 0]


class Discriminator(nn.Module):
    """Pictures ``(B, 8, 8)`` and digits ``(B,)`` to scores ``(B,)``: how much like a real one of this digit."""

    def __init__(self, layer: type[nn.Module], c: int = WIDTH):
        super().__init__()
        self.read = nn.Sequential(
            spectral_norm(nn.Conv2d(1, c, 3, padding=1)), nn.LeakyReLU(0.1),
            layer(c),
            spectral_norm(nn.Conv2d(c, 2 * c, 4, stride=2, padding=1)), nn.LeakyReLU(0.1),
            spectral_norm(nn.Conv2d(2 * c, 2 * c, 3, padding=1)), nn.LeakyReLU(0.1))
        self.scores = spectral_norm(nn.Linear(2 * c, 10))

    def forward(self, images: Tensor, digits: Tensor) -> Tensor:
        seen = self.read(2 * images.unsqueeze(1) - 1).sum(dim=(2, 3))                       # (B, 2c)
        return self.scores(seen).gather(1, digits.unsqueeze(1))[:, 0]


def train(layer: type[nn.Module], data: Labelled, steps: int, seed: int) -> tuple[Generator, list[float]]:
    """A generator after so many steps, in evaluation mode, and its gamma after each."""
    torch.manual_seed(seed)
    G, D = Generator(layer), Discriminator(layer)
    slow, fast = (torch.optim.Adam(net.parameters(), betas=(0.0, 0.9)) for net in (G, D))
    gammas = []
    for step in range(steps):
        for optimizer, lr in zip((slow, fast), RATES, strict=True):
            optimizer.param_groups[0]["lr"] = lr * min(1, 2 * (1 - step / steps))
        rows, digits = torch.randint(len(data.images), (BATCH,)), torch.randint(10, (BATCH,))
        fake = G(torch.randn(BATCH, NOISE), digits)
        real_scores, fake_scores = D(data.images[rows], data.labels[rows]), D(fake.detach(), digits)
        loss = (F.relu(1 - real_scores) + F.relu(1 + fake_scores)).mean()
        fast.zero_grad()
        loss.backward()
        fast.step()
        loss = -D(fake, digits).mean()
        slow.zero_grad()
        loss.backward()
        slow.step()
        gammas.append(next(part for part in G.paint if isinstance(part, layer)).gamma.item())
    return G.eval(), gammas


def learn_to_judge(data: Labelled, seed: int) -> nn.Sequential:
    """A classifier of real digits: pictures to logits; without its last layer, to 32 features."""
    torch.manual_seed(seed)
    judge = nn.Sequential(*vision.small_cnn()[:-1], nn.Linear(432, 32), nn.ReLU(), nn.Linear(32, 10))
    batches = DataLoader(TensorDataset(*data), BATCH, shuffle=True)
    fit(judge, batches, 300, lr=2e-3, loss=vision.label_loss, label="judge", live=False)
    return judge


def frechet(a: Tensor, b: Tensor) -> float:
    """The Fréchet distance of two sets of features ``(n, d)``, taken as normal (Heusel et al. 2017, eq. 6)."""
    a, b = a.double(), b.double()
    cov_a, cov_b = a.T.cov(), b.T.cov()
    roots = torch.linalg.eigvals(cov_a @ cov_b).real.clamp(min=0).sqrt().sum()
    return ((a.mean(0) - b.mean(0)).square().sum() + cov_a.trace() + cov_b.trace() - 2 * roots).item()


def paint(G: Generator, digits: Tensor, seed: int) -> Tensor:
    """One picture for each digit asked for: ``(n, 8, 8)``."""
    with torch.no_grad():
        return G(torch.randn(len(digits), NOISE, generator=torch.Generator().manual_seed(seed)), digits)


@torch.no_grad()
def score(judge: nn.Sequential, sets: list[Labelled], real: Labelled) -> dict[str, float]:
    """What the judge says of sets of pictures, on average: the share read as asked, how far their features are from
    those of real digits that nobody learned from, and the mean distance of two pictures of one digit."""
    found = []
    for images, wanted in sets:
        spread = [torch.pdist(images[wanted == digit].flatten(1)).mean() for digit in range(10)]
        found.append([(judge(images).argmax(dim=1) == wanted).float().mean(),
                      frechet(judge[:-1](images), judge[:-1](real.images)), sum(spread) / 10])
    means = torch.tensor(found).mean(dim=0).tolist()
    return {name: round(value, 4) for name, value in zip(("read as asked", "distance", "spread"), means, strict=True)}


def painted(G: Generator, like: Labelled) -> list[Labelled]:
    """Five sets of pictures of the same digits as ``like``."""
    return [Labelled(paint(G, like.labels, draw), like.labels) for draw in range(DRAWS)]


def without_looking(G: Generator, judge: nn.Sequential, real: Labelled) -> dict[str, dict[str, float]]:
    """The same trained generator, when each pixel looks at all alike, and when gamma is 0 again."""
    layer = next(part for part in G.paint if isinstance(part, PixelAttention))
    layer.query.register_forward_hook(lambda module, given, queries: torch.zeros_like(queries))
    alike = score(judge, painted(G, real), real)
    nn.init.zeros_(layer.gamma)
    return {"all pixels alike": alike, "gamma 0": score(judge, painted(G, real), real)}


def main(arguments: list[str] | None = None) -> None:
    """Measure and store after each training."""
    parser = argparse.ArgumentParser(description="Does a generator paint better with self-attention?")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 to 4)")
    parser.add_argument("--steps", type=int, default=600, help="updates of each network (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    command = f"python experiments/painting.py --seeds {' '.join(map(str, options.seeds))} --steps {options.steps}"
    setup()
    data, others = vision.digits(n_test=900)
    judged, real = (Labelled(*(part[rows] for part in others)) for rows in (slice(540), slice(540, None)))
    judge = learn_to_judge(judged, seed=0)
    rows = [torch.randperm(len(data.images))[:len(real.images)] for _ in range(DRAWS)]
    results = {"judge on real digits": score(judge, [real], real)["read as asked"],
               "floor": score(judge, [Labelled(data.images[few], data.labels[few]) for few in rows], real)}
    print(results, flush=True)
    for seed in options.seeds:
        for name, layer in LAYERS.items():
            G, gammas = train(layer, data, options.steps, seed)
            found = score(judge, painted(G, real), real) | {
                "gamma": round(gammas[-1], 4), "weights": sum(weights.numel() for weights in G.parameters()),
                "pictures": ["".join(f"{round(15 * pixel):x}" for pixel in picture.flatten().tolist())
                             for picture in paint(G, torch.arange(10), seed=0)]}
            if layer is PixelAttention:
                found |= without_looking(G, judge, real)
            results.setdefault(name, []).append(found)
            store(options.out, command, options.seeds, results)
            print(name, seed, found["read as asked"], found["distance"], found["gamma"], flush=True)


if __name__ == "__main__":
    main()
