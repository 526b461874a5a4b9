"""Weights for the tests of models: PyTorch's with ours, and numbers where a new model has zeros and ones."""

import torch
from torch import nn


def torch_twin(ours):
    """PyTorch's attention with our weights."""
    twin = nn.MultiheadAttention(ours.W_q.in_features, ours.n_heads, batch_first=True)
    with torch.no_grad():
        twin.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]))
        twin.in_proj_bias.copy_(torch.cat([ours.W_q.bias, ours.W_k.bias, ours.W_v.bias]))
        twin.out_proj.weight.copy_(ours.W_o.weight)
        twin.out_proj.bias.copy_(ours.W_o.bias)
    return twin


def shaken(module):
    """With biases and norms that are not zeros and ones, so that one left out is seen."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    return module


def with_random_numbers(model):
    """Also where a new model has zeros, which would hide a term."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    return model.double()
