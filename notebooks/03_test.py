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
# one-sample t test at level $\alpha$. Which heads have which roles, and do roles exclude one another?
#
# *Source: Pande et al. 2021, the heads hypothesis and question 1 (claims C1 to C3).*

# %% tags=["parameters"]
profile = "offline"
task = "mrpc"
tau = 3.0  # the score above which a head has a role
alpha = 0.05  # level of each test; as published, not corrected for the number of tests
window = 2
relations = ["nsubj", "dobj", "amod", "advmod"]
direction = "dependent_to_head"
arithmetic = "corrected"
weighted_block = True

# %%
import pandas as pd

from analysis.grids import assignment
from analysis.overlaps import overlap_heatmap, overlap_upset
from analysis.plots import p_values
from analysis.roles import arithmetic_differences, compose, memberships, overlap
from analysis.significance import role_table, skewness_table
from analysis.store import STATES, Results
from analysis.theme import style

style()
results = Results(profile)
bank = {state: results.load_scores(task, state) for state in STATES}
scores = {s: compose(bank[s], window, relations, direction, arithmetic, weighted_block) for s in STATES}
tables = {state: role_table(scores[state], tau, alpha) for state in STATES}
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
counts = pd.DataFrame(
    {s: t.groupby("role", sort=False)["assigned"].sum(min_count=1) for s, t in tables.items()}
)
sequences = table.groupby("role", sort=False)["n"].max()
counts.assign(sequences=sequences).rename_axis(f"heads of {len(table) // table['role'].nunique()}")

# %% [markdown]
# ## F5. Do roles exclude one another?
#
# The sets of heads with each role and their intersections.

# %%
shared = overlap(pd.concat([t.assign(state=s, task=task) for s, t in tables.items()])).drop(columns="task")
results.save_table(shared, f"overlap-{task}")
results.save_figure(overlap_upset(memberships(table)), f"F5-sets-{task}")

# %%
results.save_figure(overlap_heatmap(shared[shared["state"] == "finetuned"]).figure, f"F5-overlap-{task}")

# %% [markdown]
# ## F9. How close are the decisions?
#
# Where most p-values lie near 0 or 1, the label mostly says on which side of $\tau$ the mean lies; the margin and the
# choice of $\tau$ then matter more than the level of the test.

# %%
results.save_figure(p_values(table, alpha), f"F9-p-values-{task}")

# %%
tested = table["p"].dropna()
near = ((tested < 0.05) | (tested > 0.95)).mean()
above = (table["mean"] > tau) & ~table["assigned"].fillna(False)
print(f"{near:.1%} of {len(tested)} p-values lie within 0.05 of 0 or 1; ", end="")
print(f"{above.sum()} heads and roles have a mean above tau = {tau:g} without passing the test")

# %% [markdown]
# ## Does the released arithmetic matter?
#
# The released code divides the local band by one position too many at the end of a sequence and takes the population
# standard deviation. The table counts the labels that differ when all else is equal.

# %%
exact, released = (
    role_table(compose(bank["finetuned"], window, relations, direction, kind, weighted_block), tau, alpha)
    for kind in ("corrected", "published")
)
differences = arithmetic_differences(exact, released).assign(task=task)[["task", "role", "heads"]]
results.save_part(differences, "arithmetic", task)
skewness = pd.concat([skewness_table(scores[s]).assign(task=task, state=s) for s in STATES])
results.save_part(skewness, "skewness", task)
differences
