# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 6. Are sixteen heads better than one? Ablating heads
#
# Michel et al. (2019) ablate the heads of fine-tuned BERT-base one at a time. The accuracy on MNLI stays between 0.824 and 0.838
# for every one of the 144 heads, and for most of them at the 0.834 of the whole model (figure 1). Then they ablate all heads of
# a layer but the best one: the accuracy falls by at most 0.96 points, and in no layer significantly (table 3). Effects of heads
# on the matched and the mismatched dev set of MNLI correlate with $r = 0.68$ (figure 2). They conclude that most heads are
# redundant at test time.
#
# We ask the same three questions of another encoder, and two that the paper does not: **how large a loss could the test have
# missed, and do heads that matter for the loss matter for the answers as well?**
#
# *Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 3 (claims M1, M3 and M4, which
# [06_michel_pruning](06_michel_pruning.ipynb) judges). Layers and heads count from 0 here.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2"]  # tasks whose classifiers lose heads
scored_n: int | None = 60  # dev sequences that every change is measured on, None for all
chosen_n: int = 20  # training examples on which the remaining head of a layer is chosen
alpha: float = 0.05  # level of the tests

# seldom changed
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours: "models/{task}-{seed}" is filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
# Two data sets of one question: effects of the first one's model on both are compared. The dev set of a task, or
# another split of it: "mnli dev_mismatched".
transfer_sets: list[str] = ["toy-mrpc", "toy-qqp"]
seeds: list[int] = [0, 1]  # of the fine-tuning runs
ablated_runs: int = 1  # runs of each task in which single heads are ablated; later sections take the first
seed: int = 0  # of the sample of sequences, the bootstrap and the swaps
max_tokens: int = 128
resamples: int = 999  # of the bootstrap
permutations: int = 9999  # swaps of answers
device: str = "cpu"

# %%
import matplotlib.pyplot as plt
from matplotlib.colors import SymLogNorm

from analysis.encoders.classifiers import load_classifier
from analysis.encoders.interventions import all_but_one, labels_of, predict, single_heads
from analysis.encoders.measures import positive_class
from analysis.figures import theme
from analysis.figures.colours import GREEN
from analysis.figures.edits import rank_panels
from analysis.figures.lines import curves, name_series
from analysis.figures.points import name_points
from analysis.figures.theme import head_grid, style
from analysis.figures.words import finding
from analysis.papers.michel2019 import ablation, measures
from analysis.papers.michel2019.measures import main_metric, published
from analysis.statistics.training import trained_runs
from analysis.study.results import Results, seeds_of
from analysis.texts.glue import load_examples
from analysis.texts.tasks import TOY_TASKS

# %%
style()
results = Results(profile)
runs = [(task, run) for task in tasks for run in seeds_of("finetuned", seeds, checkpoint)[:ablated_runs]]
first_runs = [(task, seeds[0]) for task in tasks]
weights = {run: results.weights(*run, encoder, checkpoint) for run in runs}
dev = {task: load_examples(task, source, "dev", scored_n, seed) for task in tasks}
train = {task: load_examples(task, source, "train", chosen_n, seed) for task in tasks}
labels = {task: labels_of(examples) for task, examples in dev.items()}
tests = {"alpha": alpha, "resamples": resamples, "permutations": permutations, "seed": seed}

# %% [markdown]
# ## What happens when one head is ablated?
#
# Multi-head attention is a sum over heads. Ablating head $h$ sets its gate $\xi_h$ to 0 and leaves all others at 1,
#
# $$ \mathrm{MHAtt}(x) = \sum_h \xi_h\, \mathrm{Att}_h(x), \qquad \Delta_h = m(\xi_h = 0) - m(\xi_h = 1), $$
#
# where $m$ is a metric on the dev set. Nothing is trained again, and both terms are measured on the same sequences.


# %%
def predict_run(run, examples, ablations):
    """Logits (intervention, sequence, class) of a fine-tuned classifier: whole ("none"), then with each ablation."""
    classifier = load_classifier(weights[run], run[0], device)
    options = {"max_tokens": max_tokens, "cache": results.logits}
    return predict(classifier, examples, ablations(classifier), **options)


single = {run: predict_run(run, dev[run[0]], single_heads) for run in runs}
for (task, run), logits in single.items():
    results.record_weights(f"{task}-finetuned-{run}", logits.attrs["weights_sha256"])

# %% [markdown]
# The change of accuracy needs no more than these logits. Here are the seven heads of one run whose ablation lowers it most.

