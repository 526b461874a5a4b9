"""The figures of lesson 05, BERT. Each function returns a card, ``ALT`` says what it shows."""

import numpy as np
from style import BAND, RULE, area, arrow, box, card, checks, disc, grid, path, step, text, text_width, tint

from course_utils.plotting import BAD, GOOD, INK, KEY, LINES, MUTED, PAPER, QUERY

PHRASE = ("the", "bank", "of", "the", "river")
WORD = 1
"""“bank”: the word whose vector is drawn."""
FIRST, SECOND = ("the", "film", "is", "slow"), ("it", "is", "over", "##long")
PIECES = ("[CLS]", *FIRST, "[SEP]", *SECOND, "[SEP]")
IDS = (101, 1996, 2143, 2003, 4030, 102, 2009, 2003, 2058, 10052, 102)
"""In the vocabulary of BERT's English model without capitals."""
LONG = (("the", "film", "begins", "in", "a", "small", "town", "by", "the", "sea", ","),
        ("and", "its", "first", "hour", "is", "slow", "but", "warm", "."))
CHOSEN = {"town": ("[MASK]", 80, 12), "hour": ("spoon", 10, 1.5), "slow": ("slow", 10, 1.5)}
"""What is read there, how often (per cent of the chosen pieces), and of all pieces. Devlin et al. 2019, section 3.1."""
CUT = ("un", "watch", "able")
"""How the vocabulary of BERT's English model without capitals cuts “unwatchable”."""

ALT = {
    "05_directions":
        "What the vector of “bank” in “the bank of the river” can see, in four models. Above, the network, with the "
        "paths to bank; below, a mask of five by five, one row per word whose vector is made, one column per word "
        "that it may see. word2vec, 2013: a table, one vector per word; only the diagonal is filled. ELMo, 2018: one "
        "LSTM reads from left to right, another from right to left, and neither reads the other; their two states for"
        " bank are concatenated, in each layer (one of each is drawn); the mask has two halves, arrows to the right "
        "in the lower triangle and arrows to the left in the upper one, both on the diagonal. GPT, 2018: a "
        "Transformer with a causal mask; bank sees “the” and itself, the lower triangle is filled. BERT, 2018: a "
        "Transformer with a full mask; bank sees all five words in every layer, all 25 cells are filled.",
    "05_transfer":
        "Pre-train once, then use the same trunk in two ways. Left, step 1, pre-train: much text without labels, “the "
        "[MASK] is slow”, goes through the trunk and a head for masked words, which must say “film”; both learn. The "
        "trunk's weights are copied to the right; the head for masked words stays behind. Above right, step 2, either "
        "features: the trunk is frozen, drawn dashed; only a small classifier on its vectors learns that “the film is "
        "slow” is negative. Vectors are computed once, training is quick. Below right, or fine-tuning: the copied "
        "trunk learns on, together with a new classifier, from the same few labelled sentences. Every step goes "
        "through the whole trunk, and each task needs a trunk of its own.",
    "05_input":
        "What goes into BERT, as three rows of vectors that are added. The eleven pieces are [CLS] the film is slow "
        "[SEP] it is over ##long [SEP]. For each piece three tables are read, one vector each: the token's vector, by "
        "its id, such as 1996 for “the”; the segment's, 0 for the first text with [CLS] and its [SEP], 1 for the "
        "second with its [SEP]; the position's, 0 to 10. “is” stands there twice: same token vector, other segment "
        "and other position, so another sum. The sum goes through a LayerNorm into the layers, which give one vector "
        "a piece, shape (B, T, d_model).",
    "05_masking":
        "Masked language modelling, in three steps. 1, choose 15 % of the pieces: 3 of the 20 in “the film begins in "
        "a small town by the sea, and its first hour is slow but warm.”, namely town, hour and slow. 2, change what "
        "BERT reads there: in 80 % of the cases [MASK], here for town; in 10 % a random word, here spoon for hour; in "
        "10 % the word is left as it is, here slow. 3, the targets are the three words as they were, town, hour and "
        "slow; the other 17 pieces have none. Why not always [MASK]: it never comes at fine-tuning, so a word that "
        "BERT reads must have a good vector, too.",
    "05_tasks":
        "Four task shapes on one trunk: only the head changes. Sentence pair: [CLS] it is slow [SEP] it feels slow "
        "[SEP]; the vector of [CLS] goes into a head that gives one class, same meaning. Single sentence: [CLS] the "
        "film is slow [SEP]; again [CLS] gives one class, negative. Question and passage: [CLS] who sang ? [SEP] ann "
        "lee sang [SEP]; each piece of the passage gets a score as start and one as end, start is best at ann, end at "
        "lee, so the answer is “ann lee”. Tags: [CLS] ann lee lives in rome [SEP]; each piece gets a class of its "
        "own, person, person, none, none, place.",
    "05_pieces":
        "How WordPiece cuts “unwatchable”: the longest known piece first, three times. Step 1: the whole word is not "
        "in the vocabulary, nor is it without its last letter, and so on; the tenth try, “un”, is. Step 2: the rest "
        "is “watchable”; inside a word a piece begins with ##, and the fifth try, ##watch, is known. Step 3: the rest "
        "is “able”, and ##able is known at once. Result: un ##watch ##able, ids 4895, 18866 and 3085. If at some step "
        "no piece fits, not even one letter, the whole word becomes [UNK].",
    "05_languages":
        "Two languages in one BERT. Above, English: CLS the queen is new SEP. Below, the same sentence in fake "
        "English, its letters shifted into Greek: CLS τθε ρυεεξ ισ ξεχ SEP. Each word has a vector of its own in "
        "each language. Shared are the vectors of the positions 0 to 5, drawn between the two, and those of CLS "
        "and SEP.",
}


