# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 7a. Which patterns do attention maps have, and what does fine-tuning change?
#
# Kovaleva et al. (2019) sort the attention maps of fine-tuned BERT-base into five patterns. Only one of them,
# *heterogeneous*, can carry much linguistic information; it makes up 32 % of the maps in MRPC and 61 % in QQP. Two of
# 144 heads link the words of a semantic frame (mean attention 0.20 and 0.21). Fine-tuning changes the last two layers
# most, in all tasks but QQP, and it adds little attention to words: 2.1 points to nouns, where `[SEP]` alone has 27 %.
#
# We repeat these analyses and ask what the paper leaves open. How often is the label of a map wrong? Do heads link the
# words of a frame more than any two words at the same distance?
#
# *Kovaleva et al. 2019, "Revealing the Dark Secrets of BERT", sections 4.1 to 4.5; figures 1, 2, 3, 5, 6 and 7.
# Published values are those of BERT-base; layers and heads count from 0 (the paper's from 1). Departures: rules instead of a
# network trained on 400 hand-labelled maps, intervals over sequences, a control for every link, and words found by their
# position instead of their spelling.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp"]  # tasks whose encoders are read
sequences: int = 100  # dev sequences of each task
frames: str = "bundled"  # verbs and their arguments; or links.jsonl, or a folder with it or of FrameNet 1.7
frame_sentences: int | None = 200  # sentences with links, None for all

# seldom changed
encoder: str = "minilm"
# fine-tuned checkpoints instead of ours, such as "models/{task}-{seed}": both are filled in
checkpoint: str | None = None
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
parser: str = "gold"
seeds: list[int] = [0, 1]  # fine-tuning runs
max_tokens: int = 128
permutations: int = 9999
alpha: float = 0.05
resamples: int = 999
seed: int = 0  # of samples and tests
device: str = "cpu"

# %%
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import Markdown

from analysis.encoders.models import load_encoder
from analysis.figures import theme
from analysis.figures.colours import SEQUENTIAL
from analysis.figures.grids import head_grids
from analysis.figures.theme import head_grid, style
from analysis.figures.words import finding
from analysis.papers.kovaleva2019 import frames as frame_links
from analysis.papers.kovaleva2019 import labellers, measures, reading, tables
from analysis.scores.extraction import read_attention
from analysis.scores.sink import sinks
from analysis.statistics.training import trained_runs
from analysis.study.results import Results
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse, parser_name, tags
from analysis.texts.tasks import TOY_TASKS

style()
results = Results(profile)
results.record_parser(parser_name(parser))
examples = {task: load_examples(task, source, "dev", sequences, seed) for task in tasks}
made_up = {*tasks} <= {*TOY_TASKS}


def load(task, run):
    """The encoder of a fine-tuning run, or the pre-trained encoder if `run` is None."""
    return load_encoder(results.weights(task, run, encoder, checkpoint), device)


# %%
model = load_encoder(encoder, device)
results.record_weights(encoder, model.digest)
targets = {}
for task in tasks:
    parses = parse(examples[task], parser, results.parses), tags(examples[task], parser, results.parses)
    targets[task] = reading.find_targets(model.tokenizer, examples[task], *parses, max_tokens)
pd.Series({task: len(sequences) for task, sequences in targets.items()}, name="dev sequences").to_frame().T

# %% [markdown]
# ## Rules for patterns
#
# | pattern | a map has it if its rows attend |
# |---|---|
# | vertical | to the same few tokens, mostly `[CLS]` or `[SEP]` |
# | diagonal | to the token itself or a neighbour |
# | vertical and diagonal | to both |
# | block | to the tokens of their own text, in a pair of texts |
# | heterogeneous | otherwise |
#
# The paper trains a convolutional network on 400 maps that were labelled by hand. Those labels were not published. Our
# labeller is a list of six rules; the first one that holds decides. They use four measures of a map with $L$ tokens:
#
# - `column`: the logarithm of $L$ times the largest median of a column, so that uniform attention has 0;
# - `neighbours`: the mean attention to the token itself and its two neighbours, minus what all rows give these tokens;
# - `nearest`: the same for the best of these three places;
# - `inside`: the mean attention to the text of the current token, minus what all rows give it (0 for single texts).
#
# The thresholds were fitted once to synthetic maps with a known pattern, and are the same in every run. We test them on
# maps that one person labelled by eye: 300 of the encoder of glue-minilm before fine-tuning, labelled before the rules were written, and
# 150 of MPNet fine-tuned on MRPC, in an earlier training than the committed one, labelled before the rules were applied to them. How often
# they are right for another encoder is not known until maps of it are labelled (`labellers.maps_to_label` draws them).

