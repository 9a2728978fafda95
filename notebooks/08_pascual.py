# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 8, continued. Does attention show where the output of a head comes from?
#
# Attention is *local*: it weights the hidden states below its layer, and these are mixtures of tokens already. Pascual et al. (2021)
# follow the output of a head back to the input tokens by gradients. They report "a significant mismatch between attention and
# attribution distributions", caused by the mixing of context in the layers below, and patterns that persist across all layers
# despite the mixing. How large is the mismatch, which patterns are left, and do heads keep their *roles* when attention is replaced
# by attribution, or by the part of attention that has an effect?
#
# **These are questions after Pascual et al.: the project knows the abstract of the paper alone, not its text.** The abstract gives no
# number, no figure and no definition, so that nothing here has a published value; norm, estimator, patterns and thresholds are ours.
# Layers and heads count from 0.
#
# *Source: Pascual et al. 2021 (abstract); hidden token attribution and effective attention: Brunner et al. 2020.*
#
# ## How it is measured
#
# Head $h$ of layer $l$ gives token $j$ the output $u_j = \sum_k A_{jk}\, v_k$ with the values $v_k = W_V e^{l-1}_k + b_V$. Its
# **attribution** to the input embedding $x_i$ (*hidden token attribution* of Brunner et al. 2020, of the output of a head), and its **local attribution** to the hidden state below the layer, are norms of
# Jacobian blocks, row by row over their sum:
#
# $$ C_{ji} = \frac{\lVert \partial u_j / \partial x_i \rVert_F}{\sum_{i'} \lVert \partial u_j / \partial x_{i'} \rVert_F},
# \qquad C^{\mathrm{loc}}_{ji} = \frac{\lVert \partial u_j / \partial e^{l-1}_i \rVert_F}
# {\sum_{i'} \lVert \partial u_j / \partial e^{l-1}_{i'} \rVert_F}. $$
#
# With $V$ the matrix of values (a row per token) and $Q$ an orthonormal basis of its columns, **effective attention** is
#
# $$ A^{\mathrm{eff}} = A\, Q Q^\top, \qquad A^{\mathrm{eff}} V = A V: $$
#
# it drops what lies in the left null space of $V$ and leaves the output as it is. With no more tokens than a value vector has
# entries there is no null space, and $A^{\mathrm{eff}} = A$. A variant adds a column of ones to $V$, so that rows keep their sums.

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-sst-2"]  # tasks on which the fine-tuned encoder is read
# tasks on which the encoder is also read before fine-tuning
pretrained_tasks: list[str] = ["toy-sst-2"]
tau: float = 3.0  # the dotted lines; 08_attribution counts heads by it
probes: int | None = 8  # random directions that estimate the norm of a Jacobian block; None: exact

# seldom changed
encoder: str = "minilm"
device: str = "cpu"
seed: int = 0
resamples: int = 999
validated: int = 1  # short sequences whose attribution is also computed exactly
validated_pieces: int = 12
dependency_files: list[str] = []  # CoNLL-U files, or folders of them; [] for the bundled documents
dependency_documents: int = 20  # bundled documents to take sentences from
dependency_sentences: int = 24
dependency_pieces: int = 24
dependency_minimum: int = 20  # arcs that a relation needs

# %%
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown
from matplotlib.colors import PowerNorm
from scipy.special import entr, rel_entr

from analysis.encoders import layout
from analysis.encoders.models import load_encoder
from analysis.figures import colours, theme
from analysis.figures.claims import FOREST_CAPTION, forest_plot
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.pascual2021 import attribution, discrepancy, drawing, measures, roles
from analysis.papers.pascual2021.measures import ATTENTION, EFFECTIVE, EFFECTIVE_SUM, GLOBAL, LOCAL
from analysis.scores.extraction import read_attention
from analysis.scores.words import attach
from analysis.statistics.claims import not_applicable
from analysis.study.claim_pages import claims_markdown
from analysis.study.claims import judged
from analysis.study.results import STATES, Results
from analysis.texts.dependencies import conllu_files, read_trees
from analysis.texts.glue import load_examples

