# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 5. Surface patterns: what do heads look at?
#
# Heads may attend to neighbouring tokens, to `[CLS]` and `[SEP]`, to punctuation, or to every token a little. Clark et al. (2019)
# find that 4 of the 144 heads of BERT-base give more than half of their attention to the previous token and 5 to the next one.
# In layers 5 to 9, more than half of all attention goes to `[SEP]`, although the loss hardly depends on this attention. They
# conclude that a head rests on `[SEP]` when its function does not apply.
#
# We repeat these measurements on another encoder, and ask whether it rests on a token as well, and on which one.
#
# *Source: Clark et al. 2019, "What Does BERT Look At?", sections 3 and 6 (claims CL1 to CL6 and CL13, judged in
# [05_clark_syntax](05_clark_syntax.ipynb)). Layers and heads count from 0, in the paper from 1. Needs no other run.*

# %% tags=["parameters"]
profile: str = "offline"
encoder: str = "minilm"  # encoder whose heads are read
passages: int = 150  # passages that the heads read
majority: float = 0.5  # the share of its attention above which a head specialises
segment_ids: str = "zeros"  # of both paragraphs, as in the authors' code; pair: 0 and 1, as in pre-training

# seldom changed
passage_source: str = "bundled"  # or a CoNLL-U file with documents, a file of WikiText
max_tokens: int = 128
gradient_passages: int = 40
# tasks whose fine-tuned classifiers stand for a masked language model where there is none, on as many dev sequences
classifier_tasks: list[str] = ["toy-mrpc"]
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours, {task} and {seed} are filled in
source: str | None = None  # of these tasks: hub or a folder of GLUE files; none: toy tasks
seeds: list[int] = [0, 1]  # the first fine-tuning run is taken
distance_passages: int = 60
seed: int = 0  # of passages, masks, scaling and permutations
device: str = "cpu"

# %%
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.encoders.classifiers import load_classifier, random_encoder
from analysis.encoders.models import load_encoder
from analysis.figures import theme
from analysis.figures.attention import attention_lines
from analysis.figures.colours import BLUE, GREEN, ORANGE, SKY, VERMILION, WINE
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.clark2019 import distances, gradients, measures, surface
from analysis.papers.clark2019.gradients import load_language_model
from analysis.papers.clark2019.measures import COLUMN_NAMES, published
from analysis.scores.extraction import read_attention
from analysis.scores.sink import sinks
from analysis.statistics.intervals import mean_interval
from analysis.study.results import Results
from analysis.tables import stacked
from analysis.texts.glue import load_examples
from analysis.texts.passages import load_passages

style()
results = Results(profile)
model = load_encoder(encoder, device)
results.record_weights(encoder, model.digest)
examples = load_passages(passage_source, passages, seed, model.tokenizer, max_tokens)

# %% [markdown]
# ## How attention to a token is measured
#
# The text is running text, two paragraphs to a sequence: `[CLS] paragraph-1 [SEP] paragraph-2 [SEP]`. Let $S$ be the pairs
# (attending token $i$, attended token $j$) of a pattern, say all pairs whose $j$ is `[CLS]`, and let $R$ be the rows that the paper
# counts, mostly all $T$ tokens. The share of a head's attention $\alpha$ is
#
# $$ \frac{1}{|R|} \sum_{(i,j) \in S} \alpha_{ij}, $$
#
# averaged over sequences. For `[CLS]` this is the mean of one column of the attention map:

# %%
layout, attention = read_attention(model, examples[0], max_tokens, segment_ids)
by_hand = attention[:, :, :, 0].mean(axis=-1)  # layer, head: column 0 is [CLS]

scores = surface.surface_scores(model, examples, max_tokens, segment_ids)
shares = surface.surface_shares(scores)  # statistic, sequence, layer, head
print(
    f"head 0-0, first passage: {by_hand[0, 0]:.4f} by hand, {shares.sel(statistic='cls')[0, 0, 0]:.4f} by surface_shares"
)

