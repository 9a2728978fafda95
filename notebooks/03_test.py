# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 3. Test: which heads have which roles?
#
# Give a head a role if it pays at least three times as much attention to the role's tokens as a head that spreads its attention
# evenly over the sequence. By this rule, Pande et al. (2021) find that 73 % of the heads of fine-tuned BERT-base are
# *delimiter* heads, which attend to `[CLS]` and `[SEP]`, and that 42 to 89 % of the *local* heads are *syntactic* heads as well,
# depending on the task. They conclude that heads are multi-functional.
#
# We repeat their test on one task, and then ask a question that the paper does not: **would a head that knows nothing of the
# role pass, too?** Layers and heads count from 0, as in the authors' code.
#
# This chapter takes a minute. It reads the scores of a fine-tuned encoder, which `make 01_extract-toy-mrpc-finetuned` makes in about
# four minutes on two cores (for another task, its name stands in place of toy-mrpc). Without them it reads those of the encoder before
# fine-tuning, which `make first` makes in a minute.
#
# *Source: Pande et al. 2021, question 1 (claims C1 to C3).*

# %% tags=["parameters"]
# tau, window and relations are shared with 02 to 04, 08, 10 and 98: to change them in all, write the section `common` of a
# profile (README).
profile: str = "offline"
task: str = "toy-mrpc"  # task on which the encoder is fine-tuned and tested
tau: float = 3.0  # a head has a role if its mean score is above tau; 1 is a head with uniform attention
alpha: float = 0.05  # level of each test
minimum: int = 100  # sequences with the role that a corrected label needs: 03_robustness says why

# seldom changed
resamples: int = 999  # of the bootstrap
seed: int = 0  # of the bootstrap
seeds: list[int] = [0, 1]  # fine-tuning runs: the first is tested here, all in 04_compare
window: int = 2
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]
direction: str = "dependent_to_head"
arithmetic: str = "corrected"
weighted_block: bool = True

# %%
import numpy as np
import pandas as pd
from scipy import stats

from analysis.figures import theme
from analysis.figures.colours import BLUE, VERMILION, colour
from analysis.figures.theme import style
from analysis.figures.words import finding, share
from analysis.statistics import roles
from analysis.statistics.controls import controlled_table
from analysis.statistics.roles import compose, compose_controls
from analysis.statistics.significance import Rule, published_table
from analysis.study.results import Results

style()
results = Results(profile)
choices = (window, relations, direction, arithmetic, weighted_block)
run = seeds[0] if results.scored(task, seeds[0]) else None  # before fine-tuning
bank, controls = results.load_scores(task, run), results.load_controls(task, run)
scores = compose(bank, *choices)
control_scores = compose_controls(bank, controls, *choices)
print(
    f"{task}: {scores.sizes['sequence']} sequences, {'before fine-tuning' if run is None else f'fine-tuning run {run}'}"
)

# %% [markdown]
# ## The test
#
# `scores` holds one number per sequence, role, layer and head: how many times more attention the head pays to the role's
# tokens than uniform attention would (`02_score` works through an example by hand). A head has the role if a
# one-sided $t$ test over sequences rejects $H_0\colon \mu \le \tau$,
#
# $$ t = \frac{\bar{x} - \tau}{s / \sqrt{n}}. $$
#
# Sequences in which the role cannot occur (no direct object, say) have no score and are left out. Why three? The authors' code
# lists thresholds from 1 to 3.5, and labels the heads of the article at 3; [03_robustness](03_robustness.ipynb) shows which
# labels another threshold changes.

# %%
ordered = scores.transpose("sequence", "role", "layer", "head")
test = stats.ttest_1samp(ordered.values, popmean=tau, axis=0, alternative="greater", nan_policy="omit")
has_role = ordered[0].copy(data=np.asarray(test.pvalue < alpha, dtype=float))
has_role.sum(["layer", "head"]).to_series().astype(int).rename("heads with p < alpha").to_frame()

# %% [markdown]
# `controlled_table` runs this test, corrects it for the number of heads, adds intervals, and compares every head with its
# *control*: the same score of attention that cannot know the role. The control of a syntactic role is the head's **positional
# twin**, which attends to each distance as often as the head does but does not see the words; that of *local* is the same head
# on shuffled words; that of *block* has rows of the same entropy, spread evenly. For the delimiter roles we have no better control
# than uniform attention.

