"""The figures of lesson 04, the Transformer. Each function returns a card, ``ALT`` says what it shows."""

from itertools import pairwise
from math import log

import numpy as np
from style import BAND, RULE, area, arrow, box, card, checks, dashes, disc, grid, path, step, text, text_width, tint

from course_utils.plotting import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY, VALUE

SOURCE = ("je", "suis", "là", ".", "<pad>")
TARGET = ("<bos>", "I", "am", "here")
BATCH = (("the", "cat", "sat", "<pad>"), ("a", "dog", "was", "tired"), ("it", "rained", "<pad>", "<pad>"))
FEATURES = 8
"""d_model of the block of numbers that is normed."""
WRITTEN = ("I", "am", "a", "student")
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
    "source_embed": (1, 258, 420, 250, 34, "embedding + position"),
    "target_embed": (1, 640, 420, 250, 34, "embedding + position"),
    "encoder_attention": (2, 120, 346, 176, 36, "self-attention"),
    "encoder_norm_1": (3, 258, 318, 92, 26, "norm"),
    "encoder_feed_forward": (4, 120, 250, 176, 36, "feed-forward"),
    "encoder_norm_2": (3, 258, 222, 92, 26, "norm"),
    "masked_attention": (5, 818, 346, 224, 36, "masked self-attention"),
    "decoder_norm_1": (3, 640, 318, 92, 26, "norm"),
    "cross_attention": (6, 484, 250, 180, 36, "cross-attention"),
    "decoder_norm_2": (3, 640, 222, 92, 26, "norm"),
    "decoder_feed_forward": (4, 818, 154, 224, 36, "feed-forward"),
    "decoder_norm_3": (3, 640, 126, 92, 26, "norm"),
    "softmax": (7, 640, 73, 190, 32, "linear + softmax"),
    "next_word": (8, 640, 24, 190, 30, "next word: here"),
}
"""The map's parts: number, centre, size, label."""

ALT = {
    "04_map":
        "The Transformer as a map with eight numbered parts. Left, the encoder, from bottom to top: the words “je suis "
        "là .” go through embedding plus position (1) onto a straight line, the residual path. Beside it stand "
        "self-attention (2), whose query, key and value all come from this line, and the feed-forward network (4); "
        "each result is added to the line at a plus sign, and a norm (3) stands on the line after it, as in the paper. "
        "This layer is there N times; the top is the memory, (B, T_k, d_model). Right, the decoder: “<bos> I am” goes "
        "through embedding plus position (1), masked self-attention (5), cross-attention (6) and feed-forward (4), "
        "each with its plus and norm (3), again N times. The cross-attention takes its query from the decoder and its "
        "keys and values from the memory, in all N layers. Linear and softmax (7) give (B, T_q, vocabulary); the next "
        "word (8), “here”, goes back in below.",
    "04_encoder_layer":
        "An encoder layer with the LayerNorm in two places. Both have a thick residual path from bottom to top; "
        "self-attention and feed-forward read from it to the side, and their results are added to it. Left, post-LN, "
        "as in the paper of 2017: after each sum a LayerNorm stands on the path itself, so the path leads through "
        "every LayerNorm; x becomes LayerNorm(x + F(x)). Right, pre-LN, used since 2018, in tensor2tensor and GPT-2, "
        "and in this course: each LayerNorm stands beside the path, before self-attention and before feed-forward, and "
        "the path is straight and free; x becomes x + F(LayerNorm(x)). After the last layer follows one more "
        "LayerNorm.",
    "04_layer_norm":
        "Which numbers share a mean: LayerNorm against BatchNorm. The same block of numbers twice: three sentences "
        "below each other, “the cat sat” and a pad, “a dog was tired”, “it rained” and two pads; a row a word, "
        f"{FEATURES} columns for d_model. Left, LayerNorm: the block is cut into rows. The row of “dog” is framed, its "
        "mean μ and deviation σ come from this one row; a pair for each word, (B, T, 1), which other words and "
        "padding do not change. Right, BatchNorm: the block is cut into columns. One column is framed through all "
        "three sentences, padding included; a pair for each feature, (d_model), which changes with the batch and its "
        "padding.",
    "04_three_attentions":
        "The three attentions of a Transformer, with masks. For each: who asks, who answers with keys and values, and "
        "the mask, a row a query and a column a key, where a check mark means the query may attend to the key. Encoder "
        "self-attention: the encoder asks the encoder; five by five for “je suis là .” and a pad, all columns but that "
        "of the pad are checked; weights (B, n_heads, T_k, T_k), mask (B, 1, T_k). Masked self-attention: the decoder "
        "asks the decoder; four by four for “<bos> I am here”, the lower triangle with the diagonal; weights (B, "
        "n_heads, T_q, T_q), mask (T_q, T_q). Cross-attention: the decoder asks the memory; four rows by five columns, "
        "all but the pad's column; weights (B, n_heads, T_q, T_k), mask (B, 1, T_k).",
    "04_cache":
        "Four steps of decoding, without and with a cache of keys and values. At step t the new word goes in and the "
        "next comes out: <bos> gives I, I gives am, am gives a, a gives student. Above, without a cache: at step t "
        "queries, keys and values of all t words are computed anew, and a whole triangle of scores; 1 + 2 + 3 + 4 = 10 "
        "words go through the layers. Below, with a cache: at step t one query, one key and one value are computed, "
        "drawn filled; the keys and values of the words before are read from the cache, drawn hatched, and only the "
        "last row of scores is computed; 1 + 1 + 1 + 1 = 4 words go through the layers.",
    "04_smoothing":
        f"One-hot and smoothed targets as bars over six words: {', '.join(WORDS)}. The target is {WORDS[LABEL]}. Left, "
        "one-hot: the target has 1, the others 0. The lowest loss is 0, but only if the target's score is infinitely "
        f"far ahead. Right, smoothed: ε = {SMOOTHING} of the probability is shared by all six words. The target has "
        f"1 − ε + ε/6 = {max(SMOOTHED):.3f}, the others ε/6 = {min(SMOOTHED):.3f} each. The lowest loss is "
        f"{ENTROPY:.2f} nats, reached when the target's score is {AHEAD:.1f} ahead of all others.",
    "04_two_processes":
        "One training step in two processes. Each process gets half of the batch, four sentences, and has the same "
        "weights θ. From its half it computes a loss and a gradient, g_0 in process 0 and g_1 in process 1. In the "
        "middle both meet: the average g = (g_0 + g_1) / 2 goes back to both. Each takes the same step with it, so the "
        "new weights θ′ are still the same in both.",
}


