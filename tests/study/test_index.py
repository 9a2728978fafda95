"""The index of a profile's results."""

import json

from analysis.study import index
from analysis.study.runs import Folders


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