# %%
pd.DataFrame(labellers.RULES).style.hide()

# %%
labelled, maps = labellers.labelled_maps(encoder)
quality, confusion = labellers.quality_tables(maps)
quality, confusion = (table.assign(encoder=labelled) for table in (quality, confusion))
results.save_table(quality, "kovaleva_pattern_quality")
results.save_table(confusion, "kovaleva_pattern_confusion")
quality.style.format(precision=2).hide()

# %%
by_eye = quality.set_index("pattern")
finding(
    f"On maps of {labelled} labelled by eye, the rules have a macro-F1 of {by_eye.loc[labellers.MACRO, 'f1']:.2f} (the paper's network, on its "
    f"own labels: 0.86). Of the maps that they call block, {by_eye.loc[measures.BLOCK, 'precision']:.0%} are block maps by eye."
)

# %% [markdown]
# The confusions (rows: by eye; columns: by the rules):

# %%
order = [*measures.PATTERNS]
confusion.pivot(index="pattern", columns="found", values="n").loc[order, order]

# %% [markdown]
# **How far to trust it.** One person labelled the maps once. Most of these maps have a bright column at `[CLS]`, at
# `[SEP]` or at a full stop; at which brightness a column or a band counts is a matter of judgement, and there the rules and the eye differ most.
#
# ## One pass over every encoder
#
# All measures of this notebook come from one forward pass for each task and encoder, and no map is stored. With
# attention $A$ of a head on a sequence of $L$ tokens, the attention to a feature $F$ (its word pieces) and the
# similarity before and after fine-tuning are
#
# $$ s_F = \max_{j \in F} \frac{1}{L} \sum_i A_{ij}, \qquad
# \cos(A, A') = \frac{\sum_{ij} A_{ij} A'_{ij}}{\sqrt{\sum_{ij} A_{ij}^2 \sum_{ij} A_{ij}'^2}}. $$

# %%
readings = reading.read_runs(load, targets, seeds, results.cache / "kovaleva")
for (task, run), state in readings.items():
    results.record_weights(f"{task}-{run}", state.attrs["weights"])

# %% [markdown]
# The same by hand, for the first sequence and the first head of layer 0: the two columns agree up to rounding.

# %%
layout, before = read_attention(model, examples[tasks[0]][0], max_tokens)
_, after = read_attention(load(tasks[0], seeds[0]), examples[tasks[0]][0], max_tokens)
similarity = (before * after).sum((2, 3)) / np.sqrt((before**2).sum((2, 3)) * (after**2).sum((2, 3)))
received = before.mean(axis=2)[..., layout.sep].max(axis=-1)
pretrained, finetuned = readings[tasks[0], None], readings[tasks[0], seeds[0]]
one_pass = (
    pretrained["received"].sel(feature=measures.SEP).values[0, 0, 0],
    finetuned["cosine"].values[0, 0, 0],
)
values = {"by hand": (received[0, 0], similarity[0, 0]), "one pass": one_pass}
pd.DataFrame(values, index=["attention to [SEP]", "cosine"]).style.format(precision=4)

# %% [markdown]
# ## What do the patterns look like? (figure 1)
#
# For each pattern, the head that has it in most sequences before fine-tuning, on the first sequence.

# %%
shares_by_head = tables.pattern_heads(readings)
results.save_table(shares_by_head, "kovaleva_pattern_heads")
heads = tables.typical_heads(shares_by_head, tasks[0])

