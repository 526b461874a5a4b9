"""A notebook without SmolLM2's weights: cells that need them are passed over, all others run."""

from IPython import get_ipython

from ..gpt.smollm2 import installed

MARK = "# SmolLM2"
"""How a cell begins that needs the published weights."""


def skip_cells_without_weights() -> None:
    """From now on, skip the notebook's cells that begin with ``# SmolLM2`` if the weights are not installed.

    It says so, and what to type; all other cells run. With the weights, or outside a notebook, nothing changes.
    """
    shell = get_ipython()
    if shell is None or installed() is not None:
        return
    if not any(getattr(change, "__name__", "") == _pass_over.__name__ for change in shell.input_transformers_cleanup):
        shell.input_transformers_cleanup.append(_pass_over)
    print("SmolLM2-135M is not installed: the cells that need it are passed over. `course fetch` installs it (93 MB).")


def _pass_over(lines: list[str]) -> list[str]:
    first = next((line for line in lines if line.strip()), "")
    return ["print('passed over: it needs SmolLM2-135M, see the top')\n"] if first.startswith(MARK) else lines