# %%
task, run = runs[0]
correct = single[task, run].argmax("class") == labels[task]
accuracy = correct.mean("sequence").to_series()
change = 100 * (accuracy.drop("none") - accuracy["none"])
change.nsmallest(7).rename(f"change of accuracy (points), {task}").to_frame().T.style.format(precision=1)

# %% [markdown]
# `all_changes` does this for every run and metric, and adds paired tests and intervals: McNemar's exact test for accuracy, a
# paired $t$ test for the loss (cross entropy in nats), and for F1 and Matthews' correlation random swaps of the answers with
# and without the head. `p_by` is corrected for the number of heads (Benjamini and Yekutieli).

# %%
changes = ablation.all_changes(single, labels, **tests)
main = main_metric(changes).assign(points=lambda rows: 100 * rows["change"])

# %% [markdown]
# One column for each task, in its first run. Above: a dot marks heads with $p < \alpha$, a ring those that remain after
# correction; colours are linear up to one point and logarithmic beyond. Below: the histogram that the paper prints.

# %%
reach = max(2.0, main["points"].abs().max())
norm = SymLogNorm(1, vmin=-reach, vmax=reach)
shape = {"figsize": (theme.DOUBLE, 3.3), "height_ratios": (3, 2), "layout": "constrained"}
figure, grid = plt.subplots(2, len(tasks), squeeze=False, sharey="row", **shape)
plotted = main[main["seed"] == seeds[0]].groupby("task", sort=False)
for (maps, bars), (task, rows) in zip(grid.T, plotted, strict=True):
    mesh = theme.layer_head_mesh(maps, head_grid(rows, "points"), cmap="vlag_r", norm=norm)
    maps.plot("head", "layer", "k.", data=rows[rows["p"] < alpha], markersize=3, label=f"p < {alpha:g}")
    ring = {"fillstyle": "none", "markersize": 6, "label": f"corrected p < {alpha:g}"}
    maps.plot("head", "layer", "ko", data=rows[rows["p_by"] < alpha], **ring)
    title = f"{task}: {rows['metric'].iloc[0]} {100 * rows['baseline'].iloc[0]:.1f}"
    maps.set(title=title, xlabel=theme.HEAD)
    bars.hist(rows["points"], bins=20, color="0.4")
    bars.locator_params(axis="x", nbins=4)
grid[0, 0].set(ylabel=theme.LAYER)
grid[1, 0].set(ylabel="heads")
figure.colorbar(mesh, ax=grid[0], label="change of the\nmetric (points)", format="{x:g}")
figure.supxlabel("change of the metric (points)")
figure.legend(*grid[0, 0].get_legend_handles_labels(), ncols=2, loc="outside upper center")
results.save_figure(
    figure,
    "michel-F1-heads",
    "Above, red cells are heads whose ablation lowers the score, with dots and rings for tests; below, all "
    "heads as a histogram. A peak at zero with a thin tail means that few heads matter one at a time "
    "(Figure 1 of Michel et al.).",
)

# %%
summary = ablation.overview(changes, alpha)
results.save_table(summary, "michel_ablation_overview")
counts = main_metric(summary)[["heads", "lost", "lost_by"]].sum()
finding(
    f"Ablating one head changes the score by {main['points'].min():+z.1f} to {main['points'].max():+z.1f} points. It falls "
    f"significantly in {counts['lost']} of {counts['heads']} cases (heads of all runs), and in {counts['lost_by']} after correction."
)

# %%
columns = ["task", "seed", "baseline", "heads", "lost", "lost_by", "lowest", "least"]
main_metric(summary)[columns].style.format(precision=3).hide()

# %% [markdown]
# A test that finds no loss does not show that there is none. `least` is the smallest loss that the test finds with a power of 80 %
# in this many sequences (median over heads); a smaller one is more often missed.

# %% [markdown]
# In the committed run of glue-minilm, ablating most heads changes the accuracy by less than the test can find. Heads 2-9 and
# 1-1, which find the same word in the pair of [02_score](02_score.ipynb), stand out, but not equally in every fine-tuning run:
# without head 2-9, the accuracy falls by 0, 5 and 17 points in the three runs of MRPC and by 10, 4 and 9 points in those of
# QNLI; without head 1-1, by 2, 5 and 9 points and by 1, 0 and 7. By the AUC of the next section, they have the first two ranks
# in all nine runs on pairs, and ranks from 21 to 61 on SST-2. Ablating the most important head of BERT-base lowers the accuracy
# on MNLI by 1.5 points (independent replication).

