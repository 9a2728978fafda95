# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   study: {paper: pande2021, after: [01_extract, 03_test]}
# ---

# %% [markdown]
# # 4c. Which claims hold?
#
# **Question.** Every claim of the paper, as stated, as computed here, with the published value, the value recomputed
# from the authors' released figures (BERT-base fine-tuned, 20 sequences per task), and the value found with this
# profile's encoder and data. A verdict on another encoder is no verdict on BERT.
#
# *Source: Pande et al. 2021; the claims and their definitions stand in the table.*

# %% tags=["parameters"]
profile = "offline"
tasks = ["mrpc", "qqp", "sst-2", "qnli"]
seeds = [0, 1]  # of the fine-tuning runs: the first one's values are shown, the intervals cover all
replicates = 499  # of the bootstrap
seed = 0  # of the bootstrap
tau = 3.0
alpha = 0.05
window = 2
relations = ["nsubj", "dobj", "amod", "advmod"]
direction = "dependent_to_head"
arithmetic = "corrected"
weighted_block = True
compare_published = (
    False  # compare mean scores with the released maps (needs an encoder of 12 layers x 12 heads)
)

# %%
import pandas as pd

from analysis.figures import claim_intervals, style
from analysis.papers.pande2021 import CLAIMS, compare_maps, evidence, published
from analysis.statistics import claim_table, compose, seed_table
from analysis.study import STATES, Results

style()
results = Results(profile)

# %%
choices = (window, relations, direction, arithmetic, weighted_block)
scores = {run: {t: compose(results.load_scores(t, run), *choices) for t in tasks} for run in (None, *seeds)}
pretrained, finetuned = scores[None], {run: scores[run] for run in seeds}
described = pretrained[tasks[0]]
origin = described.attrs
print(f"encoder {origin['encoder']} ({origin['architecture']}, {described.sizes['layer']} layers), ", end="")
print(f"data {origin['source']}, parses {origin['parser']}, {origin['versions']}")

# %% [markdown]
# ## The claims
#
# A claim compares a measure with a bound, in all tasks together or in each. The measure's 95 % interval comes from
# bootstrap replicates: each draws, for every task, one of the fine-tuning runs and new clusters of sequences (those
# that share a text stay together), and labels every head anew. A claim **holds** when the whole interval lies on its
# side of the bound, **does not hold** when it lies on the other, and is **undecided** between. Where a claim is about
# every task, estimate and interval are those of the worst one, and p is the largest of the tasks'.

# %%
by_seed = {run: evidence.evidence_of(pretrained, finetuned[run], tau, alpha) for run in seeds}
drawn = evidence.replicates(pretrained, finetuned, tau, alpha, replicates, seed)
released = evidence.evidence_of_labels(published.roles())
claims = claim_table(CLAIMS, by_seed[seeds[0]].followed_by(drawn), released)
results.save_table(claims, "claims")
claims.style.format(precision=3).hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %%
print(", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items()))

# %% [markdown]
# ## F14. How far from the bound, and how far from run to run?
#
# Intervals that cross the line are undecided. The ticks are the fine-tuning runs, each judged alone by its estimate.

# %%
spread = seed_table(CLAIMS, by_seed)
results.save_table(spread, "claims_seeds")
results.save_figure(claim_intervals(claims, spread), "F14-claims")

# %%
estimates = spread.groupby("claim", sort=False)["estimate"].agg(["min", "max"])
estimates[f"holds in (of {len(seeds)} runs)"] = (
    spread["verdict"].eq("holds").groupby(spread["claim"], sort=False).sum()
)
estimates.style.format(precision=3)

# %% [markdown]
# *How far to trust it.* The interval covers new sequences of the same kind and new runs of the same recipe, as far as
# a few runs show them; it does not cover another encoder, threshold or parser. It also keeps the roughness of
# resampling: the share of rejected tests (C10, C11) can lie outside its own interval, which the column `method` tells.
#
# ## Mean scores beside the released maps
#
# Only an encoder of BERT-base's shape can be compared head by head. Another fine-tuning seed moves the upper layers;
# layers 0 to 5 should agree closely.

# %%
if compare_published:
    roles = results.role_tables(tasks)
    maps = pd.concat(
        [compare_maps(roles[roles["state"] == s], published.scores()).assign(state=s) for s in STATES]
    )
    results.save_table(maps, "published")
else:
    maps = f"not compared: this profile's encoder has {described.sizes['layer']} layers, BERT-base has 12"
maps
