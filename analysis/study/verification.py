"""Are the tables of this machine the committed ones? `python -m analysis.study.verification --profile P` tells.

Two numbers differ by |made - committed| / max(|committed|, 0.01). A table made with the committed weights passes if all
labels are equal and no number differs by more than TOLERANCE; numbers inside a text may differ by one in their last
digit. A table made with other weights, such as those of a new fine-tuning, passes if a SHARE of its labels is equal.
A table of unknown weights counts as one of the committed weights.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.errors import InputError, exit_status
from analysis.study.folders import Folders
from analysis.study.profiles import command_line
from analysis.study.reference import PROVENANCE, committed, is_table, pack

TOLERANCE = 1e-3  # relative to the committed number, or to 0.01 if that is larger
TIMED = "CPU time"  # what the definition of a claim about times says
SHARE = 0.9
SEPARATED = "columns separated by"
NUMBER = re.compile(r"(?<![\w.-])[-+]?\d+(?:\.\d+)?(?![\w-]|\.\d)")  # in a text, but not as part of a name


@dataclass(frozen=True)
class Comparison:
    """A table of this machine beside the committed one; `problem` is empty if it passes."""

    name: str
    rows: int = 0
    labels: int = 0
    equal: int = 0
    worst: float = 0.0  # the largest difference of two numbers
    column: str = ""  # its column
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
    remark, found = _as_saved(made, known)
    first = Comparison(name, len(known), weights=weights, remark=remark)
    if found is None:
        return replace(first, problem="is no table of comma-separated values: run make reproduce again")
    if list(found) != list(known):
        lost, new = ([*a.columns.difference(b.columns)] for a, b in ((known, found), (found, known)))
        return replace(first, problem=f"columns differ: missing {lost}, new {new}, or in another order")
    if len(found) != len(known):
        return replace(first, problem=f"{len(found):,} rows instead of {len(known):,}")
    columns = {name: _column(found[name], known[name]) for name in known}
    return _judged(first, columns, row_names(known))


def row_names(table: pd.DataFrame) -> list[str]:
    """The fewest leading columns that differ between all rows of a table; none if rows are equal in all columns."""
    prefixes = (table.columns[:count] for count in range(1, len(table.columns)))
    return next(([*names] for names in prefixes if not table.duplicated([*names]).any()), [])


def _as_saved(made: bytes, known: pd.DataFrame) -> tuple[str, pd.DataFrame | None]:
    """A remark on a file that a spreadsheet seems to have saved, and its table, None if it cannot be read."""
    header = made.partition(b"\n")[0]
    separator = next((mark for mark in ";\t" if mark.encode() in header), ",")
    unusual = {
        "a byte-order mark": made.startswith(b"\xef\xbb\xbf"),
        "line ends CR LF": b"\r\n" in made,
        f"{SEPARATED} {separator!r}": separator != "," and len(known.columns) > 1,
    }
    marks = ", ".join(name for name, is_there in unusual.items() if is_there)
    try:
        found = _read(made, separator)
    except ValueError:  # also for bytes that are no UTF-8
        found = None
    return f"re-saved: {marks}" if marks else "", found


def _read(content: bytes, separator: str) -> pd.DataFrame:
    """A table with every cell as text, without claims about measured times, which differ with every run."""
    text = StringIO(content.decode("utf-8-sig"))
    table = pd.read_csv(text, sep=separator, dtype=str, keep_default_na=False)
    if "definition" in table:
        table = table[~table["definition"].str.contains(TIMED)]
    return table.reset_index(drop=True)


class _Column(NamedTuple):
    """One column beside the committed one."""

    labels: int = 0
    equal: int = 0
    worst: float = 0.0
    faults: tuple[str, ...] = ()  # what is not as committed, each with the cell that shows it
    damaged: bool = False  # numbers are no longer numbers


def _column(made: pd.Series, known: pd.Series) -> _Column:
    """One column: numbers where every committed cell is one, labels otherwise."""
    numbers = pd.to_numeric(known.replace("", "nan"), errors="coerce")
    if (numbers.isna() & ~known.isin(["", "nan"])).any():
        return _labels(made, known)
    found = pd.to_numeric(made.replace("", "nan"), errors="coerce")
    wrong = np.flatnonzero(found.isna() & ~made.isin(["", "nan"]))
    if wrong.size:
        fault = f"{wrong.size:,} cells are no numbers any more: {_pair(made, known, wrong[0])}"
        return _Column(worst=np.inf, faults=(fault,), damaged=True)
    apart = differences(found.to_numpy(float), numbers.to_numpy(float))
    return _Column(worst=float(apart.max(initial=0)), faults=_far(made, known, apart))


def _labels(made: pd.Series, known: pd.Series) -> _Column:
    """One column of labels; texts that differ only in the numbers within them count as equal labels."""
    unlike = (made != known).to_numpy(copy=True)
    apart = np.zeros(len(known))
    for row in np.flatnonzero(unlike):
        difference = _apart_in_text(made.iloc[row], known.iloc[row])
        if difference is not None:
            unlike[row], apart[row] = False, difference
    faults = _far(made, known, apart)
    if unlike.any():
        faults = (f"{unlike.sum():,} cells differ: {_pair(made, known, int(unlike.argmax()))}", *faults)
    return _Column(len(known), int((~unlike).sum()), float(apart.max(initial=0)), faults)


def _far(made: pd.Series, known: pd.Series, apart: Float[np.ndarray, " row"]) -> tuple[str, ...]:
    """The cell whose number is furthest from the committed one if that is too far."""
    return (_pair(made, known, int(apart.argmax())),) if (apart > TOLERANCE).any() else ()


def _pair(made: pd.Series, known: pd.Series, row: int) -> str:
    return f"line {row + 2} holds {made.iloc[row]!r}, committed {known.iloc[row]!r}"


def _apart_in_text(made: str, known: str) -> float | None:
    """The largest difference of the numbers in two texts; None if the words differ."""
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
    """The relative differences from the committed numbers; infinite if only one of two numbers is missing."""
    same = (made == known) | (np.isnan(made) & np.isnan(known))
    with np.errstate(invalid="ignore"):
        apart = np.abs(made - known) / np.maximum(np.abs(known), 0.01)
    return np.where(same, 0, np.where(np.isfinite(apart), apart, np.inf))


def _judged(first: Comparison, columns: Mapping[str, _Column], names: list[str]) -> Comparison:
    """The comparison of a table, from those of its columns; `names` are the columns that name its rows."""
    values = [column for name, column in columns.items() if name not in names]
    labels, equal = sum(column.labels for column in values), sum(column.equal for column in values)
    problems = [
        f"column {name}: {fault}"
        for name, column in columns.items()
        if column.damaged or name in names or first.weights != "other"
        for fault in column.faults
    ]
    if SEPARATED in first.remark:
        problems.append("is no table of comma-separated values any more")
    if equal < SHARE * labels and not problems:
        problems.append(f"fewer than {SHARE:.0%} of the labels are equal")
    if any(column.damaged for column in columns.values()) or (problems and first.remark):
        problems[-1] += " (has a spreadsheet saved it? run make reproduce again)"
    worst = max((column.worst for column in columns.values()), default=0.0)
    place = next((name for name, column in columns.items() if column.worst == worst > 0), "")
    found = {"labels": labels, "equal": equal, "worst": worst, "column": place}
    return replace(first, **found, problem=", ".join(problems))


def weights_of(name: str, made: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Whether a table was made with the committed weights, from the provenance of both: same, other or unknown."""
    digests = [provenance.get(name, {}).get("weights") for provenance in (made, known)]
    if not all(digests):
        return "unknown"
    return "same" if digests[0] == digests[1] else "other"


