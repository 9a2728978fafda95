# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 4. What does fine-tuning change?
#
# **Question.** The same sequences go through the encoder before and after fine-tuning. Which layers change most, which
# roles are gained and lost, which heads stay as they were, and does attention leave [SEP]?
#
# The state before is that of the profile's encoder, which need not be a masked language model: MiniLM was tuned as a
# sentence encoder on a billion pairs of texts with mean pooling, so that its "pre-trained" is not BERT's.
#
# *Source: Pande et al. 2021, question 3 (claims C9a to C9c).*

# %% tags=["parameters"]
# tau, window and relations are shared with 02 to 04, 08, 10 and 98: to change them in all, write the section `common` of a
# profile (README).
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first is compared here
margin: float = 0.5  # score units, a sixth of the usual tau: a smaller change counts as none
alpha: float = 0.05
permutations: int = 9999  # sign flips of a test
resamples: int = 999
seed: int = 0
window: int = 2
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]
direction: str = "dependent_to_head"
arithmetic: str = "corrected"
weighted_block: bool = True

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import AsinhNorm

from analysis.figures import finding, head_grids, role_layer_maps, style, theme
from analysis.figures.colours import BLUE, BROWN, VERMILION, colour
from analysis.figures.words import in_words, signed
from analysis.statistics import COARSE, Rule, comparison, compose, mass_table, significance, transitions
from analysis.statistics.layers import LAST_THIRD, layers_within
from analysis.statistics.p_values import p_equals
from analysis.study import STATES, Results

style()
results = Results(profile)
choices = (window, relations, direction, arithmetic, weighted_block)
rule = Rule(alpha=alpha, resamples=resamples, seed=seed)
table = results.role_tables(tasks)
before, after = (table[table["state"] == state].drop(columns="state") for state in STATES)
banks = {t: [results.load_scores(t, run) for run in (None, seeds[0])] for t in tasks}
scores = {t: [compose(bank, *choices) for bank in banks[t]] for t in tasks}
labels = {t: [state[state["task"] == t] for state in (before, after)] for t in tasks}

# %% [markdown]
# ## The change and its test
#
# Every sequence is measured in both states. The change of a head is the mean of its paired differences; its test flips their
# signs at random, which is exact if fine-tuning changes nothing. Here it is for one head; `compare` does the same for all, with
# intervals, corrections and the test of equivalence.

# %%
pretrained, finetuned = (state.sel(role="local", layer=0, head=0) for state in scores[tasks[0]])
paired = (finetuned - pretrained).dropna("sequence").values
signs = np.random.default_rng(seed).choice([-1, 1], (permutations, len(paired)))
flipped = np.abs((signs * paired).mean(axis=1))
p = (1 + (flipped >= abs(paired.mean())).sum()) / (1 + permutations)
print(
    f"local, head 0-0 on {tasks[0]}: change {paired.mean():+.3f}, {p_equals(p)} ({permutations} flips, {len(paired)} sequences)"
)

# %%
parts = {t: comparison.compare(*scores[t], *labels[t], rule, margin, permutations) for t in tasks}
changes = pd.concat([part.assign(task=t) for t, part in parts.items()], ignore_index=True)
for t, part in parts.items():
    results.save_table(part, f"change-{t}")

# %% [markdown]
# ## F8a. Change of the mean score
#
# Fine-tuned minus pre-trained, head by head and task by task, in standard deviations of the paired differences, which makes
# roles of different spread comparable. The colour is linear up to half a standard deviation and logarithmic beyond.

# %%
sizes = {
    t: (finetuned - pretrained).mean("sequence") / (finetuned - pretrained).std("sequence").clip(1e-4)
    for t, (pretrained, finetuned) in scores.items()
}
grids = {
    f"{role}, {t}": sizes[t].sel(role=role).values
    for role in theme.in_order(changes["role"])
    if role in (*COARSE, "match")
    for t in tasks
}
most = max(np.nanmax(np.abs(size.values)) for size in sizes.values())
label = "standardised change of the mean score\n(fine-tuned minus pre-trained, sd)"
look = {"cmap": "vlag", "norm": AsinhNorm(0.5, -most, most)}
results.save_figure(head_grids(grids, label, columns=len(tasks), **look), "F8-change")

# %%
by_layer = (
    changes.assign(size=changes["difference"].abs()).groupby(["task", "layer"])["size"].mean().unstack()
)
tops = by_layer.idxmax(axis=1)
top = tops.value_counts().index[0]
there, elsewhere = by_layer[top].mean(), by_layer.drop(columns=top).mean(axis=None)
finding(
    f"Layer {top} changes most in {in_words((tops == top).sum())} of {in_words(len(tops))} tasks (mean change "
    f"{there:.2g} against {elsewhere:.2g} in the other layers)."
)

