"""A GPT for lesson 07: the model, its published weights, prompting and ablation.

    model, tokenizer = gpt.load()                        # SmolLM2-135M; `course fetch` installs it, once
    ids = torch.tensor([tokenizer.encode("The capital of France is").ids])
    print(tokenizer.decode(gpt.generate(model, ids, n_new=8)[0].tolist()))
"""

from .ablation import heads_at_mean, heads_off
from .llama import to_transformers
from .model import GPT, Config, SwiGLU, generate, llama_config
from .prompting import next_tokens, zero_shot
from .smollm2 import load

__all__ = ["GPT", "Config", "SwiGLU", "generate", "heads_at_mean", "heads_off", "llama_config", "load", "next_tokens",
           "to_transformers", "zero_shot"]
