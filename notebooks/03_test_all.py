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
# for every task? And which labels remain when the tests are corrected?
#
# *Source: Pande et al. 2021, question 2 (claims C4 to C8).*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]
alpha: float = 0.05  # level of the tests

# %%
import pandas as pd
import seaborn as sns

from analysis.figures import finding, role_layer_maps, role_map, style, theme
from analysis.papers.pande2021 import published
from analysis.statistics import corrections, label_comparison, layer_counts, roles
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
results.save_figure(role_layer_maps(counts, "heads", "heads with the role", row="state"), "F7-layers")

# %% [markdown]
# The same counts of the authors' BERT-base, from the released maps.

# %%
theirs = layer_counts(released[released["task"].isin(theirs)])
results.save_figure(
    role_layer_maps(theirs, "heads", "heads with the role", row="state"), "F7-layers-bert-base"
)

# %%
coarse = roles.coarse_memberships(finetuned)
several = coarse.sum(axis=1) >= 2  # multi-functional: change the number or the roles here
heads = several.groupby(["task", "layer"]).sum().unstack().astype(float)
finding(
    f"Multi-functional heads are most frequent in layer {heads.mean().idxmax()} ({heads.mean().max():.1f} on average over "
    f"tasks, {heads.mean(axis=None):.1f} in a layer); the last layer has {heads.iloc[:, -1].mean():.1f}."
)

# %% [markdown]
# A head has several roles by itself: an overlap can be no more than chance allows if the roles are frequent. Beside the overlap
# of each two roles stands the one that independent roles would have.

# %%
pairs = [(first, second) for place, first in enumerate(coarse) for second in [*coarse][place + 1 :]]
overlaps = pd.DataFrame(
    {
        "heads with both": {f"{a} and {b}": (coarse[a] & coarse[b]).sum() for a, b in pairs},
        "expected by chance": {
            f"{a} and {b}": coarse[a].mean() * coarse[b].mean() * len(coarse) for a, b in pairs
        },
    }
)
overlaps.style.format(precision=0).set_caption(f"of {len(coarse)} heads, all tasks")

# %%
share = heads / finetuned["head"].nunique()
share.loc[tasks].style.format("{:.0%}").set_caption(
    "proportion of each layer's heads that are multi-functional"
)

# %% [markdown]
# The summary judges the claims about layers from these counts.
#
# ## F10. Where the labels differ
#
# The corrected rule corrects for the number of tests, asks a bootstrap whether skewed scores explain the result, and wants
# enough sequences. The controlled rule asks the same of the difference to the role's control. Where a line falls at the
# end, a control that cannot know the role comes as close.

# %%
counts = finetuned.groupby(["task", "role"], sort=False)[[*roles.LABELS]].sum(min_count=1)
long = (
    counts.rename(columns=roles.LABELS)
    .rename_axis(columns="rule")
    .stack()
    .astype(float)
    .rename("heads")
    .reset_index()
)
drawn = sns.relplot(
    long, x="rule", y="heads", hue="task", style="task", kind="line", markers=True, dashes=False, col="role", col_wrap=4,
    col_order=theme.in_order(long["role"]), height=1.6, aspect=theme.DOUBLE / 4 / 1.6, facet_kws={"sharey": False},
    clip_on=False,
)  # fmt: skip
drawn.set(ylim=(0, None)).set_titles("{col_name}").set_axis_labels("", "heads").tick_params(
    axis="x", rotation=90
)
sns.move_legend(drawn, "lower center", ncol=len(tasks), title="", bbox_to_anchor=(0.5, 1))
results.save_figure(drawn.figure, "F10-labels")

# %% [markdown]
# The heads whose labels differ, named layer-head, where they are few:

# %%
known = finetuned[[*roles.LABELS]].astype(object).where(finetuned[[*roles.LABELS]].notna(), "–")
differ = (
    known.rename(columns=roles.LABELS)
    .replace({True: "yes", False: "no"})
    .assign(
        role=finetuned["role"],
        task=finetuned["task"],
        head=finetuned["layer"].astype(str) + "-" + finetuned["head"].astype(str),
    )[known.nunique(axis=1) > 1]
)
cells = differ.groupby(["role", *roles.LABELS.values(), "task"], sort=False)["head"]
names = cells.agg(lambda heads: ", ".join(heads) if len(heads) <= 3 else f"{len(heads)} heads")
names.unstack("task", fill_value="")

# %%
given = finetuned[[*roles.LABELS]].fillna(False).astype(bool)
left = given[given["assigned"]].sum()
finding(
    f"Labels by rule, of those published: {', '.join(f'{name} {left[rule]:,}' for rule, name in roles.LABELS.items())}."
)

# %%
adjusted = corrections(table)
results.save_table(adjusted, "corrections")
tests = table.merge(adjusted, on=["task", "state", "role", "layer", "head"])
levels = ["p", "p_holm", "p_bh", "p_by", "p_holm_all", "p_bh_all", "p_by_all"]
counts = tests[levels].lt(alpha).groupby([tests["state"], tests["role"]], sort=False).sum()
counts["assigned_corrected"] = tests.groupby(["state", "role"], sort=False)["assigned_corrected"].sum(
    min_count=0
)
counts.rename_axis(columns=f"heads of all tasks with p below {alpha:g}, or the corrected label")

# %% [markdown]
# `p_holm`, `p_bh` and `p_by` are corrected over the heads of one task, state and role; those ending in `_all` over all
# tests of the table.

# %%
kinds = pd.crosstab(finetuned["task"], label_comparison(finetuned)).loc[tasks]
kinds.rename_axis(columns="labels of heads and roles")

# %% [markdown]
# ## Three rules beside their controls
#
# Heads of all tasks that the published rule labels; of these, heads whose mean score exceeds that of their role's control, and
# by tau - 1; beside them, how many of *all* tested heads exceed it, and the median ratio of head and control. Nearly every head
# exceeds a uniform one, so that roles with that control have a dash.

# %%
counts = {state: roles.role_counts(part, alpha) for state, part in tests.groupby("state", sort=False)}
pd.concat(counts, names=["state"]).style.format(precision=2, na_rep="–")

# %% [markdown]
# ## Corrected and released arithmetic, all tasks

# %%
arithmetic = results.join_parts("arithmetic", tasks)
results.save_table(arithmetic.rename(columns={"heads": "labels"}), "arithmetic")
finding(
    f"The released arithmetic gives another label in {arithmetic['heads'].sum()} of {finetuned['assigned'].count():,} "
    "cases."
)
