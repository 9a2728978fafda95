# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 10. Do roles predict the ablation effect?
#
# The papers describe where a head attends, and some measure what the encoder loses without it. We measure both on the same heads,
# encoders and sequences. Does the role of a head tell whether the head matters?
#
# We ask in four ways. Does ablating all heads of a role hurt more than ablating as many random heads of the same layers? Do role
# scores predict the ablation effects of single heads? Do measures of importance agree? Do roles stay the same when another map
# takes the place of attention?
#
# *Source: this study. Layers and heads count from 0.*
#
# This chapter joins the tables of the chapters before it; `make 10_synthesis` makes what is missing.

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]  # rows of the atlas
# whose sets of heads are ablated; one that is not among `tasks` does not enter the atlas, and its heads get their labels here
model_tasks: list[str] = ["toy-qqp"]
random_sets: int = 29  # for each role and task with pairs of texts, fewer where a role leaves no more
together: list[str] = ["local", "syntactic", "delimiter", "match"]  # roles of the joint model

# seldom changed
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours, {task} and {seed} are filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
seeds: list[int] = [0, 1]  # fine-tuning runs: on pairs, sets are ablated in the first; the atlas has all
seed: int = 0  # of samples, random sets, bootstrap and permutations
set_n: int = 20  # dev pairs on which sets are ablated
single_set_n: int = 20  # dev sequences of tasks with single texts, on which sets are ablated
single_runs: int | None = None  # fine-tuning runs of which they are, None for all
single_random_sets: int = 29  # for each role and task with single texts, of which there may be one alone
threshold: float = 5.0  # match score of a matching head, as in 11_matching
combinations: int = 9999  # of one random set per task
permutations: int = 9999
resamples: int = 499
max_tokens: int = 128
tau: float = 3.0  # of labels, with `minimum` sequences, as in 03_test_all
minimum: int = 100
window: int = 2
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]
direction: str = "dependent_to_head"
arithmetic: str = "corrected"
weighted_block: bool = True
device: str = "cpu"

# %%
import numpy as np
import pandas as pd
from IPython.display import Markdown

from analysis.encoders import interventions
from analysis.encoders.classifiers import load_classifier
from analysis.encoders.measures import positive_class
from analysis.figures import theme
from analysis.figures.claims import FOREST_CAPTION, forest_plot
from analysis.figures.colours import colour, ink
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.statistics import training
from analysis.statistics.controls import controlled_table
from analysis.statistics.effects import AUC, REFITTED
from analysis.statistics.roles import ROLES, compose, compose_controls
from analysis.statistics.significance import Rule
from analysis.study.claim_pages import claims_markdown
from analysis.study.claims import judged
from analysis.study.results import Results
from analysis.synthesis import agreement, matching, measures, regression, sets
from analysis.tables import p_equals, p_formats
from analysis.texts.glue import load_examples
from analysis.texts.tasks import TASKS

style()
results = Results(profile)
available = {*agreement.TABLES, "pascual_survival", "michel_importance_agreement"} & {*results.table_names()}
tables = {name: results.load_table(name) for name in sorted(available)}
if missing := agreement.TABLES - available:
    print(f"not run in profile {profile}, and left out of the atlas: {', '.join(sorted(missing))}")
choices = (window, relations, direction, arithmetic, weighted_block)
runs = [(task, run) for task in tasks for run in seeds]
finetune = results.join_parts("finetune", [*dict.fromkeys([*tasks, *model_tasks])], every=False)
trained = {run for run in training.trained_runs(finetune) if run[1] in seeds}
pairs = [task for task in tasks if TASKS[task].pair]

# %% [markdown]
# ## All heads of a role at once
#
# Heads of one role may stand in for one another, so that none of them matters alone. We ablate all heads of a role together, and
# compare the fall in AUC with that of as many random heads of the same layers. A set with more than two thirds of its layers' heads
# has no random counterpart. Tasks with pairs of texts and tasks with single texts are pooled apart: the matching heads can only
# matter in the first. Runs at chance take no part. On pairs the sets are of the first run, on single texts the effects are means over
# the first runs, as many as `single_runs` says.


# %%
def labels_of(task: str) -> pd.DataFrame:
    """The role table of the first fine-tuned encoder of a task."""
    if task in tasks:  # 03_test_all has labelled its heads
        return results.load_table(f"roles-{task}-finetuned")
    bank, controls = results.load_scores(task, seeds[0]), results.load_controls(task, seeds[0])
    both = compose(bank, *choices), compose_controls(bank, controls, *choices)
    return controlled_table(*both, Rule(tau, minimum=minimum, seed=seed))


