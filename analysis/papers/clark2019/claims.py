"""The claims of Clark 2019 as data."""

import pandas as pd

from analysis.statistics.verdicts import Claim, ClaimTables

CLAIMS: tuple[Claim, ...] = ()


def summary(results: ClaimTables) -> pd.DataFrame:
    """The claim table of this paper, as its notebook of verdicts saves it."""
    return results.claims("claims-clark2019")
