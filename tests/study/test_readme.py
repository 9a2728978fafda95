"""README tells the truth: its code runs, its pictures and files exist, its table is the committed one."""

import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.scores.sieves import SIEVES
from analysis.statistics.verdicts import short_table
from analysis.study import profiles

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_library_code_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 2
    names: dict = {}
    try:
        for block in blocks:
            exec(block, names)  # noqa: S102
    finally:
        SIEVES.pop("first_word", None)
    assert names["scores"].dims == ("sequence", "role", "layer", "head")
    assert names["scores"].shape == (200, 5, 6, 12)
    shown = re.search(r"table = role_table.*  # (.*)", README).group(1)
    assert set(shown.split(", ")) - {"..."} < set(names["table"].columns)
    assert names["syntax"].role.values.tolist() == ["nsubj", "dobj", "amod", "advmod", "syntactic"]
    assert names["own"].notnull().all()


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).is_file(), target


def test_claims_are_those_of_the_committed_results() -> None:
    claims = pd.read_csv(ROOT / "results" / "glue-minilm" / "tables" / "claims.csv")
    shown = short_table(claims).to_markdown(index=False)
    block = README.split("<!-- claims -->\n")[1].split("<!-- /claims -->")[0]
    assert block.strip() == shown.strip()


def test_profiles_and_notebooks_named_are_those_there() -> None:
    there = {path.stem for path in (ROOT / "profiles").glob("*.yaml")}
    assert set(re.findall(r"^\| `([a-z-]+)`", README, flags=re.MULTILINE)) == there
    assert re.findall(r"^\| `(\d\d_\w+)` ", README, flags=re.MULTILINE) == profiles.notebook_names()


@pytest.mark.parametrize("target", ["reproduce", "test", "notebook", "lint"])
def test_make_targets_named_exist(target: str) -> None:
    assert f"make {target}" in README or f" {target}`" in README
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
