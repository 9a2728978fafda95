"""How far labels depend on runs, thresholds, samples and chance, in one or two sentences each."""

import pandas as pd

from analysis.figures.words import counted, listed


def spread_of_runs(counts: pd.DataFrame) -> str:
    """How far the counts of heads differ between runs; columns task, seed, role, published."""
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
    """Whether runs agree more with each other than with the pre-trained encoder; from `label_agreement`."""
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
    """How well labels on the smallest sample agree with those on all sequences; from `label_stability`."""
    rows = stability[stability["size"] == stability["size"].min()]
    least = rows.groupby("role")["jaccard"].mean()
    return (
        f"{rows['size'].min()} sequences give {rows['agreement'].mean():.0%} of the heads the label that all sequences "
        f"give them, but share only {rows['jaccard'].mean():.0%} of the labelled heads with them (Jaccard index); "
        f"{least.idxmin()} is least stable ({least.min():.0%})."
    )


def labelled_controls(controls: pd.DataFrame) -> str:
    """Which roles a control gets as often as the encoder; the first control is the encoder itself."""
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
    """The rule and the shape of scores with the highest rate of false labels; from `size_table`."""
    null = rates[(rates["effect"] == 0) & ~rates["rule"].str.endswith("_family")]
    worst = null.loc[null.groupby("rule", sort=False)["rate"].idxmax()].set_index("rule")
    t, audited = worst.loc["t"], worst.loc["audited"]
    return (
        f"At a nominal level of {alpha:.0%} the t test labels up to {t['rate']:.1%} of the heads wrongly "
        f"({t['shape'].replace('_', '-')} scores, n = {t['n']:,}); the audited rule at most {audited['rate']:.1%}."
    )


def needed_sequences(power: pd.DataFrame) -> str:
    """How many sequences are needed to detect an effect; from `needed`."""
    least = power["effect"].min()
    rows = power[power["effect"] == least].set_index("correction")["n"]
    parts = [f"{n:,} sequences ({name})" for name, n in rows.items()]
    return f"To find an effect of {least:g} standard deviations with a power of 0.8 the t test needs {listed(parts)}."
