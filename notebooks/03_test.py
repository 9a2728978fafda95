# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 3. Which heads have which roles?
#
# **Question.** A head has a role when its sieve bias scores over sequences reject $H_0$: mean $\le \tau$ in a one-sided
# one-sample t test at level $\alpha$. Which heads have which roles, do roles exclude one another, and which labels
# survive an audit?
#
# *Source: Pande et al. 2021, the heads hypothesis and question 1 (claims C1 to C3).*

# %% tags=["parameters"]
profile = "offline"
task = "mrpc"
tau = 3.0  # the score above which a head has a role
alpha = 0.05  # level of each test; as published, not corrected for the number of tests
minimum = 20  # sequences with the role that an audited label needs
enough = 1000  # sequences at which its false labels are rare for any simulated shape (03_test_calibration)
resamples = 999  # of the bootstrap
seed = 0  # of the bootstrap
seeds = [0, 1]  # of the fine-tuning runs: the first is tested here, all in 04_compare_seeds
window = 2
relations = ["nsubj", "dobj", "amod", "advmod"]
direction = "dependent_to_head"
arithmetic = "corrected"
weighted_block = True

# %%
import pandas as pd
from IPython.display import Markdown

from analysis.figures import assignment, finding, forest, style
from analysis.figures.words import listed
from analysis.papers.pande2021 import overlap_heatmap, overlap_upset, p_values
from analysis.statistics import (
    arithmetic_differences,
    coarse_memberships,
    compose,
    controlled_table,
    label_comparison,
    overlap,
    published_table,
)
from analysis.study import STATES, Results

style()
results = Results(profile)
runs = dict(zip(STATES, (None, seeds[0]), strict=True))
choices = (window, relations, direction, arithmetic, weighted_block)
bank = {state: results.load_scores(task, run) for state, run in runs.items()}
scores = {state: compose(bank[state], *choices) for state in STATES}
control = {state: compose(results.load_controls(task, run), *choices) for state, run in runs.items()}
audit = (tau, alpha, minimum, resamples, seed)
tables = {state: controlled_table(scores[state], control[state], *audit) for state in STATES}
for state, table in tables.items():
    results.save_table(table, f"roles-{task}-{state}")

# %% [markdown]
# ## F4. Heads and roles
#
# One column per head of the fine-tuned encoder, one row per role. A role that no sequence of the task can show
# (block in single sentences) is *untestable*, which is not the same as not having it.

# %%
table = tables["finetuned"]
results.save_figure(assignment(table).figure, f"F4-assignment-{task}")

# %%
held = table.groupby("role", sort=False)["assigned"].sum(min_count=1)
finding(
    f"Most heads have the role {held.dropna().astype(int).idxmax()} ({held.max()} of "
    f"{len(table) // table['role'].nunique()}). Roles that no sequence can show: {listed(held.index[held.isna()])}."
)

# %% [markdown]
# The heads with each role before and after fine-tuning, and how many sequences can show the role:

# %%
counts = pd.DataFrame(
    {s: t.groupby("role", sort=False)["assigned"].sum(min_count=1) for s, t in tables.items()}
)
sequences = table.groupby("role", sort=False)["n"].max()
counts.assign(sequences=sequences).rename_axis(f"heads of {len(table) // table['role'].nunique()}")

# %% [markdown]
# ## F5. Do roles exclude one another?
#
# How many heads have exactly each set of the four coarse roles. *Syntactic* is the pooled role or any of the four
# relations; *delimiter* is also [CLS] or [SEP] alone.

# %%
shared = overlap(pd.concat([t.assign(state=s, task=task) for s, t in tables.items()])).drop(columns="task")
results.save_table(shared, f"overlap-{task}")
members = coarse_memberships(table)
results.save_figure(overlap_upset(members), f"F5-sets-{task}")

# %%
several = members.sum(axis=1) >= 2
finding(
    f"{several.sum()} of {len(members)} heads ({several.mean():.0%}) have at least two of the coarse roles."
)

# %% [markdown]
# The overlap of each two roles: of the heads with the role of the row, the share with the role of the column. The
# numbers count heads; the diagonal counts those of the role itself.

# %%
tuned = shared[shared["state"] == "finetuned"]
results.save_figure(overlap_heatmap(tuned).figure, f"F5-overlap-{task}")

# %%
pair = tuned.set_index(["role_a", "role_b"]).loc[("local", "syntactic")]
finding(
    f"{pair['both']} heads are both local and syntactic, of {pair['heads_a']} local and {pair['heads_b']} syntactic heads."
)

