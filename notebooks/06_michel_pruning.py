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
profile = "offline"
tasks = ["mrpc", "qqp"]
encoder = "minilm"
checkpoint = None  # fine-tuned checkpoints instead of ours: "models/{task}-{seed}" is filled in
source = "bundled"  # bundled, hub, or a folder of GLUE files
scored_n = 100  # dev sequences that every score is of, None for all
importance_n = 100  # training examples that importance is measured on
again_n = 50  # of them, so many serve to measure it again after every step
random_orders = 2
course_tasks = ["mrpc"]  # fine-tuned again, and pruned on the way; [] skips this
fractions = [0.1, 0.5, 1.0]  # of the steps of fine-tuning
speed_models = ["minilm"]  # what is timed; "BERT-base size" has random weights
speed_batches = [1, 16]  # sequences of 128 tokens
speed_rounds = 5
seeds = [0, 1]  # of the fine-tuning runs: the first is pruned
seed = 0  # of the sample of sequences, the bootstrap and the swaps
sequences_at_once = 32
max_tokens = 128
alpha = 0.05
resamples = 999  # of the bootstrap
permutations = 9999  # swaps of answers
device = "cpu"
precision = "float32"

# %%

from IPython.display import Markdown

from analysis.encoders import encoder_note, load_encoder, predict, single_heads
from analysis.figures import claim_intervals, finding, style
from analysis.papers.michel2019 import (
    CLAIMS,
    PRUNING,
    agreement_table,
    constants,
    course,
    course_curves,
    dynamics_table,
    importance_scatter,
    importance_table,
    kept_importance,
    kept_speed_table,
    labels_of,
    orders_of,
    prunable_table,
    pruned_steps,
    pruning_curves,
    pruning_evidence,
    pruning_table,
    published,
    sentences,
    speedups,
    with_a_lead,
)
from analysis.papers.michel2019.measures import measures
from analysis.statistics.claim_tables import claim_table, seed_table, single_runs
from analysis.study import Results, seeds_of
from analysis.texts import load_examples

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
print(encoder_note(encoder))

# %% [markdown]
# ## Importance
#
# The importance of a head is the mean size of the derivative of the loss with respect to its gate. The size is taken for
# each example (the article), each token (its code) or each batch, and may be divided by the norm of the layer (the
# article, after Molchanov 2017).

# %%
measured = {
    (task, run): kept_importance(model, train[task], results.logits, **told)
    for task, model in classifiers.items()
}
importances = importance_table(measured)
results.save_table(importances, "michel_importance")
ablation = results.load_table("michel_ablation")
agreement = agreement_table(importances, ablation)
results.save_table(agreement, "michel_importance_agreement")
agreement.groupby(["granularity", "normalised"]).mean(numeric_only=True).drop(columns="seed").style.format(
    precision=2
).set_caption("Spearman's correlation over heads, mean over tasks")

# %% [markdown]
# Two measures of the same heads: the slope of the loss at the gate, and what the loss does when the gate is closed.

# %%
results.save_figure(importance_scatter(importances, ablation), "michel-F4-importance")

# %%
finding(sentences.importance_and_ablation(agreement, published.single_heads()))

# %% [markdown]
# ## Pruning
#
# Heads go in steps of a tenth: least important first; in the order that importance has when it is measured again
# after every step; in the order of the scores with single heads off (of these very sequences, which flatters it); and
# at random.

# %%
single = {
    task: predict(model, dev[task], single_heads(model), cache=results.logits, **told)
    for task, model in classifiers.items()
}
orders = {
    task: orders_of(
        model, task, single[task], labels[task], train[task], results.logits, random_orders, again_n, **told
    )
    for task, model in classifiers.items()
}
pruned = {
    (task, run): predict(model, dev[task], pruned_steps(model, orders[task]), cache=results.logits, **told)
    for task, model in classifiers.items()
}

# %%
curves = pruning_table(pruned, labels, **tests)
results.save_table(curves[PRUNING], "michel_pruning")
results.save_figure(pruning_curves(curves, constants(labels)), "michel-F5-pruning")

