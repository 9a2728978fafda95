# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 7b. Does an encoder need its heads, and its pre-training?
#
# **Question.** Let one head, or a whole layer, attend to all tokens alike: does the score fall, and do some heads do harm,
# so that it rises? And how much of the score is pre-training's?
#
# A disabled head gives the mean of the values of all real tokens; it is not removed. Nothing is trained again, and every
# comparison is paired. Where a change is "not significant", the least loss that so many sequences could have shown stands
# beside it.
#
# *Source: Kovaleva et al. 2019, section 4.6 (figures 8 and 9) and Table 1. The article tests nothing and reports one
# checkpoint of BERT-base a task. Departures: exact tests, intervals, several fine-tuning runs.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp"]
encoder: str = "minilm"
# fine-tuned checkpoints to use instead of ours: "models/{task}-{seed}" is filled in
checkpoint: str | None = None
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
seeds: list[int] = [0, 1]  # fine-tuning runs: layers are disabled in all of them
head_runs: int = 1  # so many of them have single heads disabled
scored_n: int | None = 100  # dev sequences that every change is measured on
start_tasks: list[str] = ["toy-mrpc"]  # that encoders are trained on from different starts
# add "pretrained" where 00_finetune trains with another size than the next two say
start_kinds: list[str] = ["random"]
# training examples of those runs, as in 00_finetune: starts are compared after equal training
start_n: int | None = 1600
start_epochs: int = 1
dev_n: int | None = 200  # examples that score the starts, as in 00_finetune
epochs: int = 1  # of the runs of 00_finetune
batch_size: int = 8
learning_rate: float = 8e-5
warmup: float = 0.1
training_precision: str = "float32"
max_tokens: int = 128
alpha: float = 0.05
resamples: int = 999
permutations: int = 9999
seed: int = 0  # of samples and tests
device: str = "cpu"
precision: str = "float32"

# %%
import seaborn as sns
from IPython.display import Markdown

from analysis.encoders import load_encoder, predict, single_heads, whole_layers
from analysis.figures import finding, forest_plot, head_grids, style, theme
from analysis.papers.kovaleva2019 import training
from analysis.papers.kovaleva2019.measures import CLAIMS, TABLES, measures, published
from analysis.scores.sink import sink
from analysis.statistics.answers import labels_of
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.statistics.layers import head_grid
from analysis.statistics.p_values import p_formats
from analysis.statistics.training import trained_runs
from analysis.study.results import Results
from analysis.texts import TASKS, load_examples
from analysis.texts.examples import clusters
from analysis.texts.tasks import task_named

style()
results = Results(profile)
folder = results.cache / "kovaleva"

# %% [markdown]
# ## Disabling
#
# Each head and each layer of the fine-tuned encoders, one at a time.

# %%
scored = {task: load_examples(task, source, "dev", scored_n, seed) for task in tasks}
classifiers = {
    (task, run): load_encoder(results.weights(task, run, encoder, checkpoint), device, precision, task)
    for task in tasks
    for run in seeds
}
for (task, run), model in classifiers.items():
    results.record_weights(f"{task}-{run}", model.digest)
passes = {
    (unit, task, run): (make(model, "uniform"), model)
    for unit, make, runs in (("head", single_heads, seeds[:head_runs]), ("layer", whole_layers, seeds))
    for (task, run), model in classifiers.items()
    if run in runs
}

# %%
logits = {
    (unit, task, run): predict(model, scored[task], changes, max_tokens=max_tokens, cache=folder / "logits")
    for (unit, task, run), (changes, model) in passes.items()
}

# %%
labels = {task: labels_of(found) for task, found in scored.items()}
disabled, rises = training.disabled_tables(logits, labels, alpha, resamples, permutations, seed)
results.save_table(disabled, "kovaleva_disable")
results.save_table(rises, "kovaleva_rises")
of_heads = {(task, run): found for (unit, task, run), found in logits.items() if unit == "head"}
texts = {task: clusters(found) for task, found in scored.items()}
trained = trained_runs(results.join_parts("finetune", tasks, every=False))
results.save_table(training.chosen_rises(of_heads, labels, texts, trained), "kovaleva_chosen_rises")
main = disabled.merge(rises[["task", "seed", "unit", "metric"]])  # the first metric of each task

# %% [markdown]
# ## Figure 8. One head at a time
#
# A dot marks a change with adjusted p below `alpha`. In the article the best single gain lies between +0.1 (STS-B) and +1.2
# points (MRPC); BERT-base, without a test.

# %%
first = main[(main["unit"] == "head") & (main["seed"] == seeds[0])]
grids = {
    f"{task}: {part['metric'].iloc[0]} {part['baseline'].iloc[0]:.2f}": part
    for task, part in first.groupby("task", sort=False)
}
points = {name: 100 * head_grid(part, "change") for name, part in grids.items()}
dots = {name: head_grid(part.assign(dot=part["p_by"] < alpha), "dot") > 0 for name, part in grids.items()}
most = 100 * first["change"].abs().max() or 1
figure = head_grids(points, "change of the metric (points)", dots, 3, cmap="vlag_r", vmin=-most, vmax=most)
results.save_figure(figure, "kovaleva-F8-heads")

# %%
heads = rises[rises["unit"] == "head"].drop_duplicates("task")
told = [
    f"in {row.task} {row.raised} of {row.variants} heads raise the {row.metric} (by chance up to {row.raised_by_chance:.0f}), "
    f"{row.beyond} beyond chance; most {100 * row.rise:+.1f} points (head {row.largest})"
    for row in heads.itertuples()
]
finding(
    f"Disabled one at a time: {'; '.join(told)}. A single test finds losses from {100 * heads['least'].median():.1f} points on."
)

