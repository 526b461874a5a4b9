"""How fast does the course's BERT read, compared with transformers' on the same weights?

    python experiments/bench_bert.py        # two minutes

all-MiniLM-L6-v2, 32 texts of 64 ids, one thread, evaluation mode, no gradients; transformers attends with PyTorch's
kernel ("sdpa"), and so does ours. Once padded (33 to 64 ids), once full. Both run once a round, in turns; CPU time; the
ratio is the median of the rounds' own ratios (theirs / ours, above 1: ours is faster), with its quartiles. Both must
give the same states. Writes ``bench_bert.json``, from which ``tables.py`` makes a table.
"""

import argparse
import statistics
from pathlib import Path

import torch
from bench_transformer import keep_freed_memory, seconds
from torch.testing import assert_close
from transformers import BertModel

from course_utils import bert
from course_utils.claims.stored import store

B, T = 32, 64
WARM_UP, ROUNDS = 2, 60


@torch.no_grad()
def compare(mask: torch.Tensor) -> dict:
    """Milliseconds of both, and quartiles of their time divided by ours."""
    model, tokenizer = bert.load()
    theirs = BertModel.from_pretrained(bert.find("all-MiniLM-L6-v2"), attn_implementation="sdpa").eval()
    ids = torch.randint(1000, len(tokenizer), (B, T)).masked_fill(~mask, 0)
    segments, numbers = torch.zeros_like(ids), mask.long()
    calls = [lambda: model(ids, mask, segments).x, lambda: theirs(ids, numbers, segments).last_hidden_state]
    assert_close(calls[0](), calls[1](), atol=1e-5, rtol=0)
    rounds = []
    for i in range(WARM_UP + ROUNDS):
        first = i % 2
        times = {j: seconds(calls[j]) for j in (first, 1 - first)}
        rounds.append((times[0], times[1]))
    ours, library = zip(*rounds[WARM_UP:], strict=True)
    return {"ours": 1000 * statistics.median(ours), "transformers": 1000 * statistics.median(library),
            "ratio": statistics.quantiles([b / a for a, b in zip(ours, library, strict=True)], n=4)}


def main(arguments: list[str] | None = None) -> None:
    """Measure padded and full texts, and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    out = parser.parse_args(arguments).out
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results = {"padded": compare(torch.arange(T) < torch.randint(T // 2 + 1, T + 1, (B, 1))),
               "full": compare(torch.ones(B, T, dtype=torch.bool))}
    print(results)
    store(out, "python experiments/bench_bert.py", [0], results)


if __name__ == "__main__":
    main()