# %% [markdown]
# *Try it.* Set `scored_n = 25`. What happens to `least`, and to the number of dots?
# <details><summary>What happens</summary>
#
# `least` grows about as the sequences get fewer, to some 0.3, and fewer heads have a dot, although one answer is 4 points now: McNemar's
# test sees only the answers that change, and there are fewer of them.
# </details>

# %% [markdown]
# ## Do heads that matter for the loss matter for the answers?
#
# An ablation does two things: it removes what the head contributes, and it shifts all logits towards one class. Loss and
# accuracy see both. The AUC, the probability that a sequence of the positive class gets higher log odds $s$ than another one,
#
# $$ \mathrm{AUC} = P(s^+ > s^-), \qquad s = \log \frac{p}{1 - p}, $$
#
# does not change when the same number is added to every $s$. Neither does the *refitted loss*, for which slope and bias of the
# logits are fitted again on the other half of the sequences. Each point below is a head of the first run. Black heads have an effect
# on the AUC (its 95 % interval lies above 0), and the first of them have names.

# %%
effects = ablation.effects_by_metric(single, labels)
results.save_table(effects, "michel_effects")
results.save_table(changes[ablation.ABLATION], "michel_ablation")
first_effects = effects[effects["seed"] == seeds[0]]
results.save_figure(
    rank_panels(first_effects, first_effects["task"].unique()),
    "michel-ranks",
    "Black heads lower the AUC when they are ablated, grey ones have no measurable effect on it. Grey heads "
    "fill the square, since their ranks are noise; a black head off the diagonal also shifts the answers "
    "towards one class.",
)

# %%
ranks = first_effects.pivot(index=["task", "layer", "head"], columns="metric", values="rank")
agreement = ranks.groupby("task").corr("spearman").xs("auc", level="metric").mean()
finding(
    f"Ranks of heads by their effect on the AUC have a rank correlation of {agreement['loss']:.2f} with those by the loss, "
    f"{agreement['accuracy']:.2f} by accuracy and {agreement['refitted loss']:.2f} by the refitted loss (means over tasks)."
)

# %% [markdown]
# Most heads have no measurable effect, so their ranks are noise. Of those with one, some shift the answers towards one class: they
# are off the diagonal because the loss sees the shift and the AUC does not. In the committed run of glue-minilm, head 3-9 is third
# by the AUC of MRPC and 38th by the loss, and head 3-3 fourth and 64th in QNLI.

# %% [markdown]
# *Try it.* Replace `single_heads` above by `lambda model: single_heads(model, "uniform")`: an ablated head then attends to all
# tokens equally, as in [07_kovaleva_disable](07_kovaleva_disable.ipynb). Are the same heads important?
# <details><summary>What happens</summary>
#
# In glue-minilm, effects are about as large on average, but they belong to other heads. Head 2-9 keeps its effect on the loss of
# MRPC (0.03 nats), and head 2-4, which can be ablated without harm, gets the largest (0.06): an output that says the same for
# every token can disturb the layers above more than no output.
# </details>

# %% [markdown]
# ## Is one head of a layer enough?
#
# All heads of a layer are ablated but one. The best of them can be chosen on the sequences that are scored (table 3 of the
# paper), which favours it by chance, or on training examples (table 6).

# %%
alone = {run: predict_run(run, dev[run[0]], all_but_one) for run in first_runs}
alone_on_train = {run: predict_run(run, train[run[0]], all_but_one) for run in first_runs}
best_on_train = {
    (task, run): ablation.best_heads(logits, labels_of(train[task]), task)
    for (task, run), logits in alone_on_train.items()
}
left = ablation.all_but_one_table(alone, labels, best_on_train, **tests)
results.save_table(left[ablation.ALL_BUT_ONE], "michel_all_but_one")
results.save_table(ablation.overview(left, alpha), "michel_all_but_one_overview")

# %% [markdown]
# Grey dashes are all heads of a layer, each as the only one left. Intervals are 95 %. For tasks of GLUE, diamonds are BERT-base on
# MNLI: open ones from table 3 of the paper (head chosen on the scored sequences), full ones from table 6 (chosen on training
# examples), its twelve layers squeezed to the depth of this encoder.

