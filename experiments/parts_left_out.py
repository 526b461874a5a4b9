"""Lesson 04: is attention enough? Its Transformer as a whole, and with one part left out.

``python experiments/parts_left_out.py`` trains each on the lesson's sentences, for the lesson's steps, and writes its
BLEU on the lesson's test set to ``parts_left_out.json``. Each may choose its learning rate: the one with the smallest
loss on validation sentences at seed 0. Six layers instead of two, with and without LayerNorm:
``python experiments/parts_left_out.py --layers 6 --rates 0.006 0.002 0.001 --parts "all parts" "no norm"
--out parts_left_out_deep.json``. The same from larger initial weights, Xavier's: ``--xavier``, and
``--out parts_left_out_xavier.json``.
"""

import argparse
import shlex
from pathlib import Path

import torch
from torch import nn

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import Vocab, token_batches, train_test
from course_utils.data.text import collate, encode_pairs
from course_utils.decoding import evaluating, translate
from course_utils.metrics import bleu
from course_utils.training import fit, sequence_loss
from course_utils.transformer import Config, DecoderLayer, EncoderLayer, Transformer, look_back

HERE = Path(__file__).resolve().parent
RATES = (6e-3, 2e-3)
STEPS = 1000
DIVERGED = 1000.0  # nats per token: JSON has no infinity


class BareEncoderLayer(EncoderLayer):
    """Nothing is added to ``x``: it is replaced."""

    def forward(self, x, mask=None, need_weights=False):
        x, weights = self.self_attention(self.norm_1(x), mask=mask, need_weights=need_weights)
        return self.feed_forward(self.norm_2(x)), weights


class BareDecoderLayer(DecoderLayer):
    """Nothing is added to ``x``: it is replaced."""

    def forward(self, x, memory, src_mask, past, need_weights=False):
        x, _, past = look_back(self.self_attention, self.norm_1(x), past, need_weights=False)
        x, weights = self.cross_attention.attend(self.norm_2(x), *memory, src_mask, need_weights=need_weights)
        return self.feed_forward(self.norm_3(x)), weights, past


class Nothing(nn.Module):
    """Adds nothing to the residual path."""

    def forward(self, x):
        return torch.zeros_like(x)


def layers(model: Transformer) -> list[nn.Module]:
    return [*model.encoder.layers, *model.decoder.layers]


def without_feed_forward(model: Transformer) -> None:
    for layer in layers(model):
        layer.feed_forward = Nothing()


def without_residual(model: Transformer) -> None:
    for layer in layers(model):
        layer.__class__ = BareEncoderLayer if isinstance(layer, EncoderLayer) else BareDecoderLayer


def without_norm(model: Transformer) -> None:
    without_norms_in_layers(model)
    for stack in (model.encoder, model.decoder):
        stack.norm = nn.Identity()


def without_norms_in_layers(model: Transformer) -> None:
    """The last one of each stack stays."""
    for layer in layers(model):
        for name in [name for name, _ in layer.named_children() if name.startswith("norm")]:
            setattr(layer, name, nn.Identity())


def without_positions(model: Transformer) -> None:
    model.positions.zero_()


def without_self_attention(model: Transformer) -> None:
    """It adds nothing; the cross-attention stays."""
    for layer in layers(model):
        for parameter in layer.self_attention.W_o.parameters():
            nn.init.zeros_(parameter).requires_grad_(False)


def without_norm_and_feed_forward(model: Transformer) -> None:
    """What is left: attention, the residual path, and positions, which attention cannot do without."""
    without_norm(model)
    without_feed_forward(model)


PARTS = {"all parts": lambda model: None, "no norm": without_norm, "no feed-forward": without_feed_forward,
         "no positions": without_positions, "no residual path": without_residual,
         "no self-attention": without_self_attention,
         "attention, path, positions": without_norm_and_feed_forward,
         "only the last norms": without_norms_in_layers}


def in_command(parser: argparse.ArgumentParser, options: argparse.Namespace, *names: str) -> str:
    """The options of these names that are not the default, as a command has them."""
    return "".join(f" --{name} {shlex.join(map(str, given if isinstance(given, list) else [given]))}"
                   for name in names if (given := getattr(options, name)) != parser.get_default(name))


def main(arguments: list[str] | None = None) -> None:
    """Choose each one's rate at the first seed, train it at the others, and store after each training."""
    parser = argparse.ArgumentParser(description="The Transformer without a part; writes parts_left_out.json.")
    parser.add_argument("--steps", type=int, default=STEPS, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="(default: 0 1 2)")
    parser.add_argument("--layers", type=int, default=2, help="in the encoder, and as many in the decoder (default: 2)")
    parser.add_argument("--rates", type=float, nargs="+", default=RATES, help="learning rates to choose from")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS][:-1], metavar="PART",
                        help=", ".join(PARTS))
    parser.add_argument("--xavier", action="store_true", help="Xavier's initial weights, as in nn.Transformer")
    parser.add_argument("--out", default="parts_left_out.json", help="file beside this script (default: %(default)s)")
    options = parser.parse_args(arguments)
    command = (f"python experiments/parts_left_out.py --steps {options.steps} "
               f"--seeds {' '.join(map(str, options.seeds))}")
    command += in_command(parser, options, "layers", "rates", "parts", "out")
    command += " --xavier" * options.xavier
    results = {"steps": options.steps, "layers": options.layers, "rates": options.rates, "parts": {}}

    def train(part: str, lr: float, seed: int) -> tuple[float, float]:
        """Loss on held-out sentences, and BLEU on the test set; of one that diverges 1,000, and 0."""
        setup(seed)
        pairs, test = train_test(20_000, 420, seed=seed)
        english, french = Vocab(pair.source for pair in pairs), Vocab(pair.target for pair in pairs)
        ids = encode_pairs(pairs, english, french)
        torch.manual_seed(seed)
        model = Transformer(len(english), len(french), Config(n_heads=4, n_layers=options.layers))
        for name, weights in model.named_parameters():
            if options.xavier and weights.dim() > 1 and "embed" not in name:
                nn.init.xavier_uniform_(weights)
        PARTS[part](model)
        try:
            fit(model, token_batches(ids[1000:], tokens=500, seed=seed), steps=options.steps, lr=lr, live=False,
                label=f"{part}, rate {lr}, seed {seed}")
        except FloatingPointError as diverged:
            print(part, lr, seed, diverged, flush=True)
            return DIVERGED, 0.0
        with evaluating(model):
            batches = [collate(ids[i:i + 100]) for i in range(0, 1000, 100)]          # not trained on
            held_out = sum(float(sequence_loss(model, batch)[0]) for batch in batches) / len(batches)
        hypotheses = translate(model, [pair.source for pair in test], english, french)
        result = round(held_out, 3), round(bleu(hypotheses, [pair.target for pair in test]), 1)
        print(part, lr, seed, *result, flush=True)
        return result

    first, *others = options.seeds
    for part in options.parts:
        tried = {lr: train(part, lr, first) for lr in options.rates}
        best = min(tried, key=tried.get)
        results["parts"][part] = {"rate": best, "held_out_loss": {str(lr): loss for lr, (loss, _) in tried.items()},
                                  "bleu_at_rate": {str(lr): score for lr, (_, score) in tried.items()},
                                  "bleu": [tried[best][1]]}
        store(HERE / options.out, command, options.seeds, results)
    for seed in others:
        for row, part in ((results["parts"][part], part) for part in options.parts):
            row["bleu"].append(train(part, row["rate"], seed)[1])
            store(HERE / options.out, command, options.seeds, results)


if __name__ == "__main__":
    main()
