"""Does a table agree with an earlier one, given what both were made with?

Two numbers differ by |made - committed| / max(|committed|, 0.01). The rules:

- Same weights as committed, or none: all labels are equal, and no number differs by more than TOLERANCE. Numbers inside
  a text count as numbers, and may differ by one in their last digit.
- Weights trained on this machine: LABELS of the labels are equal, in each table (one may always differ) and in all of
  these tables together. NUMBERS of the numbers agree (one may always differ): they differ by at most NEAR or lie within
  a committed interval of their row; the end of an interval may move by half its width; a table of nothing but counts
  has the intervals of counts, n +- 2 sqrt(n).
- Another parser: the rows and columns of syntactic roles are left out, and the rest is judged as if weights were
  trained here, since heads of several roles and corrections over all roles depend on the parses too.
- Measured times (tables `times` and `*_speed`; the claim about CPU time, whose words are not compared): numbers agree
  within a factor of ten.
"""

import io
import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.texts.syntax import RELATIONS

TOLERANCE, LABELS, NUMBERS, NEAR, FACTOR = 1e-3, 0.99, 0.95, 0.05, 10
SAME, TRAINED, TIMES = "same weights", "weights trained here", "times"
PARSED = "another parser, syntactic roles not compared"
LOOSE = TRAINED, PARSED
SYNTACTIC = re.compile(rf"(?<![a-z])({'|'.join(['syntactic', *RELATIONS])})(?![a-z])")
TIMED = "M7"  # the claim about times
TIMED_COLUMNS = ["estimate", "low", "high", "smallest", "largest"]
NUMBER = re.compile(r"(?<![\w.-])[-+]?\d+(?:\.\d+)?(?![\w-]|\.\d)")  # in a text, but not as part of a name


class Comparison(NamedTuple):
    """A table of this machine beside the committed one; `problem` is empty if it passes."""

    name: str
    rule: str
    problem: str = ""
    labels: int = 0
    unlike: int = 0  # labels that differ
    numbers: int = 0
    far: int = 0  # numbers that do not agree
    worst: float = 0.0  # the largest difference of two numbers

    def __str__(self) -> str:
        counts = f"{self.labels - self.unlike:,} of {self.labels:,} labels equal, "
        counts += f"{self.numbers - self.far:,} of {self.numbers:,} numbers agree (worst difference {self.worst:.2g})"
        start, end = ("fail", f"; {self.problem}") if self.problem else ("pass", "")
        return f"{start}  {self.name}: {counts} [{self.rule}]{end}"


def compare(name: str, made: bytes, known: bytes, rule: str = SAME) -> Comparison:
    """Compares a table with the committed one (both as the bytes of CSV files)."""
    rule = TIMES if name == "times" or name.endswith("_speed") else rule
    try:
        here, there = (
            pd.read_csv(io.BytesIO(each), dtype=str, keep_default_na=False) for each in (made, known)
        )
    except ValueError:  # also for bytes that are no UTF-8
        return Comparison(name, rule, "is no table of comma-separated values: run make reproduce again")
    if rule == PARSED:
        here, there = without_syntax(here), without_syntax(there)
    if list(here) != list(there) or len(here) != len(there):
        shapes = f"{len(here):,} rows of {[*here]} instead of {len(there):,} rows of {[*there]}"
        return Comparison(name, rule, f"has another form: {shapes}")
    unlike, apart = _apart(here, there)
    found, numbers = _numbers(here), _numbers(there)
    far = apart > (NEAR if rule in LOOSE else TOLERANCE)
    if rule in LOOSE:
        far &= ~_within(found, numbers)
    timed = there.get("claim", pd.Series("", there.index)).eq(TIMED)
    ratio = found.abs().clip(lower=0.01) / numbers.abs().clip(lower=0.01)
    decade = (ratio > FACTOR) | (ratio < 1 / FACTOR)
    far = decade if rule == TIMES else far
    far.loc[timed] = decade.loc[timed] & there.columns.isin(TIMED_COLUMNS)
    unlike.loc[timed], apart.loc[timed] = np.nan, np.nan
    faults, spare = (
        far | unlike.eq(1),
        1 if rule in LOOSE else 0,
    )  # cells of each kind that may always differ
    counts = {"labels": unlike, "unlike": unlike.where(unlike.eq(1)), "numbers": apart, "far": far.where(far)}
    told = {key: int(frame.count().sum()) for key, frame in counts.items()}
    many = told["unlike"] > spare * max(1, (1 - LABELS) * told["labels"])
    many |= told["far"] > spare * max(1, (1 - NUMBERS) * told["numbers"])
    cells = [
        f"column {column}: {cells.sum():,} cells differ: line {cells.argmax() + 2} holds "
        f"{here[column][cells.argmax()]!r}, committed {there[column][cells.argmax()]!r}"
        for column, cells in faults.items()
        if cells.any() and many
    ]
    return Comparison(
        name, rule, ", ".join(cells), worst=float(apart.fillna(0).to_numpy().max(initial=0)), **told
    )


