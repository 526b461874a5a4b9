"""The figures of lesson 07, after BERT. Each function returns a card, ``ALT`` says what it shows."""

from style import BAND, RULE, arrow, box, card, dashes, disc, path, text

from course_utils.plotting import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY, VALUE

EXAMPLES = (("big", "small"), ("up", "down"), ("early", "late"))
ASKED, ANSWER = "hot", "?"

ALT = {
    "07_no_gradient":
        "Two ways to a task. Left, fine-tuning, lesson 05: labelled examples, big small, up down, early late, go "
        "through the network to a loss, and a gradient goes back and changes the weights. Right, examples in the "
        "prompt: the same examples and a question, hot, are one text; the network reads it once and writes what comes "
        "next, a question mark. The weights stay as they are.",
    "07_layer":
        "A GPT's layer, drawn once, with the four parts that changed since GPT-2 numbered. The residual path runs from "
        "bottom to top. Beside it, norm, causal self-attention, norm, feed-forward network; the cross-attention of "
        "lesson 04 is left out. 1, both norms: LayerNorm became RMSNorm, without mean and bias. 2, the feed-forward "
        "network: two linear layers and a GELU became SwiGLU, three linear layers, one of them a gate. 3, positions: "
        "from vectors added at the bottom to rotated queries and keys. 4, keys and values: from one pair of heads per "
        "query head to one pair per group of query heads, here three.",
    "07_induction":
        "How two layers look up what came next, and why one cannot. The text is A B, other tokens, A. Left, two "
        "layers, with the heads that we suspect: with head (16, 0) the place of B looks one back and keeps what it "
        "finds, B after A. With head (18, 6) the last A asks who stands after A; the key of B's place, after A, "
        "matches, and its value, B, is the answer. Right, one layer: the key of B's place knows only B. The question "
        "A finds the first A, whose value is A.",
}


def no_gradient():
    axes = card(430)
    for left, name, note in ((10, "Fine-tuning", "lesson 05"), (485, "Examples in the prompt", "this lesson")):
        box(axes, left + 232.5, 215, 465, 410, fill=BAND, edge="none", corner=10)
        text(axes, left + 20, 34, name, 20, INK, "bold", "left")
        text(axes, left + 446, 34, note, 18, MUTED, align="right")
    for row, (asked, answer) in enumerate(EXAMPLES):
        y = 112 + 62 * row
        box(axes, 78, y, 92, 40, fill=PAPER, edge=RULE, label=asked, size=21)
        box(axes, 408, y, 92, 40, fill=PAPER, edge=GOOD, label=answer, size=21)
    box(axes, 243, 174, 150, 170, fill=INK, label="network", size=21, text_color=PAPER)
    arrow(axes, (128, 174), (164, 174))
    arrow(axes, (320, 174), (358, 174))
    text(axes, 78, 76, "text", 18, MUTED)
    text(axes, 408, 76, "label", 18, MUTED)
    dashes(axes, (408, 262), (408, 322), (243, 322), (243, 264), color=BAD, line=2.6)
    text(axes, 326, 344, "loss, gradient", 19, BAD, "bold")
    text(axes, 243, 388, "The weights change, for each task.", 20)

    for row, (asked, answer) in enumerate((*EXAMPLES, (ASKED, ""))):
        y = 112 + 44 * row
        text(axes, 580, y, asked, 20, align="right")
        text(axes, 600, y, "→", 20, MUTED)
        text(axes, 618, y, answer, 20, GOOD, "bold", "left")
    box(axes, 604, 178, 176, 196, fill="none", edge=RULE)
    text(axes, 604, 62, "one text", 18, MUTED)
    box(axes, 778, 178, 118, 170, fill=INK, label="network", size=21, text_color=PAPER)
    arrow(axes, (692, 178), (714, 178))
    arrow(axes, (837, 178), (862, 178))
    box(axes, 903, 178, 76, 44, fill=PAPER, edge=GOOD, label=ANSWER, size=21, weight="bold")
    text(axes, 718, 322, "no loss, no gradient", 19, GOOD, "bold")
    text(axes, 718, 388, "The weights stay. The text says what is asked.", 19)
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

    text(axes, 640, 44, "GPT-2 (2019)", 18, MUTED, "bold")
    text(axes, 838, 44, "today", 18, INK, "bold")
    rows = (("1", "norm", "LayerNorm", "RMSNorm", "no mean, no bias"),
            ("2", "feed-forward", "GELU", "SwiGLU", "a gate: a third layer"),
            ("3", "position", "a vector, added", "rotated q and k", "lesson 03"),
            ("4", "keys, values", "one per query head", "one per group", "here of 3; lesson 06"))
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


def induction():
    axes = card(430)
    for left, width, name in ((10, 590, "Two layers"), (612, 338, "One layer")):
        box(axes, left + width / 2, 215, width, 410, fill=BAND, edge="none", corner=10)
        text(axes, left + 20, 36, name, 20, INK, "bold", "left")
    at, bottom, middle, top = (84, 232, 396, 520), 374, 244, 96

    for x, token in zip(at, "AB…A", strict=True):
        box(axes, x, bottom, 84, 44, fill=PAPER, edge=RULE, label=token, size=22, weight="bold")
        arrow(axes, (x, bottom - 23), (x, middle + 35), RULE)
    for x, token, after in zip(at, "AB…A", ("", "after A", "", "after …"), strict=True):
        found = after == "after A"
        box(axes, x, middle, 110, 66, fill=PAPER, edge=KEY if found else RULE, line=2.8 if found else 1.8)
        text(axes, x, middle - (13 if after else 0), token, 22, INK, "bold")
        text(axes, x, middle + 16, after, 18, KEY if found else MUTED, "bold" if found else "normal")
    path(axes, (106, bottom - 24), (189, middle + 36), color=VALUE, line=3)
    text(axes, 246, 302, "(16, 0):", 17, VALUE, "bold", "left")
    text(axes, 246, 326, "look one back", 17, VALUE, "bold", "left")

    path(axes, (500, middle - 34), (500, 182), (214, 182), (214, middle - 35), color=QUERY, line=3)
    text(axes, 262, 160, "(18, 6): who stands after A?", 17, QUERY, "bold", "left")
    path(axes, (250, middle - 34), (250, top), (472, top), color=VALUE, line=3)
    text(axes, 262, top - 20, "value: B", 17, VALUE, "bold", "left")
    box(axes, 520, top, 92, 48, fill=PAPER, edge=GOOD, label="B", size=24, weight="bold", line=2.8)
    arrow(axes, (553, middle - 34), (553, top + 26), RULE)

    at = (672, 744, 812, 888)
    for x, token in zip(at, "AB…A", strict=True):
        box(axes, x, bottom, 58, 44, fill=PAPER, edge=RULE, label=token, size=22, weight="bold")
    for x, key in zip(at[:2], "AB", strict=True):
        text(axes, x, bottom - 42, f"key: {key}", 17, KEY, "bold")
    path(axes, (888, bottom - 23), (888, 262), (672, 262), (672, bottom - 58), color=QUERY, line=3)
    text(axes, 780, 244, "query: A", 17, QUERY, "bold")
    box(axes, 888, 72, 58, 48, fill=PAPER, edge=BAD, label="?", size=24, weight="bold", line=2.8)
    text(axes, 781, 136, "A finds A, whose value is A.", 17)
    text(axes, 781, 170, "The key of B does not say", 17)
    text(axes, 781, 194, "that B stood after A.", 17)
    return axes
