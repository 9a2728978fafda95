# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 6, continued. How many heads can be pruned?
#
# That each head alone can go does not mean that many can go together. Michel et al. (2019) prune the heads of fine-tuned
# BERT-base in order of an importance that a single backward pass estimates: 40 % of all heads can go on MNLI, 60 % on SST-2 and
# 50 % on CoLA and MRPC "without noticeable loss" (figures 3 and 6). A model without half of its heads answers 17.5 % faster in
# batches of 16 and of 64 (table 4). Of a translation model they report that heads matter about equally in the first two epochs
# of training, and that from the tenth epoch on 40 % can go (figure 5).
#
# We ask the same of another encoder: how important is every head, in which order can heads be pruned and how many, how much
# faster is a pruned encoder, and do few heads matter from the start of fine-tuning?
#
# *Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", sections 4 to 6 (claims M1 to M8). Heads are pruned
# without any training after it, and all scores are compared with those of the whole classifier on the same sequences. Layers and
# heads count from 0 (the paper's from 1).*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-sst-2"]  # tasks whose classifiers are pruned
scored_n: int | None = 60  # dev sequences that every score is of, None for all
importance_n: int = 40  # training examples that importance is measured on
fractions: list[float] = [0.1, 0.5, 1.0]  # of the steps of fine-tuning

# seldom changed
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours: "models/{task}-{seed}" is filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
again_n: int = 20  # the first of these serve to measure it again after every step
random_orders: int = 2
course_tasks: list[str] = ["toy-sst-2"]  # fine-tuned again, and pruned on the way; [] skips this
speed_models: list[str] = ["minilm"]  # what is timed; "BERT-base size" has random weights
speed_batches: list[int] = [1, 16]  # sequences of 128 tokens
speed_rounds: int = 5
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first is pruned
seed: int = 0  # of the sample of sequences, the bootstrap and the swaps
max_tokens: int = 128
alpha: float = 0.05
resamples: int = 999  # of the bootstrap
permutations: int = 9999  # swaps of answers
device: str = "cpu"

# %%
import seaborn as sns
from IPython.display import Markdown

from analysis.encoders.classifiers import load_classifier
from analysis.encoders.interventions import labels_of, predict, single_heads
from analysis.figures import theme
from analysis.figures.claims import FOREST_CAPTION, forest_plot
from analysis.figures.colours import GREEN
from analysis.figures.lines import curves, name_series
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.michel2019 import measures, pruning, speed
from analysis.statistics.claim_texts import bracketed
from analysis.statistics.training import constants, trained_runs
from analysis.study.claim_pages import claims_markdown
from analysis.study.claims import judged
from analysis.study.results import Results, seeds_of
from analysis.texts.glue import load_examples
from analysis.texts.tasks import TOY_TASKS

# %%
style()
results = Results(profile)
run = seeds_of("finetuned", seeds, checkpoint)[0]
weights = {task: results.weights(task, run, encoder, checkpoint) for task in tasks}
classifiers = {task: load_classifier(folder, task, device) for task, folder in weights.items()}
dev = {task: load_examples(task, source, "dev", scored_n, seed) for task in tasks}
train = {task: load_examples(task, source, "train", importance_n, seed) for task in tasks}
labels = {task: labels_of(examples) for task, examples in dev.items()}
options = {"batch_size": 32, "max_tokens": max_tokens}
tests = {"alpha": alpha, "resamples": resamples, "permutations": permutations, "seed": seed}
for task, classifier in classifiers.items():
    results.record_weights(f"{task}-finetuned-{run}", classifier.digest)

# %% [markdown]
# ## How important is every head?
#
# The importance of head $h$ is the mean size of the derivative of the loss with respect to its gate $\xi_h$,
#
# $$ I_h = \mathbb{E}_x \left| \frac{\partial \mathcal{L}(x)}{\partial \xi_h} \right|
#        = \mathbb{E}_x \left| \mathrm{Att}_h(x)^\top \frac{\partial \mathcal{L}(x)}{\partial \mathrm{Att}_h(x)} \right|, $$
#
# The size is taken of each example (the paper), of each token (the authors' code) or of each batch; all three come from one
# backward pass. To order heads for pruning, the paper divides importances by their norm in the layer (after Molchanov et al. 2017).