# %%
table = controlled_table(scores, control_scores, Rule(tau, alpha, minimum, resamples, seed))

# %% [markdown]
# ## Roles of all heads (F4)
#
# One column per head, one row per role. A role that no sequence of the task can show (block in single
# sentences) is *not applicable* (hatched), which is not the same as not having it. Rows between two lines belong to one coarse role.
# The row *match* is this study's: the same word in the other text ([11_matching](11_matching_all.ipynb)). Look at the columns of its heads:
# which of the paper's roles do they have? In the committed run of glue-minilm they are delimiter heads, and nothing else.

# %%
families = [[role for role in names if role in {*table["role"]}] for names in roles.families().values()]
order = [*dict.fromkeys([role for names in families for role in names] + theme.in_order(table["role"]))]
layers, heads = table[["layer", "head"]].max() + 1
label = np.stack([theme.layer_head(table, role, "assigned").ravel() for role in order])
axes = theme.canvas(theme.DOUBLE, 0.21 * len(order) + 0.9)
rows, places = np.nonzero(label == 1)
axes.bar(places, 0.8, 0.86, rows - 0.4, color=[colour(order[row]) for row in rows])
rows, places = np.nonzero(np.isnan(label))
axes.bar(places, 0.4, 1, rows - 0.2, color="white", edgecolor="0.7", hatch="/////", linewidth=0)
theme.heads_by_layer(axes, layers, heads)
axes.hlines(np.cumsum([*map(len, families)]) - 0.5, -0.5, layers * heads - 0.5, color="0.4", linewidth=0.6)
axes.set(ylim=(len(order) - 0.5, -0.5), xlabel=theme.HEADS_BY_LAYER, ylabel="role (bar: the head has it)")
axes.set_yticks(range(len(order)), order)
results.save_figure(
    axes.figure,
    f"F4-assignment-{task}",
    "One column per head and one row per role; a bar means that the head has the role by the published "
    "rule. A column with bars of several coarse roles is a head that the paper calls multi-functional.",
)

# %%
heads_by_role = table.groupby("role", sort=False)["assigned"].sum(min_count=1)
coarse = roles.coarse_memberships(table)
several = coarse.sum(axis=1) >= 2
finding(
    f"{heads_by_role['delimiter']} of {layers * heads} heads are delimiter heads, and {several.sum()} ({several.mean():.0%}) have "
    "at least two of the four coarse roles."
)

# %% [markdown]
# ## Do roles exclude one another?
#
# A head has a *coarse* role if it has that role or one of its finer roles: *syntactic* here is the pooled role or any of its four
# relations, *delimiter* also `[CLS]` or `[SEP]` alone. Read a row of the table: of the heads with this role, how many have the other one
# as well? ([03_test_all](03_test_all.ipynb) draws the sets of all tasks, beside those of BERT-base.)

# %%
overlap = coarse.astype(int).T @ coarse.astype(int)
overlap.rename_axis(index="heads with this role", columns="have this role too")

# %% [markdown]
# Of the local heads, the paper finds that 42 to 89 % are syntactic as well. Such an overlap needs no head with two functions:
# neighbouring words are often syntactically related, so a head that attends to its neighbours scores on both sieves. We label
# the positional twins by the same rule: twins know distances, `[CLS]` and `[SEP]`, but no words.

# %%
on_twins = compose_controls(bank, controls, *choices, second=True)
labels = {"heads": table, "positional twins": published_table(on_twins, Rule(tau, alpha))}
shares = pd.DataFrame({name: roles.local_and_syntactic(part) for name, part in labels.items()}).T
names = {"both": "local and syntactic", "both_any": "local and any syntactic role"}
shares.rename(columns=names)

# %%
real, twins = shares.loc["heads"], shares.loc["positional twins"]
finding(
    f"Of the local heads, {share(real['both'], real['local'])} have the syntactic role as well (paper: 42 to 89 %); of the local twins, "
    f"which know no words, {share(twins['both'], twins['local'])} have it. With any of the four relations it is {real['both_any']} heads "
    f"and {twins['both_any']} twins."
)

