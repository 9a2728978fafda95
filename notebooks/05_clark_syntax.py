# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 5, continued. Do heads know syntax and coreference?
#
# Take the word to which a head attends most. Is it the syntactic head of the attending word? Clark et al. (2019) find single heads of
# BERT-base that answer yes for one relation each: 87 % of direct objects attend to their verb and 94 % of determiners to their
# noun. One head finds the antecedent of 65 % of mentions, and a probe that combines all heads attaches 77 % of the words to
# the right head.
#
# We repeat this on MiniLM and compare every number with a rule that knows only positions.
#
# *Source: Clark et al. 2019, sections 4 to 6 (Tables 1 to 3, Figures 5 and 6; claims CL1 to CL13). Departures: a head is chosen
# on one half of the data and scored on the other, and vice versa; intervals and tests; Universal Dependencies. The paper's
# values are those of BERT-base on the Penn Treebank and CoNLL-2012. Needs [05_clark_surface](05_clark_surface.ipynb).*

# %% tags=["parameters"]
profile: str = "offline"
encoder: str = "minilm"
max_tokens: int = 128
seed: int = 0
device: str = "cpu"
precision: str = "float32"
alpha: float = 0.05
resamples: int = 999  # of the bootstrap
# CoNLL-U files, or folders of them, on which heads and probes are scored; none: the bundled documents
conllu: list[str] = []
conllu_train: list[str] = []  # the same for training probes
conllu_documents: list[str] = []  # the same, with coreference chains (Entity of MISC)
documents_n: int = 60  # bundled documents of each split
rows: str = "mean"  # attention from a word is the mean over its pieces; the authors' code takes the "first"
arcs_minimum: int = 100  # of a relation
candidates: list[str] = [
    "all_words",
    "preceding_mention_heads",
]  # words among which a head finds an antecedent, one reading after the other
document_limit: int = 128  # word pieces of a document that are read, with special tokens
probe_seeds: list[int] = [0, 1, 2]
probe_step: int = 1  # sentences of an update
train_every: int = 1  # 2: every second sentence of the training files, which halves the time
# "original" too: the authors' code pairs a candidate with the next word's vector
root_alignment: list[str] = ["fixed"]
glove: str | None = None  # a file of GloVe vectors as text

# %%
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import Markdown
from matplotlib.patheffects import withStroke

from analysis.encoders.models import load_encoder, random_encoder
from analysis.figures import diagrams, theme
from analysis.figures.claims import forest_plot
from analysis.figures.colours import BLUE, SKY, VERMILION
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.clark2019 import attachment, coreference, illustrations, probes, published
from analysis.papers.clark2019.measures import CLAIMS, TABLES, measures
from analysis.scores.attachment import attach
from analysis.scores.control_maps import sink
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.study.results import Results
from analysis.texts import chains, dependencies
from analysis.texts.treebank import conllu_files, read_trees

style()
results = Results(profile)
model = load_encoder(encoder, device, precision)
results.record_weights(encoder, model.digest)
bundled = {"folder": results.cache / "documents", "n": documents_n, "seed": seed}
trees = read_trees(conllu_files(conllu, split="dev", **bundled))
print(
    f"{trees.words['sentence'].nunique()} sentences, {len(trees.words):,} words; left out: {trees.left_out}"
)

# %% [markdown]
# ## How far do positions alone go?
#
# A fixed offset takes the word at one distance, say the next word, as the head of every word; no model is involved. Offsets are clamped
# to the sentence as in the authors' code. `all` at +1 is the right-branching tree.

# %%
gold_arcs = dependencies.arcs(trees.words)
offsets = dependencies.offset_table(gold_arcs, offsets=dependencies.SYMMETRIC)
results.save_table(offsets, "clark_offsets")

# %%
best_offsets = dependencies.best_offsets(offsets[offsets["offset"] <= 2])  # the paper never tries +3
frequent = best_offsets[best_offsets["n"] >= arcs_minimum]
easiest = frequent.loc[frequent["accuracy"].idxmax()]
finding(
    f"A fixed offset finds more than half of the arcs of {(frequent['accuracy'] > 0.5).sum()} of {len(frequent)} relations. The easiest "
    f"is {easiest['relation']}: {easiest['accuracy']:.0%} at offset {easiest['offset']:+d}."
)

