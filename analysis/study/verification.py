"""Is what this machine made what was committed? `python -m analysis.study.verification --profile P` tells.

Two numbers differ by |made - committed| / max(|committed|, 0.01). Where a table was made with the committed weights,
all labels must be equal and no number may differ by more than TOLERANCE. With other weights, such as those of an
encoder fine-tuned anew, a share of labels must be equal, and numbers are shown but not judged. A table whose weights
are unknown is judged as one of the committed weights. Numbers inside a text may differ by one in their last digit.
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.errors import InputError, exit_status
from analysis.study.folders import Folders
from analysis.study.reference import PROVENANCE, committed, is_table, pack

TOLERANCE = 1e-3  # of a number's size, or of 0.01 where it is smaller
SHARE = 0.9  # of the labels of a table made with other weights
SEPARATED = "columns separated by"
NUMBER = re.compile(r"(?<![\w.-])[-+]?\d+(?:\.\d+)?(?![\w-]|\.\d)")  # inside a text, but not that of a name


@dataclass(frozen=True)
class Comparison:
    """A table of this machine beside the committed one; `problem` is empty where it passes."""

    name: str
    rows: int = 0
    labels: int = 0
    equal: int = 0
    worst: float = 0.0  # difference of two numbers
    column: str = ""  # where it is
    weights: str = "unknown"  # same, other or unknown
    problem: str = ""
    remark: str = ""

    def __str__(self) -> str:
        place = f" ({self.column})" if self.column else ""
        numbers = "" if self.weights != "other" else ", not judged: other weights"
        counts = f"{self.rows:,} rows, labels {self.equal:,} of {self.labels:,} equal"
        verdict = "fail" if self.problem else "pass"
        line = f"{verdict}  {self.name}: {counts}, worst difference {self.worst:.2g}{place}{numbers}"
        return "; ".join(filter(None, [line, self.remark, self.problem]))


def compare(name: str, made: bytes, reference: bytes, weights: str = "unknown") -> Comparison:
    """Compares a table with the committed one (both as the bytes of CSV files)."""
    known = _read(reference, ",")
    remarks, found = _as_saved(made, known)
    first = Comparison(name, len(known), weights=weights, remark="; ".join(remarks))
    if found is None:
        return replace(first, problem="is no table of comma-separated values: run make reproduce again")
    if list(found) != list(known):
        lost, new = ([*a.columns.difference(b.columns)] for a, b in ((known, found), (found, known)))
        return replace(first, problem=f"columns differ: missing {lost}, new {new}, or in another order")
    if len(found) != len(known):
        return replace(first, problem=f"{len(found):,} rows instead of {len(known):,}")
    return _judged(first, [_column(name, found[name], known[name]) for name in known], row_names(known))


def row_names(table: pd.DataFrame) -> list[str]:
    """The leading columns that tell the rows of a table apart; none where all of them do not."""
    prefixes = (table.columns[:count] for count in range(1, len(table.columns)))
    return next(([*names] for names in prefixes if not table.duplicated([*names]).any()), [])


def _as_saved(made: bytes, known: pd.DataFrame) -> tuple[list[str], pd.DataFrame | None]:
    """A table as it was saved, by a spreadsheet too, and what is unusual about the file."""
    unusual = {"a byte-order mark": made.startswith(b"\xef\xbb\xbf"), "line ends CR LF": b"\r\n" in made}
    header = made.partition(b"\n")[0]
    separator = next((mark for mark in ";\t" if mark.encode() in header), ",")
    unusual[f"{SEPARATED} {separator!r}"] = separator != "," and len(known.columns) > 1
    marks = [name for name, is_there in unusual.items() if is_there]
    try:
        found = _read(made, separator)
    except ValueError:  # bytes that are no text among them
        found = None
    return [f"re-saved: {', '.join(marks)}"] if marks else [], found


def _read(content: bytes, separator: str) -> pd.DataFrame:
    """A table as text, cell by cell."""
    text = StringIO(content.decode("utf-8-sig"))
    return pd.read_csv(text, sep=separator, dtype=str, keep_default_na=False)


@dataclass(frozen=True)
class _Column:
    name: str
    labels: int
    equal: int
    worst: float
    unlike: str = ""  # the first label that differs
    apart: str = ""  # the number that differs most
    damaged: str = ""  # what is no number any more


def _column(name: str, made: pd.Series, known: pd.Series) -> _Column:
    """One column: numbers where every committed cell is one, labels otherwise."""
    numbers = pd.to_numeric(known.replace("", "nan"), errors="coerce")
    if (numbers.isna() & ~known.isin(["", "nan"])).any():
        return _labels(name, made, known)
    found = pd.to_numeric(made.replace("", "nan"), errors="coerce")
    wrong = np.flatnonzero(found.isna() & ~made.isin(["", "nan"]))
    if wrong.size:
        first = f"line {wrong[0] + 2} holds {made.iloc[wrong[0]]!r}, committed {known.iloc[wrong[0]]!r}"
        return _Column(name, 0, 0, np.inf, damaged=f"{wrong.size:,} cells are no numbers any more: {first}")
    apart = differences(found.to_numpy(float), numbers.to_numpy(float))
    at = int(apart.argmax()) if apart.size else 0
    worst = float(apart[at]) if apart.size else 0.0
    return _Column(name, 0, 0, worst, apart=_pair(made, known, at) if worst else "")


def _labels(name: str, made: pd.Series, known: pd.Series) -> _Column:
    """A column of labels; where they differ in numbers within a text alone, these are compared as numbers."""
    equal = (made == known).to_numpy(copy=True)
    worst, at = 0.0, None
    for row in np.flatnonzero(~equal):
        apart = _apart_in_text(made.iloc[row], known.iloc[row])
        equal[row] = apart is not None
        if apart is not None and apart > worst:
            worst, at = apart, row
    unlike = "" if equal.all() else _pair(made, known, int(np.argmin(equal)))
    return _Column(
        name, len(known), int(equal.sum()), worst, unlike, "" if at is None else _pair(made, known, at)
    )


def _apart_in_text(made: str, known: str) -> float | None:
    """The largest difference of the numbers inside two texts, None where the words differ."""
    if not NUMBER.search(known) or NUMBER.sub("#", made) != NUMBER.sub("#", known):
        return None
    found, expected = ([*NUMBER.findall(text)] for text in (made, known))
    last = np.array([10.0 ** -len(number.partition(".")[2]) for number in expected])  # unit of the last digit
    values, numbers = np.array(found, float), np.array(expected, float)
    rounded = np.abs(values - numbers) <= 1.01 * last
    return float(np.where(rounded, 0, differences(values, numbers)).max())


def differences(
    made: Float[np.ndarray, " row"], known: Float[np.ndarray, " row"]
) -> Float[np.ndarray, " row"]:
    """How far numbers lie from the committed ones, in parts of their size; infinite where one of two is missing."""
    same = (made == known) | (np.isnan(made) & np.isnan(known))
    with np.errstate(invalid="ignore"):
        apart = np.abs(made - known) / np.maximum(np.abs(known), 0.01)
    return np.where(same, 0, np.where(np.isfinite(apart), apart, np.inf))


def _pair(made: pd.Series, known: pd.Series, row: int) -> str:
    return f"line {row + 2} holds {made.iloc[row]!r}, committed {known.iloc[row]!r}"


def _judged(first: Comparison, columns: list[_Column], names: list[str]) -> Comparison:
    """The comparison of a table from those of its columns; `names` are the columns that name its rows."""
    values = [column for column in columns if column.name not in names]
    labels, equal = sum(column.labels for column in values), sum(column.equal for column in values)
    exact = columns if first.weights != "other" else [column for column in columns if column.name in names]
    problems = [f"column {c.name}: {c.damaged}" for c in columns if c.damaged]
    problems += [
        f"column {c.name}: {c.labels - c.equal:,} cells differ: {c.unlike}" for c in exact if c.unlike
    ]
    problems += [f"column {c.name}: {c.apart}" for c in exact if c.worst > TOLERANCE and c.apart]
    if SEPARATED in first.remark:
        problems.append("is no table of comma-separated values any more")
    if equal < SHARE * labels and not problems:
        problems.append(f"fewer than {SHARE:.0%} of the labels are equal")
    if any(column.damaged for column in columns) or (problems and first.remark):
        problems[-1] += " (has a spreadsheet saved it? run make reproduce again)"
    far = max(columns, key=lambda column: column.worst, default=_Column("", 0, 0, 0.0))
    place = far.name if far.worst else ""
    found = {"labels": labels, "equal": equal, "worst": far.worst, "column": place}
    return replace(first, **found, problem=", ".join(problems))


def weights_of(name: str, made: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Whether a table was made with the committed weights, by the provenance of both: same, other or unknown."""
    digests = [provenance.get(name, {}).get("weights") for provenance in (made, known)]
    if not all(digests):
        return "unknown"
    return "same" if digests[0] == digests[1] else "other"


