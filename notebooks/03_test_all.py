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
# for every task?
#
# *Source: Pande et al. 2021, question 2 (claims C4 to C8).*

# %% tags=["parameters"]
profile = "offline"
tasks = ["mrpc", "qqp", "sst-2", "qnli"]

# %%

from analysis.grids import role_map
from analysis.plots import layer_profile
from analysis.roles import layer_counts
from analysis.store import Results
from analysis.theme import style

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

# %%
heads = finetuned.groupby(["role", "task"], sort=False)["assigned"].sum(min_count=1).unstack()
heads[tasks].rename_axis(
    columns=f"heads with the role, of {finetuned[['layer', 'head']].drop_duplicates().shape[0]}"
)

# %% [markdown]
# ## F7. Roles per layer
#
# Bars: fine-tuned; line: pre-trained. *Multi-functional* heads have at least two of the roles local, syntactic (any
# relation), delimiter (also [CLS] or [SEP] alone) and block.

# %%
counts = layer_counts(table)
results.save_table(counts, "layers")
results.save_figure(layer_profile(counts), "F7-layers")

# %%
multi = counts[(counts["role"] == "multi-functional") & (counts["state"] == "finetuned")]
share = multi.set_index(["task", "layer"])["heads"].unstack().div(finetuned["head"].nunique())
share.loc[tasks].style.format("{:.0%}").set_caption(
    "proportion of each layer's heads that are multi-functional"
)

# %% [markdown]
# *What to look at.* The claims about layers are judged in the summary from exactly these counts.
#
# ## Corrected and released arithmetic, all tasks

# %%
arithmetic = results.join_parts("arithmetic", tasks)
results.save_table(arithmetic.rename(columns={"heads": "labels"}), "arithmetic")
arithmetic.pivot(index="role", columns="task", values="heads")[tasks].loc[table["role"].unique()]

# %%
untested = int(finetuned["assigned"].isna().sum())
print(
    f"{int(arithmetic['heads'].sum())} of {len(finetuned) - untested} labels differ; {untested} are untestable"
)