# %%
options = {"max_tokens": max_tokens, "cache": results.profile.cache / "synthesis"}
role_sets, changes = [], {}
for task in model_tasks:
    pair = TASKS[task].pair
    dev = load_examples(task, source, "dev", set_n if pair else single_set_n, seed)
    labels = np.array([example.label for example in dev])
    count = random_sets if pair else single_random_sets
    task_sets = sets.role_sets(labels_of(task), task, count, seed)
    learnt_runs = [run for run in seeds if (task, run) in trained] or seeds[:1]
    set_runs = seeds[:1] if pair else learnt_runs[:single_runs]
    by_run = []
    for run in set_runs:
        classifier = load_classifier(results.weights(task, run, encoder, checkpoint), task, device)
        ablated = interventions.sets(classifier, sets.interventions(task_sets))
        logits = interventions.predict(classifier, dev, ablated, **options)
        by_run.append(sets.set_changes(logits, labels, positive_class(task)))
    changes[task] = sum(by_run) / len(by_run)  # mean over runs
    role_sets += task_sets

# %%
learned = [task for task in model_tasks if (task, seeds[0]) in trained]
kinds = {
    kind: [task for task in learned if TASKS[task].pair == several]
    for kind, several in zip(sets.KINDS, (True, False), strict=True)
}
effects = sets.sets_table(role_sets, changes, kinds, combinations, resamples, seed)
results.save_table(effects, "synthesis_sets")
results.save_claim("S1", measures.against_random(effects))

# %% [markdown]
# A panel per task. A dash is a random set of heads, a mark the heads of the role; both as the fall in AUC beyond the mean of the random sets.
# In brackets: the p-value over tasks with pairs of texts, then over those with single texts; two-sided, Holm's correction over roles.

# %%
means = sets.set_means(role_sets, changes)
means = means[(means["metric"] == AUC) & (means["label"] == "corrected")]
random = means[~means["own"]].groupby(["task", "role"])["change"].mean().rename("random")
excess = means.join(random, on=["task", "role"]).eval("excess = change - random")
pooled = effects[
    effects["task"].isin(sets.KINDS) & (effects["metric"] == AUC) & (effects["label"] == "corrected")
]
p_values = pooled.pivot(index="role", columns="task", values="p_holm")
names = {
    role: f"{role} ({'; '.join(map(p_equals, row.dropna())) or 'no test'})"
    for role, row in p_values.iterrows()
}
results.save_figure(
    sets.set_effects(excess, names),
    "synthesis-F1-sets",
    "A panel per task: marks are all heads of a role ablated together, dashes random sets of as many heads "
    "of the same layers. A mark outside of the dashes is a role whose heads matter more than others do.",
)

# %%
tested = pooled.dropna(subset="p")
more = tested[(tested["p_holm"] < 0.05) & (tested["excess"] > 0)]
finding(
    " ".join(
        f"In tasks with {kind}, ablating all heads of a role lowers the AUC more than random heads of the same layers do for "
        f"{(more['task'] == kind).sum()} of {count} roles."
        for kind, count in tested["task"].value_counts(sort=False).items()
    )
    or "There is nothing to test: no run trained successfully, or no role has a random counterpart."
)

# %%
columns = ["task", "role", "heads", "change", "excess", "low", "high", "p_holm"]
overview = tested.sort_values(["task", "p_holm"])[columns].groupby("task", sort=False).head(6)
overview.style.format(p_formats(overview), precision=3, na_rep="").hide()

# %% [markdown]
# The interval answers: how large is the excess over *one* random set, on other sequences? In the table `synthesis_sets`, `least` is
# about the smallest excess, up or down, outside of 95 % of the random sets. The p-value cannot be below 1 / (1 + number of random
# sets) in one task, which Holm's correction multiplies by the number of roles: few sets cannot show anything.
#
# ## The atlas of heads
#
# The atlas joins the scores and labels of every head with what the other notebooks measured of it: one row per task, fine-tuning
# run and head. Measures of notebooks that did not run are missing.

# %%
scores = {(t, run): compose(results.load_scores(t, run), *choices) for t, run in runs}
roles = agreement.run_roles(scores, results.join_parts("labels", tasks))
table = agreement.atlas_table(roles, tables)
results.save_part(table, "atlas", "heads")
trained_heads = table[[run in trained for run in zip(table["task"], table["seed"], strict=True)]]
trained_heads[["task", "seed", "layer", "head", "match_mean", "syntactic_mean", "ablation_auc"]].head(
    6
).style.format(precision=3).hide()

