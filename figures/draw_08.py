"""The figures of lesson 08, beyond text. Each function returns a card, ``ALT`` says what it shows."""

from style import BAND, RULE, arrow, box, card, grid, path, text, text_width, tint

from course_utils.plotting import GOOD, INK, KEY, MUTED, PAPER, QUERY, VALUE

THREE = ("01111100", "00000110", "00000110", "00111100", "00000110", "00000110", "00000110", "01111100")
"""A digit of 8 by 8 pixels."""

FOUR = ("00001100", "00011000", "00110000", "01100110", "01111111", "00000110", "00000110", "00000110")
"""Another."""

PAINTED = ((0, 0, .3, .9, .8, .2, 0, 0), (0, 0, .2, .3, .9, .6, 0, 0), (0, 0, 0, 0, .8, .7, .1, 0),
           (0, 0, .1, .6, .9, .3, 0, 0), (0, 0, .1, .5, .8, .9, .2, 0), (0, 0, 0, 0, .1, .9, .5, 0),
           (0, .1, .1, .1, .3, .9, .4, 0), (0, .1, .7, .9, .8, .4, 0, 0))
"""One as a generator would paint it."""

LINES = (
    ("01", "One vector loses long sentences."),
    ("02", "So let the decoder look back: query, keys, values."),
    ("03", "Let every word ask every word. Repair what that breaks."),
    ("04", "Then recurrence can go: no step waits for another."),
    ("05", "Hide words and guess them. Then a few labels are enough."),
    ("06", "Exact attention costs n² time. Leave out, or sum up, and pay."),
    ("07", "Examples in the text say what is asked. No weight changes."),
    ("08", "Words were never needed: attention sees vectors. Test what it shows."),
)

ALT = {
    "08_vectors":
        "The same decoder reads two things. Above, lesson 02: the French words un chat noir go through a GRU, which "
        "leaves three vectors; the decoder attends to them and writes a black cat. Below, lesson 08: a picture of a "
        "three goes through a CNN, which leaves a grid of vectors, one per region; the same decoder attends to them "
        "and writes a three.",
    "08_patches":
        "A Vision Transformer. A digit of 8 by 8 pixels is cut into 16 patches of 2 by 2. Each patch becomes a vector "
        "by one linear map, and a position embedding is added. A class token stands in front. Two encoder layers of "
        "lesson 04 read the 17 vectors; the class token's last state gives the class, three.",
    "08_gan":
        "A GAN: two networks that play against each other. Noise and the word three go into the generator, which "
        "paints a picture of 8 by 8 pixels. The discriminator is given this picture and real pictures of a three, and "
        "gives each a score. It learns to score real pictures above 1 and painted ones below -1. The generator learns "
        "from its score: to be scored higher.",
    "08_flat":
        "The flat vector. 49 regions, each a vector of 96 numbers, are compressed to 8 numbers each. They stand side "
        "by side, 392 numbers, and are compressed to one vector of 96 numbers, which the decoder reads at every step.",
    "08_doors":
        "Two moves of the attention. In the sentence it stands on the word superb. Next door are the words on both "
        "sides, was and the. Far away are the same places in the next clause. In the scene it stands on a three. Next "
        "door are the empty regions around the three; the CNN's vector for one of them sees 18 by 18 pixels, the whole "
        "three among them. Far away are blank regions with no ink in what they see.",
    "08_course":
        "The course in eight lines. " + " ".join(f"{number}: {line}" for number, line in LINES),
}


def digit(axes, left, top, cell):
    grid(axes, left, top, [[int(bit) for bit in row] for row in THREE], INK, (cell, cell), 1.4)


def vectors():
    axes = card(420)
    for y, name in ((108, "lesson 02"), (312, "lesson 08")):
        box(axes, 480, y, 940, 190, fill=BAND, edge="none", corner=10)
        text(axes, 28, y - 74, name, 16, MUTED, "bold", "left")
        arrow(axes, (196, y), (226, y))
        arrow(axes, (354, y), (390, y))
        arrow(axes, (560, y), (606, y), QUERY, 2.6)
        box(axes, 696, y, 170, 96, fill=INK, label="", size=17)
        text(axes, 696, y - 16, "decoder", 20, PAPER, "bold")
        text(axes, 696, y + 16, "with attention", 17, PAPER)
        arrow(axes, (783, y), (808, y))
    for i, word in enumerate(("un", "chat", "noir")):
        text(axes, 118, 78 + 32 * i, word, 20)
        box(axes, 475, 78 + 32 * i, 150, 22, KEY, corner=4)
    box(axes, 290, 108, 120, 64, fill=PAPER, edge=INK, label="GRU", size=20)
    text(axes, 877, 108, "a black cat", 19, GOOD, "bold")
    digit(axes, 74, 268, 11)
    box(axes, 290, 312, 120, 64, fill=PAPER, edge=INK, label="CNN", size=20)
    for row in range(4):
        for column in range(4):
            box(axes, 412 + 42 * column, 264 + 32 * row, 36, 24, KEY, corner=4)
    text(axes, 877, 312, "a three", 19, GOOD, "bold")
    text(axes, 475, 30, "keys and values", 17, KEY, "bold")
    text(axes, 696, 210, "the same", 18, GOOD, "bold")
    return axes


