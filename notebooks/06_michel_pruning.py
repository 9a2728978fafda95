# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 6b. How many heads can be pruned, in which order, and what is gained?
#
# **Question.** How important is every head by the gradient of the loss; how many heads can go, least important first,
# before the score falls; is a pruned model faster; and do few heads matter from the start of fine-tuning?
#
# Nothing is trained again after pruning. All scores are paired with those of the whole classifier.
#
# *Source: Michel et al. 2019, figures 3, 5 and 6 and table 4. The article prunes BERT-base on MNLI, SST-2, CoLA and MRPC, and translation
# models, which are quoted here as literature alone.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp"]
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours: "models/{task}-{seed}" is filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
scored_n: int | None = 100  # dev sequences that every score is of, None for all
importance_n: int = 100  # training examples that importance is measured on
again_n: int = 50  # of them, so many serve to measure it again after every step
random_orders: int = 2
course_tasks: list[str] = ["toy-mrpc"]  # fine-tuned again, and pruned on the way; [] skips this
fractions: list[float] = [0.1, 0.5, 1.0]  # of the steps of fine-tuning
speed_models: list[str] = ["minilm"]  # what is timed; "BERT-base size" has random weights
speed_batches: list[int] = [1, 16]  # sequences of 128 tokens
speed_rounds: int = 5
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first is pruned
seed: int = 0  # of the sample of sequences, the bootstrap and the swaps
sequences_at_once: int = 32
max_tokens: int = 128
alpha: float = 0.05
resamples: int = 999  # of the bootstrap
permutations: int = 9999  # swaps of answers
device: str = "cpu"
precision: str = "float32"

# %%
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown

from analysis.encoders import load_encoder, predict, single_heads
from analysis.figures import colours, finding, forest_plot, style, theme
from analysis.figures.words import listed
from analysis.papers.michel2019 import course, measures, pruning, speed
from analysis.statistics.answers import labels_of
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.statistics.effects import AUC
from analysis.statistics.leads import constants
from analysis.statistics.training import trained_runs
from analysis.study.results import Results, seeds_of
from analysis.texts import load_examples

# %%
style()
results = Results(profile)
run = seeds_of("finetuned", seeds, checkpoint)[0]
weights = {task: results.weights(task, run, encoder, checkpoint) for task in tasks}
classifiers = {task: load_encoder(folder, device, precision, task) for task, folder in weights.items()}
dev = {task: load_examples(task, source, "dev", scored_n, seed) for task in tasks}
train = {task: load_examples(task, source, "train", importance_n, seed) for task in tasks}
labels = {task: labels_of(examples) for task, examples in dev.items()}
told = {"batch_size": sequences_at_once, "max_tokens": max_tokens}
tests = {"alpha": alpha, "resamples": resamples, "permutations": permutations, "seed": seed}
for task, model in classifiers.items():
    results.record_weights(f"{task}-finetuned-{run}", model.digest)

# %% [markdown]
# ## Importance
#
# The importance of a head is the mean size of the derivative of the loss with respect to its gate. The size is taken for
# each example (the article), each token (its code) or each batch, and may be divided by the norm of the layer (the
# article, after Molchanov 2017).

# %%
importance = {
    task: pruning.cached_importance(model, train[task], results.logits, **told)
    for task, model in classifiers.items()
}
importances = pruning.importance_table({(task, run): found for task, found in importance.items()})
results.save_table(importances, "michel_importance")
removals = results.load_table("michel_ablation")

# %% [markdown]
# Two measures of the same heads: the slope of the loss at the gate, and the fall in AUC when the gate is closed.

# %%
keys = ["task", "seed", "layer", "head"]
both = importances[(importances["granularity"] == "example") & importances["normalised"]]
both = both.join(-removals[removals["metric"] == AUC].set_index(keys)["change"].rename("fall"), on=keys)
by_task = both.groupby("task", sort=False)
figure, grid = theme.rows_of_axes(len(by_task), 3, 1.75, 0.5, sharex=True)
for axes, (task, rows) in zip(grid, by_task, strict=True):
    axes.axhline(0, color="black", linewidth=0.6)
    points = axes.scatter(
        rows["importance"],
        rows["fall"],
        c=rows["layer"],
        s=9,
        cmap="viridis",
        vmin=0,
        vmax=both["layer"].max(),
    )
    axes.set_title(task)
