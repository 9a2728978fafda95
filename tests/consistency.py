"""Do the files of a profile's results agree? Each check returns what does not, for fresh and for committed results."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import jupytext
import nbformat
import pandas as pd

from analysis.files import ROOT, parse_yaml
from analysis.study.copies import code_of
from analysis.study.parameters import source
from analysis.study.profiles import in_machine_room

DICTIONARY = ROOT / "docs" / "tables.yaml"
MEANINGS = parse_yaml(DICTIONARY.read_bytes(), DICTIONARY)


def copies_of_other_code(folder: Path) -> list[str]:
    """The executed copies whose code is not that of notebooks/."""
    copies = sorted(folder.glob("notebooks/*.ipynb"))
    codes = {path.stem: code_of(nbformat.read(path, as_version=4)) for path in copies}
    return [run for run, code in codes.items() if code != code_of(jupytext.read(source(run.split("-")[0])))]


def dead_links(folder: Path) -> set[str]:
    """The links of executed copies to files that are not there, after the name of the copy.

    Links out of the results lead into the checkout, wherever the results of a test lie.
    """
    dead = set()
    for path in folder.glob("notebooks/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            links = re.findall(r"\]\((?!\w+:|#)([^)#]+)", cell.source) if cell.cell_type == "markdown" else ()
            targets = {
                link: ROOT / link[9:] if link.startswith("../../../") else path.parent / link
                for link in links
            }
            dead |= {f"{path.stem}: {link}" for link, target in targets.items() if not target.exists()}
    return dead


def faults_of_index(folder: Path) -> set[str]:
    """Links of the index that lead nowhere or stand there too often, and notebooks and figures without a link."""
    links = re.findall(r"\]\((.*?)\)", (folder / "README.md").read_text(encoding="utf-8"))
    files = {*folder.glob("notebooks/*.ipynb"), *folder.glob("figures/*.png")}
    # What git ignores a machine may have made since.
    files = {path for path in files if not in_machine_room(path.stem.replace("F0-training", "00_finetune"))}
    names = {str(path.relative_to(folder)) for path in files}
    broken = {link for link in links if not (folder / link).is_file()}
    return broken | (names - {*links}) | {link for link in links if links.count(link) > 2}


def without_meaning(folder: Path) -> list[str]:
    """The tables and columns that docs/tables.yaml does not describe."""
    tables = {path.stem: pd.read_csv(path, nrows=0) for path in sorted(folder.glob("tables/*.csv"))}
    columns = {column for table in tables.values() for column in table}
    unknown = [name for name in tables if _entry(name, MEANINGS["tables"]) is None]
    return unknown + [name for name in sorted(columns) if _entry(name, MEANINGS["columns"]) is None]


def _entry(name: str, entries: Iterable[str]) -> str | None:
    """The entry that describes a name: its own, or the first pattern that fits."""
    return name if name in entries else next((item for item in entries if fnmatchcase(name, item)), None)


def cells_with_extra_pictures(folder: Path) -> list[str]:
    """The cells of executed copies that show more pictures than they save figures, such as an empty one."""
    extra = []
    for path in sorted(folder.glob("notebooks/*.ipynb")):
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
            pictures = [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
            if len(pictures) > cell.source.count("save_figure(") + cell.source.count("Image("):
                extra.append(f"{path.stem} [{number}]")
    return extra


def claims_that_differ(folder: Path) -> list[str]:
    """The claims of which two executed copies show another estimate, threshold or control."""
    row = re.compile(
        r"^\| (?:<a.*?</a>\[)?([A-Z]+\d+[a-c]?)\b.*? \| (.*?) \| (.*?) \| (.*?) \| ", re.MULTILINE
    )
    shown: dict[str, set[tuple[str, ...]]] = {}
    for path in folder.glob("notebooks/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                for claim, *numbers in row.findall(output.get("data", {}).get("text/markdown", "")):
                    shown.setdefault(claim, set()).add(tuple(numbers))
    return sorted(claim for claim, numbers in shown.items() if len(numbers) > 1)
