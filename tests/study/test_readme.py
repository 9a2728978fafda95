"""README tells the truth: its code runs, its pictures and files exist, its table is the committed one."""

import re

import pandas as pd
import pytest

from analysis.errors import InputError
from analysis.files import ROOT
from analysis.study import pages
from analysis.study.pages import TEMPLATE

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


def test_a_number_is_that_of_rows_of_a_table(tmp_path, monkeypatch) -> None:
    """The mean over the rows; a table that is not saved and rows that are not there give a dash."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    table = pd.DataFrame({"task": ["a", "a", "b, c"], "trained": [True, True, False], "n": [1.0, 4.0, 0.25]})
    (tmp_path / "quick" / "tables").mkdir(parents=True)
    for name in ("some", "claims-clark2019"):  # results without claims are not read
        table.to_csv(tmp_path / "quick" / "tables" / f"{name}.csv", index=False)
    assert pages.number_text(pages.number("some", "n", "quick", task="a", trained=True)) == "2.50"
    assert pages.number_text(pages.total("some", "n", "quick", task="a")) == "5"
    assert pages.percent(pages.number("some", "n", "quick", task="b, c")) == "25 %"
    missing = (pages.number(name, "n", "quick", task="x") for name in ("some", "no"))
    assert [*map(pages.number_text, missing)] == ["–", "–"]
    with pytest.raises(InputError, match="table some has no column state: task, trained, n"):
        pages.number("some", "n", "quick", state="a")


def test_profiles_named_are_those_there() -> None:
    there = {path.stem for path in (ROOT / "profiles").glob("*.yaml")}
    assert set(re.findall(r"^\| `([a-z-]+)`", TEXT, flags=re.MULTILINE)) == there
