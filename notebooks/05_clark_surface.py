# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 5. Surface patterns: what does the encoder look at?
#
# **Question.** How much attention goes to neighbours, to the special tokens and to punctuation, layer by layer; how
# broad is it; does attention to `[SEP]` matter to the model; and do heads of one layer behave alike?
#
# The text is running text, two paragraphs to a sequence: `[CLS] paragraph-1 [SEP] paragraph-2 [SEP]`. Every share is a
# row of the sieve bank: a sieve bias score times the marked token pairs, over $T$ and the rows.
#
# *Source: Clark et al. 2019, "What Does BERT Look At?", sections 3 and 6. The article's encoder is BERT-base on
# Wikipedia; its values stand beside ours as those of another model on another text.*

# %% tags=["parameters"]
profile: str = "offline"
encoder: str = "minilm"
passage_source: str = "bundled"  # or hub (Wikipedia), a CoNLL-U file with documents, a file of WikiText
unit: str = "paragraph"  # what passages are made of; sentence: as the released code
passages: int = 150
segment_ids: str = "zeros"  # of both paragraphs, as in the released code; pair: 0 and 1, as in pre-training
max_tokens: int = 128
majority: float = 0.5  # the share of its attention above which a head specialises
gradient_passages: int = 40
mask_probability: float = 0.15  # of the hidden tokens; 0 hides nothing and takes the loss at every token
head_epochs: int = 5  # of training a masked-language head, for an encoder that has none
distance_passages: int = 60
seed: int = 0  # of passages, masks, scaling and permutations
device: str = "cpu"
precision: str = "float32"

# %%
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from analysis.encoders import load_encoder, random_encoder
from analysis.figures import diagrams, finding, style, theme
from analysis.papers.clark2019 import distances, gradients, published, surface
from analysis.scores import read_attention
from analysis.statistics.intervals import mean_interval
from analysis.study.results import Results
from analysis.texts import load_passages

# %%
style()
results = Results(profile)
model = load_encoder(encoder, device, precision)
results.record_weights(encoder, model.digest)
examples = load_passages(passage_source, passages, seed, model.tokenizer, max_tokens, unit)

# %% [markdown]
# ## One pass over the passages
#
# Scores of the few sieves that are needed and, beside them, the entropy of every row of attention.

# %%
scores = surface.surface_scores(model, examples, max_tokens, segment_ids)
table, uniform = surface.surface_table(scores), surface.uniform_values(scores)
results.save_table(table, "clark_surface")
print(
    f"{model.name}: {model.layers} layers of {model.heads} heads, {len(examples)} passages of "
    f"{scores.tokens.mean().item():.0f} tokens on average, segment ids {segment_ids}"
)

# %% [markdown]
# Claims are judged on means over ten blocks of documents, which say how much the passages matter. The encoder with random
# weights is the control of the best heads.

# %%
untrained = random_encoder(encoder, seed, device, precision)
chance = surface.surface_scores(untrained, examples, max_tokens, segment_ids)
heads_of = {"pretrained": scores, "untrained": chance}
blocks = {name: surface.block_tables(found) for name, found in heads_of.items()}
neighbours = pd.concat([heads.assign(encoder=name) for name, (heads, _) in blocks.items()], ignore_index=True)
results.save_table(neighbours, "clark_neighbour_blocks")
results.save_table(blocks["pretrained"][1], "clark_layer_blocks")

# %% [markdown]
# ## F1. Heads that show a pattern
#
# For each kind, the head that shows it most, on `[CLS]` and the end of the first passage. A head stands for a target
# only where it attends to no other target more; where no head does, the panel says so. Attention to the tokens that are
# left out is not drawn, and the rest is divided by its sum.

# %%
heads = table.set_index(["layer", "head"])[surface.TARGETS]
columns = {"broad": "entropy", "next token": "next", "[CLS]": "cls", "[SEP]": "sep", "stops, commas": "punct"}
most = heads.idxmax(axis=1)  # the target of each head
chosen = {}
for kind, column in columns.items():
    suitable = table.set_index(["layer", "head"])[column][(most == column) | (column not in heads)]
    taken = [place for place in chosen.values() if place]  # a head stands for one kind
    left = suitable.drop(taken, errors="ignore")
    chosen[kind] = tuple(map(int, left.idxmax())) if len(left) else None

