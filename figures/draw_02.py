"""The figures of lesson 02, Bahdanau attention. Each function returns a card, ``ALT`` says what it shows."""

from style import BAND, RULE, area, arrow, box, card, disc, path, step, text, text_width, tint

from course_utils.data.grammar import EXAMPLE
from course_utils.plotting import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY, VALUE

NUMBERS = 128
"""Width of the one vector in the picture of the bottleneck."""

ALT = {
    "02_bottleneck":
        "The bottleneck of an encoder-decoder. Thirteen English tokens, from “the” to the full stop, stand in "
        "a column; a chain of GRU states runs down beside them and a second chain runs up. Only the last "
        f"state of each chain goes on: together they make one narrow vector of {NUMBERS} numbers in the "
        "middle. From this vector alone the decoder's chain of states writes fourteen French tokens, from "
        "“l'” to the full stop.",
    "02_alignment":
        "A word alignment with crossing links. The English sentence “the agreement on the european economic "
        "area was signed in august 1992 .” stands above the French “l' accord sur la zone économique "
        "européenne a été signé en août 1992 .”, and lines join the words that translate each other. Most "
        "lines run side by side. Three thick ones cross, because the order is reversed: european–européenne, "
        "economic–économique, area–zone. Two dashed ones start at one English word: “was” becomes “a été”.",
    "02_attention_step":
        "One step of attention in four parts. 1, score: the decoder's state s of step t minus 1 "
        "is compared with three encoder states; the scores are 2, 1 and 0. 2, softmax: the scores "
        "become the weights 0.67, 0.24 and 0.09. 3, weighted sum: each encoder state is "
        "multiplied by its weight, and the results add up to the context vector c of step t. 4, update: a GRU "
        "makes the new state s of step t from the old state, the previous word and the context; from the new state, "
        "the context and the previous word the word “accord” is written.",
    "02_table":
        "Attention for a whole sentence as a table. Left, three queries stand below each other, W_q times the "
        "decoder's states before “l'”, “accord” and “sur”; above, five keys side by side, W_k times the encoder's "
        "states at “the”, “agreement”, “on”, “it” and at padding. Each query meets each key: a table of scores "
        "with three rows and five columns. Middle, the column of the padding is masked and the softmax of each "
        "row turns scores into weights; a row sums to one and the padding gets none. Right, each row of weights "
        "times the column of five values, the encoder's states themselves and the padding's, gives one context "
        "per row.",
    "02_scores":
        "Six score functions, drawn as circuits from query q and key k to score e. Additive (Bahdanau et al. "
        "2015): v dot tanh(W_q q + W_k k), 2d² + d weights (biases not counted). Dot (Luong et al. 2015): q "
        "dot k, no weights. General (Luong et al. 2015): q dot W k, d² weights. Location (Luong et al. 2015): "
        "entry j of W q, n times d weights for n positions; it is the only one in which the key is not "
        "connected. Cosine (Graves et al. 2014): the dot product divided by both lengths, times a sharpness "
        "g, 1 weight. Scaled dot (Vaswani et al. 2017): q dot k divided by the square root of d, no weights.",
    "02_gnmt":
        "Google's translation system GNMT of 2016. Left, an encoder of eight LSTM layers: the first reads in "
        "both directions, the others from left to right. Right, a decoder of eight LSTM layers under a "
        "softmax. In both stacks residual connections lead around each layer from the third on. Between the "
        "stacks stands the attention: its query comes from the decoder's bottom layer, at the previous step, "
        "its keys and values from the encoder's top layer, and its context goes to all eight decoder layers.",
    "02_location":
        "The location score. The decoder's state s of step t is multiplied by a matrix W of 64 rows and 112 columns, "
        "which gives a score for each of 64 positions; the softmax runs over those that the sentence has. Below, the "
        "English words stand at their positions, greyed: their keys are never compared.",
    "02_query":
        "Which state asks. Above, section 4: the previous state, s of step t minus 1, asks; attention gives "
        "the context, then the decoder reads the word written last and updates to s of step t, and the next word is "
        "written. Below, Luong: first the update, then s of step t, which has read that word, asks.",
    "02_paths":
        "The path from a source word to the loss, for a sentence of 35 words. Above, without attention: from word "
        "18 the path leads through some 18 encoder states to either end, then through the one vector c and the "
        "decoder to the loss. Below, with attention, three numbered steps: word 18 to its state, the state to the "
        "context c of step t, the context through the output layer to the loss.",
    "02_qkv":
        "Attention read as a soft dictionary look-up. Top left, a Python dictionary: the query “area” equals one "
        "key, and that key's value “zone” comes back alone. Top right, attention: the query is compared with "
        "every key, the weights are 0.09, 0.67 and 0.24, and the weighted sum of all values comes back. Below, "
        "who plays which role. In Bahdanau's decoder the query is made from the decoder's state s of step t minus "
        "1, the keys from the encoder's states h, which are the values, and the score is v dot tanh(q + k). In "
        "self-attention, lesson 03, all three are made from the words x of one sentence, by three matrices, and "
        "the score is q dot k divided by the square root of d.",
}


