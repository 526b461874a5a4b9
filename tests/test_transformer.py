"""The Transformer: equal to PyTorch's, causal, blind to padding, the same with a cache, and trainable."""

import copy
import io
import math
from dataclasses import replace

import pytest
import torch
from sample_models import shaken, torch_twin
from torch import nn
from torch.testing import assert_close

from course_utils.attention import MultiHeadAttention, causal_mask, sinusoidal
from course_utils.data.text import BOS, EOS, PAD, Batch, Vocab, collate, encode_pairs
from course_utils.decoding import attention_records, beam_search, greedy, sample, translate
from course_utils.models import evaluating
from course_utils.training import fit, sequence_loss
from course_utils.transformer import (
    BASE,
    BIG,
    Cache,
    Config,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    Transformer,
)

SMALL = Config(d_model=16, n_heads=4, n_layers=2, d_ff=32, max_len=20)
VOCAB = 12
SOURCE = torch.tensor([[4, 5, 6, 7, 8, EOS], [9, 10, EOS, PAD, PAD, PAD], [11, 4, 4, EOS, PAD, PAD]])
TARGET = torch.tensor([[BOS, 5, 6, 7, 7], [BOS, 8, 9, PAD, PAD], [BOS, 4, 10, 11, PAD]])
B, T_Q, T_K = 3, 5, 6

both_norms = pytest.mark.parametrize("pre_norm", [True, False], ids=["pre_norm", "post_norm"])
both_modes = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


@pytest.fixture(autouse=True)
def _same_weights_in_every_run():
    torch.manual_seed(0)


def make_model(seed=0, target_size=VOCAB, **changes):
    torch.manual_seed(seed)
    return shaken(Transformer(VOCAB, target_size, replace(SMALL, **changes)))


def vectors(T, seed=0):
    return torch.randn(B, T, SMALL.d_model, generator=torch.Generator().manual_seed(seed))


def padding_mask(T):
    """``(B, 1, T)``: sentences of T, T - 1 and T - 2 words."""
    return torch.arange(T) < T - torch.arange(B)[:, None, None]


