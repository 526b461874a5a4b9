"""The Python side of the tokenizer view: its pieces against another implementation, what it accepts and refuses."""

import base64
import io
import json
import random
import re

import pytest
import traitlets
from PIL import Image
from sample_widgets import exported
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import BpeTrainer

from course_utils import bert
from course_utils.data import grammar
from course_utils.data.wordpiece import SPECIALS, WordPiece
from course_utils.widgets import TokenizerView, strip_widget_state
from course_utils.widgets.tokenizer_view import _packed, _picture

LIVE = "application/vnd.jupyter.widget-view+json"
END = "</w>"
MERGES = (("l", "o"), ("lo", "w"), ("e", "r</w>"), ("e", "s"), ("es", "t</w>"), ("low", "er</w>"))


def reference(alphabet, merges):
    """Hugging Face's BPE with these merges and an alphabet of single characters."""
    tokens = [mark for character in sorted(alphabet) for mark in (character, character + END)]
    vocab = {token: i for i, token in enumerate(dict.fromkeys(tokens + ["".join(pair) for pair in merges]))}
    tokenizer = Tokenizer(BPE(vocab, list(merges), end_of_word_suffix=END))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return tokenizer


@pytest.fixture(scope="module")
def learnt():
    """A tokenizer trained on sentences of the course, and its merges."""
    sentences = [" ".join(pair.source) for pair in grammar.corpus(300, seed=0)]
    tokenizer = Tokenizer(BPE(end_of_word_suffix=END))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKENIZERS_PARALLELISM", "false")
        trainer = BpeTrainer(vocab_size=400, end_of_word_suffix=END, show_progress=False)
        tokenizer.train_from_iterator(sentences, trainer)
    merges = [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    return tokenizer, merges, sentences


# --- the pieces ---


def test_pieces_of_learnt_merges_are_those_of_hugging_face(learnt):
    tokenizer, merges, sentences = learnt
    assert len(merges) > 100
    letters = sorted({character for sentence in sentences for character in sentence} - {" "})
    shuffled = random.Random(0)
    unseen = [" ".join("".join(shuffled.choices(letters, k=n)) for n in (1, 4, 9)) for _ in range(200)]
    unseen = [text for text in unseen if all(word[-1] + END in tokenizer.get_vocab() for word in text.split())]
    assert len(unseen) > 20
    view = TokenizerView("", merges)
    for text in sentences[:100] + unseen:
        view.text = text
        assert view.pieces == tuple(tokenizer.encode(text).tokens), text


def test_pieces_of_any_merges_are_those_of_hugging_face():
    """Merges that no corpus would teach: the same piece made in two ways, and out of order."""
    shuffled = random.Random(0)
    several = 0
    for _ in range(300):
        known, merges = ["a", "b", "a</w>", "b</w>"], []
        while len(merges) < 12:
            left = shuffled.choice([piece for piece in known if not piece.endswith(END)])
            right = shuffled.choice(known)
            if len(left + right) < 12 and (left, right) not in merges:
                merges.append((left, right))
                known.append(left + right)
        several += len(set(known)) < len(known)
        shuffled.shuffle(merges)
        text = " ".join("".join(shuffled.choices("ab", k=n)) for n in (1, 7, 12))
        pieces = tuple(reference("ab", merges).encode(text).tokens)
        assert TokenizerView(text, merges).pieces == pieces, (merges, text)
    assert several > 40


def test_every_step_merges_one_pair_everywhere():
    view = TokenizerView("lower slowest low", MERGES, step=0)
    seen = [view.pieces]
    for step in range(1, 7):
        view.step = step
        seen.append(view.pieces)
    assert seen == [
        ("l", "o", "w", "e", "r</w>", "s", "l", "o", "w", "e", "s", "t</w>", "l", "o", "w</w>"),
        ("lo", "w", "e", "r</w>", "s", "lo", "w", "e", "s", "t</w>", "lo", "w</w>"),
        ("low", "e", "r</w>", "s", "low", "e", "s", "t</w>", "lo", "w</w>"),
        ("low", "er</w>", "s", "low", "e", "s", "t</w>", "lo", "w</w>"),
        ("low", "er</w>", "s", "low", "es", "t</w>", "lo", "w</w>"),
        ("low", "er</w>", "s", "low", "est</w>", "lo", "w</w>"),
        ("lower</w>", "s", "low", "est</w>", "lo", "w</w>"),
    ]


def test_the_leftmost_pair_goes_first():
    assert TokenizerView("aaaaa b", [("a", "a")]).pieces == ("aa", "aa", "a</w>", "b</w>")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ()),
        (" \t\n", ()),
        ("é", ("é</w>",)),
        (" lo\u00a0lo\tw\u2003", ("l", "o</w>", "l", "o</w>", "w</w>")),
        ("😀e\u0301 ש", ("😀", "e", "\u0301</w>", "ש</w>")),
        ("lo</w>w", ("lo", "<", "/", "w", ">", "w</w>")),
    ],
)
def test_any_text_has_pieces(text, pieces):
    assert TokenizerView(text, MERGES).pieces == pieces