# %% [markdown]
# ## Do role scores predict the ablation effect of single heads?
#
# We regress the fall in AUC without a head (in standard deviations of the run) on the logarithm of 1 + the head's mean role score,
# both *within layers*: each minus its mean over the heads of the layer. The test permutes heads within each layer: it assumes only that the heads of a layer are exchangeable where
# roles predict nothing.

# %%
data = agreement.role_scores(trained_heads, ROLES, "ablation_auc")
before = [results.load_table(f"roles-{task}-pretrained") for task in pairs]
matching_heads = matching.matching_heads(before, threshold) if before else []
scored = [role for role in together if data[role].notna().any()]
if data["response"].notna().any():
    grid = regression.gridded(regression.standardised(data, "response", scored), scored)
    observed, permuted = regression.products(grid, permutations, seed)
    explained, by_chance = (regression.shares(grid, sums) for sums in (observed, permuted))
    p = (1 + (by_chance >= explained).sum()) / (1 + permutations)
    print(
        f"{explained:.1%} of the variance within layers, {by_chance.mean():.1%} with permuted heads ({p_equals(p)})"
    )

# %% [markdown]
# The table has the same for each role alone, for ranks, without the matching heads, and for the rise of the refitted loss. `share`
# is the explained share of the variance within layers, `share_shuffled` its mean over permutations. `r2_left_out` is the R2 on each
# task with the slopes of the others: below 0, the mean of the layer predicts better than these slopes. The *matching heads* are those of
# [11_matching](11_matching_all.ipynb): before fine-tuning, their match score is above the threshold in every pair task.

# %%
options = {"permutations": permutations, "resamples": resamples, "seed": seed}
refitted = agreement.role_scores(trained_heads, ROLES, "ablation_refitted_loss")
by_auc = regression.regression_table(data, ROLES, together, matching_heads, **options)
by_loss = regression.regression_table(refitted, ROLES, together, **options, variants=[regression.RAW])
slopes = pd.concat([by_auc.assign(response=AUC), by_loss.assign(response=REFITTED)], ignore_index=True)
results.save_table(slopes, "synthesis_regression")
joint = slopes[
    slopes["term"].eq(regression.ALL_ROLES) | (slopes["term"].eq("match") & slopes["model"].eq("alone"))
]
columns = ["response", "variant", "term", "share", "share_shuffled", "p_permutation", "r2_left_out"]
joint[columns].style.format(p_formats(joint[columns]), precision=3, na_rep="").hide()

# %%
rows = by_auc[by_auc["variant"] == regression.RAW].dropna(subset="estimate")
order = theme.in_order(rows["term"])[::-1]
axes = theme.canvas(theme.DOUBLE, 0.26 * len(order) + 1.2)
axes.axvline(0, color="black", linewidth=0.6)
models = [("alone", "role alone", 0.15, "o"), ("together", "roles together", -0.15, "s")]
for model, name, shift, mark in models:
    for row in rows[rows["model"] == model].itertuples():
        filled = model == "alone" and row.p_holm < 0.05
        look = {"markersize": 4.5, "markerfacecolor": colour(row.term) if filled else "white"}
        height, ends = order.index(row.term) + shift, [[row.estimate - row.low], [row.high - row.estimate]]
        axes.errorbar(row.estimate, height, xerr=ends, fmt=mark, color=ink(row.term), **look)
    axes.plot([], [], mark, color="black", markerfacecolor="white", label=name)
axes.set(yticks=range(len(order)), yticklabels=order, ylabel="role")
axes.set_xlabel("slope within layers: fall in AUC (sd) for one sd of log(1 + score); filled: p < .05, Holm")
axes.figure.legend(ncols=2, loc="outside lower center")
results.save_figure(
    axes.figure,
    "synthesis-F3-regression",
    "Slopes of the ablation effect on the score of each role, within layers, with 95 % intervals. A filled "
    "mark right of 0 is a role whose heads have larger effects than permuted heads would.",
)

# %%
joint_terms = (
    by_auc[by_auc["model"] == "together"].drop_duplicates("variant", keep="last").set_index("variant")
)
whole, ranks, rest = (joint_terms.loc[variant] for variant in regression.VARIANTS)
finding(
    "No run trained successfully, so that there is no effect to explain."
    if not trained
    else f"Together, the role scores explain {whole['share']:.0%} of the variance of the ablation effect within layers (permuted heads "
    f"{whole['share_shuffled']:.0%}); with the matching heads left out ({matching.names_of(matching_heads) or 'none'}) they explain "
    f"{rest['share']:.1%} (permuted heads {rest['share_shuffled']:.1%}, {p_equals(rest['p_permutation'])}). Ranks of scores explain "
    f"{ranks['share']:.1%} of the variance of ranks ({ranks['share_shuffled']:.1%}, {p_equals(ranks['p_permutation'])})."
)

