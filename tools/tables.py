"""Writes docs/tables.md: what every committed table holds, column by column: `python tools/tables.py`.

docs/tables.yaml says what tables and columns mean; the names of the columns come from the committed tables themselves.
"""

import csv
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "results" / profile / "tables" for profile in ("offline", "glue-minilm")]
PAGE, MEANINGS = ROOT / "docs" / "tables.md", ROOT / "docs" / "tables.yaml"
TOP = """# Tables

Every notebook saves its numbers as CSV under `results/<profile>/tables/`. Layers and heads count from 0; an empty cell
is a missing value; numbers have six digits. `*` stands for a task, a state or a paper. An entry of the atlas and of the
role tables of other maps has the columns of the table it comes from, with that name in front.
"""


@cache
def meanings() -> dict[str, dict[str, str]]:
    """The meaning of every table and column, by name or pattern."""
    return yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))


def known(name: str, entries: Mapping[str, str]) -> str | None:
    """The entry for a name: its own, else that of the first pattern that fits; None if there is none."""
    return name if name in entries else next((each for each in entries if fnmatchcase(name, each)), None)


def columns() -> dict[str, list[str]]:
    """The columns of all committed tables, by the entry of their table, in order."""
    found: dict[str, list[str]] = {}
    for path in sorted(path for folder in FOLDERS for path in folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            names = next(csv.reader(file))
        entry = known(path.stem, meanings()["tables"]) or path.stem
        found[entry] = [*dict.fromkeys([*found.get(entry, []), *names])]
    return found


def page(tables: Mapping[str, Iterable[str]]) -> str:
    """The page: a section for each table, a line for each column or pattern of columns."""
    lines = [TOP]
    for table, names in sorted(tables.items()):
        lines += [f"## {table}", "", meanings()["tables"][table], ""]
        entries = dict.fromkeys(known(name, meanings()["columns"]) for name in names)
        lines += [f"- `{entry}`: {meanings()['columns'][entry]}" for entry in entries]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(columns()), encoding="utf-8")
    sys.exit(0)
