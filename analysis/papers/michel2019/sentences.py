"""What the figures show, in one or two sentences each, computed from their tables."""

from collections.abc import Collection, Iterable, Mapping

import pandas as pd
from scipy import stats

from analysis.figures.words import listed, signed
from analysis.papers.michel2019.figures import level, main_metric
from analysis.papers.michel2019.tables import AGAIN, EVERY, IMPORTANCE, RANDOM, SCORE, Run


def single_heads(summary: pd.DataFrame, alpha: float = 0.05) -> str:
    """How many heads can be removed one at a time, and the smallest detectable loss; from the table of `overview`."""
    shown = main_metric(summary)
    tasks = [
        f"{task} {_lost(rows)} of {rows['heads'].sum()} ({100 * rows['least'].median():.1f} points)"
        for task, rows in shown.groupby("task", sort=False)
    ]
    return (
        f"Heads whose removal loses significantly (p < {level(alpha)}, all runs): {listed(tasks)}; in brackets the "
        f"least loss that the test finds with power .8. After correction {_lost(shown, 'lost_by')} remain. The largest "
        f"single loss is {signed(100 * shown['lowest'].min())} points."
    )


def _lost(rows: pd.DataFrame, column: str = "lost") -> int:
    """How many heads cause a loss, over all runs of a summary."""
    return int(rows[column].sum())


def raised_scores(tested: pd.DataFrame, alpha: float = 0.05) -> str:
    """Whether removals raise the score beyond chance; from the table of `rises_table`."""
    best = tested.loc[tested["p"].idxmin()]
    low, high = signed(100 * best["low"]), signed(100 * best["high"])
    return (
        f"{tested['beyond'].sum()} of {tested['variants'].sum()} removals raise the score beyond chance (family-wise); "
        f"in {(tested['p_raised'] < alpha).sum()} of {len(tested)} runs more heads rise than swapped answers give. The "
        f"rise farthest from chance is that of head {best['largest']} in {best['task']}: "
        f"{signed(100 * best['rise'])} points, simultaneous interval {low} to {high}."
    )


def one_head_left(table: pd.DataFrame, alpha: float = 0.05) -> str:
    """In how many layers one head suffices; from the table of `all_but_one_table`."""
    shown = main_metric(table)
    lost = shown[(shown["p"] < alpha) & (shown["change"] < 0)].groupby("chosen_on").size()
    layers = shown.groupby("chosen_on").size()
    mean = 100 * shown.groupby("chosen_on")["change"].mean()
    least = 100 * shown.loc[shown["chosen_on"] == "train", "least"].median()
    return (
        f"With one head, chosen on training examples, {layers['train'] - lost.get('train', 0)} of {layers['train']} "
        f"layers (tasks together) lose nothing that is significant, chosen on the scored sequences "
        f"{layers['dev'] - lost.get('dev', 0)}. The mean change is {signed(mean['train'])} points, "
        f"{signed(mean['dev'])} where the choice sees the scored sequences, and {signed(mean[EVERY])} over every head. "
        f"The test finds losses from {least:.1f} points on (median over layers, power .8)."
    )


def carried_over(table: pd.DataFrame, reference: pd.DataFrame) -> str:
    """How well effects agree across data, next to BERT-base; from `transfer_table` and `published.transfer`."""
    if table.empty:
        return "No two of the tasks ask one question of different data."
    halves = table["data_a"].str.contains(",")
    parts = [
        f"{row.model} model, {row.data_a} and {row.data_b}: r = {row.r:.2f} [{row.low:.2f}, {row.high:.2f}], "
        f"Spearman {row.spearman:.2f}"
        for row in table[~halves].itertuples()
    ]
    ceiling = listed(f"{row.r:.2f} ({row.model})" for row in table[halves].itertuples())
    theirs = listed(f"{row.r:.2f} ({row.source})" for row in reference.itertuples())
    return (
        f"Effects on two data sets: {'; '.join(parts)}. Between halves of one set r is {ceiling}. BERT-base on the two "
        f"dev sets of MNLI: r = {theirs}."
    )


def beside_replication(summary: pd.DataFrame, reference: pd.DataFrame) -> str:
    """The range of single-head changes next to BERT-base on MNLI; from `overview` and `published.single_heads`."""
    shown, theirs = main_metric(summary), 100 * reference["change"]
    return (
        f"Single removals change the score by {signed(100 * shown['lowest'].min())} to "
        f"{signed(100 * shown['highest'].max())} points here, by {signed(theirs.min())} to {signed(theirs.max())} for "
        f"BERT-base on MNLI (independent replication; another model on other data), where {(theirs > 0).sum()} of "
        f"{len(theirs)} changes are above 0."
    )


