"""Files published elsewhere: downloaded on request, checked, and cached."""

import hashlib
import os
import sys
from functools import lru_cache
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from platformdirs import user_cache_dir
from tqdm import tqdm

from ..course import replace_file, stamp

TIMEOUT = 20  # seconds without an answer or without more data


def read(name: str, base_url: str, sha256: str, offline: str) -> bytes:
    """The content of a file, downloaded if it is missing, and checked.

    A missing file is downloaded and kept in the user's cache folder. The environment variable ``COURSE_DATA`` names
    another folder, which may already hold the files.

    Args:
        name: of the file, in the folder and at the address.
        base_url: where the file is published; ends in a slash.
        sha256: the sum that the file must have.
        offline: what to use without a network; the last words of the error.

    Raises:
        ValueError: when the file in the folder is not the published one, or ``COURSE_DATA`` names no folder.
        RuntimeError: when the download fails; nothing is left behind.
    """
    path = data_folder() / name
    if not path.exists():
        download(path, base_url, sha256, offline)
    check(path, sha256, "Delete it and try again.")
    return path.read_bytes()


def check(path: Path, sha256: str, advice: str) -> None:
    """Refuse a file that is not the published one (ValueError). It is read once per process, unless it changes."""
    found = _sum(path, stamp(path))
    if found != sha256:
        raise ValueError(f"{path} has the sha256 sum {found}; expected {sha256}. {advice}")


@lru_cache
def _sum(path: Path, _stamp: tuple[int, int, int]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def packaged(package: str, name: str) -> Path | None:
    """A file or folder inside an installed package, which is not imported; ``None`` if there is none."""
    spec = find_spec(package)
    path = Path(spec.submodule_search_locations[0], name) if spec else None
    return path if path and path.exists() else None


def data_folder() -> Path:
    """The folder of the files: ``COURSE_DATA`` if it is set, which must be there; else the user's cache folder."""
    given = os.environ.get("COURSE_DATA")
    folder = Path(given).expanduser() if given else Path(user_cache_dir("attention-course"))
    if given and not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise ValueError(f"COURSE_DATA is {given}, which is {what}; expected a folder. Make it, or correct or unset "
                         "COURSE_DATA (unset, downloads go to the user's cache folder).")
    return folder


def download(path: Path, base_url: str, sha256: str, offline: str) -> None:
    """Download a file under a temporary name, check it, and only then rename it."""
    try:
        with replace_file(path, "wb") as file:
            found = fetch(base_url + path.name, file)
            if found != sha256:
                raise OSError(f"it has the sha256 sum {found}, expected {sha256}")
    except (OSError, HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise RuntimeError(
            f"{path.name} could not be downloaded from {base_url}: {error}. Try again with a network, or put the file "
            f"into {path.parent}. Offline, {offline}."
        ) from error


def fetch(url: str, file) -> str:
    """Copy an address into an open file; return the sha256 sum."""
    digest = hashlib.sha256()
    with urlopen(url, timeout=TIMEOUT) as response:
        size = int(response.headers.get("Content-Length", 0))
        with tqdm(total=size or None, desc=Path(url).name, unit="B", unit_scale=True, delay=2, leave=False,
                  file=sys.stdout) as bar:
            while block := response.read(1 << 16):
                digest.update(block)
                file.write(block)
                bar.update(len(block))
            if size and bar.n < size:
                raise OSError(f"the connection ended after {bar.n} of {size} bytes")
    return digest.hexdigest()