# %%
by_layer.loc[tasks].style.format(precision=2).set_caption(
    "mean absolute change of the score over heads and roles"
)

# %% [markdown]
# Kovaleva et al. find that the last layers change most (`07_kovaleva_patterns`, K4). Both can be right: they take the cosine of
# whole maps, which sees every change. A score is a mean over sequences of the attention within one sieve. Changes that
# cancel between sequences, or that move attention among tokens outside of all sieves, do not show in it.
#
# ## F8b. Roles gained and lost
#
# The figure counts published labels. A head close to the threshold can gain or lose a role by chance.

# %%
moves = transitions(before, after)
both = moves.melt(["task", "layer", "role"], ["gained", "lost"], "move", "heads")
results.save_figure(
    role_layer_maps(both, "heads", "heads that gain or lose the role", row="move"), "F8-transitions"
)

# %%
gained, lost = (moves.groupby("role")[side].sum().astype(int) for side in ("gained", "lost"))
finding(
    f"Over all tasks fine-tuning gives {gained.sum()} labels (most of {gained.idxmax()}, {gained.max()}) and takes "
    f"{lost.sum()} (most of {lost.idxmax()}, {lost.max()})."
)

# %% [markdown]
# ## F8c. Which changes are more than chance?
#
# Every sequence is measured in both states, so each head is tested on its paired differences. With the corrected label,
# a head has *gained* or *lost* a role when the label changes and the difference, tested by flipping signs and
# corrected after Benjamini and Yekutieli over the heads of the role, agrees; it has *kept* the role with the label in
# both states. A head with neither label is *equivalent* when two one-sided t tests place its change within the margin.
# All others are *undecided*.

# %%
classes = changes["change"].fillna("untestable")
counts = pd.crosstab(changes["role"], classes).reindex(
    columns=[*comparison.CHANGES, "untestable"], fill_value=0
)
counts.loc[changes["role"].unique()].rename_axis(columns="heads of all tasks")

# %%
role = classes.isin(["gained", "lost"]).groupby(changes["role"], sort=False).sum().idxmax()
looks = {
    "gained": ("^", BLUE, BLUE), "lost": ("v", VERMILION, VERMILION), "kept": ("s", "black", "black"),
    "equivalent": ("o", "0.55", "white"), "undecided": ("D", BROWN, "white"), "untestable": ("x", "0.7", "0.7"),
}  # fmt: skip
layers, heads = theme.grid_size(changes)
figure, grid = theme.panels(
    len(tasks), 1, 1.3, theme.HEADS_BY_LAYER, f"change of the mean score for {role}, 95 %"
)
for axes, task in zip(grid, tasks, strict=True):
    rows = changes[(changes["task"] == task) & (changes["role"] == role)]
    for name, chosen in rows.groupby(rows["change"].fillna("untestable")):
        mark, shade, inside = looks[name]
        ends = [chosen["difference"] - chosen["low"], chosen["high"] - chosen["difference"]]
        places = chosen["layer"] * heads + chosen["head"]
        look = {"fmt": mark, "color": shade, "markerfacecolor": inside, "markersize": 3, "elinewidth": 0.9}
        axes.errorbar(places, chosen["difference"], ends, **look)
    axes.axhspan(-margin, margin, zorder=-1, color="0.92", linewidth=0)
    axes.set_yscale("symlog", linthresh=margin, base=4)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(task)
    theme.heads_by_layer(axes, layers, heads)
marks = [
    plt.Line2D([], [], marker=m, color=c, markerfacecolor=f, linestyle="", label=n)
    for n, (m, c, f) in looks.items()
]
figure.legend(handles=marks, ncols=6, loc="outside lower center", title="grey band: within the margin")
results.save_figure(figure, "F8-intervals")

# %%
number = changes["change"].value_counts().reindex(comparison.CHANGES, fill_value=0)
finding(
    f"Of {number.sum():,} tested heads and roles {number['gained']} gain the role beyond chance and {number['lost']} lose "
    f"it; {number['equivalent']:,} change by less than {margin:g}, and {number['undecided']:,} remain undecided."
)

# %%
tested = changes.dropna(subset="p")
small, significant = tested["p_equivalence"] < alpha, tested["p_by"] < alpha
heads, least = len(tested[["layer", "head"]].drop_duplicates()), 2 / (1 + permutations)
needed = np.ceil(least * heads * sum(1 / rank for rank in range(1, heads + 1)) / alpha)
print(
    f"{len(tested)} heads and roles tested: {significant.sum()} change (p_by < {alpha:g}), {small.sum()} by less "
    f"than {margin:g} (p_equivalence < {alpha:g}), {(significant & small).sum()} do both"
)
print(
    f"{permutations} flips give no p below {least:.4f}; BY over {heads} heads then finds changes only where "
    f"at least {needed:.0f} of the heads come that low"
)

