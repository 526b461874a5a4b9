"""The figures of lesson 06, efficient attention. Each function returns a card, ``ALT`` says what it shows."""

from math import exp

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from style import BAND, RULE, area, arrow, box, card, disc, path, step, text, text_width, tint

from course_utils.plotting import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY, VALUE
from course_utils.widgets.mask_explorer import PATTERNS

LENGTH = 16
"""Positions in each picture of a pattern."""
PANELS = (("causal", 0, 0, "all before: the reference"), ("sliding window", 3, 0, "text: what is near"),
          ("dilated", 3, 2, "text: twice as far"), ("global tokens", 3, 1, "long documents, encoder"),
          ("strided", 4, 4, "images: what repeats"), ("fixed", 1, 4, "generating text"),
          ("block recurrence", 0, 4, "long text, by segments"))
"""Pattern, window w, stride s, what it is for; the patterns and their numbers are MaskExplorer's."""
LAYERS, SEGMENT, SEGMENTS = 3, 4, 4
WINDOW = 2 * SEGMENT
"""What the vanilla model reads for each token: as much as a segment and its memory."""
QUERIES, SLOTS = 3, 5
PICTURE = ("........", "..####..", ".#....#.", "......#.", "...###..", "......#.", ".#....#.", "..####..")
"""A digit of eight by eight."""
PIXEL = (4, 5)
"""Row and column of the pixel that asks, from 0."""
SCORES = (1, 2, 0, 1, 3, 1)
VALUES = (5, 1, 4, 2, 3, 6)
TILE = 2
N, D = 512, 64
"""Length and d_k of the two products; the drawing is to scale."""
SUMMED = (((1, 1), (2, 1), (1, 3)), ((1, 2), (1, 3), (2, 0)), ((2, 1), (1, 1), (0, 2)))
"""Three tokens of linear attention: φ(q), φ(k) and v."""
STRIPS = 16
"""Blocks of the drawing of section 2."""
BLOCKED, BLOCK = 12, 4
"""Positions and window of the drawing of blocks."""
HEADS = 8
SHARED = (("multi-head", 8), ("grouped-query", 2), ("multi-query", 1))
"""How many key/value heads."""


def _mask(pattern, window, stride):
    """MaskExplorer's mask."""
    q, k = np.ogrid[:LENGTH, :LENGTH]
    return PATTERNS[pattern](q, k, LENGTH, window, stride)


def _share(pattern, window, stride):
    """Which part of the causal pairs a pattern keeps, in per cent."""
    causal = np.tri(LENGTH, dtype=bool)
    return 100 * (_mask(pattern, window, stride) & causal).sum() / causal.sum()


def _online():
    """The online softmax over tiles: scores, values, factor, m, s and o after each."""
    m, s, o = -np.inf, 0.0, 0.0
    for begin in range(0, len(SCORES), TILE):
        scores, values = SCORES[begin:begin + TILE], VALUES[begin:begin + TILE]
        new = max(m, *scores)
        factor = exp(m - new)
        weights = [exp(score - new) for score in scores]
        s = factor * s + sum(weights)
        o = factor * o + sum(w * v for w, v in zip(weights, values, strict=True))
        m = new
        yield scores, values, factor, m, s, o


def _shifted():
    """The four tables of the relative shift; −1 is the padding, else 10 × query + distance."""
    by_distance = 10 * np.arange(QUERIES)[:, None] + np.arange(SLOTS)[::-1]
    padded = np.pad(by_distance, ((0, 0), (1, 0)), constant_values=-1)
    again = padded.reshape(SLOTS + 1, QUERIES)
    return by_distance, padded, again, again[1:].reshape(QUERIES, SLOTS)


def _summed():
    """Linear attention token by token: φ(q), φ(k), v, and then S, z and what is read out, as a sum and its divisor."""
    S, z = np.zeros((2, 2), dtype=int), np.zeros(2, dtype=int)
    for token, (q, k, v) in enumerate(np.array(SUMMED)):
        S, z = S + np.outer(k, v), z + k
        yield q, k, v, S, z, q @ S, q @ z
        before = np.array(SUMMED)[:token + 1]
        weights = before[:, 1] @ q                                              # the same from all pairs
        assert (weights @ before[:, 2] == q @ S).all()
        assert weights.sum() == q @ z


def _row(numbers):
    return ", ".join(map(str, numbers))


TILES, SUMS = list(_online()), list(_summed())
ALL_AT_ONCE = sum(exp(x) * v for x, v in zip(SCORES, VALUES, strict=True)) / sum(exp(x) for x in SCORES)
"""The same output from the softmax over all scores."""