style()
results = Results(profile)
model = load_encoder(encoder, device)
results.record_weights(encoder, model.digest)

# %% [markdown]
# `08_attribution` has computed the maps of each task and state. We join its tables.

# %%
names = ["discrepancy", "patterns", "persistence", "offsets", "survival", "effective", "sinks"]
states = {task: STATES if task in pretrained_tasks else STATES[1:] for task in tasks}
parts = [f"{task}-{state}" for task in tasks for state in states[task]]
tables = {name: results.join_parts(f"pascual_{name}", parts) for name in names}
run = ["task", "state"]
tables = {name: table[[*run, *table.columns.drop(run)]] for name, table in tables.items()}
survival = tables["survival"][[*run, "role", "map", "heads", "kappa", "low", "high"]]
for name, table in (tables | {"survival": survival}).items():
    results.save_table(table, f"pascual_{name}")

# %% [markdown]
# ## One sequence on four maps
#
# The sequence, from toy-mrpc, has a few tokens more than a value vector has entries, if there is such a sequence, so that effective attention
# differs from attention. On it we choose three heads of the pre-trained encoder: the one that attends most to the next token among
# the first third of the layers, the one that attends most to special tokens in the middle third, and the one whose rows have the
# highest entropy in the last third.

# %%
examples = load_examples("toy-mrpc", split="dev", n=60, seed=seed)
width = model.model.config.hidden_size // model.heads  # entries of a value vector
lengths = np.array([len(sequence) for sequence in layout.layouts(model.tokenizer, examples, model.positions)])
surplus = lengths - width  # tokens more than a value vector has entries
suitable = np.flatnonzero((surplus >= 2) & (surplus <= 8))
example = examples[suitable[0] if len(suitable) else lengths.argmax()]

# %%
map_sources = {
    ATTENTION: ATTENTION,
    EFFECTIVE: EFFECTIVE,
    LOCAL: attribution.local_attribution(16, seed),
    GLOBAL: attribution.attribution(16, seed),
}
readings = {
    name: read_attention(model, example, model.positions, maps=source) for name, source in map_sources.items()
}

# %%
example_layout, attention = readings[ATTENTION]
special = example_layout.cls | example_layout.sep
kinds = {
    "next token": attention.diagonal(1, 2, 3).mean(axis=-1),  # layer, head
    "special tokens": attention[..., special].sum(axis=-1).mean(axis=-1),
    "broad": entr(attention).sum(axis=-1).mean(axis=-1),
}
thirds = 3 * np.arange(model.layers) // model.layers
heads = {}
for number, (kind, score) in enumerate(kinds.items()):
    outside = thirds != min(number, thirds.max())
    best = np.where(outside[:, None], -np.inf, score).argmax()
    heads[kind] = tuple(map(int, np.unravel_index(best, score.shape)))

# %%
tokens = example_layout.tokens
example_maps = {name: values for name, (_, values) in readings.items()}
results.save_figure(
    drawing.map_panels(example_maps, heads, tokens),
    "pascual-F1-maps",
    "Three heads on one sentence: attention, effective attention, local attribution and attribution; dark "
    "cells have most weight. Columns of special tokens that are dark in attention and pale in the other "
    "maps have little effect on the output of the head.",
)

# %% [markdown]
# **Try it.** Above, where the sequence is chosen, write `suitable = np.flatnonzero(surplus <= 0)`.
#
# <details><summary>What happens</summary>
#
# On a sequence no longer than a value vector, the panels of effective attention equal those of attention: there is no null space to
# remove.
# </details>

# %% [markdown]
# ## How far apart are attention and attribution?
#
# Each row of attention is compared with the row of attribution of the same token. Here it is for one head of the figure above, by
# the Jensen-Shannon divergence: 0 bits for equal rows, 1 bit for rows that share no token.

