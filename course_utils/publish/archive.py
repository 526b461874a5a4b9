"""The course as one file to take home: what is needed to install it and to run its notebooks."""

import zipfile
from pathlib import Path

from ..course import numbered, replace_file

NAME = "attention-course"
FOLDERS = ("course_utils", "experiments", "figures", "hub")       # without tests
ENDINGS = {"", ".cff", ".css", ".ini", ".j2", ".js", ".json", ".lock", ".md", ".png", ".py", ".safetensors", ".svg",
           ".toml", ".tsv", ".txt", ".yml"}
TOP = ("*.cff", "*.md", "LICENSE*", "environment.yml", "pyproject.toml", "requirements.lock")


def content(root: Path) -> list[Path]:
    """The files that go into the archive, as paths below the course's folder; a reader's own notebooks do not."""
    found = [*numbered(root), *(path for pattern in TOP for path in root.glob(pattern))]
    found += [path for folder in FOLDERS for path in root.joinpath(folder).rglob("*")
              if path.is_file() and path.suffix in ENDINGS]
    return sorted(path for path in (path.relative_to(root) for path in found)
                  if not any(part.startswith((".", "__pycache__")) for part in path.parts))


def write(root: Path, file: Path) -> None:
    """Write it; the same files always give the same bytes. They lie in one folder, which pip takes for a package."""
    with replace_file(file, "wb") as target, zipfile.ZipFile(target, "w") as archive:
        for path in content(root):
            entry = zipfile.ZipInfo(f"{NAME}/{path.as_posix()}")
            archive.writestr(entry, root.joinpath(path).read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=9)
