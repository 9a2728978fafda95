"""The index of a profile's results."""

import json
import re

import pytest

from analysis.study import index
from analysis.study.folders import Folders
from analysis.study.runs import MACHINE_ROOM


@pytest.mark.parametrize("profile", ["glue-minilm", "offline"])
def test_committed_index_is_complete(profile: str, monkeypatch):
    """Every verdict, notebook and figure that is committed stands in it, and every link leads somewhere."""
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    folders = Folders(profile)
    text = (folders.folder / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((.*?)\)", text)
    assert all((folders.folder / link).is_file() for link in links)
    files = {*folders.notebooks.glob("*.ipynb"), *folders.figures.glob("*.png")}
    ignored = tuple(
        f"{name}-" for name in (*MACHINE_ROOM, "F0-training")
    )  # by git: this machine may have made them
    files = {str(path.relative_to(folders.folder)) for path in files if not path.name.startswith(ignored)}
    listed = {link for link in links if not link.split("/")[-1].startswith(ignored)}
    assert files == listed - {"explorer.html"}
    assert not [link for link in links if links.count(link) > 2]  # twice where one reads it first
    assert re.findall(r"^- (\w+: \d.*)$", text, re.MULTILINE) == [*index.verdicts(profile)]


def test_notebooks_stand_in_the_order_of_the_runs_with_their_figures(tmp_path, monkeypatch):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    folders = Folders("offline")
    for folder in (folders.notebooks, folders.provenance):
        folder.mkdir(parents=True)
    runs = ["99_summary", "03_test-toy-qqp", "03_test-toy-mrpc"]
    for run in runs:
        (folders.notebooks / f"{run}.ipynb").touch()
    figures = {"figures": {"b-heads": {}, "a-layers": {}}}
    (folders.provenance / "03_test-toy-qqp.json").write_text(json.dumps(figures))
    lines = index.write_index("offline", ["01_extract", *runs]).read_text(encoding="utf-8").splitlines()
    assert lines[6].startswith("1. [Summary: ")
    assert lines[7] == "1. [3. Which heads have which roles?](notebooks/03_test-toy-qqp.ipynb)"
    copies = "[toy-qqp](notebooks/03_test-toy-qqp.ipynb) · [toy-mrpc](notebooks/03_test-toy-mrpc.ipynb)"
    assert lines[-2:] == [
        f"- **3. Which heads have which roles?** {copies}",
        "  - [b-heads](figures/b-heads.png) · [a-layers](figures/a-layers.png)",
    ]