# %% [markdown]
# Where the share of the twins is as large, the overlap is what positions give, and needs no head with two functions. The next section
# asks how many heads know more than that.
#
# **Try it.** Set `tau = 2`. Does the overlap of local and syntactic heads depend on the threshold?
#
# <details><summary>What happens</summary>
#
# More heads are local and many more have two roles. The share of local heads that are syntactic goes either way: in profile offline it
# stays, in glue-minilm it rises, and in glue-mpnet it falls.
#
# </details>
#
# ## Would a head that knows nothing of the role pass, too? (F10)
#
# Each dot is a head: its mean score with its 95 % interval, and its control's mean score as an open circle on the same line.
# Heads are ordered by their score. To the right of the dashed line ($\tau$) a head has the role. The *margin* is $\tau - 1$: as far
# as the threshold lies above a uniform head, a head should lie above its control.

# %%
figure, grid = theme.rows_of_axes(6, 3, 2.3, 0.5, sharex=True)
total = layers * heads
fine = min(1, 72 / total)  # lines of more heads are thinner
for axes, role in zip(grid, ["local", "syntactic", "block", "nsubj", "dobj", "amod"], strict=True):
    rows = table[table["role"] == role].dropna(subset="mean").sort_values("mean").reset_index(drop=True)
    interval = [rows["mean"] - rows["low"], rows["high"] - rows["mean"]]
    axes.errorbar(
        rows["mean"], rows.index, xerr=interval, fmt=".", color=BLUE, lw=1.2 * fine, ms=6 * fine, label="head"
    )
    ring = {"fillstyle": "none", "ms": 1 + 2 * fine, "mew": fine, "label": "its control"}
    axes.plot(rows["control_mean"], rows.index, "o", color=VERMILION, **ring)
    low = rows[rows["mean"] < 0.3]  # beyond the left edge
    axes.plot([0.32] * len(low), low.index, "<", color=BLUE, ms=3, label="head below 0.3")
    axes.axvline(tau, color="black", linestyle="--", linewidth=0.8)
    axes.set(title=role, xscale="log", xlim=(0.3, 40), yticks=[])
    axes.set_xticks([0.5, 1, 3, 10, 30], ["0.5", "1", "3", "10", "30"])
    axes.minorticks_off()
figure.legend(*grid[0].get_legend_handles_labels(), ncols=3, loc="outside upper center")
figure.supxlabel("mean sieve bias score (log scale; 1: uniform attention; dashed: τ)")
figure.supylabel(f"{total} heads, ordered by score")
results.save_figure(
    figure,
    f"F10-forest-{task}",
    "Each head's mean score with its interval, and the mean score of its control on the same line. Heads "
    "right of the dashed line have the role; those close to their circle do no more than the control.",
)

# %%
counts = roles.role_counts(table)
shown = {**roles.COUNT_NAMES, "unlabelled": "other heads", "unlabelled_exceed": "... that exceed the control"}
counts[[*shown]].rename(columns=shown).loc[order]

# %%
syntactic, block = (counts.drop(columns="ratio").loc[role] for role in ("syntactic", "block"))
finding(
    f"Of {syntactic['assigned']} syntactic heads, {syntactic['exceeds_control']} attend to a word's governor more than their positional "
    f"twins do, as {syntactic['unlabelled_exceed']} of the {syntactic['unlabelled']} other heads do; "
    f"{syntactic['assigned_controlled']} do so by the margin. Of {block['assigned']} block heads, {block['assigned_controlled']} do."
)

# %% [markdown]
# A role of `[CLS]` is easy to have beyond uniform attention, one of `[SEP]` is not: over all tasks of the committed run of
# glue-minilm, 98 % of the heads exceed uniform attention for `[CLS]` and 15 % for `[SEP]`. A *local* label says that a head attends
# to neighbours, and nothing more: a head that knows only positions gets it, too.
#
# Block heads are the reverse case. The published score multiplies a row by its entropy, so that uniform attention scores $\ln T$ on
# a sequence of $T$ tokens, 3.7 for 40 tokens, and would count as a block head.
#
# **Try it.** Set `relations = ["amod"]`, so that adjectives alone count as syntactic.
#
# <details><summary>What happens</summary>
#
# More syntactic heads exceed their twins by the margin: the table above has the four relations one by one.
#
# </details>
#
# **Try it.** Set `weighted_block = False`.
#
# <details><summary>What happens</summary>
#
# Without the entropies, no block head is left.
#
# </details>
#
# **How far to trust it.** One encoder, one run, sentences of one task: [03_test_all](03_test_all.ipynb) has all tasks,
# [04_compare](04_compare.ipynb) other runs, and [03_robustness](03_robustness.ipynb) other thresholds and sample
# sizes.