# %% [markdown]
# A share is a sieve bias score (`02_score`) times $|S| / (T\,|R|)$, so that one pass over the passages gives all of
# them. `uniform` has the share of a head that spreads its attention evenly. Claims are judged on means over ten blocks of
# documents; an encoder with random weights is the control of the heads that attend to neighbours.

# %%
table, uniform = surface.surface_table(scores), surface.uniform_values(scores)
results.save_table(table, "clark_surface")
heads_by_block, layers_by_block = surface.block_tables(scores)
results.save_table(layers_by_block, "clark_layer_blocks")
layer_blocks = results.load_table("clark_layer_blocks").set_index(["block", "layer"]).to_xarray()

random_weights = random_encoder(encoder, seed, device)
random_scores = surface.surface_scores(random_weights, examples, max_tokens, segment_ids)
control = surface.block_tables(random_scores)[0].assign(encoder="untrained")
neighbours = pd.concat([heads_by_block.assign(encoder="pretrained"), control], ignore_index=True)
results.save_table(neighbours, "clark_neighbour_blocks")
results.save_claim("CL1", measures.attention_to_neighbours(results.load_table("clark_neighbour_blocks")))

# %% [markdown]
# ## Which patterns do single heads show? (Figure 1 of the paper)
#
# Each panel shows the head that attends most to one target, or most evenly (*broad*). The passage was chosen so that the
# punctuation head is easy to see. Attention to tokens outside the excerpt (…) is not drawn, and the rest of each row is divided by
# its sum.

# %%
patterns = surface.pattern_heads(table, uniform)
maps = (read_attention(model, example, max_tokens, segment_ids) for example in examples[:20])
tokens, weights = surface.clearest_excerpt(maps, head=tuple(patterns[["layer", "head"]].iloc[-1]))
tokens[0] += " …"
figure, grid = theme.rows_of_axes(len(patterns), 3, 0.135 * len(tokens) + 0.45, 0.3)
for axes, row in zip(grid, patterns.itertuples(), strict=True):
    attention_lines(axes, weights[row.layer, row.head], tokens)
    axes.set_title(f"{row.pattern}: head {row.layer}-{row.head}")
figure.supxlabel("attending token (left), attended token (right)")
figure.supylabel("tokens of the sequence, in order")
results.save_figure(
    figure,
    "clark-F1-heads",
    "Lines run from each attending token (left) to the tokens that it attends to (right), as opaque as the "
    "weight. A panel stands for the head that shows one pattern more than any other (Figure 1 of Clark et "
    "al.).",
)

# %%
broad = next(row for row in patterns.itertuples() if row.pattern == "broad")
finding(
    f"The broadest head is {broad.layer}-{broad.head}: its mean entropy is {broad.mean:.1f} nats, that of uniform attention "
    f"{uniform['entropy']:.1f}."
)

# %% [markdown]
# The table has the mean entropy (*broad*) or the mean share of attention to the target. A head stands for a target only if it attends
# to no other target more; a target without such a head has no panel and no row.

# %%
patterns.style.format({"mean": "{:.2f}"}).hide()

# %% [markdown]
# ## Where does attention go, layer by layer? (Figure 2)
#
# Each dot is a head, each line the mean of a layer. Beside real texts, dashed lines are the published means of BERT-base on
# Wikipedia, stretched to this depth. Short bars at the right edge show uniform attention: `[SEP]` stands twice in a passage, `[CLS]` once. If
# heads rest on a token, that token should attend to itself (third panel).