# %% [markdown]
# ## Which head finds which relation? (T1)
#
# Attention *to* a split word is the sum over its pieces, attention *from* it the mean. Each head is read in two directions: the head
# of word $i$ is
#
# $$ \operatorname*{argmax}_{j \neq i} \alpha_{ij} \quad\text{(dependent to head)}\qquad\text{or}\qquad
# \operatorname*{argmax}_{j \neq i} \alpha_{ji} \quad\text{(head to dependent)}, $$
#
# without `[CLS]` and `[SEP]`. `dependency_table` chooses the best head, direction and offset of each relation on one half of the
# documents, scores them on the other half, and vice versa. A sign-flip test over sentences compares head and offset, corrected
# over relations (Benjamini and Yekutieli).

# %%
attention_arcs = attach(model, trees.words, max_tokens, rows)
scored_arcs = dependencies.arcs(attention_arcs.words)
relations = attachment.dependency_table(
    attention_arcs, scored_arcs, minimum=arcs_minimum, alpha=alpha, resamples=resamples, seed=seed
)
results.save_table(relations, "clark_dependencies")

# %%
names = [
    f"{row.relation} (n = {row.n}), head {row.layer}-{row.head} {illustrations.ARROWS[row.direction]}"
    for row in relations.itertuples()
]
place, significant = np.arange(len(relations)), relations["p_adjusted"] < alpha

# %%
axes = theme.canvas(theme.DOUBLE, 0.19 * len(relations) + 0.9)
axes.hlines(place, relations["low"], relations["high"], color=BLUE, linewidth=0.9)
fill = np.where(significant, BLUE, "white")
head_label, offset_label = "best head (white: not significant)", "best fixed offset"
axes.scatter(relations["accuracy"], place, c=fill, edgecolor=BLUE, zorder=3, label=head_label)
axes.plot(relations["offset_accuracy"], place, "D", color=VERMILION, fillstyle="none", label=offset_label)
axes.set_yticks(place, names)
axes.set(ylim=(len(relations) - 0.5, -0.5), xlim=(-0.02, 1.02), ylabel="relation")
axes.set_xlabel("accuracy (proportion of arcs of the held-out half)")
axes.figure.legend(ncols=2, loc="outside lower center")
results.save_figure(axes.figure, "clark-T1-dependencies")

# %%
largest = relations.loc[relations["gain"].idxmax()]
finding(
    f"In {(significant & (relations['gain'] > 0)).sum()} of {len(relations)} relations the best head has a significantly higher accuracy than the "
    f"best offset. The gain is largest for {largest['relation']}: {largest['accuracy']:.0%}, against {largest['offset_accuracy']:.0%}."
)

# %% [markdown]
# Compare each circle with its diamond, not with zero: much of what looks like syntax is position. Relations overlap (`det` is part of
# `all`), so that they are not separate findings.

# %% [markdown]
# In the committed run of glue-minilm, single heads find direct objects (74 %, offset 36 %) and determiners (81 %, offset 60 %), but no
# head finds more than 40 % of all arcs: like BERT-base, MiniLM has specialists and no parser.

# %% [markdown]
# ## How optimistic is the paper's choice?
#
# Table 1 of the paper takes the best of all heads on the sentences that it reports. `same data` is that value and `held out` the one above,
# both for this encoder, in percent. The last columns are BERT-base on the Penn Treebank as the authors' notebook prints them.

# %%
best_heads = attachment.best_heads(attention_arcs, scored_arcs, arcs_minimum)
results.save_table(best_heads, "clark_best_heads")
comparison = published.beside_dependencies(relations, best_heads)
comparison.style.format(precision=1, na_rep="–").hide()

# %%
optimism = comparison["same data"] - comparison["held out"]
finding(
    f"Choosing the head on the sentences that are scored changes the accuracy by {optimism.median():+.1f} points (median), at most "
    f"by {optimism.max():+.1f}."
)

# %% [markdown]
# The labels of the two schemes correspond only roughly: `aux` takes infinitival *to*, `prep` and `pobj` are rebuilt from adpositions.
#
# ## Does a head find antecedents? (T2)
#
# Does the head word of a mention attend most to the head word of one of its antecedents? The rules choose among preceding
# mentions, whose boundaries they are given. The paper does not say which words a head chooses among, so we try two readings: all
# words, and the head words of preceding mentions, which makes the comparison with the rules fair.

