# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 4. Compare: what does fine-tuning change?
#
# Pande et al. (2021) find that fine-tuning changes the later layers most, and that attention to `[SEP]` falls there. We send the same
# sequences through the encoder before and after fine-tuning. Which layers change, which roles are gained and lost, where does the
# attention go, and would another fine-tuning run give the same heads? [04_claims](04_claims.ipynb) judges the paper's claims.
#
# Layers and heads count from 0, as in the authors' code.
#
# The encoder before fine-tuning need not be a masked language model: those of glue-minilm, glue-mpnet and offline were tuned as
# sentence encoders on a billion pairs of texts, so that their "pre-trained" is not BERT's.
#
# *Source: Pande et al. 2021, question 3.*

# %% tags=["parameters"]
# tau, window and relations are shared with 02 to 04, 08, 10 and 98: to change them in all, write the section `common` of a
# profile (README).
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]  # tasks whose encoders are compared
tau: float = 3.0  # a head has a role if its mean score is above tau
margin: float = 0.5  # score units, a sixth of the usual tau: a smaller change counts as none
permutations: int = 9999  # sign flips of a test

# seldom changed
# fine-tuning runs: the first is compared with the encoder before, all with one another
seeds: list[int] = [0, 1]
alpha: float = 0.05
minimum: int = 100  # sequences with the role that a corrected label needs
resamples: int = 999  # of the bootstrap of labels
seed: int = 0
window: int = 2
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]
direction: str = "dependent_to_head"
arithmetic: str = "corrected"
weighted_block: bool = True
# compare mean scores with the authors' maps, head by head (needs an encoder of 12 layers x 12 heads)
compare_published: bool = False

# %%
import numpy as np
import pandas as pd
from matplotlib.colors import AsinhNorm

from analysis.figures import theme
from analysis.figures.grids import head_grids, role_layer_maps
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.files import ROOT
from analysis.papers.pande2021 import published
from analysis.papers.pande2021.drawing import mass_lines, run_counts
from analysis.roles import PUBLISHED_ROLES, families
from analysis.statistics import comparison
from analysis.statistics.controls import controlled_table
from analysis.statistics.roles import (
    COARSE,
    LABELS,
    compose,
    compose_controls,
    label_agreement,
    mass_table,
    transitions,
)
from analysis.statistics.significance import Rule
from analysis.study.results import STATES, Results
from analysis.tables import p_equals

style()
results = Results(profile)
choices = (window, relations, direction, arithmetic, weighted_block)
rule = Rule(tau, alpha, minimum, resamples, seed)
banks = {run: {task: results.load_scores(task, run) for task in tasks} for run in (None, *seeds)}
scores = {run: {task: compose(banks[run][task], *choices) for task in tasks} for run in banks}
controls = {
    run: {
        task: compose_controls(bank, results.load_controls(task, run), *choices)
        for task, bank in banks[run].items()
    }
    for run in banks
}
role_tables = results.role_tables(tasks)
before, after = (role_tables[role_tables["state"] == state].drop(columns="state") for state in STATES)

# %% [markdown]
# ## The change of one head
#
# Every sequence is measured in both states. The change of a head is the mean of its paired differences; its test flips their
# signs at random, which is exact if fine-tuning changes nothing. Here it is for one head; `compare` does the same for all, with
# intervals, corrections, and a test of equivalence.

# %%
pretrained, finetuned = (scores[run][tasks[0]].sel(role="local", layer=0, head=0) for run in (None, seeds[0]))
differences = (finetuned - pretrained).dropna("sequence").values
signs = np.random.default_rng(seed).choice([-1, 1], (permutations, len(differences)))
flipped = np.abs((signs * differences).mean(axis=1))
p = (1 + (flipped >= abs(differences.mean())).sum()) / (1 + permutations)
print(
    f"local, head 0-0 on {tasks[0]}: change {differences.mean():+.3f}, {p_equals(p)}, {len(differences)} sequences"
)

# %%
parts = []
for task in tasks:
    labels = [state[state["task"] == task] for state in (before, after)]
    part = comparison.compare(scores[None][task], scores[seeds[0]][task], *labels, rule, margin, permutations)
    results.save_table(part, f"change-{task}")
    parts.append(part.assign(task=task))
changes = pd.concat(parts, ignore_index=True)

# %% [markdown]
# ## Which layers change? (F8)
#
# Fine-tuned minus pre-trained mean score, head by head, in standard deviations of the paired differences, which makes roles of
# different spread comparable. A dot marks a change that is more than chance: its sign-flip test, corrected over the heads of the
# role, has p below `alpha`. The roles of `[CLS]` and `[SEP]` are left out here: the section on attention below has them.

# %%
grids, certain, standardised = {}, {}, {}
for role in [role for role in PUBLISHED_ROLES if role not in families()["delimiter"]]:
    for task in tasks:
        paired = (scores[seeds[0]][task] - scores[None][task]).sel(role=role)
        standardised[role, task] = (paired.mean("sequence") / paired.std("sequence").clip(1e-4)).values
        if role in COARSE:
            rows = changes[(changes["role"] == role) & (changes["task"] == task)]
            grids[f"{role}, {task}"] = standardised[role, task]
            certain[f"{role}, {task}"] = theme.layer_head(rows, role, "p_by") < alpha
