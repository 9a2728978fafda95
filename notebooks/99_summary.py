# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Summary: which claims hold?
#
# **Question.** Every claim of the paper, as stated, as computed here, with the published value, the value recomputed
# from the authors' released figures (BERT-base fine-tuned, 20 sequences per task), and the value found with this
# profile's encoder and data. A verdict on another encoder is no verdict on BERT.

# %% tags=["parameters"]
profile = "offline"
tasks = ["mrpc", "qqp", "sst-2", "qnli"]
compare_published = (
    False  # compare mean scores with the released maps (needs an encoder of 12 layers x 12 heads)
)
readme = False  # write the claim table into README.md

# %%
import pandas as pd

from analysis import published
from analysis.claims import claim_table, compare_maps
from analysis.findings import Evidence
from analysis.store import STATES, Results, update_readme

results = Results(profile)
roles = results.role_tables(tasks)
evidence = Evidence(
    roles=roles,
    masses=results.load_table("masses"),
    change=pd.concat([results.load_table(f"change-{task}").assign(task=task) for task in tasks]),
    skewness=results.join_parts("skewness", tasks),
)
described = results.load_scores(tasks[0], "pretrained").attrs
print(
    f"encoder {described['encoder']} ({described['architecture']}, {roles['layer'].nunique()} layers), ",
    end="",
)
print(f"data {described['source']}, parses {described['parser']}, {described['versions']}")

# %% [markdown]
# ## The claims

# %%
claims = claim_table(evidence, Evidence(roles=published.roles()))
results.save_table(claims, "claims")
claims.style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %%
print(", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items()))

# %% [markdown]
# ## Did the encoders learn their tasks?

# %%
finetune = results.join_parts("finetune", tasks)
results.save_table(finetune, "finetune")
finetune.style.format(precision=3).hide()

# %% [markdown]
# ## Mean scores beside the released maps
#
# Only an encoder of BERT-base's shape can be compared head by head. Another fine-tuning seed moves the upper layers;
# layers 0 to 5 should agree closely.

# %%
if compare_published:
    maps = pd.concat(
        [compare_maps(roles[roles["state"] == s], published.scores()).assign(state=s) for s in STATES]
    )
    results.save_table(maps, "published")
else:
    maps = f"not compared: this profile's encoder has {roles['layer'].nunique()} layers, BERT-base has 12"
maps

# %%
if readme:
    shown = claims[["claim", "published", "ours", "n", "verdict"]]
    update_readme("claims", shown.to_markdown(index=False))
