# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 11. What do the heads that matter do? Matching heads
#
# **Question.** Roles hardly foretell which heads matter. The costliest heads of pair tasks attend, from a word, to the
# *same word in the other text*. No paper of this study names this role. Which heads match, is it there before fine-tuning,
# does it foretell what a head costs afterwards, and do the matching edges carry the cost?
#
# The bounds of the claims were set before the results of this notebook were looked at. That heads match is a property of
# the encoder; that matching matters is one of the task, so the tasks with a single text stand beside the pairs.
#
# *Source: this study. The removal of heads is that of Michel et al. 2019, single edges are edited through the same seam.*

# %% tags=["parameters"]
profile = "offline"
encoder = "minilm"
checkpoint = None  # fine-tuned checkpoints instead of ours, {task} and {seed} are filled in
source = "bundled"
pair_tasks = ["mrpc", "qqp", "qnli"]
single_tasks = ["sst-2"]
seeds = [0, 1]  # fine-tuning runs
matched_n = 150  # dev sequences that match scores are means over
scored_n = 100  # dev sequences that costs are measured on, as in 06_michel_ablation
overlap_n = 400  # training sequences that the overlap baseline learns from
threshold = 5.0  # of the match score of a matching head; uniform heads have 1
minimum = 100  # pairs that share a word, for a label
alpha = 0.05
bootstraps = 499  # of intervals of changes
max_tokens = 128
seed = 0
device = "cpu"
precision = "float32"

# %%
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import LogisticRegression

from analysis.encoders import encoder_note, interventions, layout, load_encoder, random_encoder
from analysis.figures import claim_strip, diagrams, finding, style, theme
from analysis.scores import extract, read_attention, sieves
from analysis.statistics import changes, claim_tables, layers, training
from analysis.study import Results
from analysis.synthesis import edges, matching
from analysis.texts import load_examples

# %%
style()
results = Results(profile)
model = load_encoder(encoder, device, precision)
results.record_weights(encoder, model.digest)
tasks = [*pair_tasks, *single_tasks]
matched = {task: load_examples(task, source, "dev", matched_n, seed) for task in pair_tasks}
dev = {task: load_examples(task, source, "dev", scored_n, seed) for task in tasks}
trained = training.trained_runs(results.join_parts("finetune", tasks, every=False))
tuned = {
    (task, run): load_encoder(results.weights(task, run, encoder, checkpoint), device, precision, task)
    for task in tasks
    for run in seeds
}
for (task, run), each in tuned.items():
    results.record_weights(f"{task}-{run}", each.digest)

# %% [markdown]
# ## Which heads match?
#
# The sieve `match` marks, for a word piece that stands in both texts, its copies in the other text; `match_control` marks,
# for the same rows, all other pieces there; `match_own` the copies in its own text. A score is the attention on them over
# what a uniform head gives. The twin keeps of a head only what depends on positions; the untrained encoder has random
# weights.

# %%
states = {("pretrained", -1): model, ("untrained", -1): random_encoder(encoder, seed, device, precision)}
parts = []
for task in pair_tasks:
    for (state, run), each in (states | {("finetuned", run): tuned[task, run] for run in seeds}).items():
        options = {"roles": [*matching.ROLES], "max_tokens": max_tokens}
        scored = extract(each, matched[task], **options)
        part = matching.matching_table(scored, threshold, alpha, minimum, seed)
        if state == "pretrained":
            twin = extract(each, matched[task], maps="twin", **options).sel(role="match").mean("sequence")
            part["twin"] = twin.to_series().to_numpy()
        parts.append(part.assign(task=task, state=state, seed=run))
heads = pd.concat(parts, ignore_index=True)
heads = heads[["task", "state", "seed", *heads.columns.drop(["task", "state", "seed"])]]
results.save_table(heads, "matching_heads")

# %%
before = heads[heads["state"] == "pretrained"]
labels = before.groupby(["layer", "head"])["assigned"].agg(lambda own: own.fillna(False).all())
own = [(int(layer), int(head)) for layer, head in labels.index[labels]]  # they match in every pair task
most = heads.groupby(["state", "task"])["match"].max().unstack("state")
told = [f"{layer}-{head}" for layer, head in own]
finding(
    f"{len(own)} of {len(labels)} heads match in every pair task before fine-tuning: {', '.join(told) or 'none'}. The largest "
    f"match score of a task is {most['pretrained'].min():.1f} to {most['pretrained'].max():.1f}, in the untrained encoder "
    f"at most {most['untrained'].max():.1f}, under the twin {before['twin'].max():.1f}."
)