# %%
importance = {
    task: pruning.cached_importance(classifier, train[task], results.logits, **options)
    for task, classifier in classifiers.items()
}
importances = pruning.importance_table({(task, run): values for task, values in importance.items()})
results.save_table(importances, "michel_importance")

# %% [markdown]
# Importance is the slope of the loss at the open gate. Does it predict what happens when the gate is closed
# ([06_michel_ablation](06_michel_ablation.ipynb))? Each point is a head; its importance is not divided by the norm of the layer, which
# would make layers equal.

# %%
effects = results.load_table("michel_effects")
raw = importances[(importances["granularity"] == "example") & ~importances["normalised"]]
falls = effects[effects["metric"] == "auc"].rename(columns={"effect": "fall in AUC"})
heads = raw.merge(falls, on=["task", "seed", "layer", "head"])
columns = theme.even_columns(len(tasks), 3)
panels = sns.relplot(
    heads, x="importance", y="fall in AUC", hue="layer", palette="viridis", legend="full", col="task",
    col_wrap=columns, height=1.8, aspect=0.47 * theme.DOUBLE / columns, s=15, facet_kws={"sharey": False},
)  # fmt: skip
panels.set_titles("{col_name}").refline(y=0, color="black", linewidth=0.6)
panels.set(xscale="log")
results.save_figure(
    panels.figure,
    "michel-importance",
    "Each point is a head at its importance and at the fall in AUC when it is ablated. A cloud without a "
    "slope means that the gradient does not say which heads the answers need.",
)

# %%
agreement = pruning.importance_agreement(importances, effects)
results.save_table(agreement, "michel_importance_agreement")
mean = agreement.iloc[-1]
finding(
    "The importance of a head and the fall in AUC when it is ablated have a rank correlation (Spearman) of "
    f"{bracketed(mean['value'], mean['low'], mean['high'])}, mean over tasks, with its 95 % interval over tasks where there are several."
)

# %%
agreement.style.format(precision=2, na_rep="").hide()

# %% [markdown]
# For BERT-base on MNLI, importance and the fall of accuracy have a rank correlation of 0.40 (independent replication).
#
# *Try it.* Change `"example"` to `"token"` in the cell of the figure. Which heads gain importance?
# <details><summary>What happens</summary>
#
# Within a sequence, derivatives of different signs no longer cancel, so that heads that act on many tokens in opposite directions
# gain importance, and some change places.
# </details>

# %% [markdown]
# ## How many heads can be pruned, and in which order?
#
# Heads are pruned in ten steps. We compare four orders: by importance, least important first; by importance that is measured
# again after every step; by the score of the classifier when the head is ablated alone, best score first (on the very sequences
# that are scored, which favours this order); and at random.


# %%
def orders_of(task):
    """The orders in which the heads of a classifier are pruned, by name."""
    classifier, dev_set = classifiers[task], dev[task]
    ablated = predict(classifier, dev_set, single_heads(classifier), cache=results.logits, **options)
    by_example = importance[task].sel(granularity="example", drop=True)
    examples = train[task][:again_n]
    return {
        measures.IMPORTANCE: pruning.by_importance(by_example),
        measures.SCORE: pruning.by_score(ablated, labels[task], task),
        measures.REESTIMATED: pruning.by_reestimated_importance(
            classifier, examples, results.logits, **options
        ),
        **pruning.at_random(classifier, random_orders),
    }


# %%
logits = {}
for task, classifier in classifiers.items():
    steps = pruning.pruned_steps(classifier, orders_of(task))
    logits[task, run] = predict(classifier, dev[task], steps, cache=results.logits, **options)
scores = pruning.prune_curves(logits, labels, **tests)
results.save_table(scores[pruning.PRUNING], "michel_pruning")

