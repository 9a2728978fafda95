# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Summary: how do the claims fare?
#
# **Question.** What became of the claims of every paper that has run in this profile? Each claim compares an estimate and its
# interval with a threshold. It is *supported* when both lie on its side, *mixed* when some tasks support and others
# contradict it. A verdict on another encoder than the paper's is no verdict on the paper's.

# %% tags=["parameters"]
profile: str = "offline"
example: str = "toy-mrpc"  # the task whose fine-tuned heads the picture shows
readme: bool = False  # write the verdicts and numbers into README.md and docs/claims.md

# %%
import pandas as pd
from IPython.display import Markdown

from analysis.figures import finding, head_summary, style
from analysis.statistics.effects import AUC
from analysis.study import front_page
from analysis.study.results import Results
from analysis.texts import TASKS

style()
results = Results(profile)
tables, encoder = front_page.saved_claims(results), front_page.encoder_of(profile)
verdicts = pd.concat([pd.Series(dtype=str), *(table["verdict"] for table in tables.values())])
print(f"{len(verdicts)} claims of {len(tables)} papers have a verdict here; encoder: {encoder}")

# %% [markdown]
# ## Labels and controls
#
# How many heads have a role by the published rule, and how many of these have a higher mean score than the role's control.

# %%
numbers = front_page.places(results)
finding(
    f"Of {numbers['syntactic_assigned']} syntactic labels in {numbers['encoders']} fine-tuned encoders "
    f"{numbers['syntactic_exceeds_control']} exceed a twin that knows only positions, {numbers['syntactic_assigned_controlled']} "
    f"by the margin that the published threshold suggests; of {numbers['local_assigned']} local labels "
    f"{numbers['local_exceeds_control']} and {numbers['local_assigned_controlled']}."
)

# %% [markdown]
# ## The heads
#
# The heads of one encoder, fine-tuned on one task. A hollow mark is a label of the published rule; it is half full where the
# head's mean score exceeds that of the role's control, and full where it does so by the margin of the published threshold. The
# darker a cell, the more the AUC falls when the head is ablated. Framed heads attend to the same word in the other text before fine-tuning. The delimiter
# roles are left out: their only control is a uniform head, which nearly every head exceeds.

# %%
effects = results.claims("matching_effects")  # no rows where 11_matching has not run
if len(effects):
    of_task = effects[
        (effects["metric"] == AUC) & (effects["task"] == example) & (effects["seed"] == effects["seed"].min())
    ]
    effect, matching = (
        of_task.pivot(index="layer", columns="head", values=name) for name in ("effect", "matching")
    )
    label, frame = f"fall in AUC when the head is ablated ({example})", "matches words across texts"
    roles = results.load_table(f"roles-{example}-finetuned")
    figure = head_summary(roles, effect.to_numpy(float), label, matching.to_numpy(bool), frame)
    results.save_figure(figure, "summary-F1-heads")

# %% [markdown]
# ## Verdicts
#
# A paper without a row here brings no claims, or its notebooks have not run in this profile.

# %%
Markdown(front_page.claims_section(tables).replace("docs/claims.md", ""))

# %% [markdown]
# ## Every claim
#
# A table for every paper: the estimate with its interval, the range over tasks, the threshold, what a control gives, the
# published value and the verdict. The name of a claim leads to its figure.

# %%
Markdown(front_page.claims_document(tables, profile, "../figures").split("\n", 1)[1])

# %% [markdown]
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
    front_page.save_front_page(results, tables, numbers)