# %%
ranked = before.sort_values("match", ascending=False).groupby("task", sort=False).head(4)
ranked[["task", "layer", "head", "match", "match_control", "match_own", "twin", "assigned"]].style.format(
    precision=2
).hide()

# %% [markdown]
# ## Do they cost most after fine-tuning?
#
# Each head is switched off alone. The exact p-value is the share of sets of as many heads from the same layers that cost
# at least as much. The heads are chosen on the *other* pair tasks, so that no task chooses its own.

# %%
losses, tables, tests = {}, [], []
for (task, run), each in tuned.items():
    sample = dev[task]
    logits = interventions.predict(
        each, sample, interventions.single_heads(each), max_tokens=max_tokens, cache=results.logits
    )
    gold = np.array([example.label for example in sample])
    table = changes.by_head(changes.change_table(logits, gold, ["loss", "accuracy"], alpha, bootstraps))
    tables.append(table.assign(task=task, seed=run, trained=(task, run) in trained))
    losses[task, run] = matching.costs(logits, gold)
costs = pd.concat(tables, ignore_index=True)
scores = before.groupby(["layer", "head"])["match"].mean().rename("match_before").reset_index()
costs = costs.merge(scores, on=["layer", "head"])
costs["rank"] = costs.groupby(["task", "seed", "metric"])["change"].rank(ascending=False)
costs["matching"] = [place in own for place in zip(costs["layer"], costs["head"], strict=True)]
first = ["task", "seed", "trained"]
costs = costs[[*first, *costs.columns.drop(first)]]
results.save_table(costs, "matching_costs")

# %%
for (task, run), of_run in losses.items():
    others = before[before["task"] != task]
    kept = others.groupby(["layer", "head"])["assigned"].agg(lambda label: label.fillna(False).all())
    chosen = [(int(layer), int(head)) for layer, head in kept.index[kept]]
    grid = of_run.mean(axis=0).reshape(model.layers, model.heads)
    p, sets = matching.exact_p(grid, chosen) if chosen else (np.nan, 0)
    ranks = stats.rankdata(-grid).reshape(grid.shape)
    match = layers.head_grid(scores, "match_before")
    rest = ~np.isin(np.arange(grid.size), [layer * model.heads + head for layer, head in chosen])
    rho = [stats.spearmanr(match.ravel()[each], grid.ravel()[each]).statistic for each in (slice(None), rest)]
    at = ", ".join(f"{ranks[place]:.0f}" for place in chosen)
    tests.append((task, run, (task, run) in trained, matching.names_of(chosen), at, p, sets, *rho))
columns = ["task", "seed", "trained", "heads", "ranks", "p", "sets", "spearman", "spearman_without"]
tests = pd.DataFrame(tests, columns=columns)
results.save_table(tests, "matching_tests")
tests.style.format(precision=3).hide()

# %%
learnt = tests[tests["trained"]]
of_pairs = learnt[learnt["task"].isin(pair_tasks)]
finding(
    f"In {len(of_pairs)} runs on pair tasks that have learnt, heads chosen on the other tasks have the ranks "
    f"{'; '.join(of_pairs['ranks'])} of {model.layers * model.heads} (exact p {of_pairs['p'].min():.3f} to "
    f"{of_pairs['p'].max():.3f}); in tasks with one text {'; '.join(learnt.loc[~learnt['task'].isin(pair_tasks), 'ranks'])}. "
    f"It is a matter of few heads, not a trend: the rank correlation of match and cost is {of_pairs['spearman'].median():.2f} "
    f"over all heads, {of_pairs['spearman_without'].median():.2f} without them."
)

# %% [markdown]
# ## A head at work
#
# Left: the head with the largest match score on one pair, lines from the words that stand in both texts to their twins in
# the other text; the rest of their attention, most of it to [CLS], is left out. Middle: the match
# scores of all heads before fine-tuning. Right: what each head costs afterwards. The pair is the one that shares most words
# among the shortest quarter.

