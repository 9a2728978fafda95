"""Which tables have lines of their own on the card."""

import dataclasses

from headtables import STATES, TASKS, measure_tables

from analysis.explorer.measures import MEASURES, measures_of
from analysis.explorer.payload import head_tables


def test_every_measure_finds_its_columns():
    found = head_tables(measure_tables(), TASKS, STATES)
    for measure in MEASURES:
        assert {measure.value, *measure.by} <= {*found[measure.table]["columns"]}


def test_tables_that_are_not_there_have_no_line():
    given = measures_of(["michel_importance", "masses"])
    assert [measure["label"] for measure in given] == ["importance"]
    assert given[0].keys() == {field.name for field in dataclasses.fields(MEASURES[0])}
