"""The figures of lesson 04, the Transformer. Each function returns a card, ``ALT`` says what it shows."""

from itertools import pairwise
from math import log

import numpy as np
from style import BAND, RULE, area, arrow, box, card, checks, dashes, disc, grid, path, step, text, tint

from course_utils.plotting import BAD, GOOD, INK, KEY, LINES, MUTED, PAPER, QUERY, VALUE

SOURCE = ("I", "am", "here", "<eos>", "<pad>")
READ = ("word",) * 5 + ("pad",) * 2
FEATURES = 8
"""d_model of the block of numbers that is normed."""
WRITTEN = ("je", "suis", "là", ".")
TARGET = ("<bos>", *WRITTEN[:3])
LABELS = (*TARGET[1:], "<eos>")
WORDS = ("a", "am", "I", "thanks", "student", "<eos>")
"""The lecture's vocabulary."""
LABEL = WORDS.index("student")
SMOOTHING = 0.1
"""As in Vaswani et al. 2017, section 5.4."""
ONE_HOT = [float(i == LABEL) for i in range(len(WORDS))]
SMOOTHED = [(1 - SMOOTHING) * p + SMOOTHING / len(WORDS) for p in ONE_HOT]
ENTROPY = -sum(p * log(p) for p in SMOOTHED)
"""In nats: the lowest cross-entropy with smoothed targets."""
AHEAD = log(max(SMOOTHED) / min(SMOOTHED))
"""How far the label's score is above the others when it is reached."""

SCORES = np.array([0.9, 0.2, 0.6, 0.0, 0.4, 0.3, 0.3])
"""Of five words and two pads."""
WEIGHTS = np.exp(SCORES) / np.exp(SCORES).sum()
SHARE = WEIGHTS[:5].sum()
"""What padding leaves to the words, if it is hidden after the softmax."""

ENCODER = {
    "source_embed": (86, 150, 124, 52, "embedding", "+ position"),
    "encoder_attention": (250, 62, 136, 52, "self-", "attention"),
    "encoder_norm_1": (210, 116, 82, 28, "norm"),
    "encoder_feed_forward": (420, 62, 136, 52, "feed-", "forward"),
    "encoder_norm_2": (380, 116, 82, 28, "norm"),
    "encoder_norm": (566, 150, 82, 28, "norm"),
}
DECODER = {
    "target_embed": (86, 350, 124, 52, "embedding", "+ position"),
    "masked_attention": (250, 262, 136, 52, "masked self-", "attention"),
    "decoder_norm_1": (210, 316, 82, 28, "norm"),
    "cross_attention": (420, 262, 136, 52, "cross-", "attention"),
    "decoder_norm_2": (380, 316, 82, 28, "norm"),
    "decoder_feed_forward": (590, 262, 136, 52, "feed-", "forward"),
    "decoder_norm_3": (550, 316, 82, 28, "norm"),
    "decoder_norm": (736, 350, 82, 28, "norm"),
    "softmax": (854, 350, 104, 52, "linear", "softmax"),
    "next_word": (854, 262, 104, 40, "là"),
}
PARTS = ENCODER | DECODER
"""The map's parts, row by row: centre, size, label, second line."""

ROWS = {
    "encoder": (ENCODER, "source_embed", 504, (276, 446, 509, 628), SOURCE[:4]),
    "decoder": (DECODER, "target_embed", 674, (276, 446, 616, 679, 800), TARGET[:3]),
}
"""The map's rows: parts, where it begins, where its layer ends, where arrows on the path end, words."""