def bottleneck():
    axes = card(420)
    text(axes, 158, 26, f"{len(EXAMPLE.source)} tokens in", 19, weight="bold")
    text(axes, 480, 26, f"{NUMBERS} numbers", 19, BAD, "bold")
    text(axes, 800, 26, f"{len(EXAMPLE.target)} tokens out", 19, weight="bold")
    top, pitch = 72, 25
    left = [top + (i + 0.5) * pitch for i in range(len(EXAMPLE.source))]
    right = [top + i * pitch for i in range(len(EXAMPLE.target))]
    area(axes, (150, left[0] - 14), (252, left[0] - 14), (452, 184), (452, 276), (252, left[-1] + 14),
         (150, left[-1] + 14))
    area(axes, (508, 184), (706, right[0] - 14), (776, right[0] - 14), (776, right[-1] + 14), (706, right[-1] + 14),
         (508, 276))
    for i, (word, y) in enumerate(zip(EXAMPLE.source, left, strict=True)):
        text(axes, 138, y, word, 16, align="right")
        path(axes, (144, y), (158, y), color=RULE, head=False)
        for x, ahead, last in ((174, 1, len(EXAMPLE.source) - 1), (226, -1, 0)):
            box(axes, x, y, 30, 15, KEY, corner=4, line=3 if i == last else 1.6,
                fill=tint(KEY, 0.75) if i == last else None)
            if i != last:
                arrow(axes, (x, y + 8 * ahead), (x, left[i + ahead] - 8.5 * ahead), KEY, 1.3)
    arrow(axes, (174, left[-1] + 9), (450, 266), KEY, 3, bend=0.36)
    arrow(axes, (243, left[0]), (450, 194), KEY, 3, bend=-0.1)
    text(axes, 200, 54, "GRU states", 15, MUTED)
    for i, amount in enumerate((0.75, 0.3, 0.5, 0.15, 0.6, 0.85, 0.2, 0.45)):
        box(axes, 480, 230 + (i - 3.5) * 17, 34, 17, BAD, fill=tint(BAD, amount), corner=2, line=1.2)
    box(axes, 480, 230, 44, 148, BAD, fill="none", line=3)
    text(axes, 480, 330, "one vector", 17, BAD, "bold")
    text(axes, 480, 353, "for any sentence", 16, BAD)
    text(axes, 330, 214, "the last state", 15, MUTED)
    text(axes, 330, 234, "of each direction", 15, MUTED)
    for i, (word, y) in enumerate(zip(EXAMPLE.target, right, strict=True)):
        arrow(axes, (508, 230 + (i - 6.5) * 5), (728, y), RULE, 1.2)
        box(axes, 748, y, 34, 15, QUERY, corner=4, line=1.6)
        if i + 1 < len(EXAMPLE.target):
            arrow(axes, (748, y + 8), (748, right[i + 1] - 8.5), QUERY, 1.3)
        path(axes, (767, y), (782, y), color=RULE, head=False)
        text(axes, 790, y, word, 16, align="left")
    return axes


def _place(words, size, width, gap_min=8):
    """Centres and widths of words spread over ``width`` pixels."""
    widths = [text_width(word, size) for word in words]
    gap = (width - sum(widths)) / (len(words) - 1)
    assert gap >= gap_min, f"the words leave only {gap:.0f} px between them"
    centres, x = [], 0
    for each in widths:
        centres.append(x + each / 2)
        x += each + gap
    return centres, widths