def test_no_merges_leave_the_characters():
    view = TokenizerView("low", [])
    assert (view.pieces, view.step, view.merges) == (("l", "o", "w</w>"), 0, ())


# --- text, step and merges, from both sides ---


def test_the_last_step_is_shown_first_and_after_a_new_text():
    view, seen = TokenizerView("lowest", MERGES), []
    assert (view.step, view.pieces) == (4, ("low", "est</w>"))
    view.observe(lambda change: seen.append((change.name, change.new)), ["text", "step"])
    view.step = 1
    view.text = "lower lowest"
    assert sorted(seen) == [("step", 1), ("step", 6), ("text", "lower lowest")]
    view.text = ""
    assert (view.step, view.pieces) == (0, ())


@pytest.mark.parametrize("names", [("text", "step"), ("step", "text")])
@pytest.mark.parametrize("step", [0, 1, 3, 4])
def test_text_and_step_come_together_from_the_page(names, step):
    """Typing is sent once a frame, so that a message may hold the text and a step chosen after it."""
    view, seen = TokenizerView("low", MERGES), []
    view.observe(lambda change: seen.append(change.new), "step")
    view.set_state({name: {"text": "lowest", "step": step}[name] for name in names})
    assert (view.text, view.step) == ("lowest", step)
    assert seen == [step] * (step != 1)
    view.set_state({"text": "lower low"})
    assert view.step == 4


def test_arguments_stand_in_the_order_of_the_family():
    view = TokenizerView("lower", MERGES, 1, "Pieces")
    assert (view.step, view.title) == (1, "Pieces")
    view = TokenizerView.wordpiece("abc", SMALL, 1, "Pieces")
    assert (view.step, view.title) == (1, "Pieces")


# --- WordPiece ---

SMALL = WordPiece([*SPECIALS, "a", "ab", "##b", "##c", "##bc", "##bcc", "e", "##\u200d", "!", "👩", "##🔬", "不"])


def unpacked(packed):
    pieces, before = [], ""
    for entry in packed.split(" "):
        before = before[:int(entry[0], 36)] + entry[1:]
        pieces.append(before)
    return pieces


def test_pieces_are_taken_one_by_one():
    view = TokenizerView.wordpiece("Abcc xa ABÉ! [MASK]ab", SMALL)
    assert view.pieces == ("ab", "##c", "##c", "[UNK]", "[UNK]", "!", "[MASK]", "ab")
    assert view.pieces == tuple(SMALL.tokenize(view.text))
    view.step = 2
    assert view.pieces == ("ab", "##c")
    view.text = "abc"
    assert (view.step, view.pieces) == (2, ("ab", "##c"))
    view.text = ""
    assert (view.step, view.pieces) == (0, ())
    with pytest.raises(traitlets.TraitError, match=r"step is 3, but 'abc' has 0 to 2 steps"):
        TokenizerView.wordpiece("abc", SMALL, step=3)


def test_merges_or_a_vocabulary():
    view = TokenizerView.wordpiece("abc", SMALL)
    assert (view.vocabulary, view.merges) == (SMALL, ())
    view = TokenizerView("abc", [("a", "b")])
    assert (view.vocabulary, view.merges) == (None, (("a", "b"),))
    with pytest.raises(ValueError, match="vocabulary is of the type list; expected a WordPiece, as"):
        TokenizerView.wordpiece("abc", ["a"])


@pytest.mark.parametrize("vocab", [
    SMALL.vocab, [*SPECIALS], [*SPECIALS, "x" * 40, "x" * 41 + "y", "x" * 41 + "z", "é", "e\u0301", "😀😀", "😀😁"],
])
def test_a_vocabulary_travels(vocab):
    assert unpacked(_packed([*vocab, "no word", ""])) == sorted(vocab)


def test_an_output_of_pieces():
    view = TokenizerView.wordpiece("Abcc ☃", SMALL, title="BERT")
    assert view._in_words().splitlines() == ["BERT: 2 words in 4 pieces after 4 of 4 steps (## is inside a word):",
                                             "ab ##c ##c   [UNK]"]
    assert repr(view) == f"TokenizerView('Abcc ☃', vocabulary={len(SMALL)}, step=4)"
    state = exported(view)["_content"]
    assert (state["kind"], state["lowercase"], unpacked(state["pieces"])) == ("wordpiece", True, sorted(SMALL.vocab))
    image = Image.open(io.BytesIO(view._still()))
    assert image.width > 200


def test_all_of_berts_vocabulary_is_in_an_export():
    _, tokenizer = bert.load()
    view = TokenizerView.wordpiece("rewatchable snowmobiling ☃", tokenizer)
    assert view.pieces == tuple(tokenizer.tokenize("rewatchable snowmobiling ☃"))
    assert len(view.to_html().encode()) < 170_000
    assert unpacked(view._content["pieces"]) == sorted(tokenizer.vocab)


