"""Multi30k: 29,000 real sentence pairs, downloaded on first use.

Elliott et al., *Multi30K: Multilingual English-German Image Descriptions* (2016), and the French part of
Elliott et al. (2017); files from https://github.com/multi30k/dataset, folder ``data/task1/raw``.
"""

import gzip

from . import download

BASE_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
OFFLINE = "course_utils.data.grammar.corpus makes sentence pairs"
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


def read_lines(name: str) -> list[str]:
    """Lines of a file, without surrounding blanks."""
    content = download.read(name, BASE_URL, SHA256[name], OFFLINE)
    # not splitlines(), which also cuts at rarer separators: the two sides must keep the same number of lines
    return [line.strip() for line in gzip.decompress(content).decode("utf-8").rstrip("\n").split("\n")]
