"""Why √d? The further notebook's lookup with scores divided by the root of the width, undivided, and from a smaller
start.

``python experiments/root_d.py`` trains each at two widths and several learning rates, and writes the accuracies on the
questions that choose the rate and on the test's to ``root_d.json``.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.decoding import evaluating
from course_utils.exercises import break_it
from course_utils.training import fit

HERE = Path(__file__).resolve().parent
STEPS = 400
RATES = {16: (5e-3, 1e-2, 2e-2), 256: (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3)}
"""For each width; narrow models want larger steps."""
WAYS = {"divided": (0, -0.5), "undivided": (1, -0.5), "smaller start": (1, -0.75)}
"""Which of `break_it`'s two functions attends, and the width's exponent in the initial deviation of W_q and W_k."""


def pairs_and_question(n, generator, T=12, n_names=32, n_numbers=16):
    """T pairs of different names and any numbers (n, T); the name asked for (n,),
    and its number (n,)"""
    names = torch.rand(n, n_names, generator=generator).argsort(dim=1)[:, :T]
    numbers = torch.randint(n_numbers, (n, T), generator=generator)
    rows, place = torch.arange(n), torch.randint(T, (n,), generator=generator)
    return names, numbers, names[rows, place], numbers[rows, place]


class Lookup(nn.Module):
    def __init__(self, d, attend, start=-0.5):
        super().__init__()
        self.name, self.number, self.attend = nn.Embedding(32, d), nn.Embedding(16, d), attend
        self.W_q, self.W_k, self.W_v = (nn.Linear(d, d, bias=False) for _ in range(3))
        for W in (self.W_q, self.W_k, self.W_v):
            # d ** -0.5 keeps the variance: q starts near 1, k near 2
            nn.init.normal_(W.weight, std=d ** (-0.5 if W is self.W_v else start))
        self.out = nn.Linear(d, 16)

    def forward(self, names, numbers, asked):
        x = self.name(names) + self.number(numbers)                     # (B, T, d)
        q = self.W_q(self.name(asked)).unsqueeze(1)                     # (B, 1, d)
        everywhere = torch.ones(1, 1, x.size(1), dtype=torch.bool)
        context, _ = self.attend(q, self.W_k(x), self.W_v(x), everywhere)   # (B, 1, d)
        return self.out(context.squeeze(1))             # (B, 16)


def answer_loss(model, batch):
    *question, answer = batch
    return F.cross_entropy(model(*question), answer), len(answer)


def accuracy(model, question, answer):
    with evaluating(model):
        return float((model(*question).argmax(dim=-1) == answer).float().mean())


def train(d: int, way: str, lr: float, steps: int, seed: int) -> tuple[float, float]:
    """Accuracy on the 500 questions that choose the rate, and on the 1,000 of the test."""
    setup(seed)
    generator = torch.Generator().manual_seed(seed)
    batches = [pairs_and_question(32, generator) for _ in range(STEPS)]
    (*asked, answers), (*tried, right) = (pairs_and_question(n, generator) for n in (1000, 500))
    which, start = WAYS[way]
    attend = break_it("scaled_dot_attention", " / math.sqrt(query.size(-1))", "")[which]
    torch.manual_seed(seed)
    model = Lookup(d, attend, start)
    fit(model, batches, steps, lr=lr, loss=answer_loss, label=f"{way}, d = {d}, rate {lr}, seed {seed}", live=False)
    return round(accuracy(model, tried, right), 3), round(accuracy(model, asked, answers), 3)


def main(arguments: list[str] | None = None) -> None:
    """All widths and ways at all rates and seeds; what is there is stored after each way."""
    parser = argparse.ArgumentParser(description="Scores with and without √d; writes root_d.json.")
    parser.add_argument("--steps", type=int, default=STEPS, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 1 2 3 4)")
    parser.add_argument("--out", default="root_d.json", help="file beside this script (default: %(default)s)")
    options = parser.parse_args(arguments)
    command = f"python experiments/root_d.py --steps {options.steps} --seeds {' '.join(map(str, options.seeds))}"
    rows = []
    for d, rates in RATES.items():
        for way in WAYS:
            runs = []
            rows.append({"d": d, "way": way, "runs": runs})
            for seed in options.seeds:
                found = {rate: train(d, way, rate, options.steps, seed) for rate in rates}
                best = max(rates, key=lambda rate: found[rate][0])                         # of equals the smallest
                runs.append({"rate": best, "accuracy": found[best][1],
                             "chosen_on": {str(rate): tried for rate, (tried, _) in found.items()},
                             "accuracy_at_rate": {str(rate): tested for rate, (_, tested) in found.items()}})
            store(HERE / options.out, command, options.seeds, {"steps": options.steps, "rows": rows})


if __name__ == "__main__":
    main()