# %% [markdown]
# Scores of different tasks are comparable as shares of the classifier's lead over the constant answer: 1 is the whole
# classifier, and 0 the constant answer. Only runs that trained successfully have a lead. Random orders are averaged; intervals are
# 95 %. Where the lead is so small that a share goes beyond the axis, a cross stands at its edge. For tasks of GLUE, green marks are
# BERT-base (independent replication: MNLI and SST-2, accuracy above the constant answer), pruned by importance (full) and by
# single-head scores on MNLI (open).

# %%
trained = trained_runs(results.join_parts("finetune", tasks, every=False))
trained_logits = {key: values for key, values in logits.items() if key in trained}
shares = pruning.shares_of_lead(scores, labels, trained_logits)
shares["order"] = measures.order_kinds(shares["order"])
keys, values = ["task", "order", "heads"], ["share", "kept", "kept_low", "kept_high"]
means = shares.groupby(keys, sort=False)[values].mean().reset_index()

# %%
plotted = means.rename(columns={"kept_low": "low", "kept_high": "high"})
edges = -0.5, 1.5
outside = plotted[~plotted["kept"].between(*edges)]
plotted[["kept", "low", "high"]] = plotted[["kept", "low", "high"]].clip(*edges)
if trained_logits:
    panels = curves(plotted, "share", "kept", series="order", column="task", columns=3, height=1.8)
    panels.set_axis_labels("share of heads pruned", "share of the\nlead that is left")
    cross = {"color": "black", "markersize": 5, "zorder": 3, "label": "beyond the axis"}
    for task, axes in panels.axes_dict.items():
        axes.axhline(0, color="black", linewidth=0.6)
        beyond = outside[outside["task"] == task]
        axes.plot(beyond["share"], beyond["kept"].clip(*edges), "x", **cross)
        if not {*tasks} <= {*TOY_TASKS}:  # made-up texts have no published values
            for order, face in ((measures.IMPORTANCE, GREEN), (measures.SCORE, "white")):
                points = measures.published_course(task if task == "sst-2" else "mnli", order)
                name = f"BERT-base by {order}"
                axes.plot(
                    points["share"], points["kept"], "D", color=GREEN, mfc=face, markersize=3, label=name
                )
        axes.set(ylim=(edges[0] - 0.1, edges[1] + 0.1))
    name_series(panels)
    figure = panels.figure
else:
    figure = theme.empty("no run trained successfully")
results.save_figure(
    figure,
    "michel-F3-pruning",
    "Follow the share of the lead that is left as heads are pruned, by order. The longer a line stays near "
    "1, the more heads can go; random orders show what any choice costs (Figures 3 and 6 of Michel et al.).",
)

# %% [markdown]
# How many heads can go "without noticeable loss"? We count steps until one of them loses more than a fifth of the lead: `share` is
# estimated, and for `shown` the whole interval of every step so far lies above that margin. The last column is the share that the
# paper reports for BERT-base.

# %%
prunable = pruning.prunable_table(logits, labels, trained_logits)
results.save_table(prunable, "michel_prunable")
results.save_claim("M5", measures.prunable_share(prunable))
results.save_claim("M6", measures.gain_of_importance(pruning.mean_scores(trained_logits, labels)))
columns = ["task", "order", "share", "low", "high", "shown", "bert_base_published"]
orders = prunable["order"].isin([measures.IMPORTANCE, measures.SCORE, measures.REESTIMATED])
prunable.loc[orders, columns].style.format(precision=2, na_rep="–").hide()

# %%
steps = prunable.groupby(measures.order_kinds(prunable["order"]))["share"].mean()
finding(
    f"By importance an estimated {steps[measures.IMPORTANCE]:.0%} of the heads can be pruned, by single-head scores "
    f"{steps[measures.SCORE]:.0%} and in random orders {steps[measures.RANDOM]:.0%} (means over trained runs)."
    if trained_logits
    else "No run trained successfully, so there is no lead that pruning could take."
)

