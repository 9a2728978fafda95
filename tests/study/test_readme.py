"""README tells the truth: its code runs, its pictures and files exist, its table is the committed one."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.study import (
    Results,
    all_highlights,
    claims_document,
    claims_section,
    classifiers_section,
    findings_section,
    papers,
    save_front_page,
)
from analysis.study.front_page import WHOLE
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


def test_sections_are_those_of_the_committed_results(monkeypatch) -> None:
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    results = Results("glue-minilm")
    tables = {name: paper.summary(results) for name, paper in papers().items()}
    encoder, figures = tables["pande2021"]["encoder"].iloc[0], "../results/glue-minilm/figures"
    assert section("claims") == claims_section(tables)
    assert section("findings") == findings_section(all_highlights(results))
    assert section("classifiers") == classifiers_section(results.load_table("finetune"))
    assert (ROOT / "docs" / "claims.md").read_text(encoding="utf-8") == claims_document(
        tables, encoder, figures
    )


@pytest.mark.parametrize("whole", [True, False])
def test_only_a_run_of_all_papers_writes_the_front_page(tmp_path, monkeypatch, capsys, whole: bool) -> None:
    """It writes aside, and what it writes is the committed page."""
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    monkeypatch.setenv(WHOLE, "yes" if whole else "")
    announced = Run("99_summary", {"profile": "glue-minilm"}, stage=str(tmp_path))
    monkeypatch.setenv(VARIABLE, json.dumps(announced._asdict()))
    results = Results("glue-minilm")
    tables = {name: paper.summary(results) for name, paper in papers().items()}
    encoder = tables["pande2021"]["encoder"].iloc[0]
    finetune = results.load_table("finetune") if whole else pd.DataFrame()
    save_front_page(results, tables, encoder, finetune)
    pages = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    assert pages == ({"checkout/README.md", "checkout/docs/claims.md"} if whole else set())
    assert ("stay as they are" in capsys.readouterr().out) != whole
    assert all((tmp_path / page).read_bytes() == (ROOT / page[9:]).read_bytes() for page in pages)


def test_profiles_named_are_those_there() -> None:
    there = {path.stem for path in (ROOT / "profiles").glob("*.yaml")}
    assert set(re.findall(r"^\| `([a-z-]+)`", README, flags=re.MULTILINE)) == there
