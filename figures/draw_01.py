"""The figures of lesson 01, the seq2seq bottleneck. Each function returns a card, ``ALT`` says what it shows."""

from math import log

from style import BAND, RULE, area, arrow, box, card, dashes, disc, path, step, text, tint

from course_utils.plotting import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY

SOURCE = ("the", "old", "house", "is", "red", ".", "<eos>")
TARGET = ("la", "vieille", "maison", "est", "rouge", ".", "<eos>")
NUMBERS = 128
"""Width of the one vector."""
SHADES = (0.75, 0.3, 0.5, 0.15, 0.6, 0.85, 0.2, 0.45)
"""How dark the cells of the one vector are drawn."""

CUT = (("les·",), ("nouv", "el", "les·"), ("m", "ai", "s", "on", "s·"), ("sont·",), ("r", "ou", "g", "es·"), (".·",))
"""A sentence in pieces: 150 merges learned from 300 sentences of the grammar."""

NEXT = {
    (): {"le": 0.5, "la": 0.4, "l'": 0.06},
    ("le",): {"vieux": 0.55, "vieil": 0.31},
    ("la",): {"vieille": 0.92, "maison": 0.04},
    ("le", "vieux"): {"bâtiment": 0.52, "logis": 0.2},
    ("la", "vieille"): {"maison": 0.87, "demeure": 0.05},
}
"""Probability of the next word after a beginning, for “the old house”. Words that are not named are less likely."""

ALT = {
    "01_encoder_decoder":
        "An encoder-decoder without attention translates “the old house is red .”. Left, a GRU reads the six tokens "
        f"and <eos> one by one. Its last state alone goes on, one vector of {NUMBERS} numbers in "
        "the middle. Right, a second GRU starts from this vector, is given it again at every step, and writes “la "
        "vieille maison est rouge .” and <eos>. Below the decoder stand its inputs in training, from the reference: "
        "<bos> la vieille maison est rouge full stop. This is teacher forcing. Dashed arrows show what replaces it "
        "at test time: the word written at one step goes into the next.",
    "01_cells":
        "Three recurrent cells as circuits: tanh RNN, LSTM and GRU. In each the old state enters left, the new one "
        "leaves right, and the word x comes from below. Tanh RNN: no straight path, the state goes through a tanh with "
        "weights at every step; h' = tanh(W_x x + W_h h). LSTM: the cell's line c runs straight through, only "
        "multiplied by the forget gate f and added to: c' = f c + i g, with the input gate i and the new value g, a "
        "tanh; the output gate o makes the state h' = o tanh(c'). GRU: the state's own line runs straight through, "
        "multiplied by the update gate z and added to: h' = (1 - z) n + z h. The new value n = tanh(W_x x + r W_h h) "
        "sees the old state through the reset gate r, after the matrix. All gates are boxes with a sigma.",
    "01_pieces":
        "One French sentence, “les nouvelles maisons sont rouges .”, cut in three ways. As words: 6 tokens from a "
        "large vocabulary, and an unknown word is possible: “rouges” has not been seen before and becomes <unk>. As "
        f"sub-word pieces: {sum(map(len, CUT))} tokens, no unknown word: “rouges” is r, ou, g, es·, and the dot "
        "marks the end of a word. As characters: 30 tokens from a small vocabulary, no unknown word.",
    "01_beam":
        "Beam search of width 2 over three words, as a tree, for “the old house”. First word: le −0.69 and la "
        "−0.92 stay, l' −2.81 is dropped. Second word: la vieille has −1.00 in sum and le vieux −1.29; le vieil "
        "−1.86 and la maison −4.14 are dropped. Third word: la vieille maison has −1.14, le vieux bâtiment −1.94. "
        "Greedy search takes le, the most probable first word, and ends with le vieux bâtiment, −1.94. The best of "
        "the beam, la vieille maison, −1.14, begins with the second best word.",
    "01_sampled":
        "Sampled softmax in four parts. 1, bucket: the next batches hold few different words, the candidates C: la, "
        "maison, est, rouge and so on. 2, rows: of the output matrix with |V| rows and d columns, 50,000 rows for "
        "example, only the rows of these candidates are taken, about 2,000; the others get no product and no "
        "gradient. 3, scores: these |C| rows times the decoder's state h of d numbers. 4, softmax over the "
        "candidates only: their probabilities sum to one, the target maison has 0.58, and the loss is minus its log.",
    "01_look_back":
        "Below, the encoder has a state for each of the seven source tokens, from “the” to <eos>. So far only the last "
        "one leaves, as one narrow vector, and the other six are discarded. Above, the decoder has written “la "
        "vieille” and asks for its third word. From its state dashed arrows lead through a large question mark back to "
        "all seven states: which of them should it read, and how much of each?",
}