def alignment():
    axes = card(320)
    upper, lower, size = 84, 236, 17
    source, source_widths = _place(EXAMPLE.source, size, 890)
    target, target_widths = _place(EXAMPLE.target, size, 890)
    source, target = [x + 35 for x in source], [x + 35 for x in target]
    (crossing,), two = EXAMPLE.inverted, {(7, 7), (8, 7)}
    for x, w, chosen in ((source, source_widths, (4, 5, 6)), (target, target_widths, (4, 5, 6))):
        y, color = (upper, KEY) if x is source else (lower, QUERY)
        begin, end = x[chosen[0]] - w[chosen[0]] / 2 - 7, x[chosen[-1]] + w[chosen[-1]] / 2 + 7
        box(axes, (begin + end) / 2, y, end - begin, 34, color, edge="none")
    for row, column in sorted(EXAMPLE.links, key=lambda link: link in crossing):
        start, end = (source[column], upper + 19), (target[row], lower - 19)
        if (row, column) in crossing:
            arrow(axes, start, end, INK, 3.6, head=False)
        elif (row, column) in two:
            arrow(axes, start, end, GOOD, 2.8, head=False, dashed=True)
        else:
            arrow(axes, start, end, RULE, 2, head=False)
    for word, x in zip(EXAMPLE.source, source, strict=True):
        text(axes, x, upper, word, size)
    for word, x in zip(EXAMPLE.target, target, strict=True):
        text(axes, x, lower, word, size)
    text(axes, source[5], 36, "the order is reversed: these links cross", 16, INK, "bold")
    text(axes, (target[7] + target[8]) / 2, 282, "one word becomes two", 16, GOOD, "bold")
    text(axes, 27, 36, "English", 16, MUTED, align="left")
    text(axes, 27, 282, "French", 16, MUTED, align="left")
    return axes


def attention_step():
    axes = card(420)
    columns = ((14, 340), (346, 478), (484, 726), (732, 946))
    for number, ((left, right), title) in enumerate(
            zip(columns, ("score", "softmax", "weighted sum", "update"), strict=True), 1):
        box(axes, (left + right) / 2, 182, right - left, 336, fill=BAND, edge="none", corner=10)
        step(axes, (left + right) / 2, 40, number, title)
    rows, words = (108, 188, 268), ("agreement", "was", "signed")
    scores, weights = ("2", "1", "0"), (0.67, 0.24, 0.09)
    box(axes, 66, 188, 80, 48, QUERY, "$s_{t{-}1}$", 24)
    text(axes, 66, 148, "decoder", 16, QUERY, "bold")
    text(axes, 206, 74, "encoder", 16, KEY, "bold")
    text(axes, 540, 74, "encoder", 16, VALUE, "bold")
    for j, (y, word, score, weight) in enumerate(zip(rows, words, scores, weights, strict=True), 1):
        heavy = j == 1
        arrow(axes, (107, 188), (174, y), QUERY, 1.8)
        box(axes, 206, y, 60, 40, KEY, f"$h_{j}$", 24)
        text(axes, 206, y + 33, word, 15, MUTED)
        arrow(axes, (237, y), (282, y))
        disc(axes, 303, y, score, INK, radius=20, size=17, weight="bold")
        arrow(axes, (324, y), (362, y))
        box(axes, 392, y, 56, 30, fill=PAPER, label=f".{round(100 * weight):02d}", size=17, weight="bold")
        box(axes, 448, y, 28, 40, fill=PAPER, edge=RULE, corner=2, line=1.2)
        area(axes, (434, y + 20), (462, y + 20), (462, y + 20 - 40 * weight), (434, y + 20 - 40 * weight), fill=INK)
        arrow(axes, (464, y), (508, y))
        text(axes, 495, y - 15, "×", 18)
        box(axes, 540, y, 60, 40, VALUE, f"$h_{j}$", 24, fill=tint(VALUE, 0.45 if heavy else 0.06),
            line=2.6 if heavy else 1.2, edge=VALUE if heavy else tint(VALUE, 0.6))
        arrow(axes, (571, y), (616 if y == 188 else 620, 188 + (y - 188) * 0.19), VALUE, 4 if heavy else 1.4)
    disc(axes, 632, 188, "+", radius=15, size=20)
    arrow(axes, (648, 188), (670, 188), VALUE, 2.6)
    box(axes, 696, 188, 48, 48, VALUE, "$c_t$", 24, fill=tint(VALUE, 0.45), line=2.6)
    text(axes, 688, 230, "context", 16, VALUE, "bold")
    arrow(axes, (721, 188), (766, 188), VALUE, 2.6)
    box(axes, 802, 188, 70, 54, label="GRU", size=18, fill=PAPER, weight="bold")
    path(axes, (66, 213), (66, 326), (802, 326), (802, 217), color=QUERY)
    text(axes, 812, 310, "old state", 15, QUERY, align="left")
    box(axes, 796, 108, 64, 34, fill=PAPER, label="$y_{t{-}1}$", size=22)
    text(axes, 796, 74, "previous word", 15, MUTED)
    arrow(axes, (796, 126), (796, 159))
    arrow(axes, (829, 108), (866, 108))
    arrow(axes, (838, 188), (868, 188), QUERY)
    box(axes, 900, 188, 62, 48, QUERY, "$s_t$", 24)
    arrow(axes, (900, 163), (900, 125))
    path(axes, (696, 163), (696, 56), (900, 56), (900, 93), color=VALUE)
    text(axes, 904, 108, "accord", 17, weight="bold")
    text(axes, 900, 230, "new state", 15, QUERY)
    y = 384
    text(axes, 177, y, r"$e_{tj} = \mathrm{score}(s_{t{-}1}, h_j)$", 23)
    text(axes, 412, y, r"$\alpha_t = \mathrm{softmax}(e_t)$", 23)
    text(axes, 605, y - 4, r"$c_t = \sum_j\, \alpha_{tj}\, h_j$", 22)
    text(axes, 836, y, r"$s_t = \mathrm{GRU}([y_{t{-}1}; c_t], s_{t{-}1})$", 21.5)
    return axes


