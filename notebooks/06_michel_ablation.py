# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 6. Are sixteen heads better than one? Heads removed one at a time
#
# **Question.** What happens to a fine-tuned encoder when one head is switched off; when a layer keeps a single head;
# and do the effects of heads on one data set foretell those on another?
#
# A removed head gives zeros; nothing is trained again. Every comparison is paired: the same sequences with and without
# the head. Beside every "no loss" stands the least loss that so many sequences could have shown.
#
# *Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 3. The article's encoder is BERT-base
# on MNLI and a translation model; its values stand beside ours as those of another model on other data.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp"]
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours: "models/{task}-{seed}" is filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
scored_n: int | None = 100  # dev sequences that every change is measured on, None for all
chosen_n: int = 50  # training examples that the head which stays in a layer is chosen on
# Two data sets of one question: effects of the first one's model on both are compared. The dev set of a task, or
# another split of it: "mnli dev_mismatched".
transfer_sets: list[str] = ["toy-mrpc", "toy-qqp"]
seeds: list[int] = [0, 1]  # of the fine-tuning runs
ablated_runs: int = 1  # so many of them have single heads removed; what follows takes the first
seed: int = 0  # of the sample of sequences, the bootstrap and the swaps
sequences_at_once: int = 32
max_tokens: int = 128
alpha: float = 0.05
resamples: int = 999  # of the bootstrap
permutations: int = 9999  # swaps of answers
device: str = "cpu"
precision: str = "float32"

# %%
import pandas as pd
from IPython.display import Markdown
from matplotlib.colors import SymLogNorm

from analysis.encoders import all_but_one, load_encoder, predict, single_heads
from analysis.figures import colours, finding, rank_panels, style, theme
from analysis.figures.words import listed, signed
from analysis.papers.michel2019 import ablation
from analysis.papers.michel2019.measures import main_metric, published
from analysis.statistics.answers import labels_of
from analysis.statistics.training import trained_runs
from analysis.study.results import Results, seeds_of
from analysis.texts import load_examples
from analysis.texts.tasks import positive_class

# %%
style()
results = Results(profile)
runs = {
    (task, run): results.weights(task, run, encoder, checkpoint)
    for task in tasks
    for run in seeds_of("finetuned", seeds, checkpoint)[:ablated_runs]
}
first = [run for run in runs if run[1] == seeds[0]]
dev = {task: load_examples(task, source, "dev", scored_n, seed) for task in tasks}
train = {task: load_examples(task, source, "train", chosen_n, seed) for task in tasks}
labels = {task: labels_of(examples) for task, examples in dev.items()}
tests = {"alpha": alpha, "resamples": resamples, "permutations": permutations, "seed": seed}


def answers(interventions, run, examples):
    """The logits of a run's classifier without and with each intervention, kept in the cache."""
    model = load_encoder(runs[run], device, precision, run[0])
    told = {"batch_size": sequences_at_once, "max_tokens": max_tokens, "cache": results.logits}
    return predict(model, examples, interventions(model), **told)


Markdown("; ".join(f"{task}: {len(examples)} dev sequences" for task, examples in dev.items()))

# %% [markdown]
# ## One head off
#
# Every head is removed by itself, in every fine-tuning run. Changes are told in the task's metrics, in accuracy, and in
# the loss (cross entropy, nats). The test of accuracy is McNemar's exact one, that of the loss a paired t test; for F1
# and Matthews the answers with and without the head are swapped in random sequences.

# %%
single = {run: answers(single_heads, run, dev[run[0]]) for run in runs}
for (task, run), found in single.items():
    results.record_weights(f"{task}-finetuned-{run}", found.attrs["weights_sha256"])

# %%
changes = ablation.all_changes(single, labels, **tests)
by_auc = ablation.auc_changes(single, labels)
results.save_table(pd.concat([changes[ablation.ABLATION], by_auc]), "michel_ablation")

# %% [markdown]
# The first run of each task. Colours are linear up to one point and logarithmic beyond.

# %%
main = main_metric(changes)
shown = main[main["seed"] == seeds[0]].groupby("task", sort=False)
cap = max(2.0, 100 * main["change"].abs().max())
ring = {"s": 34, "facecolor": "none", "edgecolor": "black", "linewidth": 0.8}
figure, grid = theme.panels(len(shown), 3, 1.35, theme.HEAD, theme.LAYER)
for axes, (task, rows) in zip(grid, shown, strict=True):
    points = 100 * rows.pivot(index="layer", columns="head", values="change").to_numpy()
    mesh = theme.layer_head_mesh(axes, points, cmap="vlag_r", norm=SymLogNorm(1, vmin=-cap, vmax=cap))
    for column, look in (("p", {"s": 5, "color": "black"}), ("p_by", ring)):
        marked = rows[rows[column] < alpha]
        axes.scatter(marked["head"], marked["layer"], **look)
    axes.set_title(f"{task}: {rows['metric'].iloc[0]} {100 * rows['baseline'].iloc[0]:.1f}")