ALT = {
    "04_map":
        "The Transformer of this lesson as a map, read from left to right. Above, the encoder: “I am here <eos>” goes "
        "through embedding plus position onto a straight line, the residual path. Twice a branch leaves the line, "
        "passes a norm, then self-attention or the feed-forward network, and is added to the line at a plus sign. "
        "This layer is repeated N times; after a last norm comes the memory, (B, T_k, d_model). Below, the decoder: "
        "“<bos> je suis” goes through embedding plus position onto its own line, with three such branches: masked "
        "self-attention, cross-attention and feed-forward, again N times. Cross-attention takes its query from the "
        "decoder, keys and values from the memory. A last norm, then linear and softmax, give the next word, “là”, "
        "which at inference goes back in.",
    "04_chain":
        "Which step waits for which. Left, recurrent: four states h_1 to h_4 in a row, each above its word x_1 to x_4; "
        "an arrow leads from each state to the next, so they are computed in steps 1, 2, 3 and 4. Right, "
        "self-attention: four outputs y_1 to y_4 above x_1 to x_4; arrows lead from every word to every output and "
        "none from output to output, so all four are computed in step 1.",
    "04_encoder_layer":
        "An encoder layer in both orders, read from left to right; the line is the residual path. Above, post-LN, the "
        "norm on the path: a branch leaves the line, passes attention and is added to it; then norm_1 stands on the "
        "line itself. The same again with feed_forward and norm_2. Below, pre-LN, the norm in the branch: a branch "
        "leaves the line, passes norm_1, then attention, and is added to it. The same again with norm_2 and "
        "feed_forward. No box stands on the line.",
    "04_parts":
        "Three parts for stacking layers. The residual path leaves a path open: x goes straight on, a branch leads "
        "through a sublayer F, and what F computes is added, x + F(x). LayerNorm lets a branch read the path at one "
        "scale: three tokens, a column for each; the mean μ and the standard deviation σ are those of one column. The "
        "feed-forward network makes new features: three tokens, for each the same small network, narrow, wide, narrow.",
    "04_three_attentions":
        "The three attentions of a Transformer. Who asks, who answers with keys and values, and the mask, one row per "
        "query and one column per key; a check mark means the query may attend to the key. Encoder self-attention: the "
        "encoder asks the encoder; rows “I am here <eos>”, the same columns and a pad's, all checked but that; mask "
        "(B, 1, T_k). "
        "Masked self-attention: the decoder asks the decoder; “<bos> je suis là”, the lower triangle with the "
        "diagonal, and beside each row the word it has to predict, from “je” to <eos>; mask (T_q, T_q). "
        "Cross-attention: the decoder asks the memory; all columns but the pad's are checked; mask (B, 1, T_k).",
    "04_decoder_layer":
        "A decoder layer in pre-LN; the line from x is the residual path. Three branches leave it and are added to it: "
        "self_attention, cross_attention and feed_forward. Each attention has three empty ports, query, keys and mask. "
        "Above them stand the memory and three norms, norm_1, norm_2 and norm_3; no arrow says where they belong.",
    "04_read_grid":
        "Two empty tables with a row for each of the outputs 0, 1 and 2. Which of them move? Left, seen: a column for "
        "each word of the target, x at 0, 1 and 2, which changes. Right, read: a column for each word of the memory, "
        "five words and two pads, which changes.",
    "04_bugs":
        "Two bugs in a decoder layer. A normalizes over words: a block of four columns, one per word of “<bos> je "
        "suis là”; one row is framed through all four. In training it sees later words; when the model begins to "
        "write, only “<bos>” is there, and a word minus itself is 0. C masks after the softmax: bars of seven "
        f"attention weights; five words share {SHARE:.2f}, two pads have {1 - SHARE:.2f}, which is set to 0 too "
        "late. So the result depends on how many pads the batch adds.",
    "04_writing":
        "How a decoder runs. Left, in training, once: <bos> je suis là goes in, and at every position the next word "
        "comes out, je suis là <eos>, all at once. Right, at inference, once for each word: pass 1 reads <bos> and "
        "writes je, pass 2 reads <bos> je and writes suis, pass 3 reads <bos> je suis and writes là, pass 4 reads "
        "<bos> je suis là and writes <eos>; the word that was written goes into the next pass.",
    "04_swap":
        "The first branch of a decoder layer in three models. It leaves the residual path, passes a norm and a part, "
        "and is added to the path. In the Transformer the part is self-attention, and a position is added to each "
        "word, x_t + p_t. With an LSTM inside, the part is an LSTM, whose states h_1, h_2, h_3 come one after the "
        "other, and no position is added. With rotary positions the part is self-attention; each query and key is "
        "turned by its position, a query q_5 by 5 steps and a key k_2 by 2.",
    "04_cache":
        "Four steps of decoding, without and with a cache of keys and values. At step t the new word goes in and the"
        " next comes out: <bos> gives je, je gives suis, suis gives là, là gives the full stop. Above, without a "
        "cache: at step t queries, keys and values of all t words are computed anew, and a whole triangle of scores;"
        " 1 + 2 + 3 + 4 = 10 words go through the layers. Below, with a cache: at step t one query, one key and one "
        "value are computed, drawn filled; the keys and values of the words before are read from the cache, drawn "
        "hatched, and only the last row of scores is computed; 1 + 1 + 1 + 1 = 4 words go through the layers.",
    "04_smoothing":
        f"One-hot and smoothed targets as bars over six words: {', '.join(WORDS)}. The target is {WORDS[LABEL]}. Left, "
        "one-hot: the target has 1, the others 0. The lowest loss is 0, but only if the target's score is infinitely "
        f"far ahead. Right, smoothed: ε = {SMOOTHING} of the probability is shared by all six words. The target has "
        f"1 − ε + ε/6 = {max(SMOOTHED):.3f}, the others ε/6 = {min(SMOOTHED):.3f} each. The lowest loss is "
        f"{ENTROPY:.2f} nats, reached when the target's score is {AHEAD:.1f} ahead of all others.",
    "04_two_processes":
        "One training step in two processes. Each process gets half of the batch, four sentences with half of the "
        "tokens, and has the same weights θ. From its half it computes a loss and a gradient, g_0 in process 0 and g_1 "
        "in process 1. In the middle both meet: the average g = (g_0 + g_1) / 2 goes back to both. Each takes the same "
        "step with it, so the new weights θ′ are still the same in both.",
}