def _part(axes, name):
    """A numbered part of the map."""
    number, x, y, width, height, label = PARTS[name]
    left = x - (text_width(label, 16) + 29) / 2
    box(axes, x, y, width, height, fill=PAPER)
    disc(axes, left + 11, y, str(number), radius=11, size=15, fill=INK, text_color=PAPER, weight="bold")
    text(axes, left + 29, y, label, 16, align="left")


def _around(axes, name, stream, reads):
    """The way through a part beside the stream: what it reads below, what it adds to the stream.

    ``reads``: for each arrow into the part its distance from the middle, its letter and its colour.
    """
    _, x, y, width, height, _ = PARTS[name]
    side, begin = 1 if x > stream else -1, y + 40
    far = max(reads, key=lambda read: side * read[0])[0]
    path(axes, (stream, begin), (x + far, begin), color=reads[0][2] if len(reads) == 1 else INK, head=False)
    for at, letter, color in reads:
        arrow(axes, (x + at, begin + 0.9), (x + at, y + height / 2), color)
        if letter:
            text(axes, x + at + 8, begin - 11, letter, 15, color, "bold", "left")
    arrow(axes, (x - side * width / 2, y), (stream + side * 12, y))
    disc(axes, stream, y, "+", GOOD, radius=11, size=18)