# %% [markdown]
# The share of heads that goes before the first significant loss, or before the lead over the constant answer is gone,
# beside the least loss that the test of this sample finds with power .8, and the share that the article prunes "without
# noticeable loss" from BERT-base (**another model**, other data). Shares are of heads, which go in steps of a tenth; a classifier
# whose accuracy has no lead has none.

# %%
leading = with_a_lead(pruned, labels)
shares = prunable_table(curves, labels, leading, published.prunable(), alpha)
results.save_table(shares, "michel_prunable")
shares[~shares["order"].str.startswith("random")].style.format(precision=3, na_rep="–").hide()

# %%
finding(sentences.prunable_heads(shares))

# %% [markdown]
# Scores of BERT-base in the same order of pruning come from an independent replication.

# %%
finding(sentences.beside_published_curves(curves, leading, published.pruning()))

# %% [markdown]
# ## Speed
#
# Half of the heads, drawn at random, are cut out of the weights. Whole and pruned model answer in turns, timed as CPU
# time of one thread. The dashed lines show the ratio of their multiplications; measured gains above it come from memory
# traffic or noise.

# %%
speed = kept_speed_table(results.logits, speed_models, speed_batches, speed_rounds)
results.save_table(speed, "michel_speed")
results.save_figure(speedups(speed, published.speed()), "michel-F6-speed")

# %%
finding(sentences.gained_speed(speed))

# %% [markdown]
# ## The course of fine-tuning
#
# The recipe of the checkpoint is run again, and the classifier kept on the way. Each one is pruned by its own importance.
# If heads mattered alike, the score would fall evenly.

# %%
used = told | {"device": device, "precision": precision}
courses = {
    task: course(
        encoder, task, weights[task], source, dev[task], train[task], fractions, results.logits, seed, **used
    )
    for task in course_tasks
    if task in tasks
}
dynamics = dynamics_table(courses, labels, **tests)
results.save_table(dynamics, "michel_dynamics")
results.save_figure(course_curves(dynamics, constants(labels)), "michel-F7-course")

# %%
finding(sentences.kept_on_the_way(dynamics, constants(labels)))

# %% [markdown]
# Published for translation (IWSLT, epochs 1, 2, 10 and 40; literature): in epochs 1 and 2 the score falls linearly with the
# heads pruned; from epoch 10 on up to 40 % of the heads can go within 85 to 90 % of the score.
#
# ## The claims
#
# Each sentence of the article that can be measured here. Intervals draw sequences anew; those of correlations
# draw heads, those of times are over rounds. A claim of "no loss" is one of non-inferiority: a loss of at most a fifth of
# the classifier's lead over the constant answer counts as none, and the paired interval must exclude a larger one.

# %%
finding(sentences.left_out(pruned, leading))

# %%
names = ["ablation", "all_but_one", "rises", "transfer"]
single_off, left, rises, transfer = (results.load_table(f"michel_{name}") for name in names)
drawn = pruning_evidence(leading, courses, labels)
frames = measures(single_off, left, curves, rises, transfer, speed, drawn, labels)
claims = claim_table(CLAIMS, frames, drawn="sequences").assign(encoder=encoder_note(encoder))
results.save_table(claims, "claims-michel2019")
results.save_figure(claim_intervals(claims, seed_table(CLAIMS, single_runs(frames))), "michel-claims")

# %%
shown = ["claim", "published", "ours", "n", "verdict", "control_value"]
claims[shown].style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %%
print(", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items()))

# %% [markdown]
# *How far to trust it.* The dev sequences that are scored also chose the epoch of fine-tuning. A lost head may be made up
# for by others in one way and not in another: what can go alone need not go together, which the pruning curves show. The
# training examples that importance is measured on were seen in fine-tuning, as in the article.
#
# ## Translation (literature)
#
# Changes of BLEU with one head left in a layer, as the article prints them. Nothing in this study translates.

# %%
literature = published.translation().pivot(
    index="layer", columns=["table", "attention"], values="change_bleu"
)
literature.columns = literature.columns.map(", ".join)
Markdown(literature.round(2).to_markdown())