# %%
panels = [["previous", "next", "self"], ["cls", "sep", "punct"], ["cls_cls", "sep_sep", "rest_sep"]]
colours = [
    [BLUE, VERMILION, GREEN],
    [SKY, WINE, GREEN],
    [SKY, WINE, ORANGE],
]  # [CLS] is sky, [SEP] wine, everywhere
looks = {
    name: look
    for names, row in zip(panels, colours, strict=True)
    for name, look in zip(names, zip(row, "os^", strict=True), strict=True)
}
bert_base = published("layers")
stretch = (model.layers - 1) / bert_base["layer"].max()  # 12 layers drawn over those of this encoder
beside = passage_source != "bundled"  # no published value stands beside generated texts


def draw_by_layer(axes: Axes, name: str) -> None:
    """Dots: heads. Line: mean of a layer. Dashed: published means of BERT-base."""
    label = COLUMN_NAMES.get(name, name)
    colour, mark = looks.get(name, (BLUE, "o"))
    axes.scatter(table["layer"], table[name], s=6, alpha=0.4, linewidth=0, color=colour)
    axes.plot(table.groupby("layer")[name].mean(), color=colour, marker=mark, markersize=3.5, label=label)
    if beside and name in bert_base:
        line = {
            "linestyle": "--",
            "linewidth": 1,
            "marker": mark,
            "markersize": 3,
            "markerfacecolor": "white",
        }
        axes.plot(bert_base["layer"] * stretch, bert_base[name], color=colour, **line)


# %%
figure, grid = theme.rows_of_axes(3, 3, 2.5, 0.3)
for axes, names in zip(grid, panels, strict=True):
    for name in names:
        draw_by_layer(axes, name)
        axes.axhline(uniform[name], xmin=0.95, color=looks[name][0], linewidth=2.5)
    layers_and_bar = -0.3, (model.layers - 0.7) / 0.95
    axes.set(
        xlabel=theme.LAYER,
        xticks=range(0, model.layers, 1 + model.layers // 8),
        xlim=layers_and_bar,
        ylim=(0, None),
    )
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), fontsize=7)
grid[0].set_ylabel("proportion of attention")
stretched = "" if stretch == 1 else ", stretched to this depth"
notes = [f"dashed: BERT-base on Wikipedia (published){stretched}"] if beside else []
figure.supxlabel("; ".join([*notes, "bar at the right edge: uniform attention"]), fontsize=7.5)
results.save_figure(
    figure,
    "clark-F2-surface",
    "Follow the lines of [CLS] (sky) and [SEP] (wine) from layer to layer"
    + ", and compare them with the dashed lines of BERT-base" * beside
    + ". A token whose line lies far above its short bar (uniform attention) is a sink, on "
    "which heads rest (Figure 2 of Clark et al.).",
)

# %%
tokens_at_rest = sinks(model)
results.save_claim("CL2", measures.attention_to_sink(layer_blocks, tokens_at_rest))
results.save_claim("CL3", measures.attention_to_sink(layer_blocks, tokens_at_rest, own=True))
results.save_claim("CL4", measures.change_with_depth(layer_blocks))
finding(
    f"The encoder gives {100 * table['cls'].mean():.0f} % of its attention to [CLS] and {100 * table['sep'].mean():.0f} % to [SEP]."
    + f" BERT-base gives {100 * bert_base['cls'].mean():.0f} % and {100 * bert_base['sep'].mean():.0f} %."
    * beside
)

# %% [markdown]
# **On what do heads rest?** The table has the attention to each candidate by thirds of the layers; full stops and commas count together.

