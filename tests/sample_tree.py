"""A small beam search, written down by hand."""

import math

ALPHA = 1.0
# parent, word, its probability, marks: k(ept), f(inished), g(reedy); a number: so many samples
NODES = [
    (None, "<bos>", 1.0, "kg2"),
    (0, "a", 0.5, "kg"), (0, "b", 0.4, "k"), (0, "c", 0.1, "2"),
    (2, "x", 0.9, "k"), (1, "x", 0.4, "kg"), (1, "y", 0.35, ""), (3, "z", 0.2, "1"), (3, "<eos>", 0.1, "f1"),
    (4, "<eos>", 1.0, "kf"), (5, "y", 0.7, "kg"), (7, "<eos>", 0.5, "f1"),
    (10, "<eos>", 0.5, "kfg"), (10, "z", 0.3, ""),
]


def tree(best=9, **changes):
    """The tree above as ``beam_tree`` writes it; ``changes`` are ``{"n3": {...}}`` for node 3."""
    nodes = []
    for i, (parent, word, p, marks) in enumerate(NODES):
        above = nodes[parent] if i else {"step": -1, "log_prob": 0.0}
        step, log_prob = above["step"] + 1, above["log_prob"] + math.log(p)
        nodes.append({
            "id": i, "parent": parent, "word": word, "log_prob": log_prob,
            "score": log_prob / ((5 + step) / 6) ** ALPHA, "step": step, "kept": "k" in marks,
            "finished": "f" in marks, "greedy": "g" in marks, "sampled": int(marks.strip("kfg") or 0),
        } | changes.get(f"n{i}", {}))
    return {"nodes": nodes, "best": best}