def verify(profile: str, commit: str = "HEAD") -> Iterator[Comparison]:
    """Compares every committed table of a profile with that of this machine, one by one."""
    known, _ = committed(profile, commit)
    folder = Folders(profile).tables
    path = folder / PROVENANCE
    provenances = [
        _provenance(path.read_bytes() if path.exists() else b""),
        _provenance(known.get(PROVENANCE, b"")),
    ]
    for file in filter(is_table, sorted(known)):
        name = file.removesuffix(".csv")
        weights = weights_of(name, *provenances)
        try:
            content = (folder / file).read_bytes()
        except FileNotFoundError:
            lost = f"{folder / file} does not exist: run make reproduce"
            yield Comparison(name, weights=weights, problem=lost)
            continue
        found = compare(name, content, known[file], weights)
        digest = provenances[0].get(name, {}).get("sha256")
        edited = bool(digest) and digest != hashlib.sha256(content).hexdigest()
        note = "the file was changed after the run that made it" if edited else ""
        yield replace(found, remark="; ".join(filter(None, [found.remark, note])))


def _provenance(content: bytes) -> dict[str, Any]:
    try:
        return json.loads(content) if content else {}
    except ValueError as error:
        raise InputError(f"{PROVENANCE} is damaged ({error}): run make reproduce again") from error


