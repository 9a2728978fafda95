# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 10. Do roles foretell what matters?
#
# **Question.** The papers measure where a head looks, what it gives, and what is lost without it. All of that now stands
# on the same sequences and the same encoder. Does knowing a head's role tell whether the head matters?
#
# Five questions are asked, each with a test. Does a role's set of heads matter more than random heads of the same
# layers? Do role scores foretell what single heads matter? Do learnt gates open for heads with roles? Do measures of
# importance agree? Do roles stay the same when another map takes the place of attention?
#
# *Source: this study. The idea of gates is that of Nam et al. 2025 (causal head gating).*

# %% tags=["parameters"]
profile = "offline"
tasks = ["mrpc", "qqp", "sst-2", "qnli"]  # that the atlas has rows of
model_tasks = ["qqp"]  # whose heads are switched off and gates learnt; only those of `tasks` enter the atlas
encoder = "minilm"
checkpoint = None  # fine-tuned checkpoints instead of ours, {task} and {seed} are filled in
source = "bundled"
seeds = [0, 1]  # of the fine-tuning runs: the first is asked, and all stand in the atlas
seed = 0  # of samples, random sets, bootstrap and permutations
set_n = 32  # dev sequences that sets are switched off on
random_sets = 19  # for each role and task
combinations = 9999  # of one random set per task
gate_n = 800  # training sequences that gates are learnt on
gate_steps = 200
gate_batch = 8
gate_seeds = [0, 1]
penalty = 0.002  # nats a head: the least effect on the loss that keeps a gate from following the penalty
permutations = 9999
shuffles = 499  # of role scores, to check both tests of the regression
resamples = 499
together = ["local", "syntactic", "delimiter", "block"]  # role scores of the joint model
max_tokens = 128
sequences_at_once = 32
window = 2
relations = ["nsubj", "dobj", "amod", "advmod"]
direction = "dependent_to_head"
arithmetic = "corrected"
weighted_block = True
device = "cpu"

# %%
import time

import numpy as np
import pandas as pd

from analysis.encoders import encoder_note, load_encoder
from analysis.encoders.interventions import predict, sets
from analysis.figures import claim_intervals, finding, style
from analysis.statistics import ROLES, compose, seed_table
from analysis.study import Results
from analysis.synthesis import (
    CLAIMS,
    MAPS,
    NAMES,
    Tables,
    agreed,
    agreement_map,
    atlas_table,
    both_gates,
    gate_agreement,
    gates_map,
    heads_with_role,
    importance_agreement,
    interventions,
    judge_all,
    map_roles,
    measured,
    needs,
    regression_plot,
    regression_table,
    role_scores,
    role_sets,
    run_roles,
    sentences,
    set_changes,
    sets_plot,
    sets_table,
    survival_agreement,
    survival_plot,
    wanted,
)
from analysis.texts import load_examples

style()
results = Results(profile)
saved = {name: results.load_table(name) for name in results.table_names() if name in wanted(tasks)}
choices = (window, relations, direction, arithmetic, weighted_block)
kept = results.profile.cache / "synthesis"
weights = {t: results.weights(t, seeds[0], encoder, checkpoint) for t in model_tasks}
encoders = {t: load_encoder(weights[t], device, task=t) for t in model_tasks}
print(encoder_note(encoder))

# %% [markdown]
# ## What each verdict needs
#
# Said before anything is computed. A claim *holds* when its whole 95 % interval lies on its side of the bound, *does not
# hold* when it lies on the other, and is *undecided* between. "Audited" labels decide; the verdict under the label that
# asks heads to beat their role's control stands beside it.

# %%
needs().style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %% [markdown]
# ## 1. Sets: all heads of a role at once
#
# Heads of one role may stand in for one another, so that none matters alone. All heads of a role are switched off
# together, and so are random sets of as many heads from the same layers. A role that is all heads of its layers has no
# other set to be held against.
#
# If a role says nothing, its set is as likely as any random set to do most harm. The p-value pools the tasks over
# combinations of one set per task, the role's own sets among them; Holm's correction is over the roles.

# %%
dev = {t: load_examples(t, source, "dev", set_n, seed) for t in model_tasks}
found = {t: role_sets(results.load_table(f"roles-{t}-finetuned"), t) for t in model_tasks}
width = {t: encoders[t].heads for t in model_tasks}
off = {t: interventions(found[t], width[t], random_sets, seed) for t in model_tasks}
told = {"batch_size": sequences_at_once, "max_tokens": max_tokens, "cache": kept}
start = time.monotonic()
logits = {t: predict(encoders[t], dev[t], sets(encoders[t], off[t]), **told) for t in model_tasks}
print(
    f"{sum(map(len, off.values())):,} different sets on {set_n} sequences a task: {time.monotonic() - start:.0f} s"
)

# %%
labels = {t: np.array([example.label for example in dev[t]]) for t in model_tasks}
changes = {t: set_changes(logits[t], labels[t]) for t in model_tasks}
every = [each for t in model_tasks for each in found[t]]
of_sets = sets_table(every, changes, width[model_tasks[0]], random_sets, combinations, resamples, seed)
results.save_table(of_sets, "synthesis_sets")
results.save_figure(sets_plot(of_sets), "synthesis-F1-sets")

# %%
finding(sentences.roles_against_random(of_sets))

# %%
pooled = of_sets[(of_sets["task"] == "all tasks") & (of_sets["metric"] == "loss")]
pooled.drop(columns=["task", "sets", "metric"]).style.format(precision=3, na_rep="").hide()

