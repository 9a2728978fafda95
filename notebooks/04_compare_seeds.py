# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 4, continued. Would another fine-tuning run give the same heads?
#
# **Question.** A fine-tuned encoder is one draw: its new layer starts at random and the examples come in random order.
# The runs of this notebook differ in nothing else. How much do the counts of heads, and the heads themselves, differ?
#
# *Source: a control of this study; the paper labels one checkpoint per task.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]
seeds: list[int] = [0, 1]
tau: float = 3.0
alpha: float = 0.05
minimum: int = 100
resamples: int = 999
seed: int = 0
window: int = 2
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]
direction: str = "dependent_to_head"
arithmetic: str = "corrected"
weighted_block: bool = True

# %%
import pandas as pd

from analysis.figures import finding, style, theme
from analysis.figures.colours import BLACK, BLUE, VERMILION
from analysis.statistics import Rule, compose, controlled_table, label_agreement
from analysis.study import Results

style()
results = Results(profile)
choices = (window, relations, direction, arithmetic, weighted_block)

# %%
rule = Rule(tau, alpha, minimum, resamples, seed)
tables = {
    (t, run): controlled_table(
        compose(results.load_scores(t, run), *choices),
        compose(results.load_controls(t, run), *choices),
        rule,
    )
    for t in tasks
    for run in (None, *seeds)
}
table = pd.concat([part.assign(task=t, seed=run) for (t, run), part in tables.items()], ignore_index=True)
rules = ["assigned", "assigned_corrected", "assigned_controlled"]
kept = table[["task", "seed", "role", "layer", "head", *rules]]
for t in tasks:
    results.save_part(kept[kept["task"] == t], "labels", t)

# %% [markdown]
# ## Heads with each role
#
# One mark per run: the number of heads with the published label, and with the corrected one; the line is the
# pre-trained encoder. The table has the controlled label too.

# %%
counts = table.groupby(["task", "seed", "role"], sort=False, dropna=False)[rules].sum(min_count=1)
counts = counts.set_axis(["published", "corrected", "controlled"], axis=1).reset_index()
results.save_table(counts, "seeds")

# %%
order = theme.in_order(counts["role"])
long = counts.melt(["task", "seed", "role"], ["published", "corrected"], "label", "heads").astype(
    {"heads": float}
)
long["label"] = long["label"].where(long["seed"].notna(), long["label"] + ", pre-trained")
looks = {"published": ("o", BLUE), "corrected": ("D", VERMILION), "published, pre-trained": ("|", BLACK)}
figure, grid = theme.panels(len(tasks), 4, 0.22 * len(order) + 0.5, "heads", "role")
for axes, task in zip(grid, tasks, strict=True):
    for shift, (name, (mark, shade)) in zip((-0.15, 0.2, 0), looks.items(), strict=True):
        rows = long[(long["task"] == task) & (long["label"] == name)]
        heights = rows["role"].map(order.index) + shift
        axes.plot(rows["heads"], heights, mark, color=shade, markerfacecolor="none", markersize=4, label=name)
    axes.set(title=task, ylim=(len(order) - 0.5, -0.5))
    axes.set_yticks(range(len(order)), order)
figure.legend(
    *grid[0].get_legend_handles_labels(),
    ncols=3,
    loc="outside lower center",
    title="a mark per fine-tuning run",
)
results.save_figure(figure, "F13-seeds")

# %%
spread = counts.dropna(subset="seed").groupby(["role", "task"], sort=False)["published"].agg(["min", "max"])
ranges = spread["min"].astype("Int64").astype(str) + " to " + spread["max"].astype("Int64").astype(str)
ranges.unstack()[tasks].rename_axis(columns=f"heads with the published label, over {len(seeds)} runs")

# %%
width = (spread["max"] - spread["min"]).astype(float)
finding(
    f"Over {len(seeds)} fine-tuning runs the number of heads with a role differs by {width.median():g} (median over tasks "
    f"and roles), and most for {' in '.join(width.idxmax())}: by {width.max():g} heads."
)

# %% [markdown]
# ## The same heads?
#
# Jaccard similarity of the sets of heads with a role, averaged over pairs of runs, and beside it the similarity of the
# runs with the pre-trained encoder. Where the first is hardly larger than the second, fine-tuning moved few labels.

# %%
agreement = label_agreement(table)
results.save_table(agreement, "seeds_agreement")
agreement.pivot(index="role", columns="task", values=["between_runs", "with_pretrained"]).loc[
    table["role"].unique()
].style.format(precision=2, na_rep="")

# %%
known = agreement.dropna(subset=["between_runs", "with_pretrained"])
finding(
    f"Two runs share {known['between_runs'].mean():.0%} of the heads that either labels (mean Jaccard index), a run and "
    f"the pre-trained encoder {known['with_pretrained'].mean():.0%}. {known['always'].sum():.0f} labels stand in every "
    f"run, {known['ever'].sum():.0f} in at least one."
)

# %% [markdown]
# *How far to trust it.* The spread over few runs is itself uncertain, and the runs share the training examples and the
# pre-trained encoder: another pre-training could move every head. The summary judges each claim at every run.