def map():
    axes = card(480)
    encoder, decoder = PARTS["source_embed"][1], PARTS["target_embed"][1]
    box(axes, 174, 285, 312, 226, fill=BAND, edge="none", corner=10)
    box(axes, 655, 252, 562, 292, fill=BAND, edge="none", corner=10)
    text(axes, 34, 192, "encoder layer,", 17, INK, "bold", "left")
    text(axes, 34, 214, "N times", 17, INK, "bold", "left")
    text(axes, 388, 128, "decoder layer,", 17, INK, "bold", "left")
    text(axes, 388, 150, "N times", 17, INK, "bold", "left")
    text(axes, 24, 30, "The Transformer", 20, INK, "bold", "left")
    text(axes, 24, 56, "same number: same kind of part", 15, MUTED, align="left")

    for stream, ends in ((encoder, (305, 209, 147)), (decoder, (305, 209, 113, 90))):
        for begin, end in pairwise((403, *ends)):
            arrow(axes, (stream, begin), (stream, end), GOOD, 3)
    text(axes, decoder + 18, 250, "residual path", 15, GOOD, "bold", "left")
    box(axes, encoder, 132, 110, 30, fill=PAPER, label="memory")
    text(axes, encoder - 66, 132, "(B, T_k, d_model)", 15, MUTED, align="right")
    path(axes, (encoder + 55, 126), (360, 126), (360, 244), (394, 244), color=KEY)
    path(axes, (encoder + 55, 138), (348, 138), (348, 256), (394, 256), color=VALUE)
    text(axes, 360, 111, "keys", 15, KEY, "bold", "right")
    text(axes, 342, 160, "values", 15, VALUE, "bold", "right")
    all_three = ((-50, "q", QUERY), (0, "k", KEY), (50, "v", VALUE))
    for name, stream, reads in (("encoder_attention", encoder, all_three),
                                ("encoder_feed_forward", encoder, ((0, "", INK),)),
                                ("masked_attention", decoder, all_three),
                                ("cross_attention", decoder, ((50, "q", QUERY),)),
                                ("decoder_feed_forward", decoder, ((0, "", INK),))):
        _around(axes, name, stream, reads)
    for name in PARTS:
        _part(axes, name)
    arrow(axes, (decoder, 57), (decoder, 40))
    text(axes, decoder - 106, 73, "(B, T_q, vocabulary)", 15, MUTED, align="right")
    dashes(axes, (decoder + 95, 24), (950, 24), (950, 461), (706, 461), color=INK)
    text(axes, 842, 42, "goes back in", 15)
    text(axes, 394, 284, "to all N layers", 15, MUTED, align="left")
    for x, words, shape in ((encoder, SOURCE[:4], "(B, T_k)"), (decoder, TARGET[:3], "(B, T_q)")):
        arrow(axes, (x, 452), (x, 438))
        text(axes, x, 462, " ".join(words), 16)
        text(axes, x - 90, 462, shape, 15, MUTED, align="right")
    return axes


def encoder_layer():
    axes = card(450)
    top, bottom, rows = 80, 390, ((368, 302, "self-attention"), (222, 156, "feed-forward"))
    for left, name, note, verdict, color, formula in (
            (10, "post-LN", "the paper, 2017", "✗  the path leads through every LayerNorm", BAD,
             r"$x \leftarrow \mathrm{LayerNorm}(x + F(x))$"),
            (485, "pre-LN", "tensor2tensor 2018, GPT-2; this course", "✓  a straight path from bottom to top", GOOD,
             r"$x \leftarrow x + F(\mathrm{LayerNorm}(x))$")):
        pre, stream, beside = name == "pre-LN", left + 96, left + 318
        box(axes, left + 232.5, 225, 465, 430, fill=BAND, edge="none", corner=10)
        text(axes, left + 18, 32, name, 18, INK, "bold", "left")
        text(axes, left + 32 + text_width(name, 18, "bold"), 32, note, 15, MUTED, align="left")
        text(axes, left + 18, 58, verdict, 15, color, "bold", "left")
        text(axes, left + 186, 418, formula, 22)
        text(axes, left + 450, 418, "F: a dark box", 15, MUTED, align="right")
        text(axes, stream - 14, bottom - 6, "$x$", 22, align="right")
        arrow(axes, (stream, bottom), (stream, top), GOOD, 4)
        for low, high, label in rows:
            if pre:
                path(axes, (stream, low), (beside - 66, low))
                box(axes, beside, low, 128, 34, BAD, "LayerNorm", 16, fill=PAPER)
                arrow(axes, (beside, low - 18), (beside, high + 21))
            else:
                path(axes, (stream, low), (beside, low), (beside, high + 21))
                box(axes, stream, high - 40, 128, 34, BAD, "LayerNorm", 16, fill=PAPER, line=2.8)
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
            text(axes, begin - 8, top + (i + 0.5) * cell, word, 15, MUTED if word == "<pad>" else QUERY, align="right")
        checks(axes, begin, top, mask, cell)
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
    text(axes, 66, middle, "half each", 15, MUTED)
    text(axes, 214, middle, "the same", 15, GOOD, "bold")
    text(axes, 866, middle, "still the same", 15, GOOD, "bold")
    return axes
