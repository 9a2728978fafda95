"""README tells the truth: its code runs, its pictures and files exist, its table is the committed one."""

import json
import re
import shutil

import pandas as pd
import pytest

from analysis.errors import InputError
from analysis.files import ROOT
from analysis.study.front_page import TEMPLATE, WHOLE, save_front_page, table_number
from analysis.study.results import Results
from analysis.study.runs import VARIABLE, Run

TEXT = (ROOT / TEMPLATE).read_text(encoding="utf-8")  # README with places for numbers


def test_library_code_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    names: dict = {}
    exec(re.sub(r"n=\d+", "n=20", block), names)  # noqa: S102
    assert names["scores"].dims == ("sequence", "role", "layer", "head")
    assert names["scores"].shape == (20, 3, 6, 12)
    displayed = re.search(r"table = role_table.*: (.*)", TEXT).group(1)
    assert set(displayed.split(", ")) - {"..."} < set(names["table"].columns)


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_linked_files_exist(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = {*re.findall(r"`(\w+/(?:<paper>/)?\w+\.py)`", text)}
    assert len(modules) >= 15
    for name in modules:
        pattern = name.replace("<paper>", "*")
        assert [*(ROOT / "analysis").glob(pattern), *ROOT.glob(pattern)], name


def test_findings_hold_numbers_only_through_places() -> None:
    findings = TEXT.split("## What we found\n")[1].split("\n## ")[0]
    text = re.sub(r"\{[^}]*\}|\[.*?\]\(.*?\)", "", findings, flags=re.DOTALL)
    assert re.findall(r"(?<![\w-])\d+(?![\w-])", text) == []
    summary = (ROOT / "notebooks" / "99_summary.py").read_text(encoding="utf-8")
    prose = re.findall(r"^# (?!%|jupyter|-)(.*)$", summary.split("# %% [markdown]", 1)[1], re.MULTILINE)
    assert [line for line in prose if re.search(r"\d", line)] == []


def test_a_place_names_rows_of_a_table(tmp_path, monkeypatch) -> None:
    """The mean over the rows; a table that is not saved and rows that are not there give a dash."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    results = Results("quick")
    table = pd.DataFrame({"task": ["a", "a", "b, c"], "trained": [True, True, False], "n": [1.0, 4.0, 0.25]})
    results.save_table(table, "some")
    assert table_number(results, "some", "n", "task=a; trained=True", None) == "2.50"
    assert table_number(results, "some", "n", "task=b, c; trained=False", ".0%") == "25 %"
    no_row, no_table = (table_number(results, name, "n", "task=x", None) for name in ("some", "no"))
    assert no_row == no_table
    with pytest.raises(InputError, match="table some has no column state: task, trained, n"):
        table_number(results, "some", "n", "state=a", None)


@pytest.mark.parametrize("whole", [True, False])
def test_only_a_run_of_all_papers_writes_the_front_page(tmp_path, monkeypatch, capsys, whole: bool) -> None:
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    monkeypatch.setenv(WHOLE, "yes" if whole else "")
    announced = Run("99_summary", {"profile": "glue-minilm"}, running=True)
    monkeypatch.setenv(VARIABLE, json.dumps(announced._asdict()))
    monkeypatch.setattr("analysis.study.front_page.ROOT", tmp_path)
    monkeypatch.setattr("analysis.study.front_page.table_number", lambda *place: "1")
    (tmp_path / "docs").mkdir()
    for name in (TEMPLATE, "docs/tables.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    results = Results("glue-minilm")
    numbers = dict.fromkeys(re.findall(r"\{(\w+)\}", TEXT), "1")
    save_front_page(results, {}, numbers)
    assert (tmp_path / "docs" / "claims.md").exists() == whole
    assert (tmp_path / "README.md").exists() == whole
    assert ("stay as they are" in capsys.readouterr().out) != whole


def test_profiles_named_are_those_there() -> None:
    there = {path.stem for path in (ROOT / "profiles").glob("*.yaml")}
    assert set(re.findall(r"^\| `([a-z-]+)`", TEXT, flags=re.MULTILINE)) == there
