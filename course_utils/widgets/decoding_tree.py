"""The decoding tree: a beam search, one word at a time, with what it kept and what it gave up."""

import math
from collections.abc import Mapping
from numbers import Real

import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from .base import CourseWidget, check_index
from .colours import BAD, GOOD, INK, MUTED, PAPER
from .still import paper

NEEDED = ("id", "parent", "word", "log_prob", "score", "step", "kept", "finished", "greedy")
SAMPLING = {"temperature": "temperature", "top_k": "top-k", "top_p": "top-p"}


class DecodingTree(CourseWidget):
    """A beam search as a tree that grows with every step; a column is a step, the most probable path on top.

    Left and right (or the buttons) go through the steps, Home and End to the first and the last; up and down choose
    a node of the step, as the pointer does; Escape leaves. Python sees the same, and can set it::

        tree = beam_tree(model, source, vocab, beam=4)      # course_utils.beam_tree
        view = DecodingTree(tree)
        view                                    # the last line of a cell shows it
        view.step = 3                           # three words
        view.path                               # the words up to the selected node

    Args:
        tree: with ``nodes`` and ``best``, a node's id, as `course_utils.beam_tree.beam_tree` returns it; this and its
            nodes are NamedTuples or mappings with the fields of `course_utils.beam_tree.Node`. ``sampled`` may be
            missing from the nodes. ``"sampling"``, if there is one, says in the legend how samples were drawn:
            ``{"temperature": 0.8, "top_k": 5, "top_p": 0.9}``, of which any may be missing or ``None``.
        step: how many words are shown first. Default: all.
        node: the node selected first. Default: the best hypothesis; before the last step the one that leads.
        title: a line above the view. Default: none.

    Attributes:
        step, node, title: two-way; set them from Python, or observe them. The selected node is always one that is
            shown: a node further on takes the step along, and a smaller step moves the selection.
        tree: as given (read only).

    Raises:
        ValueError: for a tree that is not one (says which node and why), or other names in ``"sampling"``.
        traitlets.TraitError: for a step or node that does not exist.
    """

    _widget = "DecodingTree"
    _files = "decoding_tree"
    _names = ("_content", "step", "node", "title")

    _content = traitlets.Dict().tag(sync=True)  # the tree, each node with its `row` in the column of its step
    step = traitlets.Int().tag(sync=True)
    node = traitlets.Int().tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, tree: Mapping, step: int | None = None, node: int | None = None, title: str = ""):
        content = _content(tree)
        nodes, last = content["nodes"], _last(content)
        step = check_index("step", last if step is None else step, last + 1)
        node = check_index("node", _leader(content, step) if node is None else node, len(nodes))
        super().__init__(_content=content, step=max(step, nodes[node]["step"]), node=node, title=title)

    @property
    def tree(self) -> dict:
        """The tree."""
        nodes = [{name: value for name, value in node.items() if name != "row"} for node in self._content["nodes"]]
        return self._content | {"nodes": nodes}

    @property
    def path(self) -> tuple[str, ...]:
        """The words from the root, which is left out, to the selected node."""
        return tuple(_words(self._content["nodes"], self.node))

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        return check_index("step", proposal["value"], _last(self._content) + 1)

    @traitlets.validate("node")
    def _node_exists(self, proposal):
        return check_index("node", proposal["value"], len(self._content["nodes"]))

    @traitlets.observe("step")
    def _selection_is_shown(self, change):
        if self._content["nodes"][self.node]["step"] > self.step:
            self.node = _leader(self._content, self.step)

    @traitlets.observe("node")
    def _step_is_far_enough(self, change):
        self.step = max(self.step, self._content["nodes"][self.node]["step"])

    def __repr__(self) -> str:
        return f"DecodingTree(steps={_last(self._content)}, nodes={len(self._content['nodes'])})"

    def figure(self) -> Figure:
        """The tree as far as it is shown, as a matplotlib figure for print."""
        return _figure(self._content, self.step)

    def _export_state(self) -> dict:
        rounded = [node | {name: round(node[name], 9) for name in ("log_prob", "score")}
                   for node in self._content["nodes"]]
        return super()._export_state() | {"_content": self._content | {"nodes": rounded}}

    def _in_words(self) -> str:
        nodes, best = self._content["nodes"], self._content["best"]
        steps = f"{self.step} of {_last(self._content)} steps"
        drawn = f" Samples: {_drawn(self._content)}." if _drawn(self._content) else ""
        lines = [f"{self._lead}beam search, {steps}, {len(nodes)} nodes.{drawn} Outputs by score:"]
        for end in _ends(self._content, self.step):
            node = nodes[end]
            marks = [name for name, there in (("best", end == best), ("greedy", node["greedy"]),
                                              (f"sampled ×{node['sampled']}", node["sampled"]),
                                              ("not in the beam", not node["kept"])) if there]
            lines.append(f"{nodes[end]['score']:.2f} (log p {nodes[end]['log_prob']:.2f}) "
                         f"{' '.join(_words(nodes, end))}{' · ' if marks else ''}{', '.join(marks)}")
        return "\n".join(lines)


