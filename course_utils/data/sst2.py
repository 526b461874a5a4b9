"""SST-2: 7,792 real sentences from film reviews, downloaded on first use.

Socher et al., *Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank* (2013), without the
neutral sentences; files from https://github.com/clairett/pytorch-sentiment-classification, folder ``data/SST2``.
"""

from . import download

BASE_URL = "https://raw.githubusercontent.com/clairett/pytorch-sentiment-classification/master/data/SST2/"
OFFLINE = "course_utils.data.load_reviews has sentences of the course's own"
SPLITS = {"train": "train.tsv", "val": "dev.tsv"}
SHA256 = {
    "train.tsv": "ec192f833a64da08f475488a77b0d0b47db47acd0f458bd18433fc793b569920",
    "dev.tsv": "eddea6b39e601dd4e7a672b53cc40fdf6019fa80522f351206c24340ca5d9359",
}


def load_sst2(split: str = "train") -> list[tuple[str, int]]:
    """Sentences of SST-2 with their labels, 1 for positive and 0 for negative.

    The text is as published: lower case, blanks around punctuation (``wo n't``), no hyphens. A missing file is
    downloaded (720 kB for the training part), checked and kept in the user's cache folder. The environment variable
    ``COURSE_DATA`` names another folder, which may already hold the files.

    Args:
        split: ``"train"`` (6,920 sentences) or ``"val"`` (872).

    Raises:
        ValueError: for another split, or when a file in the folder is not the published one.
        RuntimeError: when the download fails; nothing is left behind.
    """
    if split not in SPLITS:
        raise ValueError(f"There is no split {split!r}; expected one of {', '.join(SPLITS)}.")
    name = SPLITS[split]
    content = download.read(name, BASE_URL, SHA256[name], OFFLINE)
    rows = (line.split("\t") for line in content.decode("utf-8").rstrip("\n").split("\n"))
    return [(text.strip(), int(label)) for text, label in rows]