bar = figure.colorbar(mesh, ax=grid, aspect=30, pad=0.02)
bar.set_label(f"change without the head (points)\ndot: p < {alpha:g}; ring: corrected")
ticks = [place for place in (-30, -10, -3, -1, 0, 1, 3, 10, 30) if abs(place) <= cap]
bar.set_ticks(ticks, labels=[f"{place:+d}" if place else "0" for place in ticks], minor=False)
results.save_figure(figure, "michel-F1-heads")

# %% [markdown]
# How many heads change the score, by run:

# %%
summary = ablation.overview(changes, alpha)
results.save_table(summary, "michel_ablation_overview")
main_metric(summary).style.format(precision=3).hide()

# %%
counts = main_metric(summary).groupby("task", sort=False)[["lost", "heads", "lost_by"]].sum()
told = [f"{row.Index} {row.lost} of {row.heads}" for row in counts.itertuples()]
finding(
    f"Heads whose removal loses significantly (p < {alpha:g}, all runs): {listed(told)}; after correction "
    f"{counts['lost_by'].sum()} remain. The largest single loss is {signed(100 * main['change'].min())} points."
)

# %% [markdown]
# `lost` and `gained` count heads with p below the level, `lost_by` and `gained_by` those that remain when p is corrected
# for all heads. The test misses a loss smaller than `least` more often than in one case of five: no significant loss there is no
# evidence of none.

# %%
theirs = 100 * published("single_heads")["change"]
finding(
    f"Single removals change the score by {signed(100 * main['change'].min())} to {signed(100 * main['change'].max())} "
    f"points here, by {signed(theirs.min())} to {signed(theirs.max())} for BERT-base on MNLI (independent replication; "
    f"another model on other data), where {(theirs > 0).sum()} of {len(theirs)} changes are above 0."
)

# %% [markdown]
# ## Which heads matter most? It depends on the metric
#
# Loss and accuracy mix two things: what the encoder knows, and a shift of all logits towards one class. The AUC ranks the log
# odds of one class and does not see a shift; neither does the loss after slope and bias of the logits are fitted again on the
# other half of the sequences (table). Heads off the diagonal change the loss mostly by a shift. The first run of each task.

# %%
effects = ablation.effects_by_metric(single, labels)
results.save_table(effects, "michel_effects")
ranked = effects[effects["seed"] == seeds[0]]
shown = ranked["task"].unique()
results.save_figure(rank_panels(ranked, shown), "michel-F1-ranks")

# %%
wide = ranked.pivot(index=["task", "layer", "head"], columns="metric", values="rank")
same = wide.groupby("task").corr("spearman").xs("auc", level="metric")
finding(
    f"Ranks of heads by AUC correlate with those by loss with {same['loss'].min():.2f} to {same['loss'].max():.2f} (tasks), with "
    f"those by refitted loss with {same['refitted loss'].min():.2f} to {same['refitted loss'].max():.2f}."
)

# %% [markdown]
# ## One head left
#
# All heads of a layer but one are removed. The best head can be chosen on the sequences that are scored (the article's
# table 3), which flatters it, or on training examples (its table 6).

# %%
alone = {run: answers(all_but_one, run, dev[run[0]]) for run in first}
tried = {run: answers(all_but_one, run, train[run[0]]) for run in first}
chosen = {run: ablation.best_heads(found, labels_of(train[run[0]]), run[0]) for run, found in tried.items()}

# %%
left = ablation.all_but_one_table(alone, labels, chosen, **tests)
results.save_table(left[ablation.ALL_BUT_ONE], "michel_all_but_one")
results.save_table(ablation.overview(left, alpha), "michel_all_but_one_overview")

# %%
shown = main_metric(left).groupby("task", sort=False)
looks = {
    "dev": (0.0, "D", colours.BLUE, "best on these sequences"),
    "train": (0.25, "o", colours.VERMILION, "chosen on training examples"),
}
figure, grid = theme.panels(len(shown), 3, 1.4, theme.LAYER, "change with one head left (points)")
for axes, (task, rows) in zip(grid, shown, strict=True):
    every = rows[rows["chosen_on"] == ablation.EVERY]
    axes.axhline(0, color="black", linewidth=0.6)
    axes.plot(every["layer"] - 0.3, 100 * every["change"], "_", color="0.6", markersize=5, label="every head")
    for name, (place, mark, colour, label) in looks.items():
        part = rows[rows["chosen_on"] == name]
        axes.vlines(part["layer"] + place, 100 * part["low"], 100 * part["high"], color=colour, linewidth=0.9)
        axes.plot(
            part["layer"] + place, 100 * part["change"], mark, color=colour, markersize=3.5, label=label
        )
    axes.set_title(f"{task} ({rows['metric'].iloc[0]})")
    theme.integer_ticks(axes)
figure.legend(*grid[0].get_legend_handles_labels(), ncols=3, loc="outside upper center")
results.save_figure(figure, "michel-F2-one-head")

