"""What README and docs/claims.md say follows from the tables of a profile."""

import pandas as pd
import pytest

from analysis.errors import InputError
from analysis.papers.pande2021 import CLAIMS
from analysis.statistics.claims import claim_table, frame
from analysis.study.front_page import claims_document, claims_section, classifiers_section, filled

UNITS = frame({"toy-mrpc": (0.3, 0.25, 0.35), "toy-qqp": (0.4, 0.35, 0.45)})
TABLE = claim_table(CLAIMS, {"C1": UNITS})


def test_papers_have_a_row_with_the_number_of_each_verdict():
    rows = claims_section({"pande2021": TABLE, "clark2019": pd.DataFrame()}).splitlines()[2:]
    assert rows == ["| [Pande et al. 2021](docs/claims.md#pande2021) | 1 | 0 | 0 | 0 | 11 |"]


def test_a_claim_has_its_numbers_in_a_row_what_is_measured_and_its_figure():
    page = claims_document({"pande2021": TABLE}, "offline", "figures")
    link = (
        "[C1](figures/F5-sets-toy-mrpc.png) Roles are not mutually exclusive; many heads are multi-functional"
    )
    assert f"| {link} | 0.35 [0.31, 0.39] | 0.30 (toy-mrpc) to 0.40 (toy-qqp) | > 0.1 |  |  |" in page
    assert "- **C1** (question 1). Share of heads with at least two of the roles" in page


def test_named_places_are_filled_and_unknown_ones_named():
    text = "Of <!-- heads -->3<!-- /heads --> heads\n<!-- table -->\nold\n<!-- /table -->\n"
    result = filled(text, {"heads": "44", "table": "| a |"})
    assert result == text.replace("3", "44").replace("old", "| a |")
    with pytest.raises(InputError, match="README has the place 'heads', which no table fills; use table"):
        filled(text, {"table": ""}, "README")


def test_classifiers_stand_beside_the_constant_answer():
    row = {"task": "mrpc", "metric": "accuracy", "constant": 0.683, "train": 3668}
    table = pd.DataFrame([row | {"finetuned": value} for value in (0.78, 0.8)])
    other = table.assign(metric="f1")
    assert classifiers_section(pd.concat([table, other])).splitlines()[2:] == [
        "| mrpc | accuracy 0.78 to 0.80 | 0.68 | 3,668 |"
    ]