# %%
points = main_metric(left)
points = points.assign(**100 * points[["change", "low", "high"]])
best = points[points["chosen_on"] != ablation.EVERY].replace(
    {"chosen_on": {"dev": "best on these sequences", "train": "chosen on training examples"}}
)
panels = curves(best, "layer", "change", series="chosen_on", column="task", columns=3, height=1.7)
for task, rows in points[points["chosen_on"] == ablation.EVERY].groupby("task"):
    panels.axes_dict[task].plot(
        rows["layer"], rows["change"], "_", color="0.6", zorder=0, label="every head of the layer"
    )
bert = published("all_but_one").query("source == 'article'")
for axes in panels.axes.flat:
    axes.axhline(0, color="black", linewidth=0.6)
    for (sample, rows), face in zip(bert.groupby("chosen_on"), ("white", GREEN), strict=True):
        if not {*tasks} <= {*TOY_TASKS}:  # made-up texts have no published values
            depth = rows["layer"] * best["layer"].max() / rows["layer"].max()
            diamond = {"color": GREEN, "mfc": face, "markersize": 3, "label": f"BERT-base, {sample}"}
            axes.plot(depth, 100 * rows["change"], "D", **diamond)
panels.set(xticks=best["layer"].unique()).set_axis_labels(theme.LAYER, "change of the\nmetric (points)")
name_series(panels)
results.save_figure(
    panels.figure,
    "michel-T3-one-head",
    "Compare the two lines with the grey dashes, which are all heads of a layer, each as the only one left. "
    "A line near zero means that one well chosen head does the work of its layer (Tables 3 and 6 of Michel "
    "et al.).",
)

# %%
means = points.groupby("chosen_on")["change"].mean()
layers = points[points["chosen_on"] == "train"]
lost = (layers["p"] < alpha) & (layers["change"] < 0)
finding(
    f"With one head, chosen on training examples, {lost.sum()} of {len(layers)} layers lose significantly. The mean change is "
    f"{means['train']:+z.1f} points; it is {means['dev']:+z.1f} for the best head on the scored sequences."
)

# %% [markdown]
# The published changes of BERT-base, in points by layer. `replication` is an independent one.

# %%
reference = published("all_but_one").pivot(index="layer", columns=["source", "task", "chosen_on"])
reference["change"].mul(100).style.format(precision=2)

# %% [markdown]
# *Try it.* Set `chosen_n = 10`. Which of the two lines moves?
# <details><summary>What happens</summary>
#
# The line of the heads chosen on training examples moves towards the grey dashes, and the other line stays where it is (profile glue-mpnet
# has this value already). On toy-mrpc and toy-qqp, with 100 scored sequences, it moved from -1.0 points (50 examples) to -5.9
# (mean of layers). In the committed run of glue-minilm, MRPC loses 1.7 points instead of 1.2 (a head at random: 1.9), QNLI 0.7 instead of 0.5 (7.3).
# </details>

# %% [markdown]
# ## Do effects carry over to other data?
#
# The heads of one classifier are ablated on two data sets that ask the same question. Two random halves of the first set show
# how well effects can agree at all. Pearson's $r$ compares the changes and Spearman's $\rho$ their ranks: a few heads can carry
# the first, as in BERT-base on MNLI, where an independent replication has $r = 0.81$ and $\rho = 0.38$.

# %%
samples = ablation.transfer_examples(transfer_sets, tasks, source, scored_n, seed)
model = (transfer_sets[0], seeds[0])
ablated = {data: predict_run(model, examples, single_heads) for data, examples in samples.items()}
answers = {data: labels_of(examples) for data, examples in samples.items()}
pairs = ablation.effects(ablated, answers, positive_class(transfer_sets[0]), seed)
transfer = ablation.transfer_table(pairs, resamples, seed)
results.save_table(transfer, "michel_transfer")
results.save_claim("M4", measures.agreement_of_effects(results.load_table("michel_transfer")))

# %% [markdown]
# Where the profile has both sets, a panel shows the changes of the accuracy, as in the paper, when a head is ablated, on one set and on
# the other; the heads with the two largest changes are named. Above each panel stand the correlations of the changes of accuracy, of the
# AUC and of the loss. Claim M4 is judged on the AUC: with few sequences most heads change no answer or one.