# %%
documents = chains.read_chains(conllu_files(conllu_documents, split="dev", **bundled))
texts = coreference.beginnings(model, documents.documents, document_limit)
left_out = documents.left_out | texts.left_out
print(f"{len(texts.documents)} texts of {len(documents.documents)} documents; left out: {left_out}")

# %%
tables = {}
for reading in candidates:
    by_head = coreference.hits_by_head(model, texts, reading, rows)  # anaphor, layer, head
    tables[reading] = coreference.antecedent_table(texts, by_head, alpha, resamples, seed)
readings = pd.concat(tables, names=["candidates"]).reset_index("candidates")
results.save_table(readings, "clark_coreference_readings")
systems = coreference.held_out_systems(tables)
results.save_table(systems[coreference.SYSTEM_COLUMNS], "clark_coreference")

# %%
kinds = ["all", *chains.KINDS]
ends = [[end, *(f"{end}_{kind}" for kind in chains.KINDS)] for end in ("low", "high")]
axes = theme.canvas(theme.DOUBLE, 3)
for number, (name, mark) in enumerate(zip(systems["system"], "v^sDPoX*", strict=False)):
    place = np.arange(len(kinds)) + 0.11 * (number - (len(systems) - 1) / 2)
    low, high = (systems.loc[number, columns].astype(float) for columns in ends)
    axes.vlines(place, low, high, color=f"C{number}")
    axes.plot(place, systems.loc[number, kinds], mark, color=f"C{number}", label=name)
axes.set_xticks(range(len(kinds)), kinds)
axes.set(xlabel=f"kind of mention ({systems['n'].max()} anaphors)", ylim=(0, 1))
axes.set_ylabel("antecedent found\n(proportion of anaphors)")
axes.figure.legend(ncols=2, loc="outside lower center")
results.save_figure(axes.figure, "clark-T2-coreference")

# %%
is_head = systems["layer"].notna()
head, rule = (part.loc[part["all"].idxmax()] for part in (systems[is_head], systems[~is_head]))
finding(
    f"The best head ({head['layer']}-{head['head']}) finds the antecedent of {head['all']:.0%} [{head['low']:.0%}, {head['high']:.0%}] of "
    f"{head['n']} anaphors, the best rule ({rule['system']}) of {rule['all']:.0%} [{rule['low']:.0%}, {rule['high']:.0%}]."
)

# %% [markdown]
# The same in percent. The last columns are BERT-base on CoNLL-2012, whose head was chosen on the documents that it is scored on:

# %%
published.beside_coreference(systems).style.format(precision=1, na_rep="–").hide()

# %% [markdown]
# Rules and heads are scored on the same documents; intervals resample documents. A head that chooses among heads of mentions is given the
# mentions as the rules are: compare systems within one reading.

# %% [markdown]
# In the committed run of glue-minilm, the best head among heads of mentions (2-4) equals the rule-based system (77 %), while the best head
# among all words (2-9) finds 45 %.

# %% [markdown]
# ## What do these heads look like? (F5)
#
# A hit and a miss of each head that has both. The heads with the largest gains over their offset come first: the first arc that they find in
# a sentence of 6 to 12 words, and the first that they miss. The heads for antecedents follow, with a mention whose antecedent is a few
# words before. They are the first suitable examples, not the most telling. Vermilion lines start at the attending word of the
# dotted line, which is the gold arc. `[CLS]` and `[SEP]` are masked, and each row is divided by its sum.

# %%
single = relations[~relations["relation"].str.contains(r"all|\+")]  # without sums of relations
largest_gains = single.sort_values("gain", ascending=False, kind="stable").head(4)
sketches = illustrations.head_examples(model, attention_arcs, scored_arcs, largest_gains, rows=rows)
sketches += illustrations.coreference_examples(model, texts, systems, rows=rows)

# %%
longest = max(len(sketch.forms) for sketch in sketches)
figure, grid = theme.rows_of_axes(len(sketches), 3, 0.155 * longest + 0.6, 0.3)
for axes, sketch in zip(grid, sketches, strict=True):
    start, end = sketch.arc
    diagrams.attention_lines(axes, sketch.attention, sketch.forms, {start}, longest)
    axes.plot([0, 1], [start, end], ":", color="black", linewidth=0.8, zorder=3)
    axes.set_title(sketch.title)