# %%
layout, attention = read_attention(model, examples[0], max_tokens, segment_ids)
shown = np.unique([0, *range(max(0, len(layout) - 14), len(layout))])
names = [layout.tokens[place] for place in shown]
if len(shown) < len(layout):
    names[0] += " …"  # marks the tokens left out
figure, grid = theme.rows_of_axes(len(chosen), 3, 0.135 * len(shown) + 0.45, 0.3)
for axes, (kind, place) in zip(grid, chosen.items(), strict=True):
    if place is None:
        axes.text(0.5, 0.5, "no head of this encoder\nattends most to this", ha="center", color="0.4")
        axes.set_title(kind)
        axes.axis("off")
    else:
        cells = attention[place][np.ix_(shown, shown)]
        diagrams.attention_lines(axes, cells / cells.sum(axis=1, keepdims=True), names)
        axes.set_title(f"{kind}\nlayer {place[0]}, head {place[1]}")
figure.supxlabel("attending token (left), attended token (right)")
figure.supylabel("tokens of the sequence, in order")
results.save_figure(figure, "clark-F1-heads")

# %%
there = [f"{kind} ({place[0]}-{place[1]})" for kind, place in chosen.items() if place]
none = [kind for kind, place in chosen.items() if not place]
finding(
    f"The strongest heads (layer-head) are those for {', '.join(there)}. Kinds that no head attends to more than to "
    f"anything else: {', '.join(none) or 'none'}."
)

# %% [markdown]
# *How far to trust it.* One passage is an illustration. The table below says how strong the heads are.
#
# ## F2. Neighbours, special tokens, punctuation
#
# `[SEP]` stands twice in each passage and `[CLS]` once. The dots at the right edge show what a head that attends uniformly
# gives them. The third panel asks whether `[SEP]` is where a head rests when it finds nothing: then the `[SEP]` tokens
# themselves attend to `[SEP]` too. Dashed lines are the published means of **BERT-base, another model on another text**.

# %%
colour = dict(zip(surface.COLUMNS, sns.color_palette("colorblind", len(surface.COLUMNS)), strict=True))
bert_base = published.table("layers")
stretch = (model.layers - 1) / bert_base["layer"].max()  # 12 layers drawn over those of this encoder


def by_layer(axes: Axes, name: str, mark: str) -> None:
    """Marks: heads. Line: mean of a layer. Dashed: the published means of BERT-base. Dots at the right: uniform."""
    means = table.groupby("layer")[name].mean()
    axes.scatter(table["layer"], table[name], s=6, alpha=0.4, linewidth=0, color=colour[name])
    axes.plot(means, color=colour[name], marker=mark, markersize=3.5, label=published.MARKED.get(name, name))
    axes.axhline(uniform[name], xmin=0.95, color=colour[name], linestyle=":")
    if name in bert_base:
        axes.plot(bert_base["layer"] * stretch, bert_base[name], "--", linewidth=1, color=colour[name])


# %%
figure, grid = theme.rows_of_axes(3, 3, 2.5, 0.3)
for axes, names in zip(
    grid,
    (["previous", "next", "self"], ["cls", "sep", "punct"], ["cls_cls", "sep_sep", "rest_sep"]),
    strict=True,
):
    for name, mark in zip(names, "os^", strict=True):
        by_layer(axes, name, mark)
    axes.set(xlabel=theme.LAYER, ylim=(0, None))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), fontsize=7)
grid[0].set_ylabel("proportion of attention")
figure.supxlabel("dashed: BERT-base on Wikipedia (published), stretched to this depth", fontsize=7.5)
results.save_figure(figure, "clark-F2-surface")