TYPE = 20
"""Of the map and the encoder layer: 24 pixels on a slide."""


def _part(axes, name):
    """A part of the map."""
    x, y, width, height, *lines = PARTS[name]
    box(axes, x, y, width, height, fill=PAPER, color=MUTED if lines == ["norm"] else INK)
    for line, words in enumerate(lines):
        text(axes, x, y + 11 * (2 * line - len(lines) + 1), words, TYPE)


def _branch(axes, norm, part, stream):
    """What leaves the stream, passes a norm and a part, and is added to the stream at a plus."""
    (x, y, _, high, *_), (to, top, _, tall, *_) = PARTS[norm], PARTS[part]
    path(axes, (x, stream), (x, y + high / 2), head=False)
    arrow(axes, (x, y - high / 2), (x, top + tall / 2), QUERY if part == "cross_attention" else INK)
    plus = to + (to - x)
    arrow(axes, (plus, top + tall / 2), (plus, stream - 13))
    disc(axes, plus, stream, "+", GOOD, radius=13, size=22)


def _row(axes, side):
    """A row of the map, the encoder or the decoder."""
    parts, embed, right, ends, words = ROWS[side]
    stream = PARTS[embed][1]
    box(axes, (154 + right) / 2, stream - 43, right - 154, 158, fill=BAND, edge="none", corner=10)
    text(axes, 166, stream + 23, f"{side} layer, N times", TYPE, INK, "bold", "left")
    for begin, end in pairwise((150, *ends)):
        arrow(axes, (begin, stream), (end, stream), GOOD, 3)
    names = list(parts)
    for norm in names:
        if norm[-1].isdigit():                                      # the part it stands before is the last one named
            _branch(axes, norm, names[names.index(norm) - 1], stream)
    for name in names:
        _part(axes, name)
    arrow(axes, (86, stream + 44), (86, stream + 28))
    text(axes, 12, stream + 57, " ".join(words), TYPE, align="left")
    if side == "encoder":
        box(axes, 690, stream, 116, 40, fill=INK, label="memory", size=22, text_color=PAPER, weight="bold")
        text(axes, 756, stream, "(B, T_k, d_model)", TYPE, MUTED, align="left")
    else:
        text(axes, 664, stream + 23, "residual path", TYPE, GOOD, "bold", "right")
        arrow(axes, (854, stream - 26), (854, stream - 67))
        dashes(axes, (907, stream - 88), (932, stream - 88), (932, stream + 64), (170, stream + 64), color=INK)
        text(axes, 560, stream + 48, "at inference the next word goes back in", TYPE)


def map():
    axes = card(432)
    _row(axes, "encoder")
    _row(axes, "decoder")
    path(axes, (672, 171), (672, 196), (408, 196), (408, 233), color=KEY)
    path(axes, (692, 171), (692, 212), (432, 212), (432, 233), color=VALUE)
    text(axes, 706, 198, "keys", TYPE, KEY, "bold", "left")
    text(axes, 764, 198, "and", TYPE, align="left")
    text(axes, 808, 198, "values,", TYPE, VALUE, "bold", "left")
    text(axes, 706, 222, "separate per layer", TYPE, align="left")
    return axes


def chain():
    """Four steps of a recurrence, and four positions of self-attention."""
    axes = card(236)
    for left, title, waits in ((8, "recurrent: one step per word", True),
                               (486, "self-attention: one step for all words", False)):
        box(axes, left + 233, 118, 466, 220, fill=BAND, edge="none", corner=10)
        text(axes, left + 233, 30, title, TYPE, INK, "bold")
        at = [left + 62 + 114 * t for t in range(4)]
        if not waits:
            for begin in at:
                for end in at:
                    arrow(axes, (begin, 178), (end, 128), VALUE, 1.2)
        for t, x in enumerate(at):
            box(axes, x, 196, 62, 36, fill=PAPER, color=MUTED)
            text(axes, x, 194, f"$x_{t + 1}$", 26)
            box(axes, x, 108, 62, 38, BAD if waits else GOOD)
            text(axes, x, 106, f"$h_{t + 1}$" if waits else f"$y_{t + 1}$", 26)
            text(axes, x, 70, f"step {t + 1 if waits else 1}", TYPE, BAD if waits else GOOD, "bold")
            if waits:
                arrow(axes, (x, 178), (x, 128), INK, 1.8)
                if t:
                    arrow(axes, (at[t - 1] + 31, 108), (x - 31, 108), BAD, 3)
    return axes


