"""The figures of lesson 04, the Transformer. Each function returns a card, ``ALT`` says what it shows."""

from itertools import pairwise
from math import log

import numpy as np
from style import BAND, RULE, area, arrow, box, card, checks, dashes, disc, grid, path, step, text, text_width, tint

from course_utils.plotting import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY, VALUE

SOURCE = ("I", "am", "here", ".", "<pad>")
TARGET = ("<bos>", "je", "suis", "là")
BATCH = (("the", "cat", "sat", "<pad>"), ("a", "dog", "was", "tired"), ("it", "rained", "<pad>", "<pad>"))
FEATURES = 8
"""d_model of the block of numbers that is normed."""
WRITTEN = ("je", "suis", "là", ".")
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

PARTS = {
    "source_embed": (1, 72, 172, 112, 46, "embedding", "+ position"),
    "encoder_norm_1": (3, 196, 98, 60, 30, "norm"),
    "encoder_attention": (2, 298, 98, 116, 46, "self-attention", "q k v"),
    "encoder_norm_2": (3, 404, 98, 60, 30, "norm"),
    "encoder_feed_forward": (4, 506, 98, 116, 46, "feed-forward"),
    "encoder_norm": (3, 612, 172, 60, 30, "norm"),
    "target_embed": (1, 72, 400, 112, 46, "embedding", "+ position"),
    "decoder_norm_1": (3, 196, 326, 60, 30, "norm"),
    "masked_attention": (5, 298, 326, 116, 64, "masked self-", "attention", "q k v"),
    "decoder_norm_2": (3, 404, 326, 60, 30, "norm"),
    "cross_attention": (6, 506, 326, 116, 64, "cross-", "attention", "q k v"),
    "decoder_norm_3": (3, 612, 326, 60, 30, "norm"),
    "decoder_feed_forward": (4, 714, 326, 116, 46, "feed-forward"),
    "decoder_norm": (3, 820, 400, 60, 30, "norm"),
    "softmax": (7, 902, 400, 80, 46, "linear", "softmax"),
    "next_word": (8, 902, 326, 80, 40, "là"),
}
"""The map's parts: number, centre, size, label, second line."""

