"""The results of a profile as a small static site; `python -m analysis.study.report --profile P` writes it."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template
from typing import NamedTuple

from tqdm import tqdm

from analysis.errors import InputError, exit_status
from analysis.files import write_text
from analysis.study.folders import Folders
from analysis.study.profiles import command_line

TEMPLATE = Path(__file__).with_name("report.html")
EXPLORER = "explorer.html"
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
QUESTION = re.compile(r"\*\*Question\.\*\*(?:[^?]*[.]\s)?\s*([^?]+\?)")  # the first sentence that asks
MARKUP = re.compile(r"[*`$\\]")


class Entry(NamedTuple):
    """An executed notebook in the index: the name of its file, its title and its question."""

    name: str
    title: str
    question: str


def write_site(profile: str) -> Path:
    """Writes the site of a profile to its cache and returns the path of the index.

    The site holds the executed notebooks as web pages, the figures, the head explorer, and an index with links to them.
    It opens from the disk, and its folder can be moved. Formulas need MathJax, which a browser fetches from the net;
    without it they show as TeX. Raises InputError if no notebook has run.
    """
    folders = Folders(profile)
    executed = sorted(folders.notebooks.glob("*.ipynb"))
    if not executed:
        raise InputError(
            f"{folders.notebooks} holds no executed notebook: run make reproduce for this profile"
        )
    site = folders.cache / "report"
    shutil.rmtree(site, ignore_errors=True)  # it may hold files that the present notebooks no longer make
    entries = [_write_notebook(path, site) for path in tqdm(executed, desc="web pages", unit="notebook")]
    if folders.figures.exists():
        shutil.copytree(folders.figures, site / "figures")
    for path in folders.folder.glob(EXPLORER):
        shutil.copyfile(path, site / EXPLORER)
    write_text(site / "index.html", _index(profile, entries, site))
    return site / "index.html"


def _write_notebook(path: Path, site: Path) -> Entry:
    """Writes one executed notebook as a web page with a link back to the index."""
    import nbformat
    from nbconvert import HTMLExporter

    notebook = nbformat.read(path, as_version=4)
    entry = _entry(path.stem, [cell.source for cell in notebook.cells if cell.cell_type == "markdown"])
    exporter = HTMLExporter(require_js_url="")  # require.js would come from the network, and nothing needs it
    page, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": entry.title}})
    back = '<p style="margin: 12px"><a href="../index.html">Index</a></p>'
    write_text(
        site / "notebooks" / f"{path.stem}.html", re.sub(r"(<body[^>]*>)", rf"\1{back}", page, count=1)
    )
    return entry


def _entry(name: str, texts: Sequence[str]) -> Entry:
    first = texts[0] if texts else ""
    title, question = HEADING.search(first), QUESTION.search(first)
    plain = [MARKUP.sub("", " ".join(found[1].split())) if found else "" for found in (title, question)]
    return Entry(name, plain[0] or name, plain[1])


def _index(profile: str, entries: Sequence[Entry], site: Path) -> str:
    """The index of the notebooks, and of the figures and the head explorer that the site holds."""
    link = f'<p><a href="{EXPLORER}">Head explorer</a>: browse every head, its roles and its attention.</p>'
    rows = [_row([*runs]) for _, runs in groupby(entries, lambda entry: entry.name.split("-")[0])]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=f"Attention heads: results of the profile {escape(profile)}",
        explorer=link if (site / EXPLORER).exists() else "",
        notebooks="\n".join(rows),
        figures="\n".join(_picture(path) for path in sorted(site.glob("figures/*.png"))),
    )


def _row(runs: Sequence[Entry]) -> str:
    """A notebook's title and question, with a link to each of its runs."""
    links = [
        f'<a href="notebooks/{escape(run.name)}.html">{escape(run.name.partition("-")[2] or "read")}</a>'
        for run in runs
    ]
    return f"<dt>{escape(runs[0].title)}</dt><dd>{escape(runs[0].question)} {' · '.join(links)}</dd>"


def _picture(path: Path) -> str:
    """A figure of the index: a small picture with a link to the SVG drawing, or to the picture if there is none."""
    name = escape(path.stem)
    target = f"figures/{name}.svg" if path.with_suffix(".svg").exists() else f"figures/{name}.png"
    return (
        f'<figure><a href="{target}"><img src="figures/{name}.png" alt="{name}" loading="lazy"></a>'
        f"<figcaption>{name}</figcaption></figure>"
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints the path of the site, or one line for wrong input, and returns the exit status."""
    profile = command_line("analysis.study.report", __doc__).parse_args(arguments).profile
    return exit_status(lambda: print(f"open {os.path.relpath(write_site(profile))}"))


if __name__ == "__main__":
    sys.exit(main())
