"""How fast are the Transformer's layers, and how much does its cache save?

    pip install transformers        # in an environment of its own; without it, its layers are left out
    python experiments/bench_transformer.py

Writes ``bench_transformer.json``, from which ``tables.py`` makes two tables; CPU time, one thread.

Layers: one forward and one backward pass in training mode, post-LN, ReLU, float32; 32 sentences of 33 to 64 words,
padded to 64. The gradient reaches the weights, the input and the memory. PyTorch's layers and those of transformers
(BERT's encoder, BART's decoder, with its "sdpa" attention) do the same work: same sizes, same dropouts, masks made
beforehand; their decoders are told by a flag that they are causal. All layers run once a round, in random order. The
time is the median round, the ratio the median of the rounds' own ratios (theirs / ours, above 1: ours is faster),
with its quartiles. With glibc, freed memory stays with the process: else asking the system for it again takes any of
the layers up to 7 % longer, at random.

Cache: greedy decoding by the same untrained model, with the caches, and with all earlier words read again for every
word. In both the encoder runs once, and only the last word's logits are computed; the one without a cache may use
PyTorch's kernel, which does not store the weights. Both must write the same words. The median of three runs.
"""

import argparse
import ctypes
import platform
import random
import statistics
import time
from pathlib import Path

import torch
from torch import nn

from course_utils.claims.stored import store
from course_utils.data.text import EOS
from course_utils.decoding import greedy
from course_utils.transformer import Cache, Config, DecoderLayer, EncoderLayer, Transformer

B, T = 32, 64
D_MODEL, N_HEADS, D_FF = 256, 8, 1024
WARM_UP, ROUNDS = 3, 120

BATCHES, LENGTHS = (1, 8, 32), (50, 100, 200, 400)
MODEL = Config(max_len=512)
SOURCE_LENGTH, WORDS, DECODINGS = 20, 200, 3


