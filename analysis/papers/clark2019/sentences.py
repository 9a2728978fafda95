"""What the figures show, in one or two sentences each, computed from their tables."""

import pandas as pd

from analysis.figures.words import counted, listed, signed

TARGETS = {"cls": "[CLS]", "sep": "[SEP]", "punct": "full stops and commas"}
GROUPS = {"cls": "[CLS]", "sep": "[SEP]"}
NEIGHBOURS = ("previous", "next")


def most_attended(table: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Which of [CLS], [SEP] and punctuation has most attention, in which layer, next to BERT-base.

    `table` is that of `surface_table`, `reference` that of `published.surface_layers`.
    """
    ours, theirs = table.groupby("layer")[[*TARGETS]].mean(), reference.set_index("layer")[[*TARGETS]]
    parts = []
    for means in (ours, theirs):
        target = means.mean().idxmax()
        parts.append(
            f"{TARGETS[target]} ({means[target].mean():.0%} on average, {means[target].max():.0%} in layer "
            f"{means[target].idxmax()})"
        )
    return f"Of these three this encoder attends most to {parts[0]}, BERT-base in the article to {parts[1]}."


def neighbour_heads(table: pd.DataFrame, majority: float, published: pd.DataFrame) -> str:
    """How many heads specialise in a neighbour; from the tables of `surface_table` and `published.specialists`."""
    theirs = published.set_index("statistic")["heads"]
    parts = [
        f"{counted(int((table[column] > majority).sum()), 'head')} for the {column} token (BERT-base: {theirs[column]})"
        for column in NEIGHBOURS
    ]
    return f"Heads that give a neighbour more than {majority:.0%} of their attention: {listed(parts)}."


def missing_kinds(exemplars: dict[str, tuple[int, int] | None]) -> str:
    """Which patterns have a head and which have none; from `exemplars`."""
    shown = [f"{kind} ({at[0]}-{at[1]})" for kind, at in exemplars.items() if at is not None]
    none = [kind for kind, at in exemplars.items() if at is None]
    text = f"The strongest heads (layer-head) are those for {listed(shown)}."
    return f"{text} No head attends to {listed(none)} more than to anything else." if none else text


def broadest_layer(table: pd.DataFrame, uniform: float) -> str:
    """Where attention is broad and where narrow; from `surface_table` and the entropy of uniform attention (nats)."""
    means = table.groupby("layer")["entropy"].mean()
    return (
        f"Attention is broadest in layer {means.idxmax()} ({means.max():.1f} of at most {uniform:.1f} nats) and "
        f"narrowest in layer {means.idxmin()} ({means.min():.1f} nats)."
    )


def gradient_ratios(slopes: pd.DataFrame) -> str:
    """How much attention to special tokens matters; `slopes` has the columns of `gradient_table`."""
    wide = slopes.pivot(index="layer", columns="group", values="importance")
    ratios = wide[[*GROUPS]].div(wide["other"], axis=0)
    parts = [
        f"for {name} {ratios[group].min():.2f} to {ratios[group].max():.2f} times"
        for group, name in GROUPS.items()
    ]
    return f"Over the layers the gradient is {listed(parts)} that for other tokens."


def layers_alike(within: float, between: float, p: float, alpha: float = 0.05) -> str:
    """Whether heads of one layer attend more alike; mean distances are shares of the largest possible distance."""
    verdict = "are more alike than" if p < alpha else "are not shown to be more alike than"
    return (
        f"Heads of one layer {verdict} heads of two: mean distance {within:.3f} within, {between:.3f} between layers "
        f"(shares of the largest possible, p = {p:.3g})."
    )


def heads_against_offsets(table: pd.DataFrame, alpha: float) -> str:
    """In how many relations the best head beats the best offset; from the table of `dependency_table`."""
    decided = table["p_adjusted"] < alpha
    gain = table["accuracy"] - table["offset_accuracy"]
    ahead, behind = decided & (gain > 0), decided & (gain < 0)
    best = table.loc[gain.idxmax()]
    return (
        f"Of {counted(len(table), 'relation')} the best head beats the best fixed offset in {ahead.sum()} and loses "
        f"in {behind.sum()}; {(~ahead & ~behind).sum()} are undecided. The largest gain is that of {best['relation']}: "
        f"{best['accuracy']:.0%} against {best['offset_accuracy']:.0%} (head {int(best['layer'])}-{int(best['head'])})."
    )


def linguistic_layers(linguistic: pd.DataFrame, clusters: pd.DataFrame) -> str:
    """How many heads find relations or antecedents, and where; from `linguistic_heads` and all heads with layers."""
    if linguistic.empty:
        return f"None of {len(clusters)} heads finds a relation better than position does, or antecedents."
    layers = sorted(linguistic["layer"].unique())
    place = f"layer{'s' if len(layers) > 1 else ''} {listed(layers)}"
    busiest = linguistic.loc[linguistic["finds"].str.split(", ").str.len().idxmax()]
    return (
        f"{len(linguistic)} of {len(clusters)} heads find a relation better than position does, or antecedents. They "
        f"lie in {place}; head {busiest['layer']}-{busiest['head']} finds most ({busiest['finds']})."
    )


def best_offset(offsets: pd.DataFrame) -> str:
    """The relation that position alone predicts best; from `best_offsets` for frequent relations."""
    best = offsets.loc[offsets["accuracy"].idxmax()]
    over_half = (offsets["accuracy"] > 0.5).sum()
    side = "right" if best["offset"] > 0 else "left"
    return (
        f"A fixed offset finds more than half of the arcs of {over_half} of {counted(len(offsets), 'relation')}. It is "
        f"best for {best['relation']} ({best['accuracy']:.0%}, {abs(best['offset'])} to the {side})."
    )


def optimism(compared: pd.DataFrame) -> str:
    """How much accuracy rises by choosing and scoring on the same sentences; from `beside_published`."""
    points = (compared["same_data"] - compared["held_out"]).dropna()
    return (
        f"Choosing the head on the sentences that are scored changes the accuracy by {signed(points.median())} points "
        f"(median; from {signed(points.min())} to {signed(points.max())})."
    )


def antecedents_found(systems: pd.DataFrame) -> str:
    """The best rule and the best head; from the table of `held_out_systems`."""
    heads = systems["layer"].notna()
    rule, head = (part.loc[part["all"].idxmax()] for part in (systems[~heads], systems[heads]))
    overlap = head["low"] <= rule["high"] and rule["low"] <= head["high"]
    return (
        f"The best head ({int(head['layer'])}-{int(head['head'])}) finds the antecedent of {head['all']:.0%} of "
        f"{head['n']} anaphors, the best rule ({rule['system']}) of {rule['all']:.0%}; their intervals "
        f"{'overlap' if overlap else 'do not overlap'}."
    )


def probes_compared(summary: pd.DataFrame) -> str:
    """The best probe, and the scores of untrained layers and of position alone; from the table of `over_seeds`."""
    best = summary.loc[summary["mean"].idxmax()]
    chain = summary.loc[summary["probe"] == "right-branching", "mean"].max()
    text = (
        f"The probe of {best['probe']} attaches {best['mean']:.0%} of the words correctly, a right-branching tree "
        f"{chain:.0%}"
    )
    untrained = summary.loc[summary["encoder"].str.endswith("random layers"), "mean"]
    return (
        f"{text}, the best probe on untrained layers {untrained.max():.0%}." if len(untrained) else f"{text}."
    )