def encoder_layer():
    axes = card(396)
    for top, title in ((0, "post-LN: the norm on the path"), (196, "pre-LN: the norm in the branch")):
        stream, high, middle, pre = top + 162, top + 72, top + 121, title.startswith("pre")
        box(axes, 480, top + 100, 944, 188, fill=BAND, edge="none", corner=10)
        text(axes, 26, top + 28, title, TYPE, INK, "bold", "left")
        text(axes, 40, stream, "$x$", 28)
        stops = [62]
        for take, part, label, number in ((190, 160, "attention", 1), (560, 190, "feed_forward", 2)):
            plus = take + 124
            if pre:
                path(axes, (take, stream), (take, middle + 16), head=False)
                arrow(axes, (take, middle - 16), (take, high + 21))
                box(axes, take, middle, 96, 32, fill=PAPER, label=f"norm_{number}", size=20)
            else:
                arrow(axes, (take, stream), (take, high + 21))
            arrow(axes, (plus, high + 21), (plus, stream - 14))
            box(axes, (take + plus) / 2, high, part, 42, fill=INK, label=label, size=21, text_color=PAPER)
            arrow(axes, (stops[-1], stream), (plus - 14, stream), GOOD, 3)
            stops.append(plus + 14)
            disc(axes, plus, stream, "+", GOOD, radius=14, size=24)
            if not pre:
                at = plus + 102
                arrow(axes, (stops[-1], stream), (at - 50, stream), GOOD, 3)
                box(axes, at, stream, 96, 36, fill=PAPER, label=f"norm_{number}", size=20, line=2.4)
                stops.append(at + 49)
        arrow(axes, (stops[-1], stream), (936, stream), GOOD, 3)
    return axes


def parts():
    axes = card(336)
    at = (164, 480, 796)
    for x, name, does in zip(at, ("residual path", "LayerNorm", "feed-forward"),
                             ("leaves a path open", "reads at one scale", "makes new features"), strict=True):
        box(axes, x, 168, 304, 320, fill=BAND, edge="none", corner=10)
        text(axes, x, 36, name, 24, GOOD if name == "residual path" else INK, "bold")
        text(axes, x, 302, does, 22, GOOD, "bold")
    x = at[0]
    arrow(axes, (x - 120, 186), (x + 34, 186), GOOD, 3)
    arrow(axes, (x + 62, 186), (x + 124, 186), GOOD, 3)
    path(axes, (x - 92, 186), (x - 92, 106), (x - 62, 106))
    box(axes, x - 12, 106, 100, 48, fill=PAPER, label="$F$", size=22)
    path(axes, (x + 38, 106), (x + 48, 106), (x + 48, 171))
    disc(axes, x + 48, 186, "+", GOOD, radius=14, size=22)
    text(axes, x - 110, 210, "$x$", 26)
    text(axes, x, 258, "$x + F(x)$", 26)
    x = at[1]
    block = np.random.default_rng(3).uniform(size=(3, FEATURES))
    for t, word in enumerate(block):
        shade, color = (1, GOOD) if t == 2 else (0.45, INK)
        grid(axes, x - 126 + 54 * t, 74, shade * word[:, None], color, (44, 15), frame=3 * (t == 2))
    arrow(axes, (x + 32, 134), (x + 58, 134), GOOD, 2.4)
    text(axes, x + 92, 134, "$\\mu,\\ \\sigma$", 26, GOOD)
    text(axes, x, 218, "mean, std of each token", TYPE, GOOD)
    text(axes, x, 258, "$(x - \\mu)\\ /\\ \\sigma$", 26)
    x = at[2]
    for token in (x - 90, x, x + 90):
        area(axes, (token - 14, 88), (token + 14, 88), (token + 38, 134), (token - 38, 134), fill=tint(VALUE, 0.35))
        area(axes, (token - 38, 134), (token + 38, 134), (token + 14, 180), (token - 14, 180), fill=tint(VALUE, 0.35))
        path(axes, (token - 38, 134), (token + 38, 134), color=PAPER, line=2, head=False)
        arrow(axes, (token, 70), (token, 86))
        arrow(axes, (token, 181), (token, 203))
    text(axes, x, 258, "linear, ReLU, linear", TYPE)
    return axes