# %%
special = np.flatnonzero(layout.cls | layout.sep)
special = special[np.diff(special, prepend=-2) > 1]  # of two separators in a row the first has a label
figure, grid = theme.rows_of_axes(len(heads), 5, 1.95, sharey=True)
for axes, head in zip(grid, heads.itertuples(), strict=True):
    attention = before[head.layer, head.head]
    top = attention.max(axis=1).mean()  # a single bright cell does not hide the rest
    axes.imshow(attention, cmap=SEQUENTIAL, vmin=0, vmax=top, interpolation="nearest")
    axes.set_title(f"{head.pattern}\nhead {head.layer}-{head.head}", fontsize=7.5)
    axes.set_xticks(special, [layout.tokens[place] for place in special], rotation=90, fontsize=6)
grid[0].set_yticks(special, [layout.tokens[place] for place in special], fontsize=6)
grid[0].set_ylabel("current token")
figure.supxlabel("attended token (dark: much attention)")
results.save_figure(
    figure,
    "kovaleva-F1-patterns",
    "Each map is one sequence under the head that has the pattern most often; rows attend to columns. By the "
    "paper, only maps of the last kind can carry much about words (Figure 1 of Kovaleva et al.).",
)

# %%
finding(
    f"Before fine-tuning, the most irregular of these heads has its pattern in {heads['share'].min():.0%} of the sequences of {tasks[0]}."
)

# %% [markdown]
# A band beside the diagonal that runs from one text to the other links equal or similar words. The paper describes such heads in its
# section 5: two heads, on which STS-B and RTE rely most, have high weights for words that appear in both sentences. Claim K9
# ([07_kovaleva_disable](07_kovaleva_disable.ipynb)) asks for them, and [11_matching](11_matching_all.ipynb) is about the heads that draw the band.
#
# ## How frequent are they? (figure 2)
#
# The share of maps with each pattern. The paper's figure has no readable values. For tasks of GLUE the right panel shows a later
# network of the same laboratory on BERT-base, another model under another labeller. Black bars are 95 % intervals of the
# heterogeneous share over sequences. They do not cover errors of the rules: the legend says how many of the maps with a
# label have this pattern by eye (precision).

# %%
shares = tables.pattern_table(readings, alpha, resamples, seed)
shares = shares.merge(quality[["pattern", "precision", "recall"]], on="pattern")
results.save_table(shares, "kovaleva_patterns")
results.save_table(tables.block_table(readings), "kovaleva_blocks")

# %%
blocks = measures.by_block(results.load_table("kovaleva_blocks"))
trained = trained_runs(results.join_parts("finetune", tasks, every=False))
saved_quality = results.load_table("kovaleva_pattern_quality")
results.save_claim("K1", measures.heterogeneous_share(blocks, trained, saved_quality))
results.save_claim("K2", measures.change_of_patterns(blocks, trained, saved_quality))

# %%
encoders = {"this encoder": shares}
if not made_up:  # made-up texts have no published values
    encoders["BERT-base (later network)"] = measures.published("patterns")
figure = tables.pattern_bars(encoders, by_eye["precision"])
results.save_figure(
    figure,
    "kovaleva-F2-shares",
    "Compare the two bars of a task, before and after fine-tuning; the legend says how many labels are "
    "right by eye. Shares that hardly differ mean that fine-tuning leaves the patterns as they are (Figure "
    "2 of Kovaleva et al.).",
)

# %%
by_state = shares.pivot(index=["task", "pattern"], columns="state", values="share")
heterogeneous = by_state["finetuned"].xs(measures.HETEROGENEOUS, level="pattern")
finding(
    f"After fine-tuning, {heterogeneous.min():.0%} to {heterogeneous.max():.0%} of a task's maps are heterogeneous "
    f"(32 % to 61 % in the paper). Fine-tuning changes no share by more than {100 * by_state.diff(axis=1).abs().max(axis=None):.1f} points."
)

# %% [markdown]
# *Try it.* In profile offline, set `tasks = ["toy-mrpc", "toy-sst-2"]`. Which pattern is missing in the second task?
# <details><summary>What happens</summary>
#
# No map of the second task is a block, since there is only one text, and the other patterns share its maps. Shares depend on the
# length of the texts as well: in BERT-base, STS-B and QQP, whose texts are short, have about twice as many heterogeneous maps as
# MRPC.
# </details>

