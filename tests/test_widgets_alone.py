"""The widgets without the rest: no course, no torch, or a model of somebody else."""

import re
import subprocess
import sys
import tomllib

import pytest

from course_utils.course import course_root

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch" or name == "course_utils.plotting":
            raise ModuleNotFoundError(f"{name} is blocked here")

sys.meta_path.insert(0, Blocked())
"""


def run(code: str, blocked: str = BLOCKED) -> str:
    done = subprocess.run([sys.executable, "-c", blocked + code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_widgets_need_neither_torch_nor_the_course():
    printed = run("""
import numpy as np
from course_utils.widgets import AttentionView
view = AttentionView(np.full((2, 2), 0.5), ["le", "chat"], ["the", "cat"])
assert "<script>" in view.to_html()
print(view, *sorted(name for name in sys.modules if name.startswith("course_utils") and ".widgets" not in name))
""")
    assert printed.strip() == "AttentionView(layers=1, heads=1, queries=2, keys=2) course_utils"


@pytest.mark.parametrize("room", ["widgets", "claims"])
def test_a_room_is_imported_without_pyplot(room):
    """It takes most of the time, and only a plot of one's own needs it."""
    assert run(f"import course_utils.{room}\nprint('matplotlib.pyplot' in sys.modules)") == "False\n"


def test_the_two_lines_of_the_readme_bring_all_that_the_view_needs():
    readme = (course_root() / "README.md").read_text(encoding="utf-8")
    named, = re.findall(r"^pip install ([\w ]+)\npip install --no-deps \.$", readme, re.MULTILINE)
    needed = {*named.split(), "ipywidgets", "numpy"}  # which those two bring
    course = tomllib.loads((course_root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    without = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in course} - needed
    code = BLOCKED.replace('== "torch"', f"in {sorted(without)}")
    assert len(without) > 15
    run("import numpy\nfrom course_utils.widgets import AttentionView\n"
        "AttentionView(numpy.eye(2), ['a', 'b']).to_html()", code)


def test_the_block_blocks():
    with pytest.raises(AssertionError, match="torch is blocked here"):
        run("import torch")


def test_somebody_else_s_model_takes_three_lines():
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    sizes = dict(vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32)
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(**sizes, attn_implementation="eager")).eval()
    ids, tokens = torch.tensor([[2, 17, 9, 3]]), ["[CLS]", "small", "cats", "[SEP]"]

    from course_utils.widgets import AttentionView
    outputs = model(ids, output_attentions=True)
    view = AttentionView(outputs, tokens)

    assert view.weights.shape == (3, 2, 4, 4)
    assert view.columns == tuple(tokens)
    assert abs(view.weights[1, 0] - outputs.attentions[1][0, 0].detach().numpy()).max() == 0


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float64"])
def test_tensors_of_every_type_and_with_a_gradient_are_read(kind):
    torch = pytest.importorskip("torch")
    from course_utils.widgets import AttentionView
    weights = torch.tensor([[0.5, 0.5], [0.25, 0.75]], dtype=getattr(torch, kind), requires_grad=True)
    assert AttentionView(weights, ["a", "b"]).weights[0, 0].tolist() == [[0.5, 0.5], [0.25, 0.75]]