def importance_and_ablation(agreement: pd.DataFrame, reference: pd.DataFrame) -> str:
    """How well importance agrees with ablation, next to BERT-base; from `agreement_table`, `published.single_heads`."""
    article = agreement[(agreement["granularity"] == "example") & agreement["normalised"]]
    others = agreement[agreement["normalised"] & (agreement["granularity"] != "example")]
    parts = [
        f"{name} {rows['with_example'].mean():.2f}"
        for name, rows in others.groupby("granularity", sort=False)
    ]
    theirs = stats.spearmanr(reference["importance"], -reference["change"]).statistic
    return (
        f"Importance as in the article orders heads as the rise of the loss without them does with Spearman "
        f"{article['with_ablation'].mean():.2f} (mean over tasks; {article['with_ablation'].min():.2f} to "
        f"{article['with_ablation'].max():.2f}), and as the fall of accuracy with "
        f"{article['with_accuracy'].mean():.2f}; the latter is {theirs:.2f} for BERT-base on MNLI "
        f"(replication). It agrees with the other granularities with {listed(parts)}."
    )


def prunable_heads(shares: pd.DataFrame) -> str:
    """How many heads can be pruned by importance, by single scores and at random; from the table of `prunable_table`.

    Classifiers without a lead over the constant answer do not count.
    """
    shares = shares.dropna(subset="share")
    if shares.empty:
        return "No classifier is ahead of the constant answer: there is nothing to lose."
    wide = shares.assign(order=shares["order"].str.replace(r" \d+$", "", regex=True))
    means = wide.groupby(["task", "order"], sort=False)["share"].mean().unstack("order")
    parts = [f"{task} {share:.0%}" for task, share in means[IMPORTANCE].items()]
    least = 100 * shares.loc[shares["order"] == IMPORTANCE, "least"]
    return (
        f"By importance these shares of the heads go without a significant loss: {listed(parts)}; losses below "
        f"{least.median():.1f} points (median) would mostly pass unseen. The mean over tasks is "
        f"{means[IMPORTANCE].mean():.0%}, with importance measured again {means[AGAIN].mean():.0%}, by single-head "
        f"scores {means[SCORE].mean():.0%}, at random {means[RANDOM].mean():.0%}."
    )


def beside_published_curves(curves: pd.DataFrame, leading: Collection[Run], reference: pd.DataFrame) -> str:
    """How much of the score is left with half of the heads, next to BERT-base; `pruning_table`, `published.pruning`.

    Only the runs `leading`, those of `with_a_lead`, count.
    """
    main = main_metric(curves)
    main = main[[run in leading for run in zip(main["task"], main["seed"], strict=True)]]
    if main.empty:
        return "No classifier is ahead of the constant answer: there is nothing to lose."
    half = main[main["heads"] == main["heads"].max() // 2].set_index(["order", "task"])
    ours = half["value"] / (half["value"] - half["change"])
    theirs = reference.set_index(["task", "order", "heads"])["value"]
    parts = [
        f"{task} {theirs[task, order, 72] / theirs[task, order, 0]:.0%} ({order})"
        for task, order in (
            ("mnli", IMPORTANCE),
            ("mnli", SCORE),
            ("cola", IMPORTANCE),
            ("sst-2", IMPORTANCE),
        )
    ]
    return (
        f"With half of the heads pruned by importance {ours[IMPORTANCE].mean():.0%} of the score is left here (mean "
        f"over tasks with a lead), by single-head scores {ours[SCORE].mean():.0%}. BERT-base in a replication (another "
        f"model on other data): {listed(parts)}."
    )


def gained_speed(table: pd.DataFrame) -> str:
    """The speed-up and its bound; from the table of `speed_table`."""
    parts = [
        f"{row.model} at {row.batch}: {row.speedup:.2f} [{row.low:.2f}, {row.high:.2f}]"
        for row in table.itertuples()
    ]
    bounds = listed(
        f"{bound:.2f} ({model})"
        for model, bound in table.groupby("model", sort=False)["bound"].first().items()
    )
    return (
        f"Without half of its heads an encoder is so many times as fast: {'; '.join(parts)}. The arithmetic allows "
        f"{bounds}."
    )


def kept_on_the_way(table: pd.DataFrame, constants: Mapping[str, float]) -> str:
    """How much half of the heads keep at the start and the end of fine-tuning; from the table of `dynamics_table`."""
    if table.empty:
        return "No task was fine-tuned again."
    rows = table[table["metric"] == "accuracy"]
    parts = []
    for (task, fraction), steps in rows.groupby(["task", "fraction"], sort=False):
        whole, half = (
            steps["value"].iloc[0],
            steps.loc[steps["heads"] <= steps["heads"].max() / 2, "value"].iloc[-1],
        )
        parts.append(f"{task} at {fraction:.0%}: {whole:.2f} whole, {half:.2f} with half of the heads")
    answers = listed(f"{constants[task]:.2f} ({task})" for task in rows["task"].unique())
    return f"Accuracy on the way: {'; '.join(parts)}. The constant answer gives {answers}."


def left_out(runs: Iterable[Run], leading: Iterable[Run]) -> str:
    """The runs that the claims leave out: all except those of `with_a_lead`, which are `leading`."""
    lacking = [f"{task}, seed {seed}" for task, seed in runs if (task, seed) not in {*leading}]
    if not lacking:
        return (
            "All classifiers are ahead of the constant answer by more than the 95 % margin of a proportion."
        )
    return (
        f"Not ahead of the constant answer by more than the 95 % margin of a proportion: {listed(lacking)}. These have "
        "nothing to lose, and the claims about losses leave them out."
    )
