# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 11. Heads that compare texts: all tasks
#
# Some heads attend from a word to the same word in the other text. Which are they, do they need training, and what do classifiers of
# pairs do with them? The interventions of [11_matching](11_matching.ipynb), a chapter for each task, stand side by side here.
#
# **What is known.** Kovaleva et al. (2019, section 5) describe such heads first, to our knowledge: in fine-tuned BERT-base, STS-B and
# RTE rely most on the same two heads, one of an early and one of a lower middle layer, found by disabling one head at a time (every
# token of the head attends to all tokens evenly). The two give high weights to words that appear in both sentences, and the authors
# call the comparison word by word a strategy of the model. Claim K9 ([07_kovaleva_disable](07_kovaleva_disable.ipynb)) repeats this for
# RTE. Vig (2019) saw the pattern by eye in BERT. Lu et al. (2025) name such heads *matching heads* in a ranker of six layers
# and take their attention as a soft term frequency, which observes what our dial (below) changes; Chen et al. (2024) and Vast et al. (2025)
# find them by patching. Bhaskar et al. (2024) show that a few early heads carry shallow features of pair tasks, Vashishth et al.
# (2019) that disturbed attention hurts pair tasks and not single texts. Markers of exact matches help in the input (Boualili et al.
# 2022), and word overlap misleads (McCoy et al. 2019, Rajaee et al. 2022). Attention was edited before (Hassid et al. 2022, Zhang et
# al. 2023, Katz and Wolf 2024), and multiplied with word similarity in training (Xia et al. 2021). Heads that find an earlier copy
# are known from decoders (Olsson et al. 2022, Wang et al. 2023, Wu et al. 2024), and Ferrando and Costa-jussà (2021) read attention
# in translation as how much each context contributes. That such heads exist and that a classifier relies on them is therefore not new.
# New here, to our knowledge, are three questions: does it matter which word they attend to, does it matter in which text, and is it
# enough to turn them across?
#
# *Source: this study; ablation as in Michel et al. 2019. Layers and heads count from 0.*
#
# This chapter needs `11_matching` of every pair task, and the checkpoints of the tasks with single texts.

# %% tags=["parameters"]
profile: str = "offline"
heads: list[list[int]] | None = None  # as in 11_matching
threshold: float = 5.0  # match score of a matching head; 1 is uniform attention
sets: int = 12  # other sets of as many heads

# seldom changed
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours, {task} and {seed} are filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
pair_tasks: list = ["toy-mrpc", "toy-qqp", "toy-qnli"]
single_tasks: list = ["toy-sst-2"]
seeds: list = [0, 1]  # fine-tuning runs
scored_n: int | None = 60  # dev texts on which every head is ablated alone
edited_n: int | None = 40  # dev texts on which sets of heads are ablated
identical_tasks: list = ["toy-mrpc", "toy-qqp"]
max_tokens: int = 128
seed: int = 0
device: str = "cpu"

# %%
from functools import partial

import numpy as np
import pandas as pd
from IPython.display import Markdown

from analysis.encoders.classifiers import load_classifier
from analysis.encoders.measures import positive_class
from analysis.encoders.models import load_encoder
from analysis.figures.claims import FOREST_CAPTION, forest_plot
from analysis.figures.edits import (
    dial_panels,
    effect_maps,
    lines_beside_grid,
    marks_by_edit,
    region_panels,
    shares_by_edit,
)
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.scores.extraction import read_attention
from analysis.scores.sieves import across, same_pieces
from analysis.statistics.claim_texts import bracketed
from analysis.statistics.effects import AUC
from analysis.statistics.training import trained_runs
from analysis.study.claim_pages import claims_markdown
from analysis.study.claims import judged
from analysis.study.results import Results
from analysis.synthesis import matching, matching_measures, matching_runs
from analysis.synthesis.matching_runs import Classifier, match_scores, per_run
from analysis.texts.examples import Example
from analysis.texts.glue import PAIR, load_examples

style()
results = Results(profile)
model = load_encoder(encoder, device)
results.record_weights(f"{encoder}-pretrained", model.digest)
joined = partial(results.join_tables, parts=pair_tasks)
units = matching_measures.over_tasks(joined("matching_units"))  # of the claims on pairs of texts


def save_claims(*names):
    """Saves claims in the section that shows them."""
    for name in names:
        results.save_claim(name, units[name])


# %% [markdown]
# ## Which heads match?
#
# The match score of a head is the attention that it pays to copies of a word in the other text, over what uniform
# attention would pay. Matching heads have a score above the threshold in every pair task **before** fine-tuning, so the choice does
# not use any measured effect. We found such heads on MRPC and QNLI; effects on QQP were first measured here. In an encoder with random
# weights no head should stand out.

