"""Sentences on the tables of the synthesis: for its figures, the README and the first screen of the summary."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import pandas as pd

from analysis.figures.words import counted, in_words, listed
from analysis.statistics.roles import ROLES
from analysis.synthesis.agreement import GATES
from analysis.synthesis.agreement import IMPORTANCE as IMPORTANCES
from analysis.synthesis.agreement import ROLES as ACROSS_MAPS
from analysis.synthesis.atlas import HEAD, MAPS, MEASURED
from analysis.synthesis.findings import ABLATION, DELIMITERS, IMPORTANCE, heads_with_role
from analysis.synthesis.regression import ALL_ROLES
from analysis.synthesis.sets import POOLED

VERDICTS = {
    "holds": "hold",
    "does not hold": "do not hold",
    "undecided": "are undecided",
    "untestable": "cannot be tested",
}
NOT_TOGETHER = "were not measured in the same run"
NOT_RUN = "The synthesis has not run in this profile."


class SavedTables(Protocol):
    """Where the tables are: the results of a profile."""

    def claims(self, name: str) -> pd.DataFrame:
        """A saved table; no rows if it does not exist."""


def what_was_measured(table: pd.DataFrame) -> str:
    """How much of the atlas has values, and which measures have none."""
    status = table[[name for name in table if name.endswith("_status")]]
    there = status.apply(lambda column: column.str.startswith(MEASURED))
    nowhere = [name.removesuffix("_status") for name in there if not there[name].any()]
    lost = f"; nowhere measured: {_shortened(nowhere)}" if nowhere else ""
    return (
        f"{len(table):,} rows, one for every head of {table.groupby(['task', 'seed']).ngroups} fine-tuned encoders; "
        f"{there.to_numpy().mean():.0%} of {status.shape[1]} measures and roles have a value in a row on average{lost}."
    )


def _shortened(names: Sequence[str]) -> str:
    """Names in words; all roles of one map become one item."""
    words = [name for name in names if name.split("_")[0] not in MAPS]
    for source in MAPS:
        roles = [name.removeprefix(f"{source}_") for name in names if name.split("_")[0] == source]
        words += (
            [f"roles on {source}"] if len(roles) == len(ROLES) else [f"{role} on {source}" for role in roles]
        )
    return listed(words)


def roles_against_random(table: pd.DataFrame, alpha: float = 0.05, label: str = "audited") -> str:
    """Which roles' heads matter more than random heads, over all tasks, and which do not."""
    rows = table[(table["task"] == POOLED) & (table["metric"] == "loss") & (table["label"] == label)]
    tested = rows.dropna(subset="p")
    more = tested[tested["p_holm"] < alpha]
    if tested.empty:
        return f"No role's set by the {label} label can be held against random sets."
    said = [f"{row.role} ({row.excess:+.2f} nats)" for row in more.itertuples()]
    tasks = counted(int(tested["tasks"].max()), "task")
    return (
        f"Switching off all heads of a role ({label} label, up to {tasks}) costs more than switching off random sets "
        f"of as many heads of the same layers for {listed(said)} of {len(tested)} roles (Holm, level {alpha:g})."
    )


def foretold(table: pd.DataFrame) -> str:
    """How well role scores predict how much single heads matter, compared with shuffled heads."""
    row = table[table["term"] == ALL_ROLES].iloc[0]
    if pd.isna(row["share"]):
        return (
            "Heads were not removed one by one in this profile, so that no role can foretell what that costs."
        )
    alone = table[table["model"] == "alone"].dropna(subset="share").sort_values("share", ascending=False)
    first = alone.iloc[0]
    direction = f": heads with higher scores cost {'more' if first['estimate'] > 0 else 'less'}"
    return (
        f"Heads of a layer differ in what their removal costs. {_jointly(table, row)} of this variance, scores "
        f"shuffled within layers {row['share_shuffled']:.0%} on average (p = {row['p_permutation']:.2g}). Alone, "
        f"{listed(alone.loc[alone['p_holm'] < 0.05, 'term'])} of {len(alone)} roles beat shuffled scores (permutation, "
        f"Holm); {first['term']} explains most, {first['share']:.0%}{direction if first['p_holm'] < 0.05 else ''}."
    )


