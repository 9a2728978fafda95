"""What the figures show, in one or two sentences each, computed from their tables."""

import pandas as pd

from analysis.figures.words import counted, in_words, listed, signed
from analysis.statistics.roles import COARSE

STATES = ["pretrained", "finetuned"]
TARGETS = {"sep": "[SEP]", "cls": "[CLS]", "other": "other tokens"}
NEAR = 0.05  # a p-value this close to 0 or 1 is clear


def strongest_heads(table: pd.DataFrame) -> str:
    """The roles with the highest and the lowest of the heads' largest mean scores; `table` is a role table."""
    rows = table.dropna(subset="mean").reset_index(drop=True)
    best = rows.loc[rows.groupby("role", sort=False)["mean"].idxmax()].sort_values("mean")
    low, high = best.iloc[0], best.iloc[-1]
    return (
        f"The highest mean score is {high['mean']:.1f}, of head {_head(high)} for {high['role']}. "
        f"For {low['role']} no head exceeds {low['mean']:.1f} (head {_head(low)})."
    )


def skewed_scores(skewness: pd.Series, sequences: int) -> str:
    """How many heads have skewed scores; `skewness` has a value per head and role."""
    tested = skewness.dropna()
    share = (tested.abs() > 1).mean()
    return (
        f"Over {sequences:,} sequences the scores of {share:.0%} of {len(tested):,} heads and roles are strongly "
        f"skewed (skewness beyond 1), {(tested > 1).sum() / max((tested.abs() > 1).sum(), 1):.0%} of them to the "
        f"right. Their mean is not the score of a typical sequence."
    )


def uniform_block(block: float, tau: float | int) -> str:
    """The score of a head without any pattern on the role block, whose rows are multiplied by their entropy."""
    side = "above" if block > tau else "not above"
    warning = (
        "A label of block says nothing without this control." if block > tau else "The control has no label."
    )
    return (
        f"A head that attends uniformly scores {block:.2f} on block and 1 on every other role. "
        f"That is {side} τ = {tau:g}. {warning}"
    )


def role_counts(table: pd.DataFrame) -> str:
    """How many heads have the most and the least frequent role; `table` is the role table of one task and state."""
    heads = table.groupby("role", sort=False)["assigned"].sum(min_count=1)
    counts = heads.dropna().astype(int).sort_values(ascending=False, kind="stable")
    held, absent, untestable = counts[counts > 0], counts.index[counts == 0], heads.index[heads.isna()]
    total = len(table[["layer", "head"]].drop_duplicates())
    most = listed(f"{number} have the role {role}" for role, number in held.head(2).items())
    text = f"Of {total} heads {most}" if len(held) else f"None of {total} heads has a role"
    if len(held) > 2 and not len(absent):
        text += f"; the rarest role is {held.index[-1]} ({counted(held.iloc[-1], 'head')})"
    elif len(held) and len(absent):
        text += f"; no head has the role{'s' if len(absent) > 1 else ''} {listed(absent)}"
    return f"{text}. No sequence can show {listed(untestable)}." if len(untestable) else f"{text}."


def several_roles(members: pd.DataFrame) -> str:
    """How many heads have two roles or more, and the most frequent set; `members` is heads x coarse roles."""
    several = (members.sum(axis=1) >= 2).sum()
    sets = members.value_counts()
    held = [role for role, has in zip(members.columns, sets.index[0], strict=True) if has]
    name = f"{listed(held)}{' alone' if len(held) == 1 else ''}" if held else "no role"
    return (
        f"{several} of {len(members)} heads ({several / len(members):.0%}) have at least two of the roles "
        f"{listed(COARSE)}. The most frequent set is {name} ({counted(int(sets.iloc[0]), 'head')})."
    )


def local_and_syntactic(overlap: pd.DataFrame) -> str:
    """How many local heads are syntactic, and how many syntactic heads are local; `overlap` has one task and state."""
    row = overlap.set_index(["role_a", "role_b"]).loc[("local", "syntactic")]
    local, syntactic, both = (int(row[name]) for name in ("heads_a", "heads_b", "both"))
    if not local or not syntactic:
        return f"There are {counted(local, 'local head')} and {counted(syntactic, 'syntactic head')}: no overlap."
    return (
        f"{both} of {local} local heads ({both / local:.0%}) are syntactic too, and {both} of {syntactic} syntactic "
        f"heads ({both / syntactic:.0%}) are local."
    )


