# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 7a. The dark secrets: what do maps look like, and what does fine-tuning change?
#
# **Question.** Attention maps fall into a few patterns. Which, how often, and does fine-tuning change them? Do heads link
# the words of a frame, or a subject and its verb, more than any two words at the same distance? And how much of the
# attention that fine-tuning moves goes to words rather than to `[CLS]` and `[SEP]`?
#
# *Source: Kovaleva et al. 2019, "Revealing the Dark Secrets of BERT", sections 4.1 to 4.5. The article's encoder is
# BERT-base; its values stand beside ours as those of another model. Departures: rules fitted on drawn maps, in the
# place of a network trained on 400 maps labelled by hand; intervals; a control at the same distance for every
# link; words found by their place in the text, not by their spelling.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp"]
encoder: str = "minilm"
# fine-tuned checkpoints to use instead of ours: "models/{task}-{seed}" is filled in
checkpoint: str | None = None
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
parser: str = "gold"
seeds: list[int] = [0, 1]  # fine-tuning runs
sequences: int = 100  # dev sequences of each task
labelled: int = 100  # of them, those whose maps are labelled with a pattern
padded: int = 20  # of them, those whose maps are compared with their padding too
max_tokens: int = 128
drawn_maps: int = 1500  # maps drawn by code that the rules learn from
held_out_maps: int = 500  # further ones that judge them
frames: str = "bundled"  # links.jsonl, a folder with it or of FrameNet 1.7, or bundled: arguments of verbs in bundled texts
frame_sentences: int | None = 200  # of the frames, None for all
permutations: int = 9999
alpha: float = 0.05
resamples: int = 999
seed: int = 0  # of samples, drawn maps and tests
device: str = "cpu"
precision: str = "float32"

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from analysis.encoders import load_encoder
from analysis.figures import finding, head_grids, style, theme
from analysis.papers.kovaleva2019 import frames as framed
from analysis.papers.kovaleva2019 import labellers, names, reading, tables
from analysis.papers.kovaleva2019.measures import published
from analysis.scores import read_attention
from analysis.statistics.layers import head_grid
from analysis.study.results import Results
from analysis.texts import load_examples, parse, parser_name, tags

style()
results = Results(profile)
model = load_encoder(encoder, device, precision)
results.record_weights(encoder, model.digest)
folder = results.cache / "kovaleva"

# %%
results.record_parser(parser_name(parser))
examples = {task: load_examples(task, source, "dev", sequences, seed) for task in tasks}
found_targets = {
    task: reading.find_targets(
        model.tokenizer,
        found,
        parse(found, parser, results.parses),
        tags(found, parser, results.parses),
        max_tokens,
    )
    for task, found in examples.items()
}
print("dev sequences:", ", ".join(f"{len(found)} of {task}" for task, found in found_targets.items()))

# %% [markdown]
# ## Rules that label maps
#
# The article trains a network on 400 maps that were labelled by hand. We have no such labels, so code draws maps for the
# layouts of these sequences: columns, a band beside the diagonal, both, blocks of the two texts, or none of them
# (heterogeneous), with noise and faint traces of the others. A decision tree learns from them thresholds of six measures
# of a map. It is judged on further drawn maps, and on 300 maps of pre-trained MiniLM that were labelled by eye once,
# before the rules were written.

# %%
layouts = [each.layout for found in found_targets.values() for each in found]
labeller = labellers.fit_rules(labellers.draw_maps(layouts, drawn_maps, seed))
sets = {
    "drawn": labellers.draw_maps(layouts, held_out_maps, seed + 1),
    "eye": labellers.eye_maps(load_encoder("minilm")),
}
quality, confusion = labellers.quality_tables(labeller, sets)
results.record_weights("rules of patterns", labeller.key)
results.save_table(quality, "kovaleva_pattern_quality")
results.save_table(confusion, "kovaleva_pattern_confusion")
quality.style.format(precision=2).hide()

# %%
by_eye = quality[quality["set"] == "eye"].set_index("pattern")
macro, right = by_eye.loc[labellers.MACRO, "f1"], by_eye.loc[names.BLOCK, "precision"]
finding(
    f"On maps labelled by eye the macro-F1 of the rules is {macro:.2f} (article, on its own labels: 0.86); {right:.0%} of "
    "the maps that they call block are."
)

# %% [markdown]
# Where they err (rows: labels by eye), and what they are:

# %%
confusion[confusion["set"] == "eye"].pivot(index="pattern", columns="found", values="n").loc[
    [*names.PATTERNS], [*names.PATTERNS]
]

# %%
print(labeller.rules())