# %% [markdown]
# An independent replication on BERT-base and MNLI prunes half of the heads: the accuracy falls from 0.84 to 0.82 by importance
# and to 0.78 by single-head scores.
#
# *Try it.* Set `importance_n = 10` and `again_n = 10`. How many examples does importance need?
# <details><summary>What happens</summary>
#
# In profile offline ten examples rank the heads much as forty do (rank correlation 0.8 to 0.9). Pruning by them goes either way: with
# `scored_n = 40`, an estimated 29 % of the heads of toy-mrpc can be pruned, instead of 39 %, and 50 % of those of toy-sst-2, instead of
# 19 %. The intervals are wider than these differences.
# </details>

# %% [markdown]
# ## How much faster is a pruned encoder?
#
# Half of the heads, drawn at random, are cut out of the weight matrices. The whole and the pruned encoder answer in turns on
# sequences of 128 tokens, and we compare the CPU time of one thread. The dashed line is the ratio of their multiplications,
#
# $$ \frac{12 + 2T/d}{12 + 2T/d - \frac{1}{2}(4 + 2T/d)}, $$
#
# for $T$ tokens and hidden size $d$: in units of $d^2$, the feed-forward part of a layer takes 8 multiplications per token, and
# attention takes 4 for its matrices and $2T/d$ for the products of queries, keys and values. Half of the heads take half of
# the latter two. Gains above the line come from memory traffic or noise.

# %%
times = speed.cached_speed_table(results.logits, speed_models, speed_batches, speed_rounds)
results.save_table(times, "michel_speed")
results.save_claim("M7", measures.speed_of_half(times))

# %%
gpu = measures.published("speed")
axes = theme.canvas(theme.SINGLE, 3)
for (model, rows), mark in zip(times.groupby("model", sort=False), "os^D", strict=False):
    ends = [rows["speedup"] - rows["low"], rows["high"] - rows["speedup"]]
    line, *_ = axes.errorbar(rows["batch"], rows["speedup"], ends, fmt=f"{mark}-", markersize=4, label=model)
    bound = {"linestyle": "--", "linewidth": 0.8, "label": f"{model}, ratio of multiplications"}
    axes.axhline(rows["bound"].iloc[0], color=line.get_color(), **bound)
if not {*tasks} <= {*TOY_TASKS}:
    axes.plot(gpu["batch"], 1 + gpu["gain"], "kx", markersize=5, label="BERT-base on a GPU (Michel et al.)")
axes.set_xscale("log", base=2)
axes.set_xticks(gpu["batch"], labels=gpu["batch"].astype(str))
axes.set(xlabel="sequences per batch", ylabel="speed-up (times)")
axes.figure.legend(loc="outside upper center")
results.save_figure(
    axes.figure,
    "michel-T4-speed",
    "Compare the speed-up at batch 1 with that in larger batches, and with the ratio of multiplications. On the paper's GPU the "
    "gain depends on the batch: does it here, on one thread (Table 4 of Michel et al.)?",
)

# %%
row = times[times["model"] == speed_models[0]].iloc[-1]
finding(
    f"Removing half of the heads makes {row['model']} {row['speedup']:.2f} [{row['low']:.2f}, {row['high']:.2f}] times faster at "
    f"batch {row['batch']}; by multiplications it would be {row['bound']:.2f}."
)

# %% [markdown]
# In the committed run of glue-minilm, MiniLM is about 1.2 times faster from batch 4 on, and between 1.1 and 1.2 times at batch 1, where
# times vary most. BERT-base on a GPU gains 2 % at batch 1 and 18 % at batch 16: a processor with one thread is busy at any batch size, and a
# GPU is not.

# %% [markdown]
# ## Do few heads matter from the start of fine-tuning?
#
# We save the classifier at several points of training and prune each copy. If all heads matter equally, its accuracy falls in a
# straight line; if few do, the line is flat and drops at the end.

# %%
courses = {
    task: pruning.course(
        encoder, task, weights[task], source, dev[task], train[task], fractions, results.logits, seed,
        device=device, **options,
    )
    for task in tasks
    if task in course_tasks
}  # fmt: skip
on_the_way = pruning.prune_curves(pruning.stages(courses), labels, ("task", "fraction"), **tests)
columns = ["task", "fraction", "heads", "metric", "value", "low", "high"]
results.save_table(on_the_way[columns], "michel_dynamics")
results.save_claim("M8", measures.gain_in_evenness(pruning.later_gain(courses, labels)))

