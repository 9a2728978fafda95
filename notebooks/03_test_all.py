# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 3, continued. Roles over layers and tasks
#
# **Question.** Where in the encoder do heads with a role sit, and where do multi-functional heads sit? Does that hold
# for every task? And what is left of the labels after an audit?
#
# *Source: Pande et al. 2021, question 2 (claims C4 to C8).*

# %% tags=["parameters"]
profile = "offline"
tasks = ["mrpc", "qqp", "sst-2", "qnli"]
alpha = 0.05  # level of the tests

# %%
import pandas as pd

from analysis.figures import LABELS, differing_labels, finding, label_differences, role_map, style
from analysis.papers.pande2021 import layer_profile, published
from analysis.statistics import corrections, label_comparison, layer_counts
from analysis.study import Results

style()
results = Results(profile)
table = results.role_tables(tasks)
finetuned = table[table["state"] == "finetuned"]

# %% [markdown]
# ## F6. The role map
#
# Every head of the fine-tuned encoders with all its roles. Layer 0, next to the word embeddings, is at the bottom.

# %%
results.save_figure(role_map({t: finetuned[finetuned["task"] == t] for t in tasks}), "F6-role-map")

# %% [markdown]
# The same of the encoder before fine-tuning, and of the authors' BERT-base, fine-tuned, from the maps that they released
# (20 sequences of each task). There a block mark may hide under another one.

# %%
pretrained = table[table["state"] == "pretrained"]
results.save_figure(
    role_map({t: pretrained[pretrained["task"] == t] for t in tasks}), "F6-role-map-pretrained"
)

# %%
released = published.roles()
theirs = [t for t in tasks if t in set(released["task"])]
results.save_figure(role_map({t: released[released["task"] == t] for t in theirs}), "F6-role-map-bert-base")

# %%
held = (
    finetuned.groupby(["role", "task"], sort=False)["assigned"].sum(min_count=1).unstack().astype("Float64")
)
means = held.dropna(how="all").mean(axis=1).sort_values()
finding(
    f"Most heads have the role {means.index[-1]} ({means.iloc[-1]:.0f} on average over tasks), then {means.index[-2]} "
    f"({means.iloc[-2]:.0f}). The rarest role of those that can be tested is {means.index[0]} ({means.iloc[0]:.1f})."
)

# %%
heads = finetuned.groupby(["role", "task"], sort=False)["assigned"].sum(min_count=1).unstack()
heads[tasks].rename_axis(
    columns=f"heads with the role, of {finetuned[['layer', 'head']].drop_duplicates().shape[0]}"
)

# %% [markdown]
# ## F7. Roles per layer
#
# The number of heads with each role in each layer. *Multi-functional* heads have at least two of the roles local,
# syntactic (any relation), delimiter (also [CLS] or [SEP] alone) and block.

# %%
counts = layer_counts(table)
results.save_table(counts, "layers")
results.save_figure(layer_profile(counts), "F7-layers")

# %% [markdown]
# The same counts of the authors' BERT-base, from the released maps.

# %%
results.save_figure(
    layer_profile(layer_counts(released[released["task"].isin(theirs)])), "F7-layers-bert-base"
)

# %%
multi = counts[(counts["role"] == "multi-functional") & (counts["state"] == "finetuned")]
heads = multi.pivot(index="task", columns="layer", values="heads").astype(float)
finding(
    f"Multi-functional heads are most frequent in layer {heads.mean().idxmax()} ({heads.mean().max():.1f} on average over "
    f"tasks, {heads.mean(axis=None):.1f} in a layer); the last layer has {heads.iloc[:, -1].mean():.1f}."
)

# %%
share = multi.set_index(["task", "layer"])["heads"].unstack().div(finetuned["head"].nunique())
share.loc[tasks].style.format("{:.0%}").set_caption(
    "proportion of each layer's heads that are multi-functional"
)

# %% [markdown]
# The summary judges the claims about layers from these counts.
#
# ## F10. Where the labels differ
#
# The audited rule corrects for the number of tests, asks a bootstrap whether skewed scores explain the result, and wants
# enough sequences. The figure shows only the heads whose labels differ, named layer-head; more than three are counted.

# %%
results.save_figure(label_differences(differing_labels(finetuned)), "F10-labels")

# %%
given = finetuned[[*LABELS]].fillna(False).astype(bool)
left = given[given["assigned"]].sum()
finding(
    f"Labels by rule, of those published: {', '.join(f'{LABELS[rule]} {left[rule]:,}' for rule in LABELS)}."
)

# %%
adjusted = corrections(table)
results.save_table(adjusted, "corrections")
tests = table.merge(adjusted, on=["task", "state", "role", "layer", "head"])
levels = ["p", "p_holm", "p_bh", "p_by", "p_holm_all", "p_bh_all", "p_by_all"]
counts = tests[levels].lt(alpha).groupby([tests["state"], tests["role"]], sort=False).sum()
counts["assigned_audited"] = tests.groupby(["state", "role"], sort=False)["assigned_audited"].sum(min_count=0)
counts.rename_axis(columns=f"heads of all tasks with p below {alpha:g}, or the audited label")

# %% [markdown]
# `p_holm`, `p_bh` and `p_by` are corrected over the heads of one task, state and role; those ending in `_all` over all
# tests of the table.

# %%
kinds = pd.crosstab(finetuned["task"], label_comparison(finetuned)).loc[tasks]
kinds.rename_axis(columns="labels of heads and roles")

# %% [markdown]
# ## Three rules beside their controls
#
# Heads of all tasks by the published, the audited and the controlled label, and how many of the *controls* the published
# rule would label: what a control gets too says nothing about the head.

# %%
rules = ["assigned", "assigned_audited", "assigned_controlled", "control_assigned"]
tests.groupby(["state", "role"], sort=False)[rules].sum(min_count=0).rename_axis(columns="heads of all tasks")

# %% [markdown]
# ## Corrected and released arithmetic, all tasks

# %%
arithmetic = results.join_parts("arithmetic", tasks)
results.save_table(arithmetic.rename(columns={"heads": "labels"}), "arithmetic")
finding(
    f"The released arithmetic gives another label in {arithmetic['heads'].sum()} of {finetuned['assigned'].count():,} "
    "cases."
)