# %% [markdown]
# *How far to trust it.* One eye labelled the maps, a single time. Most of MiniLM's maps have a bright column of `[CLS]`,
# and where a faint column or a faint band begins to count is a matter of taste: that is where rules and eye differ
# most.
#
# ## One pass over every state
#
# A single forward pass gives patterns, attention to features, links of subjects and verbs and, for the fine-tuned
# encoders, the similarity of each map with that of the pre-trained one. Maps are not kept.

# %%
readings = {
    (task, run): reading.cached_state(
        folder,
        f"{task}-{'pretrained' if run is None else run}",
        load_encoder(results.weights(task, run, encoder, checkpoint), device, precision),
        found_targets[task],
        labeller,
        labelled,
        *(() if run is None else (model, padded)),
    )
    for task in tasks
    for run in (None, *seeds)
}
for (task, run), found in readings.items():
    results.record_weights(f"{task}-{run}", found.attrs["weights"])

# %% [markdown]
# ## Figure 1. The patterns
#
# For each pattern, the head that has it in most sequences, on the first sequence.

# %%
layout, attention = read_attention(model, examples[tasks[0]][0], max_tokens)
pattern_heads = tables.pattern_heads(readings)
of_first = pattern_heads.query("task == @tasks[0] and state == 'pretrained' and share > 0")
typical = of_first.loc[of_first.groupby("pattern")["share"].idxmax()].set_index("pattern")
heads = typical.reindex([pattern for pattern in names.PATTERNS if pattern in typical.index])
special = np.flatnonzero(layout.cls | layout.sep)
ticks = [layout.tokens[place] for place in special]
figure, grid = theme.rows_of_axes(len(heads), len(heads), 1.95)
for axes, row in zip(grid, heads.itertuples(), strict=True):
    one = attention[row.layer, row.head]
    # Up to the mean of the rows' largest weights, so that a single bright cell does not hide the rest.
    axes.imshow(one, cmap="mako_r", vmin=0, vmax=one.max(axis=1).mean(), interpolation="nearest")
    axes.set_title(f"{row.Index}\nhead {row.layer}-{row.head}", fontsize=7.5)
    axes.set_xticks(special, ticks, rotation=90, fontsize=6)
    axes.set_yticks(special, ticks if axes is grid[0] else [], fontsize=6)
figure.supxlabel("attended token (dark: much attention; bands beside the diagonal link the two texts)")
grid[0].set_ylabel("current token")
results.save_figure(figure, "kovaleva-F1-patterns")

# %% [markdown]
# A band that runs from one text to the other, beside the diagonal, links equal or similar words across texts; no pattern of the
# five names it.
#
# ## Figure 2. How often
#
# On the right, shares that a later network of the same laboratory found in BERT-base: another model and another labeller.
# Heterogeneous maps are what the article takes for the upper bound of informative ones. Shares depend on the length of the
# inputs; a black bar spans the interval of the heterogeneous share over sequences.

# %%
shares = tables.pattern_table(readings, alpha, resamples, seed)
results.save_table(shares, "kovaleva_patterns")
results.save_table(tables.block_table(readings), "kovaleva_blocks")  # what claims are judged on
results.save_table(pattern_heads, "kovaleva_pattern_heads")

# %%
colours = dict(zip(names.PATTERNS, ["#0072B2", "#56B4E9", "#009E73", "#E69F00", "0.85"], strict=True))
of_bert = published("patterns")
widths = [max(len(tasks), 3), of_bert["task"].nunique()]
figure, grid = theme.rows_of_axes(2, 2, 2.7, sharey=True, width_ratios=widths)
for axes, rows in zip(grid, (shares, of_bert), strict=True):
    order = [*dict.fromkeys(rows["task"])]
    for shift, state in ((-0.21, "pretrained"), (0.21, "finetuned")):
        wide = (
            rows[rows["state"] == state].pivot(index="task", columns="pattern", values="share").reindex(order)
        )
        below = wide[[*colours]].cumsum(axis=1).shift(axis=1, fill_value=0)
        for pattern, colour in colours.items():
            axes.bar(np.arange(len(order)) + shift, wide[pattern], 0.36, below[pattern], color=colour)
    axes.set_xticks(range(len(order)), order, rotation=45, ha="right")
for row in shares[
    shares["pattern"] == names.HETEROGENEOUS
].itertuples():  # on top: its share is read downwards
    place = tasks.index(row.task) + (0.21 if row.state == "finetuned" else -0.21)
    grid[0].vlines(place, 1 - row.high, 1 - row.low, color="black", linewidth=1.2)
grid[0].set(
    title=f"this encoder (rules: F1 {macro:.2f},\nblock precision {right:.2f})", ylabel="share of maps"
)
grid[1].set_title("BERT-base, later network\nof the same laboratory")
figure.supxlabel("task (left bar: pre-trained, right bar: fine-tuned)", fontsize=8)
keys = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
figure.legend(keys, colours, ncols=5, loc="outside upper center", columnspacing=1.0)
results.save_figure(figure, "kovaleva-F2-shares")