def verify(profile: str, known: Mapping[str, bytes]) -> Iterator[Comparison]:
    """Compares every committed table of a profile with the table of this machine; `known` as `committed` gives it."""
    folder = Folders(profile).tables
    path = folder / PROVENANCE
    here = _provenance(path.read_bytes() if path.exists() else b"")
    there = _provenance(known.get(PROVENANCE, b""))
    for file in filter(is_table, sorted(known)):
        name = file.removesuffix(".csv")
        weights = weights_of(name, here, there)
        try:
            content = (folder / file).read_bytes()
        except FileNotFoundError:
            lost = f"{folder / file} does not exist: run make reproduce"
            yield Comparison(name, weights=weights, problem=lost)
            continue
        found = compare(name, content, known[file], weights)
        digest = here.get(name, {}).get("sha256")
        if digest and digest != hashlib.sha256(content).hexdigest():
            note = "the file was changed after the run that made it"
            found = replace(found, remark="; ".join(filter(None, [found.remark, note])))
        yield found


def _provenance(content: bytes) -> dict[str, Any]:
    try:
        return json.loads(content) if content else {}
    except ValueError as error:
        raise InputError(f"{PROVENANCE} is damaged ({error}): run make reproduce again") from error


def report(profile: str, commit: str = "HEAD") -> None:
    """Prints one line per table and a verdict; raises InputError if a table does not agree."""
    known, source = committed(profile, commit)
    found = []
    for comparison in verify(profile, known):
        print(comparison)
        found.append(comparison)
    failed = [comparison.name for comparison in found if comparison.problem]
    labels = f"{sum(c.equal for c in found):,} of {sum(c.labels for c in found):,} labels equal"
    others = sum(comparison.weights == "other" for comparison in found)
    judged = f"{labels}; numbers may differ by {TOLERANCE:g} of their size; {others} tables made with other weights"
    print(f"{len(found) - len(failed)} of {len(found)} tables agree with {source} ({judged})")
    if failed:
        raise InputError(f"profile {profile} is not reproduced: see {', '.join(failed)}")
    print(f"profile {profile} is reproduced")


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = command_line("analysis.study.verification", __doc__)
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
