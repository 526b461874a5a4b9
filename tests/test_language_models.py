"""Transformer-XL and the causal language model."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from sample_models import with_random_numbers
from sample_patterns import CAUSAL, PATTERNS, SIZES
from torch.testing import assert_close

from course_utils.efficient import dense, sdpa, strided
from course_utils.language_models import CausalLM, TransformerXL
from course_utils.transformer import Config, Transformer

SMALL = Config(d_model=16, n_heads=4, n_layers=2, d_ff=32, max_len=64)


@pytest.mark.parametrize("length", [1, 5, 16])
def test_segments_with_memory_are_one_pass(length):
    model, ids = with_random_numbers(TransformerXL(11, SMALL, mem_len=1000)), torch.randint(0, 11, (2, 32))
    whole, _ = model(ids)
    memories, parts = None, []
    for segment in ids.split(length, dim=1):
        logits, memories = model(segment, memories)
        parts.append(logits)
    assert_close(torch.cat(parts, dim=1), whole)


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("make", [CausalLM, partial(TransformerXL, mem_len=0)])
def test_a_layer_goes_around_what_it_has_not_normed(make, pre_norm):
    model = with_random_numbers(make(11, replace(SMALL, pre_norm=pre_norm)))
    layer, x = model.layers[0], torch.randn(2, 5, 16, dtype=model.embed.weight.dtype)
    first, second = layer.norm_1, layer.norm_2
    nothing = (x[:, :0],) if isinstance(model, TransformerXL) else ()
    if pre_norm:
        y = x + layer.self_attention(first(x), *nothing)
        expected = y + layer.feed_forward(second(y))
    else:
        y = first(x + layer.self_attention(x, *nothing))
        expected = second(y + layer.feed_forward(y))
    assert_close(layer(x, *nothing)[0], expected)


@pytest.mark.parametrize("make", [CausalLM, partial(TransformerXL, mem_len=0)])
@pytest.mark.parametrize("place", ["embeddings", "sublayers"])
def test_dropout_is_on_the_embeddings_and_on_what_each_sublayer_adds(make, place):
    """With all dropout off but that of one place, training is random; with all of it off it is not."""
    model, ids = with_random_numbers(make(11, replace(SMALL, dropout=0.5))), torch.randint(0, 11, (2, 8))
    places = {"embeddings": [model.dropout], "sublayers": [layer.dropout for layer in model.layers]}
    for part in model.eval().modules():
        part.train(part in places[place])
    first, second = (logits[0] if isinstance(logits, tuple) else logits for logits in (model(ids), model(ids)))
    assert not torch.equal(first, second)
    outputs = [model.eval()(ids) for _ in range(2)]
    assert_close(*outputs, atol=0, rtol=0)


def test_a_transformer_xl_drops_attention_weights():
    model = with_random_numbers(TransformerXL(11, replace(SMALL, dropout=0.5), mem_len=0)).eval()
    ids = torch.randint(0, 11, (2, 8))
    model.layers[0].self_attention.heads.dropout.train()
    assert not torch.equal(model(ids)[0], model(ids)[0])


@pytest.mark.parametrize("make", [CausalLM, partial(TransformerXL, mem_len=0), Transformer])
def test_without_bias_no_layer_adds_a_vector(make):
    names = [name for name, _ in make(11, config=replace(SMALL, bias=False)).named_parameters()]
    assert [name for name in names if name.endswith("bias") and "norm" not in name] == []
    assert any("feed_forward" in name for name in names)


def test_a_segment_longer_than_max_len_is_refused():
    model, ids = TransformerXL(11, SMALL, mem_len=64), torch.zeros(1, 65, dtype=torch.long)
    with pytest.raises(ValueError, match="65 positions, but this TransformerXL has max_len=64"):
        model(ids)
    _, memories = model(ids[:, :64])
    assert model(ids[:, 64:], memories)[0].shape == (1, 1, 11)                  # what is remembered does not count


def test_memories_of_another_batch_or_model_are_refused():
    model, ids = TransformerXL(11, SMALL, mem_len=4), torch.randint(0, 11, (2, 8))
    _, memories = model(ids)
    for wrong in (memories[:1], [m[:1] for m in memories]):
        with pytest.raises(ValueError, match=r"expected 2 layers of 2\. Begin another batch with memories=None"):
            model(ids, wrong)
    model.mem_len = -1
    with pytest.raises(ValueError, match="mem_len is -1; expected at least 0"):
        model(ids)


def test_memory_is_cut_and_carries_no_gradient():
    model, ids = TransformerXL(11, SMALL, mem_len=6), torch.randint(0, 11, (2, 8))
    memories = None
    for _ in range(2):
        _, memories = model(ids, memories)
        assert [tuple(m.shape) for m in memories] == [(2, 6, 16)] * 2
        assert not any(m.requires_grad for m in memories)
    model.mem_len = 0
    _, memories = model(ids, memories)
    assert [tuple(m.shape) for m in memories] == [(2, 0, 16)] * 2


def test_more_memory_sees_further():
    """Without memory the first token of a segment depends on nothing before it."""
    model, ids = with_random_numbers(TransformerXL(11, SMALL, mem_len=4)), torch.randint(0, 11, (1, 8))
    changed = ids.clone()
    changed[:, 0] = (ids[:, 0] + 1) % 11
    for mem_len, same in ((0, True), (4, False)):
        model.mem_len = mem_len
        first, second = (model(x[:, 4:], model(x[:, :4])[1])[0] for x in (ids, changed))
        assert torch.equal(first, second) == same


# --- the language model --------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", CAUSAL)
def test_every_causal_pattern_makes_a_language_model(name):
    torch.manual_seed(0)
    model, ids = CausalLM(11, SMALL, PATTERNS[name].function(**SIZES)), torch.randint(0, 11, (2, 21))
    logits = model(ids)
    changed = ids.clone()
    changed[:, 12:] = (ids[:, 12:] + 1) % 11
    assert logits.shape == (2, 21, 11)
    assert_close(model(changed)[:, :12], logits[:, :12])
    logits.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_the_kernel_and_the_matrix_are_the_same_language_model():
    torch.manual_seed(0)
    model, ids = CausalLM(11, SMALL, sdpa), torch.randint(0, 11, (2, 21))
    before = model(ids)
    for layer in model.layers:
        layer.self_attention.function = dense
    assert_close(model(ids), before)


def test_positions_may_be_any_module():
    class Grid(torch.nn.Module):
        def forward(self, positions):
            return torch.stack([positions // 4, positions % 4] * 8, dim=-1).float()

    torch.manual_seed(0)
    model, ids = CausalLM(11, SMALL, positions=Grid()), torch.zeros(1, 16, dtype=torch.long)
    assert not any("positions" in name for name, _ in model.named_parameters())
    assert not torch.allclose(model(ids)[:, 0], model(ids)[:, 5])


def test_the_memory_is_the_end_of_what_was_read():
    model, ids = with_random_numbers(TransformerXL(11, SMALL, mem_len=1000)), torch.randint(0, 11, (2, 8))
    _, everything = model(ids)
    model.mem_len = 5
    for short, long in zip(model(ids)[1], everything, strict=True):
        assert torch.equal(short, long[:, -5:])


@pytest.mark.parametrize("make", [CausalLM, partial(TransformerXL, mem_len=0)])
def test_ids_without_a_batch_are_refused(make):
    with pytest.raises(ValueError, match=r"ids has shape \(8,\); expected ids \(B, T\)"):
        make(11, SMALL)(torch.zeros(8, dtype=torch.long))


def test_embeddings_enter_with_variance_one():
    torch.manual_seed(0)
    assert CausalLM(2000, SMALL).embed_ids(torch.arange(2000).view(-1, 50)).std().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("eps", [1e-5, 1.0])
def test_with_pre_norm_the_last_sum_is_normed(eps):
    torch.manual_seed(0)
    model, x = CausalLM(11, replace(SMALL, norm_eps=eps)), torch.randn(2, 5, 16)
    by_hand = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt()
    assert_close(model.logits(x), by_hand @ model.embed.weight.T)


def test_with_post_norm_it_has_been_normed():
    torch.manual_seed(0)
    model, x = CausalLM(11, replace(SMALL, pre_norm=False)), torch.randn(2, 5, 16)
    assert torch.equal(model.logits(x), x @ model.embed.weight.T)


@pytest.mark.parametrize("positions", [None, torch.nn.Embedding(100, 16)])
def test_too_many_ids_are_told(positions):
    with pytest.raises(ValueError, match="65 positions, but this CausalLM has max_len=64"):
        CausalLM(11, SMALL, partial(strided, stride=8), positions)(torch.zeros(1, 65, dtype=torch.long))
