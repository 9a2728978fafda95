# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 0. Fine-tune the encoder on a task
#
# **Question.** The paper labels the heads of encoders that were fine-tuned, one per task, and compares them with
# the pre-trained encoder. This notebook fine-tunes the encoder on one task, once per seed. Does it
# predict better than a constant answer and than word counts?
#
# *Source: Pande et al. 2021, experimental set-up; recipe of Devlin et al. 2019.*

# %% tags=["parameters"]
profile: str = "offline"
task: str = "toy-mrpc"  # the toy task, or with a source a task of GLUE, on which the encoder is fine-tuned
encoder: str = "minilm"  # minilm, tiny, a checkpoint folder, or a Hugging Face Hub id
train_n: int | None = 1600  # training examples, None for all
epochs: int = 1  # passes over the training examples

# seldom changed
# fine-tuned checkpoints to use instead of training: "models/{task}-{seed}" is filled in
checkpoint: str | None = None
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
dev_n: int | None = 200  # examples that choose the best epoch and are scored, None for all
# tasks with another number of epochs, in so many runs, such as ["rte", 5, 1] for a small training set
longer: list[list] = []
batch_size: int = 8
learning_rate: float = 8e-5
warmup: float = 0.1  # share of the steps in which the learning rate rises
max_tokens: int = 128
# one fine-tuning run each: the seed draws the new layer's weights, the order and the dropout
seeds: list[int] = [0, 1]
seed: int = 0  # of the sample of examples, the same for every run
device: str = "cpu"
# float32, bfloat16, or auto: bfloat16 where the device computes it faster
training_precision: str = "float32"

# %%
from dataclasses import replace

import pandas as pd
from IPython.display import Markdown

from analysis.encoders.finetuning import Recipe, evaluate, finetune, training_history
from analysis.encoders.measures import baselines
from analysis.encoders.models import load_encoder
from analysis.figures.lines import training_curves
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.statistics import training
from analysis.study.results import Results, seeds_of
from analysis.texts.glue import load_examples
from analysis.texts.tasks import TASKS

style()
results = Results(profile)
train = load_examples(task, source, "train", train_n, seed)
dev = load_examples(task, source, "dev", dev_n, seed)
train_texts, dev_texts = (  # in lower case and in one order
    [tuple(sorted(text.casefold() for text in example.texts)) for example in examples]
    for examples in (train, dev)
)
shared_pairs = sum(map({*train_texts}.__contains__, dev_texts))
Markdown(
    f"{task}: {len(train):,} training and {len(dev):,} dev examples. {shared_pairs:,} dev examples stand "
    "in the training set too, with the same texts in the same or the other order."
)

# %%
labels = {"train": [e.label for e in train], "dev": [e.label for e in dev]}
bins = None if TASKS[task].limits is None else 5
shares = pd.DataFrame(
    {name: pd.Series(values).value_counts(normalize=True, bins=bins) for name, values in labels.items()}
)
shares.rename(index=dict(enumerate(TASKS[task].labels))).rename_axis("label").style.format("{:.1%}")

# %% [markdown]
# ## Train
#
# Hugging Face's `Trainer` runs the recipe, once for every seed, and keeps the epoch with the best dev score. The same
# dev examples choose the epoch and are reported, so the score is slightly optimistic; it only has to show that the
# encoder trained successfully. A run whose checkpoint exists is not repeated. Ready checkpoints named in `checkpoint`
# are scored as they are. Matrix products in bfloat16 take about half the time on a processor with units for them, but
# give other weights than float32; the scores are computed in float32 on every machine.

# %%
for name, own_epochs, own_runs in longer:
    if name == task:
        epochs, seeds = own_epochs, seeds[:own_runs]
folders = {
    run: results.weights(task, run, encoder, checkpoint, new=True)
    for run in seeds_of("finetuned", seeds, checkpoint)
}
if checkpoint is None:
    recipe = Recipe(epochs, batch_size, learning_rate, warmup, 0, max_tokens, device, training_precision)
    scores = {
        run: finetune(encoder, task, train, dev, folder, replace(recipe, seed=run))
        for run, folder in folders.items()
    }
else:
    scores = {run: evaluate(folder, task, dev, max_tokens, device) for run, folder in folders.items()}
for run, folder in folders.items():
    results.record_weights(f"{task}-finetuned-{run}", load_encoder(folder).digest)

# %%
history = pd.concat(
    [training_history(folder).assign(seed=run) for run, folder in folders.items() if checkpoint is None]
    or [pd.DataFrame(columns=["seed", "epoch", "measure", "value"])]
)
if len(history):  # ready checkpoints have no log
    results.save_figure(
        training_curves(history),
        f"F0-training-{task}",
        "Training loss and dev scores of a fine-tuning run, over its steps. A score that stays at the "
        "dashed line of the constant answer belongs to a run that answers no better than that constant.",
    )

# %% [markdown]
# ## Compare with the baselines
#
# The constant answer is the majority class (for numbers the mean). The bag of words is a logistic regression on the
# word counts of each text. It cannot relate the two texts of a pair, so on pair tasks it shows how much single words
# give away.
#
# A run *trained successfully* if its accuracy on all dev examples is above the share of the most frequent label (exact
# binomial test, one-sided p < 0.05), or for a regression if Spearman's correlation is above 0. Other runs are left out of
# every claim: heads of a classifier at chance say nothing about the task.

# %%
shared = pd.DataFrame(baselines(task, train, dev))
with_baselines = {run: shared.assign(finetuned=pd.Series(metrics)) for run, metrics in scores.items()}
rows = pd.concat(with_baselines, names=["seed", "metric"])
rows = rows.reset_index().assign(task=task, train=len(train), dev=len(dev), shared_pairs=shared_pairs)[
    ["task", "seed", "metric", "constant", "bag_of_words", "finetuned", "train", "dev", "shared_pairs"]
]
rows = training.with_trained(rows, labels["dev"])
results.save_part(rows, "finetune", task)
rows.style.format(precision=3).hide()

# %%
first_metric = rows[rows["metric"] == TASKS[task].metrics[0]]
reached, simple = first_metric["finetuned"], first_metric.iloc[0]
finding(
    f"{first_metric['trained'].sum()} of {len(first_metric)} runs trained successfully. The best run reaches {reached.max():.3f} "
    f"({simple['metric']}), the worst {reached.min():.3f}, a bag of words {simple['bag_of_words']:.3f} and the constant answer "
    f"{simple['constant']:.3f}."
)