def three_attentions():
    axes = card(396)
    no_pads = np.tile([word != "<pad>" for word in SOURCE], (len(TARGET), 1))
    panels = (("encoder self-attention", 10, 300, "encoder", SOURCE[:4], "encoder", SOURCE, no_pads, "(B, 1, T_k)",
               "key is not <pad>"),
              ("masked self-attention", 315, 330, "decoder", TARGET, "decoder", TARGET, np.tri(len(TARGET), dtype=bool),
               "(T_q, T_q)", "key is not after query"),
              ("cross-attention", 650, 300, "decoder", TARGET, "memory", SOURCE, no_pads, "(B, 1, T_k)",
               "key is not <pad>"))
    top, cell = 144, 46
    for name, left, width, asks, queries, answers, keys, mask, shape, rule in panels:
        middle = left + width / 2
        box(axes, middle, 198, width, 376, fill=BAND, edge="none", corner=10)
        text(axes, middle, 29, name, TYPE, INK, "bold")
        box(axes, middle - 82, 71, 106, 34, QUERY, asks, TYPE)
        arrow(axes, (middle - 28, 71), (middle + 28, 71), QUERY, 2.4)
        box(axes, middle + 82, 71, 106, 34, KEY, answers, TYPE)
        text(axes, middle - 3, 54, "asks", TYPE, QUERY)
        text(axes, middle - 82, 103, "query", TYPE, QUERY, "bold")
        text(axes, middle + 57, 103, "keys,", TYPE, KEY, "bold", "right")
        text(axes, middle + 64, 103, "values", TYPE, VALUE, "bold", "left")
        begin = left + 64
        for j, word in enumerate(keys):
            text(axes, begin + (j + 0.5) * cell, top - 13, word.strip("<>"), TYPE, MUTED if word == "<pad>" else KEY)
        for i, word in enumerate(queries):
            text(axes, begin - 8, top + (i + 0.5) * cell, word.strip("<>"), TYPE, QUERY, align="right")
        checks(axes, begin, top, mask, cell)
        if name.startswith("masked"):
            end = begin + len(keys) * cell + 4
            text(axes, end, top - 13, "label", TYPE, GOOD, align="left")
            for i, word in enumerate(LABELS):
                text(axes, end, top + (i + 0.5) * cell, f"→ {word.strip('<>')}", TYPE, GOOD, align="left")
        text(axes, left + 20, 342, "mask", TYPE, INK, "bold", "left")
        text(axes, left + 90, 342, shape, TYPE, INK, align="left")
        text(axes, left + 20, 370, rule, TYPE, GOOD, "bold", "left")
    return axes


def decoder_layer():
    axes = card(206)
    stream, high = 182, 77
    box(axes, 480, 103, 944, 194, fill=BAND, edge="none", corner=10)
    text(axes, 26, stream, "x", 22, INK, "bold", code=True)
    stops = [40]
    for number, (take, part, width) in enumerate(
            ((64, "self_attention", 210), (376, "cross_attention", 210), (688, "feed_forward", 156)), start=1):
        left, right = take + 22, take + 22 + width
        plus = right + 22
        path(axes, (take, stream), (take, high), (left, high))
        path(axes, (right, high), (plus, high), (plus, stream - 13))
        box(axes, 610 + 96 * number, 28, 84, 28, fill=PAPER)
        text(axes, 610 + 96 * number, 28, f"norm_{number}", TYPE, code=True)
        if part.endswith("attention"):
            box(axes, (left + right) / 2, high + 18, width, 68, fill=PAPER)
            for port, x, wide in (("query", 40, 68), ("keys", 108, 56), ("mask", 172, 56)):
                box(axes, left + x, high + 34, wide, 26, MUTED, fill=PAPER, dashed=True)
                text(axes, left + x, high + 34, port, TYPE, code=True)
        box(axes, (left + right) / 2, high, width, 32, fill=INK)
        text(axes, (left + right) / 2, high, part, TYPE, PAPER, code=True)
        if part.startswith("cross"):
            box(axes, left - 51, 28, 92, 28, fill=INK)
            text(axes, left - 51, 28, "memory", TYPE, PAPER, code=True)
        arrow(axes, (stops[-1], stream), (plus - 13, stream), GOOD, 3)
        stops.append(plus + 13)
        disc(axes, plus, stream, "+", GOOD, radius=13, size=22)
    arrow(axes, (stops[-1], stream), (946, stream), GOOD, 3)
    return axes