# %%
layer, head = heads["special tokens"]
attention, gradients = (example_maps[name][layer, head] for name in (ATTENTION, GLOBAL))
middle = (attention + gradients) / 2
divergence = (rel_entr(attention, middle) + rel_entr(gradients, middle)).sum(axis=1) / (2 * np.log(2))
print(
    f"head {layer}-{head}: {divergence.mean():.3f} bits, mean of {len(tokens)} rows; "
    f"least {divergence.min():.3f} ({tokens[divergence.argmin()]}), most {divergence.max():.3f} ({tokens[divergence.argmax()]})"
)

# %% [markdown]
# The difference has two parts. Attention and *local* attribution differ by what values and softmax make of the weights; *local* and
# *global* attribution differ by the mixing of tokens in the layers below. Small marks are tasks and states with 95 % intervals over
# sequences.

# %%
results.save_claim("P1", measures.divergence(tables["discrepancy"]))
results.save_claim("P2", measures.share_of_mixing(tables["discrepancy"]))
results.save_figure(
    drawing.discrepancy_panels(tables["discrepancy"]),
    "pascual-F2-discrepancy",
    "Difference and correlation of three pairs of maps by layer, with and without special tokens; small "
    "marks are tasks and states. Blue is what mixing in the layers below changes, green what values and "
    "softmax change, red both together.",
)

# %%
divergences = tables["discrepancy"]
by_layer = divergences[
    divergences["head"].isna() & (divergences["pair"] == measures.WHOLE) & (divergences["tokens"] == "all")
]
means = by_layer.groupby(["measure", "layer"])["value"].mean()
bits, ratio = means[measures.JSD], means[measures.RATIO].loc[1:]
finding(
    f"Attention and attribution diverge by {bits.min():.2f} bits in layer {bits.idxmin():.0f} and by {bits.max():.2f} bits in layer "
    f"{bits.idxmax():.0f}; from layer 1 on, mixing changes the map {ratio.mean():.1f} times as much as values and softmax do."
)

# %% [markdown]
# Divergences do not add up, so that this is a ratio of two differences and no share of the whole. In the committed run of glue-minilm,
# special tokens raise it: without them the blue lines come nearer to the green ones.
#
# The same for every head, mean over tasks and states. Dark cells agree, in both rows of panels:

# %%
by_head = divergences.dropna(subset="head").groupby(["measure", "tokens", "layer", "head"])["value"].mean()
scales = {
    "pearson": {"cmap": colours.SEQUENTIAL, "vmin": min(0, by_head["pearson"].min()), "vmax": 1},
    measures.JSD: {"cmap": "mako", "vmin": 0, "vmax": by_head[measures.JSD].max()},
}
figure, grid = plt.subplots(2, 2, figsize=(theme.DOUBLE, 3.4), sharex=True, sharey=True, layout="constrained")
for row, (measure, scale) in zip(grid, scales.items(), strict=True):
    for axes, (subset, title) in zip(row, measures.TOKENS.items(), strict=True):
        mesh = theme.layer_head_mesh(axes, by_head[measure, subset].unstack("head").to_numpy(), **scale)
        axes.set_title(title if measure == "pearson" else "")
    figure.colorbar(mesh, ax=row, label=drawing.MEASURES[measure], pad=0.02)
figure.supxlabel(theme.HEAD)
figure.supylabel("layer (0-based, layer 0 at the bottom)")
results.save_figure(
    figure,
    "pascual-F3-heads",
    "Agreement of attention and attribution for every head, by correlation (top) and divergence (bottom); "
    "dark cells agree in all four panels. A head with pale cells attends to tokens that are not those on "
    "which its output depends.",
)

# %%
weak = by_head["pearson"] < 0.5
finding(
    f"The rows of attention and attribution correlate by less than 0.5 in {weak['all'].sum()} of {len(weak['all'])} heads, and in "
    f"{weak['text'].sum()} if special tokens are left out."
)

# %% [markdown]
# A row's own token always matters to its output, since it makes the query: attribution counts that, attention cannot.
#
# ## Which patterns are left on attribution?
#
# Five patterns (the tables have them all): the highest mean score of a head in each layer, on attention, local attribution and
# attribution. Thin lines are tasks and states; the dotted line is $\tau$, above which a head shows the pattern.

