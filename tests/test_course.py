"""The course's files are written whole or not at all."""

import pytest

from course_utils.course import replace_file


@pytest.mark.parametrize(("mode", "old", "new"), [("w", "été\n", "hiver\n"), ("wb", b"\x00", b"\x01\n")])
def test_a_file_is_replaced_in_one_step(tmp_path, mode, old, new):
    path, was = tmp_path / "made" / "a.txt", b""
    for content in (old, new):
        with replace_file(path, mode) as file:
            file.write(content)
            file.flush()
            assert not path.exists() or path.read_bytes() == was, "the name is given at the end"
        was = path.read_bytes()
        assert was == (content if mode == "wb" else content.encode("utf-8"))
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
def test_what_is_not_finished_leaves_the_old_file_and_no_rest(tmp_path, problem):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write():
        with replace_file(path) as file:
            file.write("half")
            raise problem

    with pytest.raises(problem):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