def _table(axes, xs, low, high):
    """word2vec: a word's vector is looked up."""
    middle = (low + high) / 2
    for i, x in enumerate(xs):
        color, line = (INK, 2.4) if i == WORD else (RULE, 1.4)
        arrow(axes, (x, low + 20), (x, middle + 17), color, line)
        arrow(axes, (x, middle - 16), (x, high + 11), color, line)
        _node(axes, x, high, i == WORD, on=False)
    box(axes, (xs[0] + xs[-1]) / 2, middle, 168, 32, fill=INK, label="table", text_color=PAPER)


def _node(axes, x, y, top=False, on=True, width=24, color=INK):
    """A vector."""
    if top:
        box(axes, x, y, 26, 20, QUERY, line=2.6, corner=4)
    else:
        box(axes, x, y, width, 18, color if on else RULE, line=1.8 if on else 1.2, fill=None if on else PAPER, corner=4)


def _two_lstms(axes, xs, low, high):
    """ELMo: a state from the left and one from the right, concatenated; one layer of each is drawn."""
    apart, right, left = 7, low - 32, (low + high) / 2 - 10
    for i, x in enumerate(xs):
        fore, back = i <= WORD, i >= WORD
        arrow(axes, (x + apart, low + 20), (x + apart, left + 10), INK if back else RULE, 1.8 if back else 1.2)
        arrow(axes, (x - apart, low + 20), (x - apart, right + 10), INK if fore else RULE, 1.8 if fore else 1.2)
        if i + 1 < len(xs):
            on = i < WORD
            arrow(axes, (x - apart + 7, right), (xs[i + 1] - apart - 7, right), INK if on else RULE, 2.4 if on else 1.2)
            on = i >= WORD
            arrow(axes, (xs[i + 1] + apart - 7, left), (x + apart + 7, left), INK if on else RULE, 2.4 if on else 1.2)
        _node(axes, x - apart, right, on=fore, width=14)
        _node(axes, x + apart, left, on=back, width=14)
    x = xs[WORD]
    arrow(axes, (x - apart, right - 10), (x - apart, high + 11), INK, 2.4)
    arrow(axes, (x + apart, left - 10), (x + apart, high + 11), INK, 2.4)
    _node(axes, x, high, top=True)
    text(axes, x + 22, high, "in each layer", 14, INK, align="left")
    text(axes, xs[0] - 22, right, "→", 18, INK, "bold", "right")
    text(axes, xs[0] - 22, left, "←", 18, INK, "bold", "right")


