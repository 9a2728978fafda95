"""What the figures show, in one or two sentences each, computed from their tables."""

import pandas as pd

from analysis.figures.words import counted, listed
from analysis.papers.pascual2021.names import (
    ABSENT,
    ATTENTION,
    EFFECTIVE,
    EFFECTIVE_SUM,
    GLOBAL,
    IN_WORDS,
    JSD,
    LOST,
    MIXING,
    PARTLY,
    PERSISTS,
    SHARE,
    VALUES,
    WHOLE,
)

TOTALS = ("all", "all but punct")  # of the relations
# What the verdict on a pattern says, in the order in which it is told.
CLAUSES = {
    PERSISTS: "In every layer some head shows {} on attribution",
    PARTLY: "In some layers only, a head shows {} on attribution",
    LOST: "Heads show {} on attention alone",
    ABSENT: "Missing on both maps: {}",
}


def discrepancy(table: pd.DataFrame) -> str:
    """Where attention and attribution differ most, with and without special tokens, and how much is due to mixing."""
    layers = table[table["head"].isna() & table["layer"].notna()]
    means = layers.groupby(["pair", "tokens", "measure", "layer"])["value"].mean()
    parts = []
    for tokens, words in (("all", "With all tokens"), ("text", "without special tokens")):
        of_layers = means.loc[WHOLE, tokens, JSD]
        least, most = of_layers.idxmin(), of_layers.idxmax()
        parts.append(
            f"{words} attention and attribution differ least in layer {least:.0f} ({of_layers[least]:.2f} bits) and "
            f"most in layer {most:.0f} ({of_layers[most]:.2f} bits)"
        )
    share = means.loc[WHOLE, "all", SHARE]
    local, mixed = (means.loc[pair, "all", JSD].mean() for pair in (VALUES, MIXING))
    return (
        f"{'; '.join(parts)}. Local attribution is {local:.2f} bits from attention and {mixed:.2f} bits from "
        f"attribution, on average over layers; mixing has {share[share.index > 0].min():.0%} to {share.max():.0%} of "
        "the sum from layer 1 on."
    )


def persistence(table: pd.DataFrame) -> str:
    """Which patterns persist on attribution, according to the most frequent verdict over tasks and states."""
    runs = table.drop_duplicates(["task", "state", "pattern"])
    of_pattern = runs.groupby("pattern", sort=False)["verdict"].agg(lambda each: each.mode().iloc[0])
    parts = [
        clause.format(listed(names))
        for verdict, clause in CLAUSES.items()
        if len(names := of_pattern.index[of_pattern == verdict].tolist())
    ]
    return f"{'. '.join(parts)}. The verdict on a pattern is the most frequent over tasks and states."


def strongest_patterns(table: pd.DataFrame) -> str:
    """How strong the strongest head for the next and previous token is on attribution."""
    parts = []
    for pattern, words in (("offset_+1", "next"), ("offset_-1", "previous")):
        part = table[table["pattern"] == pattern].groupby(["layer", "head"])[[ATTENTION, GLOBAL]].mean()
        layer, head = part[ATTENTION].idxmax()
        scores = part.loc[(layer, head)]
        parts.append(
            f"the strongest head for the {words} token on attention ({layer}-{head}) scores {scores[ATTENTION]:.1f} "
            f"there and {scores[GLOBAL]:.1f} on attribution"
        )
    text = listed(parts)
    return f"{text[0].upper()}{text[1:]} (1 = uniform; mean over tasks and states)."


def dependencies(table: pd.DataFrame) -> str:
    """In how many relations the same head finds fewer arcs on attribution, and whether other heads compensate."""
    table = table[[_is_counted(relation, {*table["relation"]}) for relation in table["relation"]]]
    worse, better = (table["change_high"] < 0).sum(), (table["change_low"] > 0).sum()
    loss = table.loc[table["change"].idxmin()]
    ahead = (table["attribution"] > table["attention"]).sum()
    return (
        f"Of {counted(len(table), 'relation')} the best head on attention finds fewer arcs on attribution in {worse}, "
        f"more in {better} (interval without 0). The largest loss is that of {loss['relation']}: "
        f"{loss['attention']:.0%} to {loss['attribution_same_head']:.0%}. The best head on attribution is ahead of the "
        f"best on attention in {ahead}."
    )


def _is_counted(relation: str, relations: set[str]) -> bool:
    """Whether a relation is neither a total nor contains another of the relations, as det+det:predet contains det."""
    parts = relation.split("+")
    return relation not in TOTALS and (len(parts) == 1 or relations.isdisjoint(parts))


def sinks(table: pd.DataFrame) -> str:
    """How the mass on [CLS] and [SEP] changes under effective attention; range over tasks and states."""
    whole = table[table["layer"].isna()]
    parts = []
    for target, part in whole.groupby("target", sort=False):
        ends = part.groupby("map")["mass"].agg(["min", "max"])
        shown = {name: f"{row['min']:.3f} to {row['max']:.3f}" for name, row in ends.iterrows()}
        parts.append(
            f"{target} has {shown[ATTENTION]} of the attention, {shown[EFFECTIVE]} of effective attention and "
            f"{shown[EFFECTIVE_SUM]} where rows keep their sums"
        )
    return f"Over tasks and states {'; '.join(parts)}."


def survival(table: pd.DataFrame) -> str:
    """The roles that agree most and least with attention on each map, median over tasks and states."""
    known = table[table["map"] != ATTENTION].dropna(subset="kappa")
    medians = known.groupby(["map", "role"], sort=False)["kappa"].median()
    parts = []
    for name in medians.index.unique("map"):
        of_map = medians[name]
        most, least = (f"({value:.2f})" for value in (of_map.max(), of_map.min()))
        told = f"highest {of_map.idxmax()} {most}, lowest {of_map.idxmin()} {least}"
        told = told if most != least else f"all roles alike {most}"
        parts.append(f"on {IN_WORDS[name]}: {told}")
    return f"Median kappa with the labels on attention, over tasks and states: {'; '.join(parts)}."


def validation(table: pd.DataFrame, probes: int | None) -> str:
    """How close sampled attribution is to exact, and attribution with one input point to that with the other.

    With all probes (None) attribution is exact, and the first is left out.
    """
    own = table[(table["compared"] == "sampled") & (table["probes"] == probes)]
    other = table[table["compared"] != "sampled"]
    parts = [
        f"{what}: total variation of rows {part['total_variation'].mean():.3f}, Spearman "
        f"{part['spearman'].mean():.2f}, error of a head's [CLS] score {part['score_error'].mean():.3f}"
        for what, part in (
            (f"{probes} probes against all", own),
            ("input before normalisation against after", other),
        )
        if len(part)
    ]
    return f"{'; '.join(parts)} (means over layers)."
