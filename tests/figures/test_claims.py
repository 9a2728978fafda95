import numpy as np
import pandas as pd

from analysis.figures.claims import FILLS, claim_strip
from analysis.statistics.claims import Claim

ROWS = [
    ("C1: roles are shared", ">=", 0.1, 0.2, 0.5, "holds", "30% (20% to 40%)"),
    ("C2: b", ">", 0.0, -np.inf, 0.5, "undecided", "0.3 nats"),
    ("C3: c", ">", 0.0, -4.0, -1.0, "does not hold", "-2 nats"),
    ("C4: d", ">", 0.0, np.nan, np.nan, "untestable", ""),
]


def test_every_claim_stands_in_its_own_units_and_its_verdict_is_seen_without_colour():
    columns = ["claim", "relation", "bound", "low", "high", "verdict", "found"]
    claims = pd.DataFrame(ROWS, columns=columns)
    claims = claims.assign(brief=claims["claim"].str[4:], published="", released="", controlled="", origin="")
    claims = claims.assign(control_value="none: 0%; more", control_verdict="")
    known = [Claim(f"C{n}", "", "", "", "", "", ">", 0, format=form) for n, form in enumerate(
        ("{:.0%}", "{:.1f} nats", "{:.1f} nats", "{:.0%}"), 1)]  # fmt: skip
    axes = claim_strip(claims, known).axes[0]
    told = [text.get_text().replace("\n", " ") for text in axes.texts]
    assert {"roles are shared (C1)", "30%", "20% to 50%", "≥ 10%", "none: 0%"} <= {*told}
    assert {"… to 0.5 nats", "-4.0 to -1.0 nats", "> 0", "–"} <= {*told}
    assert "published" not in told  # no claim has one
    fills = [line.get_markerfacecolor() for line in axes.lines if len(line.get_xdata())]
    assert fills == [FILLS[verdict] for verdict in claims["verdict"][:3]]