def _vector(axes, x, y, size, width=30):
    """The one vector, ``size`` pixels a number, upright around ``(x, y)``."""
    for i, amount in enumerate(SHADES):
        box(axes, x, y + (i - 3.5) * size, width, size, BAD, fill=tint(BAD, amount), corner=2, line=1.2)
    box(axes, x, y, width + 9, 8 * size + 9, BAD, fill="none", line=3)


def encoder_decoder():
    axes = card(430)
    left, right = [36 + 54 * i for i in range(7)], [490 + 70 * i for i in range(7)]
    middle, high, low, bus, vector = 204, 82, 304, 166, 424
    text(axes, 198, 30, "Encoder: a GRU reads", 20, INK, "bold")
    text(axes, 700, 30, "Decoder: a GRU writes", 20, INK, "bold")
    text(axes, 176, 158, "a state after each token", 18, MUTED)
    for i, (word, x) in enumerate(zip(SOURCE, left, strict=True)):
        last = i == len(SOURCE) - 1
        text(axes, x, low, word, 19)
        arrow(axes, (x, low - 16), (x, middle + 19))
        box(axes, x, middle, 32, 36, KEY, line=3 if last else 1.8, fill=tint(KEY, 0.75) if last else None)
        arrow(axes, (x + 17, middle), (vector - 22 if last else left[i + 1] - 18, middle), KEY, 3 if last else 1.8)
    _vector(axes, vector, middle, 13)
    text(axes, vector - 14, 105, "one vector", 19, BAD, "bold")
    text(axes, vector - 14, 129, f"{NUMBERS} numbers", 17, BAD)
    path(axes, (vector + 21, bus), (right[-1] - 11, bus), color=BAD, line=1.6, head=False)
    arrow(axes, (vector + 22, middle), (right[0] - 18, middle), BAD, 3)
    for i, (word, told, x) in enumerate(zip(TARGET, ("<bos>", *TARGET[:-1]), right, strict=True)):
        text(axes, x, high, word, 19)
        text(axes, x, low, told, 19)
        arrow(axes, (x, low - 16), (x, middle + 19))
        arrow(axes, (x - 11, bus), (x - 11, middle - 19), BAD, 1.6)
        arrow(axes, (x, middle - 18), (x, high + 15))
        if i + 1 < len(TARGET):
            arrow(axes, (x + 17, middle), (right[i + 1] - 18, middle), QUERY)
            dashes(axes, (x, 130), (x + 30, 130), (x + 30, 254), (right[i + 1] - 1, 254), color=GOOD)
        box(axes, x, middle, 32, 36, QUERY)
    begin = 352
    arrow(axes, (begin, 350), (begin + 38, 350))
    dashes(axes, (begin, 378), (begin + 38, 378), color=GOOD)
    arrow(axes, (begin, 406), (begin + 38, 406), BAD)
    for y, words, color in ((350, "in training: the words of the reference (teacher forcing)", INK),
                            (378, "at test time: the word it has written itself", GOOD),
                            (406, "the vector: starts the decoder, and is given at every step", BAD)):
        text(axes, begin + 50, y, words, 18, color, align="left")
    return axes