def _attends(axes, xs, low, high, mask):
    """GPT and BERT: two layers, each reads what the mask allows; lines for one word, areas for those that it reads."""
    levels = (low + 9, (low + 9 + high) / 2, high)
    reads = mask[WORD]
    for i in np.flatnonzero(reads):
        seen = np.flatnonzero(mask[i])
        area(axes, (xs[i] - 12, levels[1] + 9), (xs[i] + 12, levels[1] + 9), (xs[seen[-1]] + 12, levels[0] - 9),
             (xs[seen[0]] - 12, levels[0] - 9), fill=tint(INK, 0.2))
    for level in (0, 1):
        for j in np.flatnonzero(reads):
            path(axes, (xs[j], levels[level] - 9), (xs[WORD], levels[level + 1] + 9), color=INK, line=2.2, head=False)
    for i, x in enumerate(xs):
        _node(axes, x, levels[0], on=reads[i], color=KEY)
        _node(axes, x, levels[1], on=reads[i])
        _node(axes, x, levels[2], top=i == WORD, on=False)


def _halves(axes, left, top, cell):
    """ELMo's mask: what the LSTM from the left sees, and the one from the right."""
    for i in range(len(PHRASE)):
        for j in range(len(PHRASE)):
            x, y = left + (j + 0.5) * cell, top + (i + 0.5) * cell
            fore = j <= i
            box(axes, x, y, cell - 3, cell - 3, fill=tint(GOOD, 0.75 if fore else 0.2), edge=GOOD, corner=3, line=1.2)
            text(axes, x, y, "↔" if i == j else "→" if fore else "←", 18, PAPER if fore else INK, "bold")


def directions():
    axes = card(480)
    length, cell, top, low, high = len(PHRASE), 34, 240, 190, 88
    causal = np.tri(length, dtype=bool)
    panels = (("word2vec", 2013, "a table, one vector a word", np.eye(length, dtype=bool), "only the word itself"),
              ("ELMo", 2018, "two LSTMs, → and ←", None, "two halves, side by side"),
              ("GPT", 2018, "Transformer, causal mask", causal, "itself and the left"),
              ("BERT", 2018, "Transformer, full mask", np.ones_like(causal), "both sides, every layer"))
    for number, (name, year, network, mask, sees) in enumerate(panels):
        left = 10 + 236 * number
        begin = left + 54
        xs = [begin + (j + 0.5) * cell for j in range(length)]
        box(axes, left + 116, 226, 232, 432, fill=BAND, edge="none", corner=10)
        text(axes, left + 14, 30, name, 18, INK, "bold", "left")
        text(axes, left + 218, 30, str(year), 15, MUTED, align="right")
        text(axes, left + 14, 56, network, 15, align="left")
        if name == "word2vec":
            _table(axes, xs, low, high)
        elif name == "ELMo":
            _two_lstms(axes, xs, low, high)
        else:
            _attends(axes, xs, low, high, mask)
        for x, word in zip(xs, PHRASE, strict=True):
            text(axes, x, top - 14, word, 15, KEY)
        for i, word in enumerate(PHRASE):
            text(axes, begin - 7, top + (i + 0.5) * cell, word, 15, QUERY, "bold" if i == WORD else "normal", "right")
        if mask is None:
            _halves(axes, begin, top, cell)
        else:
            checks(axes, begin, top, mask, cell)
        box(axes, begin + 2.5 * cell, top + (WORD + 0.5) * cell, 5 * cell + 2, cell + 2, QUERY, fill="none", corner=4,
            line=2.6)
        text(axes, left + 116, 426, sees, 15, GOOD, "bold")
    for x, words, color in ((22, "row: the word whose vector is made", QUERY),
                            (398, "column: a word that it may see", KEY), (716, "filled: may see", GOOD)):
        text(axes, x, 460, words, 15, color, "bold", "left")
    return axes


