"""results/<profile>/README.md: every notebook and figure of a profile with a line each, and the verdicts."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import jupytext
import pandas as pd

from analysis.files import write_text
from analysis.study.discovery import papers
from analysis.study.folders import Folders
from analysis.study.plan import plan
from analysis.study.profiles import source
from analysis.study.results import Results
from analysis.study.runs import Run

HEADING = re.compile(r"^#{1,2} +(.+)$", re.MULTILINE)


COUNTED = {  # verdicts, as several of them are spoken of
    "holds": "hold",
    "does not hold": "do not hold",
    "undecided": "undecided",
    "untestable": "untestable",
}


def counted(claims: pd.DataFrame) -> str:
    """How many claims have each verdict, in words; `claims` is a claim table."""
    counts = Counter(claims["verdict"])
    return (
        ", ".join(f"{counts[name]} {word}" for name, word in COUNTED.items() if name in counts)
        or "no verdicts"
    )


def write_index(profile: str) -> Path:
    """Writes the index of a profile's results; returns its path."""
    folders = Folders(profile)
    path = folders.folder / "README.md"
    write_text(path, "\n".join(index_lines(profile, folders)) + "\n")
    return path


def index_lines(profile: str, folders: Folders) -> Iterator[str]:
    """The lines of the index: verdicts, notebooks in reading order, and below each its figures."""
    yield from (f"# Results of profile `{profile}`", "", "## Verdicts", "")
    for name, paper in papers().items():
        yield f"- {name}: {counted(paper.summary(Results(profile)))}"
    yield from ("", "## Notebooks and figures", "")
    for run in plan(profile):
        if (folders.notebooks / f"{run.name}.ipynb").exists():
            yield f"- [{run.name}](notebooks/{run.name}.ipynb): {titles(run.notebook)[0]}"
            for stem, heading in figures(run, folders):
                yield f"  - [{stem}](figures/{stem}.png): {heading}"


def titles(notebook: str) -> list[str]:
    """The headings of a notebook, its title first, without numbers."""
    text = "\n".join(
        cell.source for cell in jupytext.read(source(notebook)).cells if cell.cell_type == "markdown"
    )
    return [heading.strip() for heading in HEADING.findall(text)]


def figures(run: Run, folders: Folders) -> Iterator[tuple[str, str]]:
    """The figures that a run has saved, each with the heading it stands under."""
    heading = ""
    for cell in jupytext.read(source(run.notebook)).cells:
        if cell.cell_type == "markdown":
            heading = ([heading] + HEADING.findall(cell.source))[-1]
        else:
            for pattern in _saved(cell.source, dict(run.settings)):
                yield from ((path.stem, heading) for path in sorted(folders.figures.glob(f"{pattern}.png")))


def _saved(code: str, values: Mapping[str, str]) -> Iterator[str]:
    """The names under which a cell saves figures, `*` for what only the notebook knows."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "results.save_figure":
            name = node.args[1]
            parts = name.values if isinstance(name, ast.JoinedStr) else [name]
            yield "".join(
                part.value if isinstance(part, ast.Constant) else values.get(ast.unparse(part.value), "*")
                for part in parts
            )