def empty_cache():
    return Cache(*torch.empty(2, B, SMALL.n_heads, 0, SMALL.d_model // SMALL.n_heads))


# --- agreement with PyTorch ----------------------------------------------------------------------------------

def torch_layer(ours, config):
    """PyTorch's layer with copies of our weights."""
    make = nn.TransformerEncoderLayer if isinstance(ours, EncoderLayer) else nn.TransformerDecoderLayer
    twin = make(config.d_model, config.n_heads, config.d_ff, config.dropout, batch_first=True,
                norm_first=config.pre_norm, layer_norm_eps=config.norm_eps)
    twin.self_attn = torch_twin(ours.self_attention)
    if isinstance(ours, DecoderLayer):
        twin.multihead_attn = torch_twin(ours.cross_attention)
    twin.linear1, _, twin.linear2 = copy.deepcopy(ours.feed_forward)
    for i in range(1, 3 + isinstance(ours, DecoderLayer)):
        getattr(twin, f"norm{i}").load_state_dict(getattr(ours, f"norm_{i}").state_dict())      # its own eps
    return twin.train(ours.training)


def torch_stack(ours, config):
    """PyTorch's encoder or decoder with copies of our weights."""
    norm = None
    if config.pre_norm:
        norm = nn.LayerNorm(config.d_model, config.norm_eps)
        norm.load_state_dict(ours.norm.state_dict())
    layers = [torch_layer(layer, config) for layer in ours.layers]
    if isinstance(ours, Encoder):
        twin = nn.TransformerEncoder(layers[0], config.n_layers, norm, enable_nested_tensor=False)
    else:
        twin = nn.TransformerDecoder(layers[0], config.n_layers, norm)
    twin.layers = nn.ModuleList(layers)
    return twin.train(ours.training)


def gradients(output, *inputs):
    """Of a sum that weighs every number of the output differently."""
    return torch.autograd.grad((output * output.detach().cos()).sum(), inputs)


@both_modes
@both_norms
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masked", [None, "padding", "causal", "both"])
def test_an_encoder_layer_equals_torchs(masked, need_weights, pre_norm, training):
    config = replace(SMALL, pre_norm=pre_norm, norm_eps=0.1)
    ours, x = shaken(EncoderLayer(config)).train(training), vectors(T_K).requires_grad_()
    padding, causal = padding_mask(T_K), causal_mask(T_K)
    mask = {None: None, "padding": padding, "causal": causal, "both": padding & causal}[masked]
    output, weights = ours(x, mask, need_weights)
    expected = torch_layer(ours, config)(
        x, src_mask=~causal if masked in ("causal", "both") else None,             # True is *may not* in PyTorch
        src_key_padding_mask=~padding.squeeze(1) if masked in ("padding", "both") else None)
    assert_close(output, expected, atol=1e-5, rtol=0)
    assert_close(gradients(output, x), gradients(expected, x), atol=1e-5, rtol=1e-5)
    if need_weights:
        assert weights.shape == (B, SMALL.n_heads, T_K, T_K)
        assert torch.equal(weights > 0, torch.ones_like(weights) > 0 if mask is None else
                           mask.expand(B, T_K, T_K).unsqueeze(1).expand_as(weights))
    else:
        assert weights is None


@both_modes
@both_norms
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_a_decoder_layer_equals_torchs(padded, need_weights, pre_norm, training):
    config = replace(SMALL, pre_norm=pre_norm, norm_eps=0.1)
    ours = shaken(DecoderLayer(config)).train(training)
    x, top = vectors(T_Q).requires_grad_(), vectors(T_K, seed=1).requires_grad_()
    mask = padding_mask(T_K) if padded else None
    memory = Cache(*ours.cross_attention.project_keys(top))
    output, weights, cache = ours(x, memory, mask, empty_cache(), need_weights)
    expected = torch_layer(ours, config)(x, top, tgt_mask=~causal_mask(T_Q),
                                         memory_key_padding_mask=~mask.squeeze(1) if padded else None)
    assert_close(output, expected, atol=1e-5, rtol=0)
    assert_close(gradients(output, x, top), gradients(expected, x, top), atol=1e-5, rtol=1e-5)
    assert cache.k.shape == cache.v.shape == (B, SMALL.n_heads, T_Q, SMALL.d_model // SMALL.n_heads)
    if need_weights:
        assert weights.shape == (B, SMALL.n_heads, T_Q, T_K)
    else:
        assert weights is None


@pytest.mark.parametrize(("setting", "error", "message"), [
    ({"d_model": 64.0}, TypeError, "d_model is 64.0; expected a whole number"),
    ({"n_layers": "2"}, TypeError, "n_layers is '2'; expected a whole number"),
    ({"dropout": "0.1"}, TypeError, "dropout is '0.1', a str; expected a number"),
    ({"dropout": 2.0}, ValueError, "dropout is 2.0; expected a share from 0 to 1"),
    ({"dropout": -0.1}, ValueError, "dropout is -0.1"), ({"dropout": math.nan}, ValueError, "dropout is nan")])
def test_settings_that_no_transformer_can_have_are_refused(setting, error, message):
    with pytest.raises(error, match=message):
        Config(**setting)


@pytest.mark.parametrize("size", ["d_model", "n_heads", "n_layers", "d_ff", "max_len"])
def test_a_transformer_without_layers_heads_or_width_is_refused(size):
    with pytest.raises(ValueError, match=f"{size} is 0; expected at least 1"):
        Config(**{size: 0})


@both_modes
@both_norms
def test_the_stacks_equal_torchs(pre_norm, training):
    config = replace(SMALL, n_layers=3, pre_norm=pre_norm, norm_eps=0.1)
    encoder, decoder = (shaken(make(config)).train(training) for make in (Encoder, Decoder))
    x, y, mask = vectors(T_K), vectors(T_Q, seed=1), padding_mask(T_K)
    top = encoder(x, mask)
    expected_top = torch_stack(encoder, config)(x, src_key_padding_mask=~mask.squeeze(1))
    assert_close(top, expected_top, atol=1e-5, rtol=0)
    memory = tuple(Cache(*layer.cross_attention.project_keys(top)) for layer in decoder.layers)
    output, _, caches = decoder(y, memory, mask, (empty_cache(),) * 3)
    expected = torch_stack(decoder, config)(y, expected_top, tgt_mask=~causal_mask(T_Q),
                                            memory_key_padding_mask=~mask.squeeze(1))
    assert_close(output, expected, atol=1e-5, rtol=0)
    assert len(caches) == 3


@both_modes
@both_norms
def test_the_whole_model_is_embeddings_torchs_stacks_and_the_embedding_again(pre_norm, training):
    """Section 3.4: embeddings are scaled, and the target's is also the last matrix; its gradient has both parts."""
    model = make_model(pre_norm=pre_norm).train(training)
    config, waves, padding = model.config, sinusoidal(20, SMALL.d_model), SOURCE == PAD
    x, y = (table.weight[ids] * SMALL.d_model ** 0.5 + waves[:ids.size(1)]
            for table, ids in ((model.source_embed, SOURCE), (model.target_embed, TARGET)))
    top = torch_stack(model.encoder, config)(x, src_key_padding_mask=padding)
    output = torch_stack(model.decoder, config)(y, top, tgt_mask=~causal_mask(T_Q), memory_key_padding_mask=padding)
    logits, _ = model(SOURCE, TARGET)
    tables, expected = (model.source_embed.weight, model.target_embed.weight), output @ model.target_embed.weight.T
    assert logits.shape == (B, T_Q, VOCAB)
    assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    assert_close(gradients(logits, *tables), gradients(expected, *tables), atol=1e-4, rtol=1e-4)


# --- dropout -------------------------------------------------------------------------------------------------

def test_what_a_sublayer_adds_is_dropped_and_what_goes_around_it_is_not():
    """With all of it dropped, pre-norm leaves x alone and post-norm norms it."""
    x = vectors(T_K)
    for pre_norm in (True, False):
        config = replace(SMALL, pre_norm=pre_norm, dropout=1.0)
        for layer in (EncoderLayer(config), DecoderLayer(config)):
            rest = (None,) if isinstance(layer, EncoderLayer) else (empty_cache()._replace(
                k=vectors(4).unflatten(-1, (4, 4)), v=vectors(4).unflatten(-1, (4, 4))), None, empty_cache())
            expected = x
            for norm in (module for name, module in layer.named_children() if name.startswith("norm_")):
                expected = expected if pre_norm else norm(expected)
            assert_close(layer(x, *rest)[0], expected)


def test_the_dropout_of_the_config_is_everywhere():
    """On the weights of three attentions, after the sublayers of two layers, and on the embeddings."""
    shares = [module.p for module in make_model(dropout=0.3).modules() if isinstance(module, nn.Dropout)]
    assert shares == [0.3] * (SMALL.n_layers * (3 + 2) + 1)


def test_embeddings_are_dropped_and_dropout_rests_in_evaluation():
    model = make_model(dropout=0.5)
    assert 0.4 < (model.embed(SOURCE, model.source_embed) == 0).float().mean() < 0.6
    first, second = (model(SOURCE, TARGET)[0] for _ in range(2))
    assert not torch.allclose(first, second, atol=0.1)
    model.eval()
    first, second = (model(SOURCE, TARGET)[0] for _ in range(2))
    assert torch.equal(first, second)
    without = make_model(dropout=0.0).eval()
    assert torch.equal(without(SOURCE, TARGET)[0], first)


# --- what a word may see -------------------------------------------------------------------------------------

@both_modes
@both_norms
def test_a_word_does_not_see_those_after_it(pre_norm, training):
    model = make_model(pre_norm=pre_norm).train(training)
    before = model(SOURCE, TARGET)[0]
    for t in range(1, T_Q):
        changed = TARGET.clone()
        changed[:, t:] = (changed[:, t:] + 3) % VOCAB
        after = model(SOURCE, changed)[0]
        assert_close(after[:, :t], before[:, :t])
        assert ((after[:, t:] - before[:, t:]).abs().amax(dim=-1) > 1e-3).all()


@both_modes
def test_every_word_sees_the_whole_source_and_all_before_it(training):
    model = make_model().train(training)
    before = model(SOURCE[:1], TARGET[:1])[0]
    for s in range(T_K):
        changed = SOURCE[:1].clone()
        changed[:, s] = 9
        assert ((model(changed, TARGET[:1])[0] - before).abs().amax(dim=-1) > 1e-4).all()
    changed = TARGET[:1].clone()
    changed[:, 0] = EOS
    assert ((model(SOURCE[:1], changed)[0] - before).abs().amax(dim=-1) > 1e-4).all()


@both_modes
@both_norms
def test_padding_changes_nothing(pre_norm, training):
    model = make_model(pre_norm=pre_norm).train(training)
    together = model(SOURCE, TARGET)[0]
    wider = [torch.cat([ids, torch.full((B, 3), PAD)], dim=1) for ids in (SOURCE, TARGET)]
    assert_close(model(*wider)[0][:, :T_Q], together)
    for i in range(B):
        source, target = SOURCE[i][SOURCE[i] != PAD], TARGET[i][TARGET[i] != PAD]
        alone = model(source[None], target[None])[0]
        assert_close(together[i:i + 1, :len(target)], alone)
    with torch.no_grad():
        model.source_embed.weight[PAD] = 7.0                       # whatever stands where there is no word
    assert_close(model(SOURCE, TARGET)[0], together)


def test_the_order_of_words_matters_on_both_sides():
    """Without positions the encoder would be a bag of words."""
    model = make_model().eval()
    source, target = torch.tensor([[4, 5, 6, EOS]]), torch.tensor([[BOS, 4, 5, 6]])
    logits = model(source, target)[0][:, -1]
    assert not torch.allclose(model(source[:, [1, 0, 2, 3]], target)[0][:, -1], logits, atol=1e-2)
    assert not torch.allclose(model(source, target[:, [0, 2, 1, 3]])[0][:, -1], logits, atol=1e-2)


# --- weights -------------------------------------------------------------------------------------------------

@both_norms
@both_modes
def test_without_the_weights_it_computes_the_same(pre_norm, training):
    model = make_model(pre_norm=pre_norm).train(training)
    without, none = model(SOURCE, TARGET, need_weights=False)
    assert none is None
    logits, weights = model(SOURCE, TARGET, need_weights=True)
    assert weights is not None
    assert_close(without, logits, atol=1e-5, rtol=1e-5)


def test_weights_are_made_only_where_they_are_returned(monkeypatch):
    asked = []
    attend = MultiHeadAttention.attend

    def note(self, query, k, v, mask=None, bias=None, need_weights=True, is_causal=False):
        asked.append(need_weights)
        return attend(self, query, k, v, mask, bias, need_weights, is_causal)

    def weights_made(act):
        asked.clear()
        act()
        return sum(asked), len(asked)

    monkeypatch.setattr(MultiHeadAttention, "attend", note)
    model = make_model(n_layers=3).eval()
    memory, state = model.encode(SOURCE)
    assert weights_made(lambda: model.encode(SOURCE)) == (0, 3)
    assert weights_made(lambda: model.decode(TARGET, state, memory)) == (0, 6)
    crossing = weights_made(lambda: model.decode(TARGET, state, memory, need_weights=True))
    assert crossing == (3, 6)
    assert weights_made(lambda: greedy(model, SOURCE, 2, need_weights=True)) == (6, 15)
    for unasked in (lambda: greedy(model, SOURCE, 2), lambda: sample(model, SOURCE, max_len=2)):
        assert weights_made(unasked) == (0, 15)
    assert weights_made(lambda: beam_search(model, SOURCE, beam=3, max_len=2))[0] == 0
    batch = Batch(SOURCE, TARGET)
    assert weights_made(lambda: sequence_loss(model, batch)) == weights_made(
        lambda: sequence_loss(model.train(), batch)) == (0, 9)


def test_the_weights_are_those_of_the_cross_attention_layer_by_layer():
    model = make_model(n_layers=3).eval()
    _, weights = model(SOURCE, TARGET, need_weights=True)
    assert weights.shape == (B, 3, SMALL.n_heads, T_Q, T_K)
    assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    assert torch.equal(weights > 0, (SOURCE != PAD)[:, None, None, None].expand_as(weights))
    memory, state = model.encode(SOURCE)
    first = model.decoder.layers[0](model.embed(TARGET, model.target_embed), memory.caches[0], memory.src_mask,
                                    state[0], need_weights=True)[1]
    assert torch.equal(weights[:, 0], first)
    assert not torch.allclose(weights[:, 0], weights[:, 1], atol=1e-2)             # layers differ, and so do heads
    assert not torch.allclose(weights[:, :, 0], weights[:, :, 1], atol=1e-2)


# --- the cache -----------------------------------------------------------------------------------------------

@both_modes
@both_norms
@pytest.mark.parametrize("pieces", [(1, 1, 1, 1, 1), (2, 3), (1, 3, 1)], ids=str)
def test_decoding_in_pieces_equals_one_pass(pieces, pre_norm, training):
    model = make_model(pre_norm=pre_norm).train(training)
    logits, weights = model(SOURCE, TARGET, need_weights=True)
    memory, state = model.encode(SOURCE)
    assert [cache.k.shape for cache in state] == [(B, 4, 0, 4)] * SMALL.n_layers
    found, found_weights, written = [], [], 0
    for piece in TARGET.split(pieces, dim=1):
        piece_logits, piece_weights, state = model.decode(piece, state, memory, need_weights=True)
        written += piece.size(1)
        assert [(cache.k.shape, cache.v.shape) for cache in state] == [((B, 4, written, 4),) * 2] * SMALL.n_layers
        found.append(piece_logits)
        found_weights.append(piece_weights)
    together, parameters = torch.cat(found, dim=1), list(model.parameters())
    assert_close(together, logits, atol=1e-5, rtol=1e-5)
    assert_close(gradients(together, *parameters), gradients(logits, *parameters), atol=1e-4, rtol=1e-4)
    assert_close(torch.cat(found_weights, dim=-2), weights)


def test_a_state_may_be_continued_twice():
    """As in beam search: nothing that is in a cache is changed."""
    model = make_model().eval()
    memory, state = model.encode(SOURCE)
    _, _, state = model.decode(TARGET[:, :2], state, memory)
    copies = [tensor.clone() for tensor in tensors((memory, state))]
    first, _, _ = model.decode(TARGET[:, 2:3], state, memory)
    model.decode(TARGET[:, 3:], state, memory)
    assert torch.equal(model.decode(TARGET[:, 2:3], state, memory)[0], first)
    assert all(map(torch.equal, copies, tensors((memory, state))))


def tensors(parts):
    """All that are in tuples of tuples."""
    return [parts] if isinstance(parts, torch.Tensor) else [tensor for part in parts for tensor in tensors(part)]


def test_ids_stay_as_they_are():
    source, target = SOURCE.clone(), TARGET.clone()
    make_model()(source, target)[0].sum().backward()
    assert torch.equal(source, SOURCE)
    assert torch.equal(target, TARGET)


# --- sizes and embeddings ------------------------------------------------------------------------------------

@pytest.mark.parametrize(("config", "expected"), [(BASE, 63_082_496), (BIG, 214_245_376)], ids=["base", "big"])
def test_the_papers_models_have_as_many_parameters(config, expected):
    """About 37,000 tokens for both sides (section 5.1). Table 3 says 65 and 213 million."""
    with torch.device("meta"):
        model = Transformer(37_000, config=config)
    d, d_ff = config.d_model, config.d_ff
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * d_ff + d_ff + d, 2 * d
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    assert sum(p.numel() for p in model.parameters()) == 37_000 * d + 6 * (encoder + decoder) == expected


def test_the_configurations_of_the_paper():
    """Table 3, and post-LN."""
    assert Config(512, 8, 6, 2048, 0.1, pre_norm=False) == BASE
    assert Config(1024, 16, 6, 4096, 0.3, pre_norm=False) == BIG


def test_one_vocabulary_has_one_embedding_and_two_have_two():
    shared, separate = Transformer(VOCAB, config=SMALL), Transformer(VOCAB, 9, SMALL)
    assert shared.source_embed is shared.target_embed
    assert separate.source_embed.weight.shape == (VOCAB, 16)
    assert separate.target_embed.weight.shape == (9, 16)
    assert separate(SOURCE, TARGET.clamp(max=8))[0].shape == (B, T_Q, 9)
    more = sum(p.numel() for p in separate.parameters()) - sum(p.numel() for p in shared.parameters())
    assert more == 9 * 16


def test_embedded_words_begin_with_variance_one():
    """Else they would drown in the positions, or drown them."""
    model = Transformer(2000, 1000, Config())
    for table in (model.source_embed, model.target_embed):
        words = model.embed(torch.arange(1000).unsqueeze(1), table) - model.positions[:1]
        assert words.std().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("source", "target", "n"), [(21, 5, 21), (5, 21, 21)])
def test_too_long_is_refused(source, target, n):
    model = make_model()
    model(torch.full((1, 20), 4), torch.full((1, 20), 4))
    with pytest.raises(ValueError, match=f"{n} positions, but this Transformer has max_len=20. Shorten the sequence"):
        model(torch.full((1, source), 4), torch.full((1, target), 4))


def test_too_long_is_refused_where_the_cache_is_full():
    model = make_model().eval()
    memory, state = model.encode(SOURCE)
    _, _, state = model.decode(torch.full((B, 20), 4), state, memory)
    with pytest.raises(ValueError, match="21 positions, but this Transformer has max_len=20"):
        model.decode(torch.full((B, 1), 4), state, memory)


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="d_model=16 does not divide into n_heads=3"):
        Transformer(VOCAB, config=replace(SMALL, n_heads=3))


# --- numbers -------------------------------------------------------------------------------------------------

def test_the_same_seed_gives_the_same_model():
    def run(seed):
        torch.manual_seed(seed)
        return Transformer(VOCAB, config=SMALL)(SOURCE, TARGET)[0]

    assert torch.equal(run(1), run(1))
    assert not torch.allclose(run(1), run(2), atol=1e-2)


@both_modes
@both_norms
def test_bfloat16(pre_norm, training):
    model = make_model(pre_norm=pre_norm).train(training)
    expected = model(SOURCE, TARGET)[0]
    logits, _ = copy.deepcopy(model).to(torch.bfloat16)(SOURCE, TARGET)
    assert logits.dtype == torch.bfloat16
    scale = expected.abs().max().item()
    assert_close(logits.float(), expected, atol=0.05 * scale, rtol=0)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, _ = model(SOURCE, TARGET)
    assert mixed.dtype == torch.bfloat16
    assert_close(mixed.float(), expected, atol=0.05 * scale, rtol=0)
    mixed.float().square().mean().backward()
    assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in model.parameters())


