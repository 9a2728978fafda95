"""Which tables of heads have a line on the card of a head, and which of their columns the line shows."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Measure:
    """A line of the card: a label and the columns of a table; the page leaves out columns that the table does not have.

    Rows that differ in `seed` become their median and range. Rows that differ in a column of `by` have a line each; if
    `parts` is true, they share a line as parts of a whole. In a table with roles, the line shows the chosen role.
    """

    label: str
    table: str
    value: str
    by: tuple[str, ...] = ()
    parts: bool = False
    p: str = "p_by"


MEASURES = (
    Measure("importance", "michel_importance", "importance", ("granularity", "normalised")),
    Measure("switched off", "michel_ablation", "change", ("metric",)),
    Measure("uniform attention instead", "kovaleva_disable", "change", ("metric",)),
    Measure("pattern", "kovaleva_pattern_heads", "share", ("pattern",), parts=True),
    Measure("role on effective attention", "roles-effective", "mean"),
    Measure("role on attribution", "roles-attribution", "mean"),
)


def measures_of(tables: Collection[str]) -> list[dict[str, Any]]:
    """The measures that the named tables contain."""
    return [asdict(measure) for measure in MEASURES if measure.table in tables]
