"""Findings in words, computed from the tables."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.figures.words import counted, listed
from analysis.papers.niven2019.accuracy import ALL
from analysis.papers.niven2019.cues import NOT
from analysis.papers.niven2019.negation import DEBATE, GOLD, MEND, RULE, UNCHANGED
from analysis.papers.niven2019.reliance import CUE_HEADS, RIGHT, WRONG

SOURCES_IN_WORDS = {
    DEBATE: "another claim of the debate for",
    RULE: "the rule for",
    MEND: "a mend of ours for",
    GOLD: "the grammar for",
}


def strongest_cue(table: pd.DataFrame) -> str:
    """How well "not" predicts the right warrant in each split, and how many other cues are productive."""
    rows = table[(table["rule"] == "expanded") & (table["cue"] == NOT)].set_index("split")
    splits = [split for split in rows.index if split != "all"]
    parts = [
        f"{row.productivity:.3f} [{row.low:.3f}, {row.high:.3f}] in {split}"
        for split, row in rows.loc[splits].iterrows()
    ]
    pooled = table[(table["rule"] == "expanded") & (table["split"] == "all") & (table["cue"] != NOT)]
    above, below = (pooled["low"] > 0.5).sum(), (pooled["high"] < 0.5).sum()
    return (
        f'"not" stands in one warrant alone in {rows.loc["all", "coverage"]:.0%} of the points. That warrant is right '
        f"in a share of {listed(parts)}; chance is 0.5. Of {len(pooled)} other cues, {above} speak for and {below} "
        "against their warrant with the whole interval."
    )


def against_published(table: pd.DataFrame, published: pd.DataFrame) -> str:
    """How close any rule for "not" comes to the published table on ARCT."""
    merged = table[table["cue"] == NOT].merge(published, on="split", suffixes=("", "_published"))
    apart = sum((merged[name] - merged[f"{name}_published"]).abs() for name in ("coverage", "productivity"))
    worst = apart.groupby(merged["rule"]).max()
    nearest = f'"{worst.idxmin()}", is {worst.min():.2f} away in its worst split (productivity and coverage together)'
    follows = "follows" if worst.min() < 0.02 else "does not follow"
    return f"Table 2 of the article {follows} from the released data: the rule that comes nearest, {nearest}."


def against_planted(table: pd.DataFrame, productivity: float, coverage: float) -> str:
    """Whether the intervals of "not" cover the planted values."""
    rows = table[(table["cue"] == NOT) & (table["rule"] == "expanded")]
    covered = rows["low"].le(productivity) & rows["high"].ge(productivity)
    exact = (rows["coverage"] - coverage).abs().max()
    return (
        f"A productivity of {productivity:g} and a coverage of {coverage:g} were planted. The interval of the "
        f"productivity covers the planted value in {covered.sum()} of {len(rows)} splits, and coverages differ by at "
        f"most {exact:.3f}. These are not the article's data, whose values stand beside."
    )


def baselines_compared(table: pd.DataFrame) -> str:
    """The accuracy of answers without a model."""
    wide = table.pivot(index="split", columns="baseline", values="accuracy")
    wide = wide.loc[[split for split in dict.fromkeys(table["split"]) if split != "all"]]
    parts = [f"{split} {row['not']:.3f} and {row['longer warrant']:.3f}" for split, row in wide.iterrows()]
    return (
        f'The warrant with "not", or the longer one, is right in this share of the points: {listed(parts)}.'
    )


def negations_made(table: pd.DataFrame, claims: Mapping[str, int]) -> str:
    """The sources of the negated claims."""
    totals = table.groupby("source", sort=False)["n"].sum()
    parts = [
        f"{SOURCES_IN_WORDS[source]} {counted(int(number), 'point')} ({counted(claims[source], 'claim')})"
        for source, number in totals.items()
        if number and source != UNCHANGED
    ]
    return f"The negated claims: {listed(parts)}. Unchanged: {counted(int(totals[UNCHANGED]), 'claim')}."


def cues_cancelled(cues: pd.DataFrame, pmi: pd.DataFrame) -> str:
    """How much of the cues is left in the adversarial set."""
    tested = cues["productivity"].dropna()
    return (
        f"In the adversarial set the productivity of all {len(tested)} measured cues differs from 0.5 by at most "
        f"{(tested - 0.5).abs().max():.3f}, and the PMI of every word from 0 by at most {pmi['pmi'].abs().max():.3f}."
    )


def accuracies(summary: pd.DataFrame) -> str:
    """The accuracy of each model on the original test set, with the full argument and with the warrants alone."""
    rows = summary[(summary["trained_on"] == "original") & (summary["tested_on"] == "original")]
    parts = []
    for model, own in rows.groupby("model", sort=False):
        values = [
            f"{row.setup} {row.mean:.3f} [{row.low:.3f}, {row.high:.3f}]"
            for row in own.drop(columns="mean").assign(mean=own["mean"]).itertuples()
        ]
        parts.append(f"{model} ({counted(int(own['runs'].max()), 'run')}): {listed(values)}")
    lost = int(rows["degenerate"].sum())
    return f"Test accuracy, chance 0.5. {'; '.join(parts)}. {lost} of {int(rows['runs'].sum())} runs are degenerate."


def setups_compared(differences: pd.DataFrame) -> str:
    """How much the full argument adds to the warrants, and how many of all differences are significant."""
    parts = [
        f"{row.model} {100 * row.difference:+.1f} [{100 * row.low:+.1f}, {100 * row.high:+.1f}]"
        for row in differences[(differences["first"] == "full") & (differences["second"] == "W")].itertuples()
    ]
    apart = int(((differences["low"] > 0) | (differences["high"] < 0)).sum())
    told = f"{apart} of {len(differences)} differences of set-ups can be told from none."
    return f"Claim and reason together add to the warrants, in percentage points: {listed(parts)}. {told}"


def halves_compared(summary: pd.DataFrame) -> str:
    """The accuracy of models on the adversarial set and on its halves."""
    rows = summary[summary["tested_on"] == "adversarial"].pivot(
        index=["trained_on", "model", "setup"], columns="half", values="mean"
    )
    parts = [
        f"{model}, {setup}, trained on the {trained_on} set: {row['original']:.3f} and {row['adversarial']:.3f}, "
        f"together {row['all']:.3f}"
        for (trained_on, model, setup), row in rows[rows.index.get_level_values("setup") == "full"].iterrows()
    ]
    return f"Accuracy on the originals and on their copies. {'; '.join(parts)}."


def reliance_compared(reliance: pd.DataFrame) -> str:
    """How far models follow the cue, and how much accuracy it gives them."""
    rows = reliance[(reliance["which"] == "all") & (reliance["setup"] == "full")]
    parts = [
        f"{row.model} takes the warrant with it in {row.follows:.0%} [{row.follows_low:.0%}, {row.follows_high:.0%}] "
        f"of the points where it applies, and is right in {row.right:.0%} where that is right and in {row.wrong:.0%} "
        "where it is wrong"
        for row in rows.itertuples()
    ]
    return f'Reliance on "not", full set-up: {"; ".join(parts)}.'


def heads_changed(table: pd.DataFrame) -> str:
    """Which heads attend to the cue, and how fine-tuning changes this."""
    parts = []
    for setup, rows in table.groupby("setup", sort=False):
        runs = rows["seed"].nunique()
        means = rows.groupby(["layer", "head"])[["pretrained", "finetuned"]].mean()
        best = means["finetuned"].idxmax()
        more, less = ((rows["p_by"] < 0.05) & (sign * rows["difference"] > 0) for sign in (1, -1))
        parts.append(
            f"set-up {setup}: of {len(means)} heads, {more.sum() / runs:.0f} look at it more and "
            f"{less.sum() / runs:.0f} less than before (mean over {counted(runs, 'run')}); most, head "
            f"{best[0]}-{best[1]}, {means.loc[best, 'finetuned']:.1f} times as much as uniform attention, before "
            f"{means.loc[best, 'pretrained']:.1f}"
        )
    return f"{'; '.join(parts)}."


def heads_off(table: pd.DataFrame) -> str:
    """The loss of accuracy without the heads that attend to the cue."""
    own = table[table["intervention"] == CUE_HEADS]
    parts = []
    for setup, rows in own.groupby("setup", sort=False):
        changes = 100 * rows.groupby("points")["change"].mean()
        cued = rows[rows["points"].isin([RIGHT, WRONG])]
        parts.append(
            f"Set-up {setup}: {changes.get(RIGHT, np.nan):+.1f} percentage points where the cue is right, "
            f"{changes.get(WRONG, np.nan):+.1f} where it is wrong, {changes[ALL]:+.1f} at all points. In "
            f"{counted(rows['seed'].nunique(), 'run')}, on points where the cue is right and on points where it is "
            f"wrong: {int((cued['p'] < 0.05).sum())} of {len(cued)} changes have p < 0.05 (McNemar), and "
            f"{int((cued['p_random'] <= 0.1).sum())} are larger than those of nearly all random sets"
        )
    return f"Without the heads that look at the cue most, mean over runs. {'. '.join(parts)}."
