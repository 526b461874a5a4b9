"""How large the models of the lectures are: what their authors say, and how to build them without memory."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import nn

from . import bert, gpt, transformer
from .bert import Bert
from .gpt import GPT
from .language_models import TransformerXL
from .transformer import Transformer


class Published(NamedTuple):
    """A model's size as its authors give it, and a function that makes it."""

    millions: float
    build: Callable[[], nn.Module]


def millions(build: Callable[[], nn.Module]) -> float:
    """Millions of weights of what ``build()`` makes on the meta device, where tensors are shapes without numbers."""
    with torch.device("meta"):
        return sum(weights.numel() for weights in build().parameters()) / 1e6


def _gpt(vocab_size: int, d: int, layers: int, heads: int, length: int) -> GPT:
    return GPT(vocab_size, gpt.Config(d_model=d, n_layers=layers, n_heads=heads, d_ff=4 * d, max_len=length))


def _bert(vocab_size: int, d: int, layers: int, heads: int, length: int = 512, segments: int = 2) -> Bert:
    sizes = {"d_model": d, "n_layers": layers, "n_heads": heads, "d_ff": 4 * d, "max_len": length}
    return Bert(vocab_size, replace(bert.BASE, **sizes), n_segments=segments)


def _of_library(name: str, **sizes) -> nn.Module:
    """A network of transformers, by its name, such as ``Albert``."""
    import transformers

    config = getattr(transformers, f"{name}Config")(**sizes)
    return getattr(transformers, name + ("ForConditionalGeneration" if name == "T5" else "Model"))(config)


XL = transformer.Config(d_model=1024, n_layers=24, n_heads=8, d_ff=3072)              # enwik8, 24 layers
T5_11B = {"vocab_size": 32_128, "d_model": 1024, "d_kv": 128, "d_ff": 65_536, "num_heads": 128, "num_layers": 24}

PUBLISHED = {
    "Transformer base": Published(65, lambda: Transformer(37_000, config=transformer.BASE)),
    "DistilBERT": Published(66, lambda: _of_library("DistilBert")),
    "BERT base": Published(110, lambda: _bert(30_522, 768, 12, 12)),
    "GPT": Published(117, lambda: _gpt(40_478, 768, 12, 12, 512)),
    "mBERT": Published(177, lambda: _bert(119_547, 768, 12, 12)),                      # by DistilBERT's authors
    "Transformer big": Published(213, lambda: Transformer(37_000, config=transformer.BIG)),
    "ALBERT xxlarge": Published(235, lambda: _of_library("Albert")),
    "Transformer-XL": Published(277, lambda: TransformerXL(204, XL, mem_len=784)),
    "BERT large": Published(340, lambda: _bert(30_522, 1024, 24, 16)),
    "RoBERTa large": Published(355, lambda: _bert(50_265, 1024, 24, 16, 514, 1)),
    "GPT-2 XL": Published(1542, lambda: _gpt(50_257, 1600, 48, 25, 1024)),
    "T5-11B": Published(11_000, lambda: _of_library("T5", **T5_11B)),
    "GPT-3": Published(175_000, lambda: _gpt(50_257, 12_288, 96, 96, 2048)),
}
"""Each with the course's own class, or (DistilBERT, ALBERT, T5) that of transformers."""