def _jointly(table: pd.DataFrame, row: pd.Series) -> str:
    """Which roles explain how much together, and in how many of the fine-tuned encoders that have any of them."""
    terms = table.loc[(table["model"] == "together") & (table["term"] != ALL_ROLES), "term"]
    runs = f"{row['runs']:.0f} of {table['runs'].max():.0f} fine-tuned encoders"
    return (
        f"The scores of {listed(terms)} together (in the {runs} whose texts have all of them) explain "
        f"{row['share']:.0%}"
    )


def nulls(table: pd.DataFrame) -> str:
    """How often the tests reject shuffled scores, and for which roles the mixed model does so too often."""
    rows = table.dropna(subset="null_mixed")
    if rows.empty:
        return "No role could be tested."
    ranges = [
        f"{name} {rows[column].min():.1%} to {rows[column].max():.1%}"
        for name, column in (("the permutation test", "null_permutation"), ("the mixed model", "null_mixed"))
    ]
    low, high = rows["null_low"].min(), rows["null_high"].max()
    bold = rows.loc[rows["null_mixed"] > rows["null_high"], "term"]
    trust = (
        f" The mixed model finds too many for {listed(bold)}: their intervals are too narrow, and the permutation test "
        "decides."
    )
    return (
        f"Of scores that were shuffled within layers, {ranges[0]} and {ranges[1]} are found significant at 5 %, "
        f"depending on the role; a test of that size finds {low:.1%} to {high:.1%} in so many shuffles."
        f"{trust if len(bold) else ''}"
    )


def gates_found(table: pd.DataFrame, agreements: pd.DataFrame) -> str:
    """How many heads each class has, and how well two seeds agree."""
    counts = table["gate_class"].value_counts()
    said = listed(f"{count} {name}" for name, count in counts.items())
    same = agreements[agreements["kind"] == GATES].set_index("statistic")["value"].dropna()
    kappa = f" (kappa of the classes {same['kappa of classes']:.2f})" if "kappa of classes" in same else ""
    tasks = counted(table["task"].nunique(), "task")
    return (
        f"Of {len(table)} heads of {tasks}: {said}. Mixed are heads that gate seeds class differently{kappa}."
    )


def gates_and_roles(table: pd.DataFrame) -> str:
    """Whether heads of one class of gates have a role more often than heads of another."""
    known = table.dropna(subset="gate_class")
    held = heads_with_role(known).groupby(known["gate_class"]).agg(["mean", "size"])
    parts = [f"{row['mean']:.0%} of {row['size']:.0f} {name} heads" for name, row in held.iterrows()]
    return f"A role other than a delimiter's (audited label) is held by {listed(parts)}."


def measures_agree(table: pd.DataFrame) -> str:
    """How far the measures of importance rank heads alike."""
    rows = table[(table["kind"] == IMPORTANCES) & (table["statistic"] == "spearman")].sort_values("value")
    if rows.empty:
        return "No two measures of importance were made in the same run."
    least, most = rows.iloc[0], rows.iloc[-1]
    return (
        f"Of {len(rows)} pairs of measures, {most['first']} and {most['second']} agree most (rank correlation "
        f"{most['value']:.2f} [{most['low']:.2f}, {most['high']:.2f}]), {least['first']} and {least['second']} least "
        f"({least['value']:.2f} [{least['low']:.2f}, {least['high']:.2f}])."
    )


def roles_survive(table: pd.DataFrame) -> str:
    """Which roles keep their labels on other maps."""
    rows = table[(table["kind"] == ACROSS_MAPS) & (table["task"] == POOLED)].dropna(subset="value")
    if rows.empty:
        return "Roles on other maps were not measured in this profile."
    parts = []
    for other, group in rows.groupby("second", sort=False):
        kept = group[group["low"] > 0.6]["role"].tolist()
        lost = group[group["high"] < 0.2]["role"].tolist()
        clear = f"{listed(kept)} clearly keep their heads (kappa above .6), {listed(lost)} clearly do not (below .2)"
        parts.append(f"on {other.replace('_', ' ')} {clear}")
    return f"Of the roles found on attention, {'; '.join(parts)}."


