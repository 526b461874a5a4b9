"""At how many seeds a claim was tried and held: the record that ``course claims --seeds`` writes."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path

from ..course import CourseError, stamp, write_file
from .stored import EXPERIMENTS

RECORD = EXPERIMENTS / "claims_at_seeds.json"


@dataclass(frozen=True)
class Trial:
    """One claim at one seed."""

    holds: bool
    """Whether the condition was true; False, too, if the claim was never reached."""
    measured: dict[str, float | str]
    version: str
    """The commit that was run."""
    machine: str
    date: str
    stopped: str = ""
    """Why the claim was never reached, else empty."""


@dataclass(frozen=True)
class Tried:
    """A claim at several seeds, all under one condition and made by one code."""

    condition: str
    made_by: str
    """The digest of that code, see `declared.Declared`."""
    seeds: dict[int, Trial] = field(default_factory=dict)

    def __str__(self) -> str:
        if len(self.seeds) < 2:
            return "not yet tried at other seeds"
        missed = [seed for seed, trial in sorted(self.seeds.items()) if not trial.holds and not trial.stopped]
        stopped = [seed for seed, trial in sorted(self.seeds.items()) if trial.stopped]
        groups = (("not", missed), ("not reached", stopped))
        why = "; ".join(f"{what} at {_list(where)}" for what, where in groups if where)
        where = f" ({why})" if why and len(missed) < len(self.seeds) else ""
        return f"held at {self.short} seeds{where}"

    @property
    def short(self) -> str:
        """``4 of 5``; empty if it was tried at one seed only."""
        held = sum(trial.holds for trial in self.seeds.values())
        return f"{held} of {len(self.seeds)}" if len(self.seeds) > 1 else ""

    def including(self, seed: int, holds: bool) -> "Tried":
        """With one more run, which takes the place of a trial at the same seed."""
        return replace(self, seeds={**self.seeds, seed: Trial(holds, {}, "", "", "")})

    def failed(self, expected: bool) -> list[int]:
        """The seeds at which it did not come out as expected, or was not reached."""
        return [seed for seed, trial in sorted(self.seeds.items()) if trial.holds != expected or trial.stopped]


def _list(seeds: list[int]) -> str:
    *first, last = map(str, seeds)
    return f"{', '.join(first)} and {last}" if first else last


def read() -> dict[str, Tried]:
    """All claims that were tried: id to trials.

    Raises:
        CourseError: if the file is not such a record.
    """
    return _read(RECORD, stamp(RECORD)) if RECORD.is_file() else {}


@cache
def _read(path: Path, changed: tuple) -> dict[str, Tried]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {id: Tried(row["condition"], row["made_by"],
                          {int(seed): Trial(**trial) for seed, trial in row["seeds"].items()})
                for id, row in rows.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise CourseError(f"{path} is not a record of claims at seeds ({problem!r}). Delete it and make it again with "
                          "`course claims --seeds 0 1 2 3 4`.") from problem


def tried(id: str, condition: str, made_by: str) -> Tried:
    """The trials of a claim under this condition, made by this code; others do not count."""
    found = read().get(id)
    counts = found and (found.condition, found.made_by) == (condition, made_by)
    return found if counts else Tried(condition, made_by)


def add(id: str, condition: str, made_by: str, trials: Mapping[int, Trial]) -> None:
    """Add trials to the record in one step; those of the same claim that differ in condition or code are dropped."""
    rows = dict(read())
    kept = tried(id, condition, made_by).seeds
    rows[id] = Tried(condition, made_by, dict(sorted({**kept, **trials}.items())))
    text = ",\n".join(f"{json.dumps(id)}: {_dump(rows[id])}" for id in sorted(rows))
    write_file(RECORD, f"{{\n{text}\n}}\n")


def _dump(row: Tried) -> str:
    """One line a trial, so that a difference between two versions of the file can be read."""
    lines = (f"  {json.dumps(str(seed))}: {json.dumps(asdict(trial), ensure_ascii=False, allow_nan=False)}"
             for seed, trial in row.seeds.items())
    return (f'{{"condition": {json.dumps(row.condition, ensure_ascii=False)}, "made_by": "{row.made_by}", "seeds": {{\n'
            + ",\n".join(lines) + "}}")
