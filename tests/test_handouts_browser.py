"""A handout, opened in JupyterLab as a student opens it."""

from browser import visit
from nbformat.v4 import new_notebook

from course_utils.course import course_root
from course_utils.publish.handouts import handout
from course_utils.publish.notebooks import METADATA, read, write

NOTEBOOK = course_root() / "notebooks" / "02_bahdanau_attention.ipynb"


def test_a_handout_shows_every_picture_and_a_widget(jupyter, lab):
    """The text cells of lesson 02 that have pictures, and its first attention view."""
    address, folder, notary = jupyter
    whole = handout(read(NOTEBOOK), NOTEBOOK.parent)
    pictures = [cell for cell in whole.cells if cell.cell_type == "markdown" and "](data:image" in cell.source]
    view = next(cell for cell in whole.cells if cell.cell_type == "code" and "AttentionView(" in cell.source)
    assert len(pictures) >= 3
    file = folder / "02_handout.ipynb"
    write(new_notebook(cells=[*pictures, view], metadata=METADATA), file)
    notary.sign(read(file))                            # `course lab` signs handouts/
    visit(lab, jupyter, "lab/tree", file.name)
    shown = lab.locator(".jp-MarkdownOutput img")
    shown.nth(len(pictures) - 1).wait_for()
    assert shown.count() == len(pictures)
    for number in range(len(pictures)):
        shown.nth(number).scroll_into_view_if_needed()
        assert shown.nth(number).evaluate("e => e.decode().then(() => e.naturalWidth)") > 0
    lab.locator(".jp-OutputArea .attention-view canvas").first.wait_for()