def without_syntax(table: pd.DataFrame) -> pd.DataFrame:
    """A table without the columns and rows that name a syntactic role."""
    table = table[[column for column in table if not SYNTACTIC.search(column)]]
    named = table.apply(lambda column: column.str.contains(SYNTACTIC))
    return table[~named.any(axis=1)].reset_index(drop=True)


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    numbers = table.apply(lambda column: pd.to_numeric(column.replace("", "nan"), errors="coerce"))
    return numbers.astype(float)  # of a table without rows too


def _apart(here: pd.DataFrame, there: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """For each cell, whether it is a label that differs (1; 0: equal; NaN: no label), and how far numbers are apart.

    In a column of words, a cell is a label; numbers within equal words are numbers.
    """
    unlike, apart = (pd.DataFrame(np.nan, there.index, there.columns) for _ in range(2))
    found, numbers = _numbers(here), _numbers(there)
    for column in there:
        made, known = here[column], there[column]
        if (numbers[column].notna() | known.isin(["", "nan"])).all():
            lost = found[column].isna() & ~made.isin(["", "nan"])  # words where a number was
            apart[column] = np.where(
                lost, np.inf, differences(found[column].to_numpy(), numbers[column].to_numpy())
            )
        else:
            unlike[column] = (made != known).astype(float)
            for row, (text, expected) in enumerate(zip(made, known, strict=True)):
                if NUMBER.search(expected) and NUMBER.sub("#", text) == NUMBER.sub("#", expected):
                    unlike.loc[row, column], apart.loc[row, column] = 0, _apart_in_text(text, expected)
    return unlike, apart


def _apart_in_text(made: str, known: str) -> float:
    """The largest difference of the numbers in two texts, none where they differ by one in the last digit."""
    digits = [10.0 ** -len(number.partition(".")[2]) for number in NUMBER.findall(known)]
    found, numbers = (np.array(NUMBER.findall(text), float) for text in (made, known))
    rounded = np.abs(found - numbers) <= 1.01 * np.array(digits)
    return float(np.where(rounded, 0, differences(found, numbers)).max())


def _within(found: pd.DataFrame, numbers: pd.DataFrame) -> pd.DataFrame:
    """Which cells lie in a committed interval of their row: of a pair of columns low and high that holds the column."""
    inside = pd.DataFrame(False, numbers.index, numbers.columns)
    for pair in ((name, name.replace("low", "high", 1)) for name in numbers if "low" in name):
        if pair[1] in numbers:
            low, high = (numbers[name] for name in pair)
            held = ~(numbers.lt(low, axis=0) | numbers.gt(high, axis=0)).any()
            inside |= found.ge(low, axis=0) & found.le(high, axis=0) & held
            ends = [*pair]
            inside[ends] |= (found - numbers)[ends].abs().le((high - low) / 2, axis=0)
    there = numbers.dropna(axis=1, how="all")
    if there.shape[1] == 1 and (there == there.round()).all(axis=None):
        inside |= (found - numbers).abs() <= 2 * np.sqrt(numbers.clip(lower=1))
    return inside


def differences(made: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The relative differences from the committed numbers; infinite if only one of two numbers is missing."""
    same = (made == known) | (np.isnan(made) & np.isnan(known))
    with np.errstate(invalid="ignore"):
        apart = np.abs(made - known) / np.maximum(np.abs(known), 0.01)
    return np.where(same, 0, np.where(np.isfinite(apart), apart, np.inf))