figure.supxlabel("left: attending word; right: attended word; dotted: gold arc; [CLS] and [SEP] masked")
figure.supylabel("word of the sentence, from the first down")
results.save_figure(figure, "clark-F5-heads")

# %%
finding(
    f"Over all sentences, the heads of the first panels find {largest_gains['accuracy'].min():.0%} to "
    f"{largest_gains['accuracy'].max():.0%} of the arcs of their relations."
)

# %% [markdown]
# In a hit, no other word gets as much attention (dep→head, mentions) or gives as much to the dependent (head→dep). What a word gives to itself
# does not count, and a mention may attend beyond the excerpt.
#
# ## Where do these heads lie among all heads? (F6)
#
# A map of all heads by multidimensional scaling of their Jensen-Shannon distances (05_clark_surface). On the left colours follow the paper's
# rules, of which a later one overrides an earlier one; on the right they are layers. Rings mark heads that find a relation better than
# position does, or antecedents. The plane may be turned or mirrored freely, and shows distances poorly if its stress is above 0.2.

# %%
clusters = results.load_table("clark_clusters")
rings = clusters.merge(illustrations.linguistic_heads(relations, readings, alpha), on=["layer", "head"])
rings[["layer", "head", "behaviour", "finds"]].style.hide()

# %%
figure, (left, right) = theme.rows_of_axes(2, 2, 4.1)
place = {"data": clusters, "x": "x", "y": "y", "s": 28}
sns.scatterplot(**place, hue="behaviour", style="behaviour", palette="colorblind", ax=left)
sns.scatterplot(**place, hue="layer", palette="viridis", legend="full", ax=right)
for axes in (left, right):
    axes.set(xticks=[], yticks=[], aspect="equal", xlabel="", ylabel="")
    sns.move_legend(axes, "upper center", bbox_to_anchor=(0.5, 0), ncols=3, handletextpad=0.2)
left.scatter(rings["x"], rings["y"], s=55, facecolor="none", edgecolor="black")
figure.supylabel(f"MDS of Jensen-Shannon distances (stress {clusters['stress'].iloc[0]:.2f})")

# Each name stands at the corner of its ring that is farthest from other points and names.
corners, taken = np.array([(1, 1), (-1, 1), (1, -1), (-1, -1)]), clusters[["x", "y"]].to_numpy()
to_name = np.ptp(taken, axis=0).max() * np.array([0.05, 0.035])  # from a point to the middle of its name
for row in rings.itertuples():
    middles = (row.x, row.y) + corners * to_name
    best = np.linalg.norm(middles[:, None] - taken, axis=-1).min(axis=1).argmax()
    taken, (across, up) = np.vstack([taken, middles[best]]), corners[best]
    sides = {"ha": "left" if across > 0 else "right", "va": "bottom" if up > 0 else "top"}
    place = {"xytext": (5 * across, 4 * up), "textcoords": "offset points", **sides}
    text = left.annotate(f"{row.layer}-{row.head}", (row.x, row.y), fontsize=7, **place)
    text.set_path_effects([withStroke(linewidth=2, foreground="white")])
results.save_figure(figure, "clark-F6-clusters")

# %%
finding(
    f"{len(rings)} of {len(clusters)} heads find a relation better than position does, or antecedents; {(rings['behaviour'] == 'other').sum()} "
    "of them have none of the surface behaviours."
)

# %% [markdown]
# ## How much of the tree is in all heads together? (T3)
#
# A probe gives each head $k$ one weight per direction and chooses the head $i$ of word $j$ with
#
# $$ p(i \mid j) \propto \exp \sum_k \bigl( w_k\, \alpha^k_{ij} + u_k\, \alpha^k_{ji} \bigr). $$
#
# With words, $w_k$ and $u_k$ depend on the vectors of both words. Controls are the same probes on an encoder with random layers, distances
# with the same vectors, and the right-branching tree. The probes are trained in one pass over other sentences.

