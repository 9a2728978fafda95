"""What README and docs/claims.md say follows from the tables of a profile."""

import pandas as pd

from analysis.study.front_page import claims_document, claims_section, classifiers_section

CLAIM = {
    "claim": "C1: heads have roles", "origin": "the article's", "source": "article", "definition": "Share of heads.",
    "published": "many (article)", "ours": "38% of heads", "n": 72, "relation": ">=", "bound": 0.1, "low": 0.3,
    "high": 0.4, "verdict": "holds", "controlled": "2% of heads: does not hold", "control_value": "0% of heads",
    "brief": "heads have | roles", "released": "26%", "found": "38% (36% to 40%)", "control_verdict": "does not hold",
}  # fmt: skip


def row_of(*claims):
    """The row of Pande et al. on the front page."""
    (row,) = claims_section({"pande2021": pd.DataFrame(claims), "clark2019": pd.DataFrame()}).splitlines()[2:]
    return row


def test_papers_have_a_row_with_their_verdicts_and_the_headlines_of_their_claims():
    assert row_of(CLAIM) == (
        "| [Pande et al. 2021](docs/claims.md#pande2021) | 1 | 0 | 0 | 0 | "
        "many heads have several roles: 38% of heads ✓ ‡ |"
    )
    assert row_of(CLAIM | {"found": ""}).endswith("| heads have \\| roles ✓ ‡ |")


def test_only_a_row_with_questions_of_others_marks_those_of_this_study():
    own = CLAIM | {"origin": "this study's"}
    assert row_of(own).endswith("of heads ✓ ‡ |")
    assert row_of(own, CLAIM | {"claim": "C2a: delimiter heads"}).endswith("of heads ✓ ‡ ° |")


def test_a_claim_has_its_values_in_a_row_its_definition_and_its_figure():
    claim = CLAIM | {"control_value": float("nan")}
    page = claims_document({"pande2021": pd.DataFrame([claim])}, "MiniLM", "figures")
    link = "[C1](figures/F5-sets-mrpc.png) heads have \\| roles"
    assert f"| {link} | 38% | 30% to 40% | ≥ 10% |  | 26% | ✓ ‡ holds |" in page
    assert "- **C1: heads have roles.**\n  - *Source:* article\n  - *Definition:* Share of heads.\n" in page
    assert "*With heads that beat their control:* 2% of heads: does not hold" in page
    assert "*Controls:*" not in page


def test_classifiers_stand_beside_the_constant_answer():
    row = {"task": "mrpc", "metric": "accuracy", "constant": 0.683, "train": 3668}
    table = pd.DataFrame([row | {"finetuned": value} for value in (0.78, 0.8)])
    other = table.assign(metric="f1")
    assert classifiers_section(pd.concat([table, other])).splitlines()[2:] == [
        "| mrpc | accuracy 0.78 to 0.80 | 0.68 | 3,668 |"
    ]