# %% [markdown]
# ## Do measures of importance agree?
#
# Spearman's rank correlation over heads, mean over tasks of the runs that trained successfully, with its interval over tasks. Over
# all heads two measures may agree only because whole layers matter; the upper half takes ranks within layers. Gradient importance is not
# divided by the norm of its layer, as in [06_michel_pruning](06_michel_pruning.ipynb).

# %%
by_head = measures.measured(trained_heads)
importance = agreement.importance_agreement(by_head, measures.NAMES)
survival = agreement.survival_agreement(tables.get("pascual_survival"), "finetuned")
parts = [part for part in (importance, survival) if len(part)]
agreements = pd.concat(parts or [importance], ignore_index=True)
results.save_table(agreements, "synthesis_agreement")
chapter_6, ablation = tables.get("michel_importance_agreement"), measures.ABLATION
results.save_claim("S2", measures.order_alike(agreements, ablation, measures.IMPORTANCE, chapter_6))
results.save_claim("S5", measures.order_alike(agreements, ablation, measures.TUNING))

# %%
means = importance[importance["task"] == agreement.POOLED]
results.save_figure(
    agreement.rank_correlations(means),
    "synthesis-F4-importance",
    "Rank correlations over heads between measures of importance, below the diagonal over all heads and "
    "above it within layers. Pale cells are measures that rank heads differently.",
)

# %%
ranked = means[means["statistic"] == "spearman"]
with_auc = ranked[(ranked["first"] == measures.ABLATION) & (ranked["second"] == measures.IMPORTANCE)]["value"]
finding(
    "No run trained successfully, or importance was not measured, so that there are no ranks to compare."
    if not trained or with_auc.isna().all()
    else f"Over {len(ranked)} pairs of measures the rank correlations run from {ranked['value'].min():.2f} to {ranked['value'].max():.2f}; "
    f"that of gradient importance with the fall in AUC is {with_auc.mean():.2f}."
)

# %% [markdown]
# ## Do roles stay the same on another map?
#
# Labels on effective attention, and on the attribution of what heads give to the input tokens, compared with those on attention:
# Cohen's kappa, the same sequences for both ([08_pascual](08_pascual.ipynb) draws it for each task).

# %%
rows = agreements.query("kind == @agreement.ACROSS_MAPS and task == @agreement.POOLED").dropna(subset="value")
results.save_claim("S3", measures.survive_on_attribution(agreements))
rows.pivot(index="role", columns="second", values="value").style.format(precision=2, na_rep="–")

# %%
kappas = rows.groupby("second")["value"].median()
finding(
    "The median kappa over roles: "
    + (
        "; ".join(f"{source} {kappa:.2f}" for source, kappa in kappas.items())
        or "not measured in this profile"
    )
    + "."
)

# %% [markdown]
# In the committed run of glue-minilm, roles predict the ablation effect almost only through the two matching heads. With them, role
# scores explain most of its variance within layers; without them hardly more than with permuted heads. By ranks, where the two heads
# weigh no more than others, they explain little, too. On pairs, what a head attends to hardly tells whether the encoder needs it. On
# single texts it tells more: ablating all syntactic heads, or those of most relations, lowers the AUC by 0.01 to 0.02 more than random
# sets do.
#
# **Try it.** Set `together = ["local", "syntactic", "delimiter"]`, without the match score.
#
# <details><summary>What happens</summary>
#
# In profile glue-minilm the role scores explain far less of the variance: what they explained was the match score of two heads.
#
# </details>
#
# **Try it.** Set `random_sets = 9`.
#
# <details><summary>What happens</summary>
#
# Hardly a role can stand out, since the p-value is at least 1 / (1 + number of sets) in one task, and its square in two.
#
# </details>
#
# **How far to trust it.** The sets are of one fine-tuning run or of few. A set that is ablated leaves the encoder in a state that it
# never met in training, and the larger the set, the farther; random sets of the same size share that. The effect of a single head is
# small and measured on few sequences: its own noise bounds every correlation with it, however good the other measure is.
#
# ## The claims

# %%
claims = judged(results, measures.CLAIMS)
results.save_figure(forest_plot(claims, measures.CLAIMS), "synthesis-claims", FOREST_CAPTION)
Markdown(claims_markdown(claims, measures.CLAIMS))