def patches():
    axes = card(360)
    cell, left, top = 20, 30, 74
    digit(axes, left, top, cell)
    for i in range(5):
        arrow(axes, (left + 40 * i, top), (left + 40 * i, top + 160), KEY, 2.4, head=False)
        arrow(axes, (left, top + 40 * i), (left + 160, top + 40 * i), KEY, 2.4, head=False)
    text(axes, 110, 262, "16 patches of", 17)
    text(axes, 110, 286, "2 × 2 pixels", 17)
    arrow(axes, (204, 154), (240, 154))
    box(axes, 302, 154, 112, 74, fill=PAPER, edge=INK, label="", size=17)
    text(axes, 302, 142, "linear", 18)
    text(axes, 302, 166, "+ position", 17)
    arrow(axes, (362, 154), (398, 154))
    for i in range(6):
        y = 64 + 36 * i
        if i == 4:
            text(axes, 462, y, "…", 22, MUTED)
            continue
        box(axes, 462, y, 116, 26, QUERY if i == 0 else VALUE, corner=4,
            label="class token" if i == 0 else "16" if i == 5 else str(i), size=15)
    arrow(axes, (528, 154), (566, 154))
    for x in (620, 716):
        box(axes, x, 154, 84, 208, fill=INK, corner=8)
    for x in (620, 716):
        text(axes, x, 142, "encoder", 17, PAPER, "bold")
        text(axes, x, 166, "layer", 17, PAPER, "bold")
    text(axes, 668, 286, "lesson 04, unchanged", 17)
    arrow(axes, (760, 64), (800, 64), QUERY, 2.6)
    box(axes, 872, 64, 136, 44, fill=PAPER, edge=GOOD, label="three", size=20, weight="bold")
    text(axes, 872, 108, "the class token's", 16, MUTED)
    text(axes, 872, 130, "last state", 16, MUTED)
    text(axes, 462, 286, "17 vectors", 17)
    return axes


def gan():
    axes = card(350)
    for y, words in ((206, "noise"), (254, "“three”")):
        box(axes, 92, y, 120, 36, fill=BAND, edge="none", label=words, size=18)
        arrow(axes, (156, y), (188, 230))
    box(axes, 266, 230, 146, 84, fill=INK, label="generator", size=20, text_color=PAPER, weight="bold")
    arrow(axes, (343, 230), (382, 230))
    grid(axes, 392, 180, PAINTED, INK, (12, 12), 1.4)
    text(axes, 440, 296, "painted", 18)
    digit(axes, 392, 40, 12)
    text(axes, 440, 22, "real", 18)
    arrow(axes, (496, 88), (556, 130))
    arrow(axes, (496, 228), (556, 186))
    box(axes, 650, 158, 180, 84, fill=INK, label="discriminator", size=20, text_color=PAPER, weight="bold")
    arrow(axes, (744, 158), (784, 158))
    text(axes, 868, 128, "a score", 20, INK, "bold")
    text(axes, 868, 160, "real: above 1", 18, GOOD)
    text(axes, 868, 188, "painted: below −1", 18, MUTED)
    path(axes, (868, 206), (868, 330), (266, 330), (266, 276), dashed=True)
    text(axes, 680, 310, "learns to paint what scores higher", 18)
    return axes


def flat():
    axes = card(300)
    for row in range(7):
        for column in range(7):
            box(axes, 62 + 26 * column, 52 + 26 * row, 22, 22, KEY, corner=3)
    for x, width, label in ((314, 100, "96 → 8"), (676, 110, "392 → 96")):
        box(axes, x, 130, width, 60, fill=PAPER, edge=INK, label=label, size=19)
    arrow(axes, (238, 130), (258, 130))
    arrow(axes, (366, 130), (386, 130))
    for i in range(49):
        box(axes, 396 + 4.1 * i, 130, 3, 44, KEY, line=0.8, corner=1)
    arrow(axes, (599, 130), (619, 130))
    arrow(axes, (733, 130), (768, 130))
    box(axes, 790, 130, 26, 190, KEY, corner=6)
    arrow(axes, (806, 130), (838, 130))
    box(axes, 892, 130, 104, 76, fill=INK, label="decoder", size=20, text_color=PAPER, weight="bold")
    for x, words in ((140, "49 regions × 96"), (494, "49 × 8, side by side"), (790, "one vector, 96")):
        text(axes, x, 258, words, 20)
    return axes


