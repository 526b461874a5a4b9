"""The Transformer that `widgets.Translator` runs in a page: lesson 04's, trained as there, six times as long.

``python experiments/translator.py`` trains it (about five minutes), measures it, and writes two files:
``course_utils/widgets/static/translator.safetensors`` (the weights in 16 bits, both vocabularies, and sentences with
their true alignments, which it has not seen in training) and ``translator.json`` (BLEU by length, and how well each
head of the cross-attention aligns, of the weights as they are written).
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import EXAMPLE, Vocab, token_batches, train_test
from course_utils.data.text import encode_pairs
from course_utils.decoding import attention_records, translate
from course_utils.metrics import alignment_error_rate, bleu, by_group, length_groups
from course_utils.training import fit
from course_utils.transformer import Config, Transformer
from course_utils.widgets import translator

STEPS, PAIRS, TEST = 6000, 20_000, 420
SHOWN = 300          # sentences that come along


def lesson(seed: int = 0) -> tuple[list, list, Vocab, Vocab]:
    """The training pairs and the test pairs of lessons 02 and 04, and both vocabularies."""
    train_pairs, test = train_test(PAIRS, TEST, seed=seed)
    return train_pairs, test, Vocab(pair.source for pair in train_pairs), Vocab(pair.target for pair in train_pairs)


def in_16_bits(model: nn.Module) -> nn.Module:
    """The model with its weights rounded as the page will have them."""
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(weights.half())
    return model


def train(steps: int, seed: int = 0) -> tuple[Transformer, Vocab, Vocab, list]:
    """Lesson 04's sizes, data, batches and rate; weights rounded to 16 bits. Also both vocabularies and test pairs."""
    train_pairs, test, source, target = lesson(seed)
    torch.manual_seed(seed)
    model = Transformer(len(source), len(target), Config(n_heads=4))
    batches = token_batches(encode_pairs(train_pairs, source, target), tokens=500, seed=seed)
    fit(model, batches, steps, lr=6e-3, label="translator", live=False)
    return in_16_bits(model), source, target, test


def measure(model: nn.Module, source: Vocab, target: Vocab, test: list) -> dict:
    """BLEU, BLEU by length, and how many sentences are right word for word."""
    hypotheses = translate(model, [pair.source for pair in test], source, target)
    references = [pair.target for pair in test]
    return {"bleu": round(bleu(hypotheses, references), 1),
            "by_length": {group: round(score, 1)
                          for group, score in by_group(bleu, length_groups(test), hypotheses, references).items()},
            "word for word": sum(map(lambda h, r: tuple(h) == tuple(r), hypotheses, references)),
            "sentences": len(test)}


def error_rates(model: Transformer, source: Vocab, target: Vocab, test: list) -> list[list[float]]:
    """The alignment error rate of each head ``[layer][head]`` on the true translations."""
    records = attention_records(model, test, source, target)
    return [[round(alignment_error_rate([it.with_weights(it.weights[layer, head]) for it in records]), 3)
             for head in range(model.config.n_heads)] for layer in range(model.config.n_layers)]


def write(path: Path, weights: Iterable[tuple[str, Tensor]], source: Vocab, target: Vocab, pairs: list,
          **about: object) -> None:
    """What a page needs, as one file: weights in 16 bits, vocabularies, sentences that come along, what else is said.
    """
    shown = [EXAMPLE, *pairs][:SHOWN]
    about |= {"source": source.words, "target": target.words,
              "pairs": [[source.encode(pair.source), target.encode(pair.target), pair.links] for pair in shown]}
    save_file({name: values.detach().half() for name, values in weights}, path,
              {"about": json.dumps(about, ensure_ascii=False, separators=(",", ":"))})
    print(f"{path.stat().st_size:,} bytes")


def main(arguments: list[str] | None = None) -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description="Train the Transformer that widgets.Translator runs in a page.")
    parser.add_argument("--steps", type=int, default=STEPS, help="updates (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    parser.add_argument("--weights", type=Path, default=translator.WEIGHTS, help="default: %(default)s")
    options = parser.parse_args(arguments)
    setup(0)
    model, source, target, test = train(options.steps)
    results = {"steps": options.steps} | measure(model, source, target, test)
    results["alignment_error_rate"] = error_rates(model, source, target, test)
    kept = store(options.out, f"python experiments/translator.py --steps {options.steps}", [0], results)
    rates = torch.tensor(results["alignment_error_rate"])
    shown = [pair for k, pair in enumerate(test) if k % 7 < 5]                   # those of up to 29 words
    write(options.weights, model.named_parameters(), source, target, shown, made=str(kept),
          n_heads=model.config.n_heads, n_layers=model.config.n_layers,
          head=list(divmod(int(rates.argmin()), model.config.n_heads)))          # the one that aligns best
    print(results)


if __name__ == "__main__":
    main()
