"""GPT: the layer of lesson 04 without cross-attention, with four parts of today; and SmolLM2's published weights."""

from contextlib import suppress
from functools import cache, partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from course_utils import gpt, transformer
from course_utils.attention import MultiHeadAttention, causal_mask
from course_utils.bert import Bert
from course_utils.data import download, prompts
from course_utils.gpt import GPT, Config, SwiGLU, generate, heads_at_mean, heads_off, llama_config, smollm2
from course_utils.gpt.model import GPTLayer
from course_utils.gpt.prompting import question
from course_utils.kernel import weights as kernel_weights
from course_utils.language_models import CausalLM, TransformerXL
from course_utils.transformer import FeedForward, Transformer
from course_utils.vision import ViT

SMALL = {"d_model": 24, "n_heads": 6, "n_layers": 2, "d_ff": 40, "max_len": 32}
BOTH = pytest.mark.parametrize("config", [Config(**SMALL), llama_config(**SMALL, n_kv_heads=2)], ids=["2018", "today"])
has_weights = pytest.mark.skipif(smollm2.installed() is None, reason="SmolLM2 is not installed: course fetch")


def test_another_transformers_configuration_is_refused():
    with pytest.raises(TypeError, match=r"config is a course_utils\.transformer\.Config; expected a gpt\.Config"):
        GPT(30, transformer.Config())


@pytest.mark.parametrize("config", [Config(**SMALL), llama_config(**SMALL, pre_norm=False)])
def test_what_is_no_llama_is_not_taken_for_one(config):
    with pytest.raises(ValueError, match="(rotary=False and pre_norm=True|rotary=True and pre_norm=False), a Llama"):
        gpt.to_transformers(made(config))


@pytest.fixture(scope="module")
def published():
    """SmolLM2 and its tokenizer; reading them takes seconds."""
    return gpt.load()