def decided(table: pd.DataFrame, tau: float | int) -> str:
    """How many p-values are clear, and how many means above tau are not significant; `table` is a role table."""
    p = table["p"].dropna()
    plain = ((p < NEAR) | (p > 1 - NEAR)).mean()
    failing = ((table["mean"] > tau) & ~table["assigned"].fillna(False).astype(bool)).sum()
    text = (
        f"{plain:.1%} of {len(p):,} p-values lie within {NEAR:g} of 0 or 1: for these heads the label says on which "
        f"side of τ = {tau:g} the mean lies."
    )
    if not failing:
        return f"{text} Every mean above τ passes the test."
    return f"{text} {counted(int(failing), 'mean')} above τ {'does' if failing == 1 else 'do'} not pass the test."


def near_threshold(table: pd.DataFrame, tau: float | int) -> str:
    """How many intervals contain tau; `table` is that of `role_table`."""
    tested = table.dropna(subset=["low", "high"])
    open_heads = tested[(tested["low"] <= tau) & (tested["high"] >= tau)]
    if open_heads.empty:
        return f"No interval of {len(tested):,} heads and roles contains τ = {tau:g}: every head is decided."
    most = open_heads["role"].value_counts()
    return (
        f"The interval of {counted(len(open_heads), 'head')} (of {len(tested):,} heads and roles) contains "
        f"τ = {tau:g}; most of them are undecided for {most.index[0]} ({most.iloc[0]})."
    )


def frequent_roles(table: pd.DataFrame) -> str:
    """The two most frequent roles over tasks; `table` holds the role tables of one state with a column task."""
    heads = (
        table.groupby(["role", "task"], sort=False)["assigned"].sum(min_count=1).unstack().astype("Float64")
    )
    means = heads.mean(axis=1).astype(float).sort_values(ascending=False)
    total = len(table[["layer", "head"]].drop_duplicates())
    first, second = means.index[:2]
    return (
        f"Most heads have the role {first} ({means.iloc[0]:.0f} of {total} on average over tasks, from "
        f"{heads.loc[first].min():.0f} to {heads.loc[first].max():.0f}), then {second} ({means.iloc[1]:.0f}). "
        f"The rarest role is {means.index[-1]} ({means.iloc[-1]:.1f})."
    )


def fullest_layers(counts: pd.DataFrame) -> str:
    """Where multi-functional heads are most frequent; `counts` is that of `layer_counts`, fine-tuned."""
    rows = counts[(counts["role"] == "multi-functional") & (counts["state"] == "finetuned")]
    heads = rows.pivot(index="task", columns="layer", values="heads").astype(float).loc[rows["task"].unique()]
    heads = heads[heads.max(axis=1) > 0]
    if heads.empty:
        return "No head of any task is multi-functional."
    parts = [
        f"in layer {row.idxmax()} for {task} ({counted(int(row.max()), 'head')})"
        for task, row in heads.iterrows()
    ]
    last = heads.iloc[:, -1].mean()
    return (
        f"Multi-functional heads are most frequent {listed(parts)}. The last layer has {last:.1f} of them on average "
        f"over tasks, a layer {heads.mean(axis=None):.1f}."
    )


def removed_labels(table: pd.DataFrame, labels: dict[str, str]) -> str:
    """How many published labels each stricter rule removes; `labels` maps columns to names, published first."""
    first, *stricter = [label for label in labels if label in table]
    published = table[first].fillna(False).astype(bool)
    parts = []
    for label in stricter:
        taken = table[published & ~table[label].fillna(False).astype(bool)]
        roles = taken["role"].value_counts()
        most = f", most for {roles.index[0]} ({roles.iloc[0]})" if len(roles) else ""
        parts.append(
            f"the {labels[label]} rule takes away {len(taken)} ({len(taken) / max(published.sum(), 1):.1%}{most})"
        )
    return f"Of {published.sum():,} published labels {listed(parts)}."


def kept_under_control(table: pd.DataFrame) -> str:
    """Which syntactic labels remain under control; `table` holds the rows of these roles in a role table."""
    kept = table[table["assigned_controlled"].fillna(False).astype(bool)]
    heads = kept.groupby("role", sort=False).apply(
        lambda rows: listed(rows.apply(_head, axis=1)), include_groups=False
    )
    names = listed(f"{heads[role]} for {role}" for role in heads.index)
    return (
        f"Of {int(table['assigned'].sum())} published labels of syntactic roles {len(kept)} are left under control"
        f"{f': {names}' if len(kept) else ''}."
    )