# %% [markdown]
# One line for each share of the fine-tuning steps. The horizontal line is the accuracy of the constant answer.

# %%
accuracy = on_the_way[on_the_way["metric"] == "accuracy"]
if courses:
    stages = accuracy.assign(steps=accuracy["fraction"].map("{:.0%}".format))
    panels = curves(stages, "heads", "value", series="steps", column="task", columns=2, height=2.1)
    for task, axes in panels.axes_dict.items():
        axes.axhline(constants(labels)[task], color="black", linewidth=0.6, label="constant answer")
    name_series(panels, "share of fine-tuning steps")
    results.save_figure(
        panels.set_axis_labels("heads pruned", "accuracy (proportion)").figure,
        "michel-F5-course",
        "Each line is the classifier after a share of the training, pruned by its own importance. A straight "
        "line means that all heads matter equally, a flat one that drops late that few do (Figure 5 of Michel "
        "et al.).",
    )

# %%
by_fraction = accuracy.groupby(["heads", "fraction"])["value"].mean().unstack().reindex(columns=fractions)
whole, half = (by_fraction.reindex([count]).iloc[0] for count in (0, accuracy["heads"].max() // 2))
first, last = min(fractions), max(fractions)
finding(
    f"With half of the heads pruned, accuracy is {half[first]:.2f} after {first:.0%} of the steps (whole classifier: "
    f"{whole[first]:.2f}) and {half[last]:.2f} at the end ({whole[last]:.2f})."
    if courses
    else "No task was fine-tuned again."
)

# %% [markdown]
# *Try it.* Set `fractions = [0.02, 0.1, 0.5, 1.0]` (where `course_tasks` names a task). What is the line after a fiftieth of the steps, and
# why does claim M8 not use it?
# <details><summary>What happens</summary>
#
# The classifier is close to the constant answer: there is no lead that pruning could take, and its line wanders about that answer. That is
# why claim M8 starts at the first classifier that trained successfully. (Profile glue-minilm has a line after a hundredth of the steps.)
# </details>

# %% [markdown]
# ## Literature: translation
#
# The paper's other half is about translation, and no notebook here translates. Table 1 ablates single heads in the encoder of an
# English-to-French transformer with 36.05 BLEU. Eight of its 96 heads change BLEU significantly (p < 0.01), and four of these
# raise it:
#
# | head (layers and heads from 0) | 0-5 | 0-7 | 1-3 | 1-10 | 2-13 | 4-0 | 4-9 | 5-2 |
# |---|---|---|---|---|---|---|---|---|
# | change of BLEU | -0.53 | -0.33 | +0.20 | +0.15 | +0.24 | -0.31 | +0.21 | -0.31 |
#
# All other heads lie between -0.19 and +0.15. Below are the changes of BLEU with one head left in a layer (table 2: best head on the
# scored set; table 5: head chosen on other data).

# %%
translation = measures.published("translation")
translation = translation.pivot(index="layer", columns=["table", "attention"], values="change_bleu")
translation.style.format(precision=2)

# %% [markdown]
# **How far to trust it.** The dev sequences that are scored also chose the epoch of fine-tuning, and importance is measured on
# training examples that fine-tuning saw, as in the paper. Heads go in steps of a tenth, so the share that can be pruned is
# known to a tenth at best. Times are of one processor.
#
# ## The claims
#
# A loss of at most a fifth of the classifier's lead over the constant answer counts as none. M1, M3 and M5 say how many heads are
# *estimated* to lose no more; beside it stands how many are *shown* to. The times of M7 are of one machine, so it has no verdict.

# %%
claims = judged(results, measures.CLAIMS)
results.save_figure(forest_plot(claims, measures.CLAIMS), "michel-claims", FOREST_CAPTION)
Markdown(claims_markdown(claims, measures.CLAIMS))
