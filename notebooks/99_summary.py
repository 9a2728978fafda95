# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Summary: how do the claims fare?
#
# The last chapter of every paper ends with its claims. This one puts them together: which of them hold for the encoder of this profile,
# and where are the heads that matter?
#
# A claim compares an estimate and its interval with a threshold. It is *supported* when both lie on its side, *not supported*
# when the interval lies on the other side, *mixed* when some tasks support it and others contradict it, and *inconclusive*
# otherwise. It is *not applicable* where nothing can be measured, or where this profile leaves out the notebook (*not run*). A
# verdict on another encoder than the paper's says whether the claim carries over; it is no verdict on the paper.

# %% tags=["parameters"]
profile: str = "offline"
example: str = "toy-mrpc"  # the task whose fine-tuned heads the picture shows

# %%
import pandas as pd
from IPython.display import Markdown

from analysis.figures.edits import head_summary
from analysis.figures.theme import head_grid, style
from analysis.figures.words import finding
from analysis.statistics.claims import threshold_table
from analysis.statistics.effects import AUC
from analysis.study.claim_pages import claims_document, verdicts_by_paper
from analysis.study.claims import encoder_of, judged, known_claims, other_encoders, saved_claims, saved_units
from analysis.study.pages import label_counts
from analysis.study.results import Results
from analysis.texts.tasks import TASKS

style()
results = Results(profile)
for paper, known in known_claims().items():
    results.save_table(judged(results, known), f"claims-{paper}")
tables = saved_claims(results)
print(f"{sum(map(len, tables.values()))} claims; encoder: {encoder_of(profile)}")

# %% [markdown]
# ## Which labels are more than position?
#
# The published rule labels a head if its mean score exceeds the threshold $\tau$. A control shows what a head scores that cannot
# know the role: for *syntactic* it is the head's positional twin, which knows distances but not words. We count how many labelled
# heads score higher than their control, and how many do so by the *margin*: as far above the control as the threshold is above
# uniform attention. For *local*, the twins' own labels stand beside those of the heads.

# %%
labels = label_counts(results)
finding(
    f"Of {labels['syntactic_assigned']:.0f} syntactic labels in {labels['encoders']} fine-tuned encoders, "
    f"{labels['syntactic_exceeds_control']:.0f} exceed the positional twin (and {labels['syntactic_base_rate']:.0%} of the other heads), "
    f"{labels['syntactic_assigned_controlled']:.0f} of them by the margin. {labels['local_heads']:.0f} heads are local, and "
    f"{labels['local_twins']:.0f} twins."
)

# %% [markdown]
# ## Where are the heads that matter?
#
# One encoder, fine-tuned on one task. The darker a cell, the more the AUC falls when the head is ablated. Marks are roles: hollow
# by the published rule, half full where the head scores higher than its control, and full where it does so by the margin. Framed
# heads attend to the same word in the other text, before any fine-tuning. Heads that attend to `[CLS]` and `[SEP]` have no mark:
# only uniform attention can serve as their control.

# %%
effects = results.load_if_saved("matching_effects")  # no rows where the chapter on matching heads has not run
if len(effects):
    of_example = (effects["metric"] == AUC) & (effects["task"] == example)
    heads = effects[of_example & (effects["seed"] == effects["seed"].min())]
    figure = head_summary(
        results.load_table(f"roles-{example}-finetuned"),
        head_grid(heads, "effect"),
        f"fall in AUC, {example}",
        head_grid(heads, "matching") > 0,
        "matches words across texts",
    )
    results.save_figure(
        figure,
        "summary-F1-heads",
        "The darker a cell, the more the AUC falls when the head is ablated; marks are roles, frames the "
        "heads that match words across texts. Marks on pale cells are roles whose heads the classifier does "
        "not need.",
    )

# %%
finding(
    f"On {example}, ablating one head lowers the AUC by up to {heads['effect'].max():.3f}; the median head lowers it by "
    f"{heads['effect'].median():z.3f}."
    if len(effects)
    else "The chapter on matching heads has not run in this profile."
)

# %% [markdown]
# **Try it.** Set `example` to a task with single texts (sentiment).
#
# <details><summary>What happens</summary>
#
# The frames stay, since matching heads are chosen before fine-tuning. There is no second text to compare, so their cells need no longer be
# among the darkest.
#
# </details>
#
# ## The verdicts
#
# The number of claims of each paper with each verdict.

# %%
Markdown(verdicts_by_paper(tables))

# %% [markdown]
# Most thresholds are ours. Which verdicts depend on them? The table has every judged claim at four fifths, at once and at five quarters of its
# threshold; a threshold of zero is moved to the least effect that the sample can show, the half width of the interval. `p_by` is
# the p-value of the estimate against its threshold, adjusted over all claims.

# %%
known = [claim for claims in known_claims().values() for claim in claims]
units = saved_units(results, pd.concat(tables.values(), ignore_index=True))
thresholds = threshold_table(known, units)
results.save_table(thresholds, "thresholds")
thresholds.style.format(precision=3, na_rep="").hide()

# %% [markdown]
# ## Every claim
#
# A table for each paper: the estimate with its interval, the threshold, what a control gives, the published value and the verdict.
# Below it, folded, stands what is measured and how far units differ. The name of a claim leads to its figure.

# %%
Markdown(claims_document(tables, profile, "../figures", other_encoders(profile)).split("\n", 1)[1])

# %% [markdown]
# **Try it.** Change the `threshold` of a claim in the `claims.yaml` of its paper and run the paper's last notebook again.
#
# <details><summary>What happens</summary>
#
# Only this verdict can change, since estimates and intervals do not depend on the threshold.
#
# </details>
#
# ## Did the classifiers train successfully?
#
# What an ablation does to a classifier at chance means nothing. A run trained successfully if its accuracy is above that of the
# majority class (one-sided binomial test at the five per cent level). The table has the means of the runs of a task; `trained` is the
# number of runs that trained successfully.

# %%
finetune = results.join_parts("finetune", TASKS, every=False)
if len(finetune):  # none where no paper that ran needs a fine-tuned encoder
    results.save_table(finetune, "finetune")
columns = ["task", "metric", "constant", "bag_of_words", "finetuned", "train", "trained"]
by_task = finetune.reindex(columns=columns).groupby(["task", "metric"], sort=False)
counts = {"train": by_task["train"].first(), "trained": by_task["trained"].sum()}
by_task.mean(numeric_only=True).assign(**counts).style.format(precision=2)

# %% [markdown]
# **How far to trust it.** An interval covers new sequences of the same kind, and new runs of the same recipe where several were
# made. It does not cover another encoder, threshold or parser.