# %%
table = joined("matching_heads")
results.save_table(table, "matching_heads")
save_claims("X1")
roles = [results.load_table(f"roles-{task}-pretrained") for task in pair_tasks]
chosen = matching.matching_heads(roles, threshold, heads)
layer, head = [(0, 0), *chosen[:1]][-1]
example = Example("pair", *PAIR)  # the two sentences of 02_score and 03_test
layout, attention = read_attention(model, example, max_tokens)
lines = np.where(same_pieces(layout) & across(layout), attention[layer, head], 0)
mean = table[table["state"] == "pretrained"].groupby(["layer", "head"])["match"].mean().unstack().to_numpy()
title, label = f"head {layer}-{head}: from words to their copies", "match score before fine-tuning"
results.save_figure(
    lines_beside_grid(lines, layout.tokens, title, mean, label),
    "matching-F1-at-work",
    "Left, a matching head on one pair: lines go from each word to its copies in the other text. Right, the "
    "match score of every head before fine-tuning; a head with uniform attention has 1.",
)

# %%
largest, above = table.groupby("state")["match"].max(), matching.matching_heads(roles, threshold)
finding(
    f"Before fine-tuning, {len(above)} of {mean.size} heads have a match score above {threshold:g} in every pair task "
    f"({matching.names_of(above) or 'none'}). The largest match score is {largest['pretrained']:.1f}, in the untrained encoder "
    f"{largest['untrained']:.1f}."
)

# %% [markdown]
# ## Do single texts need them?
#
# Where there is no second text, there is nothing to match. So ablating these heads should cost a task with single texts no more than
# ablating others. The maps show the fall in AUC when one head is ablated, mean over runs; a dot marks a matching head.

# %%
dev = {task: load_examples(task, source, "dev", edited_n, seed) for task in single_tasks}
scored = {task: load_examples(task, source, "dev", scored_n, seed) for task in single_tasks}
trained = trained_runs(results.join_parts("finetune", single_tasks, every=False))
singles = [
    Classifier(
        task, run, load_classifier(results.weights(task, run, encoder, checkpoint), task, device),
        dev[task], positive_class(task), (task, run) in trained, max_tokens, results.logits,
    )
    for task in single_tasks
    for run in seeds
]  # fmt: skip
for c in singles:
    results.record_weights(f"{c.task}-{c.seed}", c.encoder.digest)
of_single = per_run(singles, lambda c: matching_runs.single_effects(c, chosen, scored[c.task]))
effects = pd.concat([joined("matching_effects"), matching_runs.by_run(of_single, singles)], ignore_index=True)
results.save_table(effects, "matching_effects")
results.save_figure(
    effect_maps(effects, "task"),
    "matching-F2-effects",
    "Dots mark the matching heads, colour the fall in AUC when a head is ablated alone. Is a dot among the "
    "darkest cells of its map?",
)

# %%
trained_effects = effects[effects["metric"].eq(AUC) & effects["trained"].eq(True)]
by_head = (
    trained_effects.groupby(["task", "layer", "head"], sort=False)[["effect", "matching"]]
    .mean()
    .reset_index()
)
darkest = by_head.loc[by_head.groupby("task", sort=False)["effect"].idxmax()]
of_pairs = darkest["task"].isin(pair_tasks)
matching.finding_about(
    chosen if of_pairs.any() else [],
    f"The darkest cell is a matching head in {(darkest[of_pairs]['matching'] > 0).sum()} of {of_pairs.sum()} tasks with pairs of texts: the "
    "table has this head and its fall in AUC.",
)

# %%
darkest.assign(matching=darkest["matching"] > 0).style.format(precision=3).hide()

# %%
set_scores = per_run(
    singles if chosen else [],
    lambda c: match_scores(c, matching_runs.set_interventions(c, chosen, sets)),
)
of_sets = matching_runs.by_run(set_scores, singles, partial(matching_runs.set_table, heads=chosen))
set_table = pd.concat([joined("matching_sets"), of_sets], ignore_index=True)
results.save_table(set_table, "matching_sets")
save_claims("X2", "X7", "X8")
results.save_claim("X3", matching_measures.single_texts(singles, chosen, set_scores))
falls = set_table.pivot_table("fall", ["task", "seed"], "set", aggfunc="max", sort=False)
falls = falls.reindex(columns=["matching heads", "other heads"]).dropna()
lead = falls["matching heads"] > falls["other heads"]
of_pairs = lead.index.isin(pair_tasks, level="task")
on_single = (
    f", and in {lead[~of_pairs].sum()} of {(~of_pairs).sum()} on single texts" if (~of_pairs).any() else ""
)
matching.finding_about(
    chosen if len(lead) else [],
    f"Ablating the matching heads lowers the AUC more than ablating any of the other sets in {lead[of_pairs].sum()} of "
    f"{of_pairs.sum()} runs on pairs{on_single}.",
)

