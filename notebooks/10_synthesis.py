# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 10. Do roles predict what matters?
#
# **Question.** The papers measure where a head looks, what it gives, and what is lost without it. All of that now stands
# on the same sequences and the same encoder. Does knowing a head's role tell whether the head matters?
#
# Four questions, each with a test. Does ablating all heads of a role hurt more than ablating random heads of the same
# layers? Do role scores predict the ablation effects of single heads? Do measures of importance agree? Do roles stay the
# same when another map takes the place of attention?
#
# *Source: this study.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]  # that the atlas has rows of
model_tasks: list[str] = ["toy-qqp"]  # whose heads are ablated; only those of `tasks` enter the atlas
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours, {task} and {seed} are filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first is asked, and all stand in the atlas
seed: int = 0  # of samples, random sets, bootstrap and permutations
set_n: int = 32  # dev sequences that sets are switched off on
random_sets: int = 39  # for each role and task, fewer where a role leaves no more
combinations: int = 9999  # of one random set per task
permutations: int = 9999
resamples: int = 499
together: list[str] = [
    "local",
    "syntactic",
    "delimiter",
    "match",
]  # role scores of the joint model; no head keeps block under control
max_tokens: int = 128
sequences_at_once: int = 32
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

from analysis.encoders import interventions, load_encoder
from analysis.figures import finding, forest_plot, style, theme
from analysis.figures.colours import BLUE, MISSING, ORANGE, SKY, VERMILION, colour, ink, marker
from analysis.statistics import ROLES, compose, training
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.statistics.effects import AUC
from analysis.statistics.p_values import p_equals, p_formats
from analysis.study import Results
from analysis.synthesis import agreement, atlas, measures, regression, sets
from analysis.texts import load_examples
from analysis.texts.tasks import positive_class

style()
results = Results(profile)
wanted = atlas.wanted(tasks)
saved = {name: results.load_table(name) for name in results.table_names() if name in wanted}
choices = (window, relations, direction, arithmetic, weighted_block)
kept = results.profile.cache / "synthesis"
weights = {t: results.weights(t, seeds[0], encoder, checkpoint) for t in model_tasks}
encoders = {t: load_encoder(weights[t], device, task=t) for t in model_tasks}
trained = training.trained_runs(results.join_parts("finetune", tasks, every=False))

# %% [markdown]
# A run that did not train successfully is at chance, and no head of it can matter. Its rows stand in the tables; the
# tests and the claims of this notebook leave it out.

# %%
runs = [(t, run) for t in tasks for run in seeds]
finding(
    f"{len(trained & {*runs})} of {len(runs)} fine-tuning runs trained successfully"
    + "".join(f"; {t}, run {run} did not" for t, run in runs if (t, run) not in trained)
    + "."
)

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
labels = {t: np.array([example.label for example in dev[t]]) for t in model_tasks}
found = {
    t: sets.role_sets(results.load_table(f"roles-{t}-finetuned"), t, random_sets, seed) for t in model_tasks
}
off = {t: sets.interventions(found[t]) for t in model_tasks}
batching = {"batch_size": sequences_at_once, "max_tokens": max_tokens, "cache": kept}
logits = {
    t: interventions.predict(encoders[t], dev[t], interventions.sets(encoders[t], off[t]), **batching)
    for t in model_tasks
}
print(f"{sum(map(len, off.values())):,} different sets on {set_n} sequences a task")

# %%
changes = {t: sets.set_changes(logits[t], labels[t], positive_class(t)) for t in model_tasks}
every = [each for t in model_tasks for each in found[t]]
learned = [t for t in model_tasks if (t, seeds[0]) in trained]
of_sets = sets.sets_table(every, changes, learned, random_sets, combinations, resamples, seed)
results.save_table(of_sets, "synthesis_sets")

# %% [markdown]
# A panel per task: a dash for every random set, a mark for the role's own heads (corrected label), both as the fall in AUC
# beyond the mean of the random sets. Brackets hold the p-value over all tasks. A role whose mark lies among its dashes says
# nothing of what matters.