# %% [markdown]
# The figure shows the role with most gains and losses. Bars are BCa bootstrap intervals at level $1 - \alpha$ of each
# head by itself. A head off the zero line but inside the grey band has changed measurably, though by little.
#
# ## F8d. Where the attention goes
#
# The mean share of a token's attention that goes to [SEP], to [CLS] and to all other tokens. This is attention mass,
# not a ratio to uniform attention, so sequences of different length can be compared.

# %%
masses = pd.concat(
    [
        mass_table(bank).assign(task=t, state=s)
        for t in tasks
        for s, bank in zip(STATES, banks[t], strict=True)
    ],
    ignore_index=True,
)
results.save_table(masses[["task", "state", "layer", "head", "sep", "cls", "other"]], "masses")
means = masses.groupby(["task", "layer", "state"])[["sep", "cls", "other"]].mean()
figure, grid = theme.panels(len(tasks), 4, 1.7, theme.LAYER, "proportion of attention")
for axes, task in zip(grid, tasks, strict=True):
    for state, dash, inside in (("pretrained", "--", "white"), ("finetuned", "-", None)):
        for target, mark, shade in (
            ("sep", "d", colour("sep")),
            ("cls", "^", colour("cls")),
            ("other", "o", "0.2"),
        ):
            line = means.loc[task].xs(state, level="state")[target]
            look = {"marker": mark, "color": shade, "markersize": 3.5, "markerfacecolor": inside or shade}
            axes.plot(line.index, line, dash, linewidth=1, label=f"{target}, {state}", **look)
    axes.set(title=task, ylim=(0, 1))
figure.legend(*grid[0].get_legend_handles_labels(), ncols=6, loc="outside lower center")
results.save_figure(figure, "F8-attention-mass")

# %%
before = 100 * masses[masses["state"] == "pretrained"].groupby("layer")[["cls", "sep"]].mean()
finding(
    f"Before fine-tuning a layer gives [CLS] up to {before['cls'].max():.0f} % of its attention and [SEP] up to "
    f"{before['sep'].max():.0f} %. In the middle layers of BERT-base [SEP] gets more than half (Clark et al. 2019)."
)

# %% [markdown]
# An encoder that parks attention on [CLS] has other delimiter heads, and claims about [SEP] have little to say about it.

# %%
late = masses[masses["layer"].isin(layers_within(masses["layer"].nunique(), LAST_THIRD))]
means = 100 * late.groupby(["state", "task"])[["sep", "cls", "other"]].mean()
moved = means.loc["finetuned"] - means.loc["pretrained"]
finding(
    f"In layers {late['layer'].min()} to {late['layer'].max()} (the last third, as in claim C9b) fine-tuning "
    f"changes the attention to [SEP] by {signed(moved['sep'].min())} to {signed(moved['sep'].max())} percentage points "
    f"over tasks, to other tokens by {signed(moved['other'].min())} to {signed(moved['other'].max())}."
)

# %% [markdown]
# ## In all tasks
#
# "The head has the role in all tasks" needs evidence in every one of them: its p-value is the largest of the tasks'
# head tests (partial conjunction, Dror et al. 2017). A role that one of the tasks cannot test has none.

# %%
keys = ["role", "layer", "head"]
by_task = after.pivot(index=keys, columns="task", values=["p", "assigned"])
joint = pd.DataFrame({"p": by_task["p"].to_numpy(float).max(axis=1)}, by_task.index)
joint["p_by"] = joint["p"].groupby("role").transform(significance.adjust, "fdr_by")
given = by_task["assigned"].fillna(False).astype(bool)
counted = {
    "label in some task": given.any(axis=1),
    "label in every task": given.all(axis=1),
    "largest p below alpha": joint["p"] < alpha,
    "its p_by below alpha": joint["p_by"] < alpha,
}
shared = pd.DataFrame(counted).groupby("role").sum().loc[after["role"].unique()]
shared.assign(testable=joint["p"].notna().groupby("role").any())

# %%
print(
    f"{shared['label in some task'].sum()} heads and roles have the label in some task, "
    f"{shared['its p_by below alpha'].sum()} in all {len(tasks)} by the corrected partial conjunction"
)

# %% [markdown]
# *How far to trust it.* The intervals and tests say what other sequences would show, not what another fine-tuning run
# would: that spread is measured in the next notebook, `04_compare_seeds`. The layer averages are steadier than single
# heads. "Equivalent" depends on the margin, and its p-values are not corrected for their number.