# %%
by_state = shares.pivot(index=["task", "state"], columns="pattern", values="share")[[*names.PATTERNS]]
latest = by_state.xs("finetuned" if run is not None else "pretrained", level="state")[names.HETEROGENEOUS]
moved = 100 * shares.pivot(index=["task", "pattern"], columns="state", values="share").diff(axis=1).abs().max(
    axis=None
)
finding(
    f"Heterogeneous are {', '.join(f'{share:.0%} of the maps of {task}' for task, share in latest.items())} (article: 32% for "
    f"mrpc, 61% for qqp). Fine-tuning moves no share by more than {moved:.1f} points."
)

# %% [markdown]
# ## Figure 3. Links of a frame
#
# The largest attention between a frame element and the word that evokes the frame, mean over sentences. The released code
# lets the element attend to the target and pairs their pieces one by one; the text speaks of attention from the target to
# the element. Both directions stand here, as released and with all pairs. The control moves the same arrangement of tokens
# through the sentence; a dot marks heads that give the link more (permutation test, adjusted over heads). With
# `frames="bundled"` there are no frames: the links join the verbs of bundled sentences to their subjects and objects.

# %%
linked = framed.read_links(frames, frame_sentences, seed)
placed, left_out = framed.link_scores(model, linked)
of_links = framed.link_table(placed, permutations, seed)
results.save_table(of_links, "kovaleva_links")
results.save_table(framed.link_blocks(placed), "kovaleva_link_blocks")

# %%
panels, dots = {}, {}
for (mode, direction), part in of_links.groupby(["mode", "direction"], sort=False):
    name = f"{direction.replace('_', ' ')}\n{'as released' if mode == 'faithful' else 'all pairs'}"
    panels[name], dots[name] = (
        head_grid(part, "mean"),
        head_grid(part.assign(dot=part["p_by"] < alpha), "dot") > 0,
    )
    if (mode, direction) == ("faithful", "element_to_target"):
        panels["the same,\nat the same distance"] = head_grid(part, "control")
panels["element to target, as released\n(BERT-base, published)"] = head_grid(published("heads"), "link")
dots = {name: dots.get(name, np.zeros_like(grid, bool)) for name, grid in panels.items()}
label = "largest attention of the link, mean over sentences"
figure = head_grids(
    panels, label, dots, 3, cmap="mako_r", vmin=0, vmax=max(grid.max() for grid in panels.values())
)
results.save_figure(figure, "kovaleva-F3-links")

# %%
told = []
for direction, part in of_links[of_links["mode"] == "all_pairs"].groupby("direction", sort=False):
    best = part.loc[part["mean"].idxmax()]
    told.append(
        f"from {direction.replace('_', ' ')} {(part['p_by'] < alpha).sum()} of {len(part)} heads exceed it, most attention "
        f"{best['layer']}-{best['head']} ({best['mean']:.2f} against {best['control']:.2f})"
    )
finding(
    f"Beside pairs at the same distance, in {len(linked) - sum(left_out.values())} sentences from {frames.rsplit('/', 1)[-1]}: "
    f"{'; '.join(told)}."
)

# %% [markdown]
# ## Figure 5. What does fine-tuning change?
#
# The cosine of each map with that of the pre-trained encoder. The released code compares maps padded to 200 tokens, where
# the rows of padding are most of a short sequence's map ("kept"); cropped maps hold the sequence alone.

# %%
cosines = tables.cosine_table(readings, alpha, resamples, seed)
results.save_table(cosines, "kovaleva_cosine")

# %%
runs_mean = cosines.groupby(["padding", "task", "layer", "head"], sort=False, as_index=False)["mean"].mean()
panels = {
    f"{task}, {padding}": head_grid(runs_mean.query("padding == @padding and task == @task"), "mean")
    for padding in ("cropped", "kept")
    for task in tasks
    if len(runs_mean.query("padding == @padding and task == @task"))
}
panels["BERT-base, qqp, kept"] = head_grid(published("heads"), "cosine")
label = "cosine similarity before\nand after fine-tuning"
figure = head_grids(panels, label, columns=3, cmap="mako", vmin=0, vmax=1)
results.save_figure(figure, "kovaleva-F5-similarity")

# %%
by_layer = runs_mean[runs_mean["padding"] == "cropped"].groupby(["task", "layer"], sort=False)["mean"].mean()
told = [
    f"layer {row.idxmin()} in {task} ({row.min():.2f})" for task, row in by_layer.unstack("layer").iterrows()
]
finding(
    f"Fine-tuning changes maps most in {', '.join(told)} (mean cosine; layers count from 0). Scores may change most in "
    "another layer (04_compare): they weigh the tokens of a role, a cosine the whole map."
)