# %%
ours = table.groupby("layer")[["cls", "sep", "punct"]].mean()
theirs = bert_base.set_index("layer")[[*ours]]
told = [
    f"{published.MARKED[name]} ({means[name].mean():.0%}, {means[name].max():.0%} in layer {means[name].idxmax()})"
    for means in (ours, theirs)
    for name in [means.mean().idxmax()]
]
finding(f"Of these three this encoder attends most to {told[0]}, BERT-base in the article to {told[1]}.")

# %%
above = heads > majority
counts = published.table("specialists").set_index("statistic")["heads"]
told = [
    f"{above[name].sum()} of {len(heads)} to the {name} token (BERT-base {counts[name]} of 144)"
    for name in counts.index
]
finding(f"Heads that give more than {majority:.0%} of their attention: {' and '.join(told)}.")

# %%
layers = {name: ", ".join(str(layer) for layer, _ in above.index[above[name]]) for name in above}
overview = {"heads": above.sum(), "layers": pd.Series(layers), "highest": heads.max(), "uniform": uniform}
pd.DataFrame(overview).loc[surface.TARGETS].style.format(precision=3).set_caption(
    f"Heads that give one target more than {majority:.0%}"
)

# %% [markdown]
# The article finds that in the middle layers of BERT-base more than half of all attention goes to `[SEP]`. Its text
# counts more heads for the next token than its own figure shows.
#
# ## F3. Does attention to `[SEP]` matter?
#
# The absolute gradient of the loss of guessing hidden tokens with respect to every attention weight: how much the loss
# would change if the head attended a little more there. Every passage has a gradient of its own, and special tokens are
# never hidden. An encoder without a masked-language head gets one, trained on these passages while the encoder stays
# as it is.

# %%
guesser = gradients.language_model(encoder, examples, head_epochs, max_tokens, segment_ids, seed, device)
importance = gradients.gradient_importance(
    guesser,
    examples[:gradient_passages],
    mask_probability,
    max_tokens=max_tokens,
    segment_ids=segment_ids,
    seed=seed,
)
by_head = importance.mean("sequence").transpose("layer", "head", "group").to_series().reset_index()
slopes = by_head.groupby(["layer", "group"], sort=False)["importance"].mean().reset_index()
results.save_table(slopes, "clark_gradients")
results.save_table(by_head, "clark_gradients_heads")
in_blocks = importance.assign_coords(
    block=("sequence", surface.passage_blocks(importance["sequence"].values.tolist()))
)
in_blocks = in_blocks.groupby("block").mean().mean("head").to_series().reset_index()
results.save_table(in_blocks[["block", "layer", "group", "importance"]], "clark_gradient_blocks")

# %%
axes = theme.canvas(theme.DOUBLE * 0.75, 2.5)
for name, mark in zip(("cls", "sep", "punct", "other"), "os^D", strict=True):
    part = by_head[by_head["group"] == name]
    shade = colour.get(name, "0.4")
    axes.scatter(part["layer"], part["importance"], s=6, alpha=0.4, linewidth=0, color=shade)
    label = published.MARKED.get(name, "other tokens")
    axes.plot(
        part.groupby("layer")["importance"].mean(), color=shade, marker=mark, markersize=3.5, label=label
    )
axes.set(xlabel=theme.LAYER, ylabel="mean |∂loss / ∂attention| (nats)", yscale="log", title=guesser.origin)
axes.figure.legend(ncols=4, loc="outside lower center", title="attention to")
results.save_figure(axes.figure, "clark-F3-gradients")

# %%
wide = slopes.pivot(index="layer", columns="group", values="importance")
ratios = wide[["cls", "sep"]].div(wide["other"], axis=0)
finding(
    f"Over the layers the gradient for [CLS] is {ratios['cls'].min():.2f} to {ratios['cls'].max():.2f} times that for other "
    f"tokens, for [SEP] {ratios['sep'].min():.2f} to {ratios['sep'].max():.2f} times. The masked-language head guesses "
    f"{importance.accuracy.mean().item():.0%} of the tokens (loss {importance.loss.mean().item():.2f} nats)."
)