def _learns(axes, x, y, width, height, label):
    box(axes, x, y, width, height, fill=INK, label=label, text_color=PAPER)


def transfer():
    axes = card(480)
    box(axes, 163, 240, 306, 460, fill=BAND, edge="none", corner=10)
    step(axes, 163, 36, 1, "pre-train, once")
    middle, trunk = 163, 248
    text(axes, middle, 86, "film", 18, INK, "bold")
    arrow(axes, (middle, 132), (middle, 101), line=2.2)
    _learns(axes, middle, 152, 240, 38, "head: masked words")
    arrow(axes, (middle, 206), (middle, 173), line=2.2)
    _learns(axes, middle, trunk, 240, 82, "")
    text(axes, middle, trunk - 14, "trunk", 20, PAPER, "bold")
    text(axes, middle, trunk + 14, "learns", 17, PAPER)
    arrow(axes, (middle, 330), (middle, 292), line=2.2)
    text(axes, middle, 346, "the [MASK] is slow", 17)
    text(axes, middle, 390, "much text, no labels", 17, INK, "bold")
    text(axes, middle, 414, "the text is its own answer;", 17)
    text(axes, middle, 436, "this head is not copied", 17)

    box(axes, 651, 122, 598, 224, fill=BAND, edge="none", corner=10)
    box(axes, 651, 358, 598, 224, fill=BAND, edge="none", corner=10)
    at, side = 506, 646
    for top, name, frozen, points in (
            (10, "features", True, ("few labelled sentences", "vectors computed once: quick",
                                    "one trunk serves many tasks")),
            (246, "fine-tuning", False, ("the same few sentences", "every step runs the whole trunk",
                                         "a trunk of its own for each task"))):
        text(axes, at, top + 22, "negative", 18, INK, "bold")
        arrow(axes, (at, top + 58), (at, top + 36), line=2.2)
        _learns(axes, at, top + 76, 224, 34, "new classifier: learns")
        arrow(axes, (at, top + 112), (at, top + 95), line=2.2)
        if frozen:
            box(axes, at, top + 142, 224, 58, fill=PAPER, dashed=True, line=2.2)
        else:
            _learns(axes, at, top + 142, 224, 58, "")
        text(axes, at, top + 132, "trunk", 18, INK if frozen else PAPER, "bold")
        text(axes, at, top + 154, "❄ frozen" if frozen else "learns on", 17, INK if frozen else PAPER)
        arrow(axes, (at, top + 194), (at, top + 173), line=2.2)
        text(axes, at, top + 206, "the film is slow", 17)
        title = f"either: {name}" if frozen else f"or: {name}"
        step(axes, side + (text_width(title, 17, "bold") + 32) / 2, top + 28, 2, title)
        text(axes, side, top + 76, "learns:", 17, INK, "bold", "left")
        text(axes, side, top + 98, "the classifier" if frozen else "trunk and classifier", 17, GOOD, "bold", "left")
        for row, words in enumerate(points):
            text(axes, side, top + 136 + 24 * row, words, 17, align="left")
        y = top + 142
        path(axes, (284, trunk), (336, trunk), (336, y), (at - 114, y), color=INK, line=3)
        text(axes, 362, y + 24, "copy", 17, INK, "bold")
    return axes