# %%
rows = main_metric(left)
means = 100 * rows.groupby("chosen_on")["change"].mean()
rows = rows[rows["chosen_on"] == "train"]
lost = ((rows["p"] < alpha) & (rows["change"] < 0)).sum()
finding(
    f"With one head, chosen on training examples, {len(rows) - lost} of {len(rows)} layers (tasks together) lose nothing that "
    f"is significant. The mean change is {signed(means['train'])} points, {signed(means['dev'])} where the choice sees the "
    f"scored sequences. The test finds losses from {100 * rows['least'].median():.1f} points on (median, power .8)."
)

# %% [markdown]
# Published changes of BERT-base with one head left in a layer (points; **another model on another data set**), by
# layer. `replication` is an independent one.

# %%
beside = published("all_but_one").pivot(
    index="layer", columns=["source", "task", "chosen_on"], values="change"
)
beside.mul(100).style.format(precision=2)

# %% [markdown]
# ## Do effects carry over?
#
# The same heads of one paraphrase model are removed on the sequences of two data sets. Two random halves of one set show
# how well effects can agree at all in samples half as large. The loss mixes what a head knows with a shift of all logits; the
# AUC does not see a shift. A few
# heads can carry a correlation: ranks stand beside values, and the heads with the largest changes are named.

# %%
model = transfer_sets[0]
named = {data: [*data.split(), "dev"][:2] for data in transfer_sets}
known = {name for name, _ in named.values()} <= {*tasks}
samples = {
    data: load_examples(name, source, split, scored_n, seed) for data, (name, split) in named.items() if known
}
pairs = {data: answers(single_heads, (model, seeds[0]), examples) for data, examples in samples.items()}
gold = {data: labels_of(examples) for data, examples in samples.items()}
effects = ablation.effects(pairs, gold, positive_class(model), seed)
transfer = ablation.transfer_table(effects, resamples, seed)
results.save_table(transfer, "michel_transfer")
transfer.style.format(precision=2).hide()

# %%
groups = [*effects.groupby(["data_a", "data_b", "metric"], sort=False)]
reason = "no two data sets of one question"
figure, grid = theme.rows_of_axes(2 * len(groups), 4, 2.0) if groups else (theme.empty(reason), [])
correlations = transfer.set_index(["data_a", "metric", "correlation"])["value"]
for number, axes in enumerate(grid):
    (data_a, data_b, metric), rows = groups[number // 2]
    kind = ("Pearson", "Spearman")[number % 2]
    points = rows[["a", "b"]].rank() if kind == "Spearman" else rows[["a", "b"]]
    axes.scatter(points["a"], points["b"], s=7, color=colours.GREY if "," in data_a else colours.BLUE)
    sizes = (rows[["a", "b"]] / rows[["a", "b"]].abs().max()).abs().max(axis=1)
    largest = points.loc[sizes.nlargest(3).index].sort_values("b")
    to_left = largest["a"] > points["a"].max() / 2 + points["a"].min() / 2  # names stay inside of the axes
    for lift, (place, at), left in zip((-6, 0, 6), largest.iterrows(), to_left, strict=True):
        name, side = f"{rows['layer'][place]}-{rows['head'][place]}", "right" if left else "left"
        beside = (-4 if left else 4, lift)
        axes.annotate(name, at, beside, textcoords="offset points", fontsize=6.5, ha=side, va="center")
    axes.margins(0.2)
    told = "rank" if kind == "Spearman" else "change"
    axes.set_title(f"{metric}: {kind} {correlations[data_a, metric, kind]:.2f}")
    axes.set(xlabel=f"{told} on\n{data_a}", ylabel=f"{told} on\n{data_b}")
    axes.locator_params(nbins=3)
results.save_figure(figure, "michel-F3-transfer")

# %%
own = transfer[~transfer["data_a"].str.contains(",")]
told = [f"{r.metric}, {r.correlation} {r.value:.2f} [{r.low:.2f}, {r.high:.2f}]" for r in own.itertuples()]
theirs = listed(f"{row.r:.2f} ({row.source})" for row in published("transfer").itertuples())
finding(
    f"Effects of heads on {' and '.join(transfer_sets)}: {'; '.join(told)}. The loss changes most without "
    f"{own['largest'].iloc[0]}. BERT-base on the two dev sets of MNLI: r = {theirs}."
    if len(own)
    else "No two of the tasks ask one question of different data."
)

# %% [markdown]
# *How far to trust it.* Intervals draw heads; a correlation that a few heads carry has a wide one, and a Spearman
# correlation far from Pearson's. Effects that no sample can tell from zero agree by chance alone. MRPC and
# QQP ask one question of other sentences, with another share of paraphrases: a domain shift, not a second sample.

# %%
trained = trained_runs(results.join_parts("finetune", tasks, every=False))
picked = {run: found.sel(intervention=["none", *chosen[run]]) for run, found in alone.items()}
tolerated = ablation.tolerated_table(single, picked, labels, trained)
results.save_table(tolerated, "michel_tolerated")
tolerated.style.format(precision=2).hide()

# %%
lacking = [f"{task}, seed {run}" for task, run in single if (task, run) not in trained]
finding(
    f"Runs that did not train successfully: {listed(lacking)}. They are at chance, so that ablation cannot lower their "
    "accuracy, and the claims leave them out."
)