# %% [markdown]
# ## Do heads link the words of a frame? (figure 3)
#
# A *target* word evokes a semantic frame, and *frame elements* are its participants: in "he grew agitated", *agitated*
# evokes a frame, and *he* is the experiencer. The score of a head is the largest attention between their word pieces,
# mean over sentences. The authors' code lets the element attend to the target; the text speaks of attention from the
# target. We show both directions. The authors' code also pairs pieces one by one, at their first occurrence in the
# sentence; here every piece of one is paired with every piece of the other.
#
# The control is the same arrangement of tokens elsewhere in the sentence. A dot marks a head that attends to the link
# more than to its control (permutation test, Benjamini-Yekutieli over heads). With `frames = "bundled"` there are no
# frames, and the links join the verbs of bundled sentences to their subjects and objects. One sentence, with the *target in bold* and
# its elements in brackets:

# %%
sentences = frame_links.read_links(frames, frame_sentences, seed)
Markdown(frame_links.annotated(sentences[0]))

# %%
scores = frame_links.link_scores(model, sentences)
links = frame_links.link_table(scores, permutations, seed)
results.save_table(links, "kovaleva_links")
results.save_table(frame_links.link_blocks(scores), "kovaleva_link_blocks")
results.save_claim("K3", measures.attention_beyond_distance(results.load_table("kovaleva_link_blocks")))

# %%
of_frames = frames != frame_links.BUNDLED
grids, dots = tables.link_panels(links, measures.published("heads") if of_frames else None, alpha)
top = max(grid.max() for grid in grids.values())
label = f"largest attention of the link, mean over sentences\ndot: more than the control (corrected p < {alpha:g})"
figure = head_grids(grids, label, dots, columns=3, vmin=0, vmax=top)
results.save_figure(
    figure,
    "kovaleva-F3-links",
    "Compare the map of a direction with its control, the same arrangement of words elsewhere in the "
    "sentence; dots mark heads that exceed it. A dark cell without a dot is a head that attends at that "
    "distance whatever the words mean (Figure 3 of Kovaleva et al.).",
)

# %%
counts = (links["p_by"] < alpha).groupby(links["direction"]).sum()
best = links.loc[links["mean"].idxmax()]
finding(
    f"{counts['element_to_target']} heads attend from the element to the target more than to the control, and "
    f"{counts['target_to_element']} from the target to the element. Head {best['layer']}-{best['head']} attends most "
    f"({best['mean']:.2f}; control {best['control']:.2f})."
)

# %% [markdown]
# *Try it.* Set `frame_sentences = 20`. Do the means change, and the dots?
# <details><summary>What happens</summary>
#
# The means move by a few hundredths, but most dots go: in 20 sentences the test finds only heads that exceed their control by much. A
# high mean is no evidence of a link without a test.
# </details>

# %% [markdown]
# **How far to trust it.** The control knows the distance between two words, and not their parts of speech: a head that
# attends from nouns to any verb would exceed it without knowing frames.
#
# ## What does fine-tuning change? (figure 5)
#
# The mean cosine of a head's maps before and after fine-tuning. The authors' code pads every map to 200 tokens and
# compares the rows of padding as well, which are most of the map of a short sequence; ours hold the sequence alone. The
# colours span the values of the figure, but for the lowest 2 %.

# %%
cosines = tables.cosine_table(readings, alpha, resamples, seed)
results.save_table(cosines, "kovaleva_cosine")
results.save_claim("K4", measures.change_of_last_layers(blocks, trained))
means = cosines.groupby(["task", "layer", "head"], sort=False, as_index=False)["mean"].mean()

# %%
grids = tables.head_panels(means, "mean", ["task"])
if "qqp" in tasks:
    grids["qqp, BERT-base"] = head_grid(measures.published("heads"), "cosine")