def highlights(results: SavedTables) -> list[str]:
    """The answer of the synthesis, for the README; empty if the synthesis has not run."""
    found, regression = results.claims("synthesis_sets"), results.claims("synthesis_regression")
    return (
        [f"Do roles foretell what matters? {foretold(regression)} {roles_against_random(found)}"]
        if len(found)
        else []
    )


def overview(results: SavedTables, claims: Mapping[str, pd.DataFrame], encoder: str) -> list[str]:
    """What the whole study found for this encoder, and how far this generalises, in five sentences.

    Three if the synthesis has not run.
    """
    names = ("atlas", "synthesis_sets", "synthesis_regression", "synthesis_agreement")
    table, found, regression, agreements = (results.claims(name) for name in names)
    middle = [_labels(table), _answer(regression, found), _methods(agreements)] if len(found) else [NOT_RUN]
    return [_verdicts(claims), *middle, _reach(table, encoder)]


def _verdicts(claims: Mapping[str, pd.DataFrame]) -> str:
    there = [table["verdict"] for table in claims.values() if len(table)]
    counts = pd.concat(there or [pd.Series(dtype=str)]).value_counts()
    said = listed(f"{counts.get(name, 0)} {word}" for name, word in VERDICTS.items())
    return f"Of {counts.sum()} claims in {in_words(len(there))} groups (papers and synthesis), {said}."


def _labels(table: pd.DataFrame) -> str:
    audited, controlled = (
        sum(table[f"attention_{role}_{label}"].eq(True).sum() for role in ROLES if role not in DELIMITERS)
        for label in ("audited", "controlled")
    )
    return (
        f"Of {audited:,} audited labels (role, head and fine-tuned encoder, delimiter roles aside), "
        f"{controlled / max(audited, 1):.0%} remain when heads must beat a control that cannot know the role."
    )


def _answer(regression: pd.DataFrame, found: pd.DataFrame) -> str:
    row = regression[regression["term"] == ALL_ROLES].iloc[0]
    tested = found[
        (found["task"] == POOLED) & (found["metric"] == "loss") & (found["label"] == "audited")
    ].dropna(subset="p")
    share = "single heads were not switched off"
    if pd.notna(row["share"]):
        jointly = _jointly(regression, row)
        share = (
            f"{jointly[0].lower()}{jointly[1:]} of the differences in cost between heads of a layer, shuffled scores "
            f"{row['share_shuffled']:.0%} (p = {row['p_permutation']:.2g})"
        )
    more = listed(tested.loc[tested["p_holm"] < 0.05, "role"])
    return (
        f"Do roles foretell what matters: {share}; whole sets matter more than random ones of the same layers for "
        f"{more} of {len(tested)} roles."
    )


def _methods(agreements: pd.DataFrame) -> str:
    pairs = agreements[(agreements["first"] == ABLATION) & (agreements["second"] == IMPORTANCE)]
    same = pairs.loc[pairs["statistic"] == "spearman", "value"]
    rows = agreements[(agreements["kind"] == ACROSS_MAPS) & (agreements["task"] == POOLED)]
    means = listed(
        f"{value:.2f} ({other.replace('_', ' ')})"
        for other, value in rows.groupby("second")["value"].median().items()
    )
    orders = f"order heads with a rank correlation of {same.iloc[0]:.2f}" if len(same) else NOT_TOGETHER
    kept = f"agree with a median kappa of {means}" if len(rows) else "were not compared"
    return (
        f"Gradient importance and the removal of single heads {orders}, and the labels of a role on attention and on "
        f"other maps {kept}."
    )


def _reach(table: pd.DataFrame, encoder: str) -> str:
    runs = ""
    if "seed" in table:
        number = counted(table.groupby(["task", "seed"]).ngroups, "fine-tuned encoder")
        runs = f" of {len(table[HEAD].drop_duplicates())} heads, {number}"
    return (
        f"All of this is about one encoder{runs} ({encoder}); intervals cover other sequences and, where a claim "
        "has several fine-tuning runs, other runs of the same recipe, but no other encoder, task or language."
    )