# %%
resting = ["cls", "sep", "punct"]
thirds = table.groupby(3 * table["layer"] // model.layers)[resting].mean()
rests = thirds.set_axis(["first third", "middle third", "last third"]).rename_axis("layers").reset_index()
results.save_table(rests, "sink")
rests.style.format(precision=2).hide()

# %%
on_punctuation, highest = table["punct"] > 0.5, table.loc[table["punct"].idxmax()]
most = rests.set_index("layers")[resting].stack().idxmax()
finding(
    f"The encoder gives most to {COLUMN_NAMES.get(most[1], most[1])} in the {most[0]} ({rests[most[1]].max():.2f} of its attention). "
    f"{on_punctuation.sum()} of {len(table)} heads give more than half to full stops and commas; head "
    f"{highest['layer']:.0f}-{highest['head']:.0f} gives {highest['punct']:.2f}."
)

# %% [markdown]
# How many heads give more than `majority` of their attention to one kind of token? For BERT-base the text of the paper counts 4
# heads (previous token) and 5 (next token) of 144; its figure shows 4 and 3.

# %%
heads = table.set_index(["layer", "head"])[surface.TARGETS]
above = (heads > majority).sum()
overview = {"heads above": above, "highest": heads.max(), "its layer and head": heads.idxmax()}
pd.DataFrame(overview | {"uniform": uniform[surface.TARGETS]}).style.format(precision=3)

# %%
finding(
    f"{above['previous']} of {len(heads)} heads give more than {100 * majority:.0f} % of their attention to the previous token, and "
    f"{above['next']} to the next."
)

# %% [markdown]
# *Try it.* Set `majority = 0.25`. Which columns change, and which numbers cannot?
# <details><summary>What happens</summary>
#
# More heads count as specialists: in glue-minilm most of the new ones specialise in `[CLS]`. The published counts stay, since the
# single heads of BERT-base are known from a figure alone.
# </details>

# %% [markdown]
# In the committed run of glue-minilm, `[CLS]` is the sink: from layer 1 to layer 4 it gets 34 to 39 % of the attention, and `[SEP]`
# 1 to 3 %. In BERT-base about half of it goes to `[SEP]` in layers 4 to 9.

# %% [markdown]
# ## Does attention to the sink matter? (Figure 3)
#
# If a head rests on a token, the loss should hardly depend on that attention. For the loss $L$ of predicting masked tokens we
# take
#
# $$ \frac{1}{|S|} \sum_{(i,j) \in S} \left| \frac{\partial L}{\partial \alpha_{ij}} \right|, $$
#
# averaged over passages. Special tokens are never masked. The loss needs a masked language model, as BERT-base and `tiny` are. For an
# encoder whose checkpoint has none, claim CL5 is not applicable, and the figure shows **another loss: that of a fine-tuned classifier**, the
# cross entropy of its answers on the dev set. The question is the same: does the output depend less on attention to the
# token on which heads rest?


# %%
def gradient_figure(by_loss: dict[str, pd.DataFrame]) -> Figure:
    """Dots: heads. Line: mean of a layer. A panel for each loss, a colour for each kind of attended token."""
    figure, grid = theme.rows_of_axes(len(by_loss), 2, 2.3, 0.4)
    for axes, (title, by_head) in zip(grid, by_loss.items(), strict=True):
        for name, mark in zip(gradients.GROUPS, "os^D", strict=True):
            rows, (colour, _) = by_head[by_head["group"] == name], looks.get(name, ("0.4", "D"))
            label, line = COLUMN_NAMES.get(name, "other tokens"), {"marker": mark, "markersize": 3.5}
            axes.scatter(rows["layer"], rows["importance"], s=6, alpha=0.4, linewidth=0, color=colour)
            axes.plot(rows.groupby("layer")["importance"].mean(), color=colour, label=label, **line)
        axes.set(title=title, xlabel=theme.LAYER, yscale="log")
        axes.set_xticks(range(0, model.layers, 1 + model.layers // 8))
    grid[0].set_ylabel("mean |∂loss / ∂attention| (nats)")
    figure.legend(
        *grid[0].get_legend_handles_labels(), ncols=4, loc="outside lower center", title="attention to"
    )
    return figure


# %%
language_model, by_loss = load_language_model(encoder, device), {}
if language_model:
    options = {"max_tokens": max_tokens, "segment_ids": segment_ids, "seed": seed}
    importance = gradients.gradient_importance(language_model, examples[:gradient_passages], **options)
    by_loss["loss of masked words"], by_layer = gradients.gradient_tables(importance)
    results.save_table(by_layer, "clark_gradients")
    results.save_table(by_loss["loss of masked words"], "clark_gradients_heads")
    results.save_table(gradients.gradient_blocks(importance), "clark_gradient_blocks")
gradient_blocks = results.load_table("clark_gradient_blocks") if language_model else None
results.save_claim("CL5", measures.gradient_on_sink(layer_blocks, gradient_blocks, tokens_at_rest))

# %%
by_task = {}
for task in [] if language_model else classifier_tasks:
    classifier = load_classifier(results.weights(task, seeds[0], encoder, checkpoint), task, device)
    results.record_weights(f"{task}-{seeds[0]}", classifier.digest)
    sequences = load_examples(task, source, "dev", gradient_passages, seed)
    importance = gradients.classifier_importance(classifier, sequences, max_tokens)
    by_loss[f"another loss: that of the classifier, {task}"], by_task[task] = gradients.gradient_tables(
        importance
    )
if by_task:
    results.save_table(stacked(by_task, "task"), "clark_classifier_gradients")
if by_loss:
    results.save_figure(
        gradient_figure(by_loss),
        "clark-F3-gradients",
        "How much the loss changes with attention to each kind of token, on a logarithmic axis. Where the line of [CLS] or [SEP] lies "
        "lower than that of other tokens, the loss depends less on attention to it (Figure 3 of Clark et al.; the title names the loss).",
    )

# %%
if language_model:
    gradient = by_layer.pivot(index="layer", columns="group", values="importance")
    ratio = gradient.div(gradient["other"], axis=0).mean()
    display(
        finding(
            f"The gradient on [CLS] is {ratio['cls']:.2f} times that on other tokens, the gradient on [SEP] {ratio['sep']:.2f} times (means of "
            f"layers). The language model is right about {importance.accuracy.mean().item():.0%} of the tokens that it has to predict."
        )
    )
for task, by_layer in by_task.items():
    gradient = by_layer.pivot(index="layer", columns="group", values="importance")
    ratio = gradient.div(gradient["other"], axis=0)
    rest = tokens_at_rest[0]
    most = int(layer_blocks[rest].mean("block").argmax("layer"))
    display(
        finding(
            f"{task}: in layer {most}, where passages give [{rest.upper()}] most attention, the loss of the classifier changes "
            f"{ratio[rest][most]:.2f} times as much with attention to it as with attention to other tokens; mean of all layers {ratio[rest].mean():.2f}."
        )
    )

# %% [markdown]
# In BERT-base the gradients on `[SEP]` become very small from layer 4 on, where attention to `[SEP]` rises (the paper prints no
# numbers). An encoder that rests on `[CLS]` should show the same for `[CLS]`. A gradient is a slope, not an ablation, and its size
# depends on the loss: layers of one model can be compared, different models cannot.
#
# ## How broad is attention? (Figure 4)
#
# The entropy of a row of attention, $-\sum_j \alpha_{ij} \ln \alpha_{ij}$, averaged over rows and passages. The dotted line is uniform
# attention ($\ln T$), a dashed one BERT-base. The paper finds broad heads in the first layers (3.6 nats in layer 0, 1.8 in layer
# 7); they give at most 10 % to any token.

# %%
figure, grid = theme.rows_of_axes(2, 2, 2.4, sharey=True)
for axes, (name, title) in zip(
    grid, {"entropy": "mean of all rows", "entropy_cls": "row of [CLS]"}.items(), strict=True
):
    draw_by_layer(axes, name)
    axes.axhline(uniform[name], color="black", linestyle=":", linewidth=1)
    axes.set(title=title, xlabel=theme.LAYER, xticks=range(model.layers), ylim=(0, 1.08 * uniform[name]))
grid[0].set_ylabel("entropy (nats)")
figure.supxlabel("; ".join([*notes, "dotted: uniform attention"]), fontsize=7.5)
results.save_figure(
    figure,
    "clark-F4-entropy",
    "Dots near the dotted line are heads that attend to all tokens almost equally"
    + "; dashed lines are BERT-base" * beside
    + ". The course over the layers shows where attention is broad (Figure 4 of Clark et al.).",
)

# %%
entropy = table.groupby("layer")["entropy"].mean()
finding(
    f"Layer 0 has a mean entropy of {entropy[0]:.1f} nats, layer 1 of {entropy[1]:.1f}, and the narrowest layer is {entropy.idxmin()} "
    f"({entropy.min():.1f}). {(table['most'] <= 0.1).sum()} of {len(table)} heads give their most attended token at most 10 %."
)

# %% [markdown]
# By "the first layers" the paper may mean layer 0 alone: claim CL6 compares the first third of the layers with the middle third, and its row
# says what layer 0 does by itself.

# %%
results.save_claim("CL6", measures.entropy_gap(layer_blocks))

# %% [markdown]
#
# *Try it.* Set `max_tokens = 40`. What becomes of heads that give no token more than 10 %?
# <details><summary>What happens</summary>
#
# There is none left, and no head is *broad* in the table `clark_clusters`. The largest possible entropy, ln 40 = 3.7 nats, is below
# the published threshold of 3.8.
# </details>

# %% [markdown]
# ## The numbers behind the lines
#
# Layers of encoders of different depth do not correspond, so that only the course over the layers can be compared.

# %%
layers = bert_base.set_index("layer").rename_axis(columns="statistic")
means = table.groupby("layer")[[*layers]].mean().rename_axis(columns="statistic")
comparison = layers.stack().to_frame("bert_base_published").assign(this_encoder=means.stack())
results.save_table(comparison.reset_index(), "clark_surface_layers")
wide = (comparison if beside else comparison[["this_encoder"]]).unstack().swaplevel(axis=1)
wide[["cls", "sep", "punct", "entropy"]].dropna(how="all").style.format(precision=2, na_rep="")

# %% [markdown]
# ## Do heads of one layer behave alike? (Figure 6)
#
# The distance between two heads is the Jensen-Shannon divergence between their rows of attention $P$ and $Q$,
#
# $$ \mathrm{JS}(P, Q) = H\!\left(\tfrac{P + Q}{2}\right) - \tfrac{1}{2}\bigl(H(P) + H(Q)\bigr), $$
#
# summed over all tokens. In the paper, heads of one layer lie close together. We take the mean distance between layers minus that within
# layers, in blocks of passages; the control assigns the heads to layers at random. [05_clark_syntax](05_clark_syntax.ipynb) draws a map
# of all heads in the plane.

# %%
head_distances, gaps = distances.passage_distances(
    model, examples[:distance_passages], max_tokens, segment_ids, seed
)
results.save_table(gaps, "clark_distance_blocks")
results.save_claim("CL13", measures.distance_between_layers(results.load_table("clark_distance_blocks")))
results.save_table(head_distances, "clark_distances")
places, stress = distances.embed(head_distances, seed)
results.save_table(places.assign(behaviour=distances.behaviours(table), stress=stress), "clark_clusters")

# %%
gap, low, high = mean_interval(gaps["gap"])
finding(
    f"Heads of different layers lie {gap:z.3f} [{low:z.3f}, {high:z.3f}] nats per token farther apart than heads of one layer; with random "
    f"layers {gaps['shuffled'].mean():z.3f}."
)

# %% [markdown]
# **How far to trust it.** One passage is an illustration (Figure 1). The shares are means over many passages of one kind of text, and their
# differences between layers are large. BERT-base and Wikipedia are another model and another text: the sink can be another token, and
# then the claims about `[SEP]` are judged on that token. The last section shows that heads of a layer are more alike than others, not why;
# the paper suggests attention dropout.