ALT = {
    "06_patterns":
        f"Seven patterns of attention as masks of {LENGTH} by {LENGTH}. Each row is a query, each column a key; a "
        "filled cell means the query sees the key. With each: its share of the causal pairs, and what it is for. "
        + " ".join(f"{panel[0].capitalize()}: {shape}; {_share(*panel[:3]):.0f} %, {panel[3]}."
                   for panel, shape in zip(PANELS, (
                       "the whole lower triangle", "a band of three keys on either side of the diagonal",
                       "every second diagonal, three on either side, with gaps between",
                       "the band, and the first row and the first column full",
                       "two heads, the row head sees the four keys before, a band; the column head, small squares, "
                       "every fourth key before, diagonals four apart",
                       "two heads, the own-block head sees triangles along the diagonal; the summary head, small "
                       "squares, sees the last key of every block of four, columns",
                       "the own block of four and the whole block before it, steps along the diagonal"), strict=True))
        + " Cells above the diagonal are light: they exist only where a query may look ahead.",
    "06_recurrence":
        "How a text that is longer than the window is read: vanilla and Transformer-XL. Left, vanilla: a window of "
        f"{WINDOW} tokens, {LAYERS} layers, slides by one token; for each next token all its states are computed "
        f"again, {SEGMENT} × {WINDOW} × {LAYERS} = {SEGMENT * WINDOW * LAYERS} states for {SEGMENT} tokens. Right, "
        f"Transformer-XL: the text in segments of {SEGMENT} tokens. Only the states of the current segment are "
        f"computed, {SEGMENT} × {LAYERS} = {SEGMENT * LAYERS}; in each layer it also reads the states of the previous "
        "segment, which are kept and drawn hatched. No gradient goes back into the memory. Thick arrows lead from "
        "the current segment's top layer one segment to the left in each layer below, to the first segment: the "
        "reach grows by a segment a layer.",
    "06_shift":
        "The relative shift in four steps, for three queries a, b, c and five slots. 1, by distance: each row holds "
        "the scores of a query for the distances 4 3 2 1 0, written a4 to a0, b4 to b0, c4 to c0. 2, pad: a column of "
        "zeros on the left, three by six. 3, read the same 18 numbers row by row with width three: six rows, "
        "0 a4 a3; a2 a1 a0; 0 b4 b3; b2 b1 b0; 0 c4 c3; c2 c1 c0. 4, the first row is cut, the other 15 are read with "
        "width five: a2 a1 a0 0 b4; b3 b2 b1 b0 0; c4 c3 c2 c1 c0. Now a column is a key: distance 0 stands on the "
        "diagonal that ends at the last key. The cells after it, grey, belong to keys after the query; the causal "
        "mask removes them.",
    "06_flatten":
        "A picture of eight by eight pixels, a digit, and the same 64 pixels as a sequence. In the picture one pixel "
        f"asks: row {PIXEL[0] + 1}, column {PIXEL[1] + 1}. The pixels before it in its row have a green frame, the "
        "pixels above it in its column a small square. In the sequence, where the rows stand one after another, the "
        f"row is still the {PIXEL[1]} neighbours just before the pixel, but the column is every eighth cell: "
        f"distances {', '.join(str(8 * (i + 1)) for i in range(PIXEL[0]))}, shown by arcs. Lost: the pixel above is 8 "
        "places away. Recovered: a row head sees the neighbours, a column head every eighth place.",
    "06_tiles":
        f"The softmax of one query over {len(SCORES)} scores, in three tiles of two. Scores "
        f"{', '.join(map(str, SCORES))}; values {', '.join(map(str, VALUES))}. After each tile: "
        + " ".join(f"tile {i}, m = {m}, {f'old s and o times {factor:.2f}, ' * (i > 1)}s = {s:.2f}, o = {o:.2f}."
                   for i, (_, _, factor, m, s, o) in enumerate(TILES, 1))
        + f" When the maximum m grows, s and o of the tiles before are rescaled by the factor exp(old m − new m). At "
        f"the end o / s = {TILES[-1][5] / TILES[-1][4]:.3f}, and the softmax over all six at once gives the same, "
        f"{ALL_AT_ONCE:.3f}. Only two scores are held at any time.",
    "06_blocks":
        f"A sliding window of {BLOCK}, computed in blocks, for {BLOCKED} positions. The matrix has queries in rows "
        f"and keys in columns. Each query sees its own key and the {BLOCK} before it, a band. Frames show what is "
        f"computed: each block of {BLOCK} queries with its own block of keys and the block before. The keys before "
        "block 0 do not exist: padding, drawn hatched. The cells of a frame outside the band are computed and masked.",
    "06_strips":
        f"The pairs of a causal model, in blocks. A square of {STRIPS} by {STRIPS} cells: rows are blocks of queries, "
        f"columns blocks of keys. Each block of queries meets the keys up to its own end: a staircase of "
        f"{STRIPS * (STRIPS + 1) // 2} of {STRIPS**2} cells is computed, {STRIPS * (STRIPS + 1) // 2 / STRIPS**2:.0%}. "
        f"The {STRIPS} cells on the diagonal are half masked; above them nothing is computed. One strip, a block of "
        "queries with its keys, is held at a time.",
    "06_sums":
        "Linear attention, causal, as two running sums over three tokens, with d = 2. For each token: what comes in, "
        "the product of φ(k) and v, a matrix of d by d; what is kept, the sums S, d by d, and z, d by 1; what is read "
        "out, φ(q) times S, divided by φ(q) times z. "
        + " ".join(f"Token {t}: φ(k) = ({_row(k)}), v = ({_row(v)}); rows of S ({_row(S[0])}) and ({_row(S[1])}), z = "
                   f"({_row(z)}); with φ(q) = ({_row(q)}) it reads out ({_row(top)}) divided by {low}."
                   for t, (q, k, v, S, z, top, low) in enumerate(SUMS, 1))
        + " The sums do not grow, however many tokens come.",
    "06_stack":
        f"The scores of a sliding window as a stack. {BLOCKED} positions, window {BLOCK}: {BLOCKED // BLOCK} blocks "
        f"of {BLOCK} queries by {2 * BLOCK} keys. Block 0: the left half is padding, hatched; keys 0 to {BLOCK - 1}. "
        f"Block 1: keys 0 to {2 * BLOCK - 1}. Block 2: keys {BLOCK} to {3 * BLOCK - 1}. In each block the filled cells "
        f"are the band of the window: query row i sees the columns i to i + {BLOCK}; the others are masked.",
    "06_linear":
        f"Two ways to bracket the same product, drawn to scale for n = {N} and d = {D}. Above, (φ(Q) φ(K)ᵀ) V: the "
        f"tall φ(Q), n by d, times the wide φ(K)ᵀ, d by n, gives a large square of n by n, {N * N:,} numbers; times V "
        f"it gives the output, n by d. 4 n² d = {4 * N * N * D / 1e6:.1f} million FLOPs. Below, "
        f"φ(Q) (φ(K)ᵀ V): φ(K)ᵀ times V comes first and gives a small square of d by d, {D * D:,} numbers; φ(Q) times "
        f"it gives the same output. 4 n d² = {4 * N * D * D / 1e6:.1f} million FLOPs, n / d = {N // D} times fewer. A "
        "softmax stands around the large square and forbids the second way.",
    "06_heads":
        f"Eight query heads over eight, two and one key/value heads. Three panels, each with {HEADS} query heads above "
        "and the heads of keys and values below, and lines from each query head to the one that it reads. Multi-head "
        "attention: eight key/value heads, one for each query head; the cache has size 1. Grouped-query attention: "
        "two key/value heads, each read by four query heads; the cache has 1/4 of the size. Multi-query attention: "
        "one key/value head, read by all eight; 1/8 of the size. A bar below each shows the size of the cache.",
    "06_choice":
        "Which attention: a chart of three questions. 1, is SDPA, PyTorch's scaled_dot_product_attention, fast "
        "enough, and does the cache fit? Yes: take it; it is exact and needs no n by n memory. If not: 2, can n be "
        "smaller? Yes: fewer tokens, as images in patches: 196 patches, not 150,528 numbers; then SDPA. If not: 3, "
        "what is too much? Time, when generating text: fewer KV heads; leave out or sum up in most layers, not in all. "
        "Time, when reading a document: windows, and a few full layers or global tokens. Memory, when generating text: "
        "fewer bytes per number; fewer KV heads, or latents; windows. Unbounded streams: a window's cache and the "
        "first tokens, or a linear state: both forget. All but fewer bytes are models of their own, trained that way.",
    "06_memory":
        "Where attention's numbers lie on a GPU, an A100. Two memories: on the chip (SRAM), 192 KB in each of 108 "
        "multiprocessors, 19 TB/s in all; GPU memory (HBM), 40 GB at 1.5 TB/s. Middle, the textbook: Q, K, V, the n "
        "by n scores and the output O lie in GPU memory. Q, K and V are read, O is written, and the matrix is written"
        " and read twice. Right, in tiles: Q is read block by block, K and V tile by tile, once more for each block "
        "of Q; only a few tiles and the running sums of one block are on the chip, the output O is written; there is "
        "no matrix. At n = 80,000 a matrix takes 25.6 GB for one head of one layer, a tile of 128 by 128 takes 64 "
        "KiB."
}