most = np.ceil(10 * max((np.nanmax(np.abs(grid), initial=0.1) for grid in grids.values()), default=0.1)) / 10
label = (
    "standardised change of the mean score, in sd\n(blue: lower after fine-tuning; red: higher; dot: p < α)"
)
scale = {"cmap": "vlag", "norm": AsinhNorm(0.5, -most, most), "ticks": [-most, -1, 0, 1, most]}
results.save_figure(
    head_grids(grids, label, certain, columns=len(tasks), **scale),
    "F8-change",
    "Change of the mean score of each head by fine-tuning, in standard deviations, by role and task; dots "
    "mark changes that are more than chance. The layers with the darkest cells changed most.",
)

# %%
sizes = {task: [np.abs(grid) for (_, other), grid in standardised.items() if other == task] for task in tasks}
size = pd.DataFrame({task: np.nanmean(grids, axis=(0, 2)) for task, grids in sizes.items()})
layer = size.idxmax().mode().iloc[0]
finding(
    f"Over local, block and the syntactic roles, layer {layer} changes most in {(size.idxmax() == layer).sum()} of {len(tasks)} tasks "
    f"(mean absolute change {size.loc[layer].mean():.2g} sd; other layers {size.drop(layer).mean(axis=None):.2g})."
)

# %% [markdown]
# Kovaleva et al. find that the last layers change most (`07_kovaleva_patterns`, K4). Another layer here contradicts nothing: they take the
# cosine of whole maps, which sees every change. A score is a mean over sequences of the attention within one sieve. Changes that cancel
# between sequences, or that move attention among tokens outside of all sieves, do not show in it.
#
# ## Which roles are gained and lost?
#
# The figure counts published labels, layer by layer. A head close to the threshold can gain or lose a role by chance.

# %%
moves = transitions(before, after)
both = moves.melt(["task", "layer", "role"], ["gained", "lost"], "move", "heads")
figure = role_layer_maps(both, "heads", "heads that gain or lose the role", row="move")
results.save_figure(
    figure,
    "F8-transitions",
    "Heads that gain or lose each role by fine-tuning, by layer. Gains in one layer for several roles at "
    "once point to attention that left the special tokens.",
)

# %%
by_layer = moves.groupby("layer")[["gained", "lost"]].sum()
finding(
    f"Fine-tuning gives {by_layer['gained'].sum()} labels and takes {by_layer['lost'].sum()}, over all tasks. No layer gains more than "
    f"layer {by_layer['gained'].idxmax()} ({by_layer['gained'].max()})."
)

# %% [markdown]
# Which of these are more than chance? A head has *gained* or *lost* a role when its corrected label changes and the difference
# (sign flips, corrected after Benjamini and Yekutieli over the heads of the role) agrees; it has *kept* the role with the label in both
# states. A head with neither label is *equivalent* when two one-sided t tests place its change within `margin`. All others are
# *inconclusive*.

# %%
classes = changes["change"].fillna("not applicable")
counts = pd.crosstab(changes["role"], classes).reindex(
    columns=[*comparison.CHANGES, "not applicable"], fill_value=0
)
counts.loc[changes["role"].unique()].rename_axis(columns="heads of all tasks")

# %% [markdown]
# **Try it.** Set `margin = 1`.
#
# <details><summary>What happens</summary>
#
# More heads are equivalent and fewer inconclusive. Gained, lost and kept stay, since they do not use the margin.
#
# </details>
#
# ## Where does the attention go?
#
# The mean share of a token's attention that goes to `[SEP]`, to `[CLS]` and to all other tokens. Unlike a score, it can be compared between
# sequences of different length. Thick pale lines are the layers of BERT-base on QQP, by relative depth (Kovaleva et al. 2019, figure 6).
# They follow the most attended piece, where ours add both `[SEP]` of a pair: compare the course, not the height. Attention that leaves
# these tokens goes to words, where it can raise the score of a role.

# %%
states = zip(STATES, (None, seeds[0]), strict=True)
parts = [
    mass_table(banks[run][task]).assign(task=task, state=state) for state, run in states for task in tasks
]
masses = pd.concat(parts, ignore_index=True)
bert_base = pd.read_csv(ROOT / "analysis" / "papers" / "kovaleva2019" / "published_layers.csv")
results.save_table(masses[["task", "state", "layer", "head", "sep", "cls", "other"]], "masses")
results.save_figure(
    mass_lines(masses, tasks, bert_base),
    "F8-attention-mass",
    "Attention to [SEP], [CLS] and other tokens by layer, before and after fine-tuning. Where attention "
    "leaves the special tokens it goes to words, which can raise the scores of several roles at once.",
)

