"""The sentences of README follow the tables."""

import pandas as pd

from analysis.papers.pande2021.front import block_under_control, highlights

COLUMNS = ["task", "state", "control", "role", "n", "published", "audited", "controlled"]
CONTROLS = pd.DataFrame(
    [
        ("mrpc", "finetuned", "heads", "block", 9, 18, 16, 1),
        ("qnli", "finetuned", "heads", "block", 9, 5, 4, 2),
        ("qnli", "pretrained", "heads", "block", 9, 50, 50, 50),
        ("mrpc", "finetuned", "heads", "local", 9, 50, 50, 50),
        ("mrpc", "control", "uniform", "block", 9, 71, 70, 0),
        ("mrpc", "control", "random weights", "block", 9, 69, 70, 0),
        ("mrpc", "control", "twin", "block", 9, 28, 28, 1),
    ],
    columns=COLUMNS,
)


def test_block_under_control():
    said = block_under_control(CONTROLS, ["mrpc", "qnli"])
    assert "labels 23 heads and the audited rule 20, but only 3 beat" in said
    assert "also labels 71 heads with uniform attention and 69 heads of" in said
    assert "labels 5 heads and the audited rule 4, but only 2" in block_under_control(CONTROLS, ["qnli"])


class Tables:
    """Tables by name in memory."""

    def __init__(self, **tables: pd.DataFrame):
        self.tables = tables

    def load_table(self, name: str) -> pd.DataFrame:
        return self.tables[name.replace("-", "_")]


def test_one_highlight_each():
    layers = pd.DataFrame(
        {"task": "mrpc", "layer": range(3), "head": 0, "sep": 0.02, "cls": [0, 0.1, 0.2], "other": 0.5}
    )
    masses = pd.concat([layers.assign(state=state) for state in ("pretrained", "finetuned")])
    roles = pd.DataFrame(
        {"role": ["local", "local", "cls"], "assigned": True, "assigned_controlled": [True, False, True]}
    )
    claims = pd.DataFrame({"encoder": ["tiny: a test"]})
    said = highlights(Tables(masses=masses, controls=CONTROLS, roles_mrpc_finetuned=roles, claims=claims))
    assert "know the role: local 1 of 2. The other labels ([CLS] 1) have only a uniform head" in said[0]
    assert "[CLS] up to 20% (layer 2, mrpc)" in said[2]