# %%
means = sets.set_means(every, changes)
means = means[(means["metric"] == AUC) & (means["label"] == "corrected")]
random = means[~means["own"]].groupby(["task", "role"])["change"].mean().rename("random")
excess = means.join(random, on=["task", "role"]).eval("excess = change - random")
pooled = of_sets.query("task == @sets.POOLED and metric == @AUC and label == 'corrected'").set_index("role")
order = theme.in_order(excess["role"])[::-1]
count = excess["task"].nunique()
nothing = "no role has random sets"
figure, grid = theme.rows_of_axes(count, 4, 2.9, sharey=True) if count else (theme.empty(nothing), [])
for axes, (task, rows) in zip(grid, excess.groupby("task", sort=False), strict=True):
    others, own = rows[~rows["own"]], rows[rows["own"]]
    axes.axvline(0, color="black", linewidth=0.6)
    axes.plot(others["excess"], others["role"].map(order.index), "|", color="0.7", markersize=5)
    for row in own.itertuples():
        look = {"color": ink(row.role), "markerfacecolor": colour(row.role), "markersize": 5.5}
        axes.plot(row.excess, order.index(row.role), marker(row.role), **look)
    axes.set(title=task, yticks=range(len(order)), xlabel="excess fall in AUC")
    axes.set_yticklabels([f"{role} ({p_equals(pooled.loc[role, 'p_holm'])})" for role in order])
    axes.locator_params(axis="x", nbins=4)
results.save_figure(figure, "synthesis-F1-sets")

# %%
tested = pooled.dropna(subset="p")
beyond = [f"{role} ({row.excess:+.3f})" for role, row in tested[tested["p_holm"] < 0.05].iterrows()]
finding(
    f"All heads of a role lower the AUC more or less than random heads of their layers for {', '.join(beyond) or 'none'} of "
    f"{len(tested)} roles (two-sided, Holm); an excess of {tested['least'].median():.3f} would stand out (median)."
)

# %%
shown = of_sets[(of_sets["task"] == sets.POOLED)]
shown.drop(columns=["task", "sets"]).style.format(p_formats(shown), precision=3, na_rep="").hide()

# %% [markdown]
# The interval of the excess covers other sequences and the chance that any set of heads stands out: in each draw
# sequences are drawn anew and the role's set is held against one random set. With few random sets no p-value can be
# small: in one task it is at least 1 / (1 + number of sets).
#
# ## 2. The atlas of heads
#
# Everything that the study measures of a head, in one row per task, fine-tuning run and head. Beside each measure stands
# a status: measured, or why not.

# %%
scores = {(t, run): compose(results.load_scores(t, run), *choices) for t, run in runs}
controls = {(t, run): compose(results.load_controls(t, run), *choices) for t, run in runs}
roles = {"attention": atlas.run_roles(scores, controls, results.join_parts("labels", tasks))}
for other in atlas.MAPS[1:]:
    roles[other] = atlas.map_roles({t: saved.get(f"roles-{other}-{t}-finetuned") for t in tasks})
heads = roles["attention"][atlas.KEYS].drop_duplicates()
table = atlas.atlas_table(heads, roles, saved)
results.save_table(table, "atlas")
of_trained = table[[run in trained for run in zip(table["task"], table["seed"], strict=True)]]

# %%
there = table.filter(regex="_status$").apply(lambda column: column.str.startswith("measured"))
finding(
    f"{len(table):,} rows; {there.to_numpy().mean():.0%} of {there.shape[1]} measures and roles have a value in a row on "
    "average."
)

# %% [markdown]
# ## 3. Regression: do role scores predict what single heads matter?
#
# The fall in AUC without a head, over its standard deviation in the run, against the logarithm of 1 + the mean
# score of the role, both within layers. The permutation deals the changes of whole heads anew within their layers; it
# assumes nothing but that heads of a layer are alike where roles predict nothing. One correction (Holm) holds for all
# roles alone and the joint model. Two more readings stand beside it: ranks, and without the matching heads.

# %% [markdown]
# First the test itself, for the roles of the joint model: `gridded` takes changes and scores within layers, and the
# permutation deals changes anew there.

