"""The index of a profile's results."""

import json
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from analysis.study import index
from analysis.study.folders import Folders
from analysis.study.results import Results


@pytest.mark.parametrize("profile", ["glue-minilm", "offline"])
def test_committed_index_is_complete(profile: str, monkeypatch):
    """Every verdict, notebook and figure that is committed stands in it, and every link leads somewhere."""
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    folders = Folders(profile)
    text = (folders.folder / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((.*?)\)", text)
    assert all((folders.folder / link).is_file() for link in links)
    there = {*folders.notebooks.glob("*.ipynb"), *folders.figures.glob("*.png")}
    assert {str(path.relative_to(folders.folder)) for path in there} == {*links} - {"explorer.html"}
    assert not [link for link in links if links.count(link) > 2]  # twice where one reads it first
    if not index.saved_claims(Results(profile)):
        pytest.skip("verdicts were made by an earlier form; rebuilt at the next full run")
    assert re.findall(r"^- (\w+: \d.*)$", text, re.MULTILINE) == [*index.verdicts(profile)]


def test_figures_stand_under_their_headings(tmp_path, monkeypatch):
    """The pictures that a notebook shows are the figures that its run has saved, in their order."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    monkeypatch.setattr(index, "papers", lambda: {})
    folders = Folders("quick")
    for folder in (folders.notebooks, folders.provenance):
        folder.mkdir(parents=True)
    shown = [new_output("display_data", {"image/png": "iVBORw0KGgo="})]
    cells = [
        new_markdown_cell("# 1. Scores\n\nWhy?"),
        new_code_cell("1"),
        new_markdown_cell("Prose.\n\n## F1. Heads"),
        new_code_cell("2", outputs=shown),
        new_markdown_cell("## F2. Layers"),
        new_code_cell("3", outputs=shown),
    ]
    nbformat.write(new_notebook(cells=cells), folders.notebooks / "01_first-mrpc.ipynb")
    (folders.provenance / "01_first-mrpc.json").write_text(
        json.dumps({"figures": {"b-heads": {}, "a-layers": {}}})
    )
    assert index.write_index("quick").read_text(encoding="utf-8").splitlines()[-3:] == [
        "- **1. Scores** [mrpc](notebooks/01_first-mrpc.ipynb)",
        "  - F1. Heads: [b-heads](figures/b-heads.png)",
        "  - F2. Layers: [a-layers](figures/a-layers.png)",
    ]