def _layer(axes, x, y, function, name=""):
    """A layer with weights, a gate or a new value: dark."""
    box(axes, x, y, 58, 46, fill=INK, corner=6)
    text(axes, x, y - 10 if name else y, function, 18 if function == "σ" else 16, PAPER, "bold")
    if name:
        text(axes, x, y + 11, name, 15, PAPER)


def _prime(formula):
    """Mathtext sets a prime too far from its letter."""
    return formula.replace("'", r"\hspace{-0.06}'")


def _ends(axes, y, symbol, left, right):
    """A state before and after the step."""
    box(axes, left, y, 38, 34, INK, f"${symbol}$", 22, fill=PAPER)
    box(axes, right, y, 38, 34, INK, _prime(f"${symbol}'$"), 22, fill=PAPER, line=2.8)


def cells():
    axes = card(480)
    line, gate, h_line, x_line = 106, 236, 292, 336
    feed = {"color": MUTED, "line": 1.5}

    def panel(left, width, name, verdict, color, *formulas):
        box(axes, left + width / 2, 226, width, 432, fill=BAND, edge="none", corner=10)
        text(axes, left + 14, 32, name, 18, INK, "bold", "left")
        text(axes, left + 14, 58, verdict, 15, color, "bold", "left")
        box(axes, left + 28, x_line, 38, 34, INK, "$x$", 22, fill=PAPER)
        for y, formula in zip((386,) if len(formulas) == 1 else (382, 416), formulas, strict=True):
            text(axes, left + width / 2, y, _prime(formula), 21)
        return left + 28

    def reads(x, h=12):
        """A layer reads the old state and the word."""
        arrow(axes, (x + h, h_line), (x + h, gate + 24), **feed)
        arrow(axes, (x - h, x_line), (x - h, gate + 24), **feed)

    def carry(start, *stops):
        """The straight path, and what happens on it."""
        xs = [start, *(x for x, _ in stops)]
        for i, (here, there) in enumerate(zip(xs[:-1], xs[1:], strict=True)):
            last = i == len(stops) - 1
            arrow(axes, (here + (13 if i else 20), line), (there - (20 if last else 13), line), GOOD, 4, head=last)
        for x, symbol in stops[:-1]:
            disc(axes, x, line, symbol, GOOD, radius=13, size=19)

    h = panel(10, 206, "tanh RNN", "no straight path", BAD, r"$h' = \tanh(W_x x + W_h h)$")
    new, end = 113, 188
    path(axes, (h, line + 18), (h, h_line), (new + 12, h_line), (new + 12, gate + 24), **feed)
    path(axes, (h + 20, x_line), (new - 12, x_line), (new - 12, gate + 24), **feed)
    path(axes, (new, gate - 23), (new, line), (end - 20, line), color=INK, line=2.4)
    arrow(axes, (h + 20, line), (new - 8, line), BAD, 2, dashed=True, head=False)
    text(axes, 77, line, "✗", 22, BAD, "bold")
    _layer(axes, new, gate, "tanh")
    _ends(axes, line, "h", h, end)

    c = panel(225, 350, "LSTM", "straight path: the cell c", GOOD, r"$c' = f \odot c + i \odot g$",
              r"$h' = o \odot \tanh(c')$")
    forget, enter, new, out, end = (225 + x for x in (82, 146, 210, 274, 322))
    arrow(axes, (c + 20, h_line), (out + 12, h_line), head=False, **feed)
    arrow(axes, (c + 20, x_line), (out - 12, x_line), head=False, **feed)
    for x, function, name in ((forget, "σ", "forget"), (enter, "σ", "input"), (new, "tanh", "new"),
                              (out, "σ", "output")):
        reads(x)
        _layer(axes, x, gate, function, name)
    arrow(axes, (forget, gate - 23), (forget, line + 13))
    path(axes, (enter, gate - 23), (enter, 164), (new - 13, 164))
    arrow(axes, (new, gate - 23), (new, 178))
    arrow(axes, (new, 151), (new, line + 13))
    arrow(axes, (out, line), (out, 126), head=False)
    arrow(axes, (out, 152), (out, 166), line=1.5)
    arrow(axes, (out, gate - 23), (out, 193), line=1.5)
    path(axes, (out + 13, 179), (end, 179), (end, h_line - 18))
    carry(c, (forget, "×"), (new, "+"), (end, ""))
    box(axes, out, 139, 50, 26, fill=PAPER, label="tanh", size=15, corner=5)
    disc(axes, new, 164, "×", radius=13, size=19)
    disc(axes, out, 179, "×", radius=13, size=19)
    for x, y, letter in ((forget - 12, 176, "f"), (enter - 11, 188, "i"), (new + 13, 194, "g"), (out - 13, 199, "o")):
        text(axes, x, y, f"${letter}$", 20)
    _ends(axes, line, "c", c, end)
    _ends(axes, h_line, "h", c, end)

    h = panel(584, 366, "GRU", "straight path: the share z of h", GOOD, r"$h' = (1 - z) \odot n + z \odot h$",
              r"$n = \tanh(W_x x + r \odot W_h h)$")
    update, reset, matrix, product, new, end = (584 + x for x in (86, 152, 191, 229, 280, 336))
    path(axes, (h, line + 18), (h, h_line), (product, h_line), head=False, **feed)
    path(axes, (product, h_line), (new - 12, h_line), (new - 12, gate + 24), **feed)
    path(axes, (h + 20, x_line), (new + 12, x_line), (new + 12, gate + 24), **feed)
    for x, name in ((update, "update"), (reset, "reset")):
        reads(x)
        _layer(axes, x, gate, "σ", name)
    _layer(axes, new, gate, "tanh", "new")
    box(axes, matrix, h_line, 36, 30, fill=INK, label="$W_h$", size=20, text_color=PAPER, corner=5)
    path(axes, (reset, gate - 23), (reset, 197), (product, 197), (product, h_line - 13))
    disc(axes, product, h_line, "×", radius=13, size=19)
    arrow(axes, (update, gate - 23), (update, line + 13))
    arrow(axes, (update, 164), (update + 42, 164))
    arrow(axes, (update + 90, 164), (new - 13, 164))
    box(axes, update + 66, 164, 48, 26, fill=PAPER, label="1 − z", size=15, corner=5)
    arrow(axes, (new, gate - 23), (new, 178))
    arrow(axes, (new, 151), (new, line + 13))
    disc(axes, new, 164, "×", radius=13, size=19)
    carry(h, (update, "×"), (new, "+"), (end, ""))
    for x, y, letter in ((update - 12, 188, "z"), (product + 12, 218, "r"), (new + 13, 196, "n")):
        text(axes, x, y, f"${letter}$", 20)
    _ends(axes, line, "h", h, end)
    box(axes, 30, 461, 16, 16, fill=INK, corner=3)
    text(axes, 46, 461, "with weights that are learned (biases left out)", 15, MUTED, align="left")
    text(axes, 940, 461, "σ is between 0 and 1;  × and + act on each number by itself", 15, MUTED, align="right")
    return axes


