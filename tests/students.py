"""What could be read in a student's file, and what may not stand there."""

from course_utils.publish.notebooks import tags


def text(notebook):
    """All that a reader of the file could find, outputs too."""
    return "\n".join([f"{cell.source}\n{cell.get('outputs')}" for cell in notebook.cells])


def secret_lines(notebook):
    """The lines of code that stand in solutions only."""
    lines = {kind: {line.strip() for cell in notebook.cells if cell.cell_type == "code"
                    and ("solution" in tags(cell)) is kind for line in cell.source.splitlines()}
             for kind in (True, False)}
    return {line for line in lines[True] - lines[False] if line and line != "# Solution" and "check(" not in line}