def table():
    axes = card(420)
    english, french = ("the", "agreement", "on", "it", "padding"), ("l'", "accord", "sur")
    scores = ((3, 1, 0, 0, 0), (1, 3, 0, 0, 0), (0, 1, 3, 0, 0))
    side, tops = 52, (150, 202, 254)
    for (left, right), number, title in (((14, 430), 1, "score: every query, every key"),
                                         ((436, 692), 2, "mask, softmax by row"),
                                         ((698, 946), 3, "weighted sums")):
        box(axes, (left + right) / 2, 190, right - left, 352, fill=BAND, edge="none", corner=10)
        step(axes, (left + right) / 2, 38, number, title)
    first, second = 158, 450
    for j, name in enumerate(english):
        x, pad = first + side * (j + 0.5), name == "padding"
        box(axes, x, 114, 49, 34, MUTED if pad else KEY, "" if pad else f"$W_k h_{j + 1}$", 20, dashed=pad)
        text(axes, x, 84 - 20 * (j % 2), name, 17, INK)
    text(axes, 112, 131, "queries", 16, QUERY, "bold")
    text(axes, 124, 102, "keys →", 16, KEY, "bold")
    for i, (top, name) in enumerate(zip(tops, french, strict=True)):
        y = top + side / 2
        text(axes, 20, y, name, 17, INK, align="left")
        box(axes, 112, y, 60, 38, QUERY, f"$W_q s_{i}$", 22)
        arrow(axes, (143, y), (first - 3, y), QUERY)
        exponents = [2.718 ** score for score in scores[i][:4]]
        for left, values in ((first, scores[i]), (second, [*(e / sum(exponents) for e in exponents), 0.0])):
            for j, value in enumerate(values):
                width = side if left == first else 34
                x = left + width * (j + 0.5)
                masked = left == second and j == 4
                box(axes, x, y, width, side, fill=PAPER if left == first or masked else tint(INK, 0.6 * value),
                    edge=RULE, corner=1, line=1.2)
                label = f"{value}" if left == first else "0" if masked else f".{round(100 * value):02d}"
                text(axes, x, y, label, 17 if left == first else 15, MUTED if masked else INK)
        text(axes, 652, y, "sum 1", 17, INK)
        box(axes, 896, y, 48, 38, VALUE, f"$c_{i + 1}$", 22)
    arrow(axes, (first + 5 * side + 4, 228), (second - 4, 228))
    arrow(axes, (second + 4.5 * 34, 112), (second + 4.5 * 34, 146))
    text(axes, second + 4 * 34, 96, "padding: score −∞", 17, INK)
    text(axes, 746, 228, "weights ×", 17)
    text(axes, 856, 228, "=", 20)
    for j, name in enumerate(english):
        pad = name == "padding"
        label, color = ("", MUTED) if pad else (f"$h_{j + 1}$", VALUE)
        box(axes, 814, 150 + 31.2 * (j + 0.5), 44, 27, color, label, 20, dashed=pad)
    text(axes, 816, 128, "values", 16, VALUE, "bold")
    text(axes, 896, 128, "contexts", 16, VALUE, "bold")
    for x, shape in ((first + 2.5 * side, "$T_q$ × $T_k$"), (second + 2.5 * 34, "$T_q$ × $T_k$"), (896, "$T_q$ × d")):
        text(axes, x, 334, shape, 20)
    text(axes, 480, 392, "One row per word to write, one column per word to read. No loop over the source.", 18, INK)
    return axes


