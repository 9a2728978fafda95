"""README tells the truth: its code runs, its pictures and files exist, its table is the committed one."""

import json
import re
from pathlib import Path

import pytest

from analysis.study import front_page
from analysis.study.front_page import (
    WHOLE,
    claims_document,
    claims_section,
    classifiers_section,
    filled,
    places,
    save_front_page,
    saved_claims,
)
from analysis.study.results import Results
from analysis.study.runs import VARIABLE, Run

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_library_code_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict = {}
    exec(block, names)  # noqa: S102
    assert names["scores"].dims == ("sequence", "role", "layer", "head")
    assert names["scores"].shape == (200, 4, 6, 12)
    assert names["twins"].attrs["maps"] == "twin"
    shown = re.search(r"table = role_table.*  # (.*)", README).group(1)
    assert set(shown.split(", ")) - {"..."} < set(names["table"].columns)


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


def section(name: str) -> str:
    return README.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0].strip()


def test_places_are_filled_from_the_committed_results(monkeypatch) -> None:
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    results = Results("glue-minilm")
    numbers = places(results)
    blocks = {
        "classifiers": classifiers_section(results.load_table("finetune")),
        "verdicts": section("verdicts"),
    }
    assert filled(README, numbers | blocks) == README
    tables = saved_claims(results)
    if not tables:
        pytest.skip("claims were made by an earlier form; rebuilt at the next full run")
    assert section("verdicts") == claims_section(tables)
    page = claims_document(tables, "glue-minilm", "../results/glue-minilm/figures")
    assert (ROOT / "docs" / "claims.md").read_text(encoding="utf-8") == page


def test_findings_hold_numbers_only_through_named_places() -> None:
    findings = README.split("## What we found\n")[1].split("\n## ")[0]
    text = re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->|\]\(.*?\)", "", findings, flags=re.DOTALL)
    assert re.findall(r"(?<![\w-])\d+(?![\w-])", text) == []
    summary = (ROOT / "notebooks" / "99_summary.py").read_text(encoding="utf-8")
    prose = re.findall(r"^# (?!%|jupyter|-)(.*)$", summary.split("# %% [markdown]", 1)[1], re.MULTILINE)
    assert [line for line in prose if re.search(r"\d", line)] == []


@pytest.mark.parametrize("whole", [True, False])
def test_only_a_run_of_all_papers_writes_the_front_page(tmp_path, monkeypatch, capsys, whole: bool) -> None:
    """Prose and numbers that no table changes stay."""
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    monkeypatch.setenv(WHOLE, "yes" if whole else "")
    announced = Run("99_summary", {"profile": "glue-minilm"}, stage=str(tmp_path))
    monkeypatch.setenv(VARIABLE, json.dumps(announced._asdict()))
    monkeypatch.setattr(front_page, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    results = Results("glue-minilm")
    save_front_page(results, {}, results.load_table("finetune"), places(results))
    assert (tmp_path / "docs" / "claims.md").exists() == whole
    assert ("stay as they are" in capsys.readouterr().out) != whole
    written = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert (written != README) == whole
    assert written.startswith(README.split("\n")[0])


def test_profiles_named_are_those_there() -> None:
    there = {path.stem for path in (ROOT / "profiles").glob("*.yaml")}
    assert set(re.findall(r"^\| `([a-z-]+)`", README, flags=re.MULTILINE)) == there