# %%
growing = joined("matching_growing")
results.save_table(growing, "matching_growing")
growing.pivot_table("fall", ["task", "seed"], "k", sort=False).style.format(precision=3)

# %% [markdown]
# ## Does it matter which word they look at, and in which text?

# %%
redirected = joined("matching_redirection")
results.save_table(redirected, "matching_redirection")
save_claims("X4", "X5")
labels = {"fall": "fall in AUC", "shift": "shift of the match logit\n(below 0: fewer matches)"}
results.save_figure(
    marks_by_edit(redirected, labels),
    "matching-F3-redirected",
    "Each row is an edit of the matching heads, each mark a run with its 95 % interval. Left: compare wrong words of the other "
    "text with the own text, does the word count, or the text? Right: what an edit does to all answers; ablation is the yardstick.",
)

# %%
trained_rows = redirected[redirected["trained"].eq(True)]
fall = trained_rows.pivot_table("fall", "edit", "task", sort=False)
matching.finding_by_task(
    chosen,
    fall,
    "Fall in AUC, mean over trained runs.",
    lambda task, column: (
        f"{task}: wrong words {column['to wrong words']:.3f}, own text "
        f"{column['to the own text']:.3f}, ablated {column['ablated']:.3f}."
    ),
)

# %% [markdown]
# **What does ablation do?** Beside what it costs, it moves all answers one way, towards "match" in one encoder and away from it in
# another. The shift of the match logit, and the share of pairs called a match, are the yardstick of X4, X5 and X11. Uniform attention
# is a second one.

# %%
means = trained_rows.groupby(["task", "edit"], sort=False)[["shift", "share"]].mean().unstack("task")
ablated = means.reindex(["ablated"]).stack("task", future_stack=True).droplevel("edit")
matching.finding_about(
    chosen if len(trained_rows) else [],
    "With the matching heads ablated, pairs called a match and shift of the match logit: "
    + "; ".join(f"{task} {row['share']:.0%}, {row['shift']:+.2f}" for task, row in ablated.iterrows())
    + ".",
)

# %% [markdown]
# ## Is it enough that they look across? The dial

# %%
dial = joined("matching_dial")
results.save_table(dial, "matching_dial")
save_claims("X6")
results.save_figure(
    dial_panels(dial, set_table, matching.NATURAL, matching.OWN),
    "matching-F4-dial",
    "Words without a counterpart are made to look at the other text. Where the solid line rises, more pairs are "
    "called a match; the dashed one turns the same heads to their own text, grey lines turn other heads.",
)

# %%
share = dial[dial["trained"].eq(True)].pivot_table("share", "edit", "task", sort=False)
matching.finding_by_task(
    chosen,
    share,
    'The share of pairs called "match" at the natural dose.',
    lambda task, column: (
        f"{task}: from {column['none']:.0%} to {column[matching.NATURAL]:.0%}, with the same heads turned "
        f"to their own text {column[matching.OWN]:.0%}."
    ),
)

# %%
crossing = joined("matching_crossing")
results.save_table(crossing, "matching_crossing")
save_claims("X12", "X13")
crossing.pivot_table("crossing", ["task", "seed"], "measure", sort=False).style.format(precision=2)

# %% [markdown]
# ## Where is the vote read?
#
# Attention stays, and what the heads read in one region of keys is left out.

# %%
regions = joined("matching_regions")
results.save_table(regions, "matching_regions")
if len(regions):
    figure = region_panels(regions)
    results.save_figure(
        figure,
        "matching-F6-regions",
        "Rows are what is left out of what the matching heads read. Left, how much the AUC falls; right, where the match logit "
        "moves, for matching pairs and for the others. Left of 0, what is left out votes for a match; right of 0, against one.",
    )

# %%
shifts = regions[regions["trained"].eq(True)].pivot_table("shift", "region", "task", sort=False)
matching.finding_about(
    chosen if len(shifts) else [],
    "The region that shifts the match logit most when it is left out: "
    + "; ".join(
        f"{task} {column.abs().idxmax()} ({column[column.abs().idxmax()]:+.2f})"
        for task, column in shifts.items()
    )
    + ".",
)

# %% [markdown]
# ## What do they read there?

# %%
values = joined("matching_values")
results.save_table(values, "matching_values")
save_claims("X9", "X10")
values.pivot_table(["fall", "shift"], "edit", "task", sort=False).style.format(precision=3)