# %% [markdown]
# ## Figure 6. Attention to features
#
# The mean attention of all tokens to the most attended word piece of a feature, over the sequences that have it. The
# released code counts a sequence without the feature as 0 (except negation) and finds words by their spelling.

# %%
features = tables.feature_table(readings)
results.save_table(features, "kovaleva_features")
aligned = features[features["mode"] == "aligned"]
means = aligned.groupby(["feature", "task", "state", "layer"])["mean"].mean().reset_index()
theirs = published("layers").assign(task="BERT-base, qqp")
theirs["layer"] *= means["layer"].max() / theirs["layer"].max()  # stretched to the layers of this encoder
grid = sns.relplot(
    pd.concat([means, theirs]), x="layer", y="mean", hue="task", style="state", style_order=["finetuned", "pretrained"],
    kind="line", col="feature", col_wrap=3, col_order=[*names.FEATURES], height=1.4,
    aspect=theme.DOUBLE / 3 / 1.4, facet_kws={"sharey": False},
)  # fmt: skip
grid.set(ylim=(0, None)).set_titles("{col_name}").set_axis_labels(
    "layer (0-based; BERT-base: its\n12 layers at equal depth)", "mean attention"
)
sns.move_legend(grid, "lower center", ncol=8, title="", bbox_to_anchor=(0.5, 1))
results.save_figure(grid.figure, "kovaleva-F6-features")

# %%
before = means[means["state"] == "pretrained"].groupby(["feature", "layer"])["mean"].mean()
gain = means.groupby(["task", "feature", "state"])["mean"].mean().unstack("state")
gain = (
    100
    * (gain["finetuned"] - gain["pretrained"])[
        lambda each: each.index.get_level_values(1).isin(names.LINGUISTIC)
    ]
)
told = [
    f"{name} most in layer {before[name].idxmax()} ({before[name].max():.0%})"
    for name in (names.CLS, names.SEP)
]
finding(
    f"Before fine-tuning the layers give {' and '.join(told)}, mean over tasks. The largest gain of a linguistic feature is "
    f"{gain.max():+.1f} points ({' of '.join(gain.idxmax()[::-1])})."
)

# %%
of_bert = published("features").set_index("feature")
ours = aligned.groupby(["feature", "state"])["mean"].mean().unstack()
columns = ["pretrained", "finetuned"]
pd.concat({"this encoder": ours[columns], "BERT-base, qqp": of_bert[columns]}, axis=1).dropna().style.format(
    precision=3
)

# %% [markdown]
# ## Figure 7. What does `[CLS]` look at in the end?

# %%
row = tables.cls_table(readings)
results.save_table(row, "kovaleva_cls")
after = row[row["state"] == row["state"].iloc[-1]]
shown = pd.concat([after, published("cls").assign(task="BERT-base, qqp")])
figure, grid = theme.rows_of_axes(shown["task"].nunique(), 4, 1.75, 0.5, sharey=True)
for axes, (task, part) in zip(grid, shown.groupby("task", sort=False), strict=True):
    wide = part.pivot(index="feature", columns="head", values="mean").reindex(names.FEATURES)
    sns.heatmap(wide, cmap="mako_r", vmin=0, vmax=0.5, cbar=False, ax=axes)
    axes.set(title=task, xlabel="", ylabel="", facecolor="0.85")
figure.supxlabel("head of the last layer (0-based); grey: no value")
scale = plt.cm.ScalarMappable(plt.Normalize(0, 0.5), "mako_r")
figure.colorbar(scale, ax=grid, label="attention of [CLS]", extend="max", pad=0.01, aspect=30)
results.save_figure(figure, "kovaleva-F7-cls")

# %%
most = after.groupby(["task", "feature"], sort=False)["mean"].mean().unstack("feature")
told = [f"{values.idxmax()} in {task} ({values.max():.2f})" for task, values in most.iterrows()]
finding(f"[CLS] of the last layer attends most to {', '.join(told)}, mean over its heads.")

# %% [markdown]
# ## Subjects and verbs
#
# The article finds that the heads which link subjects and verbs are those of adjacent words. The control is the attention
# that the same head gives to other words of the text at the same distance.

# %%
verbs = tables.verb_blocks(readings)
results.save_table(verbs, "kovaleva_verb_blocks")

# %%
means = verbs.groupby(["direction", "layer", "head"], sort=False)[["mean", "control"]].mean()
best = means.loc[means.groupby("direction", sort=False)["mean"].idxmax().dropna()]
told = [
    f"{link}, head {layer}-{head} {row['mean']:.2f} against {row['control']:.2f}"
    for (link, layer, head), row in best.iterrows()
]
finding(f"Most attention before fine-tuning, and that to words at the same distance: {'; '.join(told)}.")

# %% [markdown]
# *How far to trust it.* Attention to a word is not use of it: `07_kovaleva_disable` switches heads off.
