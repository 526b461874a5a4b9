"""Tables of stored measurements: ``python experiments/tables.py`` writes them anew into README.md here.

Each stands between ``<!-- file table -->`` and ``<!-- end of file table -->``. What is not stored stays as it is.
"""

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from course_utils.claims.stored import EXPERIMENTS, stored

PAGES = (EXPERIMENTS / "README.md",)


def real_reviews(results: dict) -> list[str]:
    """Accuracy on SST-2 in percent, the mean of the seeds, by method and number of training sentences."""
    sizes = results["training_sentences"]
    methods = list(next(iter(sizes.values()))["accuracy"])
    lines = heads("training sentences", *methods, "CPU seconds of fine-tuning", right=True)
    for size, row in sizes.items():
        scores = [f"{100 * fmean(row['accuracy'][name]):.1f}" if name in row["accuracy"] else "" for name in methods]
        lines.append(line(f"{int(size):,}", *scores, f"{fmean(row['cpu_seconds']):.0f}"))
    return lines


def attention_view(results: dict) -> list[str]:
    """Size and speed of the pages, by tensor and library."""
    lines = heads("layers × heads × tokens", "", "page", "first paint", "hover", "head switch")
    for case, rows in results.items():
        for i, (name, row) in enumerate(rows.items()):
            times = [row["failed"], "", ""] if "failed" in row else [
                f"{row['seconds']:.2f} s", f"{row['hover']:,.0f} ms", f"{row['head']:,.0f} ms"]
            lines.append(line("" if i else case, name, f"{row['megabytes']:.2f} MB", *times))
    return lines


def layers(results: dict) -> list[str]:
    """Time of our layers, and that of other libraries' divided by it."""
    titles = {"torch": "`torch.nn.Transformer…Layer`", "transformers": "`transformers` (BERT, BART; SDPA)"}
    lines = heads("layer", "dropout", "ours", *titles.values())
    for kind, rows in results["layers"].items():
        for dropout, row in rows.items():
            ratios = [ratio(row[name]["ratio"]) if name in row else "" for name in titles]
            lines.append(line(kind, f"{float(dropout):g}", f"{row['ours']['milliseconds']:.0f} ms", *ratios))
    return lines


def decoding(results: dict) -> list[str]:
    """How many times faster the cache makes greedy decoding, by sentences at once and words."""
    rows = results["decoding"]
    first, *lengths = next(iter(rows.values()))
    lines = heads("sentences at once", f"{first} words", *lengths)
    return lines + [line(batch, *(f"{cell['reread'] / cell['cached']:.1f}" for cell in row.values()))
                    for batch, row in rows.items()]


def bert(results: dict) -> list[str]:
    """Time of our BERT and that of transformers."""
    return heads("texts", "ours", "`transformers` (SDPA)", "theirs / ours") + [
        line(name, *(f"{row[who]:.0f} ms" for who in ("ours", "transformers")), ratio(row["ratio"]))
        for name, row in results.items()]


def efficient(results: dict) -> list[str]:
    """Milliseconds / megabytes by attention and length."""
    lines = heads("", *(f"n = {n:,}" for n in results["lengths"]), right=True)
    for name, rows in (("{}", results["forward"]), ("{}, with backward", results["backward"])):
        lines += [line(name.format(kind), *map(cost, cells)) for kind, cells in rows.items()]
    return [*lines, "", f"({results['device']}, {results['dtype']}.)"]


def cost(cell: dict[str, float]) -> str:
    """Milliseconds / megabytes beside q, k and v; or what it would have needed."""
    if "megabytes_needed" in cell:
        return f"needs up to {cell['megabytes_needed'] / 1e3:,.0f} GB"
    return f"{1e3 * cell['seconds']:,.{int(cell['seconds'] < 0.01)}f} / {cell['megabytes']:,.0f}"


def ratio(quartiles: list[float]) -> str:
    """The median, with the quartiles around it."""
    low, median, high = quartiles
    return f"{median:.2f} ({low:.2f}–{high:.2f})"


def line(*cells: str) -> str:
    """One line of a table."""
    return "| " + " | ".join(cells) + " |"


def heads(first: str, *others: str, right: bool = False) -> list[str]:
    """The first two lines of a table; ``right``: columns of numbers are set to the right."""
    marks = ["---:" if right and title else "---" for title in (first, *others)]
    return [line(first, *others), f"|{'|'.join(marks)}|"]


TABLES = {"real_reviews": real_reviews, "bench_attention_view": attention_view, "bench_transformer layers": layers,
          "bench_transformer decoding": decoding, "bench_bert": bert, "bench_efficient": efficient}
"""The name between the marks, of which the first word is the file's, to what makes the table."""


def renew(text: str, names: Iterable[str] = TABLES, folder: Path = EXPERIMENTS) -> str:
    """A page with its tables made from the files that are there.

    Args:
        text: the page.
        names: of the tables, keys of ``TABLES``.
        folder: of the files.
    """
    for name in names:
        start, end, file = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->", name.split()[0]
        if start in text and (folder / f"{file}.json").is_file():
            measured = stored(file, folder)
            source = f"({str(measured)[0].upper()}{str(measured)[1:]}.)"
            before, rest = text.split(start)
            text = before + start + "\n".join([*TABLES[name](measured.results), "", source]) + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(renew(page.read_text(encoding="utf-8")), encoding="utf-8")