@both_norms
@pytest.mark.parametrize("target_size", [None, VOCAB])
def test_the_gradient_reaches_every_parameter(target_size, pre_norm):
    """But for the keys' bias: it raises all scores of a query by the same amount, and softmax does not care."""
    model = make_model(target_size=target_size, pre_norm=pre_norm)
    model(SOURCE, TARGET)[0].logsumexp(dim=-1).sum().backward()
    largest = {name: p.grad.abs().max().item() for name, p in model.named_parameters()}
    no_matter = {name for name in largest if name.endswith("W_k.bias")}
    assert len(no_matter) == 3 * SMALL.n_layers
    assert {name for name, size in largest.items() if size < 1e-4} == no_matter


def test_a_state_dict_makes_the_same_model_again():
    model, other = make_model(0).eval(), make_model(1, max_len=40).eval()
    expected = model(SOURCE, TARGET)[0]
    assert not torch.allclose(other(SOURCE, TARGET)[0], expected, atol=1e-2)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))                     # the positions are not in it
    assert torch.equal(other(SOURCE, TARGET)[0], expected)


# --- training and decoding -----------------------------------------------------------------------------------

PAIRS = [(s.split(), t.split()) for s, t in (
    ("the cat sleeps", "le chat dort"), ("the dog sleeps", "le chien dort"), ("cats sleep", "les chats dorment"),
    ("the small cat", "le petit chat"), ("the small dog sees the cat", "le petit chien voit le chat"), ("", ""))]