def _content(tree: Mapping) -> dict:
    """Check a tree, and give every node its row: those of the beam first, then by log-probability."""
    tree = _fields(tree)
    if not isinstance(tree, Mapping) or not {"nodes", "best"} <= set(tree) or not tree["nodes"]:
        raise ValueError('the tree is not {"nodes": [...], "best": id} with at least one node; '
                         "course_utils.beam_tree.beam_tree(model, source, vocab) makes one.")
    nodes: list[dict] = []
    for i, given in enumerate(map(_fields, tree["nodes"])):
        missing = [name for name in NEEDED if name not in given]
        if missing:
            raise ValueError(f"node {i} has no {', '.join(missing)}; a node has {', '.join(NEEDED)}.")
        if given["id"] != i:
            raise ValueError(f"node {i} has the id {given['id']!r}; ids count from 0 in the order of the list.")
        parent = given["parent"]
        if (parent is None) != (i == 0) or (i > 0 and not 0 <= parent < i):
            raise ValueError(f"node {i} has the parent {parent!r}; the first node has None, every other one an "
                             f"earlier node.")
        step = 0 if i == 0 else nodes[parent]["step"] + 1
        if given["step"] != step:
            raise ValueError(f"node {i} is at step {given['step']}, but the path to it has {step} words.")
        if not (math.isfinite(given["log_prob"]) and math.isfinite(given["score"])):
            raise ValueError(f"node {i} has log_prob {given['log_prob']} and score {given['score']}; expected "
                             f"finite numbers.")
        nodes.append({"sampled": 0} | {name: given[name] for name in (*NEEDED, "sampled") if name in given}
                     | {"word": str(given["word"])})
    if not 0 <= tree["best"] < len(nodes):
        raise ValueError(f"best is {tree['best']!r}, but there are {len(nodes)} nodes: 0 to {len(nodes) - 1}.")
    used: dict[int, int] = {}
    for node in sorted(nodes, key=lambda node: (not node["kept"], -node["log_prob"])):
        node["row"] = used.get(node["step"], 0)
        used[node["step"]] = node["row"] + 1
    content = {"nodes": nodes, "best": int(tree["best"])}
    return content | {"sampling": _sampling(tree["sampling"])} if tree.get("sampling") is not None else content


def _fields(value):
    """A NamedTuple as a mapping; anything else as it is."""
    return value._asdict() if hasattr(value, "_asdict") else value


def _sampling(given: Mapping) -> dict:
    """How samples were drawn, without what was left at its default."""
    known = isinstance(given, Mapping) and set(given) <= set(SAMPLING)
    if not known or not all(value is None or isinstance(value, Real) for value in given.values()):
        raise ValueError(f"the tree's sampling is {given!r:.80}; expected numbers named temperature, top_k and top_p, "
                         "as course_utils.decoding.sample takes them.")
    return {name: float(given[name]) for name in SAMPLING if given.get(name) is not None}


def _drawn(content: dict) -> str:
    """How samples were drawn, in words; empty if there are none, or nobody said it."""
    if not any(node["sampled"] for node in content["nodes"]):
        return ""
    return ", ".join(f"{SAMPLING[name]} {value:g}" for name, value in content.get("sampling", {}).items())


def _last(content: dict) -> int:
    """The last step."""
    return max(node["step"] for node in content["nodes"])


def _leader(content: dict, step: int) -> int:
    """The node that a step selects: its first, and at the last step the best hypothesis."""
    if step == _last(content):
        return content["best"]
    return next(node["id"] for node in content["nodes"] if node["step"] == step and node["row"] == 0)


def _ends(content: dict, step: int) -> list[int]:
    """The outputs complete at this step, best score first: leaves of the beam, of greedy decoding, of samples."""
    nodes = content["nodes"]
    parents = {node["parent"] for node in nodes}
    last_of_beam = max(node["step"] for node in nodes if node["kept"])
    ends = [node for node in nodes if node["step"] <= step and node["id"] not in parents and (
        node["kept"] and (node["finished"] or node["step"] == last_of_beam) or node["greedy"] or node["sampled"])]
    return [node["id"] for node in sorted(ends, key=lambda node: -node["score"])]