def read_grid():
    axes = card(188)
    size, tall, top = TYPE, 38, 70

    def table(name, start, what, wide, columns):
        left = start + 104
        text(axes, start, 22, name, size, INK, "bold", "left", code=True)
        text(axes, left + wide * len(columns) / 2, 22, what, size, KEY if name == "read" else QUERY, "bold")
        for j, (word, color) in enumerate(columns):
            text(axes, left + (j + 0.5) * wide, 54, word, size, color, code=word.startswith("x["))
        for t in range(3):
            y = top + (t + 0.5) * tall
            text(axes, start, y, f"output {t}", size, QUERY, align="left")
            for j in range(len(columns)):
                box(axes, left + (j + 0.5) * wide, y, wide - 4, tall - 4, fill=PAPER, edge=INK, corner=3, line=1.4)

    table("seen", 14, "a target word changes", 86, [(f"x[{t}]", QUERY) for t in range(3)])
    table("read", 424, "a word of the memory changes", 60,
          [(word, KEY if word == "word" else MUTED) for word in READ])
    return axes


def bugs():
    axes = card(356)
    at = (243, 717)
    for x, name, what, training, writing in zip(
            at, "AC", ("normalizes over words", "masks too late"),
            ("training: sees later words", "padding takes its share:"),
            ("inference: one word, minus itself: 0", "the batch's pads matter"), strict=True):
        box(axes, x, 178, 458, 332, fill=BAND, edge="none", corner=10)
        text(axes, x - 208, 38, name, 26, BAD, "bold", "left")
        text(axes, x - 176, 39, what, 22, INK, "bold", "left")
        text(axes, x, 292, training, 19, MUTED)
        text(axes, x, 322, writing, 21, INK, "bold")
    words = np.random.default_rng(3).uniform(size=(4, FEATURES))
    for left, present, title in ((at[0] - 206, 4, "training"), (at[0] + 14, 1, "inference, first word")):
        text(axes, left + 94, 82, title, 19, MUTED)
        for t, (name, word) in enumerate(zip(("bos", *TARGET[1:]), words, strict=True)):
            x = left + 48 * t
            if t < present:
                grid(axes, x, 102, 0.5 * word[:, None], INK, (42, 17), frame=0)
                text(axes, x + 21, 256, name, 20)
            else:
                box(axes, x + 21, 170, 40, 134, fill=PAPER, edge=RULE, dashed=True, corner=2, line=1.2)
        box(axes, left + 24 * present - 3, 145, 48 * present + 4, 23, fill="none", edge=BAD, corner=3, line=3)
    for j, weight in enumerate(WEIGHTS):
        x, tall = at[1] - 180 + 60 * j, 560 * weight
        pad = j >= 5
        box(axes, x, 230 - tall / 2, 46, tall, fill=tint(BAD if pad else GOOD, 0.45 if pad else 0.75),
            edge=BAD if pad else GOOD, corner=2)
        if pad:
            text(axes, x, 230 - tall / 2, "✗", 22, BAD, "bold")
    text(axes, at[1] - 60, 82, "attention weights (an example)", 19, MUTED)
    for x, which, share, color in ((at[1] - 60, "words", SHARE, GOOD), (at[1] + 150, "pads", 1 - SHARE, BAD)):
        text(axes, x, 254, f"{which}: {share:.2f}", 20, color, "bold")
    return axes


def writing():
    axes = card(390)
    for left, title, color in ((8, "training: one pass for all words", GOOD),
                               (486, "inference: one pass per word", BAD)):
        box(axes, left + 233, 195, 466, 374, fill=BAND, edge="none", corner=10)
        text(axes, left + 233, 36, title, TYPE, color, "bold")
    for t, (word, following) in enumerate(zip(TARGET, LABELS, strict=True)):
        x = 80 + 107 * t
        text(axes, x, 310, word, 22, QUERY)
        arrow(axes, (x, 292), (x, 245))
        arrow(axes, (x, 185), (x, 139))
        text(axes, x, 117, following, 22, GOOD, "bold")
    box(axes, 241, 215, 410, 56, fill=INK, label="decoder", size=22, text_color=PAPER)
    for t in range(4):
        y = 88 + 82 * t
        text(axes, 690, y, " ".join(TARGET[:t + 1]), 22, QUERY, align="right")
        arrow(axes, (698, y), (722, y))
        box(axes, 774, y, 100, 46, fill=INK, label="decoder", size=22, text_color=PAPER)
        arrow(axes, (826, y), (850, y))
        text(axes, 857, y, LABELS[t], 22, BAD, "bold", "left")
        if t < 3:
            path(axes, (877, y + 16), (877, y + 41), (672, y + 41), (672, y + 64), color=BAD)
    return axes