def input():
    axes = card(480)
    pitch, begin, features, small = 73, 142, 6, 9
    xs = [begin + (t + 0.5) * pitch for t in range(len(PIECES))]
    segments = [0] * (len(FIRST) + 2) + [1] * (len(SECOND) + 1)
    middle, left, right = (xs[0] + xs[-1]) / 2, xs[0] - 34, xs[-1] + 34

    def vector(table, row):
        return np.random.default_rng((table, row)).normal(size=features)

    def strip(x, y, values, color):
        shades = np.clip(0.5 + values / 4, 0, 1)
        grid(axes, x - features * small / 2, y - 7, [shades], color, (small, 14), frame=1.4)

    for t, (x, piece) in enumerate(zip(xs, PIECES, strict=True)):
        box(axes, x, 450, 68, 32, label=piece, size=15, fill=PAPER, line=1.4,
            weight="bold" if piece == "is" else "normal")
        arrow(axes, (x, 433), (x, 416), RULE, 1.4)
        total = np.zeros(features)
        for table, (y, row, color) in enumerate(((388, IDS[t], INK), (320, segments[t], GOOD),
                                                 (252, t, MUTED))):
            box(axes, x, y, 66, 52, color, fill=tint(GOOD, 0.16) if table == 1 and segments[t] else PAPER, line=1.4)
            text(axes, x, y - 12, str(row), 16, INK, "bold")
            strip(x, y + 11, vector(table, row), color)
            total += vector(table, row)
            if table:
                text(axes, x, y + 34, "+", 17, INK, "bold")
        arrow(axes, (x, 225), (x, 202), RULE, 1.4)
        strip(x, 190, total / 3 ** 0.5, INK)
        arrow(axes, (x, 181), (x, 160), RULE, 1.4)
        arrow(axes, (x, 123), (x, 104), RULE, 1.4)
        arrow(axes, (x, 67), (x, 44), RULE, 1.4)
        box(axes, x, 32, 40, 20, INK, line=1.6, corner=4)
    for y, name, size in ((388, "token", "30,522 rows"), (320, "segment", "2 rows"), (252, "position", "512 rows")):
        text(axes, 130, y - 11, name, 16, INK, "bold", "right")
        text(axes, 130, y + 12, size, 15, MUTED, align="right")
    text(axes, 130, 450, "pieces", 16, INK, "bold", "right")
    text(axes, 130, 190, "sum", 16, INK, "bold", "right")
    text(axes, 130, 22, "(B, T,", 15, MUTED, align="right")
    text(axes, 130, 43, "d_model)", 15, MUTED, align="right")
    box(axes, middle, 142, right - left, 34, fill=PAPER, label="LayerNorm")
    _learns(axes, middle, 86, right - left, 34, "N layers: self-attention over all pieces, feed-forward")
    return axes


def masking():
    axes = card(480)
    lefts = (18, 326, 634)
    notes = (("[MASK]", "guess it from both sides"), ("a random word", "a word may be wrong: check it"),
             ("left as it is", "a word may be right: use it"))
    for number, (top, bottom, title) in enumerate((
            (8, 136, "choose 15 % of the pieces: here 3 of 20"),
            (144, 364, "change what BERT reads there, drawn by lot"),
            (372, 472, "predict the words as they were; the other 17 pieces have no target")), 1):
        box(axes, 480, (top + bottom) / 2, 940, bottom - top, fill=BAND, edge="none", corner=10)
        step(axes, 26 + (text_width(title, 17, "bold") + 32) / 2, top + 21, number, title)
    text(axes, 934, 29, "dark: chosen", 17, MUTED, align="right")
    for row, words in enumerate(LONG):
        x, y = 26, 68 + 42 * row
        for word in words:
            width, chosen = text_width(word, 17) + 28, word in CHOSEN
            box(axes, x + width / 2, y, width, 32, INK, word, 17, fill=INK if chosen else PAPER, line=1.4,
                text_color=PAPER if chosen else INK)
            x += width + 8
    for left, (was, (read, share, of_all)), (rule, why) in zip(lefts, CHOSEN.items(), notes, strict=True):
        box(axes, left + 154, 268, 292, 172, fill=PAPER, edge=RULE, line=1.2, corner=8)
        text(axes, left + 24, 206, f"{share} %", 20, INK, "bold", "left")
        text(axes, left + 94, 206, rule, 17, INK, "bold", "left")
        _learns(axes, left + 70, 250, 92, 34, was)
        arrow(axes, (left + 117, 250), (left + 170, 250), line=2.2)
        box(axes, left + 223, 250, 104, 34, BAD if read != was else INK, read, 17, line=2.4, fill=PAPER)
        text(axes, left + 70, 282, "text", 17, MUTED)
        text(axes, left + 223, 282, "BERT reads", 17, MUTED)
        text(axes, left + 24, 312, why, 17, align="left")
        text(axes, left + 24, 336, f"{of_all} % of all pieces", 17, MUTED, align="left")
        text(axes, left + 24, 422, f"target: {was}", 17, GOOD, "bold", "left")
    why = "Why not always [MASK]? It never comes at fine-tuning: words that are read need good vectors."
    text(axes, 26, 450, why, 17, align="left")
    return axes