def report(profile: str, commit: str = "HEAD") -> None:
    """Prints one line per table and a verdict; raises InputError where a table does not agree."""
    found = []
    for comparison in verify(profile, commit):
        print(comparison)
        found.append(comparison)
    failed = [comparison.name for comparison in found if comparison.problem]
    labels = f"{sum(c.equal for c in found):,} of {sum(c.labels for c in found):,} labels equal"
    others = sum(comparison.weights == "other" for comparison in found)
    judged = f"{labels}; numbers may differ by {TOLERANCE:g} of their size; {others} tables made with other weights"
    print(
        f"{len(found) - len(failed)} of {len(found)} tables agree with {committed(profile, commit)[1]} ({judged})"
    )
    if failed:
        raise InputError(f"profile {profile} is not reproduced: see {', '.join(failed)}")
    print(f"profile {profile} is reproduced")


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m analysis.study.verification", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--profile", default="offline")
    parser.add_argument("--commit", default="HEAD", help="the commit to compare with, in a clone")
    parser.add_argument(
        "--pack", action="store_true", help="pack the tables for those who download an archive"
    )
    options = parser.parse_args(arguments)
    if options.pack:
        return exit_status(lambda: print(pack(options.profile)))
    return exit_status(lambda: report(options.profile, options.commit))


if __name__ == "__main__":
    sys.exit(main())