figure.supxlabel("importance (unit norm in each layer)")
figure.supylabel("fall in AUC without the head")
figure.colorbar(points, ax=grid, label=theme.LAYER, aspect=30, pad=0.02, format="%d")
results.save_figure(figure, "michel-F4-importance")

# %%
same_order = [rows["importance"].corr(rows["fall"], "spearman") for _, rows in by_task]
theirs = measures.published("single_heads")[["importance", "change"]].corr("spearman").iloc[0, 1]
finding(
    f"Importance and the fall in AUC without a head have a rank correlation (Spearman) of {np.mean(same_order):.2f}, mean over "
    f"tasks. For BERT-base on MNLI that of importance with the fall of accuracy is {-theirs:.2f} (replication)."
)

# %% [markdown]
# ## Pruning
#
# Heads go in steps of a tenth: least important first; in the order that importance has when it is measured again
# after every step; in the order of the scores with single heads off (of these very sequences, which flatters it); and
# at random.

# %%
pruned = {}
for task, model in classifiers.items():
    removed = predict(model, dev[task], single_heads(model), cache=results.logits, **told)
    measured = importance[task].sel(granularity="example", drop=True)
    orders = {
        measures.IMPORTANCE: pruning.by_importance(measured),
        measures.SCORE: pruning.by_score(removed, labels[task], task),
        measures.REESTIMATED: pruning.by_reestimated_importance(
            model, train[task][:again_n], results.logits, **told
        ),
        **pruning.at_random(model, random_orders),
    }
    steps = pruning.pruned_steps(model, orders)
    pruned[task, run] = predict(model, dev[task], steps, cache=results.logits, **told)

# %% [markdown]
# The curve: the score after each step, and the paired test of its change. The figure shows how much is left of the lead over
# the constant answer, for the runs that trained successfully; bars are the paired intervals.

# %%
curves = pruning.prune_curves(pruned, labels, **tests)
results.save_table(curves[pruning.PRUNING], "michel_pruning")
trained = trained_runs(results.join_parts("finetune", tasks, every=False))
leading = {run: logits for run, logits in pruned.items() if run in trained}
shares = pruning.shares_of_lead(curves, labels, leading)

# %%
looks = {measures.IMPORTANCE: "o-", measures.REESTIMATED: "^-", measures.SCORE: "s-"}
palette = dict(zip(looks, (colours.BLUE, colours.GREEN, colours.VERMILION), strict=True))
by_task = shares.groupby("task", sort=False)
axes_of = ("heads pruned (%)", "share of the lead that is left")
figure, grid = theme.panels(len(by_task), 3, 1.55, *axes_of) if leading else (theme.empty("no lead"), [])
for axes, (task, rows) in zip(grid, by_task, strict=True):
    for height, line in ((1, ":"), (0, "--")):
        axes.axhline(height, color="black", linewidth=0.6, linestyle=line)
    for order, steps in rows[rows["order"].str.startswith(measures.RANDOM)].groupby("order"):
        label = "random orders" if order.endswith(" 0") else None
        axes.plot(100 * steps["share"], steps["kept"], color="0.75", linewidth=0.8, zorder=1, label=label)
    for place, (order, look) in enumerate(looks.items()):
        steps, colour = rows[rows["order"] == order], palette[order]
        axes.plot(100 * steps["share"], steps["kept"], look, color=colour, ms=3, lw=1, label=order)
        beside = 100 * steps["share"] + 1.2 * (place - 1)
        axes.vlines(beside, steps["kept_low"], steps["kept_high"], color=colour, linewidth=0.7, alpha=0.7)
    axes.set_title(f"{task} ({rows['metric'].iloc[0]})")
if leading:
    figure.legend(*grid[0].get_legend_handles_labels(), ncols=4, loc="outside upper center")
results.save_figure(figure, "michel-F5-pruning")