def _squares(axes, left, top, mask, cell, part=1.0, fill=GOOD, edge="none", line=1.0):
    """Squares in the cells of a mask, in the middle of each, as one shape; ``part`` of the cell's width."""
    points, codes = [], []
    for i, j in np.argwhere(mask):
        x, y, half = left + (j + 0.5) * cell, top + (i + 0.5) * cell, part * cell / 2
        points += [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half),
                   (x - half, y - half)]
        codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    patch = PathPatch(Path(points, codes), facecolor=fill, edgecolor=edge, linewidth=line)
    axes.add_artist(patch)
    patch.set_clip_on(False)


def _stairs(axes, left, top, cell):
    """The cells of a causal mask, empty."""
    ends = [(left + j * cell, top + i * cell) for i in range(LENGTH) for j in (i, i + 1)]
    area(axes, *ends, (left + LENGTH * cell, top + LENGTH * cell), (left, top + LENGTH * cell), fill=PAPER)
    for i in range(1, LENGTH):
        x, y = left + i * cell, top + i * cell
        path(axes, (left, y), (x, y), (x, top + LENGTH * cell), color=tint(INK, 0.22), line=0.7, head=False)


def _heads_of(pattern, window, stride):
    """The mask of the first and of the second head."""
    q, k = np.ogrid[:LENGTH, :LENGTH]
    causal = k <= q
    if pattern == "strided":
        return causal & (q - k <= window), causal & ((q - k) % stride == 0)
    return causal & (q // stride == k // stride), causal & (k % stride >= stride - window)


SEEN, AHEAD = tint(GOOD, 0.75), tint(GOOD, 0.3)


def patterns():
    axes = card(480)
    cell, causal = 9, np.tri(LENGTH, dtype=bool)
    side = LENGTH * cell
    for number, (name, window, stride, use) in enumerate(PANELS):
        left, top = 10 + 236 * (number % 4), 8 + 234 * (number // 4)
        begin, high = left + 44, top + 38
        box(axes, left + 116, top + 115, 232, 230, fill=BAND, edge="none", corner=10)
        text(axes, left + 116, top + 21, name, 17, INK, "bold")
        mask = _mask(name, window, stride)
        _stairs(axes, begin, high, cell)
        if name in ("strided", "fixed"):
            first, second = _heads_of(name, window, stride)
            assert (mask == first | second).all()
            _squares(axes, begin, high, first, cell, 0.92, SEEN)
            _squares(axes, begin, high, second, cell, 0.5, INK)
        else:
            _squares(axes, begin, high, mask & causal, cell, 0.92, SEEN)
            if (mask & ~causal).any():
                _squares(axes, begin, high, mask & ~causal, cell, 0.8, AHEAD, GOOD, 0.8)
        box(axes, begin + side / 2, high + side / 2, side + 3, side + 3, INK, fill="none", corner=2, line=1.4)
        sizes = {"c" if name == "fixed" else "w": window, "g" if name == "global tokens" else "s": stride}
        numbers = ", ".join(f"{letter} = {value}" for letter, value in sizes.items() if value)
        share = f"{_share(name, window, stride):.0f} %"
        wide = text_width(share, 16, "bold") + (10 + text_width(numbers, 15) if numbers else 0)
        text(axes, left + 116 - wide / 2, top + 198, share, 16, INK, "bold", "left")
        if numbers:
            text(axes, left + 116 + wide / 2, top + 198, numbers, 15, MUTED, align="right")
        text(axes, left + 116, top + 218, use, 15, GOOD, "bold")
    left, top = 10 + 236 * 3, 8 + 234
    text(axes, left + 14, top + 22, "row: query", 15, QUERY, "bold", "left")
    text(axes, left + 222, top + 22, "column: key", 15, KEY, "bold", "right")
    one = np.ones((1, 1), dtype=bool)
    for y, words, *mark in ((52, "sees the key", 0.92, SEEN), (74, "(row, own-block head)",),
                            (100, "only if it may look ahead", 0.85, AHEAD, GOOD, 1),
                            (126, "strided: column head", 0.5, INK), (148, "fixed: summary head",)):
        if mark:
            _squares(axes, left + 14, top + y - 7, one, 14, *mark)
        text(axes, left + 36, top + y, words, 15, align="left")
    text(axes, left + 14, top + 167, "w: window, s: stride or block", 15, MUTED, align="left")
    text(axes, left + 14, top + 184, "c: summaries, g: global", 15, MUTED, align="left")
    text(axes, left + 14, top + 202, f"%: of the {causal.sum()} causal", 15, INK, "bold", "left")
    text(axes, left + 14, top + 220, f"pairs, n = {LENGTH}", 15, INK, "bold", "left")
    return axes


def _computed(axes, left, top, size, color=INK):
    """A state that is made now: filled."""
    box(axes, left + size / 2, top + size / 2, size, size, color, fill=tint(color, 0.75), corner=2, line=1.4)


def _hatched(axes, left, top, size, color=INK):
    """A state that is only read: diagonal lines."""
    box(axes, left + size / 2, top + size / 2, size, size, color, fill=PAPER, corner=2, line=1.4)
    for offset in np.arange(-size + 6, size, 6):
        begin, end = max(0, -offset), min(size, size - offset)
        path(axes, (left + begin, top + size - begin - offset), (left + end, top + size - end - offset), color=color,
             line=1.2, head=False)


def recurrence():
    axes = card(480)
    box(axes, 174, 240, 328, 464, fill=BAND, edge="none", corner=10)
    text(axes, 26, 30, "vanilla", 18, INK, "bold", "left")
    text(axes, 26, 56, "slides by one token, and reads", 15, align="left")
    text(axes, 26, 78, "the whole window again", 15, align="left")
    size, pitch = 15, 21
    for token in range(SEGMENT):
        top = 104 + 74 * token
        for layer in range(LAYERS):
            for i in range(WINDOW):
                _computed(axes, 26 + (token + i) * pitch, top + layer * (size + 3), size)
        x, y = 26 + (token + WINDOW) * pitch, top + size / 2
        arrow(axes, (x - 3, y), (x + 20, y), line=2)
        box(axes, x + 31, y, size + 1, size + 1, RULE, fill=PAPER, corner=2, line=1.4, dashed=True)
    text(axes, 26, 398, "dashed: the next token", 15, MUTED, align="left")
    text(axes, 26, 426, f"{SEGMENT} tokens: {SEGMENT} × {WINDOW} × {LAYERS}", 15, align="left")
    text(axes, 26, 452, f"= {SEGMENT * WINDOW * LAYERS} states computed", 17, BAD, "bold", "left")

    size, pitch, gap = 22, 26, 24
    box(axes, 647, 240, 606, 464, fill=BAND, edge="none", corner=10)
    text(axes, 360, 30, "Transformer-XL", 18, INK, "bold", "left")
    text(axes, 360, 56, "each layer reads the layer below: this segment and the memory", 15, align="left")
    wide = SEGMENT * pitch - (pitch - size)
    begins = [446 + (SEGMENT * pitch + gap) * segment for segment in range(SEGMENTS)]
    rows = [334 - 70 * level for level in range(LAYERS + 1)]
    now, kept = SEGMENTS - 1, SEGMENTS - 2
    for level, y in enumerate(rows):
        text(axes, begins[0] - 14, y, f"layer {level}" if level else "tokens", 15, INK, align="right")
        for segment, begin in enumerate(begins):
            for i in range(SEGMENT):
                left, top = begin + i * pitch, y - size / 2
                if segment == now and level:
                    _computed(axes, left, top, size)
                elif segment == kept and level < LAYERS:
                    _hatched(axes, left, top, size)
                else:
                    box(axes, left + size / 2, y, size, size, INK if segment == now else RULE, fill=PAPER, corner=2,
                        line=1.4)
            if not level:
                continue
            on = segment == now
            arrow(axes, (begin + 0.7 * wide, y + 70 - 13), (begin + 0.7 * wide, y + 14), INK if on else RULE,
                  2 if on else 1.4)
            if segment:
                on, chain = segment == now, segment == level
                arrow(axes, (begin - gap - 0.45 * wide, y + 70 - 13), (begin + 0.22 * wide, y + 14),
                      GOOD if chain else INK if on else RULE, 3.2 if chain else 2 if on else 1.4)
    x = begins[now] - gap / 2
    path(axes, (x, 84), (x, 352), color=BAD, line=2.2, dashed=True, head=False)
    text(axes, x - 10, 92, "✗  no gradient to the left of this line", 15, BAD, "bold", "right")
    for segment, begin in enumerate(begins):
        text(axes, begin + wide / 2, 366, ("segment 1", "segment 2", "previous", "this segment")[segment], 15,
             INK, "bold" if segment >= kept else "normal")
        if away := now - segment:
            text(axes, begin + wide / 2, 392, f"in {away} layer{'s' * (away > 1)}", 15, GOOD, "bold")
    text(axes, begins[0] - 14, 392, "reached", 15, GOOD, "bold", align="right")
    _computed(axes, 362, 418, 16)
    words = f"computed now: {SEGMENT} × {LAYERS} = {SEGMENT * LAYERS} states"
    text(axes, 388, 426, words, 15, GOOD, "bold", "left")
    _hatched(axes, 362, 444, 16)
    text(axes, 388, 452, "memory: read, not computed", 15, align="left")
    box(axes, 710, 452, 16, 16, RULE, fill=PAPER, corner=2, line=1.4)
    text(axes, 728, 452, "earlier: not kept", 15, align="left")
    return axes


def shift():
    axes = card(400)
    cell, top = 36, 112
    tables = _shifted()
    lefts = (88, 300, 578, 764)
    for number, (table, left, title, note) in enumerate(zip(
            tables, lefts, ("by distance", "pad a column", f"read in rows of {QUERIES}", "cut the first row"),
            ("", "zeros on the left", "the same numbers, in order", f"read in rows of {SLOTS}: by key"),
            strict=True), 1):
        rows, columns = table.shape
        middle = left + columns * cell / 2
        step(axes, middle, 30, number, title)
        text(axes, middle, 58, note or f"{rows} queries, {columns} slots", 15, MUTED)
        for i, row in enumerate(table):
            for j, value in enumerate(row):
                x, y = left + (j + 0.5) * cell, top + (i + 0.5) * cell
                query, distance = divmod(int(value), 10)
                late = number == 4 and j > i + SLOTS - QUERIES
                pad, cut = value < 0, number == 3 and i == 0
                fill = BAND if late else PAPER if pad else tint(QUERY, (0.08, 0.24, 0.4)[query])
                box(axes, x, y, cell - 3, cell - 3, RULE if late or pad else QUERY, fill=fill, corner=3, line=1.2,
                    dashed=pad or late)
                pale = late or pad or cut
                text(axes, x, y, "0" if pad else f"{'abc'[query]}{distance}", 16, MUTED if pale else INK,
                     "normal" if pale or distance else "bold")
        if number in (1, 4):
            for j in range(columns):
                text(axes, left + (j + 0.5) * cell, top - 16, str(j if number == 4 else SLOTS - 1 - j), 15, KEY, "bold")
            for i in range(rows):
                text(axes, left - 9, top + (i + 0.5) * cell, "abc"[i], 16, QUERY, "bold", "right")
            text(axes, left - 9, top - 16, "key" if number == 4 else "distance", 15, KEY, align="right")
    middle = top + 1.5 * cell
    for begin, end in ((274, 296), (526, 570), (692, 736)):
        arrow(axes, (begin, middle), (end, middle), line=2.4)
    path(axes, (lefts[2] - 3, top + cell / 2), (lefts[2] + QUERIES * cell + 3, top + cell / 2), color=BAD, line=2.6,
         head=False)
    text(axes, lefts[2] + QUERIES * cell + 8, top + cell / 2, "✗ cut", 15, BAD, "bold", "left")
    for row, words in enumerate(("a4: the score of query a at distance 4",
                                 "a, b, c: the last three of five positions;",
                                 "a stands at key 2, b at key 3, c at key 4")):
        text(axes, 26, 254 + 24 * row, words, 15, align="left")
    for row, words in enumerate(("bold: distance 0, the", "query's own key", "dashed: leftovers at",
                                 "later keys; the causal", "mask hides them")):
        text(axes, 722, 246 + 24 * row, words, 15, INK if row < 2 else MUTED, align="left")
    box(axes, 276, 362, 500, 38, RULE, "F.pad(x, (1, 0)).reshape(K + 1, T)[1:].reshape(T, K)", 16, fill=PAPER, line=1.4)
    return axes


def _pixel(axes, x, y, width, height, shade, kind):
    """A pixel, with the mark of the one that asks, of its row, or of its column."""
    fill = tint(INK, 0.72) if shade else PAPER
    box(axes, x, y, width, height, RULE, fill=fill, corner=1, line=0.8)
    if kind == "column":
        box(axes, x, y, 0.5 * min(width, height) + 1, 0.5 * min(width, height) + 1, INK, fill=PAPER, corner=1, line=1.8)
    elif kind:
        color = QUERY if kind == "asks" else GOOD
        box(axes, x, y, width - 3, height - 3, color, fill="none", corner=1, line=3)
    if kind == "asks":
        text(axes, x, y, "?", 16, PAPER if shade else INK, "bold")


def _kind(i, j):
    row, column = PIXEL
    if (i, j) == PIXEL:
        return "asks"
    return "row" if i == row and j < column else "column" if j == column and i < row else ""


def flatten():
    axes = card(480)
    side, cell, left, top = len(PICTURE), 32, 60, 40
    row, column = PIXEL
    for i, line in enumerate(PICTURE):
        text(axes, left + (i + 0.5) * cell, top - 14, str(i + 1), 15, MUTED)
        text(axes, left - 10, top + (i + 0.5) * cell, str(i + 1), 15, MUTED, align="right")
        for j, shade in enumerate(line):
            _pixel(axes, left + (j + 0.5) * cell, top + (i + 0.5) * cell, cell, cell, shade == "#", _kind(i, j))
    x = 372
    text(axes, x, 44, "A picture, and the same 64 pixels as a sequence", 18, INK, "bold", "left")
    for y, kind, words in ((84, "asks", f"the pixel that asks: row {row + 1}, column {column + 1}"),
                           (116, "row", f"its row: the {column} pixels before"),
                           (148, "column", f"its column: the {row} pixels above")):
        _pixel(axes, x + 11, y, 22, 22, False, kind)
        text(axes, x + 34, y, words, 16, align="left")
    for y, mark, color, words in ((192, "✓", GOOD, "the neighbours in the row stay neighbours"),
                                  (222, "✗", BAD, f"lost: the pixel above is now {side} places away"),
                                  (252, "✓", GOOD, f"recovered: a column head that sees every {side}th place")):
        text(axes, x + 11, y, mark, 18, color, "bold")
        text(axes, x + 34, y, words, 16, color, "bold", "left")
    wide, tall, begin, high = 14, 30, 32, 376
    asks = row * side + column
    middle = [begin + (p + 0.5) * wide for p in range(side * side)]
    for p, at in enumerate(middle):
        i, j = divmod(p, side)
        _pixel(axes, at, high + tall / 2, wide, tall, PICTURE[i][j] == "#", _kind(i, j))
    for i in range(side + 1):
        x = begin + i * side * wide
        path(axes, (x, high - 4), (x, high + tall + 4), color=INK, line=1.4, head=False)
        if i == side:
            break
        text(axes, x + side * wide / 2, high + tall + 44, f"row {i + 1}", 15, MUTED)
    for above in range(1, row + 1):
        at = middle[asks - side * above]
        arrow(axes, (at, high - 3), (middle[asks], high - 3), INK, 1.8, bend=-0.28)
        text(axes, at, high + tall + 16, str(side * above), 15, KEY, "bold")
    text(axes, middle[column] - 16, high + tall + 16, "distance", 15, KEY, align="right")
    text(axes, (middle[asks - 1] + middle[asks - column]) / 2, high + tall + 16, "its row", 15, GOOD, "bold")
    return axes


def _signed(value):
    return f"{value:g}".replace("-", "−").replace("inf", "∞")


def tiles():
    axes = card(480)
    panel, pitch, edge, cell, high = 258, 272, 146, 32, 30
    rows = {"scores": 70, "values": 104, "largest m": 148, "weights": 190, "factor": 240, "sum s": 292,
            "output o": 356}
    notes = {"weights": "exp(x − m)", "factor": "old s and o"}
    for name, y in rows.items():
        text(axes, edge - 10, y, name, 19, VALUE if name == "values" else INK, "bold", "right")
        if name in notes:
            text(axes, edge - 10, y + 23, notes[name], 17, MUTED, align="right")
    for number in range(len(TILES)):
        box(axes, edge + panel / 2 + pitch * number, 205, panel, 396, fill=BAND, edge="none", corner=10)
    old = (-np.inf, 0.0, 0.0)
    for number, (scores, values, factor, m, s, o) in enumerate(TILES, 1):
        left = edge + pitch * (number - 1)
        middle, begin = left + panel / 2, left + (panel - len(SCORES) * cell) / 2
        step(axes, middle, 32, number, f"tile {number}")
        for p in range(len(SCORES)):
            on = p // TILE == number - 1
            x = begin + (p + 0.5) * cell
            for name, numbers, color in (("scores", SCORES, INK), ("values", VALUES, VALUE)):
                box(axes, x, rows[name], cell - 2, high - 2, color if on else RULE, str(numbers[p]) if on else "", 19,
                    fill=tint(color, 0.2) if on else PAPER, corner=2, line=1.8 if on else 1, weight="bold")
        weights, grew = [exp(score - m) for score in scores], number > 1 and factor < 1
        text(axes, middle, rows["largest m"], f"max({', '.join(map(_signed, (old[0], *scores)))}) = {_signed(m)}", 19,
             INK, "bold" if grew else "normal")
        text(axes, middle, rows["weights"], ",  ".join(f"{w:.2f}" for w in weights), 19)
        words = f"exp({_signed(old[0])} − {m}) = {factor:.2f}" if number > 1 else "nothing yet"
        box(axes, middle, rows["factor"], panel - 20, 36, BAD if grew else RULE, words, 19, fill=PAPER,
            line=2.4 if grew else 1.2, weight="bold" if grew else "normal", text_color=BAD if grew else INK)
        for name, before, after, new in (
                ("sum s", old[1], s, sum(weights)),
                ("output o", old[2], o, sum(w * v for w, v in zip(weights, values, strict=True)))):
            y, shrink, rest = rows[name], f"{factor:.2f}", f"× {before:.2f} + {new:.2f}"
            if number == 1:
                shrink, rest = "", " + ".join(f"{w:.2f}" if name == "sum s" else f"{w:.2f} × {v}"
                                              for w, v in zip(weights, values, strict=True))
            first = text_width(shrink, 19, "bold" if grew else "normal") + 6 if shrink else 0
            x = middle - (first + text_width(rest, 19)) / 2
            if shrink:
                text(axes, x, y, shrink, 19, BAD if grew else INK, "bold" if grew else "normal", "left")
            text(axes, x + first, y, rest, 19, align="left")
            text(axes, middle, y + 27, f"= {after:.2f}", 20, INK, "bold")
        if number < len(TILES):
            for y in (rows["sum s"] + 27, rows["output o"] + 27):
                arrow(axes, (middle + 50, y), (middle + pitch - 50, y), INK, 2.2)
        old = (m, s, o)
    text(axes, edge, 426, f"result = o / s = {o / s:.3f} (unrounded)", 19, INK, "bold", "left")
    words = f"softmax over all {len(SCORES)} scores at once: {ALL_AT_ONCE:.3f}"
    text(axes, edge, 458, f"✓  {words}", 19, GOOD, "bold", "left")
    text(axes, 948, 426, f"held: {TILE} scores,", 19, align="right")
    text(axes, 948, 454, f"{TILE} values, m, s, o", 19, align="right")
    return axes


def _block(axes, left, top, number, cell):
    """One block of queries with the keys of two blocks: in the band, masked, padding."""
    i, j = np.ogrid[:BLOCK, :2 * BLOCK]
    seen, padding = (j >= i) & (j <= BLOCK + i), (number == 0) & (j < BLOCK) & (i >= 0)
    _squares(axes, left, top, seen & ~padding, cell, 0.84, SEEN, GOOD, 1.2)
    _squares(axes, left, top, ~seen & ~padding, cell, 0.84, PAPER, RULE, 1.2)
    if number == 0:
        for x in range(BLOCK):
            for y in range(BLOCK):
                _hatched(axes, left + x * cell + 2, top + y * cell + 2, cell - 4, MUTED)
    box(axes, left + BLOCK * cell, top + BLOCK * cell / 2, 2 * BLOCK * cell, BLOCK * cell, INK, fill="none", corner=4,
        line=2.4)


def blocks():
    axes, cell, left, top = card(420), 29, 104, 48
    box(axes, 480, 210, 944, 408, fill=BAND, edge="none", corner=10)
    begin = left + BLOCK * cell
    for j in range(BLOCKED):
        text(axes, begin + (j + 0.5) * cell, top - 18, str(j), 19, KEY)
        text(axes, left - 18, top + (j + 0.5) * cell, str(j), 19, QUERY)
    _squares(axes, begin, top, np.ones((BLOCKED, BLOCKED), dtype=bool), cell, 0.84, PAPER)
    text(axes, left, top - 18, "key", 20, KEY, "bold", "left")
    text(axes, 20, top - 18, "query", 20, QUERY, "bold", "left")
    for number in range(BLOCKED // BLOCK):
        _block(axes, left + number * BLOCK * cell, top + number * BLOCK * cell, number, cell)
    x = 620
    for row, (words, shown) in enumerate((("a frame: computed", "frame"), ("in the window", "seen"),
                                          ("masked", "masked"), ("padding: masked", ""))):
        y = 112 + 54 * row
        if shown == "frame":
            box(axes, x + 14, y, 28, 28, INK, fill="none", corner=4, line=2.4)
        elif shown:
            box(axes, x + 14, y, 26, 26, fill=SEEN if shown == "seen" else PAPER,
                color=GOOD if shown == "seen" else RULE, corner=3, line=1.2)
        else:
            _hatched(axes, x + 2, y - 12, 24, MUTED)
        text(axes, x + 48, y, words, 22, align="left")
    text(axes, x, 344, f"n = {BLOCKED}, w = {BLOCK}", 22, MUTED, align="left")
    return axes


def strips():
    axes, cell, left, top, strip = card(392), 22, 88, 20, 10
    box(axes, 480, 196, 944, 388, fill=BAND, edge="none", corner=10)
    shown, side, x, y = np.tri(STRIPS, dtype=bool), STRIPS * cell, left + (strip + 1) * cell, top + (strip + 0.5) * cell
    box(axes, left + side / 2, top + side / 2, side, side, INK, fill=PAPER, corner=2, line=1.8)
    _squares(axes, left, top, shown & ~np.eye(STRIPS, dtype=bool), cell, 0.9, SEEN)
    _squares(axes, left, top, np.eye(STRIPS, dtype=bool), cell, 0.9, AHEAD, GOOD, 1)
    box(axes, (left + x) / 2, y, x - left + 2, cell + 2, INK, fill="none", corner=1, line=2.8)
    path(axes, (x + 4, y), (496, y), color=INK, line=1.8, head=False)
    text(axes, 48, top + side / 2, "query", 22, QUERY, "bold")
    text(axes, left + side + 30, top + 12, "key", 22, KEY, "bold")
    computed = STRIPS * (STRIPS + 1) // 2
    text(axes, 504, 70, f"{computed} of {STRIPS} × {STRIPS} blocks: {computed / STRIPS**2:.0%}", 27, GOOD, "bold",
         "left")
    text(axes, 504, 152, "light: computed in full, half masked", 22, align="left")
    text(axes, 504, y, "one strip: held at a time", 22, align="left")
    text(axes, 504, 330, "above the diagonal: never computed", 22, align="left")
    return axes


def stack():
    axes, cell, shape = card(171), 26, (BLOCKED // BLOCK, BLOCK, 2 * BLOCK)
    for number in range(BLOCKED // BLOCK):
        left = 32 + number * 316
        _block(axes, left, 34, number, cell)
        text(axes, left, 18, f"block {number}", 17, QUERY, "bold", "left")
        keys = f"keys {max(0, number - 1) * BLOCK} to {(number + 1) * BLOCK - 1}"
        text(axes, left + 2 * BLOCK * cell, 18, keys, 17, KEY, "bold", "right")
    text(axes, 480, 152, f"n = {BLOCKED}, w = {BLOCK}: (n / w, w, 2w) = {shape} scores", 17, INK, "bold")
    return axes


def _matrix(axes, x, y, rows, columns, label, color=INK, line=1.8):
    """A matrix to scale around ``(x, y)``."""
    width, height = (144 * size / N for size in (columns, rows))
    box(axes, x, y, width, height, color, corner=1, line=line)
    if label:
        text(axes, x, y - height / 2 - 16, label, 19, color, "bold")
    if rows != columns:
        text(axes, x, y + height / 2 + 15, "n × d" if rows == N else "d × n", 17, MUTED)


def linear():
    axes = card(480)
    for top, formula in ((8, "( φ(Q) φ(K)ᵀ ) V"), (243, "φ(Q) ( φ(K)ᵀ V )")):
        first = top == 8
        y = top + 122
        box(axes, 480, top + 114, 940, 228, fill=BAND, edge="none", corner=10)
        text(axes, 650, top + 32, formula, 24, INK, "bold", "left")
        signs = ((92, "·"), (280, "="), (470, "·"), (532, "=")) if first else (
            (220, "·"), (276, "="), (432, "·"), (490, "="))
        for x, sign in signs:
            text(axes, x, y, sign, 26, INK, "bold")
        color = BAD if first else GOOD
        if first:
            _matrix(axes, 62, y, N, D, "φ(Q)", QUERY)
            _matrix(axes, 184, y, D, N, "φ(K)ᵀ", KEY)
            _matrix(axes, 376, y, N, N, "", color, line=2.6)
            text(axes, 376, y - 12, "n × n", 22, color, "bold")
            text(axes, 376, y + 16, f"{N * N:,}", 19, color)
            _matrix(axes, 502, y, N, D, "V", VALUE)
            _matrix(axes, 566, y, N, D, "output", INK)
        else:
            _matrix(axes, 126, y, D, N, "φ(K)ᵀ", KEY)
            _matrix(axes, 248, y, N, D, "V", VALUE)
            _matrix(axes, 308, y, D, D, "d × d", color, line=2.6)
            text(axes, 308, y + 26, f"{D * D:,}", 18, color)
            arrow(axes, (330, y), (366, y), color, 2.4)
            _matrix(axes, 402, y, N, D, "φ(Q)", QUERY)
            _matrix(axes, 460, y, D, D, "", color, line=2.6)
            _matrix(axes, 522, y, N, D, "output", INK)
        count = 4 * N * N * D if first else 4 * N * D * D
        text(axes, 650, top + 76, "4 n² d FLOPs" if first else "4 n d² FLOPs", 22, align="left")
        text(axes, 650, top + 108, f"= {count / 1e6:.1f} million", 23, color, "bold", "left")
        notes = (("a softmax in between", "allows no other order") if first else
                 (f"n / d = {N // D} times fewer", f"to scale: n = {N}, d = {D}"))
        for row, words in enumerate(notes):
            text(axes, 650, top + 154 + 30 * row, words, 21, align="left")
    return axes


def _numbers(axes, left, top, values, color, cell=34):
    """A small matrix with its numbers."""
    values = np.atleast_2d(values)
    for (i, j), value in np.ndenumerate(values):
        box(axes, left + (j + 0.5) * cell, top + (i + 0.5) * cell, cell - 2, cell - 2, color, str(value), 19,
            corner=2, line=1.4, text_color=INK)


def sums():
    axes, edge, panel, pitch = card(480), 134, 264, 274
    for y, name, formula in ((122, "comes in", "φ(k) vᵀ, φ(k)"), (260, "kept", "S, z"), (402, "read out", "")):
        text(axes, 12, y - 14 - 28 * (name == "read out"), name, 20, INK, "bold", "left")
        text(axes, 12, y + 16, formula, 17, MUTED, align="left")
    for y, formula in ((408, "φ(q)ᵀ S"), (442, "φ(q)ᵀ z")):
        text(axes, 64, y, formula, 19, MUTED)
    path(axes, (24, 425), (104, 425), color=MUTED, line=1.4, head=False)
    for number in range(len(SUMS)):
        box(axes, edge + pitch * number + panel / 2, 240, panel, 472, fill=BAND, edge="none", corner=10)
    for number, (q, k, v, S, z, upper, lower) in enumerate(SUMS):
        left = edge + pitch * number
        step(axes, left + panel / 2, 28, number + 1, f"token {number + 1}")
        x, side = left + 100, left + 208
        text(axes, x - 56, 73, "v", 20, VALUE, "bold")
        _numbers(axes, x, 56, v, VALUE)
        text(axes, x - 68, 130, "φ(k)", 19, KEY, "bold")
        _numbers(axes, x - 40, 96, k[:, None], KEY)
        _numbers(axes, x, 96, np.outer(k, v), INK)
        _numbers(axes, side, 96, k[:, None], KEY)
        for middle in (x + 34, side + 17):
            arrow(axes, (middle, 168), (middle, 222), GOOD, 3)
            text(axes, middle + 18, 192, "+", 24, GOOD, "bold")
        _numbers(axes, x, 226, S, GOOD)
        _numbers(axes, side, 226, z[:, None], GOOD)
        text(axes, x + 34, 314, "S: d × d", 19, GOOD, "bold")
        text(axes, side + 17, 314, "z: d", 19, GOOD, "bold")
        if number < len(SUMS) - 1:
            arrow(axes, (side + 40, 260), (left + pitch + 92, 260), GOOD, 3)
        text(axes, x - 68, 367, "φ(q)", 19, QUERY, "bold")
        _numbers(axes, x - 40, 350, q, QUERY)
        text(axes, x + 35, 367, f"·S = {upper.tolist()}", 18, align="left")
        text(axes, x + 35, 402, f"·z = {lower}", 18, align="left")
        text(axes, left + panel / 2, 444, "new = [" + ", ".join(f"{x / lower:.2f}" for x in upper) + "]", 20, VALUE,
             "bold")
    return axes


def heads():
    axes = card(440)
    size, pitch = 28, 34
    for number, (name, shared) in enumerate(SHARED):
        left = 10 + 315 * number
        begin = left + 155 - (HEADS - 1) * pitch / 2
        xs = [begin + i * pitch for i in range(HEADS)]
        group = HEADS // shared
        box(axes, left + 155, 220, 310, 424, fill=BAND, edge="none", corner=10)
        text(axes, left + 155, 34, f"{name} ({name[0].upper()}{name.split('-')[1][0].upper()}A)", 18, INK, "bold")
        text(axes, left + 155, 66, f"{HEADS} query heads", 16, QUERY, "bold")
        for x in xs:
            box(axes, x, 100, size, size, QUERY, "q", 16)
        for h in range(shared):
            at = sum(xs[h * group:(h + 1) * group]) / group
            for x in xs[h * group:(h + 1) * group]:
                path(axes, (at, 209), (x, 116), color=INK, line=1.6, head=False)
            box(axes, at, 224, size, size, KEY, "k", 16)
            box(axes, at, 256, size, size, VALUE, "v", 16)
        text(axes, left + 155, 292, f"{shared} key/value head{'s' * (shared > 1)}", 16, INK, "bold")
        width = (HEADS - 1) * pitch + size
        x, y = left + 155 - width / 2, 346
        box(axes, left + 155, y, width, 34, RULE, fill=PAPER, corner=2, line=1.4, dashed=True)
        part = width / group
        box(axes, x + part / 2, y, part, 34, INK, fill=PAPER, corner=2, line=1.8)
        for offset in np.arange(8, part + 34, 8):
            low, high = max(0, offset - part), min(34, offset)
            path(axes, (x + offset - low, y - 17 + low), (x + offset - high, y - 17 + high), color=INK, line=1.2,
                 head=False)
        text(axes, left + 155, 396, f"cache: {1 if group == 1 else f'1/{group}'}", 20, INK if group == 1 else GOOD,
             "bold")
    return axes


def choice():
    axes = card(480)
    left, wide, right = 18, 344, 700
    for number, (y, question, answer, note) in enumerate((
            (54, "Is SDPA fast enough,\nand does the cache fit?", "take it: exact, no n × n memory",
             "measured at your length, on your machine"),
            (164, "Can n be smaller?", "fewer tokens: images in patches",
             "196 patches, not 150,528 numbers; then SDPA")), 1):
        middle = left + wide / 2
        box(axes, middle, y, wide, 68, fill=PAPER, line=2.4)
        disc(axes, left + 30, y, str(number), radius=15, size=18, fill=INK, text_color=PAPER, weight="bold")
        for row, words in enumerate(question.split("\n")):
            text(axes, left + 56, y + 25 * (row - question.count("\n") / 2), words, 21, INK, "bold", "left")
        arrow(axes, (left + wide + 2, y), (right - 242, y), GOOD, 3)
        text(axes, (left + wide + right - 246) / 2, y - 16, "yes", 19, GOOD, "bold")
        box(axes, right, y, 484, 80, GOOD, line=2.6)
        text(axes, right, y - 15, answer, 21, INK, "bold")
        text(axes, right, y + 17, note, 18)
        end = (129, 241)[number - 1]
        arrow(axes, (middle, y + 35), (middle, end), BAD, 3)
        text(axes, middle + 14, (y + 35 + end) / 2 - 2, "no", 19, BAD, "bold", "left")
    cards = ((("time, when", "generating text"),
              ("fewer KV heads;", "leave out or sum", "up in most layers,", "not in all")),
             (("time, when reading", "a document"), ("windows, and", "a few full layers", "or global tokens")),
             (("memory, when", "generating text"),
              ("fewer bytes", "per number; fewer", "KV heads or latents;", "windows")),
             (("unbounded", "streams"),
              ("a window's cache", "and the first tokens,", "or a linear state:", "both forget")))
    bar = 246
    box(axes, 480, 356, 944, 228, fill=BAND, edge="none", corner=10)
    disc(axes, left + 30, bar + 22, "3", radius=15, size=18, fill=INK, text_color=PAPER, weight="bold")
    text(axes, left + 56, bar + 22, "What is too much?", 21, INK, "bold", "left")
    text(axes, 942, bar + 22, "all but fewer bytes: a model of its own, trained that way", 17, MUTED, align="right")
    for number, (what, answers) in enumerate(cards):
        x = 129 + 234 * number
        for row, words in enumerate(what):
            text(axes, x, 302 + 24 * row, words, 18, INK, "bold")
        box(axes, x, 405, 222, 114, GOOD, line=2.6)
        for row, words in enumerate(answers):
            text(axes, x, 405 + 26 * (row - (len(answers) - 1) / 2), words, 18)
    return axes


def memory():
    axes = card(424)
    rows = {"arithmetic": (36, 56), "sram": (132, 116), "hbm": (304, 208)}
    for y, high in rows.values():
        box(axes, 480, y, 944, high, fill=BAND, edge="none", corner=10)
    for name, title, size, speed in (("sram", "on the chip (SRAM)", "108 × 192 KB", "19 TB/s"),
                                     ("hbm", "GPU memory (HBM)", "40 GB", "1.5 TB/s")):
        y = rows[name][0]
        text(axes, 26, y - 22, title, 19, INK, "bold", "left")
        text(axes, 26, y + 8, size, 19, align="left")
        text(axes, 26, y + 38, speed, 19, GOOD if name == "sram" else BAD, "bold", "left")
    text(axes, 26, 36, "A100: arithmetic", 19, INK, "bold", "left")
    for middle, title, color in ((448, "the textbook", BAD), (790, "in tiles", GOOD)):
        text(axes, middle, 36, title, 21, color, "bold")
    for left in (262, 636):
        path(axes, (left, 18), (left, 398), color=RULE, line=1.4, head=False)
    for x, label, color in ((292, "Q", QUERY), (334, "K", KEY), (376, "V", VALUE)):
        for shift in (0, 378):
            box(axes, x + shift, 294, 30, 120, color, label, 19, weight="bold")
            again = shift and label != "Q"                                  # for each block of queries
            for beside in (-11, 0, 11) if again else (0,):
                arrow(axes, (x + shift + beside, 230), (x + shift + beside, 192), GOOD, 2 if again else 3)
    box(axes, 482, 294, 132, 132, BAD, line=3, fill=tint(BAD, 0.3))
    text(axes, 482, 284, "n × n", 21, INK, "bold")
    text(axes, 482, 310, "scores", 18)
    for x, up in ((442, False), (468, True), (496, False), (522, True)):
        arrow(axes, (x, 222 if up else 172), (x, 172 if up else 222), BAD, 3)
    text(axes, 448, 104, "the matrix is written and read,", 18, BAD, "bold")
    text(axes, 448, 130, "twice, in the slow memory", 18, BAD, "bold")
    for x in (594, 828):
        box(axes, x, 294, 30, 120, INK, "O", 19, fill=PAPER, weight="bold")
        arrow(axes, (x, 192), (x, 230), GOOD, 3)
    box(axes, 702, 132, 72, 72, GOOD, line=3)
    text(axes, 702, 122, "a few", 18, INK, "bold")
    text(axes, 702, 146, "tiles", 18, INK, "bold")
    box(axes, 800, 132, 96, 72, INK, fill=PAPER)
    text(axes, 800, 122, "running", 18, INK, "bold")
    text(axes, 800, 146, "sums", 18, INK, "bold")
    text(axes, 896, 284, "no", 19, GOOD, "bold")
    text(axes, 896, 310, "matrix", 19, GOOD, "bold")
    text(axes, 448, 386, "n = 80,000: 25.6 GB per head", 18)
    text(axes, 790, 386, "a tile of 128 × 128: 64 KiB", 18)
    return axes