# %%
training = read_trees(conllu_files(conllu_train, split="train", **bundled)).words
training = training[training["sentence"] % train_every == 0]
random_layers = random_encoder(encoder, seed, device, precision, keep_embeddings=True)
probe_scores, vectors, digest = probes.probe_table(
    [model, random_layers], training, trees.words, probe_seeds, root_alignment, glove, max_tokens, probe_step
)
results.record_weights("probes", digest)
results.save_table(probe_scores, "clark_probes")
means = probes.probe_means(probe_scores, alpha)
print(f"Trained on {training['sentence'].nunique()} sentences; the word vectors are {vectors}.")

# %%
ordered = means.assign(published=published.beside_probes(means)).sort_values("mean", ignore_index=True)
names = (ordered["probe"] + ", " + ordered["encoder"]).str.removesuffix(f", {probes.NO_ENCODER}")
percent, half = 100 * ordered["mean"], 100 * (ordered["high"] - ordered["mean"])
axes = theme.canvas(theme.DOUBLE, 0.36 * len(ordered) + 0.9)
axes.barh(ordered.index, percent, 0.34, color=np.where(ordered["encoder"] == model.name, SKY, "0.8"))
clark = "Clark et al. (Penn Treebank)"
axes.errorbar(
    percent,
    ordered.index,
    xerr=half,
    fmt="none",
    color="black",
    capsize=4,
    label="95 % t interval over seeds",
)
axes.plot(ordered["published"], ordered.index, "D", color="black", fillstyle="none", label=clark)
for place, name in enumerate(names):
    axes.text(1, place + 0.38, name, va="center")
    axes.text(101, place, f"{percent[place]:.1f}", va="center")
axes.set(xlim=(0, 108), ylim=(-0.4, len(ordered) - 0.3), xticks=range(0, 101, 20), yticks=[])
axes.set_xlabel("unlabelled attachment score without punctuation (%), mean over seeds")
axes.figure.legend(ncols=2, loc="outside lower center")
results.save_figure(axes.figure, "clark-T3-probes")

# %%
best = means.loc[means["mean"].idxmax()]
chain = means.loc[means["probe"] == probes.RIGHT_BRANCHING, "mean"].item()
without_training = means.loc[means["encoder"] == random_layers.name, "mean"].max()
finding(
    f"The probe of {best['probe']} attaches {best['mean']:.0%} of the words to the right head, the best probe on random layers "
    f"{without_training:.0%}, and a right-branching tree {chain:.0%}."
)

# %% [markdown]
# Blue bars are probes of the pre-trained encoder. Diamonds are the paper's values on the Penn Treebank (those of attention are of BERT-base), with GloVe vectors and the authors' pairing: they pair a candidate with
# the vector of the next word (`original ROOT alignment`). Vectors here are principal components of the encoder's own word embeddings, so
# that rows with words compare with each other, not with the paper. Intervals cover initial weights alone.
#
# **Try it.** Set `root_alignment = ["fixed", "original"]` (as in profile glue-minilm): the authors' pairing attaches fewer words correctly, and it
# lowers the probe of distances most, which has nothing but distances and vectors. Set `rows = "first"` as in the authors' code: accuracies hardly
# change, since only words of several pieces are read in another way. Set `arcs_minimum = 20`: rarer relations join the first figure, with wider
# intervals.
#
# **How far to trust it.** Each head is scored on documents that did not choose it. Sentences of the bundled documents come from one grammar,
# so that their trees are easier than real ones; profile glue-minilm reads treebanks. A head that finds a relation attends to it; whether
# the encoder needs that attention is a question for ablation ([10_synthesis](10_synthesis.ipynb)).
#
# ## The claims
#
# The claims are the sentences of the paper that this notebook and 05_clark_surface can measure. The encoder and the data differ from the
# paper's, so that sizes cannot be expected to agree; what can be compared is which of two systems is ahead, and where in the encoder a
# pattern sits. Claims about `[SEP]` are judged on this encoder's sink. Intervals of surface patterns are t intervals over ten blocks
# of passages, those of accuracies are over sentences or documents, those of probes over seeds.

# %%
frames = measures({name: results.load_table(f"clark_{name}") for name in TABLES}, sink(load_encoder(encoder)))
claims = claim_table(CLAIMS, frames)
results.save_table(claims, "claims-clark2019")
results.save_figure(forest_plot(claims, CLAIMS), "clark-claims")

# %%
Markdown(claims_markdown(claims, CLAIMS))