# %% [markdown]
# The largest share of heads such that every step so far loses at most a fifth of the lead over the constant answer, with its
# interval over sequences, and the share that the article prunes "without noticeable loss" from BERT-base (**another model**,
# other data). Shares are of heads, which go in steps of a tenth; a run
# that did not train successfully has none.

# %%
prunable = pruning.prunable_table(pruned, labels, leading, measures.published("prunable"))
results.save_table(prunable, "michel_prunable")
prunable[~prunable["order"].str.startswith("random")].style.format(precision=3, na_rep="–").hide()

# %%
kinds = prunable["order"].str.replace(r" \d+$", "", regex=True)
means = prunable.groupby(kinds)["share"].mean()
finding(
    f"By importance {means[measures.IMPORTANCE]:.0%} of the heads can be pruned (mean over tasks), in random orders "
    f"{means[measures.RANDOM]:.0%}."
)

# %% [markdown]
# Scores of BERT-base in the same order of pruning come from an independent replication.

# %%
half = shares[shares["heads"] == shares["heads"].max() // 2].groupby("order")["kept"].mean()
theirs = measures.published("pruning").set_index(["task", "order", "heads"])["value"]
finding(
    f"With half of the heads pruned by importance {half[measures.IMPORTANCE]:.0%} of the lead is left here (mean over tasks "
    f"with a lead), by single-head scores {half[measures.SCORE]:.0%}. BERT-base on MNLI in a replication (another model on "
    f"other data): score {theirs['mnli', measures.IMPORTANCE, 72]:.2f} and {theirs['mnli', measures.SCORE, 72]:.2f}, of "
    f"{theirs['mnli', measures.IMPORTANCE, 0]:.2f} with all heads."
    if leading
    else "No classifier is ahead of the constant answer: there is nothing to lose."
)

# %% [markdown]
# ## Speed
#
# Half of the heads, drawn at random, are cut out of the weights. Whole and pruned model answer in turns, timed as CPU
# time of one thread. The dashed lines show the ratio of their multiplications; measured gains above it come from memory
# traffic or noise.

# %%
times = speed.cached_speed_table(results.logits, speed_models, speed_batches, speed_rounds)
results.save_table(times, "michel_speed")

# %%
figure, axes = plt.subplots(figsize=(theme.SINGLE, 2.7), layout="constrained")
axes.axhline(1, color="black", linewidth=0.6)
palette = (colours.BLUE, colours.VERMILION, colours.GREEN, colours.ORANGE)
for colour, mark, (model, rows) in zip(palette, "os^D", times.groupby("model", sort=False), strict=False):
    axes.plot(rows["batch"], rows["speedup"], f"{mark}-", color=colour, ms=4, lw=1, label=model)
    axes.vlines(rows["batch"], rows["low"], rows["high"], color=colour, linewidth=1)
    axes.axhline(rows["bound"].iloc[0], color=colour, linestyle="--", linewidth=0.8)
theirs = measures.published("speed")
axes.plot(theirs["batch"], 1 + theirs["gain"], "kx", markersize=5, label="BERT-base on a GPU (article)")
axes.set_xscale("log", base=2)
axes.set_xticks(theirs["batch"], labels=theirs["batch"].astype(str))
axes.set(xlabel="sequences at once (128 tokens each)", ylabel="speed-up (dashed: bound)")
figure.legend(loc="outside upper center")
results.save_figure(figure, "michel-F6-speed")

# %%
told_times = [
    f"{r.model} at {r.batch}: {r.speedup:.2f} [{r.low:.2f}, {r.high:.2f}]" for r in times.itertuples()
]
finding(
    f"Without half of its heads an encoder is so many times as fast: {'; '.join(told_times)}. The arithmetic allows "
    f"{listed(f'{bound:.2f}' for bound in times['bound'].unique())}."
)

# %% [markdown]
# ## The course of fine-tuning
#
# The recipe of the checkpoint is run again, and the classifier kept on the way. Each one is pruned by its own importance.
# If heads mattered alike, the score would fall evenly.

# %%
used = told | {"device": device, "precision": precision}
courses = {
    task: course.course(
        encoder, task, weights[task], source, dev[task], train[task], fractions, results.logits, seed, **used
    )
    for task in course_tasks
    if task in tasks
}
stages = {
    (task, fraction): found.sel(fraction=fraction)
    for task, found in courses.items()
    for fraction in found["fraction"].values
}
on_the_way = pruning.prune_curves(stages, labels, ("task", "fraction"), **tests)
columns = ["task", "fraction", "heads", "metric", "value", "low", "high"]
results.save_table(on_the_way[columns], "michel_dynamics")

# %%
shown = on_the_way[on_the_way["metric"] == "accuracy"].groupby("task", sort=False)
axes_of = ("heads pruned (%)", "accuracy on the dev sequences")
reason = "no task was fine-tuned again"
figure, grid = theme.panels(len(shown), 2, 2.1, *axes_of) if courses else (theme.empty(reason), [])
for axes, (task, rows) in zip(grid, shown, strict=True):
    axes.axhline(constants(labels)[task], linestyle="--", color="black", linewidth=0.6)
    palette = plt.colormaps["viridis_r"](np.linspace(0.05, 1, len(fractions)))
    for place, (fraction, steps) in enumerate(rows.groupby("fraction")):
        across, colour = 100 * steps["heads"] / steps["heads"].max(), palette[place]
        look = {"marker": "os^Dvp<>"[place % 8], "color": colour, "label": f"{fraction:.0%}"}
        axes.plot(across, steps["value"], markersize=3, linewidth=1, **look)
        beside = across + 0.8 * (place - len(fractions) / 2)
        axes.vlines(beside, steps["low"], steps["high"], color=colour, linewidth=0.7, alpha=0.7)
    axes.set_title(task)
if courses:
    handles = grid[0].get_legend_handles_labels()
    figure.legend(*handles, ncols=6, loc="outside upper center", title="of the fine-tuning steps")
results.save_figure(figure, "michel-F7-course")

# %%
told_course = []
for (task, fraction), steps in on_the_way[on_the_way["metric"] == "accuracy"].groupby(["task", "fraction"]):
    whole, half = (
        steps.loc[steps["heads"] <= steps["heads"].max() * part, "value"].iloc[-1] for part in (0, 0.5)
    )
    told_course.append(f"{task} at {fraction:.0%}, {whole:.2f} whole, {half:.2f} with half of the heads")
answers = listed(f"{value:.2f} ({task})" for task, value in constants(labels).items() if task in courses)
finding(f"Accuracy on the way: {'; '.join(told_course) or 'none'}. The constant answer gives {answers}.")

# %% [markdown]
# Published for translation (IWSLT, epochs 1, 2, 10 and 40; literature): in epochs 1 and 2 the score falls linearly with the
# heads pruned; from epoch 10 on up to 40 % of the heads can go within 85 to 90 % of the score.
#
# ## The claims
#
# Each sentence of the article that can be measured here. Intervals draw sequences again; those of correlations draw heads, those
# of times are over rounds. A loss of at most a fifth of the classifier's lead over the constant answer counts as none.

# %%
tolerated, transfer = (results.load_table(f"michel_{name}") for name in ("tolerated", "transfer"))
means, gains = pruning.mean_scores(leading, labels), pruning.later_gain(courses, labels)
frames = measures.measures(tolerated, transfer, prunable, means, times, gains)
claims = claim_table(measures.CLAIMS, frames)
results.save_table(claims, "claims-michel2019")
results.save_figure(forest_plot(claims, measures.CLAIMS), "michel-claims")

# %%
Markdown(claims_markdown(claims, measures.CLAIMS))

# %% [markdown]
# *How far to trust it.* The dev sequences that are scored also chose the epoch of fine-tuning. A lost head may be made up
# for by others in one way and not in another: what can go alone need not go together, which the pruning curves show. The
# training examples that importance is measured on were seen in fine-tuning, as in the article.
#
# ## Translation (literature)
#
# Changes of BLEU with one head left in a layer, as the article prints them. Nothing in this study translates.

# %%
literature = measures.published("translation")
literature = literature.pivot(index="layer", columns=["table", "attention"], values="change_bleu")
literature.columns = literature.columns.map(", ".join)
Markdown(literature.round(2).to_markdown())