# %%
words = 100 * masses.pivot_table(index="layer", columns="state", values="other")
rise = words["finetuned"] - words["pretrained"]
layer = by_layer["gained"].idxmax()
finding(
    f"The attention to words and punctuation changes most in layer {rise.abs().idxmax()}, by {rise[rise.abs().idxmax()]:+z.0f} points. In layer {layer}, "
    f"where heads gain the most labels ({by_layer['gained'].max()}), it changes by {rise[layer]:+z.0f} points."
)

# %% [markdown]
# In the committed run of glue-minilm, layer 3 gains more than half of all new labels (46 of 82). Attention leaves `[CLS]`, on which
# its heads rest, and what goes to words can raise the scores of local, syntactic and block at once, without a head that has learnt a
# new function. This is not all: layers 4 and 5 turn about as much attention to words (10 and 8 points), but gain 11 labels and 1.

# %% [markdown]
# ## Would another fine-tuning run give the same heads? (F13)
#
# A fine-tuned encoder is one draw: its new layer starts at random and the examples come in random order. One mark per run: the number
# of heads with the published label, and with the corrected one; the line is the encoder before fine-tuning.

# %%
parts = []
for run in (None, *seeds):
    for task in tasks:
        table = controlled_table(scores[run][task], controls[run][task], rule)
        parts.append(table.assign(task=task, seed=run))
run_labels = pd.concat(parts, ignore_index=True)
rules = ["assigned", "assigned_corrected", "assigned_controlled"]
for task in tasks:
    task_labels = run_labels[run_labels["task"] == task]
    results.save_part(task_labels[["task", "seed", "role", "layer", "head", *rules]], "labels", task)

# %%
counts = run_labels.groupby(["task", "seed", "role"], sort=False, dropna=False)[rules].sum(min_count=1)
counts = counts.rename(columns=LABELS).reset_index()
results.save_table(counts, "seeds")
results.save_figure(
    run_counts(counts, tasks),
    "F13-seeds",
    "Heads with each role in every fine-tuning run, and before fine-tuning (line). Where the marks of the "
    "runs coincide, one run speaks for the others.",
)

# %%
agreement = label_agreement(run_labels)
results.save_table(agreement, "seeds_agreement")
both = agreement.dropna(subset=["between_runs", "with_pretrained"])
finding(
    f"Two fine-tuning runs share {both['between_runs'].mean():.0%} of the heads that either labels (mean Jaccard index), a run and the "
    f"encoder before fine-tuning {both['with_pretrained'].mean():.0%}."
    if len(both)
    else "There are no two runs with labelled heads to compare. A run and the encoder before fine-tuning share "
    f"{agreement['with_pretrained'].mean():.0%} of the heads that either labels."
)

# %% [markdown]
# **Try it.** Set `tau = 2`.
#
# <details><summary>What happens</summary>
#
# In profile offline, runs share a larger part of the labels of *local* (table `seeds_agreement`): twice as many heads have the label, and
# fewer have it in some of the runs only. Gains and losses do not change: they use the labels that 03_test_all saved.
#
# </details>
#
# **How far to trust it.** The intervals and tests say what other sequences would show. The runs share the training examples and the
# pre-trained encoder: another pre-training could move every head. "Equivalent" depends on the margin, and its p-values are not
# corrected for their number.

# %% [markdown]
# ## Heads worth knowing
#
# The head of each role that exceeds its control most, whatever the threshold: mean score minus the control's mean, over the
# tasks; the last columns count the tasks in which the head has the label of each rule. The saved table has the first three.

# %%
tested = after[after["assigned"].notna()].rename(columns=LABELS)
columns = {"tasks": ("mean", "size"), "mean": ("mean", "mean"), "control_mean": ("control_mean", "mean")}
columns |= {label: (label, "sum") for label in LABELS.values()}
heads = tested.groupby(["role", "layer", "head"], sort=False).agg(**columns).reset_index()
heads.insert(6, "beyond", heads["mean"] - heads["control_mean"])
heads.insert(1, "rank", heads.groupby("role")["beyond"].rank(ascending=False, method="first").astype(int))
order = theme.in_order(heads["role"])
ranking = heads[heads["rank"] <= 3].sort_values(
    ["role", "rank"], key=lambda c: c.map(order.index) if c.name == "role" else c
)
results.save_table(ranking, "ranking")
first = ranking[ranking["rank"] == 1].drop(columns=["rank", "tasks", "corrected"])
first.style.format(precision=2).hide()

# %% [markdown]
# The scores of BERT-base itself are compared with the authors' maps head by head; for another encoder nothing stands below, since its
# heads have no counterparts. Another fine-tuning seed moves the upper layers; layers 0 to 5 should agree closely.

# %%
if compare_published:
    states = [role_tables[role_tables["state"] == state] for state in STATES]
    compared = [published.compare_maps(table, published.scores()) for table in states]
    maps = pd.concat([part.assign(state=state) for state, part in zip(STATES, compared, strict=True)])
    results.save_table(maps, "published")
    display(maps)  # noqa: F821
