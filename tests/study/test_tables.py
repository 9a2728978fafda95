"""docs/tables.yaml, the dictionary of results, says what every table, column and figure means."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

import pandas as pd
import pytest
from studies import saved

from analysis.files import ROOT, parse_yaml
from analysis.study.profiles import notebook_names
from analysis.study.results import Results

DICTIONARY = ROOT / "docs" / "tables.yaml"
MEANINGS = parse_yaml(DICTIONARY.read_bytes(), DICTIONARY)


def entry(name: str, entries: Iterable[str]) -> str | None:
    """The entry that describes a name: its own, or the first pattern that fits."""
    return name if name in entries else next((item for item in entries if fnmatchcase(name, item)), None)


@pytest.mark.parametrize("profile", ["offline", "glue-minilm"])
def test_every_committed_table_and_column_has_a_meaning(profile: str):
    committed = sorted(Results(profile).profile.tables.glob("*.csv"))
    assert [path.stem for path in committed if entry(path.stem, MEANINGS["tables"]) is None] == []
    columns = {column for path in committed for column in pd.read_csv(path, nrows=0)}
    assert [column for column in sorted(columns) if entry(column, MEANINGS["columns"]) is None] == []


def test_figures_are_those_that_notebooks_save():
    names = {name for notebook in notebook_names() for part in saved(notebook, "figure") for name in part}
    assert names == {*MEANINGS["figures"]}
    assert len(names - {"F0-training-*"}) <= 75  # git ignores the figures of training