ALT = {
    "04_map":
        "The Transformer of this lesson as a map with eight numbered parts, read from left to right. Above, the "
        "encoder: “I am here .” goes through embedding plus position (1) onto a straight line, the residual path. "
        "Twice a branch leaves the line, passes a norm (3), then self-attention (2) with query, key and value, or "
        "the feed-forward network (4), and is added to the line at a plus sign. This layer stands there N times; "
        "after a last norm comes the memory, (B, T_k, d_model). Below, the decoder: “<bos> je suis” goes through "
        "embedding plus position (1) onto its own line, with three such branches: masked self-attention (5), "
        "cross-attention (6) and feed-forward (4), again N times. Cross-attention takes its query from the decoder, "
        "keys and values from the memory. A last norm, then linear and softmax (7), give the next word (8), “là”, "
        "which goes back in. A small inset shows the paper's order: there the norm stands on the line, after each "
        "sum.",
    "04_encoder_layer":
        "An encoder layer with the LayerNorm in two places. Both have a thick residual path from bottom to top; "
        "self-attention and feed-forward read from it to the side, and their results are added to it. Left, post-LN, "
        "as in the paper of 2017: after each sum a LayerNorm stands on the path itself, so the path leads through "
        "every LayerNorm. Right, pre-LN, used since 2018, in tensor2tensor and GPT-2, "
        "and in this course: each LayerNorm stands beside the path, before self-attention and before feed-forward, and "
        "the path is straight and free. After the last layer follows one more "
        "LayerNorm.",
    "04_parts":
        "Three parts that are new. The residual path: x goes straight on, a branch leads through a part F, and what F "
        "computes is added, x + F(x). LayerNorm: three tokens, a row of numbers for each; the mean μ and the standard "
        "deviation σ are those of one row. Feed-forward: three tokens, for each the same small network by itself, "
        "narrow, wide, narrow.",
    "04_layer_norm":
        "What each norm averages over, LayerNorm and BatchNorm. The same block of numbers twice: three sentences "
        "below each other, “the cat sat” and a pad, “a dog was tired”, “it rained” and two pads; one row per word, "
        f"{FEATURES} columns for d_model. Left, LayerNorm: the block is cut into rows. The row of “dog” is framed, its "
        "mean μ and deviation σ come from this one row; a pair for each word, (B, T, 1), which other words and "
        "padding do not change. Right, BatchNorm: the block is cut into columns. One column is framed through all "
        "three sentences, padding included; a pair for each feature, (d_model), which changes with the batch and its "
        "padding.",
    "04_three_attentions":
        "The three attentions of a Transformer, with masks. For each: who asks, who answers with keys and values, and "
        "the mask, one row per query and one column per key, where a check mark means the query may attend to the key. "
        "Encoder self-attention: the encoder asks the encoder; five by five for “I am here .” and a pad, all columns "
        "but that of the pad are checked; weights (B, n_heads, T_k, T_k), mask (B, 1, T_k). Masked self-attention: the "
        "decoder asks the decoder; four by four for “<bos> je suis là”, the lower triangle with the diagonal, and "
        "beside each row the word it has to predict, “je”, “suis”, “là” and the full stop; weights "
        "(B, n_heads, T_q, T_q), mask (T_q, T_q). Cross-attention: the decoder asks the memory; four rows by five "
        "columns, all but the pad's column; weights (B, n_heads, T_q, T_k), mask (B, 1, T_k).",
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


def _part(axes, name):
    """A numbered part of the map; the letters q, k and v have their colours."""
    number, x, y, width, height, *lines = PARTS[name]
    small = height < 40
    box(axes, x, y, width, height, fill=PAPER, color=MUTED if small else INK)
    for line, words in enumerate(lines):
        row = y + 9.5 * (2 * line - len(lines) + 1)
        if words == "q k v":
            for letter, color, at in zip("qkv", (QUERY, KEY, VALUE), (-22, 0, 22), strict=True):
                text(axes, x + at, row, letter, 16, color, "bold")
        else:
            text(axes, x, row, words, 16, "#4B5563" if small else INK)
    disc(axes, x - width / 2 + 2, y - height / 2 - 1, str(number), radius=10, size=14, fill=INK, text_color=PAPER,
         weight="bold")


def _branch(axes, norm, part, stream):
    """What leaves the stream, passes a norm and a part, and is added to the stream at a plus."""
    (_, x, y, width, *_), (_, to, _, wide, high, *_) = PARTS[norm], PARTS[part]
    path(axes, (x - width / 2 - 16, stream), (x - width / 2 - 16, y), (x - width / 2, y))
    color = QUERY if part == "cross_attention" else INK
    arrow(axes, (x + width / 2 + 1, y), (to - wide / 2, y), color)
    arrow(axes, (to, y + high / 2), (to, stream - 13))
    disc(axes, to, stream, "+", GOOD, radius=13, size=20)


def map():
    axes = card(480)
    upper, lower = PARTS["source_embed"][2], PARTS["target_embed"][2]
    for left, right, stream, name in ((142, 574, upper, "encoder layer, N times"),
                                      (142, 782, lower, "decoder layer, N times")):
        box(axes, (left + right) / 2, stream - 56, right - left, 176, fill=BAND, edge="none", corner=10)
        text(axes, left + 12, stream - 131, name, 17, INK, "bold", "left")
    for stream, ends in ((upper, (285, 493, 582, 656)), (lower, (285, 493, 701, 790, 862))):
        for begin, end in pairwise((128, *ends)):
            arrow(axes, (begin, stream), (end, stream), GOOD, 3)
    text(axes, 330, upper + 17, "residual path", 17, GOOD, "bold", "left")
    _branch(axes, "encoder_norm_1", "encoder_attention", upper)
    _branch(axes, "encoder_norm_2", "encoder_feed_forward", upper)
    for norm, part in (("decoder_norm_1", "masked_attention"), ("decoder_norm_2", "cross_attention"),
                       ("decoder_norm_3", "decoder_feed_forward")):
        _branch(axes, norm, part, lower)
    box(axes, 712, upper, 100, 36, fill=INK, label="memory", size=18, text_color=PAPER, weight="bold")
    text(axes, 712, upper + 32, "(B, T_k, d_model)", 17, MUTED)
    path(axes, (700, upper + 44), (700, 228), (506, 228), (506, 294), color=KEY)
    path(axes, (724, upper + 44), (724, 240), (530, 240), (530, 294), color=VALUE)
    text(axes, 740, 236, "k and v, for all N layers", 17, INK, align="left")
    for name in PARTS:
        _part(axes, name)
    arrow(axes, (902, 376), (902, 347))
    dashes(axes, (943, 326), (952, 326), (952, 462), (148, 462), color=INK)
    text(axes, 640, 446, "the next word goes back in", 17)
    for stream, words, shape in ((upper, SOURCE[:4], "(B, T_k)"), (lower, TARGET[:3], "(B, T_q)")):
        arrow(axes, (72, stream + 48), (72, stream + 24))
        text(axes, 72, stream + 60, " ".join(words), 16, INK, "bold")
        text(axes, 72, stream - 38, shape, 17, MUTED)
    _paper_order(axes, 800, 100)
    return axes


def _paper_order(axes, left, stream):
    """Small: the norm on the path, after the sum."""
    box(axes, left + 66, stream - 18, 164, 138, fill=PAPER, edge=RULE, corner=8, line=1.2, dashed=True)
    text(axes, left + 66, stream - 70, "the paper's order:", 15, INK, "bold")
    text(axes, left + 66, stream - 52, "norm on the path", 15, BAD, "bold")
    for begin, end in ((left - 8, left + 45), (left + 67, left + 84), (left + 128, left + 142)):
        arrow(axes, (begin, stream + 26), (end, stream + 26), GOOD, 2)
    path(axes, (left, stream + 26), (left, stream - 14), (left + 36, stream - 14))
    box(axes, left + 56, stream - 14, 40, 26, fill=PAPER, label="F", size=15)
    arrow(axes, (left + 56, stream), (left + 56, stream + 14))
    disc(axes, left + 56, stream + 26, "+", GOOD, radius=10, size=16)
    box(axes, left + 106, stream + 26, 44, 26, BAD, "norm", 14, fill=PAPER)


def encoder_layer():
    axes = card(450)
    top, bottom, rows = 80, 390, ((368, 302, "self-attention"), (222, 156, "feed-forward"))
    for left, name, note, verdict, order in (
            (10, "post-LN", "the paper, 2017", "the path leads through every LayerNorm",
             "norm after each sum"),
            (485, "pre-LN", "tensor2tensor 2018, GPT-2; this course", "a straight path from bottom to top",
             "norm in front of each sublayer")):
        pre, stream, beside = name == "pre-LN", left + 96, left + 318
        box(axes, left + 232.5, 225, 465, 430, fill=BAND, edge="none", corner=10)
        text(axes, left + 18, 32, name, 18, INK, "bold", "left")
        text(axes, left + 32 + text_width(name, 18, "bold"), 32, note, 15, MUTED, align="left")
        text(axes, left + 18, 58, verdict, 15, INK, "bold", "left")
        text(axes, left + 232, 420, order, 18)
        text(axes, stream - 14, bottom - 6, "$x$", 22, align="right")
        arrow(axes, (stream, bottom), (stream, top), GOOD, 4)
        for low, high, label in rows:
            if pre:
                path(axes, (stream, low), (beside - 66, low))
                box(axes, beside, low, 128, 34, label="LayerNorm", fill=PAPER)
                arrow(axes, (beside, low - 18), (beside, high + 21))
            else:
                path(axes, (stream, low), (beside, low), (beside, high + 21))
                box(axes, stream, high - 40, 128, 34, label="LayerNorm", fill=PAPER, line=2.8)
            box(axes, beside, high, 176, 38, fill=INK, label=label, size=16, text_color=PAPER)
            arrow(axes, (beside - 89, high), (stream + 15, high))
            disc(axes, stream, high, "+", GOOD, radius=13, size=19)
    text(axes, 603, 92, "after the last layer: one more LayerNorm", 15, MUTED, align="left")
    return axes


def layer_norm():
    axes = card(440)
    block = np.random.default_rng(3).uniform(size=(len(BATCH), len(BATCH[0]), FEATURES))
    wide, tall, top, pitch = 27, 20, 98, 94
    tops = [top + pitch * b for b in range(len(BATCH))]
    bottom = tops[-1] + tall * block.shape[1]
    for left, name, rule, color, pairs, notes in (
            (10, "LayerNorm", "a mean for each word, over its features", GOOD, "a pair for each word: (B, T, 1)",
             ("other words", "and padding", "change nothing")),
            (485, "BatchNorm", "a mean for each feature, over all words", BAD, "a pair for each feature: (d_model)",
             ("changes with", "the batch and", "its padding"))):
        begin = left + 96
        end = begin + FEATURES * wide
        box(axes, left + 232.5, 220, 465, 420, fill=BAND, edge="none", corner=10)
        text(axes, left + 18, 32, name, 18, INK, "bold", "left")
        text(axes, left + 18, 58, rule, 15, color, "bold", "left")
        text(axes, left + 18, 84, "batch, time ↓", 15, MUTED, align="left")
        text(axes, end, 84, "d_model →", 15, MUTED, align="right")
        for y, sentence, values in zip(tops, BATCH, block, strict=True):
            grid(axes, begin, y, 0.45 * values, INK, (wide, tall), frame=0)
            for t, word in enumerate(sentence):
                text(axes, begin - 10, y + (t + 0.5) * tall, word, 15, MUTED if word == "<pad>" else INK, align="right")
        rows = [((begin, y + t * tall), (end, y + t * tall)) for y in tops for t in range(1, block.shape[1])]
        columns = [((begin + j * wide, top), (begin + j * wide, bottom)) for j in range(1, FEATURES)]
        for line in rows if name == "LayerNorm" else columns:
            path(axes, *line, color=BAND, line=3, head=False)
        if name == "LayerNorm":
            grid(axes, begin, tops[1] + tall, block[1, 1:2], color, (wide, tall), frame=3)
            y = tops[1] + 1.5 * tall
            arrow(axes, (end + 3, y), (end + 34, y), color, 2.4)
        else:
            x, y = begin + 2 * wide, bottom + 18
            for place, values in zip(tops, block, strict=True):
                grid(axes, x, place, values[:, 2:3], color, (wide, tall), frame=0)
            box(axes, x + wide / 2, (top + bottom) / 2, wide, bottom - top, color, fill="none", corner=2, line=3)
            path(axes, (x + wide / 2, bottom + 2), (x + wide / 2, y), (end + 34, y), color=color, line=2.4)
        box(axes, end + 72, y, 70, 34, color, "$\\mu,\\ \\sigma$", 22, fill=PAPER)
        for line, words in enumerate(notes):
            text(axes, end + 24, 272 + 22 * line, words, 15, INK, align="left")
        text(axes, left + 18, 414, pairs, 15, INK, align="left")
    return axes


def parts():
    axes = card(330)
    for x, name in ((165, "residual path"), (480, "LayerNorm"), (795, "feed-forward")):
        box(axes, x, 165, 300, 306, fill=BAND, edge="none", corner=10)
        text(axes, x, 40, name, 21, GOOD if name == "residual path" else INK, "bold")
    arrow(axes, (35, 200), (202, 200), GOOD, 3)
    arrow(axes, (230, 200), (297, 200), GOOD, 3)
    path(axes, (75, 200), (75, 112), (105, 112))
    box(axes, 147, 112, 84, 46, fill=PAPER, label="part F", size=20)
    path(axes, (189, 112), (216, 112), (216, 185))
    disc(axes, 216, 200, "+", GOOD, radius=14, size=20)
    text(axes, 50, 222, "$x$", 22)
    text(axes, 165, 278, "$x + F(x)$", 24)
    block = np.random.default_rng(3).uniform(size=(3, FEATURES))
    grid(axes, 360, 92, 0.45 * block, INK, (22, 34), frame=0)
    for t in (1, 2):
        path(axes, (360, 92 + 34 * t), (536, 92 + 34 * t), color=BAND, line=3, head=False)
    grid(axes, 360, 126, block[1:2], GOOD, (22, 34), frame=3)
    arrow(axes, (539, 143), (556, 143), GOOD, 2.4)
    text(axes, 590, 143, "$\\mu,\\ \\sigma$", 22, GOOD)
    text(axes, 480, 222, "of one token's numbers", 20)
    text(axes, 480, 278, "$\\gamma \\odot (x - \\mu)/\\sigma + \\beta$", 24)
    for x in (705, 795, 885):
        area(axes, (x - 14, 92), (x + 14, 92), (x + 36, 134), (x - 36, 134), fill=tint(VALUE, 0.35))
        area(axes, (x - 36, 134), (x + 36, 134), (x + 14, 176), (x - 14, 176), fill=tint(VALUE, 0.35))
        path(axes, (x - 36, 134), (x + 36, 134), color=PAPER, line=2, head=False)
        arrow(axes, (x, 76), (x, 90))
        arrow(axes, (x, 177), (x, 197))
    text(axes, 795, 222, "each token by itself", 20)
    text(axes, 795, 278, "$\\max(0,\\ xW_1 + b_1)\\,W_2 + b_2$", 22)
    return axes


def three_attentions():
    axes = card(450)
    may = np.array([word != "<pad>" for word in SOURCE])
    panels = (("encoder self-attention", "encoder", SOURCE, "encoder", SOURCE, np.tile(may, (len(SOURCE), 1)),
               "(B, n_heads, T_k, T_k)", "(B, 1, T_k)", "key is not <pad>"),
              ("masked self-attention", "decoder", TARGET, "decoder", TARGET, np.tri(len(TARGET), dtype=bool),
               "(B, n_heads, T_q, T_q)", "(T_q, T_q)", "key is not after query"),
              ("cross-attention", "decoder", TARGET, "memory", SOURCE, np.tile(may, (len(TARGET), 1)),
               "(B, n_heads, T_q, T_k)", "(B, 1, T_k)", "key is not <pad>"))
    top, cell = 148, 36
    for number, (name, asks, queries, answers, keys, mask, weights, shape, rule) in enumerate(panels):
        left = 10 + 315 * number
        box(axes, left + 155, 225, 310, 430, fill=BAND, edge="none", corner=10)
        text(axes, left + 155, 32, name, 17, INK, "bold")
        box(axes, left + 78, 70, 104, 34, QUERY, asks, 16)
        arrow(axes, (left + 131, 70), (left + 177, 70), QUERY, 2.4)
        box(axes, left + 232, 70, 104, 34, KEY, answers, 16)
        text(axes, left + 152, 55, "asks", 15, QUERY)
        for x, role, color in ((78, "query", QUERY), (206, "keys,", KEY), (258, "values", VALUE)):
            text(axes, left + x, 102, role, 15, color, "bold")
        begin = left + 92
        for j, word in enumerate(keys):
            text(axes, begin + (j + 0.5) * cell, top - 14, word.strip("<>"), 15, MUTED if word == "<pad>" else KEY)
        for i, word in enumerate(queries):
            text(axes, begin - 8, top + (i + 0.5) * cell, word.strip("<>"), 15, MUTED if word == "<pad>" else QUERY,
                 align="right")
        checks(axes, begin, top, mask, cell)
        if name.startswith("masked"):
            text(axes, begin + 4 * cell + 8, top - 14, "label", 15, GOOD, align="left")
            for i, word in enumerate(WRITTEN):
                text(axes, begin + 4 * cell + 8, top + (i + 0.5) * cell, f"→ {word}", 15, GOOD, align="left")
        for y, matrix, words in ((362, "weights", weights), (386, "mask", shape)):
            text(axes, left + 24, y, matrix, 15, INK, "bold", "left")
            text(axes, left + 106, y, words, 15, INK, align="left")
        text(axes, left + 106, 412, rule, 15, GOOD, "bold", "left")
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