def made(config, vocab_size=11, seed=0):
    torch.manual_seed(seed)
    model = GPT(vocab_size, config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def some_ids(B=3, T=9, vocab_size=11):
    return torch.randint(vocab_size, (B, T), generator=torch.Generator().manual_seed(1))


# --- the layer ------------------------------------------------------------------------------------------------------

@BOTH
def test_no_position_sees_a_later_one(config):
    model, ids = made(config), some_ids()
    changed = ids.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    before, after = model(ids).logits, model(changed).logits
    assert torch.equal(before[:, :5], after[:, :5])
    assert (before[:, 5:] - after[:, 5:]).abs().amax(dim=(0, 2)).min() > 1e-4           # all later ones do


@BOTH
def test_reading_in_pieces_with_the_cache_is_reading_at_once(config):
    model, ids = made(config), some_ids()
    whole, past, parts = model(ids, need_weights=True), None, []
    for piece in ids.split([4, 1, 3, 1], dim=1):
        reading = model(piece, past, need_weights=True)
        past = reading.caches
        parts.append(reading.logits)
    assert_close(torch.cat(parts, dim=1), whole.logits, atol=1e-5, rtol=1e-5)
    assert_close(reading.weights[..., -1, :], whole.weights[..., -1, :], atol=1e-5, rtol=1e-5)


@BOTH
def test_weights_sum_to_one_and_change_no_logit(config):
    model, ids = made(config), some_ids()
    reading = model(ids, need_weights=True)
    assert reading.weights.shape == (3, 2, 6, 9, 9)
    assert_close(reading.weights.sum(dim=-1), torch.ones(3, 2, 6, 9))
    assert_close(reading.logits, model(ids).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("silent", ["self_attention.W_o", "feed_forward.W_down"])
def test_dropout_is_on_what_each_sublayer_adds(silent):
    """With the other sublayer silent, a part of what this one adds is zero."""
    layer = GPTLayer(llama_config(**SMALL, dropout=0.25)).train()
    layer.get_submodule(silent).weight.data.zero_()
    x = torch.randn(8, 30, SMALL["d_model"], generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    share = (layer(x)[0] == x).float().mean().item()
    assert share == pytest.approx(0.25, abs=0.02)


@BOTH
def test_dropout_is_for_training(config):
    model = GPT(11, Config(**{**vars(config), "dropout": 0.5})).train()
    ids = some_ids()
    assert not torch.equal(model(ids).logits, model(ids).logits)
    model.eval()
    assert torch.equal(model(ids).logits, model(ids).logits)


@pytest.mark.parametrize(("n_kv_heads", "says"), [(4, "divide into n_kv_heads=4"), (0, "n_kv_heads is 0")])
def test_groups_that_do_not_fit_are_refused(n_kv_heads, says):
    with pytest.raises(ValueError, match=says):
        MultiHeadAttention(24, 6, n_kv_heads=n_kv_heads)


def test_swiglu_is_its_formula():
    layer = SwiGLU(llama_config(**SMALL))
    x = torch.randn(2, 3, 24)
    gate, up, down = (m.weight.T for m in (layer.W_gate, layer.W_up, layer.W_down))
    assert_close(layer(x), ((x @ gate) / (1 + (-x @ gate).exp()) * (x @ up)) @ down)


def test_swiglu_has_its_own_activation():
    with pytest.raises(ValueError, match="activation=GELU, but a SwiGLU's is SiLU; leave activation at its default"):
        GPT(11, llama_config(**SMALL, activation=nn.GELU))


def test_no_bias_is_none_in_a_feed_forward_network_of_2018_too():
    biases = [name for name, _ in GPT(11, Config(**SMALL, bias=False)).named_parameters()
              if name.endswith("bias") and "norm" not in name]
    assert biases == []


def test_today_adds_no_vector_and_no_position():
    model = GPT(11, llama_config(**SMALL, n_kv_heads=2))
    assert not [name for name, _ in model.named_parameters() if "bias" in name or "position" in name]


def test_logits_are_those_of_transformers_llama():
    ours, ids = made(llama_config(**SMALL, n_kv_heads=2, base=1000.0)), some_ids()
    with torch.no_grad():
        assert_close(ours(ids).logits, gpt.to_transformers(ours)(ids).logits, atol=1e-5, rtol=1e-5)


@BOTH
def test_the_last_logits_alone_are_the_last_of_all(config):
    model, ids = made(config), some_ids()
    assert_close(model(ids, at=torch.full((3,), -1)).logits, model(ids).logits[:, -1:])
    assert_close(model(ids, at=torch.tensor([2, 8, 0])).logits[:, 0], model(ids).logits[[0, 1, 2], [2, 8, 0]])


def test_parts_can_be_others():
    class Loud(SwiGLU):
        def forward(self, x):
            return 2 * super().forward(x)

    model, ids = made(llama_config(**SMALL)), some_ids()
    louder = made(llama_config(**SMALL, feed_forward=Loud))
    assert not torch.allclose(model(ids).logits, louder(ids).logits, atol=1e-3)
    for layer in louder.layers:
        layer.feed_forward.W_down.weight.data /= 2
    assert_close(model(ids).logits, louder(ids).logits)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_norms_stand_before_the_sublayers_or_after_the_sums(pre_norm):
    model, ids = made(Config(**SMALL, pre_norm=pre_norm)), some_ids()
    x = model.embed(ids) + model.positions.weight[:9]
    for layer in model.layers:
        for norm, sublayer in ((layer.norm_1, lambda x, of=layer: of.self_attention(x, mask=causal_mask(9))[0]),
                               (layer.norm_2, layer.feed_forward)):
            x = x + sublayer(norm(x)) if pre_norm else norm(x + sublayer(x))
    x = model.norm(x) if pre_norm else x
    assert_close(model(ids).logits, x @ model.embed.weight.T, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("make", [
    GPT, CausalLM, partial(TransformerXL, mem_len=0), lambda n, config: Transformer(n, config=config),
    lambda n, config: Bert(n, config, pooler=False), lambda n, config: ViT(config)],
    ids=["GPT", "CausalLM", "TransformerXL", "Transformer", "Bert", "ViT"])
def test_every_model_has_the_norms_and_feed_forward_networks_of_its_configuration(make):
    parts = [type(part) for part in make(11, llama_config(**SMALL)).modules()]
    assert nn.LayerNorm not in parts
    assert nn.RMSNorm in parts
    assert FeedForward not in parts
    assert parts.count(SwiGLU) >= SMALL["n_layers"]


# --- what is refused ------------------------------------------------------------------------------------------------

@BOTH
def test_an_empty_past_is_none(config):
    model, ids = made(config), some_ids()
    assert torch.equal(model(ids, ()).logits, model(ids).logits)


@BOTH
def test_a_text_that_is_too_long_is_refused(config):
    model = made(config)
    past = model(some_ids(T=30)).caches
    with pytest.raises(ValueError, match="33 positions, but this GPT has max_len=32"):
        model(some_ids(T=3), past)


@BOTH
def test_ids_without_a_batch_are_refused(config):
    for read in (lambda ids: made(config)(ids), lambda ids: generate(made(config), ids, 1)):
        with pytest.raises(ValueError, match=r"ids has shape \(9,\); expected ids \(B, T\)"):
            read(some_ids()[0])


# --- writing --------------------------------------------------------------------------------------------------------

def by_hand(model, ids, n_new):
    """Greedy without a cache: the whole text is read again for each token."""
    for _ in range(n_new):
        ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(dim=-1)], dim=1)
    return ids[:, -n_new:]


@BOTH
def test_generate_writes_what_reading_everything_again_writes(config):
    model, ids = made(config), some_ids()
    assert torch.equal(generate(model, ids, 8), by_hand(model, ids, 8))


def test_samples_follow_the_distribution():
    model = made(Config(**SMALL))
    ids = some_ids(B=1).expand(20_000, -1)
    drawn = generate(model, ids, 1, temperature=0.7, generator=torch.Generator().manual_seed(0))
    wanted = (model(ids[:1]).logits[0, -1] / 0.7).softmax(dim=-1)
    assert_close(drawn.flatten().bincount(minlength=11) / 20_000, wanted, atol=0.012, rtol=0)


def test_top_k_of_one_and_the_lowest_temperature_are_greedy():
    model, ids = made(Config(**SMALL)), some_ids()
    assert torch.equal(generate(model, ids, 5, temperature=1e-45), generate(model, ids, 5))
    assert torch.equal(generate(model, ids, 5, temperature=1.0, top_k=1), generate(model, ids, 5))


@pytest.mark.parametrize(("options", "says"), [({"n_new": 0}, "n_new is 0"),
                                               ({"n_new": 1, "temperature": -1.0}, "temperature=-1.0"),
                                               ({"n_new": 1, "temperature": float("nan")}, "temperature=nan"),
                                               ({"n_new": 1, "top_k": 5}, "top_k=5, .* with temperature 0"),
                                               ({"n_new": 1, "top_p": 0.9}, "top_p=0.9 with temperature 0"),
                                               ({"n_new": 1, "temperature": 1.0, "top_k": -5}, "top_k is -5"),
                                               ({"n_new": 1, "temperature": 1.0, "top_p": 7.0}, "top_p=7.0")])
def test_what_cannot_be_written_is_refused(options, says):
    with pytest.raises(ValueError, match=says):
        generate(made(Config(**SMALL)), some_ids(), **options)


def test_heads_are_off_inside_the_block_only():
    model, ids = made(llama_config(**SMALL, n_kv_heads=2)), some_ids()
    before, kept = model(ids).logits, [p.clone() for p in model.parameters()]
    with suppress(KeyboardInterrupt), heads_off(model, [(0, 1), (0, 2), (1, 5)]):
        assert not torch.allclose(model(ids).logits, before, atol=1e-3)
        raise KeyboardInterrupt
    assert all(torch.equal(a, b) for a, b in zip(kept, model.parameters(), strict=True))


def test_the_matrices_of_the_block_can_be_made_by_another_function():
    model, kept = made(llama_config(**SMALL, n_kv_heads=2)), []

    def doubled(W_o, heads, d_k):
        kept.append((heads, d_k))
        return W_o.mul_(2.0)                                                       # may change what it was given

    before = model.layers[0].self_attention.W_o.weight.clone()
    with heads_off(model, [(0, 1), (0, 4)], doubled):
        assert_close(model.layers[0].self_attention.W_o.weight, 2 * before)
    assert torch.equal(model.layers[0].self_attention.W_o.weight, before)
    assert kept == [([1, 4], 4)]


def test_all_heads_off_leave_only_the_feed_forward_network():
    model = made(llama_config(**SMALL, n_kv_heads=2))
    layer, x = model.layers[0], torch.randn(1, 4, 24)
    with heads_off(model, [(0, head) for head in range(6)]):
        assert_close(layer(x)[0], x + layer.feed_forward(layer.norm_2(x)))


def test_heads_at_their_mean_write_the_same_everywhere():
    model, ids = made(llama_config(**SMALL, n_kv_heads=2)), some_ids()
    layer, x, before = model.layers[0], torch.randn(3, 9, 24), model(ids).logits
    with heads_at_mean(model, [(0, head) for head in range(6)]):
        added = layer.self_attention(x, mask=causal_mask(9))[0]
    plain = layer.self_attention(x, mask=causal_mask(9))[0]
    assert_close(added, plain.mean(dim=(0, 1)).expand_as(plain))           # W_o is linear, and has no bias
    with suppress(KeyboardInterrupt), heads_at_mean(model, [(0, 1), (0, 2), (1, 5)]):
        assert not torch.allclose(model(ids).logits, before, atol=1e-3)
        raise KeyboardInterrupt
    assert torch.equal(model(ids).logits, before)


def test_a_single_position_has_no_other_mean_and_is_refused():
    model = made(Config(**SMALL))
    with heads_at_mean(model, [(0, 1)]), pytest.raises(ValueError, match="one position is read"):
        generate(model, torch.tensor([[1, 2, 3]]), 2)                      # the second token is read alone


@pytest.mark.parametrize("change", [heads_off, heads_at_mean])
@pytest.mark.parametrize(("head", "says"), [
    ((0, 6), "no head 6 in layer 0; .* has heads 0 to 5 there"), ((1, -1), "no head -1 in layer 1; .* heads 0 to 5"),
    ((2, 0), "no head 0 in layer 2; .* has layers 0 to 1"), ((-1, 0), "no head 0 in layer -1; .* has layers 0 to 1")])
def test_a_head_that_does_not_exist_is_refused(change, head, says):
    model, ids = made(Config(**SMALL)), some_ids()
    before = model(ids).logits
    with pytest.raises(ValueError, match=says), change(model, [(0, 1), head]):
        pass
    assert torch.equal(model(ids).logits, before)


# --- tasks for prompts ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("task", prompts.TASKS)
def test_examples_and_what_is_asked_share_no_word(task):
    assert len({word for word, _ in prompts.TASKS[task]}) == len({answer for _, answer in prompts.TASKS[task]}) == 24
    examples, asked = prompts.drawn(task, 0)
    assert (len(examples), len(asked)) == (8, 16)
    assert {*examples, *asked} == {*prompts.TASKS[task]}
    assert prompts.drawn(task, 0) == (examples, asked)
    assert examples not in (prompts.drawn(task, 1)[0], prompts.drawn(task, 0, seed=1)[0])
    assert prompts.IN_WORDS[task]


@has_weights
@pytest.mark.slow
def test_an_answer_is_known_by_its_first_token(published):
    _, tokenizer = published
    for task in prompts.TASKS.values():
        assert len({tokenizer.encode(f" {answer}").ids[0] for _, answer in task}) == 24


def test_a_question_gives_the_first_words_of_its_answer():
    assert question("opposite of", "hot").splitlines()[1:] == [
        "What is the opposite of hot?<|im_end|>", "<|im_start|>assistant", "The opposite of hot is"]
    assert question("opposite of", "hot", '"').endswith('The opposite of "hot" is "')


@has_weights
@pytest.mark.slow
def test_the_better_wording_of_a_question_counts(published):
    model, tokenizer = published
    asked = prompts.TASKS["capitals"][:3]
    wrong = [(word, "nothing") for word, _ in asked]
    assert gpt.zero_shot(model, tokenizer, asked, prompts.IN_WORDS["capitals"]) > 0.5
    assert gpt.zero_shot(model, tokenizer, wrong, prompts.IN_WORDS["capitals"]) == 0


# --- the published weights ------------------------------------------------------------------------------------------

def test_without_the_package_it_says_what_to_type(monkeypatch):
    monkeypatch.setattr(download, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="course fetch"):
        gpt.load()


@pytest.mark.parametrize("there", [True, False])
def test_a_cell_that_needs_the_weights_is_passed_over_without_them(there, monkeypatch, capsys):
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell()
    monkeypatch.setattr(kernel_weights, "get_ipython", lambda: shell)
    monkeypatch.setattr(kernel_weights, "installed", lambda: "file" if there else None)
    kernel_weights.skip_cells_without_weights()
    kernel_weights.skip_cells_without_weights()                                          # run twice, once is enough
    assert ("course fetch" in capsys.readouterr().out) is not there
    shell.run_cell("a = 1")
    shell.run_cell("# SmolLM2 writes\nb = 1")
    assert "a" in shell.user_ns
    assert ("b" in shell.user_ns) is there
    assert capsys.readouterr().out.count("passed over") == (not there)


@has_weights
def test_a_damaged_file_is_refused(monkeypatch, tmp_path):
    file = tmp_path / smollm2.FILE
    file.write_bytes(smollm2.installed().read_bytes()[:100_000])
    monkeypatch.setattr(smollm2, "installed", lambda: file)
    with pytest.raises(ValueError, match=f"force-reinstall --no-deps {smollm2.REQUIREMENT}"):
        gpt.load()


@has_weights
@pytest.mark.slow
def test_smollm2_is_that_of_transformers(published, monkeypatch):
    import gguf
    from transformers import AutoModelForCausalLM, AutoTokenizer
    monkeypatch.setattr(gguf, "GGUFReader", cache(gguf.GGUFReader))     # it is asked for the same file three times
    model, tokenizer = published
    assert sum(p.numel() for p in model.parameters()) == 134_515_008
    assert (model.config.n_layers, model.config.n_heads, model.config.n_kv_heads) == (30, 9, 3)
    folder, text = smollm2.installed().parent, "The year 2024 had 366 days; l'été fut beau.\n\tdef f(x): return x ** 2"
    theirs = AutoTokenizer.from_pretrained(folder, gguf_file=smollm2.FILE)
    ids = tokenizer.encode(text).ids
    assert ids == theirs(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    llama = AutoModelForCausalLM.from_pretrained(folder, gguf_file=smollm2.FILE, dtype=torch.float32).eval()
    with torch.no_grad():
        ours, other = model(torch.tensor([ids])).logits, llama(torch.tensor([ids])).logits
    assert_close(ours, other, atol=1e-4, rtol=1e-4)


@has_weights
@pytest.mark.slow
def test_smollm2_knows_a_capital(published):
    model, tokenizer = published
    ids = torch.tensor([tokenizer.encode("The capital of France is").ids])
    assert tokenizer.decode(generate(model, ids, 1)[0].tolist()) == " Paris"


def test_the_next_token_of_each_text_is_that_of_the_text_alone():
    """Texts of unequal length: the padding of the shorter ones is not what is asked."""
    model = made(llama_config(**SMALL, n_kv_heads=2))
    tokenizer = SimpleNamespace(encode=lambda text: SimpleNamespace(ids=[int(letter) for letter in text]))
    texts = ["12345", "7", "31", "9876543", "2"]
    alone = [gpt.next_tokens(model, tokenizer, [text]).item() for text in texts]
    assert len({*alone}) > 2
    assert gpt.next_tokens(model, tokenizer, texts).tolist() == alone
    assert gpt.next_tokens(model, tokenizer, texts, before="55").tolist() == [
        gpt.next_tokens(model, tokenizer, ["55" + text]).item() for text in texts]


def test_a_prompt_is_answered_without_dropout():
    """And afterwards the model learns on, if it did."""
    model = made(Config(**SMALL, dropout=0.5)).train()
    tokenizer = SimpleNamespace(encode=lambda text: SimpleNamespace(ids=[int(letter) for letter in text]))
    answers = [gpt.next_tokens(model, tokenizer, ["12345"] * 8, before="55") for _ in range(4)]
    assert model.training
    assert torch.equal(torch.stack(answers), gpt.next_tokens(model.eval(), tokenizer, ["5512345"]).expand(4, 8))
