"""The same network in transformers' class: its names for the parts, its order of the rotated pairs."""

import torch
from torch import Tensor

from .model import GPT


def to_transformers(model: GPT):
    """The same network as a ``LlamaForCausalLM`` of transformers, which shares its weights where it can.

    Theirs rotates number i of a head with number i + d_k / 2, not with its neighbour: of queries and keys, the rows
    change places. A GPT without rotary positions, or with ``pre_norm=False``, is a ``ValueError``.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    config = model.config
    if not (config.rotary and config.pre_norm):
        raise ValueError(f"config has rotary={config.rotary} and pre_norm={config.pre_norm}, a Llama both; make the "
                         "model with llama_config.")
    with torch.device("meta"):
        llama = LlamaForCausalLM(LlamaConfig(
            vocab_size=len(model.embed.weight), hidden_size=config.d_model, intermediate_size=config.d_ff,
            num_hidden_layers=config.n_layers, num_attention_heads=config.n_heads, tie_word_embeddings=True,
            num_key_value_heads=config.n_kv_heads or config.n_heads, max_position_embeddings=config.max_len,
            rms_norm_eps=config.norm_eps, rope_parameters={"rope_type": "default", "rope_theta": config.base}))
    llama.load_state_dict(_names_of_llama(model), strict=False, assign=True)       # without the tied matrix
    llama.tie_weights()
    llama.model.rotary_emb = type(llama.model.rotary_emb)(llama.config)            # its frequencies were on meta
    return llama.eval()


LLAMA = {"embed": "model.embed_tokens", "layers": "model.layers", "norm_1": "input_layernorm",
         "norm_2": "post_attention_layernorm", "self_attention": "self_attn", "feed_forward": "mlp", "W_q": "q_proj",
         "W_k": "k_proj", "W_v": "v_proj", "W_o": "o_proj", "W_gate": "gate_proj", "W_up": "up_proj",
         "W_down": "down_proj", "norm": "model.norm"}
"""Our names for parts, and those of transformers."""


def _names_of_llama(model: GPT) -> dict[str, Tensor]:
    state, d_k = {}, model.config.d_model // model.config.n_heads
    for name, weight in model.state_dict().items():
        if "W_q" in name or "W_k" in name:
            weight = weight.unflatten(0, (-1, d_k // 2, 2)).transpose(1, 2).flatten(0, 2)
        state[".".join(LLAMA.get(part, part) for part in name.split("."))] = weight
    return state
