"""Multi30k: 29,000 real sentence pairs, fetched when you ask for them.

Elliott et al., *Multi30K: Multilingual English-German Image Descriptions* (2016), and the French part of
Elliott et al. (2017); files from https://github.com/multi30k/dataset, folder ``data/task1/raw``.
"""

import gzip
import hashlib
import os
import sys
import tempfile
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from platformdirs import user_cache_dir
from tqdm import tqdm

BASE_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
TIMEOUT = 20  # seconds without an answer or without more data
SPLITS = {"train": "train", "val": "val", "test": "test_2016_flickr"}
LANGUAGES = ("en", "fr")
SHA256 = {
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
}


def load_multi30k(source: str = "en", target: str = "fr", split: str = "train") -> list[tuple[str, str]]:
    """Sentence pairs of Multi30k, as raw strings without surrounding blanks.

    A missing file is downloaded (about 600 kB for each language of the training part), checked and kept in the user's
    cache folder. The environment variable ``COURSE_DATA`` names another folder, which may already hold the files.

    Args:
        source: ``"en"`` or ``"fr"``.
        target: ``"en"`` or ``"fr"``.
        split: ``"train"`` (29,000 pairs), ``"val"`` (1,014) or ``"test"`` (1,000, Flickr 2016).

    Raises:
        ValueError: for another language or split, or when a file in the folder is not the published one.
        RuntimeError: when the download fails; nothing is left behind.
    """
    for language in (source, target):
        if language not in LANGUAGES:
            raise ValueError(f"There is no language {language!r} here; expected one of {', '.join(LANGUAGES)}.")
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r}; expected one of {', '.join(SPLITS)}.")
    sides = [read_lines(f"{SPLITS[split]}.{language}.gz") for language in (source, target)]
    return list(zip(*sides, strict=True))


def data_folder() -> Path:
    """The folder of the files: ``COURSE_DATA`` if it is set, the user's cache folder otherwise."""
    return Path(os.environ.get("COURSE_DATA") or user_cache_dir("attention-course"))


def read_lines(name: str) -> list[str]:
    """Lines of a file, which is fetched if it is not there and checked if it is."""
    path = data_folder() / name
    if not path.exists():
        download(name, path)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256[name]:
        raise ValueError(f"{path} has the sha256 sum {found}; expected {SHA256[name]}. Delete it and try again.")
    # not splitlines(), which also cuts at rarer separators: the two sides must keep the same number of lines
    return [line.strip() for line in gzip.decompress(path.read_bytes()).decode("utf-8").rstrip("\n").split("\n")]


def download(name: str, path: Path) -> None:
    """Fetch a file to a temporary neighbour, check it, and only then give it its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            found = fetch(BASE_URL + name, file)
        if found != SHA256[name]:
            raise OSError(f"it has the sha256 sum {found}, expected {SHA256[name]}")
        os.replace(temporary, path)
    except (OSError, HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()
        raise RuntimeError(
            f"{name} could not be downloaded from {BASE_URL}: {error}. Try again with a network, or put the file into "
            f"a folder and set COURSE_DATA to it. Offline, course_utils.data.grammar.corpus makes sentence pairs."
        ) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


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