def released_arithmetic(differences: pd.DataFrame, tested: int) -> str:
    """How many labels the released arithmetic changes; columns role, heads, as in `arithmetic_differences`."""
    heads = differences.groupby("role", sort=False)["heads"].sum()
    changed = int(heads.sum())
    if not changed:
        return f"The released arithmetic gives the same {tested:,} labels."
    roles = listed(f"{role} ({int(count)})" for role, count in heads[heads > 0].items())
    return f"The released arithmetic gives another label in {changed} of {tested:,} cases: {roles}."


def changed_most(changes: pd.DataFrame) -> str:
    """Which layer changes most in how many tasks; `changes` has columns task, layer, difference."""
    sizes = (
        changes.assign(size=changes["difference"].abs()).groupby(["task", "layer"])["size"].mean().unstack()
    )
    tops = sizes.idxmax(axis=1)
    layer = tops.value_counts().index[0]
    there, elsewhere = sizes[layer].mean(), sizes.drop(columns=layer).mean(axis=None)
    return (
        f"Layer {layer} changes most in {in_words((tops == layer).sum())} of {in_words(len(tops))} tasks (mean change "
        f"{_short(there)} against {_short(elsewhere)} in the other layers)."
    )


def gains_and_losses(transitions: pd.DataFrame) -> str:
    """How many labels fine-tuning adds and removes; `transitions` has columns role, gained, lost."""
    moves = transitions.groupby("role")[["gained", "lost"]].sum().astype(int)
    gained, lost = moves["gained"], moves["lost"]
    if not gained.sum() and not lost.sum():
        return "Fine-tuning changes no label."
    return (
        f"Over all tasks fine-tuning gives {gained.sum()} labels and takes {lost.sum()}. Most gains are of "
        f"{gained.idxmax()} ({gained.max()}), most losses of {lost.idxmax()} ({lost.max()})."
    )


def classes_of_change(changes: pd.DataFrame, margin: float | int) -> str:
    """How many heads gain, lose or keep a role, or stay equal; `changes` is that of `compare`."""
    counts = changes["change"].value_counts()
    number = {
        name: int(counts.get(name, 0)) for name in ("gained", "lost", "kept", "equivalent", "undecided")
    }
    return (
        f"Of {counts.sum():,} tested heads and roles {number['gained']} gain the role beyond chance and "
        f"{number['lost']} lose it; {number['kept']} keep it. {number['equivalent']:,} change by less than {margin:g}, "
        f"and {number['undecided']} remain undecided."
    )


def resting_attention(masses: pd.DataFrame, note: str) -> str:
    """Whether attention rests on [CLS] or [SEP] before fine-tuning; `masses` as below, `note` describes the encoder."""
    rows = masses[masses["state"] == "pretrained"].groupby(["task", "layer"])[["cls", "sep"]].mean()
    target = rows.max().idxmax()
    parts = [
        f"{TARGETS[name]} up to {rows[name].max():.0%} (layer {rows[name].idxmax()[1]}, {rows[name].idxmax()[0]})"
        for name in ("cls", "sep")
    ]
    given = f"a layer gives {listed(parts)} on average"
    return f"Before fine-tuning ({note}) heads park attention on {TARGETS[target]}: {given}."


def moved_attention(masses: pd.DataFrame) -> str:
    """Where attention goes in the last third of the layers; columns task, state, layer, head, sep, cls, other."""
    last = masses[masses["layer"] >= masses["layer"].max() * 2 / 3]
    means = 100 * last.groupby(["task", "state"])[[*TARGETS]].mean()
    moved = means.xs("finetuned", level="state") - means.xs("pretrained", level="state")
    parts = [
        f"to {name} by {signed(moved[column].min())} to {signed(moved[column].max())}"
        for column, name in TARGETS.items()
    ]
    grown = moved.mean().idxmax()
    return (
        f"In the last third of the layers fine-tuning changes attention {listed(parts)} percentage points, over tasks. "
        f"On average {TARGETS[grown]} gain{'s' if grown != 'other' else ''} most."
    )


def verdicts(claims: pd.DataFrame) -> str:
    """How many claims hold; from `claim_table`."""
    counts = claims["verdict"].value_counts()
    parts = [f"{count} {'is' if count == 1 else 'are'} {name}" if name in ("undecided", "untestable") else
             f"{count} {name if count == 1 else name.replace('holds', 'hold').replace('does', 'do')}"
             for name, count in counts.items()]  # fmt: skip
    return f"Of {len(claims)} claims {listed(parts)}."


def _short(number: float) -> str:
    """One decimal, or one significant digit if that would be 0.0."""
    return f"{number:.1f}" if abs(number) >= 0.1 else f"{number:.1g}"


def _head(row: pd.Series) -> str:
    return f"{int(row['layer'])}-{int(row['head'])}"