# %% [markdown]
# In the article the gradients for `[SEP]` fall where attention to `[SEP]` rises. An encoder that rests on `[CLS]`
# instead (figure F2) should show the same for `[CLS]`.
#
# *How far to trust it.* A gradient is a slope, not an ablation, and its size is that of one loss. Values of different
# layers can be compared, those of different models cannot. A head that was trained briefly guesses badly; what it says
# about the encoder is a hint.
#
# ## F4. How broad is attention?
#
# The entropy of a row of attention, mean over rows and passages. The dotted line is attention that is spread evenly; the
# dashed one shows the published means of BERT-base. The article also says that broad heads give at most 10 % to any word.

# %%
figure, grid = theme.rows_of_axes(2, 2, 2.4, sharey=True)
for axes, (name, title) in zip(
    grid, {"entropy": "mean of all rows", "entropy_cls": "row of [CLS]"}.items(), strict=True
):
    by_layer(axes, name, "o")
    axes.axhline(uniform[name], color="black", linestyle=":", linewidth=1)
    axes.set(title=title, xlabel=theme.LAYER, ylim=(0, 1.08 * uniform[name]))
grid[0].set_ylabel("entropy (nats)")
results.save_figure(figure, "clark-F4-entropy")

# %%
means = table.groupby("layer")["entropy"].mean()
broad = table.loc[table["most"].idxmin()]
finding(
    f"Attention is broadest in layer {means.idxmax()} ({means.max():.1f} of at most {uniform['entropy']:.1f} nats), "
    f"narrowest in layer {means.idxmin()} ({means.min():.1f}). {(table['most'] <= 0.1).sum()} of {len(table)} heads give "
    f"their most attended token at most 10 % on average; least {broad['layer']:.0f}-{broad['head']:.0f} ({broad['most']:.0%})."
)

# %% [markdown]
# ## Beside the published values
#
# Layer means that the article's figures show for **BERT-base, another model on another text**, and those of this
# encoder. Layers of encoders of different depth do not correspond; only the course over the layers can be compared.

# %%
theirs = bert_base.set_index("layer").rename_axis(columns="statistic")
ours = table.groupby("layer")[[*theirs]].mean().rename_axis(columns="statistic")
compared = theirs.stack().to_frame("bert_base_published").assign(this_encoder=ours.stack())
results.save_table(compared.reset_index(), "clark_surface_layers")
wide = pd.concat({"BERT-base (published)": theirs, model.name: ours.reindex(theirs.index)}, axis=1)
wide.style.format(precision=2, na_rep="")

# %% [markdown]
# ## Do heads of one layer behave alike?
#
# The Jensen-Shannon distance between every two heads, summed over all tokens, compared within and between layers. The
# notebook `05_clark_syntax` shows a map of the heads in the plane (figure F6).

# %%
sample = examples[:distance_passages]
of_block = surface.passage_blocks([passage.id for passage in sample])
tokens = scores.tokens.values[: len(sample)]
parts = []
for block in np.unique(of_block):
    texts = [text for text, number in zip(sample, of_block, strict=True) if number == block]
    table_of_block = distances.head_distances(model, texts, max_tokens, segment_ids, progress=False)
    parts.append((table_of_block, int(tokens[of_block == block].sum())))
apart = parts[0][0].assign(distance=sum(table_of_block["distance"] for table_of_block, _ in parts))
between = distances.block_distances(parts, seed=seed)
results.save_table(between, "clark_distance_blocks")
results.save_table(apart, "clark_distances")
places, stress = distances.embed(apart, seed)
results.save_table(places.assign(behaviour=distances.behaviours(table), stress=stress), "clark_clusters")

# %%
gap, low, high = mean_interval(between["gap"])
finding(
    f"Heads of different layers lie {gap:.3f} [{low:.3f}, {high:.3f}] nats a token farther apart than heads of one layer (mean of "
    f"blocks of passages); with the heads dealt to layers at random {between['dealt'].mean():.3f}."
)

# %% [markdown]
# *How far to trust it.* The difference says whether heads of a layer are more alike than others, not why.