def pieces():
    axes = card(350)
    words = ["".join(cut).rstrip("·") for cut in CUT]
    letters = [(*word[:-1], word[-1] + "·") for word in words]
    assert all(word + "·" == "".join(cut) for word, cut in zip(words, CUT, strict=True))
    strange, gap, begin = 4, 10, 26
    pitch = (908 - gap * (len(words) - 1)) / sum(map(len, words))
    rows = (("words", [(word,) for word in words], 64, "unknown word possible", "large", BAD),
            ("sub-word pieces", CUT, 194, "unknown word: none", "medium", GOOD),
            ("characters", letters, 300, "unknown word: none", "small", GOOD))
    for name, cuts, y, verdict, size, color in rows:
        count = f"{sum(map(len, cuts))} tokens"
        tall = 122 if name == "words" else 98
        box(axes, 480, y - 56 + tall / 2, 940, tall, fill=BAND, edge="none", corner=10)
        text(axes, begin, y - 36, name, 18, INK, "bold", "left")
        text(axes, 250, y - 36, count, 18, INK, "bold", "left")
        text(axes, 390, y - 36, f"{size} vocabulary", 16, MUTED, align="left")
        text(axes, 934, y - 36, ("✗  " if color == BAD else "✓  ") + verdict, 16, color, "bold", "right")
        x = begin
        for i, cut in enumerate(cuts):
            for piece in cut:
                width = pitch * len(piece.rstrip("·"))
                lost = i == strange and name == "words"
                box(axes, x + width / 2, y + 6, width - 4, 36, BAD if lost else GOOD if i == strange else INK,
                    corner=5, fill=PAPER, dashed=lost, line=2.2 if i == strange else 1.4)
                text(axes, x + width / 2, y + 6, piece, 16, BAD if lost else INK)
                x += width
            if i == strange and name == "words":
                text(axes, x - width / 2, y + 43, "never seen: <unk>", 15, BAD)
            x += gap
    text(axes, 574, rows[1][2] - 36, "·", 20, INK, "bold")
    text(axes, 584, rows[1][2] - 36, "ends a word", 16, MUTED, align="left")
    return axes