# %% [markdown]
# ## F9. How close are the decisions?
#
# Most p-values lie near 0 or 1. The label then says on which side of $\tau$ the mean lies, and the choice of $\tau$
# matters more than the level of the test.

# %%
results.save_figure(p_values(table, alpha), f"F9-p-values-{task}")

# %%
clear = (table["p"].dropna().sub(0.5).abs() > 0.45).mean()
failing = (table["mean"] > tau) & ~table["assigned"].fillna(False).astype(bool)
finding(
    f"{clear:.1%} of {table['p'].count():,} p-values lie within 0.05 of 0 or 1; {failing.sum()} means above τ = {tau:g} "
    "do not pass the test."
)

# %% [markdown]
# ## F10. Which labels survive an audit?
#
# The published label asks whether an uncorrected t test rejects. The *audited* label asks more: the p-value, corrected
# after Benjamini and Yekutieli over all heads of the role, lies below $\alpha$; the lower bound of the bootstrap-t
# interval lies above $\tau$; and enough sequences have the role. The figure shows, for every role, the heads with the
# means nearest to $\tau$ and their intervals.

# %%
results.save_figure(forest(table, tau), f"F10-forest-{task}")

# %%
near = table[(table["low"] <= tau) & (table["high"] >= tau)]
at_risk = (table["assigned_audited"].fillna(False) & (table["skewness"] < -1) & (table["n"] < enough)).sum()
finding(
    f"The intervals of {len(near)} of {table['low'].count():,} heads and roles contain τ = {tau:g}. Of "
    f"{table['assigned_audited'].sum()} audited labels {at_risk} belong to strongly left-skewed scores on fewer than "
    f"{enough:,} sequences, where the simulation finds too many false labels."
)

# %% [markdown]
# How many heads have both labels or one, and the median effect (mean minus $\tau$ in standard deviations), share of
# sequences above $\tau$ and skewness:

# %%
counts = pd.crosstab(table["role"], label_comparison(table)).loc[table["role"].unique()]
counts.join(table.groupby("role")[["effect", "above", "skewness"]].median()).style.format(precision=2)

# %%
limit = 1 / (1 + resamples)
heads = len(table) // table["role"].nunique()
needed = alpha / heads / sum(1 / rank for rank in range(1, heads + 1))
Markdown(
    f"The least p-value of {resamples} resamples is {limit:.4f}, but BY over {heads} heads asks {needed:.6f} of a lone "
    "head. So the audit corrects the t test and takes the bootstrap as a bound."
)

# %% [markdown]
# A label that only the published rule gives belongs to a head near $\tau$, or to a head whose scores are so skewed to
# the left that the t test rejects too easily.
#
# ## Which labels survive a control?
#
# The published rule asks whether a head beats a *uniform* head, whose score is 1, by more than $\tau - 1$. The
# *controlled* label keeps the margin and puts the role's control in the place of the uniform head, sequence by
# sequence, with the same audit: a syntactic head must beat its twin, which knows positions alone, a local head its own
# attention to shuffled words, a block head even rows of the same entropies. The score of a twin that comes close to the
# head's says that the label was about position.

# %%
labels = ["assigned", "assigned_audited", "assigned_controlled", "control_assigned"]
by_role = table.groupby("role", sort=False)
counts = by_role[labels].sum(min_count=1).assign(control=by_role["control"].first())
labelled = table[table["assigned"].fillna(False)].groupby("role")["control_share"].median()
counts.assign(median_control_share=labelled).style.format(precision=2, na_rep="–")

# %%
syntactic = table[table["role"].isin(["syntactic", *relations])]
kept = syntactic[syntactic["assigned_controlled"].fillna(False).astype(bool)]
names = [f"{row.layer}-{row.head} ({row.role})" for row in kept.itertuples()]
finding(
    f"Of {syntactic['assigned'].sum()} published labels of syntactic roles {len(kept)} are left under control: "
    f"{listed(names)}."
)

# %% [markdown]
# ## Does the released arithmetic matter?
#
# The released code divides the local band by one position too many at the end of a sequence and takes the population
# standard deviation. All else is equal here.

# %%
exact, released = (
    published_table(
        compose(bank["finetuned"], window, relations, direction, kind, weighted_block), tau, alpha
    )
    for kind in ("corrected", "published")
)
differences = arithmetic_differences(exact, released).assign(task=task)[["task", "role", "heads"]]
results.save_part(differences, "arithmetic", task)
finding(
    f"The released arithmetic gives another label in {differences['heads'].sum()} of {exact['assigned'].count():,} cases."
)
