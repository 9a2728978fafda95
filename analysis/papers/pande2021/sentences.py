"""What the figures show, in one or two sentences each, made from the numbers of their tables."""

import pandas as pd

from analysis.figures.words import counted, in_words, listed, signed
from analysis.statistics.roles import COARSE

STATES = ["pretrained", "finetuned"]
TARGETS = {"sep": "[SEP]", "cls": "[CLS]", "other": "other tokens"}
NEAR = 0.05  # how close to 0 or 1 a p-value decides plainly


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
    consequence = (
        "is not the score of a typical sequence" if share > 0.5 else "often is not that of a typical one"
    )
    return (
        f"Over {sequences:,} sequences the scores of {share:.0%} of {len(tested):,} heads and roles are strongly "
        f"skewed (skewness beyond 1), {(tested > 1).sum() / max((tested.abs() > 1).sum(), 1):.0%} of them to the "
        f"right: the mean score {consequence}."
    )


def uniform_block(block: float, tau: float | int) -> str:
    """What a head without any pattern scores on the role block, whose rows are multiplied by their entropy."""
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
    total = len(table[["layer", "head"]].drop_duplicates())
    text = (
        f"Of {total} heads {counts.iloc[0]} have the role {counts.index[0]} and {counts.iloc[1]} "
        f"{counts.index[1]}; {counts.index[-1]} is rarest ({counted(counts.iloc[-1], 'head')})."
    )
    untestable = heads.index[heads.isna()]
    return f"{text} No sequence can show {listed(untestable)}." if len(untestable) else text


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
    """How many local heads are syntactic, and the other way round; `overlap` is of one task and state."""
    row = overlap.set_index(["role_a", "role_b"]).loc[("local", "syntactic")]
    local, syntactic, both = (int(row[name]) for name in ("heads_a", "heads_b", "both"))
    if not local or not syntactic:
        return f"There are {counted(local, 'local head')} and {counted(syntactic, 'syntactic head')}: no overlap."
    return (
        f"{both} of {local} local heads ({both / local:.0%}) are syntactic too, and {both} of {syntactic} syntactic "
        f"heads ({both / syntactic:.0%}) are local."
    )


def decided(table: pd.DataFrame, tau: float | int) -> str:
    """How many p-values decide plainly, and how many means above tau do not suffice; `table` is a role table."""
    p = table["p"].dropna()
    plain = ((p < NEAR) | (p > 1 - NEAR)).mean()
    failing = ((table["mean"] > tau) & ~table["assigned"].fillna(False).astype(bool)).sum()
    return (
        f"{plain:.1%} of {len(p):,} p-values lie within {NEAR:g} of 0 or 1: for these heads the label says on which "
        f"side of τ = {tau:g} the mean lies. {counted(int(failing), 'mean').capitalize()} above τ "
        f"{'does' if failing == 1 else 'do'} not pass the test."
    )


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
    parts = [f"in layer {row.idxmax()} for {task} ({row.max():.0f} heads)" for task, row in heads.iterrows()]
    last = heads.iloc[:, -1].mean()
    return (
        f"Multi-functional heads are most frequent {listed(parts)}. The last layer has {last:.1f} of them on average "
        f"over tasks, a layer {heads.mean(axis=None):.1f}."
    )


def removed_labels(table: pd.DataFrame, labels: dict[str, str]) -> str:
    """How many published labels each stricter rule takes away; `labels` maps columns to names, published first."""
    first, *stricter = [label for label in labels if label in table]
    published = table[first].fillna(False).astype(bool)
    parts = []
    for label in stricter:
        taken = table[published & ~table[label].fillna(False).astype(bool)]
        roles = taken["role"].value_counts()
        most = f", most for {roles.index[0]} ({roles.iloc[0]})" if len(roles) else ""
        parts.append(
            f"the {labels[label]} rule takes away {len(taken)} ({len(taken) / published.sum():.1%}{most})"
        )
    return f"Of {published.sum():,} published labels {listed(parts)}."


def released_arithmetic(differences: pd.DataFrame, tested: int) -> str:
    """How many labels the released arithmetic changes; columns role, heads, as of `arithmetic_differences`."""
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
        f"{there:.1f} against {elsewhere:.1f} in the other layers)."
    )


def gains_and_losses(transitions: pd.DataFrame) -> str:
    """How many labels fine-tuning gives and takes; `transitions` has columns role, gained, lost."""
    moves = transitions.groupby("role")[["gained", "lost"]].sum().astype(int)
    gained, lost = moves["gained"], moves["lost"]
    return (
        f"Over all tasks fine-tuning gives {gained.sum()} labels and takes {lost.sum()}. Most gains are of "
        f"{gained.idxmax()} ({gained.max()}), most losses of {lost.idxmax()} ({lost.max()})."
    )


def classes_of_change(changes: pd.DataFrame, margin: float | int) -> str:
    """How many heads gain, lose, keep a role or stay equal; `changes` is that of `compare`."""
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
    """Where an encoder rests before fine-tuning, on [CLS] or [SEP]; `masses` as below, `note` says which encoder."""
    rows = masses[masses["state"] == "pretrained"].groupby(["task", "layer"])[["cls", "sep"]].mean()
    target = rows.max().idxmax()
    parts = [
        f"{TARGETS[name]} up to {rows[name].max():.0%} (layer {rows[name].idxmax()[1]}, {rows[name].idxmax()[0]})"
        for name in ("cls", "sep")
    ]
    return (
        f"Before fine-tuning ({note}) heads park attention on {TARGETS[target]}: a layer gives {listed(parts)} on average."
    )


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