def _panel(axes, column, row, name, source, formula, weights, reads_key=True):
    """One score function's panel without its circuit; returns the panel's left, and the heights of q, middle, k."""
    left, top = 16 + column * 314, 14 + row * 233
    box(axes, left + 150, top + 109.5, 300, 219, fill=BAND if reads_key else tint(QUERY, 0.1),
        edge="none" if reads_key else QUERY, corner=10, line=2.4)
    text(axes, left + 14, top + 24, name, 18, INK, "bold", align="left")
    text(axes, left + 288, top + 24, source, 15, MUTED, align="right")
    text(axes, left + 150, top + 158, formula, 23)
    text(axes, left + 14, top + 197, "reads", 15, MUTED, align="left")
    text(axes, left + 66, top + 197, "q and k" if reads_key else "q alone", 15, INK, "bold", align="left")
    text(axes, left + 288, top + 197, weights, 15, INK, align="right")
    if weights != "no weights":
        box(axes, left + 274 - text_width(weights, 15), top + 197, 11, 11, fill=INK, corner=2)
    high, low = top + 66, top + 116
    box(axes, left + 30, high, 34, 32, QUERY, "$q$", 22)
    if reads_key:
        box(axes, left + 30, low, 34, 32, KEY, "$k$", 22)
    else:
        box(axes, left + 30, low, 34, 32, MUTED, "$k$", 22, fill=PAPER, text_color=MUTED, dashed=True)
        arrow(axes, (left + 10, low + 19), (left + 50, low - 19), BAD, 2.6, head=False)
        text(axes, left + 58, low, "never looked at", 15, BAD, "bold", align="left")
    middle = (high + low) / 2
    y = middle if reads_key else high
    disc(axes, left + 274, y, "$e$", INK, radius=16, size=22)
    return left, high, middle, low


def _gate(axes, x, y, label, width=36, learned=False, size=20):
    """An operation; one with weights that are learned is drawn dark."""
    box(axes, x, y, width, 30, fill=INK if learned else PAPER, label=label, size=size,
        text_color=PAPER if learned else INK, corner=5)


def scores():
    axes = card(480)
    x, high, middle, low = _panel(axes, 0, 0, "additive", "Bahdanau et al. 2015",
                                  r"$v \cdot \tanh(W_q\, q + W_k\, k)$", "2d² + d weights")
    for y, matrix in ((high, "$W_q$"), (low, "$W_k$")):
        arrow(axes, (x + 48, y), (x + 66, y))
        _gate(axes, x + 85, y, matrix, 38, learned=True)
        path(axes, (x + 104, y), (x + 128, y), (x + 128, middle + (-13 if y == high else 13)))
    disc(axes, x + 128, middle, "+", radius=12, size=18)
    arrow(axes, (x + 140, middle), (x + 154, middle))
    _gate(axes, x + 180, middle, "tanh", 50, size=15)
    arrow(axes, (x + 206, middle), (x + 218, middle))
    _gate(axes, x + 232, middle, "$v$", 26, learned=True)
    arrow(axes, (x + 246, middle), (x + 257, middle))

    def product(x, high, middle, low, at, start_high=48, start_low=48):
        for y, start in ((high, start_high), (low, start_low)):
            path(axes, (x + start, y), (x + at, y), (x + at, middle + (-14 if y == high else 14)))
        disc(axes, x + at, middle, r"$\cdot$", radius=13, size=30)

    x, high, middle, low = _panel(axes, 1, 0, "dot", "Luong et al. 2015", r"$q \cdot k$", "no weights")
    product(x, high, middle, low, 150)
    arrow(axes, (x + 164, middle), (x + 257, middle))

    x, high, middle, low = _panel(axes, 2, 0, "general", "Luong et al. 2015", r"$q \cdot W k$", "d² weights")
    arrow(axes, (x + 48, low), (x + 76, low))
    _gate(axes, x + 95, low, "$W$", learned=True)
    product(x, high, middle, low, 150, start_low=114)
    arrow(axes, (x + 164, middle), (x + 257, middle))

    x, high, middle, low = _panel(axes, 0, 1, "location", "Luong et al. 2015", r"$(W q)_j$ ,   $W: n \times d$",
                                  "n·d weights", reads_key=False)
    arrow(axes, (x + 48, high), (x + 76, high))
    _gate(axes, x + 95, high, "$W$", learned=True)
    arrow(axes, (x + 114, high), (x + 140, high))
    _gate(axes, x + 186, high, "entry $j$", 90, size=16)
    arrow(axes, (x + 232, high), (x + 257, high))

    x, high, middle, low = _panel(axes, 1, 1, "cosine", "Graves et al. 2014",
                                  r"$g\; (q \cdot k) \,/\, (\|q\| \, \|k\|)$", "1 weight")
    for y, norm in ((high, r"$/\,\|q\|$"), (low, r"$/\,\|k\|$")):
        arrow(axes, (x + 48, y), (x + 62, y))
        _gate(axes, x + 92, y, norm, 58)
    product(x, high, middle, low, 150, 122, 122)
    arrow(axes, (x + 164, middle), (x + 186, middle))
    _gate(axes, x + 206, middle, r"$\times g$", 38, learned=True)
    arrow(axes, (x + 226, middle), (x + 257, middle))

    x, high, middle, low = _panel(axes, 2, 1, "scaled dot", "Vaswani et al. 2017", r"$(q \cdot k) \,/\, \sqrt{d}$",
                                  "no weights")
    product(x, high, middle, low, 120)
    arrow(axes, (x + 134, middle), (x + 164, middle))
    _gate(axes, x + 196, middle, r"$/\,\sqrt{d}$", 62)
    arrow(axes, (x + 228, middle), (x + 257, middle))
    return axes