ENGLISH, FRENCH = (Vocab(side) for side in zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    model = Transformer(len(ENGLISH), len(FRENCH), replace(SMALL, d_model=32))
    history = fit(model, [collate(encode_pairs(PAIRS, ENGLISH, FRENCH))], steps=80, lr=1e-2)
    return model, history


def test_it_learns_a_few_sentences_by_heart(trained):
    model, history = trained
    assert history.loss[0] > 1
    assert history.loss[-1] < 0.05
    sources, targets = zip(*PAIRS, strict=True)
    for beam in (1, 3):
        assert translate(model, sources, ENGLISH, FRENCH, beam=beam) == list(targets)
    batch = collate(encode_pairs(PAIRS, ENGLISH, FRENCH))
    drawn = sample(model, batch.source, temperature=0.1, generator=torch.Generator().manual_seed(0))
    assert [FRENCH.decode(row) for row in drawn] == list(targets)


def test_post_norm_learns_too():
    model = Transformer(len(ENGLISH), len(FRENCH), replace(SMALL, d_model=32, pre_norm=False))
    history = fit(model, [collate(encode_pairs(PAIRS, ENGLISH, FRENCH))], steps=40, lr=5e-3)
    assert history.loss[-1] < 0.5 * history.loss[0]


def test_greedy_weights_are_those_of_teacher_forcing(trained):
    """Layers and heads in front, steps put together."""
    model, _ = trained
    batch = collate(encode_pairs(PAIRS, ENGLISH, FRENCH))
    ids, weights = greedy(model, batch.source, need_weights=True)
    read = torch.cat([torch.full((len(PAIRS), 1), BOS), ids[:, :-1]], dim=1)
    with evaluating(model):
        _, forced = model(batch.source, read, need_weights=True)
    assert weights.shape == (len(PAIRS), 2, 4, ids.size(1), batch.source.size(1))
    assert_close(weights, forced)


def test_attention_records_have_layers_and_heads_in_front(trained):
    model, _ = trained
    for (source, target), record in zip(PAIRS, attention_records(model, PAIRS, ENGLISH, FRENCH), strict=True):
        assert record.weights.shape == (2, 4, len(target), len(source) + 1)
        alone = collate(encode_pairs([(source, target)], ENGLISH, FRENCH))
        with evaluating(model):
            _, expected = model(alone.source, alone.target[:, :-1], need_weights=True)
        assert_close(record.weights, expected[0, :, :, :len(target)])


def test_the_loss_is_the_same_for_a_padded_batch_and_for_its_sentences():
    model, examples = make_model(target_size=None), encode_pairs(PAIRS, ENGLISH, ENGLISH)
    examples = [(source % VOCAB, target % VOCAB) for source, target in examples]
    together, n = sequence_loss(model, collate(examples))
    alone = [sequence_loss(model, collate([example])) for example in examples]
    assert n == sum(n for _, n in alone)
    assert_close(together, sum(loss * n for loss, n in alone) / n)