# %%
best = before.loc[before["match"].idxmax()]
place, task = (int(best["layer"]), int(best["head"])), best["task"]
short = sorted(dev[task], key=lambda example: sum(map(len, example.texts)))[: max(4, len(dev[task]) // 4)]
shares = edges.overlap(layout.layouts(model.tokenizer, short, max_tokens)).mean(axis=1)
laid, attention = read_attention(model, short[int(np.nanargmax(shares))], max_tokens)
twins = sieves.same_pieces(laid) & sieves.across(laid)
asked, shown = np.flatnonzero(twins.any(axis=1)), np.where(twins, attention[place], 0)
figure, grid = theme.rows_of_axes(3, 3, max(2.6, 0.125 * len(laid)), 0.2, width_ratios=[1.4, 1, 1])
diagrams.attention_lines(grid[0], shown, laid.tokens, set(asked.tolist()))
told = f"{shown.sum() / len(asked):.0%} of their attention"
grid[0].set_title(f"head {place[0]}-{place[1]}, {task}: words and their twins\n({told})")
match = layers.head_grid(scores, "match_before")
cost = np.mean([losses[task, run].mean(axis=0) for run in seeds], axis=0).reshape(match.shape)
for axes, values, title in (
    (grid[1], match, "match score before"),
    (grid[2], cost, f"cost after, {task} (nats)"),
):
    mesh = theme.layer_head_mesh(axes, values, cmap="mako_r", vmin=0)
    figure.colorbar(mesh, ax=axes, orientation="horizontal", location="top", label=title, aspect=15)
    axes.set(xlabel=theme.HEAD, ylabel=theme.LAYER)
results.save_figure(figure, "matching-F1-heads")

# %% [markdown]
# ## Is it the edges?
#
# Three edits of single edges. *Edges off*: the attention to matching words is removed and the row divided by its rest.
# *Edges only*: it alone stays, the rest of the row is uniform. *As much elsewhere*: the same amount is taken from random
# other pieces of the other text, and from further tokens where these do not have enough. Each for the matching heads
# and for all heads, beside the same heads switched off.

# %%
sets = {"matching heads": own, "all heads": [*np.ndindex(model.layers, model.heads)]} if own else {}
rows, carried, hurt = [], {}, {}
for (task, run), each in tuned.items():
    if task in pair_tasks and sets:
        sample = dev[task]
        gold = np.array([example.label for example in sample])
        edited = edges.edited_logits(each, sample, sets, max_tokens, seed)
        off = interventions.predict(
            each, sample, interventions.sets(each, {"off": own}), max_tokens=max_tokens, cache=results.logits
        )
        for name, logits in (("", edited), ("off, matching heads", off)):
            table = changes.change_table(logits, gold, ["loss", "accuracy"], alpha, bootstraps)
            names = {"intervention": name} if name else {}
            rows.append(table.assign(**names, task=task, seed=run, trained=(task, run) in trained))
        change = dict(zip(edited["intervention"].values[1:], matching.costs(edited, gold).T, strict=True))
        hurt[task, run] = matching.costs(off, gold)[:, 0]
        wanted = [f"{edit}, matching heads" for edit in ("edges off", "as much elsewhere")]
        carried[task, run] = np.stack([*(change[name] for name in wanted), hurt[task, run]])
edited = (
    pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=[*first, "metric", "intervention"])
)
edited = edited[[*first, *edited.columns.drop(first)]]
results.save_table(edited, "matching_edges")

# %%
shown = edited[(edited["metric"] == "loss") & edited["trained"].astype(bool)]
if len(shown):
    of_task = shown.groupby(["intervention", "task"], sort=False)["change"].mean().unstack("task")
    axes = theme.canvas(theme.DOUBLE, 0.3 * len(of_task) + 0.9)
    for number, task in enumerate(of_task):
        part = shown[shown["task"] == task]
        height = part["intervention"].map([*of_task.index].index) + 0.16 * number - 0.16
        ends = [part["change"] - part["low"], part["high"] - part["change"]]
        axes.errorbar(
            part["change"], height, xerr=ends, fmt="os^Dv"[number], markersize=3.5, linewidth=0.8, label=task
        )
    axes.axvline(0, color="0.5", linewidth=0.6)
    axes.set(yticks=range(len(of_task)), yticklabels=of_task.index, ylabel="edit, heads")
    axes.set_xlabel("change of the loss (nats), 95 %; a mark for each run")
    axes.figure.legend(ncols=4, loc="outside upper center")
    results.save_figure(axes.figure, "matching-F2-edges")

# %%
ratio = {key: each[:2].mean(axis=1) / each[2].mean() for key, each in carried.items() if key in trained}
told = [f"{task}, run {run} {off:.0%} (elsewhere {other:.0%})" for (task, run), (off, other) in ratio.items()]
finding(
    f"Of what the matching heads cost, their matching edges carry: {'; '.join(told) or 'nothing was measured'}."
)

# %% [markdown]
# ## Who is hurt?
#
# The overlap baseline is a logistic regression on the shares of words that stand in both texts, learnt on training
# examples. Where overlap alone answers right, a head that carries the overlap heuristic helps; where it misleads, the
# head should do harm.

# %%
groups, points = [], []
for task in pair_tasks:
    train = load_examples(task, source, "train", overlap_n, seed)
    features = {
        name: edges.overlap(layout.layouts(model.tokenizer, found, max_tokens))
        for name, found in (("train", train), ("dev", dev[task]))
    }
    baseline = LogisticRegression().fit(features["train"], [example.label for example in train])
    gold = np.array([example.label for example in dev[task]])
    right = baseline.predict(features["dev"]) == gold
    shared = features["dev"].mean(axis=1)
    low, high = np.quantile(shared, [1 / 3, 2 / 3])
    parted = {"overlap answers right": right, "overlap misleads": ~right}
    parted |= {f"label {label}": gold == label for label in np.unique(gold)}
    parted |= {"few words shared": shared < low, "many words shared": shared > high}
    for run in seeds:
        if (task, run) in hurt:
            groups.append(matching.by_group(hurt[task, run], parted).assign(task=task, seed=run))
            gained = right.mean() - max(np.mean(gold == label) for label in np.unique(gold))
            points.append((task, run, (task, run) in trained, gained, hurt[task, run].mean()))
points = pd.DataFrame(points, columns=[*first, "overlap_gain", "cost"])
columns = ["task", "seed", "group", "n", "mean", "low", "high"]
of_groups = pd.concat([pd.DataFrame(columns=columns), *groups], ignore_index=True)[columns]
results.save_table(of_groups, "matching_groups")
results.save_table(points, "matching_when")

# %%
wide = of_groups.pivot_table(index="group", columns=["task", "seed"], values="mean", sort=False)
told = {
    name: f"{wide.loc[name].median():+.3f} nats"
    for name in ("overlap answers right", "overlap misleads")
    if name in wide.index
}
finding(
    "Without the matching heads the loss changes, median over runs, by "
    + (", ".join(f"{change} where {name}" for name, change in told.items()) or "nothing that was measured")
    + "."
)

# %%
wide.style.format(precision=3)

# %% [markdown]
# ## When do they matter?
#
# One point for each task and run: what the matching heads cost, against how much better than the constant answer overlap
# alone is.

# %%
axes = theme.canvas(theme.SINGLE, 2.4)
for number, (task, part) in enumerate(points.groupby("task", sort=False)):
    axes.plot(100 * part["overlap_gain"], part["cost"], "os^Dv"[number], label=task)
axes.axhline(0, color="0.6", linewidth=0.6)
axes.set_xlabel("accuracy of overlap alone above\nthe constant answer (points)")
axes.set_ylabel("cost of the matching heads (nats)")
axes.figure.legend(ncols=3, loc="outside upper center")
results.save_figure(axes.figure, "matching-F3-when")

# %% [markdown]
# *How far to trust it.* With so few tasks this picture shows no law: a task is one point, its runs are not independent,
# and the tasks differ in more than overlap.
#
# ## The claims

# %%
mean_costs = {
    task: np.mean([losses[key] for key in losses if key[0] == task and key in trained], axis=0)
    for task in tasks
    if {(task, run) for run in seeds} & trained
}
mean_edges = {
    task: np.mean([carried[key] for key in carried if key[0] == task and key in trained], axis=0)
    for task in mean_costs
    if any(key[0] == task for key in carried)
}
roles = {task: results.load_table(f"roles-{task}-pretrained") for task in pair_tasks}
frames = matching.frames(heads, own, mean_costs, mean_edges, roles, pair_tasks)
claims = claim_tables.claim_table(matching.CLAIMS, frames, drawn="sequences").assign(
    encoder=encoder_note(encoder)
)
results.save_table(claims, "claims-matching")
results.save_figure(claim_strip(claims, matching.CLAIMS), "matching-claims")

# %%
columns = ["claim", "ours", "n", "verdict", "control_value"]
claims[columns].style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %% [markdown]
# *How far to trust it.* Matching was found on two tasks of one encoder and then asked of others; tasks whose negatives are
# random pairs need no matching, since topic alone decides. A head that is switched off leaves the encoder in a state that
# training never met. Intervals cover other sequences, not other encoders.