def swap():
    """The first branch of a decoder layer in three models: the part in it differs, and what tells it the order."""
    axes = card(336)
    stream, high, low = 182, 92, 256
    for left, title, order, color, *lines in (
            (8, "Transformer", "position added", INK, "self-", "attention"),
            (326, "LSTM inside", "no position", LINES[4], "LSTM"),
            (644, "rotary", "turned by position", GOOD, "self-", "attention")):
        start, part, plus = left + 70, left + 164, left + 258
        box(axes, left + 154, 168, 308, 320, fill=BAND, edge="none", corner=10)
        text(axes, left + 154, 34, title, 22, color, "bold")
        path(axes, (start, stream), (start, high), (part - 66, high))
        path(axes, (part + 66, high), (plus, high), (plus, stream - 13))
        box(axes, start, 138, 82, 28, MUTED, label="norm", size=TYPE, fill=PAPER)
        box(axes, part, high, 132, 52, color, fill=PAPER, line=1.8 if color == INK else 3)
        for line, words in enumerate(lines):
            text(axes, part, high + 11 * (2 * line + 1 - len(lines)), words, TYPE, color,
                 "bold" if color != INK else "normal")
        arrow(axes, (left + 16, stream), (plus - 13, stream), GOOD, 3)
        disc(axes, plus, stream, "+", GOOD, radius=13, size=22)
        arrow(axes, (plus + 13, stream), (left + 300, stream), GOOD, 3)
        text(axes, left + 154, 310, order, TYPE, color)
    text(axes, 162, low, "$x_t + p_t$", 28)
    for t in range(3):
        x = 400 + 80 * t
        box(axes, x, low, 46, 36, LINES[4], fill=PAPER)
        text(axes, x, low - 2, f"$h_{t + 1}$", 24)
        if t:
            arrow(axes, (x - 57, low), (x - 24, low), LINES[4], 2.4)
    for angle, name, steps, color in ((50, "$q_5$", "5 steps", QUERY), (14, "$k_2$", "2 steps", KEY)):
        across, up = 74 * np.cos(np.radians(angle)), 74 * np.sin(np.radians(angle))
        arrow(axes, (724, low + 30), (724 + across, low + 30 - up), color, 2.6)
        text(axes, 724 + 1.25 * across, low + 30 - 1.2 * up, name, 24, color)
        text(axes, 846, low + 30 - 1.2 * up, steps, TYPE, color, align="left")
    return axes


def _hatched(axes, left, top, size, color):
    """A square that is only read: diagonal lines."""
    box(axes, left + size / 2, top + size / 2, size, size, color, fill=PAPER, corner=2, line=1.4)
    for offset in np.arange(-size + 6, size, 6):
        begin, end = max(0, -offset), min(size, size - offset)
        path(axes, (left + begin, top + size - begin - offset), (left + end, top + size - end - offset), color=color,
             line=1.2, head=False)


def _computed(axes, left, top, size, color):
    """A square that is made anew: filled."""
    box(axes, left + size / 2, top + size / 2, size, size, color, fill=tint(color, 0.75), corner=2, line=1.4)


def cache():
    axes = card(480)
    size, pitch, small, steps = 24, 27, 20, len(WRITTEN)
    lefts = [52 + 222 * t for t in range(steps)]
    for left, t in zip(lefts, range(1, steps + 1), strict=True):
        step(axes, left + 92, 30, t, f"{('<bos>', *WRITTEN)[t - 1]} → {WRITTEN[t - 1]}")
    for top, name, cached in ((54, "without a cache", False), (248, "with a cache", True)):
        box(axes, 480, top + 93, 940, 186, fill=BAND, edge="none", corner=10)
        passed = [1 if cached else t for t in range(1, steps + 1)]
        text(axes, 24, top + 22, name, 17, INK, "bold", "left")
        total = f"{' + '.join(str(n) for n in passed)} = {sum(passed)} words go through the layers"
        text(axes, 936, top + 22, total, 15, GOOD if cached else BAD, "bold", "right")
        for left, t in zip(lefts, range(1, steps + 1), strict=True):
            for row, (letter, color) in enumerate((("q", QUERY), ("k", KEY), ("v", VALUE))):
                y = top + 54 + 36 * row
                if t == 1:
                    text(axes, left - 14, y + size / 2, letter, 16, color, "bold")
                for i in range(t):
                    if not cached or i == t - 1:
                        _computed(axes, left + i * pitch, y, size, color)
                    elif letter != "q":
                        _hatched(axes, left + i * pitch, y, size, color)
            matrix = left + 124
            for i in range(t - 1 if cached else 0, t):
                for j in range(i + 1):
                    _computed(axes, matrix + j * (small + 2), top + 54 + (steps - t + i) * (small + 2), small, INK)
            text(axes, matrix + (t * (small + 2) - 2) / 2, top + 156, "scores", 15, MUTED)
    _computed(axes, 200, 447, 18, INK)
    text(axes, 228, 456, "computed at this step", 15, align="left")
    _hatched(axes, 520, 447, 18, INK)
    text(axes, 548, 456, "read from the cache", 15, align="left")
    return axes


