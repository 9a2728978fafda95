"""Two encoders: which claims carry over from one to the other, and in which layers roles sit."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.statistics.claims import NOT_APPLICABLE, NOT_SUPPORTED, SUPPORTED

BOTH, NONE, ONE = "supported on both", "supported on none", "supported on one"
CONTRADICTED, NOT_JUDGED = "contradicted", "not judged"
# In the order of figures and tables. Contradicted: supported on one encoder and not supported on the other, where its
# interval lies on the wrong side of the threshold. Not judged: without an estimate, or without a verdict, on either.
AGREEMENTS = (BOTH, NONE, ONE, CONTRADICTED, NOT_JUDGED)


def encoder_table(claims: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """A row per claim and encoder: claim, published, published_estimate, encoder, estimate, low, high, verdict, holds.

    `claims` are those of each encoder by its name, as `claim_table` makes them. Claims that only one encoder has are
    left out. `holds` is one of AGREEMENTS, which order the rows; claims keep their order within it. Published values
    are of BERT-base.
    """
    shared = set.intersection(*({*table["claim"]} for table in claims.values()))
    rows = pd.concat([table.assign(encoder=name) for name, table in claims.items()], ignore_index=True)
    rows = rows[rows["claim"].isin(shared)]
    rows["holds"] = rows["claim"].map(rows.groupby("claim")["verdict"].agg(agreement))
    places = pd.DataFrame(
        {
            "holds": rows["holds"].map(AGREEMENTS.index),
            "claim": rows["claim"].map([*dict.fromkeys(rows["claim"])].index),
        }
    )
    columns = "claim published published_estimate encoder estimate low high verdict holds".split()
    return rows.loc[places.sort_values([*places], kind="stable").index, columns].reset_index(drop=True)


def agreement(verdicts: pd.Series) -> str:
    """One of AGREEMENTS, from the verdicts of a claim on two encoders."""
    judged = {*verdicts}
    if NOT_APPLICABLE in judged:
        return NOT_JUDGED
    if judged == {SUPPORTED}:
        return BOTH
    if judged == {SUPPORTED, NOT_SUPPORTED}:
        return CONTRADICTED
    return ONE if SUPPORTED in judged else NONE


def agreement_counts(table: pd.DataFrame) -> pd.Series:
    """The number of claims with each of AGREEMENTS, from the rows of `encoder_table`."""
    by_claim = table.drop_duplicates("claim")["holds"]
    return by_claim.value_counts().reindex(AGREEMENTS, fill_value=0).rename("claims")


def role_shares(table: pd.DataFrame, roles: Iterable[str]) -> dict[str, Float[np.ndarray, "layer head"]]:
    """The share of the tasks in which each head has each role; NaN where it is not applicable in any.

    `table` has task, role, layer, head and assigned.
    """
    labels = table.astype({"assigned": "Float64"})
    shares = labels.groupby(["role", "layer", "head"])["assigned"].mean()
    return {role: shares[role].unstack().to_numpy(float, na_value=np.nan) for role in roles}


def layer_correlations(
    first: Mapping[str, Float[np.ndarray, "_ _"]],
    second: Mapping[str, Float[np.ndarray, "_ _"]],
) -> dict[str, float]:
    """Pearson correlation of the layer profiles of each role on two encoders: the means of its shares over heads.

    Roles whose profile is constant, and encoders with different numbers of layers, have none.
    """
    correlations = {}
    for role, grid in first.items():
        profiles = [pd.DataFrame(shares).mean(axis=1) for shares in (grid, second[role])]
        if len({len(profile) for profile in profiles}) == 1 and all(
            profile.nunique() > 1 for profile in profiles
        ):
            correlations[role] = float(profiles[0].corr(profiles[1]))
    return correlations