def doors():
    axes = card(470)
    x = 24.0
    sentence = "it rained all day the soup was superb the menu was red they close at nine"
    for i, word in enumerate(sentence.split()):
        width = text_width(word, 18) + 14
        mark = {7: "its own", 6: "next", 8: "next", 10: "far", 12: "far"}.get(i)
        _marked(axes, x + width / 2, 40, width, 34, mark)
        text(axes, x + width / 2, 40, word, 18, INK, "bold" if i == 7 else "normal")
        x += width + 2
    left, top, side = 30, 86, 53
    three = [[int(bit) for bit in row] for row in THREE]
    four = [[int(bit) for bit in row] for row in FOUR]
    ink = {(y, x): {((corner_y + i) // 4, (corner_x + j) // 4) for i in range(8) for j in range(8) if digit[i][j]}
           for digit, corner_y, corner_x, y, x in ((three, 1, 1, 0, 0), (four, 3, 18, 0, 1))}
    own, other = ink[0, 0], ink[0, 1]

    def near(regions, by):
        return {(y, x) for y in range(7) for x in range(7) if any(abs(y - v) <= by >= abs(x - u) for v, u in regions)}

    box(axes, left + 3.5 * side, top + 3.5 * side, 7 * side, 7 * side, fill=PAPER, edge=RULE, corner=2)
    for y in range(7):
        for x in range(7):
            mark = ("its own" if (y, x) in own else None if (y, x) in other else "next" if (y, x) in near(own, 1) else
                    "far" if (y, x) not in near(own | other, 2) else None)
            _marked(axes, left + side * (x + 0.5), top + side * (y + 0.5), side - 4, side - 4, mark)
    for digit, corner_y, corner_x in ((three, 1, 1), (four, 3, 18)):
        for i in range(8):
            for j in range(8):
                if digit[i][j]:
                    box(axes, left + side / 4 * (corner_x + j + 0.5), top + side / 4 * (corner_y + i + 0.5), side / 4,
                        side / 4, fill=INK, edge=INK, line=0.4, corner=0.1)
    seen = left + side / 4 * 10, top + side / 4 * 10, side / 4 * 18, side / 4 * 18
    box(axes, *seen, fill="none", edge=VALUE, line=3.5, corner=2)
    box(axes, left + side * 2.5, top + side * 2.5, side - 4, side - 4, fill="none", edge=VALUE, line=3.5, corner=4)
    for y, mark, name, words in ((126, "its own", "its own place", "here most of the attention was"),
                                 (222, "next", "next door", "the words beside; empty regions around"),
                                 (318, "seen", "what the region in blue sees", "18 × 18 pixels"),
                                 (414, "far", "far away", "another clause; blank, far from all ink")):
        _marked(axes, 460, y, 44, 44, mark)
        text(axes, 500, y - 13, name, 22, INK, "bold", "left")
        text(axes, 500, y + 17, words, 20, INK, align="left")
    return axes


def _marked(axes, x, y, width, height, mark):
    """A place of the attention, of its neighbours, or far away; nothing for the others."""
    if mark == "its own":
        box(axes, x, y, width, height, KEY, corner=4)
    elif mark == "next":
        box(axes, x, y, width, height, fill=tint(INK, 0.3), edge=INK, corner=4)
    elif mark == "seen":
        box(axes, x, y, width, height, fill="none", edge=VALUE, line=3.5, corner=2)
    elif mark == "far":
        box(axes, x, y, width, height, fill=PAPER, edge=MUTED, dashed=True, corner=4)


def course():
    axes = card(470)
    for row, (number, line) in enumerate(LINES):
        y = 36 + 57 * row
        box(axes, 500, y, 900, 46, fill=BAND if row < 7 else PAPER, edge="none" if row < 7 else GOOD, corner=8)
        box(axes, 40, y, 52, 46, fill=INK, label=number, size=20, text_color=PAPER, weight="bold", corner=8)
        text(axes, 74, y, line, 21, INK, "bold" if row == 7 else "normal", "left")
        if row < 7:
            arrow(axes, (40, y + 24), (40, y + 33), RULE, head=False)
    return axes