def gnmt():
    axes = card(420)
    layers = [350 - 35 * i for i in range(8)]
    for x, side, name, color, words in ((248, -1, "Encoder", KEY, "source words"),
                                        (712, 1, "Decoder", QUERY, "words so far")):
        text(axes, x, 26, f"{name}: 8 LSTM layers", 17, INK, "bold")
        text(axes, x, 398, words, 16, MUTED)
        arrow(axes, (x, 386), (x, 365), line=1.6)
        for i, y in enumerate(layers):
            if i == 0 and side < 0:
                box(axes, x - 61, y, 114, 24, color, "1   →", 15)
                box(axes, x + 61, y, 114, 24, color, "←   1", 15)
            else:
                box(axes, x, y, 236, 24, color, f"{i + 1}   →", 15)
            if i < 7:
                arrow(axes, (x, y - 13), (x, y - 22), color, 1.6)
            if i >= 2:
                edge = x + side * 120
                arrow(axes, (edge, y + 15), (edge, y - 15), GOOD, 1.6, bend=side * 0.8)
        align, edge = ("right", x - 148) if side < 0 else ("left", x + 148)
        for line, words in enumerate(("residual", "around", "layers", "3 to 8")):
            text(axes, edge, layers[5] - 12 + 21 * line, words, 15, GOOD, "bold" if line < 1 else "normal", align)
    for line, words in enumerate(("reads in", "both", "directions")):
        text(axes, 112, layers[0] - 21 + 21 * line, words, 15, MUTED, align="right")
    arrow(axes, (712, layers[7] - 13), (712, 79), line=1.6)
    box(axes, 712, 63, 110, 30, fill=PAPER, label="softmax", size=16)
    box(axes, 467, 176, 112, 46, fill=PAPER, label="attention", size=17, weight="bold", line=2.4)
    path(axes, (367, layers[7] - 5), (482, layers[7] - 5), (482, 152), color=KEY, line=2.4)
    path(axes, (367, layers[7] + 5), (452, layers[7] + 5), (452, 152), color=VALUE, line=2.4)
    text(axes, 424, layers[7] - 21, "keys", 16, KEY, "bold")
    text(axes, 444, layers[7] + 24, "values", 16, VALUE, "bold", "right")
    path(axes, (593, layers[0] + 6), (467, layers[0] + 6), (467, 200), color=QUERY, line=2.4)
    text(axes, 457, 256, "query", 16, QUERY, "bold", "right")
    for line, words in enumerate(("state of", "layer 1,", "one step", "earlier")):
        text(axes, 457, 278 + 20 * line, words, 15, QUERY, align="right")
    path(axes, (524, 176), (556, 176), color=VALUE, line=2.4, head=False)
    path(axes, (556, layers[7]), (556, layers[0] - 4), color=VALUE, line=2.4, head=False)
    for i, y in enumerate(layers):
        arrow(axes, (555, y - 4 * (i == 0)), (593, y - 4 * (i == 0)), VALUE, 2.4)
    text(axes, 540, 62, "context", 16, VALUE, "bold")
    text(axes, 540, 83, "to every layer", 15, VALUE)
    return axes