def smoothing():
    axes = card(410)
    floor, high, n, label = 300, 180, len(WORDS), WORDS[LABEL]
    for left, name, note, targets, color, lowest, when in (
            (10, "one-hot", "the target word has all the probability", ONE_HOT, INK, "0",
             f"only if {label}'s score is infinitely far ahead"),
            (485, "smoothed", f"ε = {SMOOTHING} of the probability is shared by all {n}", SMOOTHED, GOOD,
             f"{ENTROPY:.2f} nats", f"when {label}'s score is {AHEAD:.1f} ahead of all others")):
        box(axes, left + 232.5, 205, 465, 390, fill=BAND, edge="none", corner=10)
        text(axes, left + 18, 34, name, 18, INK, "bold", "left")
        text(axes, left + 18, 60, note, 15, color, "bold", "left")
        path(axes, (left + 18, floor), (left + 447, floor), color=RULE, head=False)
        for i, (word, p) in enumerate(zip(WORDS, targets, strict=True)):
            x, y = left + 57 + 70 * i, floor - high * p
            if p:
                area(axes, (x - 21, floor), (x + 21, floor), (x + 21, y), (x - 21, y), fill=color)
            text(axes, x, y - 14, f"{p:.3f}" if 0 < p < 1 else f"{p:.0f}", 15, INK,
                 "bold" if i == LABEL else "normal")
            text(axes, x, floor + 18, word, 15, INK, "bold" if i == LABEL else "normal")
        text(axes, left + 18, 354, f"lowest loss: {lowest}", 15, INK, "bold", "left")
        text(axes, left + 18, 378, when, 15, align="left")
    text(axes, 485 + 57 + 70 * LABEL - 32, floor - high * max(SMOOTHED) + 12,
         rf"$1 - \varepsilon + \varepsilon / {n}$", 22, align="right")
    text(axes, 485 + 140, 246, rf"$\varepsilon / {n}$", 22)
    text(axes, 485 + 168, 246, "each", 16, align="left")
    return axes


def two_processes():
    axes = card(310)
    middle = 155
    for i, y in enumerate((82, 228)):
        toward = 1 if y < middle else -1
        box(axes, 538, y, 824, 118, fill=BAND, edge="none", corner=10)
        for row in range(4):
            box(axes, 66, y - 30 + 20 * row, 84, 13, INK, corner=3, line=1.4)
        arrow(axes, (112, y), (154, y), line=2.2)
        text(axes, 140, y - 44, f"process {i}", 16, INK, "bold", "left")
        for x, end, label, width in ((214, 297, "weights θ", 112), (342, 415, "loss", 84), (452, 0, "", 68)):
            box(axes, x, y, width, 44, INK, label, 16, fill=INK if end == 297 else PAPER,
                text_color=PAPER if end == 297 else INK)
            if end:
                arrow(axes, (x + width / 2 + 1, y), (end, y))
        text(axes, 452, y, f"$g_{i}$", 24)
        path(axes, (487, y), (560, y), (560, middle - 24 * toward))
        path(axes, (616, middle - 22 * toward), (616, y), (684, y))
        box(axes, 726, y, 80, 44, fill=PAPER, label="step", size=16)
        arrow(axes, (767, y), (806, y))
        box(axes, 866, y, 116, 44, fill=INK, label="weights θ′", size=16, text_color=PAPER)
    box(axes, 588, middle, 150, 44, GOOD, fill=PAPER, line=2.6)
    text(axes, 588, middle, r"$g = (g_0 + g_1) / 2$", 22)
    text(axes, 504, middle, "average gradient", 15, GOOD, "bold", "right")
    text(axes, 72, middle, "half the tokens", 15, MUTED)
    text(axes, 214, middle, "the same", 15, GOOD, "bold")
    text(axes, 866, middle, "still the same", 15, GOOD, "bold")
    return axes