lowest = np.nanquantile(np.concatenate([grid.ravel() for grid in grids.values()]), 0.02)
figure = head_grids(
    grids, "cosine before and\nafter fine-tuning", columns=5, cmap="mako", vmin=lowest, vmax=1
)
results.save_figure(
    figure,
    "kovaleva-F5-similarity",
    "Dark cells are heads whose maps fine-tuning has changed most. Dark rows at the top are last layers "
    "that change more than others (Figure 5 of Kovaleva et al.).",
)

# %%
by_layer = means.groupby(["task", "layer"], sort=False)["mean"].mean().unstack("layer")
last = by_layer.columns[-1]
finding(
    f"The last layer changes most in {(by_layer.idxmin(axis=1) == last).sum()} of {len(by_layer)} tasks. Its mean cosine is "
    f"{by_layer[last].mean():.2f}, that of layer 0 is {by_layer[0].mean():.2f}."
)

# %% [markdown]
# **How far to trust it.** A cosine weighs large values: a head that moves attention from `[CLS]` to `[SEP]` changes
# more than one that redistributes attention among words. Role scores, which see only the tokens of a role, can change
# most in another layer ([04_compare](04_compare.ipynb)).
#
# ## Which features does attention go to? (figure 6)
#
# Attention to a feature is $s_F$ above: the mean over all tokens of a sequence of their attention to the most attended
# word piece of the feature. Sequences without the feature are left out; the authors' code counts them as 0, except for
# negation. The maps show `[CLS]` and `[SEP]` in all tasks of the profile (seven in the paper), in one scale. Of BERT-base the means of the
# layers on QQP are known, which stand as bands, and for words the mean over all heads (table below).

# %%
features = tables.feature_table(readings)
results.save_part(features, "kovaleva_features", "all tasks")
results.save_claim("K5", measures.special_tokens_by_depth(blocks))
results.save_claim("K6", measures.gain_of_linguistic_features(blocks, trained, sinks(model)))
results.save_claim("K11", measures.heads_on_special_tokens(blocks, trained))
feature_means = features[features["mode"] == "aligned"]
shown_task = "qqp" if "qqp" in tasks else tasks[0]
of_task = feature_means[feature_means["task"] == shown_task]
bert_layers = measures.published("layers") if shown_task == "qqp" else None
special = feature_means[feature_means["feature"].isin([measures.CLS, measures.SEP])]
grids = tables.special_token_maps(special, bert_layers)
label = "attention to the token\n(mean over all tokens and sequences)"
results.save_figure(
    head_grids(grids, label, columns=4, vmin=0, vmax=special["mean"].max()),
    "kovaleva-F6-features",
    "Attention of every head to [CLS] (left) and [SEP] (right), before and after fine-tuning, a row for each task; bands are the "
    "layers of BERT-base. Dark rows at the bottom for [CLS] and at the top for [SEP] are the paper's picture (Figure 6 of Kovaleva "
    "et al.).",
)

# %% [markdown]
# Means over all heads for one task, QQP where the profile has it, before and after fine-tuning; those of BERT-base are for QQP.

# %%
by_feature = of_task.groupby(["feature", "state"], sort=False)["mean"].mean().unstack("state")
by_feature = by_feature.loc[[*measures.FEATURES], ["pretrained", "finetuned"]]
if bert_layers is not None:
    by_feature = by_feature.join(
        measures.published("features").set_index("feature").add_prefix("BERT-base, ")
    )
by_feature.style.format(precision=3, na_rep="NA")

# %%
means = feature_means.groupby(["feature", "task", "state", "layer"])["mean"].mean().unstack("state")
pretrained = means["pretrained"].groupby(["feature", "layer"]).mean().unstack("layer")
gains = (means["finetuned"] - means["pretrained"]).groupby(["feature", "task"]).mean()[[*measures.LINGUISTIC]]
feature, task = gains.idxmax()
finding(
    f"Before fine-tuning, attention to [CLS] is largest in layer {pretrained.loc[measures.CLS].idxmax()} "
    f"({pretrained.loc[measures.CLS].max():.0%}) and attention to [SEP] in layer {pretrained.loc[measures.SEP].idxmax()} "
    f"({pretrained.loc[measures.SEP].max():.0%}). The largest gain of a linguistic feature is "
    f"{100 * gains.max():+z.1f} points ({feature} in {task})."
)