# %% [markdown]
# The interval of the excess covers other sequences and the chance that any set of heads stands out: in each draw
# sequences are drawn anew and the role's set is held against one random set. With few random sets no p-value can be
# small: in one task it is at least 1 / (1 + number of sets).
#
# ## 2. Gates: which heads help, which interfere?
#
# The weights stay frozen, and one gate per head is learnt on the training data: once with a penalty that asks for open
# gates, once with one that asks for closed gates. A head that stays open against the penalty is *facilitating*, one that
# closes although open gates are asked for is *interfering*, and one that follows both ways is *irrelevant*. The penalty,
# in nats a head, is the least effect that counts.

# %%
train = {t: load_examples(t, source, "train", gate_n, seed) for t in model_tasks}
options = {"penalty": penalty, "seeds": gate_seeds, "steps": gate_steps, "batch_size": gate_batch}
learnt = {
    t: both_gates(encoders[t], t, train[t], kept, max_tokens=max_tokens, **options) for t in model_tasks
}
gates = pd.concat([table.assign(task=t, seed=seeds[0]) for t, table in learnt.items()], ignore_index=True)
results.save_table(gates[["task", "seed", *gates.columns.drop(["task", "seed"])]], "synthesis_gates")
classes = agreed(gates)
of_seeds = gate_agreement(gates, resamples, seed)

# %%
finding(sentences.gates_found(classes, of_seeds))

# %% [markdown]
# ## 3. The atlas of heads
#
# Everything that the study measures of a head, in one row per task, fine-tuning run and head. Beside each measure stands
# a status: measured, or why not.

# %%
runs = [(t, run) for t in tasks for run in seeds]
scores = {(t, run): compose(results.load_scores(t, run), *choices) for t, run in runs}
controls = {(t, run): compose(results.load_controls(t, run), *choices) for t, run in runs}
roles = {"attention": run_roles(scores, controls, results.join_parts("labels", tasks))}
for other in MAPS[1:]:
    roles[other] = map_roles({t: saved.get(f"roles-{other}-{t}-finetuned") for t in tasks})

# %%
rows = roles["attention"][["task", "seed", "layer", "head"]].drop_duplicates()
atlas = atlas_table(rows, roles, saved | {"gates": classes})
results.save_table(atlas, "atlas")
finding(sentences.what_was_measured(atlas))

# %% [markdown]
# The classes of the gates beside the roles: a dot marks a head that has an audited role other than a delimiter's.

# %%
results.save_figure(gates_map(atlas.assign(role=heads_with_role(atlas))), "synthesis-F2-gates")

# %%
finding(sentences.gates_and_roles(atlas))

# %% [markdown]
# ## 4. Regression: do role scores foretell what single heads matter?
#
# The change of the loss without a head, over its standard deviation in the run, against the logarithm of 1 + the mean
# score of the role. The mixed model has layers as levels and random effects of task, run and head. The permutation
# deals the changes of whole heads anew within their layers; it assumes nothing but that heads of a layer are alike
# where roles foretell nothing.

# %%
data = role_scores(atlas, ROLES, "ablation_loss")
regression = regression_table(data, ROLES, together, permutations, shuffles, seed)
results.save_table(regression, "synthesis_regression")
results.save_figure(regression_plot(regression), "synthesis-F3-regression")

# %%
finding(sentences.foretold(regression))

# %%
regression.dropna(axis=1, how="all").style.format(precision=3, na_rep="").hide()

# %% [markdown]
# `share` is the share of the variance within layers that the scores explain, `share_shuffled` its mean over permutations.
# `null_mixed` and `null_permutation` check the tests: scores are dealt anew to the heads of each layer, and both tests
# are asked.

# %%
finding(sentences.nulls(regression))

# %% [markdown]
# ## 5. Agreement
#
# Do measures of importance order heads alike? Over all heads they may agree only because whole layers matter; so the
# upper half takes ranks within layers.

# %%
pairs = importance_agreement(measured(atlas), NAMES, resamples, seed)
survival = survival_agreement(saved.get("pascual_survival"), "finetuned")
agreement = pd.concat([each for each in (pairs, survival, of_seeds) if len(each)], ignore_index=True)
results.save_table(agreement, "synthesis_agreement")
results.save_figure(agreement_map(agreement), "synthesis-F4-importance")

# %%
finding(sentences.measures_agree(agreement))

# %% [markdown]
# And do roles stay when attention is replaced by effective attention, or by the attribution of what heads give to the
# input tokens? Labels are compared on the same sequences.

# %%
results.save_figure(survival_plot(agreement), "synthesis-F5-survival")

# %%
finding(sentences.roles_survive(agreement))

# %% [markdown]
# ## The claims

# %%
evidence = Tables(atlas, of_sets, agreement)
claims = judge_all(evidence).assign(encoder=encoder_note(encoder))
results.save_table(claims, "claims-synthesis")
judged_once = seed_table(CLAIMS, {seeds[0]: evidence})
results.save_figure(claim_intervals(claims, judged_once), "synthesis-claims")

# %%
columns = ["claim", "ours", "n", "verdict", "controlled", "control_value"]
claims[columns].style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %% [markdown]
# *How far to trust it.* Sets and gates are of one fine-tuning run per task. A set that is switched off leaves the
# encoder in a state that it never met in training, and the larger the set, the farther; random sets of the same size
# share that. Gates are learnt on training sequences. The change without a single head is small and measured on a few
# hundred sequences: its own noise bounds every correlation with it, however good the other measure is. The regression
# takes the loss, which moves where accuracy does not. The atlas joins measures that were made on different numbers of
# sequences: their statuses say from which tables.