# %% [markdown]
# *How far to trust it.* Of many heads some raise the score by chance: a few answers flip either way. The null trades the
# answers with and without the head in random sequences, for all heads together, and says how many heads then raise the
# score, and how large the largest rise is.

# %%
shown = ["task", "seed", "unit", "baseline", "raised", "raised_by_chance", "p_raised", "beyond", "rise", "p"]
rises[[*shown, "least"]].style.format(p_formats(rises[shown]), precision=3).hide()

# %% [markdown]
# ## Figure 9. One layer at a time
#
# In the article RTE gains 3.2 points without layer 0; that is 9 of its 277 dev examples. QNLI and MNLI lose up to 0.2.

# %%
layers = main[main["unit"] == "layer"].assign(layer=lambda rows: rows["layer"].astype(int))
figure, grid = theme.rows_of_axes(layers["task"].nunique(), 3, 1.6, 0.5, sharex=True)
for axes, (task, part) in zip(grid, layers.groupby("task", sort=False), strict=True):
    for number, (run, rows) in enumerate(part.groupby("seed")):
        shift, colour = 0.15 * number - 0.15, sns.color_palette("colorblind")[number]
        ends = 100 * (rows["change"] - rows["low"]), 100 * (rows["high"] - rows["change"])
        axes.errorbar(
            rows["layer"] + shift,
            100 * rows["change"],
            ends,
            fmt="o",
            markersize=3,
            color=colour,
            label=f"run {run}",
        )
    axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    axes.set_title(f"{task}: {part['metric'].iloc[0]}")
    theme.integer_ticks(axes)
figure.supxlabel(theme.LAYER)
figure.supylabel("change of the metric (points), 95 %")
figure.legend(*grid[0].get_legend_handles_labels(), ncols=6, loc="outside upper center")
results.save_figure(figure, "kovaleva-F9-layers")

# %%
means = 100 * layers.groupby(["task", "layer"], sort=False)["change"].mean().unstack("layer")
told = [
    f"{task} loses most for layer {row.idxmin()} ({row.min():+.1f} points), least for {row.idxmax()} ({row.max():+.1f})"
    for task, row in means.iterrows()
]
finding(f"Without one layer: {'; '.join(told)}, mean over the runs.")

# %% [markdown]
# ## Table 1. Where training starts
#
# The encoder as it came, under a classification head with random weights; trained from random weights; and trained from
# the pre-trained ones. Starts are compared after training of the same size, which their names tell.

# %%
recipe = {
    "epochs": start_epochs,
    "batch_size": batch_size,
    "learning_rate": learning_rate,
    "warmup": warmup,
    "max_tokens": max_tokens,
    "device": device,
    "precision": training_precision,
}
train = {task: load_examples(task, source, "train", start_n, seed) for task in start_tasks}
dev = {task: load_examples(task, source, "dev", dev_n, seed) for task in start_tasks}

# %%
scores = {
    (task, "untuned", run): training.untuned_scores(encoder, task, dev[task], run, max_tokens, device)
    for task in start_tasks
    for run in seeds
}
scores |= {
    (
        task,
        training.start_name(start, len(train[task]), start_epochs),
        run,
    ): training.tuned_scores(folder, start, encoder, task, train[task], dev[task], run, **recipe)
    for start in start_kinds
    for task in start_tasks
    for run in seeds
}

# %%
starts = training.initialisation_table(scores, results.join_parts("finetune", start_tasks), epochs)
results.save_table(starts, "kovaleva_initialisation")

# %%
told = []
for task, part in starts.groupby("task", sort=False):
    rows = part[part["metric"] == task_named(task).metrics[0]]
    scores = rows.groupby("start", sort=False)["value"].mean()
    told.append(
        f"{task}, constant answer {rows['constant'].iloc[0]:.2f}: "
        + ", ".join(f"{value:.2f} {start}" for start, value in scores.items())
    )
finding(f"{'. '.join(told)}.")

# %% [markdown]
# Mean and standard deviation over the runs, and the same starts of BERT-base as published:

# %%
spread = starts.groupby(["task", "metric", "start"], sort=False)["value"].agg(["mean", "std"])
spread["constant"] = starts.groupby(["task", "metric", "start"], sort=False)["constant"].first()
spread.style.format(precision=3, na_rep="")

# %%
published("initialisation").pivot(index=["task", "metric"], columns="start", values="value").style.format(
    precision=3
).set_caption("BERT-base (published)")

# %% [markdown]
# *How far to trust it.* The article's values from pre-trained weights lie below the ordinary ones of BERT-base; the order
# of the starts is what can be compared. A score that equals the constant answer says that nothing was learnt.
#
# ## The claims
#
# Each claim of the article that can be measured, of this notebook and of `07_kovaleva_patterns`. Their encoder is BERT-base: what can
# be compared is which of two things is larger, and where in the encoder. Runs that did not train successfully are left out. Intervals
# are over ten blocks of sequences, and over runs too where there are three; those of starts are over seeds. Where a claim says that
# some head exists, the head is chosen on one half of the sequences and read on the other.

# %%
finetune = results.join_parts("finetune", [*TASKS], every=False)
constant = finetune[finetune["metric"] == "accuracy"].groupby("task")["constant"].first()
tables = {name: results.load_table(f"kovaleva_{name}") for name in TABLES}
frames = measures(tables, trained_runs(finetune), constant.to_dict(), sink(load_encoder(encoder)))
claims = claim_table(CLAIMS, frames)
results.save_table(claims, "claims-kovaleva2019")
results.save_figure(forest_plot(claims, CLAIMS), "kovaleva-claims")

# %%
Markdown(claims_markdown(claims, CLAIMS))
