"""README as a front door: its three lines run, its pictures are small and there, its minutes are the notebooks'."""

import re
from urllib.parse import unquote

import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import BertPreTokenizer

from course_utils.course import course_root, numbered
from course_utils.publish.site import Entry

ROOT = course_root()
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_view_of_your_own_model_takes_the_three_lines_of_the_readme():
    lines = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(lines.splitlines()) == 3
    words = {word: i for i, word in enumerate(
        ["[UNK]", *"The animal did not cross because it was tired .".split()])}
    reader = Tokenizer(WordLevel(words, "[UNK]"))
    reader.pre_tokenizer = BertPreTokenizer()
    torch.manual_seed(0)
    sizes = dict(vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=32, attn_implementation="eager")
    scope = {"tokenizer": transformers.PreTrainedTokenizerFast(tokenizer_object=reader, unk_token="[UNK]"),
             "model": transformers.BertModel(transformers.BertConfig(**sizes)).eval()}
    *first, last = lines.splitlines()
    exec("\n".join(first), scope)
    view = eval(last, scope)
    assert view.columns == tuple("The animal did not cross because it was tired .".split())
    assert view.weights.shape == (2, 2, 10, 10)


def test_every_file_that_is_linked_is_there():
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", README) if not link.startswith("http")]
    assert len(links) > 40
    assert [link for link in links if not (ROOT / unquote(link.split("#")[0])).exists()] == []


def test_three_pictures_are_small_and_have_words():
    pictures = re.findall(r"!\[([^\]]+)\]\((figures/readme_\w+\.png)\)", README)
    assert len(pictures) == 3
    for words, path in pictures:
        assert len(words) > 60
        assert (ROOT / path).stat().st_size < 80_000
        with Image.open(ROOT / path) as picture:
            assert picture.width >= 900


def test_the_slide_among_them_is_one_of_the_lesson():
    lesson, title = re.search(r'^LESSON, SLIDE = "(.+?)", "(.+)"$', (ROOT / "figures" / "screenshots.py").read_text(
        encoding="utf-8"), re.MULTILINE).groups()
    assert f'"### {title}' in (ROOT / "notebooks" / f"{lesson}.ipynb").read_text(encoding="utf-8")


def test_the_table_has_every_notebook_with_its_minutes():
    for entry in map(Entry, numbered(ROOT)):
        minutes = entry.minutes or 15
        path = entry.path.relative_to(ROOT).as_posix()
        row, = (line for line in README.splitlines() if line.startswith("|") and f"]({path})" in line)
        if entry.slides:
            assert f"| {entry.question} | {minutes} |" in row
        else:
            assert f"]({path}) {minutes}" in row


def test_lab_opens_the_first_lesson():
    assert numbered(ROOT)[0].name == "00_start_here.ipynb"