def _search(width):
    """Beam search over ``NEXT``: for each step all candidates, ``{beginning: sum of log-probabilities}``, and the kept.

    Greedy search is a beam of one.
    """
    beam, steps = {(): 0.0}, []
    for _ in range(3):
        found = {(*begun, word): total + log(p) for begun, total in beam.items() for word, p in NEXT[begun].items()}
        beam = {begun: found[begun] for begun in sorted(found, key=found.get, reverse=True)[:width]}
        steps.append((found, beam))
    return steps


def _shown(number):
    return f"{number:.2f}".replace("-", "−")


def beam():
    axes = card(420)
    steps, greedy = _search(2), next(iter(_search(1)[-1][1]))
    best = max(steps[-1][1], key=steps[-1][1].get)
    totals = {begun: total for found, _ in steps for begun, total in found.items()} | {(): 0.0}
    assert best != greedy
    assert totals[best] > totals[greedy]
    assert greedy in steps[-1][1]
    columns, rows = (58, 262, 484, 704), {
        (): 233, ("le",): 126, ("la",): 266, ("l'",): 340,
        ("le", "vieux"): 96, ("le", "vieil"): 166, ("la", "vieille"): 266, ("la", "maison"): 340,
        ("le", "vieux", "bâtiment"): 96, ("le", "vieux", "logis"): 166, ("la", "vieille", "maison"): 266,
        ("la", "vieille", "demeure"): 340}
    assert set(rows) == set(totals)
    for number, title in enumerate(("first word", "second word", "third word"), 1):
        box(axes, columns[number], 195, 166, 358, fill=BAND, edge="none", corner=10)
        step(axes, columns[number], 40, number, title)
    text(axes, 72, 30, "source:", 15, MUTED)
    text(axes, 72, 52, "the old house", 15, INK, "bold")
    for begun, y in rows.items():
        x, total = columns[len(begun)], totals[begun]
        if not begun:
            box(axes, x, y, 72, 40, fill=PAPER, label="<bos>", size=16)
            continue
        kept, before = begun in steps[len(begun) - 1][1], begun[:-1]
        on_best = begun == best[:len(begun)]
        color = GOOD if on_best else INK if kept else RULE
        shown = round(log(NEXT[before][begun[-1]]), 2)
        assert round(round(totals[before], 2) + shown, 2) == round(total, 2), f"{begun}: the rounded sum is not the sum"
        start = (columns[len(before)] + (36 if not before else 60), rows[before])
        if kept:
            arrow(axes, start, (x - 61, y), color, 3.4 if on_best else 2.2)
        else:
            dashes(axes, start, (x - 61, y), color=color, line=1.6)
        box(axes, x, y, 120, 48, color, fill=tint(GOOD, 0.2) if on_best else PAPER,
            line=3 if on_best else 2 if kept else 1.2, dashed=not kept)
        text(axes, x, y - 10, begun[-1], 16, INK if kept else MUTED, "bold" if kept else "normal")
        text(axes, x, y + 12, _shown(total), 15, INK if kept else MUTED)
        middle = ((start[0] + x - 61) / 2, (start[1] + y) / 2)
        box(axes, *middle, 48, 20, fill=PAPER, edge="none", corner=3)
        text(axes, *middle, _shown(shown), 15, INK if kept else MUTED)
    for end, title, place, color in ((best, "beam search", "only second best", GOOD),
                                     (greedy, "greedy search", "the best of all", INK)):
        assert (end[0] == greedy[0]) == (color == INK)
        text(axes, 802, rows[end] - 20, title, 16, color, "bold", "left")
        text(axes, 802, rows[end] + 3, "its first word was", 15, color, align="left")
        text(axes, 802, rows[end] + 23, place, 15, color, align="left")
    text(axes, 480, 398, "On an arrow: the word's log-probability. In a box: the sum from <bos>. Dashed: dropped, only "
         "two stay.", 15, MUTED)
    return axes


