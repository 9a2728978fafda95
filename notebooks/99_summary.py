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
readme = False  # write README.md and docs/claims.md too

# %%
import pandas as pd
from IPython.display import Markdown

from analysis import study
from analysis.figures import style, survival_map
from analysis.synthesis import heads_in_short, overview
from analysis.texts import TASKS

style()
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
Markdown("\n".join(f"{number}. {said}" for number, said in enumerate(overview(results, encoder), 1)))

# %% [markdown]
# ## The heads
#
# Filled marks survive a control that cannot know the role, in at least one task; hollow marks are labels of the published rule
# alone. Framed: heads that attend to the same word in the other text before fine-tuning, and the head whose removal costs
# most in each task. [CLS] stands apart, as its only control is a uniform head.

# %%
atlas = results.claims("atlas")  # no rows where the synthesis has not run
if len(atlas):
    picture = survival_map(**heads_in_short(atlas, results.claims("matching_tests")))
    results.save_figure(picture, "summary-F1-heads")

# %% [markdown]
# ## Verdicts
#
# A paper without a row here brings no claims, or its notebooks have not run in this profile.

# %%
pd.crosstab(claims["paper"], claims["verdict"])

# %% [markdown]
# ## Every claim
#
# A table for every paper: what is found here, its interval, what the claim asks, what a control gives, the published value
# and the verdict. The name of a claim leads to its figure.

# %%
Markdown(study.claims_document(found, encoder, "../figures").split("\n", 1)[1])

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
    study.save_front_page(results, found, encoder, finetune)
