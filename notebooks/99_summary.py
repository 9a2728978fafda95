# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Summary: which claims hold?
#
# **Question.** What became of the claims of every paper that has run in this profile? A claim **holds** when its whole
# 95 % interval lies on its side of the bound, **does not hold** when it lies on the other, and is **undecided**
# between. Definitions, published values and intervals stand in each paper's own notebook of verdicts. A verdict on
# another encoder than the paper's is no verdict on the paper's.

# %% tags=["parameters"]
profile = "offline"
readme = False  # write the claim table into README.md

# %%
import pandas as pd
from IPython.display import Markdown

from analysis import study
from analysis.synthesis import overview
from analysis.texts import TASKS

results = study.Results(profile)
found = {paper: module.summary(results) for paper, module in study.papers().items()}
claims = pd.concat([table.assign(paper=paper) for paper, table in found.items()], ignore_index=True)
encoder = claims["encoder"].iloc[0] if len(claims) else "this encoder"
print(f"{len(claims)} claims of {claims['paper'].nunique()} of {len(found)} papers have a verdict here")

# %% [markdown]
# ## In five sentences
#
# What the whole study found for this encoder, and how far it carries.

# %%
Markdown("\n".join(f"{number}. {said}" for number, said in enumerate(overview(results, found, encoder), 1)))

# %% [markdown]
# ## Verdicts
#
# A paper without a row here brings no claims, or its notebooks have not run in this profile.

# %%
pd.crosstab(claims["paper"], claims["verdict"])

# %% [markdown]
# ## One card per claim

# %%
cards = study.definitions_page(found, encoder)
Markdown(cards.split("\n", 1)[1])

# %% [markdown]
# "With heads that beat their control" is the same claim under the label that asks heads to beat their role's control;
# "Controls" is what control heads give themselves. A claim that they fulfil too says nothing about heads.
#
# ## Heads worth knowing
#
# For each role the heads that exceed its control most, whatever the threshold, with the tasks in which they have the
# label of each rule.

# %%
known = results.claims("ranking")  # no rows where no notebook has made it
known.style.format(precision=2).hide()

# %% [markdown]
# *How far to trust it.* An interval covers new sequences of the same kind and new runs of the same recipe; it does not
# cover another encoder, threshold or parser.
#
# ## Did the encoders learn their tasks?

# %%
finetune = results.join_parts("finetune", TASKS, every=False)
if len(finetune):  # none where no paper that ran needs a fine-tuned encoder
    results.save_table(finetune, "finetune")
finetune.style.format(precision=3).hide()

# %%
if readme:
    study.update_readme("findings", study.findings_section(study.all_highlights(results)))
    study.update_readme("claims", study.verdicts_section(found, encoder.split(":")[0]))
    study.save_claims_page(cards)