def qkv():
    axes = card(420)
    for x, title, note in ((246, "A dictionary", "the one key that is equal gives its value"),
                           (714, "Attention", "every key fits a little: a mixture of all values")):
        box(axes, x, 131, 460, 234, fill=BAND, edge="none", corner=10)
        text(axes, x, 34, title, 17, INK, "bold")
        text(axes, x, 230, note, 16)
    rows, weights = (92, 142, 192), (0.09, 0.67, 0.24)
    for x, name, color in ((60, "query", QUERY), (186, "key", KEY), (316, "value", VALUE), (522, "query", QUERY),
                           (616, "key", KEY), (694, "weight", INK), (780, "value", VALUE)):
        text(axes, x, 62 if "query" not in name else 112, name, 15, color, "bold")
    box(axes, 60, 142, 66, 36, QUERY, "area", 16)
    box(axes, 522, 142, 50, 36, QUERY, "$q$", 22)
    for j, (y, key, value, weight) in enumerate(
            zip(rows, ("agreement", "area", "signed"), ("accord", "zone", "signé"), weights, strict=True), 1):
        hit = weight > 0.5
        color, line = (INK, 2.6) if hit else (RULE, 1.4)
        arrow(axes, (94, 142), (130, y), QUERY if hit else RULE, line, dashed=not hit)
        box(axes, 186, y, 108, 36, KEY, key, 16, line=line)
        arrow(axes, (241, y), (277, y), color, line, dashed=not hit)
        box(axes, 316, y, 76, 36, VALUE, value, 16, line=line, fill=tint(VALUE, 0.45 if hit else 0.06))
        arrow(axes, (548, 142), (590, y), QUERY, 1.8)
        box(axes, 616, y, 50, 36, KEY, f"$k_{j}$", 22)
        arrow(axes, (642, y), (664, y))
        box(axes, 694, y, 58, 28, fill=PAPER, label=f"{weight:.2f}"[1:], size=16, weight="bold")
        arrow(axes, (724, y), (752, y))
        box(axes, 780, y, 54, 36, VALUE, f"$v_{j}$", 22, line=line, fill=tint(VALUE, 0.45 if hit else 0.06))
        arrow(axes, (808, y), (833 if hit else 836, 142 + (y - 142) * 0.2), VALUE, 3 if hit else 1.4)
    arrow(axes, (355, 142), (391, 142), VALUE, 2.6)
    box(axes, 424, 142, 64, 36, VALUE, "zone", 16, line=2.6, fill=tint(VALUE, 0.45))
    disc(axes, 847, 142, "+", radius=13, size=19)
    arrow(axes, (861, 142), (881, 142), VALUE, 2.6)
    box(axes, 905, 142, 46, 36, VALUE, "$c$", 22, line=2.6, fill=tint(VALUE, 0.45))

    columns = (236, 412, 588)
    heads = ("query", QUERY), ("keys", KEY), ("values", VALUE), ("score", INK)
    for x, (name, color) in zip((*columns, 780), heads, strict=True):
        text(axes, x, 276, name, 17, color, "bold", "left")
    path(axes, (30, 295), (930, 295), color=RULE, line=1.2, head=False)
    path(axes, (30, 352), (930, 352), color=RULE, line=1.2, head=False)
    roles = (("Bahdanau's decoder", "this lesson", ("$W_q s_{t{-}1}$", "$W_k h_j$", "$h_j$"),
              ("decoder", "encoder", "encoder"), r"$v^{\top}\tanh(q + k)$"),
             ("Self-attention", "lesson 03: one sentence", ("$W_q x_i$", "$W_k x_j$", "$W_v x_j$"),
              ("this word", "each word", "each word"), r"$q \cdot k \,/\, \sqrt{d}$"))
    for y, (name, where, symbols, sources, score) in zip((324, 381), roles, strict=True):
        text(axes, 30, y - 11, name, 17, INK, "bold", "left")
        text(axes, 30, y + 12, where, 15, MUTED, align="left")
        text(axes, 780, y, score, 22, align="left")
        for x, symbol, source, color in zip(columns, symbols, sources, (QUERY, KEY, VALUE), strict=True):
            box(axes, x + 38, y, 76, 38, color, symbol, 22)
            text(axes, x + 84, y, source, 16, align="left")
    return axes


def location():
    axes = card(236)
    box(axes, 480, 118, 946, 220, fill=BAND, edge="none", corner=10)
    box(axes, 66, 82, 66, 48, QUERY, "$s_t$", 26)
    arrow(axes, (100, 82), (128, 82), QUERY, 2.4)
    box(axes, 186, 82, 112, 66, fill=PAPER, label="$W$", size=26)
    text(axes, 186, 140, "64 × 112", 17, MUTED)
    arrow(axes, (243, 82), (274, 82), line=2.4)
    words = ("the", "important", "student", "has", "sold", "the", "small", "hospitals", ".", "")
    places, x = [], 292
    for word in words:
        width = max(44, text_width(word, 16) + 12)
        places.append((x + width / 2, width))
        x += width + 7
    for j, ((x, width), word) in enumerate(zip(places, words, strict=True), 1):
        heavy = {6: 0.55, 7: 0.9, 8: 0.65}.get(j, 0.06)
        box(axes, x, 82, 40, 44, QUERY, str(j) if word else "…64", 17 if word else 15, fill=tint(QUERY, 0.5 * heavy))
        if word:
            box(axes, x, 168, width, 34, MUTED, word, 16, dashed=True, fill="none", text_color=MUTED)
    text(axes, 292, 36, "a score for every position", 17, QUERY, "bold", "left")
    text(axes, 292, 210, "the words' keys are never compared", 17, MUTED, "bold", "left")
    return axes