# %%
data = atlas.role_scores(of_trained, ROLES, "ablation_auc")
matched = of_trained.loc[
    of_trained["attention_match_controlled"].eq(True), ["layer", "head"]
].drop_duplicates()
matching = [*matched.astype(int).itertuples(index=False, name=None)]
scored = [role for role in together if data[role].notna().any()]
if data["response"].notna().any():
    grid = regression.gridded(regression.standardised(data, "response", scored), scored)
    observed, dealt = regression.products(grid, permutations, seed)
    own, shuffled = (regression.shares(grid, each, together=True) for each in (observed, dealt))
    p = (1 + (shuffled >= own).sum()) / (1 + permutations)
    print(f"{own:.1%} of the variance within layers; shuffled {shuffled.mean():.1%}, {p_equals(p)}")

# %% [markdown]
# Then the same for each role alone, with ranks, and without the matching heads. `share` is the share of the variance
# within layers that the scores explain, `share_shuffled` its mean over permutations; `r2_left_out` is R2 on each task with the
# slopes of the others: below 0, the slopes are worse than nothing.

# %%
foretold = regression.regression_table(data, ROLES, together, matching, permutations, resamples, seed)
results.save_table(foretold, "synthesis_regression")
measured = foretold.dropna(axis=1, how="all")
measured.style.format(p_formats(measured), precision=3, na_rep="").hide()

# %%
rows = foretold[foretold["variant"] == regression.RAW].dropna(subset="estimate")
order = theme.in_order(rows["term"])[::-1]
axes = theme.canvas(theme.DOUBLE, 0.26 * len(order) + 1.2)
axes.axvline(0, color="black", linewidth=0.6)
for model, shift, mark in (("alone", 0.15, "o"), ("together", -0.15, "s")):
    for row in rows[rows["model"] == model].itertuples():
        filled = model == "alone" and row.p_holm < 0.05
        look = {"markersize": 4.5, "markerfacecolor": colour(row.term) if filled else "white"}
        height, ends = order.index(row.term) + shift, [[row.estimate - row.low], [row.high - row.estimate]]
        axes.errorbar(row.estimate, height, xerr=ends, fmt=mark, color=ink(row.term), **look)
    axes.plot([], [], mark, color="black", markerfacecolor="white", label=f"in a model {model}")
axes.set(yticks=range(len(order)), yticklabels=order, ylabel="role")
axes.set_xlabel("slope within layers: fall in AUC (sd) for one sd of log(1 + score); filled: p < .05, Holm")
axes.figure.legend(ncols=2, loc="outside lower center")
results.save_figure(axes.figure, "synthesis-F3-regression")

# %%
alone = rows[(rows["model"] == "alone") & (rows["p_holm"] < 0.05)]
names = [f"{row.term} ({'more' if row.estimate > 0 else 'less'})" for row in alone.itertuples()]
joint = foretold.query("variant == @regression.RAW and term == @regression.ALL_ROLES").dropna(subset="share")
finding(
    f"Alone, {', '.join(names) or 'no role'} of {rows['model'].eq('alone').sum()} predict more than shuffled scores. "
    + "".join(f"Together they explain {row.share:.0%}, shuffled {row.share_shuffled:.0%} ({p_equals(row.p_holm)}, Holm); "
              f"on a task that is left out R2 is {row.r2_left_out:.2f}." for row in joint.itertuples())
)  # fmt: skip

# %% [markdown]
# ## 4. Agreement
#
# Do measures of importance order heads alike? Over all heads they may agree only because whole layers matter; so the
# upper half takes ranks within layers.

# %%
of_heads = measures.measured(of_trained)
pairs = agreement.importance_agreement(of_heads, measures.NAMES, resamples, seed)
by_task = agreement.agreement_by_task(of_heads, measures.NAMES, resamples, seed)
survival = agreement.survival_agreement(saved.get("pascual_survival"), "finetuned")
agreements = pd.concat(
    [part for part in (pairs, by_task, survival) if len(part)] or [pairs], ignore_index=True
)
results.save_table(agreements, "synthesis_agreement")

