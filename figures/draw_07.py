"""The figures of lesson 07, after BERT. Each function returns a card, ``ALT`` says what it shows."""

from style import BAND, RULE, arrow, box, card, dashes, disc, path, text

from course_utils.plotting import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY, VALUE

EXAMPLES = (("big", "small"), ("up", "down"), ("early", "late"))
ASKED, ANSWER = "hot", "cold"

ALT = {
    "07_no_gradient":
        "Two ways to a task. Left, fine-tuning, lesson 05: labelled examples, big small, up down, early late, go "
        "through the network to a loss, and a gradient goes back and changes the weights. Right, examples in the "
        "prompt: the same examples and a question, hot, are one text; the network reads it once and writes cold. The "
        "weights stay as they are.",
    "07_layer":
        "A GPT's layer, drawn once, with the four parts that changed since 2018 numbered. The residual path runs from "
        "bottom to top. Beside it, norm, causal self-attention, norm, feed-forward network; the cross-attention of "
        "lesson 04 is left out. 1, both norms: LayerNorm became RMSNorm, without mean and bias. 2, the feed-forward "
        "network: two maps and a GELU became SwiGLU, three maps and a gate. 3, positions: from vectors added at the "
        "bottom to rotated queries and keys. 4, keys and values: from one pair of heads per query head to one pair "
        "for three query heads.",
}


def no_gradient():
    axes = card(430)
    for left, name, note in ((10, "Fine-tuning", "lesson 05"), (485, "Examples in the prompt", "this lesson")):
        box(axes, left + 232.5, 215, 465, 410, fill=BAND, edge="none", corner=10)
        text(axes, left + 20, 34, name, 20, INK, "bold", "left")
        text(axes, left + 446, 34, note, 15, MUTED, align="right")
    for row, (asked, answer) in enumerate(EXAMPLES):
        y = 112 + 62 * row
        box(axes, 78, y, 92, 40, fill=PAPER, edge=RULE, label=asked, size=18)
        box(axes, 408, y, 92, 40, fill=PAPER, edge=GOOD, label=answer, size=18)
    box(axes, 243, 174, 150, 170, fill=INK, label="network", size=19, text_color=PAPER)
    arrow(axes, (128, 174), (164, 174))
    arrow(axes, (320, 174), (358, 174))
    text(axes, 78, 76, "text", 15, MUTED)
    text(axes, 408, 76, "label", 15, MUTED)
    dashes(axes, (408, 262), (408, 322), (243, 322), (243, 264), color=BAD, line=2.6)
    text(axes, 326, 344, "loss, gradient", 17, BAD, "bold")
    text(axes, 243, 388, "The weights change, for each task anew.", 17)

    for row, (asked, answer) in enumerate((*EXAMPLES, (ASKED, ""))):
        y = 112 + 44 * row
        text(axes, 582, y, asked, 18, align="right")
        text(axes, 606, y, "→", 18, MUTED)
        text(axes, 630, y, answer, 18, GOOD, "bold", "left")
    box(axes, 604, 178, 176, 196, fill="none", edge=RULE)
    text(axes, 604, 62, "one text", 15, MUTED)
    box(axes, 778, 178, 118, 170, fill=INK, label="network", size=19, text_color=PAPER)
    arrow(axes, (692, 178), (714, 178))
    arrow(axes, (837, 178), (862, 178))
    box(axes, 903, 178, 76, 44, fill=PAPER, edge=GOOD, label=ANSWER, size=19, weight="bold")
    text(axes, 718, 322, "no loss, no gradient", 17, GOOD, "bold")
    text(axes, 718, 388, "The weights stay. Only the text says what is asked.", 17)
    return axes


def layer():
    axes = card(480)
    stream, beside, bottom, top = 90, 300, 446, 56
    box(axes, 232, 240, 444, 460, fill=BAND, edge="none", corner=10)
    text(axes, 26, 36, "A GPT's layer", 20, INK, "bold", "left")
    arrow(axes, (stream, bottom), (stream, top), GOOD, 4)
    text(axes, stream - 14, bottom - 8, "$x$", 22, align="right")
    for low, high, label, number in ((410, 328, "causal self-attention", 4), (154, 88, "feed-forward", 2)):
        path(axes, (stream, low), (beside - 66, low))
        box(axes, beside, low, 128, 34, BAD, "norm", 17, fill=PAPER)
        disc(axes, beside + 64, low - 17, "1", BAD, radius=13, size=17, fill=BAD, text_color=PAPER, weight="bold")
        if number == 2:
            arrow(axes, (beside, low - 18), (beside, high + 21))
        else:
            for at, letter, color in ((-60, "q", QUERY), (0, "k", KEY), (60, "v", VALUE)):
                path(axes, (beside, low - 18), (beside + at, low - 32), (beside + at, high + 20), color=color)
                text(axes, beside + at + 9, high + 37, letter, 16, color, "bold", "left")
        box(axes, beside, high, 220, 40, fill=INK, label=label, size=17, text_color=PAPER)
        disc(axes, beside + 110, high - 20, str(number), INK, radius=13, size=17, fill=PAPER, weight="bold")
        arrow(axes, (beside - 111, high), (stream + 15, high))
        disc(axes, stream, high, "+", GOOD, radius=13, size=19)
    disc(axes, beside - 110, 308, "3", INK, radius=13, size=17, fill=PAPER, weight="bold")
    box(axes, beside, 236, 220, 40, fill="none", edge=RULE, label="cross-attention", size=17, text_color=MUTED,
        dashed=True)
    path(axes, (beside - 110, 236), (beside + 110, 236), color=MUTED, head=False)
    text(axes, beside, 271, "left out: there is no source", 15, MUTED)

    text(axes, 640, 44, "2018", 18, MUTED, "bold")
    text(axes, 838, 44, "today", 18, INK, "bold")
    rows = (("1", "norm", "LayerNorm", "RMSNorm", "no mean, no bias"),
            ("2", "feed-forward", "two maps, GELU", "SwiGLU", "a gate: three maps"),
            ("3", "position", "a vector, added", "rotated q and k", "lesson 03"),
            ("4", "keys, values", "one per query head", "one for three", "lesson 06"))
    for row, (number, what, before, after, why) in enumerate(rows):
        y = 104 + 98 * row
        box(axes, 710, y, 480, 92, fill=PAPER, edge=RULE)
        disc(axes, 496, y - 22, number, INK, radius=13, size=17, fill=PAPER, weight="bold")
        text(axes, 518, y - 22, what, 17, INK, "bold", "left")
        text(axes, 640, y + 14, before, 17, MUTED)
        text(axes, 838, y - 8, after, 18, INK, "bold")
        text(axes, 838, y + 20, why, 15, MUTED)
        arrow(axes, (735, y + 12), (757, y + 2), MUTED)
    return axes
