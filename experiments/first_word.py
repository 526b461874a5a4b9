"""Lesson 03's question, "what was the first word?", with rivals at their best: who learns it from which distances?

``python experiments/first_word.py`` trains self-attention, a tanh RNN, and LSTMs and GRUs with more and less open
gates on distances of 1 to 10, of 1 to 30 and of 1 to 100, 300 steps each, asks all of them at 1 to 100, and writes
``first_word.json``. Every network has the same learning rates to choose from, at the first seed and on further
sentences of the distances that it was trained on; the other seeds run at the rate chosen.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import attention, setup
from course_utils.claims.stored import store
from course_utils.decoding import evaluating
from course_utils.training import fit

RATES = (1e-3, 2.5e-3, 5e-3, 1e-2, 2e-2)
STEPS, BATCH, WORDS, D = 300, 64, 8, 64
FARTHEST, ASKED = (10, 30, 100), (1, 10, 30, 100)


def recurrent(kind: type[nn.RNNBase], open_gate: float = 0.0) -> nn.RNNBase:
    """One layer; ``open_gate`` is added to the bias of the gates that keep the old state: an LSTM's forget gates, a
    GRU's update gates, which stand in the same place.
    """
    cell = kind(D, D, batch_first=True)
    with torch.no_grad():
        cell.bias_ih_l0[D:2 * D] += open_gate
    return cell


BODIES = {"attention": lambda: attention.MultiHeadAttention(D, 4),
          "LSTM": lambda: recurrent(nn.LSTM), "LSTM, gates +1": lambda: recurrent(nn.LSTM, 1.0),
          "LSTM, gates +2": lambda: recurrent(nn.LSTM, 2.0), "LSTM, gates +4": lambda: recurrent(nn.LSTM, 4.0),
          "GRU": lambda: recurrent(nn.GRU), "GRU, gates +2": lambda: recurrent(nn.GRU, 2.0),
          "GRU, gates +4": lambda: recurrent(nn.GRU, 4.0), "tanh RNN": lambda: recurrent(nn.RNN)}


class FirstWord(nn.Module):
    """Words ``(B, T)`` -> logits ``(B, 8)`` for the first of them, said at the last, as in the lesson."""

    def __init__(self, name: str):
        super().__init__()
        self.embed, self.out = nn.Embedding(WORDS, D), nn.Linear(D, WORDS)
        self.body = BODIES[name]()

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        if isinstance(self.body, nn.RNNBase):
            return self.out(self.body(h)[0][:, -1])
        h = h + attention.sinusoidal(x.size(1), D)
        return self.out(self.body(h[:, -1:], h)[0][:, 0])


def sentences(n: int, distance: int, seed: int) -> Tensor:
    """Random words ``(n, distance + 1)``."""
    return torch.randint(WORDS, (n, distance + 1), generator=torch.Generator().manual_seed(seed))


def loss(model: nn.Module, x: Tensor) -> tuple[Tensor, int]:
    """Cross-entropy of the first word, and how many sentences that were."""
    return F.cross_entropy(model(x), x[:, 0]), len(x)


def recall(model: nn.Module, x: Tensor) -> float:
    """Share of sentences whose first word is named."""
    with evaluating(model):
        return float((model(x).argmax(dim=-1) == x[:, 0]).float().mean())


def train(name: str, rate: float, seed: int, steps: int, farthest: int) -> tuple[FirstWord, float]:
    """A trained network and the seconds of processor time it took."""
    setup(seed)
    generator = torch.Generator().manual_seed(seed)
    distances = torch.randint(1, farthest + 1, (steps,), generator=generator).tolist()
    batches = [torch.randint(WORDS, (BATCH, n + 1), generator=generator) for n in distances]
    torch.manual_seed(seed)
    model = FirstWord(name)
    started = time.process_time()
    fit(model, batches, steps, lr=rate, loss=loss, label=f"{name}, rate {rate}", live=False)
    return model, time.process_time() - started


def measure(name: str, seeds: list[int], steps: int, farthest: int) -> dict:
    """The rate chosen, and accuracy at every distance asked, by seed."""
    tests = {distance: sentences(500, distance, distance) for distance in ASKED}
    held_out = [sentences(200, distance, 10_000 + distance) for distance in ASKED if distance <= farthest]
    search, first = {}, {}
    for rate in RATES:
        first[rate], _ = train(name, rate, seeds[0], steps, farthest)
        search[rate] = round(sum(recall(first[rate], x) for x in held_out) / len(held_out), 3)
    rate = max(search, key=search.get)
    found, seconds = [first[rate]], []
    for seed in seeds[1:]:
        model, taken = train(name, rate, seed, steps, farthest)
        found.append(model)
        seconds.append(taken)
    return {"search": {str(tried): mean for tried, mean in search.items()}, "rate": rate,
            "recall": {str(distance): [round(recall(model, x), 3) for model in found] for distance, x in tests.items()},
            "cpu_seconds": round(sum(seconds) / max(1, len(seconds)), 1)}


def main(arguments: list[str] | None = None) -> None:
    """Measure and store after each network."""
    parser = argparse.ArgumentParser(description="Who learns to recall the first word from which distances?")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 to 4)")
    parser.add_argument("--steps", type=int, default=STEPS, help="updates (default: %(default)s)")
    parser.add_argument("--farthest", type=int, nargs="+", default=list(FARTHEST),
                        help="longest distances to train on (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    command = (f"python experiments/first_word.py --seeds {' '.join(map(str, options.seeds))} --steps {options.steps} "
               f"--farthest {' '.join(map(str, options.farthest))}")
    found: dict[str, dict] = {}
    for farthest in options.farthest:
        rows = found[str(farthest)] = {}
        for name in BODIES:
            rows[name] = measure(name, options.seeds, options.steps, farthest)
            store(options.out, command, options.seeds, {"steps": options.steps, "trained_to": found})
            print(farthest, name, rows[name], flush=True)


if __name__ == "__main__":
    main()