BATCHES = ("la maison est rouge .", "le chat voit la maison .", "le chat est rouge .")
VOCABULARY = {1: ".", 4: "la", 7: "le", 11: "est", 15: "maison", 19: "chat", 23: "rouge", 27: "voit"}
"""Rows of the output matrix that belong to the words of ``BATCHES``."""
SCORES = (0.6, 1.1, 0.2, 0.9, 3.1, 1.7, 0.4, -0.3)


def sampled():
    axes = card(420)
    assert set(VOCABULARY.values()) == set(" ".join(BATCHES).split())
    columns = ((14, 236), (244, 478), (486, 710), (718, 946))
    for number, ((left, right), title) in enumerate(
            zip(columns, ("candidates C", "their rows", "scores", "softmax"), strict=True), 1):
        box(axes, (left + right) / 2, 180, right - left, 336, fill=BAND, edge="none", corner=10)
        step(axes, (left + right) / 2, 36, number, title)
    text(axes, 125, 78, "the next batches", 16, MUTED)
    for i, sentence in enumerate(BATCHES):
        box(axes, 125, 112 + 40 * i, 200, 32, INK, sentence, 15, fill=PAPER, line=1.4)
    arrow(axes, (125, 212), (125, 244))
    text(axes, 125, 264, f"{len(VOCABULARY)} different words", 17, INK, "bold")
    text(axes, 125, 300, "in real training", 15, MUTED)
    text(axes, 125, 321, "2,000 of 50,000, say", 15, MUTED)

    height, top, left, width = 7.6, 82, 330, 80
    n_rows, pitch = 30, 23
    gathered = 186 - pitch * len(VOCABULARY) / 2
    text(axes, left + width / 2, 68, "$d$", 21)
    text(axes, 560, gathered - 16, "$d$", 21)
    exponents = [2.718281828 ** score for score in SCORES]
    for row in range(n_rows):
        y = top + height * (row + 0.5)
        chosen = row in VOCABULARY
        area(axes, (left, y - 3.2), (left + width, y - 3.2), (left + width, y + 3.2), (left, y + 3.2),
             fill=INK if chosen else tint(INK, 0.16))
    for i, (row, word) in enumerate(VOCABULARY.items()):
        y, there, target = top + height * (row + 0.5), gathered + pitch * (i + 0.5), word == "maison"
        text(axes, left - 10, y, word, 15, align="right")
        path(axes, (left + width, y), (left + width + 28, y), (506, there), (518, there), color=MUTED, line=1.4,
             head=False)
        box(axes, 560, there, 84, 18, fill=INK, corner=3)
        share = exponents[i] / sum(exponents)
        text(axes, 806, there, word, 15, GOOD if target else INK, "bold" if target else "normal", "right")
        area(axes, (816, there - 8), (816 + 110 * share, there - 8), (816 + 110 * share, there + 8), (816, there + 8),
             fill=GOOD if target else MUTED)
        if target:
            text(axes, 822 + 110 * share, there, f"{share:.2f}", 15, GOOD, "bold", "left")
    text(axes, 361, 328, r"$W:\ |V| \times d$", 21)
    text(axes, 560, 328, r"$W_C:\ |C| \times d$", 21)
    text(axes, 618, 186, "·", 24, INK, "bold")
    for i, amount in enumerate((0.5, 0.2, 0.7, 0.35, 0.6)):
        box(axes, 650, 186 + (i - 2) * 16.8, 26, 16.8, QUERY, fill=tint(QUERY, amount), corner=2, line=1.2)
    text(axes, 650, 124, "$h$", 22, QUERY)
    arrow(axes, (672, 186), (732, 186))
    text(axes, 832, 302, "they add up to 1", 16)
    text(axes, 832, 328, "target: maison", 16, GOOD, "bold")
    text(axes, 30, 380, "pale rows of W: no product, no gradient", 16, MUTED, align="left")
    text(axes, 730, 380, r"$L = -\log\, [\exp(w_y \cdot h) \,/\, \sum_{j \in C} \exp(w_j \cdot h)]$", 22)
    return axes


