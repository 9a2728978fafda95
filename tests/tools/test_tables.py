"""Every committed table and column has a meaning, and the page says it."""

from importlib.util import module_from_spec, spec_from_file_location

from analysis.files import ROOT

SPEC = spec_from_file_location("tables", ROOT / "tools" / "tables.py")
tables = module_from_spec(SPEC)
SPEC.loader.exec_module(tables)


def test_every_committed_table_and_column_has_a_meaning():
    known = tables.meanings()
    found = tables.columns()
    assert [name for name in found if name not in known["tables"]] == []
    named = {name for names in found.values() for name in names}
    assert [name for name in sorted(named) if tables.known(name, known["columns"]) is None] == []
    used = {tables.known(name, known["columns"]) for name in named}
    assert len(set(known["columns"]) - used) <= 30  # those of profile `paper` alone, and of tables not yet committed


def test_the_page_is_that_of_the_tables():
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(tables.columns())