# %%
patterns = tables["patterns"]
titles = {"offset_-1": "previous token", "offset_+1": "next token"}
titles |= {role: role for role in ("local", "delimiter", "syntactic")}
best = patterns.groupby(["pattern", *run, "layer"])[[ATTENTION, LOCAL, GLOBAL]].max()
layers = np.arange(0, patterns["layer"].max() + 1, 1 + patterns["layer"].max() // 6)
figure, grid = theme.panels(5, 5, 1.9, theme.LAYER, "highest mean score of a head\n(1 = uniform)")
for axes, (pattern, title) in zip(grid, titles.items(), strict=True):
    for name in best:
        (colour, mark, label), lines = drawing.MAPS[name], best.loc[pattern, name].unstack("layer")
        axes.plot(lines.columns, lines.T, color=colour, linewidth=0.5, alpha=0.4)
        axes.plot(lines.columns, lines.mean(), color=colour, marker=mark, ms=3.5, lw=1.4, label=label)
    axes.axhline(tau, color="black", linestyle=":", linewidth=0.8)
    axes.set(yscale="log", title=title, xticks=layers)
figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
results.save_claim("P4", not_applicable(measures.UNDEFINED))
results.save_figure(
    figure,
    "pascual-F4-patterns",
    "Highest score of a head for five patterns by layer, on attention, local attribution and attribution; "
    "above the dotted line a head shows the pattern. Where red stays below the line, the pattern is lost "
    "when the head is followed back to its input.",
)

# %%
layers_with_heads = (
    (tables["persistence"]["attribution"] > 0).groupby(tables["persistence"]["pattern"]).mean()
)
finding(
    f"On attribution, {(layers_with_heads == 1).sum()} of {len(layers_with_heads)} patterns have a head in every layer of every task and "
    f"state; none has heads in more layers than {layers_with_heads.idxmax()} ({100 * layers_with_heads.max():.0f} % of them)."
)

# %% [markdown]
# Every head, coloured by its layer. On the line a head scores the same on both maps; below the horizontal dotted line it does not
# show the pattern on attribution.

# %%
figure, grid = theme.panels(5, 5, 1.9, "score on attention", "mean score on attribution\n(1 = uniform)")
for axes, (pattern, title) in zip(grid, titles.items(), strict=True):
    rows = patterns[patterns["pattern"] == pattern]
    across, upwards = (rows[name].clip(lower=0.02) for name in (ATTENTION, GLOBAL))
    marks = axes.scatter(across, upwards, c=rows["layer"], cmap=colours.SEQUENTIAL, s=5, linewidth=0, vmin=-1)
    axes.axline((1, 1), (10, 10), color=colours.GREY, linewidth=0.7)
    axes.axvline(tau, color="black", linestyle=":", linewidth=0.8)
    axes.axhline(tau, color="black", linestyle=":", linewidth=0.8)
    axes.set(xscale="log", yscale="log", title=title)
bar = figure.colorbar(marks, ax=grid, label=theme.LAYER, aspect=20, pad=0.02, ticks=layers)
bar.ax.set_ylim(0)
results.save_figure(
    figure,
    "pascual-F5-scores",
    "Score of every head for five patterns on attention (across) and on attribution (upwards), coloured by "
    "layer. Heads below the grey line show the pattern less on attribution, and below the horizontal dotted "
    "line not at all.",
)

# %%
next_token = (
    patterns[patterns["pattern"] == "offset_+1"].groupby(["layer", "head"])[[ATTENTION, GLOBAL]].mean()
)
layer, head = next_token[ATTENTION].idxmax()
finding(
    f"The strongest next-token head on attention ({layer}-{head}) scores {next_token.loc[(layer, head), ATTENTION]:.1f} there and "
    f"{next_token.loc[(layer, head), GLOBAL]:.1f} on attribution (1 = uniform)."
)

# %% [markdown]
# Where does the mass lie, relative to the token of the row? Mean over all heads of a layer:

# %%
mass = tables["offsets"].groupby(["map", "layer", "offset"])["mass"].mean()
figure, grid = plt.subplots(1, 3, figsize=(theme.DOUBLE, 1.9), sharey=True, layout="constrained")
for axes, name in zip(grid, (ATTENTION, LOCAL, GLOBAL), strict=True):
    wide = mass[name].unstack("offset")
    scale = PowerNorm(0.5, 0, mass.max())
    mesh = axes.pcolormesh(
        wide.columns, wide.index, wide, cmap=colours.SEQUENTIAL, norm=scale, shading="nearest"
    )
    axes.set(title=drawing.MAPS[name][2], xlabel="offset (tokens)")
    theme.integer_ticks(axes)
grid[0].set_ylabel(theme.LAYER)
figure.colorbar(mesh, ax=grid, label="mean mass\n(square-root scale)", pad=0.02)
results.save_figure(
    figure,
    "pascual-F6-offsets",
    "Where the mass of three maps lies relative to the token of the row, by layer. A dark middle column in "
    "attribution is the dependence of an output on its own token, which makes the query; attention does not "
    "count it.",
)

# %%
near_mass = mass.unstack("offset").loc[:, -2:2].sum(axis=1).groupby("map").mean()
finding(
    f"Tokens within two positions have {100 * near_mass[ATTENTION]:.0f} % of the mass of attention, {100 * near_mass[LOCAL]:.0f} % of local "
    f"attribution and {100 * near_mass[GLOBAL]:.0f} % of attribution (means over layers)."
)

# %% [markdown]
# ## Do heads find governors on attribution?
#
# The governor of a word is the word that it depends on. We follow the protocol of Clark et al. (2019): the word with most of a word's
# attention is the head's guess of its governor. The head that is best on attention is scored on both maps; the head that is best on
# attribution stands beside it. Each half of the sentences is scored by the head that the other half chooses.

# %%
documents = {"folder": results.cache / "dependencies", "n": dependency_documents, "seed": seed}
words = read_trees(conllu_files(dependency_files, split="dev", **documents)).words
sentences = roles.short_sentences(model, words, dependency_pieces, dependency_sentences, seed)
derivatives = attribution.attributions(probes, seed)
attachments = {
    ATTENTION: attach(model, sentences),
    GLOBAL: attach(model, sentences, budget=1, maps=derivatives),
}
relations = roles.dependency_survival(attachments, dependency_minimum, resamples, seed)
results.save_table(relations, "pascual_dependencies")
results.save_figure(
    drawing.accuracy_by_relation(relations),
    "pascual-F7-dependencies",
    "Accuracy of the best head of each relation on attention and on attribution, and of the best fixed "
    "offset (diamonds). Where the triangle lies left of the circle, a head that finds governors by "
    "attention finds fewer of them on attribution.",
)

# %%
single_relations = relations[~relations["relation"].str.contains(r"^all|\+")]  # without pooled relations
finding(
    f"The best head on attention is less accurate on attribution in {(single_relations['change_high'] < 0).sum()} of {len(single_relations)} relations, "
    f"and more accurate in {(single_relations['change_low'] > 0).sum()} (95 % interval of the change without 0)."
)

# %% [markdown]
# **Try it.** Set `probes = 1`.
#
# <details><summary>What happens</summary>
#
# Accuracies on attribution move by a few points in either direction, since one noisy entry can win a row. The other figures rest on
# the maps of 08_attribution and stay.
# </details>

# %% [markdown]
# ## Do roles survive?
#
# Published labels on every map, on the same sequences, and their agreement with the labels on attention: Cohen's kappa is 1 if the same
# heads have the role, and 0 if they agree no more than labels at random. A role that no head has on either map has no kappa.

# %%
labels_on_maps = measures.agreement_of_syntactic_labels(tables["survival"], tables["sinks"])
results.save_claim("P6", labels_on_maps)
results.save_figure(
    drawing.agreement_panels(survival),
    "pascual-F8-kappa",
    "Agreement of role labels on attention with those on four other maps, a mark for each task and state "
    "(kappa of Cohen: 1 the same heads, 0 as by chance). Roles near 1 do not depend on the map; roles near "
    "0 are roles of attention alone.",
)

# %%
kappas = survival[survival["map"] == GLOBAL].groupby("role")["kappa"].median()
finding(
    f"On attribution the median kappa over tasks and states is {kappas['syntactic']:.2f} for syntactic labels and "
    f"{kappas['delimiter']:.2f} for delimiter labels."
    if kappas[["syntactic", "delimiter"]].notna().all()
    else "One of the roles syntactic and delimiter has no kappa, since no head has it on attention or on attribution."
)

# %% [markdown]
# What does effective attention remove? The table counts delimiter heads on sequences that are longer than a value vector; the mass is that
# of the whole sample.

# %%
results.save_claim("P5", measures.delimiter_labels_left(tables["effective"]))
delimiters = tables["effective"].query("role == 'delimiter'")
delimiters.pivot(index=run, columns="map", values="heads")[[ATTENTION, EFFECTIVE, EFFECTIVE_SUM]]

# %%
cls_mass = tables["sinks"].query("layer.isna() and target == '[CLS]'").groupby("map")["mass"].mean()
finding(
    f"[CLS] has a mean mass of {cls_mass[ATTENTION]:.3f} in attention, {cls_mass[EFFECTIVE]:.3f} in effective attention, and "
    f"{cls_mass[EFFECTIVE_SUM]:.3f} where rows keep their sums."
)

# %% [markdown]
# The part that effective attention removes cannot change the output of the head at this point. It still matters: attention spent there is
# not spent on other tokens. The variant that keeps the sums of rows shows how much of the removal comes from that: whether delimiter
# roles vanish depends on the definition.

# %% [markdown]
# In the committed run of glue-minilm attention and attribution nearly agree in layer 0 (0.04 bits), where nothing is mixed yet, and
# diverge by 0.17 to 0.34 bits above it; the divergence does not grow with depth. Delimiter heads are what is lost: attention to
# `[CLS]` has little effect on the output. Effective attention leaves few of them, and the variant that keeps the sums of rows brings
# most of them back. Heads that attend to neighbours or syntactic heads mostly stay on attribution, but no pattern has a head in
# every layer.

# %% [markdown]
# ## How exact is the estimate?
#
# Attribution of a few short sequences by all directions, compared with estimates from fewer of them, and with attribution to the
# embeddings before their layer norm. Means over layers:

# %%
short_examples = load_examples("toy-sst-2", split="dev", n=60, seed=seed)
short_examples = roles.short_examples(model, short_examples, validated_pieces, validated, seed)
sequences = layout.layouts(model.tokenizer, short_examples, model.positions)
counts = sorted({1, 2, 4, 8, 16, probes} - {None})
validation = discrepancy.validation_table(model, sequences, counts, seed)
results.save_table(validation, "pascual_validation")
means = validation.groupby(["compared", "probes"], sort=False, dropna=False).mean().drop(columns="layer")
means.reset_index().style.format(precision=3, na_rep="").format("{:.0f}", subset="probes", na_rep="").hide()

# %%
few, many = (means.loc[("sampled", count), "total_variation"] for count in (counts[0], counts[-1]))
finding(
    f"The total variation between estimated and exact rows is {few:.3f} with {counts[0]} and {many:.3f} with {counts[-1]} random "
    "directions."
)

# %% [markdown]
# **How far to trust it.** Intervals are over sequences, of one encoder and few tasks; the sequences are short, because derivatives are
# slow. A gradient measures sensitivity at one point, not what would happen if a token were missing.
#
# ## The claims
#
# P1, P2 and P4 are questions after the abstract; P5 and P6 are this study's. P4 is *not applicable*: what counts as a pattern, and when it
# persists, the abstract does not say. P2 and P5 each have two readings, and the verdict is about both.

# %%
claims = judged(results, measures.CLAIMS)
results.save_figure(forest_plot(claims, measures.CLAIMS), "pascual-claims", FOREST_CAPTION)
Markdown(claims_markdown(claims, measures.CLAIMS))