# %% [markdown]
# BERT-base rests its heads on `[CLS]` in early layers and on `[SEP]` later. Claim K5 asks for both, as the paper says it. Claim K6
# compares what words gain with the *sink*, the special token that gets more attention before fine-tuning.

# %% [markdown]
# In the committed run of glue-minilm, MiniLM rests its heads on `[CLS]` alone: 42 to 46 % of the attention in layers 1
# to 4, and at most 5 % to `[SEP]` in any layer. Words gain at most 1.7 points (negation in SST-2).

# %% [markdown]
# ## What does `[CLS]` attend to in the last layer? (figure 7)
#
# The classifier reads `[CLS]` of the last layer. The paper finds `[SEP]` to be its main target, except in STS-B, RTE
# and QNLI, where it is punctuation. The figure shows, for each head, the largest attention to a token of the feature,
# averaged over the sequences that have it.

# %%
cls_rows = tables.cls_table(readings)
results.save_table(cls_rows, "kovaleva_cls")
finetuned = cls_rows[cls_rows["state"] == "finetuned"]
bert = [] if made_up else [measures.published("cls").assign(task="BERT-base, qqp")]
plotted = pd.concat([finetuned, *bert])
figure, grid = theme.rows_of_axes(plotted["task"].nunique(), 5, 1.75, 0.5, sharey=True)
for axes, (task, rows) in zip(grid, plotted.groupby("task", sort=False), strict=True):
    by_head = rows.pivot(index="feature", columns="head", values="mean").reindex(measures.FEATURES)
    sns.heatmap(by_head, cmap=SEQUENTIAL, vmin=0, vmax=0.5, cbar=False, ax=axes)
    axes.set(title=task, xlabel="", ylabel="")
    theme.hatch_missing(axes)
figure.supxlabel("head of the last layer (0-based); hatched: no value")
figure.colorbar(
    grid[0].collections[0], ax=grid, label="attention of [CLS]", extend="max", pad=0.01, aspect=30
)
results.save_figure(
    figure,
    "kovaleva-F7-cls",
    "Each column is a head of the last layer, each row a feature that [CLS] may attend to. A dark row is "
    "what the classifier's token reads most (Figure 7 of Kovaleva et al.).",
)

# %%
by_feature = finetuned.groupby("feature")["mean"].mean()
others = by_feature.drop(measures.SEP)
finding(
    f"Mean over tasks and heads, [CLS] of the last layer gives {by_feature[measures.SEP]:.2f} of its attention to [SEP], and of the other "
    f"features most to {others.idxmax()} ({others.max():.2f})."
)

# %% [markdown]
# ## Do heads link subjects and verbs?
#
# The paper finds heads that attend from subjects to their verbs, and sees that they are those that attend to
# neighbours. We ask how much of the link a head gives to any two words at the same distance: attention to the link,
# and to all other placements of the same pair of positions in the text, before fine-tuning.

# %%
verbs = tables.verb_blocks(readings)
results.save_table(verbs, "kovaleva_verb_blocks")
results.save_claim("K7", measures.attention_at_same_distance(results.load_table("kovaleva_verb_blocks")))
by_head = verbs.groupby(["direction", "layer", "head"], sort=False)[["mean", "control"]].mean().reset_index()
best = by_head.sort_values("mean", ascending=False).groupby("direction").head(3)
best.sort_values(["direction", "mean"], ascending=[True, False]).style.format(precision=2).hide()

# %%
top = by_head.loc[by_head["mean"].idxmax()]
finding(
    f"Head {top['layer']}-{top['head']} attends most ({top['direction']}: {top['mean']:.2f}). Between other words at the same "
    f"distance it pays {top['control']:.2f}."
)

# %% [markdown]
# **How far to trust it.** Attention to a word is not use of the word. [07_kovaleva_disable](07_kovaleva_disable.ipynb)
# disables heads and measures what the encoder loses; it also judges the claims of both notebooks.