# %%
accuracies = pairs[pairs["metric"] == "accuracy"].groupby(["data_a", "data_b"], sort=False)
values = transfer.set_index(["data_a", "metric", "correlation"])["value"]
names_of = {"accuracy": "accuracy", "auc": "AUC", "loss": "loss"}
if samples:
    figure, grid = theme.rows_of_axes(len(accuracies), 2, 2.8)
    for axes, ((data_a, data_b), heads) in zip(grid, accuracies, strict=True):
        heads = heads.assign(a=100 * heads["a"], b=100 * heads["b"])
        axes.scatter(heads["a"], heads["b"], s=9, alpha=0.5, linewidth=0)
        largest = heads.loc[heads[["a", "b"]].abs().max(axis=1).nlargest(2).index]
        lines = [
            f"{name}: r = {values[data_a, metric, 'Pearson']:.2f}, ρ = {values[data_a, metric, 'Spearman']:.2f}"
            for metric, name in names_of.items()
        ]
        axes.set_title("\n".join(lines), fontsize=7.5)
        axes.set(
            xlabel=f"change of accuracy (points), {data_a}", ylabel=f"change of accuracy (points),\n{data_b}"
        )
        axes.margins(0.2)
        names = [f"{head.layer}-{head.head}" for head in largest.itertuples()]
        name_points(axes, largest[["a", "b"]].to_numpy(), names, heads[["a", "b"]].to_numpy())
    results.save_figure(
        figure,
        "michel-F2-transfer",
        "Each point is a head, at its effect on one set and on another. A slope that rests on the named heads "
        "alone is agreement about them, and not about the others. Above: the correlation (r) and the rank correlation (ρ) of "
        "three measures (Figure 2 of Michel et al.).",
    )

# %%
halves = transfer["data_a"].str.contains(",").astype(bool)
above = transfer["low"] > 0
finding(
    f"The correlation of effects on the two data sets has an interval above 0 in {above[~halves].sum()} of {(~halves).sum()} "
    f"cases, and that of effects on halves of one set in {above[halves].sum()} of {halves.sum()}."
    if samples
    else f"This is not measured here, since the profile does not have both tasks: {' and '.join(transfer_sets)}."
)

# %%
columns = ["data_a", "data_b", "metric", "correlation", "value", "low", "high", "largest"]
if samples:
    display(transfer[columns].style.format(precision=2).hide())

# %% [markdown]
# ## Is the loss small enough to ignore?
#
# A test that finds no loss may have had too few sequences. The claims therefore set a margin: an ablation counts as harmless if
# it loses at most a fifth of the classifier's lead over the constant answer, $m(\xi) - m \ge -0.2\,(m - m_\text{constant})$.
# The table has the share of single heads (`head`), and of layers with one head left (`layer`), for which this is *estimated*
# (`value`), and the share for which it is *shown*: the whole 95 % interval of the change lies above the margin. A head that is
# estimated to be harmless, and not shown to be, needs more sequences. Where a fifth of the lead is less than three answers, no ablation
# can be shown to be harmless, and the task is left out. So are runs that did not train successfully: they are at chance, and no ablation
# can lower their accuracy.

# %%
trained = trained_runs(results.join_parts("finetune", tasks, every=False))
best_alone = {run: logits.sel(intervention=["none", *best_on_train[run]]) for run, logits in alone.items()}
harmless = ablation.harmless_shares(single, best_alone, labels, trained)
results.save_table(harmless, "michel_tolerated")
for claim, unit in (("M1", "head"), ("M3", "layer")):
    results.save_claim(claim, measures.harmless_share(results.load_table("michel_tolerated"), unit))
harmless.style.format(precision=2).hide()

# %%
by_unit = harmless.groupby("unit")[["value", "shown"]].mean().reindex(["head", "layer"])
finding(
    f"{by_unit.loc['head', 'value']:.0%} of the heads are estimated to be harmless and {by_unit.loc['head', 'shown']:.0%} are shown "
    f"to be; of the layers with one head it is {by_unit.loc['layer', 'value']:.0%} and {by_unit.loc['layer', 'shown']:.0%} (means "
    "over tasks)."
    if by_unit.notna().all(axis=None)
    else "No share is measured: no run trained successfully, or a fifth of the lead is too few answers to show a loss to be harmless."
)

# %% [markdown]
# **How far to trust it.** All runs are fine-tuned from one checkpoint. Intervals are over dev sequences, and those of correlations
# over heads; a correlation that a few heads carry has a wide one. Effects too small to measure have random ranks.
# MRPC and QQP ask one question of other sentences, with another share of paraphrases: that is a domain shift, and not a second
# sample as the two dev sets of MNLI are. That each head alone can go does not mean that many can go together:
# [06_michel_pruning](06_michel_pruning.ipynb) ablates many at once.
