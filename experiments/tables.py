"""README's tables of stored measurements: ``python experiments/tables.py`` writes them anew from the JSON files."""

from pathlib import Path
from statistics import fmean

from course_utils.claims.stored import Stored, stored

README = Path(__file__).resolve().parents[1] / "README.md"


def real_reviews(measured: Stored) -> str:
    """Accuracy on SST-2 in percent, the mean of the seeds, by method and number of training sentences."""
    sizes = measured.results["training_sentences"]
    methods = list(next(iter(sizes.values()))["accuracy"])
    lines = ["| training sentences | " + " | ".join(methods) + " | CPU seconds of fine-tuning |",
             "|---:|" + "---:|" * (len(methods) + 1)]
    for size, row in sizes.items():
        scores = [f"{100 * fmean(row['accuracy'][name]):.1f}" if name in row["accuracy"] else "" for name in methods]
        lines.append(" | ".join([f"| {int(size):,}", *scores, f"{fmean(row['cpu_seconds']):.0f} |"]))
    return "\n".join([*lines, "", f"({str(measured)[0].upper()}{str(measured)[1:]}.)"])


def renew(text: str) -> str:
    """README with its tables made from the files that are there."""
    for name, table in {"real_reviews": real_reviews}.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, rest = text.split(start)
        text = before + start + table(stored(name)) + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    README.write_text(renew(README.read_text(encoding="utf-8")), encoding="utf-8")