# %%
rows = pairs
names = [*dict.fromkeys([*rows["first"], *rows["second"]])]
values = np.full((len(names), len(names)), np.nan)
axes = theme.canvas(theme.DOUBLE, 0.5 * len(names) + 1.2)
for row in rows[rows["statistic"].isin(["spearman", "spearman within layers"])].itertuples():
    place = names.index(row.second), names.index(row.first)
    place = place if row.statistic == "spearman" else place[::-1]
    values[place] = row.value
    shade, text = (
        "white" if abs(row.value) > 0.65 else "black",
        f"{row.value:.2f}\n[{row.low:.2f}, {row.high:.2f}]",
    )
    axes.text(place[1], place[0], text, ha="center", va="center", fontsize=7, color=shade)
axes.set_facecolor(MISSING)
mesh = axes.imshow(np.ma.masked_invalid(values), cmap="vlag", vmin=-1, vmax=1, aspect="auto")
axes.set_xticks(range(len(names)), [name.replace(" ", "\n", 1).replace(", ", ",\n") for name in names])
axes.set_yticks(range(len(names)), names)
axes.set_xlabel("below the diagonal over all heads, above it within layers")
axes.figure.colorbar(mesh, ax=axes, label="rank correlation")
results.save_figure(axes.figure, "synthesis-F4-importance")

# %%
ranked = pairs[pairs["statistic"] == "spearman"].sort_values("value")
ends = [f"{row.first} and {row.second} {row.value:.2f} [{row.low:.2f}, {row.high:.2f}]" for row in
        ranked.iloc[[0, -1] if len(ranked) else []].itertuples()]  # fmt: skip
finding(
    f"Rank correlations of {len(ranked)} pairs of measures run from {' to '.join(ends) or 'none to none'}. Means over all runs "
    "that trained successfully; 06_michel_pruning gives those of single runs."
)

# %% [markdown]
# And do roles stay when attention is replaced by effective attention, or by the attribution of what heads give to the
# input tokens? Labels are compared on the same sequences.

# %%
rows = agreements.query("kind == @agreement.ROLES and task == @agreement.POOLED").dropna(subset="value")
order, maps = theme.in_order(rows["role"])[::-1], [*rows["second"].unique()]
axes = theme.canvas(theme.DOUBLE, 0.24 * len(order) + 1.2)
axes.axvline(0, color="0.6", linewidth=0.6)
axes.axvline(0.6, color="0.6", linewidth=0.6, linestyle="--")
for number, (name, own) in enumerate(rows.groupby("second", sort=False)):
    heights = own["role"].map(order.index) + 0.2 * ((len(maps) - 1) / 2 - number)
    look = {"color": (BLUE, ORANGE, SKY, VERMILION)[number], "fmt": "os^D"[number], "markersize": 4.5}
    ends = [own["value"] - own["low"], own["high"] - own["value"]]
    axes.errorbar(own["value"], heights, xerr=ends, label=name.replace("_", " "), **look)
axes.set(yticks=range(len(order)), yticklabels=order, ylabel="role")
axes.set_xlabel("Cohen's kappa with the labels on attention (dashed: substantial, 0.6)")
axes.figure.legend(ncols=max(1, len(maps)), loc="outside lower center")
results.save_figure(axes.figure, "synthesis-F5-survival")

# %%
kappas = agreements.query("statistic == 'kappa' and task == @agreement.POOLED")
medians = ", ".join(
    f"{other} {value:.2f}" for other, value in kappas.groupby("second")["value"].median().items()
)
finding(
    f"Median kappa of the roles' labels with those on attention: {medians or 'other maps were not measured'}."
)

# %% [markdown]
# ## The claims

# %%
claims = claim_table(measures.CLAIMS, measures.frames(of_sets, agreements))
results.save_table(claims, "claims-synthesis")
results.save_figure(forest_plot(claims, measures.CLAIMS), "synthesis-claims")

# %%
Markdown(claims_markdown(claims, measures.CLAIMS))

# %% [markdown]
# *How far to trust it.* Sets are of one fine-tuning run per task. A set that is switched off leaves the
# encoder in a state that it never met in training, and the larger the set, the farther; random sets of the same size
# share that. The change without a single head is small and measured on a few
# hundred sequences: its own noise bounds every correlation with it, however good the other measure is. The AUC
# does not see a shift of all logits towards one class, which the loss does. The atlas joins measures that were made on different numbers of
# sequences: their statuses say from which tables.