TASKS = (
    ("sentence pair", "one class", ("[CLS]", "it", "is", "slow", "[SEP]", "it", "feels", "slow", "[SEP]"), 50),
    ("single sentence", "one class", ("[CLS]", *FIRST, "[SEP]"), 60),
    ("question + passage", "start and end", ("[CLS]", "who", "sang", "?", "[SEP]", "ann", "lee", "sang", "[SEP]"), 50),
    ("tags", "a class for each word", ("[CLS]", "ann", "lee", "lives", "in", "rome", "[SEP]"), 66),
)


def tasks():
    axes = card(480)
    for number, (name, shape, pieces, pitch) in enumerate(TASKS):
        left, top = 10 + 475 * (number % 2), 8 + 234 * (number // 2)
        middle = left + 232.5
        xs = [middle + (t - (len(pieces) - 1) / 2) * pitch for t in range(len(pieces))]
        box(axes, middle, top + 115, 465, 230, fill=BAND, edge="none", corner=10)
        text(axes, left + 14, top + 20, name, 17, INK, "bold", "left")
        text(axes, left + 451, top + 20, shape, 15, MUTED, align="right")
        _learns(axes, middle, top + 173, 437, 32, "its own trunk")
        used = {0: (0,), 1: (0,), 2: (5, 6, 7), 3: range(1, 6)}[number]
        for t, (x, piece) in enumerate(zip(xs, pieces, strict=True)):
            text(axes, x, top + 213, piece, 15, INK, "bold" if t in used else "normal")
            arrow(axes, (x, top + 203), (x, top + 190), RULE, 1.4)
            path(axes, (x, top + 157), (x, top + 149), color=RULE, line=1.4, head=False)
            on = t in used
            box(axes, x, top + 140, 28, 18, GOOD if on else RULE, line=2.6 if on else 1.2, corner=4,
                fill=tint(GOOD, 0.4) if on else PAPER)
        if number < 2:
            x, begin = xs[0], xs[0] - 18
            arrow(axes, (x, top + 130), (x, top + 113), GOOD, 2.2)
            _learns(axes, begin + 65, top + 96, 130, 32, "head")
            arrow(axes, (x, top + 79), (x, top + 62), GOOD, 2.2)
            text(axes, begin, top + 51, ("same meaning", "negative")[number], 17, GOOD, "bold", "left")
            text(axes, begin + 148, top + 96, "the other vectors are not used", 15, MUTED, align="left")
        elif number == 2:
            ends = (xs[5] - 22, xs[7] + 22)
            for t in used:
                arrow(axes, (xs[t], top + 130), (xs[t], top + 113), GOOD, 2.2)
            _learns(axes, sum(ends) / 2, top + 98, ends[1] - ends[0], 28, "head")
            for y, role, best in ((67, "start", 5), (43, "end", 6)):
                text(axes, xs[5] - 30, top + y, role, 15, INK, "bold", "right")
                for t in used:
                    on = t == best
                    box(axes, xs[t], top + y, 40, 20, GOOD if on else RULE, "✓" if on else "", 15, line=1.4, corner=3,
                        fill=tint(GOOD, 0.75) if on else PAPER, text_color=PAPER)
            text(axes, left + 14, top + 55, "answer: ann lee", 17, GOOD, "bold", "left")
        else:
            ends = (xs[1] - 28, xs[5] + 28)
            for t, label in zip(used, ("person", "person", "none", "none", "place"), strict=True):
                arrow(axes, (xs[t], top + 130), (xs[t], top + 113), GOOD, 2.2)
                arrow(axes, (xs[t], top + 79), (xs[t], top + 62), GOOD, 2.2)
                text(axes, xs[t], top + 51, label, 15, GOOD if label != "none" else MUTED, "bold")
            _learns(axes, sum(ends) / 2, top + 96, ends[1] - ends[0], 32, "head, the same for each piece")
    return axes


def pieces():
    axes = card(450)
    pitch, high, top, rest = 19, 27, 80, "".join(CUT)
    lefts, wide = (10, 352, 670), (332, 308, 280)
    for number, (piece, left, width) in enumerate(zip(CUT, lefts, wide, strict=True), 1):
        mark = "##" if number > 1 else ""
        box(axes, left + width / 2, 183, width, 346, fill=BAND, edge="none", corner=10)
        title = ("the whole word", f"the rest: {rest}", f"the rest: {rest}")[number - 1]
        step(axes, left + 16 + (text_width(title, 17, "bold") + 32) / 2, 36, number, title)
        begin = left + 46
        for row, length in enumerate(range(len(rest), len(piece) - 1, -1)):
            found, y = length == len(piece), top + row * high
            letters = mark + rest[:length]
            end = begin + len(letters) * pitch
            box(axes, (begin + end) / 2, y, end - begin + 6, 24, GOOD if found else RULE, fill=PAPER, corner=5,
                line=2.6 if found else 1.2)
            for i, letter in enumerate(letters):
                text(axes, begin + (i + 0.5) * pitch, y, letter, 15, GOOD if letter == "#" else INK,
                     "bold" if found else "normal")
            text(axes, left + 26, y, "✓" if found else "✗", 17, GOOD if found else BAD, "bold")
            if found and number == 1:
                text(axes, end + 12, y, "in the vocabulary", 15, GOOD, "bold", "left")
            elif found:
                text(axes, begin, y + 28, "in the vocabulary", 15, GOOD, "bold", "left")
        rest = rest[len(piece):]
    for row, words in enumerate(("longest first; a try that is", "not in the vocabulary loses", "its last letter")):
        text(axes, 352 + 26, 262 + 24 * row, words, 15, align="left")
    for row, words in enumerate(("##: goes on inside a word", "no letter is left: done")):
        text(axes, 670 + 26, 262 + 24 * row, words, 15, align="left")
    text(axes, 26, 388, "unwatchable  →", 18, INK, "bold", "left")
    x = 200
    for piece, number in zip(("un", "##watch", "##able"), (4895, 18866, 3085), strict=True):
        width = text_width(piece, 18, "bold") + 30
        box(axes, x + width / 2, 388, width, 36, GOOD, piece, 18, fill=PAPER, line=2.4, weight="bold")
        text(axes, x + width / 2, 422, f"id {number}", 15, MUTED)
        x += width + 12
    text(axes, 640, 388, "no piece fits at some step:", 15, align="left")
    text(axes, 640, 412, "the whole word is [UNK]", 15, BAD, "bold", "left")
    return axes


def languages():
    axes = card(300)
    for y, name, vectors in ((60, "English", "own vectors"), (150, "position", "shared vectors"),
                             (240, "fake English", "own vectors")):
        text(axes, 24, y - 11, name, 17, INK, "bold", "left")
        text(axes, 24, y + 13, vectors, 15, GOOD if name == "position" else MUTED, align="left")
    for t, word in enumerate(("[CLS]", "the", "queen", "is", "new", "[SEP]")):
        x, shared = 240 + 130 * t, word[0] == "["
        greek = word if shared else "".join(chr(ord(letter) + 848) for letter in word)
        for y, near, label, color in ((60, 130, word, INK), (240, 170, greek, LINES[3])):
            path(axes, (x, y), (x, near), color=RULE, line=1.6, head=False)
            box(axes, x, y, 112, 42, GOOD if shared else color, label, 19, fill=tint(GOOD if shared else color, 0.16))
        disc(axes, x, 150, str(t), GOOD, radius=20, fill=tint(GOOD, 0.16), text_color=INK)
    return axes