# %% [markdown]
# ## Identical texts
#
# A text beside itself, in the tasks whose two texts are of one kind: is it still a match when the matching heads look away?

# %%
beside = [task for task in pair_tasks if task in identical_tasks]
identical = pd.DataFrame(columns=matching_runs.EMPTY)
edits = ["none", "ablated", "to the own text", "to wrong words"]
save_claims("X11", "X14")
if beside:
    identical = results.join_tables("matching_identical", beside)
    results.save_table(identical, "matching_identical")
    results.save_figure(
        shares_by_edit(identical, edits),
        "matching-F5-identical",
        "Each mark is the share of texts that a run calls a match with themselves, with two words exchanged, or "
        "shuffled. Compare the heads as they are with the heads turned to the own text.",
    )

# %%
of_itself = identical[identical["trained"].eq(True) & identical["pair"].eq("identical")]
shares = of_itself.pivot_table("share", "edit", "task", sort=False)
matching.finding_by_task(
    chosen,
    shares,
    "Identical texts called a match.",
    lambda task, column: (
        f"{task}: {column['none']:.0%}; heads ablated {column['ablated']:.0%}, turned to the own text "
        f"{column['to the own text']:.0%}, to wrong words of the other text {column['to wrong words']:.0%}."
    ),
)

# %% [markdown]
# ## The plain reading
#
# Matching heads are the classifier's **word-overlap feature**. Is there more to the classifier than overlap? The AUC of the overlap of
# words alone, the share of words that stand in both texts, is the baseline of every task.

# %%
of_task = dial[dial["trained"].eq(True) & dial["edit"].eq("none")].groupby("task", sort=False)
beside_overlap = of_task[["auc", "overlap_auc"]].mean()
beside_overlap["ablated"] = trained_rows[trained_rows["edit"].eq("ablated")].groupby("task")["auc"].mean()
matching.finding_about(
    chosen if len(beside_overlap) else [],
    "AUC of the classifier, of the classifier with its matching heads ablated, and of word overlap alone: "
    + "; ".join(
        f"{task} {row['auc']:.2f}, {row['ablated']:.2f} and {row['overlap_auc']:.2f}"
        for task, row in beside_overlap.iterrows()
    )
    + ".",
)

# %% [markdown]
# **Try it.** Sort the table of growing sets by its gain: `growing.pivot_table("fall", "k", "task", sort=False).diff()`.
#
# <details><summary>What happens</summary>
#
# A row is what the k-th head adds. Where heads stand in for one another, no head adds much alone and the last ones add most.
#
# </details>
#
# **Try it.** Set `threshold = 2`, here and in `11_matching`: heads join that match far less. Does the set matter more?
#
# <details><summary>What happens</summary>
#
# In glue-minilm one head joins and adds little: the falls of the growing sets are flat after the first two.
#
# </details>
#
# **How far to trust it.** Thresholds were set after a prototype on the encoder of glue-minilm with the same recipe; those of X13 and X14 after the results
# of both encoders. All runs are seeds and tasks of one checkpoint. Those of glue-minilm and glue-mpnet were tuned on a billion pairs of
# texts before: whether matching heads need that is the main open question of this study, and profile `glue-bert` is how anybody with
# access to the Hugging Face Hub answers it. Which heads survive pruning differs between pre-trained seeds (Budhraja et al. 2020, Prasanna et al. 2020); ours come
# from one checkpoint, and nothing is trained after an ablation. Lower layers can do without attention across if they are trained so
# (Cao et al. 2020). Above the natural dose the edit leaves the range that the encoder knows. Rankers treat the two texts differently
# (Zhan et al. 2020, Schlatt et al. 2024), so the rows of each text are also moved alone. The edit of positions exchanges absolute
# ones; a bias of relative positions stays.
#
# ## The claims

# %%
claims = judged(results, matching_measures.CLAIMS)
results.save_figure(forest_plot(claims, matching_measures.CLAIMS), "matching-claims", FOREST_CAPTION)

# %%
of_dial = claims.set_index("claim").loc["X13", ["estimate", "low", "high"]].astype(float)
if of_dial["low"] > 0.5:
    reading = "Most of the dial comes from looking across"
elif of_dial["high"] < 0.5:
    reading = "Most of the dial comes from looking at a text at all, and the rest from looking across"
else:
    reading = "Whether the dial comes from looking across, or from looking at a text at all, cannot be told"
matching.finding_about(
    chosen if len(trained_rows) else [],
    f"{reading}: its crossing share is {bracketed(*of_dial) or 'not measured'}, where 1 means that only the other text counts.",
)

# %%
Markdown(claims_markdown(claims, matching_measures.CLAIMS))
