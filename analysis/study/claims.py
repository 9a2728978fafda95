"""The claims of a profile: verdicts on the units that its notebooks have saved."""

from collections.abc import Sequence

import pandas as pd

from analysis.statistics.claims import Claim, claim_table
from analysis.study.profiles import made_up
from analysis.study.results import UNITS, Results


def judged(results: Results, known: Sequence[Claim]) -> pd.DataFrame:
    """`claim_table` of the units that notebooks have saved; of claims that none has saved the reason is "not run"."""
    tables = [results.load_table(name) for name in results.table_names() if name.startswith(UNITS)]
    units = {claim: rows for table in tables for claim, rows in table.groupby("claim")}
    units = {claim: rows.assign(unit=rows["unit"].fillna("").astype(str)) for claim, rows in units.items()}
    return claim_table(known, units, made_up(results.profile.home.name))
