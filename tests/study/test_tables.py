"""docs/tables.yaml, the dictionary of tables, says what every committed table and column means."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

import pandas as pd

from analysis.files import ROOT, parse_yaml

DICTIONARY = ROOT / "docs" / "tables.yaml"
MEANINGS = parse_yaml(DICTIONARY.read_bytes(), DICTIONARY)
COMMITTED = [
    path
    for profile in ("offline", "glue-minilm")
    for path in (ROOT / "results" / profile / "tables").glob("*.csv")
]


def entry(name: str, entries: Iterable[str]) -> str | None:
    """The entry that describes a name: its own, or the first pattern that fits."""
    return name if name in entries else next((each for each in entries if fnmatchcase(name, each)), None)


def test_every_committed_table_and_column_has_a_meaning():
    assert COMMITTED
    assert [path.stem for path in COMMITTED if entry(path.stem, MEANINGS["tables"]) is None] == []
    columns = {column for path in COMMITTED for column in pd.read_csv(path, nrows=0)}
    columns = {
        column.replace("audited", "corrected") for column in columns
    }  # until the tables are made again
    assert [column for column in sorted(columns) if entry(column, MEANINGS["columns"]) is None] == []
