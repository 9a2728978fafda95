"""What README and docs/claims.md say follows from the tables of a profile."""

import pandas as pd

from analysis.papers.pande2021.measures import CLAIMS
from analysis.statistics.claims import claim_table, frame
from analysis.study.front_page import claims_document, claims_section

UNITS = frame({"toy-mrpc": (0.3, 0.25, 0.35), "toy-qqp": (0.4, 0.35, 0.45)})
TABLE = claim_table(CLAIMS, {"C1": UNITS})


def test_papers_have_a_row_with_the_number_of_each_verdict():
    rows = claims_section({"pande2021": TABLE, "clark2019": pd.DataFrame()}).splitlines()[2:]
    assert rows == ["| [Pande et al. 2021](docs/claims.md#pande2021) | 1 | 0 | 0 | 0 | 11 |"]


def test_a_claim_has_its_numbers_in_a_row_what_is_measured_and_its_figure():
    page = claims_document({"pande2021": TABLE}, "offline", "figures")
    link = '<a id="C1"></a>[C1](figures/F5-sets-toy-mrpc.png)'
    assert (
        f"| {link} Roles are not mutually exclusive; many heads are multi-functional | 0.35 [0.31, 0.39] | "
        in page
    )
    assert "| task × 2: 0.30 (toy-mrpc) to 0.40 (toy-qqp) | > 0.1 ‡ |  |  | supported |" in page
    assert "- **C1** (question 1). Share of heads with at least two of the roles" in page