def keep_freed_memory() -> None:
    """Sets ``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` (to the largest allowed), see ``man mallopt``."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-1, 2 ** 30)
        libc.mallopt(-3, 2 ** 25)


def seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


# --- layers --------------------------------------------------------------------------------------------------

# Each function returns a layer, and a function of x and memory (B, T, d_model) that calls it with the mask (B, 1, T).

def ours(kind, dropout, mask):
    config = Config(D_MODEL, N_HEADS, d_ff=D_FF, dropout=dropout, pre_norm=False)
    if kind == "encoder":
        layer = EncoderLayer(config)
        return layer, lambda x, memory: layer(x, mask)[0]
    layer, empty = DecoderLayer(config), torch.zeros(B, N_HEADS, 0, D_MODEL // N_HEADS)
    return layer, lambda x, memory: layer(x, Cache(*layer.cross_attention.project_keys(memory)), mask,
                                          Cache(empty, empty))[0]


def of_torch(kind, dropout, mask):
    make = nn.TransformerEncoderLayer if kind == "encoder" else nn.TransformerDecoderLayer
    layer = make(D_MODEL, N_HEADS, D_FF, dropout, batch_first=True)
    layer.dropout = nn.Identity()                     # a dropout inside the feed-forward network, which the others lack
    padding = torch.zeros(B, T).masked_fill(~mask.squeeze(1), -torch.inf)
    if kind == "encoder":
        return layer, lambda x, memory: layer(x, src_key_padding_mask=padding)
    causal = nn.Transformer.generate_square_subsequent_mask(T)
    return layer, lambda x, memory: layer(x, memory, causal, memory_key_padding_mask=padding, tgt_is_causal=True)


def of_transformers(kind, dropout, mask):
    from transformers import BartConfig, BertConfig
    from transformers.models.bart.modeling_bart import BartDecoderLayer
    from transformers.models.bert.modeling_bert import BertLayer

    mask = mask.unsqueeze(1)
    if kind == "encoder":
        layer = BertLayer(BertConfig(
            hidden_size=D_MODEL, num_attention_heads=N_HEADS, intermediate_size=D_FF, hidden_act="relu",
            hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, attn_implementation="sdpa"))
        return layer, lambda x, memory: layer(x, mask)
    layer = BartDecoderLayer(BartConfig(
        d_model=D_MODEL, decoder_attention_heads=N_HEADS, decoder_ffn_dim=D_FF, activation_function="relu",
        dropout=dropout, attention_dropout=dropout, attn_implementation="sdpa"), layer_idx=0)
    return layer, lambda x, memory: layer(x, None, memory, mask)


LIBRARIES = {"ours": ours, "torch": of_torch, "transformers": of_transformers}


def compare_layers(kind: str, dropout: float) -> dict[str, dict]:
    """Milliseconds of each library, and quartiles of its time divided by ours; a library may be missing."""
    torch.manual_seed(0)
    x, memory, gradient = (torch.randn(B, T, D_MODEL) for _ in range(3))
    x.requires_grad_()
    memory.requires_grad_(kind == "decoder")
    mask = torch.arange(T) < torch.randint(T // 2 + 1, T + 1, (B, 1, 1))
    steps, sizes = {}, set()
    for name, make in LIBRARIES.items():
        try:
            layer, forward = make(kind, dropout, mask)
        except ImportError as missing:
            print(f"{name}, not measured: {missing}")
            continue
        sizes.add(sum(p.numel() for p in layer.train().parameters()))

        def step(layer=layer, forward=forward):
            layer.zero_grad()
            x.grad = memory.grad = None
            forward(x, memory).backward(gradient)

        steps[name] = step
    assert len(sizes) == 1, f"the layers differ in their number of parameters: {sizes}"
    order = random.Random(0)
    rounds = [{name: seconds(steps[name]) for name in order.sample(list(steps), k=len(steps))}
              for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    return {name: {"milliseconds": 1000 * statistics.median(times[name] for times in rounds),
                   "ratio": statistics.quantiles([times[name] / times["ours"] for times in rounds], n=4)}
            for name in steps}


# --- cache ---------------------------------------------------------------------------------------------------

class WithoutCache(nn.Module):
    """The same model for `greedy`; its state is what it has written, and it reads all of that at every step."""

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def encode(self, source):
        memory, self.empty = self.model.encode(source)
        return memory, source[:, :0]

    def decode(self, target, written, memory, need_weights):
        written, table = torch.cat([written, target], dim=1), self.model.target_embed
        x, _, _ = self.model.decoder(self.model.embed(written, table), memory.caches, memory.src_mask, self.empty)
        return x[:, -1:] @ table.weight.T, None, written


def compare_decoding(batch: int, length: int) -> dict[str, float]:
    """Seconds with the cache, and with all earlier words read again."""
    torch.manual_seed(0)
    model = Transformer(WORDS, config=MODEL)
    nn.init.zeros_(model.target_embed.weight[EOS])          # its logit is 0, never the highest: nothing ends early
    source, written = torch.randint(EOS + 1, WORDS, (batch, SOURCE_LENGTH)), []
    greedy(model, source, length, need_weights=True)        # a warm-up
    cached, reread = (statistics.median(seconds(lambda m=m: written.append(greedy(m, source, length, True)[0]))
                                        for _ in range(DECODINGS)) for m in (model, WithoutCache(model)))
    assert all(ids.size(1) == length for ids in written), "it ended early"
    assert all(torch.equal(ids, written[0]) for ids in written), "with the cache the model writes other words"
    return {"cached": cached, "reread": reread}


def main(arguments: list[str] | None = None) -> None:
    """Measure everything, and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    out = parser.parse_args(arguments).out
    keep_freed_memory()
    torch.set_num_threads(1)
    results = {"layers": {kind: {} for kind in ("encoder", "decoder")}, "decoding": {str(n): {} for n in BATCHES}}
    for dropout in (0.0, 0.1):
        for kind, rows in results["layers"].items():
            rows[str(dropout)] = compare_layers(kind, dropout)
            print(kind, dropout, rows[str(dropout)], flush=True)
    for batch in BATCHES:
        for length in LENGTHS:
            results["decoding"][str(batch)][str(length)] = row = compare_decoding(batch, length)
            print(batch, length, row, flush=True)
    store(out, "python experiments/bench_transformer.py", [0], results)


if __name__ == "__main__":
    main()