def _words(nodes: list[dict], node: int) -> list[str]:
    words = []
    while nodes[node]["parent"] is not None:
        words.insert(0, nodes[node]["word"])
        node = nodes[node]["parent"]
    return words


# --- the still picture ---

PITCH_X, PITCH_Y, WIDTH, HEIGHT = 98, 42, 78, 34  # pixels
DASHED = (0, (3, 2))


def _figure(content: dict, step: int) -> Figure:
    nodes, best = content["nodes"], content["best"]
    shown = [node for node in nodes if node["step"] <= step]
    winning, here = set(), best if step == _last(content) else None
    while here is not None:
        winning.add(here)
        here = nodes[here]["parent"]
    across = max(620, PITCH_X * (1 + _last(content)))
    sampled = any(node["sampled"] for node in nodes)
    below = PITCH_Y * (1 + max(node["row"] for node in nodes))
    down = below + 40 + 17 * sampled
    figure = paper(across / 100, down / 100, layout="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-WIDTH / 2 - 10, across - WIDTH / 2 - 10), ylim=(down - PITCH_Y / 2, -PITCH_Y / 2))
    axes.set_axis_off()

    for node in shown[1:]:
        _draw_edge(axes, nodes[node["parent"]], node, node["id"] in winning)
    for node in shown:
        _draw_node(axes, node, node["id"] in winning)
    notes = ["log-probability of the path · dashed: pruned · double: ended · g, red dashes: greedy"]
    notes += [f"×1, dots: sampled{': ' * bool(_drawn(content))}{_drawn(content)}"] if sampled else []
    notes += [f"best (green): {' '.join(_words(nodes, best))}"] if winning else []
    for line, note in enumerate(notes):
        axes.text(-WIDTH / 2 - 4, below - 11 + 17 * line, note, fontsize=8, color=MUTED, va="center",
                  parse_math=False)
    return figure


def _middle(node: dict) -> tuple[int, int]:
    return node["step"] * PITCH_X, node["row"] * PITCH_Y


def _draw_edge(axes: Axes, parent: dict, node: dict, won: bool) -> None:
    """The wider, the more probable the word is after its parent."""
    (x, y), (u, v) = _middle(parent), _middle(node)
    across, share = [x + WIDTH / 2, u - WIDTH / 2], math.exp(min(0.0, node["log_prob"] - parent["log_prob"]))
    colour = GOOD if won else INK if node["kept"] else "#B6BCC6"
    axes.plot(across, [y, v], color=colour, linewidth=0.5 + 3 * share, zorder=1)
    if node["greedy"]:
        axes.plot(across, [y, v], color=PAPER, linewidth=3.4, zorder=1)
        axes.plot(across, [y, v], color=BAD, linewidth=1.6, linestyle=DASHED, zorder=1)
    if node["sampled"]:  # below the edge, which may be greedy's, too
        axes.plot(across, [y + 4, v + 4], color=INK, linewidth=1.6, linestyle=":", zorder=1)


def _draw_node(axes: Axes, node: dict, won: bool) -> None:
    """A box with the word and its path's log-probability, and by whom it was chosen."""
    (x, y), edge = _middle(node), GOOD if won else INK if node["kept"] else MUTED
    axes.add_patch(FancyBboxPatch(
        (x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, boxstyle="round,pad=0,rounding_size=5", zorder=2,
        facecolor="#EAF6F1" if won else PAPER, edgecolor=edge, linewidth=1.8 if won else 1.0,
        linestyle="-" if node["kept"] else DASHED))
    if node["finished"]:
        axes.add_patch(FancyBboxPatch(
            (x - WIDTH / 2 + 3, y - HEIGHT / 2 + 3), WIDTH - 6, HEIGHT - 6, zorder=2, fill=False, linewidth=0.8,
            boxstyle="round,pad=0,rounding_size=3", edgecolor=edge))
    text = {"ha": "center", "va": "center", "zorder": 3, "parse_math": False, "color": INK if node["kept"] else MUTED}
    word = node["word"] if len(node["word"]) <= 10 else node["word"][:9] + "…"
    axes.text(x, y - 6, word, fontsize=8.5, fontweight="bold" if node["kept"] else "normal", **text)
    if node["parent"] is None:
        return
    axes.text(x, y + 8, f"{node['log_prob']:.2f}".replace("-", "−"), fontsize=7.5, **text)
    above, strong = y - HEIGHT / 2 + 7, {**text, "fontsize": 8, "fontweight": "bold"}
    if node["greedy"]:
        axes.text(x - WIDTH / 2 + 7, above, "g", **strong | {"color": BAD})
    if node["sampled"]:
        axes.text(x + WIDTH / 2 - 11, above, f"×{node['sampled']}", **strong | {"color": INK})