def spread_of_runs(counts: pd.DataFrame) -> str:
    """How far the counts of heads differ from run to run; columns task, seed, role, published."""
    runs = counts.dropna(subset="seed").groupby(["role", "task"])["published"].agg(["min", "max", "count"])
    spread = (runs["max"] - runs["min"]).astype(float)
    role, task = spread.idxmax()
    row = runs.loc[(role, task)]
    return (
        f"Over {int(runs['count'].max())} fine-tuning runs the number of heads with a role differs by "
        f"{spread.median():g} (median over tasks and roles), and most for {role} in {task}: from {row['min']:.0f} to "
        f"{row['max']:.0f} heads."
    )


def shared_by_runs(agreement: pd.DataFrame) -> str:
    """Whether runs agree more with each other than with the pre-trained encoder; that of `label_agreement`."""
    rows = agreement.dropna(subset=["between_runs", "with_pretrained"])
    between, before = rows["between_runs"].mean(), rows["with_pretrained"].mean()
    return (
        f"Two runs share {between:.0%} of the heads that either labels (mean Jaccard index), a run and the pre-trained "
        f"encoder {before:.0%}. {int(rows['always'].sum())} labels stand in every run, {int(rows['ever'].sum())} in at "
        f"least one."
    )


def threshold_choice(sweep: pd.DataFrame, tau: float | int, reach: float = 0.5) -> str:
    """How much labels depend on the threshold around its default; `sweep` is that of `tau_sweep` with tasks."""
    near = sweep[sweep["tau"].between(tau - reach, tau + reach)]
    lowest = near.groupby("role", sort=False)["jaccard"].min()
    return (
        f"A threshold that differs from τ = {tau:g} by at most {reach:g} changes the heads of {lowest.idxmin()} most "
        f"(Jaccard index down to {lowest.min():.2f}) and those of {lowest.idxmax()} least ({lowest.max():.2f})."
    )


def small_samples(stability: pd.DataFrame) -> str:
    """How well labels of the smallest sample agree with those of all sequences; that of `label_stability`."""
    rows = stability[stability["size"] == stability["size"].min()]
    least = rows.groupby("role")["jaccard"].mean()
    return (
        f"{rows['size'].min()} sequences give {rows['agreement'].mean():.0%} of the heads the label that all sequences "
        f"give them, but share only {rows['jaccard'].mean():.0%} of the labelled heads with them (Jaccard index); "
        f"{least.idxmin()} is least stable ({least.min():.0%})."
    )


def labelled_controls(controls: pd.DataFrame) -> str:
    """Which roles a control is labelled with as often as the encoder; the first control is the encoder."""
    wide = controls.pivot(index="role", columns="control", values="published").astype("Float64").fillna(0)
    wide = wide.loc[controls["role"].unique(), controls["control"].unique()].astype(float)
    encoder, others = wide.iloc[:, 0], wide.iloc[:, 1:]
    highest = others.max(axis=1)
    counts = {role: counted(int(heads), "head") for role, heads in highest.items()}
    parts = [
        f"{role} ({others.loc[role].idxmax()}: {counts[role]}, {encoder.name}: {encoder[role]:.0f})"
        for role in wide.index[(highest > 0) & (highest >= encoder)]
    ]
    if not parts:
        return f"No control has as many labels of any role as the {encoder.name} encoder."
    alone = "these labels prove nothing alone"
    return f"A control has at least as many labels as the encoder for {listed(parts)}: {alone}."


def false_labels(rates: pd.DataFrame, alpha: float) -> str:
    """The rule and the shape of scores with the highest rate of false labels; that of `size_table`."""
    null = rates[(rates["effect"] == 0) & ~rates["rule"].str.endswith("_family")]
    worst = null.loc[null.groupby("rule", sort=False)["rate"].idxmax()].set_index("rule")
    t, audited = worst.loc["t"], worst.loc["audited"]
    return (
        f"At a nominal level of {alpha:.0%} the t test labels up to {t['rate']:.1%} of the heads wrongly "
        f"({t['shape'].replace('_', '-')} scores, n = {t['n']:,}); the audited rule at most {audited['rate']:.1%}."
    )


def needed_sequences(power: pd.DataFrame) -> str:
    """How many sequences find an effect; that of `needed`."""
    least = power["effect"].min()
    rows = power[power["effect"] == least].set_index("correction")["n"]
    parts = [f"{n:,} sequences ({name})" for name, n in rows.items()]
    return f"To find an effect of {least:g} standard deviations with a power of 0.8 the t test needs {listed(parts)}."


def verdicts(claims: pd.DataFrame) -> str:
    """How many claims hold; that of `claim_table`."""
    counts = claims["verdict"].value_counts()
    parts = [f"{count} {'is' if count == 1 else 'are'} {name}" if name in ("undecided", "untestable") else
             f"{count} {name if count == 1 else name.replace('holds', 'hold').replace('does', 'do')}"
             for name, count in counts.items()]  # fmt: skip
    return f"Of {len(claims)} claims {listed(parts)}."


def _head(row: pd.Series) -> str:
    return f"{int(row['layer'])}-{int(row['head'])}"