# --- refused ---


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        (["l o"], r"merge 0 is 'l o'; expected a pair of texts \(left, right\)"),
        ("lo", r"merge 0 is 'l'; expected a pair"),
        ([("l", "o"), ("l", "o", "w")], r"merge 1 is \('l', 'o', 'w'\); expected a pair"),
        ([("l", 0)], r"merge 0 is \('l', 0\); expected a pair of texts"),
        ([7], r"merge 0 is 7; expected a pair"),
        ([("l", "")], r"merge 0 is \('l', ''\); expected two pieces with at least one character"),
        ([("l", "o w")], r"merge 0 is \('l', 'o w'\); .* no blanks"),
        ([("l", "o\u2028")], r"no blanks"),
        ([("l</w>", "o")], r"merge 0 is \('l</w>', 'o'\); the end mark </w> is joined to the last character"),
        ([("l", "</w>")], r"the end mark </w> is joined"),
        ([("l", "o"), ("e", "r"), ("l", "o")], r"merge 2 is \('l', 'o'\), and so was merge 0; every pair"),
    ],
)
def test_bad_merges_say_what_is_wrong(merges, message):
    with pytest.raises(ValueError, match=message):
        TokenizerView("low", merges)


@pytest.mark.parametrize("step", [-1, 5])
def test_a_step_that_does_not_exist(step):
    with pytest.raises(traitlets.TraitError, match=rf"step is {step}, but 'lowest' has 0 to 4 merges"):
        TokenizerView("lowest", MERGES, step=step)
    view = TokenizerView("lowest", MERGES)
    with pytest.raises(traitlets.TraitError, match=rf"step is {step}"):
        view.step = step
    assert view.step == 4


def test_a_text_that_is_too_long_or_none():
    assert TokenizerView("x" * 400, MERGES).text == "x" * 400
    with pytest.raises(traitlets.TraitError, match="text has 401 characters; expected at most 400"):
        TokenizerView("x" * 401, MERGES)
    with pytest.raises(traitlets.TraitError, match="'text' trait"):
        TokenizerView(["low"], MERGES)


# --- what an output holds ---


def test_output_has_a_live_view_and_what_lasts():
    view = TokenizerView("lower low", MERGES, title="Pieces")
    data, metadata = view._repr_mimebundle_()
    assert data[LIVE]["model_id"] == view.model_id
    assert data["text/html"] == view.to_html()
    assert data["text/plain"].splitlines() == [
        "Pieces: 2 words in 3 pieces after 4 of 4 merges (· is the end of a word):",
        "lower·   lo w·",
        "merge 1 of 6: l + o → lo",
        "merge 2 of 6: lo + w → low",
        "merge 3 of 6: e + r· → er·",
        "merge 6 of 6: low + er· → lower·",
    ]
    assert repr(view) == "TokenizerView('lower low', merges=6, step=4)"
    output = {"output_type": "display_data", "data": data, "metadata": metadata}
    strip_widget_state({"cells": [{"cell_type": "code", "outputs": [output]}], "metadata": {}})
    assert set(output["data"]) == {"text/html", "text/plain"}


def test_export_is_the_same_text_every_time_and_small():
    def html(**changes):
        return TokenizerView("lower", MERGES, **changes).to_html()

    assert html() == html()
    assert html() != html(step=0)
    assert len(html()) < 60_000
    state = exported(TokenizerView("lower", MERGES, step=2))
    assert (state["text"], state["step"], state["_content"]["merges"].splitlines()[1]) == ("lower", 2, "lo w")


HOSTILE = "</script><img/src=x> <!--<script> '\"&"


def test_texts_cannot_leave_their_place():
    view = TokenizerView(HOSTILE, [("<", "/"), ("</", "script>")], title="</script><b>")
    html = view.to_html()
    assert html.count("</script>") == 1
    assert "<img/" not in html
    assert "<b>" not in html
    state = exported(view)
    assert (state["text"], state["title"]) == (HOSTILE, "</script><b>")
    assert state["_content"] == {"kind": "bpe", "merges": "< /\n</ script>"}


def test_still_picture_has_a_box_for_every_piece():
    view = TokenizerView("lower low", MERGES)
    picture = re.search(r'<img alt="([^"]*)" src="data:image/png;base64,([^"]*)"', view.to_html())
    assert "2 words in 3 pieces" in picture[1]
    image = Image.open(io.BytesIO(base64.b64decode(picture[2]))).convert("L")
    dark = [[image.getpixel((x, y)) < 160 for x in range(image.width)] for y in range(image.height)]
    # a box's upper edge is a long dark line; it is broken at the gaps between boxes
    edges = [len(re.findall("1{12,}", "".join(map(str, map(int, row))))) for row in dark]
    assert [n for n in edges if n] == [8, 8, 3, 3]
    assert len(picture[2]) < 6000


def test_still_picture_of_a_long_text_wraps():
    image = Image.open(io.BytesIO(_picture([("characters", [["x"] * 100, ["y"] * 100])])))
    assert image.width < 660
    assert image.height > 200
