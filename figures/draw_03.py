"""The figures of lesson 03, self-attention. Each function returns a card, ``ALT`` says what it shows."""

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from style import BAND, RULE, area, arrow, box, card, checks, disc, grid, path, step, text, text_width

from course_utils.plotting import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY, VALUE

WORDS = ("the", "cat", "was", "tired")
PADDED = ("the", "cat", "sat", "<pad>", "<pad>")
FAR = ("the", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired")
FROM, TO = 1, 7
"""“animal” and “it” in the long sentence."""
POSITIONS, COLUMNS = 48, 32
"""Size of the position encoding that is drawn."""
READ = 20
"""The position that is read off."""

ALT = {
    "03_qkv":
        "Self-attention, from one sentence to its output. Left, the words “the cat was tired” as a matrix x with a "
        "row per word, shape (T, d_model). Three learned matrices, W_q, W_k and W_v, turn the same x into queries, "
        "keys and values, each with a row per word: (T, d_k), (T, d_k), (T, d_v). Queries times keys give the "
        "scores, (T, T): row i says how well word i's query fits each word's key. A softmax over each row gives the"
        " weights, (T, T), whose rows sum to one. Weights times values give the output, (T, d_v), again a row per "
        "word.",
    "03_multi_head":
        "Multi-head attention with two heads, in five parts. 1, project: x, shape (B, T, d_model), times W_q, W_k and "
        "W_v gives queries, keys and values of the same shape. 2, split: their columns are cut into two groups, and a "
        "line of queries, one of keys and one of values lead to each head, (B, n_heads, T, d_k) with d_k = d_model / "
        "n_heads. 3, attend: each head, with its own part of queries, keys and values, makes its own weights, (T, T), "
        "and its own output, (T, d_k); all heads at the same time. 4, concatenate: the two outputs stand side by "
        "side, (B, T, d_model). 5, mix: W_o lets every output column read from all heads.",
    "03_masks":
        "Two masks for “the cat sat” and two padding tokens. Each is five by five, one row per query and one column "
        "per key; a filled cell with a check mark is True, the query may attend to the key. Padding: the first three "
        "columns, no query sees the padding. Causal: the lower triangle with the diagonal, a word sees itself and "
        "what stands before it.",
    "03_waves":
        f"The sinusoidal position encoding, {POSITIONS} positions and {COLUMNS} columns. Left, five of its columns as "
        "waves against position: column 0 is a sine that repeats about every six positions, column 1 the cosine of the "
        "same angle; columns 6, 12 and 20 are ever slower sines. Right, the whole matrix as a picture, one row per "
        "position, bright 1, dark -1: quick stripes in the left columns, almost no change in the right ones. Position "
        f"{READ} is marked in both: in the waves it is one vertical line, in the matrix one row, the vector that is "
        "added to the word at this position.",
    "03_paths":
        "How far it is from “animal” to “it”, in a recurrent network and in self-attention. The sentence is “the "
        "animal didn't cross the street because it was too tired”. Above, a recurrent network: from the state of "
        "“animal” the way leads through the states of five words between, six steps, each of which must wait for the "
        "one before. Below, self-attention: a line leads from every word to “it”, and the thick one comes straight "
        "from “animal”: one step, at any distance.",
}


def _shades(values):
    """Numbers of any size as shades from 0 to 1."""
    return (values - values.min()) / (values.max() - values.min())


def _softmax(scores):
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def _numbers(axes, left, top, values, cell, form):
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            text(axes, left + (j + 0.5) * cell[0], top + (i + 0.5) * cell[1], form(value), 15)


def qkv():
    axes = card(420)
    random = np.random.default_rng(130)  # of this one the printed weights, too, sum to 1 in each row
    x = random.normal(size=(4, 6))
    q, k, v = (x @ random.normal(size=(6, 3)) * 0.6 for _ in range(3))
    scores = q @ k.T
    weights = _softmax(scores)
    high, middle, low, tall, wide = 92, 212, 332, (16, 18), (40, 30)

    for at, title, color in ((126, "one sentence", INK), (247, "matrices", INK), (507, "scores", INK),
                             (709, "weights", INK), (890, "output", VALUE)):
        text(axes, at, 30, title, 17, color, "bold")
    for i, word in enumerate(WORDS):
        text(axes, 66, middle - 27 + 18 * i, word, 15, align="right")
    grid(axes, 78, middle - 36, _shades(x), INK, tall)
    text(axes, 126, middle - 56, "$x$", 22)
    text(axes, 126, middle + 52, "(T, d_model)", 15, MUTED)
    for y, matrix, values, name, shape, color in (
            (high, "$W_q$", q, "queries", "(T, d_k)", QUERY), (middle, "$W_k$", k, "keys", "(T, d_k)", KEY),
            (low, "$W_v$", v, "values", "(T, d_v)", VALUE)):
        if y == middle:
            arrow(axes, (178, y), (221, y))
        else:
            path(axes, (178, middle), (198, middle), (198, y), (221, y))
        box(axes, 247, y, 50, 38, fill=INK, label=matrix, size=21, text_color=PAPER)
        arrow(axes, (273, y), (306, y), color)
        grid(axes, 308, y - 36, _shades(values), color, tall)
        text(axes, 332, y - 49, name, 15, color, "bold")
        text(axes, 332, y + 48, shape, 15, MUTED)
    disc(axes, 396, 152, r"$\cdot$", radius=14, size=30)
    for y, color in ((high, QUERY), (middle, KEY)):
        path(axes, (358, y), (396, y), (396, 152 + (-15 if y == high else 15)), color=color)
    arrow(axes, (411, 152), (425, 152))
    grid(axes, 427, 91, 0.55 * _shades(scores), INK, wide)
    _numbers(axes, 427, 91, scores, wide, lambda value: f"{round(value, 1) + 0:.1f}".replace("-", "−"))
    text(axes, 507, 63, r"$q\, k^{\top}$", 22)
    text(axes, 507, 230, "(T, T)", 15, MUTED)
    text(axes, 507, 252, "row: a query, column: a key", 15, MUTED)
    arrow(axes, (589, 152), (627, 152))
    text(axes, 608, 70, "softmax", 15)
    text(axes, 709, 252, "a row sums to 1", 15, MUTED)
    grid(axes, 629, 91, 0.55 * weights, INK, wide)
    _numbers(axes, 629, 91, weights, wide, lambda value: f"{value:.2f}".removeprefix("0"))
    text(axes, 709, 230, "(T, T)", 15, MUTED)
    arrow(axes, (791, 152), (811, 152))
    disc(axes, 826, 152, r"$\cdot$", radius=14, size=30)
    path(axes, (358, low), (826, low), (826, 166), color=VALUE)
    arrow(axes, (841, 152), (864, 152), VALUE)
    grid(axes, 866, 116, _shades(weights @ v), VALUE, tall)
    text(axes, 888, 100, "a row per word", 15, MUTED)
    text(axes, 890, 206, "(T, d_v)", 15, MUTED)
    text(axes, 592, 380, r"$\mathrm{output} = \mathrm{softmax}\left(q\, k^{\top}\right) v$", 25)
    return axes


def _shape(axes, x, y, first, second):
    """A shape on two lines."""
    text(axes, x, y, first, 15, MUTED)
    text(axes, x, y + 20, second, 15, MUTED)


def _cuts(axes, left, middle, heads):
    """The gaps between the heads' groups of columns."""
    for head in range(1, heads):
        x = left + 36 * head
        path(axes, (x, middle - 33.5), (x, middle + 33.5), color=PAPER, line=4, head=False)


def multi_head():
    axes = card(440)
    random = np.random.default_rng(1)
    heads, columns, cell = 2, 4, (18, 16)
    x = random.normal(size=(4, columns))
    projected = [x @ random.normal(size=(columns, columns)) for _ in range(3)]
    lanes = [144 + 162 * i for i in range(heads)]
    middle, bottom = (lanes[0] + lanes[-1]) / 2, 400

    for number, (at, title) in enumerate(((138, "project"), (366, "split"), (526, "attend in parallel"),
                                          (733, "concatenate"), (880, "mix")), 1):
        step(axes, at, 30, number, title)
    grid(axes, 18, middle - 32, _shades(x), INK, cell)
    text(axes, 54, middle - 52, "$x$", 22)
    _shape(axes, 62, bottom, "(B, T,", "d_model)")
    levels = (lanes[0] - 10, middle, lanes[-1] + 10)
    for y, values, matrix, name, color in zip(levels, projected, ("$W_q$", "$W_k$", "$W_v$"),
                                              ("queries", "keys", "values"), (QUERY, KEY, VALUE), strict=True):
        way = ((92, y),) if y == middle else ((92, middle), (104, middle), (104, y))
        path(axes, *way, (118, y))
        box(axes, 141, y, 44, 36, fill=INK, label=matrix, size=20, text_color=PAPER)
        arrow(axes, (164, y), (182, y), color)
        grid(axes, 184, y - 32, _shades(values), color, cell)
        _cuts(axes, 184, y, heads)
        text(axes, 220, y - 46, name, 15, color, "bold")
    _shape(axes, 220, bottom, "(B, T,", "d_model)")
    trunks = ((266, -24, levels[0], QUERY), (276, 0, levels[1], KEY), (286, 24, levels[2], VALUE))
    for x, down, y, color in trunks:
        path(axes, (258, y), (x, y), color=PAPER, line=5, head=False)
        path(axes, (258, y), (x, y), color=color, line=1.6, head=False)
        path(axes, (x, lanes[0] + down), (x, lanes[-1] + down), color=color, line=1.6, head=False)

    outputs = []
    for head, y in enumerate(lanes):
        box(axes, 476, y, 332, 146, fill=BAND, edge="none", corner=9)
        for x, down, _, color in trunks:
            path(axes, (x + 1, y + down), (303, y + down), color=PAPER, line=5, head=False)
            arrow(axes, (x, y + down), (309, y + down), color, 1.6)
        text(axes, 320, y - 54, f"head {head + 1}", 18, INK, "bold", "left")
        q, k, v = (values[:, 2 * head:2 * head + 2] for values in projected)
        for at, values, color in ((318, q, QUERY), (362, k, KEY), (406, v, VALUE)):
            grid(axes, at, y - 32, _shades(values), color, cell)
        arrow(axes, (446, y), (472, y))
        weights = _softmax(q @ k.T / 2 ** 0.5)
        grid(axes, 476, y - 36, weights, INK, (18, 18))
        arrow(axes, (552, y), (576, y), VALUE)
        outputs.append(weights @ v)
        grid(axes, 580, y - 32, _shades(outputs[-1]), VALUE, cell)
        end = middle + 24 * (head - 0.5)
        path(axes, (620, y), (664, y), (664, end), (683, end), color=VALUE, line=1.6)
    _shape(axes, 381, bottom, "(B, n_heads,", "T, d_k)")
    _shape(axes, 498, bottom, "(B, n_heads,", "T, T)")
    _shape(axes, 613, bottom, "(B, n_heads,", "T, d_k)")
    joined = np.concatenate(outputs, axis=1)
    grid(axes, 687, middle - 32, _shades(joined), VALUE, cell)
    _cuts(axes, 687, middle, heads)
    _shape(axes, 723, bottom, "(B, T,", "d_model)")
    arrow(axes, (763, middle), (789, middle), VALUE)
    box(axes, 814, middle, 46, 38, fill=INK, label="$W_o$", size=20, text_color=PAPER)
    arrow(axes, (838, middle), (860, middle))
    grid(axes, 864, middle - 32, _shades(joined @ random.normal(size=(columns, columns))), INK, cell)
    text(axes, 900, middle - 50, "output", 15, INK, "bold")
    _shape(axes, 895, bottom, "(B, T,", "d_model)")
    return axes


def masks():
    axes = card(376)
    length, cell, top = len(PADDED), 46, 92
    panels = (("Padding", np.array([[word != "<pad>" for word in PADDED]] * length), "key is not <pad>: (B, 1, T)"),
              ("Causal", np.tril(np.ones((length, length), dtype=bool)), "key is not after query: (T, T)"))
    text(axes, 148, top - 38, "key →", 18, KEY, "bold", "right")
    text(axes, 148, top - 14, "query ↓", 18, QUERY, "bold", "right")
    for i, word in enumerate(PADDED):
        text(axes, 148, top + (i + 0.5) * cell, word, 19, MUTED if word == "<pad>" else QUERY, align="right")
    for panel, (name, mask, rule) in enumerate(panels):
        left = 168 + 420 * panel
        text(axes, left + length * cell / 2, 20, name, 21, INK, "bold")
        text(axes, left + length * cell / 2, 48, rule, 18, INK)
        for j, word in enumerate(PADDED):
            text(axes, left + (j + 0.5) * cell, top - 14, word.strip("<>"), 18, MUTED if word == "<pad>" else KEY)
        checks(axes, left, top, mask, cell)
    text(axes, 480, 350, "✓: True, the query may attend to the key      empty: False, its score becomes −∞", 18)
    return axes


def _encoding():
    angle = np.arange(POSITIONS)[:, None] / 10000 ** (2 * (np.arange(COLUMNS) // 2) / COLUMNS)
    return np.where(np.arange(COLUMNS) % 2 == 0, np.sin(angle), np.cos(angle))


def _picture(axes, left, top, values, cell):
    """A matrix of numbers from -1 to 1 in the plots' colours: one shape a colour, of runs down the columns."""
    levels = np.rint((values + 1) * 7.5).astype(int)
    for level in range(16):
        points, codes = [], []
        for j, column in enumerate(levels.T):
            edges = np.flatnonzero(np.diff(np.r_[0, column == level, 0]))
            for begin, end in edges.reshape(-1, 2):
                x, y, u, v = left + j * cell[0], top + begin * cell[1], left + (j + 1) * cell[0], top + end * cell[1]
                points += [(x, y), (u, y), (u, v), (x, v), (x, y)]
                codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
        color = to_hex(colormaps["cividis"](level / 15))
        patch = PathPatch(Path(points, codes), facecolor=color, edgecolor=color, linewidth=0.4)
        axes.add_artist(patch)
        patch.set_clip_on(False)


def waves():
    axes = card(440)
    encoding, columns = _encoding(), (0, 1, 6, 12, 20)
    left, right, top, pitch = 118, 530, 82, 64
    across = (right - left) / (POSITIONS - 1)
    text(axes, (left + right) / 2, 30, "a column is a wave", 17, INK, "bold")
    for row, column in enumerate(columns):
        y = top + row * pitch
        box(axes, (left + right) / 2, y, right - left + 16, 54, fill=BAND, edge="none", corner=5)
        path(axes, (left, y), (right, y), color=RULE, line=1, head=False)
        fine = np.linspace(0, POSITIONS - 1, 400)
        angle = fine / 10000 ** (2 * (column // 2) / COLUMNS)
        wave = np.cos(angle) if column % 2 else np.sin(angle)
        path(axes, *zip(left + fine * across, y - 23 * wave, strict=True), color=INK, line=2, head=False)
        text(axes, 62, y - 10, f"column {column}", 15, INK, "bold")
        text(axes, 62, y + 11, "cosine" if column % 2 else "sine", 15, MUTED)
    at = left + READ * across
    path(axes, (at, 54), (at, top + 4 * pitch + 30), color=BAD, line=2.4, head=False)
    for row, column in enumerate(columns):
        disc(axes, at, top + row * pitch - 23 * encoding[READ, column], "", BAD, radius=5, fill=PAPER)
    for position in range(0, POSITIONS, 10):
        chosen = position == READ
        text(axes, left + position * across, 390, str(position), 15, BAD if chosen else INK,
             "bold" if chosen else "normal")
    text(axes, (left + right) / 2, 416, "position", 15, MUTED)

    cell, begin, high = (10, 6.25), 616, 62
    text(axes, begin + 160, 30, "a position is a row", 17, INK, "bold")
    _picture(axes, begin, high, encoding, cell)
    y = high + READ * cell[1]
    box(axes, begin + 160, y + cell[1] / 2, 328, cell[1] + 6, BAD, fill="none", corner=3, line=2.6)
    for position in range(0, POSITIONS, 10):
        chosen = position == READ
        text(axes, begin - 12, high + (position + 0.5) * cell[1], str(position), 15, BAD if chosen else INK,
             "bold" if chosen else "normal", "right")
    arrow(axes, (right + 14, y + cell[1] / 2), (begin - 40, y + cell[1] / 2), BAD, 2.4)
    for column in columns:
        apart = 5 * ((column == 1) - (column == 0))
        text(axes, begin + (column + 0.5) * cell[0] + apart, high + POSITIONS * cell[1] + 16, str(column), 15)
    text(axes, begin + 160, 402, f"column, of d_model = {COLUMNS}", 15, MUTED)
    for level in range(16):
        x = begin + 96 + 8 * level
        area(axes, (x, 416), (x + 8.4, 416), (x + 8.4, 428), (x, 428), fill=to_hex(colormaps["cividis"](level / 15)))
    text(axes, begin + 88, 422, "−1", 15, align="right")
    text(axes, begin + 232, 422, "1", 15, align="left")
    return axes


def paths():
    axes = card(420)
    words = len(FAR)
    places = [52 + 70 * i for i in range(words)]
    for top, name, note, steps, rule, color in (
            (10, "Recurrent network", "each step waits for the one before", f"{TO - FROM} steps",
             "grows with distance", BAD),
            (214, "Self-attention", "every word is read directly", "1 step", "at any distance", GOOD)):
        box(axes, 480, top + 98, 940, 196, fill=BAND, edge="none", corner=10)
        text(axes, 26, top + 24, name, 18, INK, "bold", align="left")
        text(axes, 40 + text_width(name, 18, "bold"), top + 24, note, 15, MUTED, align="left")
        text(axes, 864, top + 92, steps, 24, color, "bold")
        text(axes, 864, top + 124, rule, 15, color)
        for i, (x, word) in enumerate(zip(places, FAR, strict=True)):
            end = i in (FROM, TO)
            text(axes, x, top + 174, word, 15, (KEY, QUERY)[i == TO] if end else INK, "bold" if end else "normal")

    y = 120
    for i, x in enumerate(places):
        arrow(axes, (x, 170), (x, y + 19), RULE, 1.4)
        on = FROM <= i <= TO
        if i + 1 < words:
            thick = FROM <= i < TO
            arrow(axes, (x + 17, y), (places[i + 1] - 18, y), INK if thick else RULE, 3.2 if thick else 1.4)
            if thick:
                text(axes, (x + places[i + 1]) / 2, y - 26, str(i - FROM + 1), 17, BAD, "bold")
        color = KEY if i == FROM else QUERY if i == TO else INK
        box(axes, x, y, 32, 34, color, line=2.6 if on else 1.4, fill=None if i in (FROM, TO) else PAPER)

    y = 340
    for i, x in enumerate(places):
        arrow(axes, (x, 374), (x, y + 19), RULE, 1.4)
        if i not in (FROM, TO):
            arrow(axes, (x, y - 18), (places[TO], 277), RULE, 1.4)
        color = KEY if i == FROM else QUERY if i == TO else INK
        box(axes, x, y, 32, 34, color, line=2.6 if i in (FROM, TO) else 1.4, fill=None if i in (FROM, TO) else PAPER)
    arrow(axes, (places[FROM], y - 19), (places[TO] - 18, 262), INK, 3.6)
    box(axes, places[TO], 260, 32, 34, QUERY, line=2.6)
    arrow(axes, (places[TO], y - 18), (places[TO], 279), RULE, 1.4)
    return axes
