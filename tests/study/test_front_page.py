"""What README and docs/claims.md say follows from the claim tables."""

import pandas as pd

from analysis.study.front_page import definitions_page, paper_titles, verdicts_section

CLAIM = {
    "claim": "C1: heads have roles", "source": "article", "definition": "Share of heads.",
    "published": "many (article)",
    "ours": "38% of heads", "n": 72, "relation": ">=", "bound": 0.1, "low": 0.3, "high": 0.4, "verdict": "holds",
    "controlled": "2% of heads: does not hold", "control_value": "0% of heads", "brief": "many heads have roles",
    "released": "26%", "found": "38% (36% to 40%)", "control_verdict": "does not hold",
}  # fmt: skip


def test_sections_are_grouped_by_paper_and_leave_out_papers_without_claims():
    tables = {"pande2021": pd.DataFrame([CLAIM]), "clark2019": pd.DataFrame()}
    said = verdicts_section(tables, "MiniLM")
    assert said.startswith(f"**{paper_titles()['pande2021']}**")
    assert paper_titles()["clark2019"] not in said
    lines = said.splitlines()[0].split("<br>")[1:]
    assert lines == ["✓ ‡ many heads have roles: 38% (36% to 40%), *26%*"]


def test_cards_hold_every_fact_once():
    page = definitions_page({"pande2021": pd.DataFrame([CLAIM | {"control_value": float("nan")}])}, "MiniLM")
    assert "### C1: heads have roles\n\n**holds**\n" in page
    assert "- Found: 38% of heads (95 % interval 0.3 to 0.4, bound >= 0.1; n = 72)" in page
    assert "- With heads that beat their control: 2% of heads: does not hold" in page
    assert "Controls:" not in page
