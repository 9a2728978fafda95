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
# roles are gained and lost, and does attention leave [SEP]?
#
# *Source: Pande et al. 2021, question 3 (claim C9).*

# %% tags=["parameters"]
profile = "offline"
tasks = ["mrpc", "qqp", "sst-2", "qnli"]

# %%
import pandas as pd

from analysis.grids import change_map
from analysis.plots import mass_change, transitions_plot
from analysis.roles import change, mass_table, transitions
from analysis.store import STATES, Results
from analysis.theme import style

style()
results = Results(profile)
table = results.role_tables(tasks)
before, after = (table[table["state"] == state].drop(columns="state") for state in STATES)
changes = change(before, after)
for task in tasks:
    results.save_table(changes[changes["task"] == task].drop(columns="task"), f"change-{task}")

# %% [markdown]
# ## F8a. Change of the mean score, averaged over tasks
#
# Fine-tuned minus pre-trained, head by head.

# %%
average = changes.groupby(["role", "layer", "head"], sort=False).mean(numeric_only=True).reset_index()
results.save_figure(change_map(average), "F8-change")

# %%
by_layer = (
    changes.assign(size=changes["difference"].abs()).groupby(["task", "layer"])["size"].mean().unstack()
)
by_layer.loc[tasks].style.format(precision=2).set_caption(
    "mean absolute change of the score over heads and roles"
)

# %% [markdown]
# ## F8b. Roles gained and lost

# %%
results.save_figure(transitions_plot(transitions(before, after)), "F8-transitions")

# %% [markdown]
# ## F8c. Where the attention goes
#
# The mean share of a token's attention that goes to [SEP], to [CLS] and to all other tokens. This is attention mass,
# not a ratio to uniform attention, so sequences of different length can be compared.

# %%
masses = pd.concat(
    [mass_table(results.load_scores(t, s)).assign(task=t, state=s) for t in tasks for s in STATES],
    ignore_index=True,
)
results.save_table(masses[["task", "state", "layer", "head", "sep", "cls", "other"]], "masses")
results.save_figure(mass_change(masses), "F8-attention-mass")

# %%
last = (
    masses[masses["layer"] >= masses["layer"].max() * 2 / 3]
    .groupby(["task", "state"])[["sep", "cls", "other"]]
    .mean()
)
moved = last.xs("finetuned", level="state") - last.xs("pretrained", level="state")
print("last third of the layers, fine-tuned minus pre-trained, percentage points of attention:")
print((100 * moved.loc[tasks]).round(1).to_string())

# %% [markdown]
# *How far to trust it.* One fine-tuning run per task: the change of one head may differ with another seed; the layer
# averages are steadier.
