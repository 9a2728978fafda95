"""The source of the site for Jupyter Book: pages, executed notebooks and their table of contents.

`python tools/site/source.py TARGET RESULTS/PROFILE ...`. Everything lies where it lies in the repository. Links lead to
the pages that are made of the files they name. A link to what is not there becomes text and is printed, unless it is a
figure, which a profile need not draw.
"""

import json
import posixpath
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "data/README.md", "benchmarks/README.md"]
# In reading order.
DOCUMENTS = "method claims figures glossary artifact install encoders scale architecture".split()
# Code and formulas, in which nothing is a link; or the text of a link, its path and its anchor. Pictures are no links.
LINK = re.compile(
    r"^```.*?^```|^~~~.*?^~~~|\$\$.*?\$\$|(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)|`[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
PICTURE = re.compile(r"!\[[^\]]*\]\((?!\w+:)([^)]+)\)")
LINKS = ("links-above", "links-below")  # cells that link to the neighbours: the site has its own links


class Source:
    """A folder in which the files of the repository and of results lie as in the repository."""

    def __init__(self, target: Path, profiles: list[Path]):
        self.target, self.missing = target, set()
        documents = [f"docs/{name}.md" for name in DOCUMENTS]
        reports = [f"benchmarks/results/{path.name}" for path in sorted(ROOT.glob("benchmarks/results/*.md"))]
        self.files = {name: ROOT / name for name in [*PAGES, *documents, *reports]}
        citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
        self.papers = {paper["authors"][0]["family-names"]: paper for paper in citation["references"]}
        parts = {
            "Notebooks": [self.profile(folder) for folder in profiles],
            "About the study": [
                *chapters(documents),
                {"file": "benchmarks/index", "sections": chapters(reports)},
                *chapters(["data/README.md", "CONTRIBUTING.md", "CHANGELOG.md"]),
            ],
            "Papers": [{"url": paper["url"], "title": paper["title"]} for paper in self.papers.values()],
        }
        listed = [{"caption": caption, "chapters": part} for caption, part in parts.items()]
        self.contents = {"format": "jb-book", "root": "index", "parts": listed}

    def profile(self, folder: Path) -> dict:
        """Takes in the results of a profile; gives its index with the notebooks in their order there, as a chapter."""
        home = f"results/{folder.name}"
        index = (folder / "README.md").read_text(encoding="utf-8").split("## Notebooks and figures")[-1]
        copies = [name for name in re.findall(r"\]\((notebooks/[^)]*)\)", index) if (folder / name).exists()]
        figures = [f"figures/{path.name}" for path in folder.glob("figures/*.png")]
        names = ["README.md", "explorer.html", *figures, *dict.fromkeys(copies)]
        self.files |= {f"{home}/{name}": folder / name for name in names}
        sections = chapters(name for name in self.files if name.startswith(f"{home}/notebooks/"))
        return {"file": f"{home}/index", "sections": sections}

    def write(self) -> None:
        """Writes pages, notebooks, the files that pages link to, and the table of contents."""
        for name, path in list(self.files.items()):
            if name.endswith(".md"):
                text = path.read_text(encoding="utf-8")
                if not text.startswith("# "):  # tables of the benchmarks
                    text = f"# {path.stem.capitalize()}\n\n{text}"
                self.save(renamed(name), self.linked(text, name))
            elif name.endswith(".ipynb"):
                self.save(name, json.dumps(self.prepared(json.loads(path.read_text(encoding="utf-8")), name)))
        self.save("_static/site.css", (Path(__file__).parent / "site.css").read_text(encoding="utf-8"))
        self.save("_toc.yml", yaml.safe_dump(self.contents, sort_keys=False))
        for name in sorted(self.missing):
            if "/figures/" in name:  # a profile need not make every figure
                continue
            print(f"no link to {name}, which is not there")

    def save(self, name: str, text: str) -> None:
        path = self.target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def linked(self, text: str, name: str) -> str:
        """The text of a page with links to pages of the site, and to the papers in the line that names the source."""
        folder = posixpath.dirname(name)
        for picture in PICTURE.findall(text):
            self.copy(posixpath.normpath(posixpath.join(folder, picture)), self.target)
        text = LINK.sub(lambda found: self.link(folder, *found.groups()) if found[1] else found[0], text)
        return re.sub(r"^\*Source: .*", self.cited, text, flags=re.MULTILINE)

    def link(self, folder: str, text: str, path: str, anchor: str | None) -> str:
        """A link to a page or a file of the site, or its text alone, in a tag so that "3. Roles" begins no list."""
        if not path:
            return f'<a href="{anchor}">{text}</a>'
        name = posixpath.normpath(posixpath.join(folder, path))
        page = name.endswith((".md", ".ipynb"))
        if not (name in self.files if page else self.copy(name, self.target / "_files")):
            self.missing.add(name)
            return f"<a>{text}</a>"
        place = re.sub(r"\.(md|ipynb)$", ".html", renamed(name)) if page else name
        return f'<a href="{posixpath.relpath(place, folder or ".")}{anchor or ""}">{text}</a>'

    def copy(self, name: str, folder: Path) -> bool:
        """Copies a file of the results or of the repository to its place in a folder; says whether there is one."""
        path = self.files.get(name, ROOT / name)
        if not path.is_file():
            return False
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
        return True

    def cited(self, line: re.Match) -> str:
        """The line of the source with a link to each paper."""
        paper = rf"({'|'.join(self.papers)})( et al\.| and \w+)? \d{{4}}"
        return re.sub(paper, lambda match: f"[{match[0]}]({self.papers[match[1]]['url']})", line[0])

    def prepared(self, notebook: dict, name: str) -> dict:
        """A notebook without the links to its neighbours; pictures have their alternative texts and sizes."""
        cells = [cell for cell in notebook["cells"] if cell.get("id") not in LINKS]
        above = "".join(notebook["cells"][0]["source"])
        if len(cells) < len(notebook["cells"]):  # what the run cost stands below the title
            title, _, text = "".join(cells[0]["source"]).partition("\n")
            cells[0]["source"] = f"{title}\n\n*A{above.split(' · ')[-1][1:]}.*\n{text}"
        for cell in cells:
            if cell["cell_type"] == "markdown":
                cell["source"] = self.linked("".join(cell["source"]), name)
            for output in cell.get("outputs", []):
                if "text/markdown" in output.get("data", {}):
                    text = "".join(output["data"]["text/markdown"])
                    output["data"]["text/markdown"] = self.linked(text, name)
                picture = output.get("metadata", {}).get("image/png", {})
                options = {key: str(picture[key]) for key in ("alt", "width") if key in picture}
                if options:  # MyST-NB reads them from the cell, whose pictures have the same
                    cell["metadata"]["mystnb"] = {"image": options}
        return {**notebook, "cells": cells}


def chapters(names: Iterable[str]) -> list[dict[str, str]]:
    """Pages as the table of contents names them."""
    return [{"file": str(Path(renamed(name)).with_suffix(""))} for name in names]


def renamed(name: str) -> str:
    """The name of a page in the site: a README is the index of its folder."""
    return name.replace("README.md", "index.md")


if __name__ == "__main__":
    target, *folders = map(Path, sys.argv[1:])
    Source(target, folders).write()