def query():
    axes = card(270)
    for y, title, note, after in ((74, "Previous state asks", "attend, then update", False),
                                  (204, "Current state asks", "update, then attend", True)):
        box(axes, 480, y, 946, 122, fill=BAND, edge="none", corner=10)
        text(axes, 26, y - 12, title, 18, INK, "bold", "left")
        text(axes, 26, y + 14, note, 17, INK, align="left")
        states = ((300, "$s_{t{-}1}$"), (554, "$s_t$")) if after else ((300, "$s_{t{-}1}$"), (808, "$s_t$"))
        for x, name in states:
            asks = x == states[after][0]
            box(axes, x, y, 64, 44, QUERY, name, 24, line=3.4 if asks else 1.8, fill=tint(QUERY, 0.4) if asks else None)
        text(axes, states[after][0], y + 40, "asks", 17, QUERY, "bold")
        attend, update, context = (670, 428, 786) if after else (418, 674, 530)
        box(axes, attend, y, 92, 40, fill=PAPER, label="attend", size=17)
        box(axes, context, y, 52, 44, VALUE, "$c_t$", 24)
        box(axes, update, y, 92, 40, fill=PAPER, label="update", size=17)
        text(axes, update, y - 46, "last word", 16, INK)
        arrow(axes, (update, y - 36), (update, y - 21))
        ends = sorted([*((x, 32) for x, _ in states), (attend, 46), (update, 46), (context, 26), (904, 38)])
        for (x, half), (other, to) in zip(ends, ends[1:], strict=False):
            arrow(axes, (x + half, y), (other - to, y))
        text(axes, 904, y, "writes", 17, INK, "bold")
    return axes


def paths():
    axes = card(330)
    words, at, left, pitch, side = 35, 17, 44, 17.4, 13
    places = [left + pitch * j for j in range(words)]
    for y, title, note in ((30, "Without attention", "word 18 is some 18 states from either end"),
                           (190, "With attention", "every word is three steps from the loss")):
        box(axes, 480, y + 55, 946, 150, fill=BAND, edge="none", corner=10)
        text(axes, 30, y, title, 21, INK, "bold", "left")
        text(axes, 270, y, note, 20, BAD if y < 100 else GOOD, "bold", "left")
        for j, x in enumerate(places):
            box(axes, x, y + 64, side, 26, KEY, corner=3, line=1.2, fill=tint(KEY, 0.9 if j == at else 0.14))
    y = 94
    for end in (0, words - 1):
        arrow(axes, (places[at], y - 17), (places[at], y - 32), BAD, 2.6, head=False)
        path(axes, (places[at], y - 32), (places[end], y - 32), (places[end], y - 16), color=BAD, line=2.6)
    path(axes, (places[0], y + 15), (places[0], y + 38), (696, y + 38), (696, y + 20), color=KEY, line=2.2)
    arrow(axes, (places[-1] + 9, y), (672, y), KEY, 2.2)
    box(axes, 696, y, 44, 36, BAD, "$c$", 24)
    y = 254
    text(axes, places[at] + 16, y + 49, "word 18", 20, KEY, "bold", "left")
    arrow(axes, (places[at], y + 58), (places[at], y + 15), KEY, 3)
    for x, at_y, number in ((places[at] - 21, y + 36, 1), (524, y - 34, 2), (733, y - 29, 3)):
        disc(axes, x, at_y, str(number), VALUE, radius=13, size=17, fill=VALUE, text_color=PAPER, weight="bold")
    path(axes, (places[at], y - 15), (places[at], y - 34), (696, y - 34), (696, y - 20), color=VALUE, line=3)
    box(axes, 696, y, 44, 36, VALUE, "$c_t$", 24)
    for y, name in ((94, "decoder"), (254, "output layer")):
        arrow(axes, (719, y), (740, y), line=2.2)
        box(axes, 813, y, 142, 38, QUERY, name, 20)
        arrow(axes, (885, y), (900, y), line=2.2)
        text(axes, 927, y, "loss", 20, INK, "bold")
    return axes