def look_back():
    axes = card(420)
    source, written = [64 + 92 * i for i in range(7)], [290, 376, 462]
    low, high, asked = 306, 92, (462, 176)
    for i, (word, x) in enumerate(zip(SOURCE, source, strict=True)):
        last = i == len(SOURCE) - 1
        dashes(axes, asked, (x + (asked[0] - x) * 0.04, low - 22), color=QUERY, line=2)
        box(axes, x, low, 40, 36, KEY, f"$h_{i + 1}$", 21, line=3 if last else 1.8,
            fill=tint(KEY, 0.6) if last else None)
        text(axes, x, low + 36, word, 16)
        if not last:
            arrow(axes, (x + 21, low), (source[i + 1] - 22, low), KEY)
    for i, x in enumerate(written):
        now = i == len(written) - 1
        box(axes, x, high, 44, 38, QUERY, f"$s_{i + 1}$", 21, line=3 if now else 1.8,
            fill=tint(QUERY, 0.45) if now else None)
        arrow(axes, (x, high - 20), (x, high - 40))
        text(axes, x, high - 54, "?" if now else TARGET[i], 22 if now else 16, QUERY if now else INK,
             "bold" if now else "normal")
        if not now:
            arrow(axes, (x + 23, high), (written[i + 1] - 24, high), QUERY)
    arrow(axes, (asked[0], high + 20), (asked[0], asked[1] - 34), QUERY, 2.4, head=False)
    disc(axes, *asked, "?", QUERY, radius=33, size=42, fill=PAPER, weight="bold")
    text(axes, 508, 160, "Which of the seven?", 17, QUERY, "bold", "left")
    text(axes, 508, 183, "And how much of each?", 17, QUERY, "bold", "left")
    vector = 800
    _vector(axes, vector, 222, 11)
    path(axes, (source[-1] + 21, low), (vector, low), (vector, 274), color=BAD, line=2.6)
    path(axes, (vector, 172), (vector, high), (486, high), color=BAD, line=2.6)
    text(axes, 830, 210, "so far:", 17, BAD, "bold", "left")
    text(axes, 830, 233, "one vector", 17, BAD, "bold", "left")
    text(axes, 644, high - 18, "all it gets of the source", 16, BAD)
    path(axes, (source[0] - 20, 366), (source[0] - 20, 374), (source[5] + 20, 374), (source[5] + 20, 366), color=MUTED,
         head=False)
    text(axes, (source[0] + source[5]) / 2, 396, "six states: computed, then discarded", 16, MUTED)
    return axes
