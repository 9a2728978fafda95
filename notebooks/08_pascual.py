# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 8, continued. What attention tells, and what it does not
#
# **Question.** Attention describes a head locally: where it looks among the tokens of its own layer. Attribution follows
# what it finds there back to the input. How far apart are the two, which patterns does attention show that the input
# bears out, and do head *roles* survive when attention is replaced by attribution, or by its effective part?
#
# *Source: Pascual et al. 2021, of which the abstract alone is known to this study, and Brunner et al. 2020. All numbers
# are computed; none is quoted. Questions that the abstract does not ask are marked as this study's own.*

# %% tags=["parameters"]
profile: str = "offline"
tasks: list[str] = ["toy-sst-2"]
pretrained_tasks: list[str] = [
    "toy-sst-2"
]  # those of them on which the encoder is also read before fine-tuning
encoder: str = "minilm"
device: str = "cpu"
seed: int = 0
tau: float = 3.0
resamples: int = 999
probes: int | None = 8
shown_probes: int = 16  # of the maps that are drawn
validated: int = 1  # short sequences whose attribution is also computed exactly
validated_pieces: int = 14
validated_probes: list[int] = [1, 2, 4, 8, 16]
dependency_files: list[str] = []  # CoNLL-U files, or folders of them; none: the bundled documents
dependency_documents: int = 20  # bundled documents to take sentences from
dependency_sentences: int = 24
dependency_pieces: int = 24
dependency_minimum: int = 20  # arcs of a relation

# %%
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown
from matplotlib.colors import PowerNorm

from analysis.encoders import layout, load_encoder
from analysis.figures import colours, finding, forest_plot, style, theme
from analysis.papers.pascual2021 import dependencies, discrepancy, maps, measures
from analysis.papers.pascual2021.measures import ATTENTION, EFFECTIVE, EFFECTIVE_SUM, GLOBAL, LOCAL
from analysis.scores import attachment, attribution, extraction
from analysis.scores import maps as sources
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.study.results import STATES, Results
from analysis.texts import conllu_files, load_examples, read_trees

# %%
style()
results = Results(profile)
model = load_encoder(encoder, device)
results.record_weights(encoder, model.digest)
names = ["discrepancy", "patterns", "persistence", "offsets", "survival", "effective", "sinks"]
parts = [
    f"{task}-{state}" for task in tasks for state in (STATES if task in pretrained_tasks else STATES[1:])
]
tables = {name: results.join_parts(f"pascual_{name}", parts) for name in names}
order = ["task", "state"]
tables = {name: table[[*order, *table.columns.drop(order)]] for name, table in tables.items()}
looks = {
    ATTENTION: (colours.BLUE, "o", "attention"),
    LOCAL: (colours.GREEN, "^", "local attribution"),
    GLOBAL: (colours.VERMILION, "s", "attribution"),
    EFFECTIVE: (colours.ORANGE, "D", "effective attention"),
    EFFECTIVE_SUM: (colours.PURPLE, "v", "effective, sums kept"),
}

# %% [markdown]
# The table of survival has fixed columns; that of effective attention is the same on sequences of its larger sample that
# are longer than a value vector.

# %%
survival = tables["survival"][[*order, "role", "map", "heads", "kappa", "low", "high"]]
for name, table in (tables | {"survival": survival}).items():
    results.save_table(table, f"pascual_{name}")

# %% [markdown]
# ## One sentence on four maps
#
# Three heads of the pre-trained encoder: the strongest for the next token among the first layers, the strongest for special
# tokens in the middle, and a broad one at the end. The sequence is the first of the bundled corpus with a few tokens more
# than a value vector has entries, or else the longest: on shorter ones effective attention is attention.

# %%
scores = tables["patterns"].query("state == 'pretrained' and task == @pretrained_tasks[0]")
scores = scores.pivot(index=["layer", "head"], columns="pattern", values=ATTENTION)
thirds = 3 * scores.index.get_level_values("layer") // model.layers
heads = {
    "next token": scores.loc[thirds == 0, "offset_+1"].idxmax(),
    "special tokens": scores.loc[thirds == min(1, thirds.max()), "delimiter"].idxmax(),
    "broad": scores[thirds == thirds.max()].max(axis=1).idxmin(),
}
examples = load_examples("toy-mrpc", split="dev", n=60, seed=seed)
lengths = np.array([len(each) for each in layout.layouts(model.tokenizer, examples, model.positions)])
beyond = (
    lengths - model.model.config.hidden_size // model.heads
)  # tokens more than a value vector has entries
suitable = np.flatnonzero((beyond >= 2) & (beyond <= 8))
example = examples[suitable[0] if len(suitable) else lengths.argmax()]

# %%
made = {ATTENTION: ATTENTION, EFFECTIVE: EFFECTIVE}
made |= {
    LOCAL: sources.local_attribution(shown_probes, seed),
    GLOBAL: sources.attribution(shown_probes, seed),
}
read = {
    name: extraction.read_attention(model, example, model.positions, maps=each) for name, each in made.items()
}
tokens = read[ATTENTION][0].tokens
step = -(-len(tokens) // 20)
figure, grid = plt.subplots(
    len(heads), len(read), figsize=(theme.DOUBLE, 1.75 * len(heads) + 0.3), layout="constrained"
)
for row, (kind, (layer, head)) in zip(grid, heads.items(), strict=True):
    for axes, (name, (_, found)) in zip(row, read.items(), strict=True):
        scale = PowerNorm(0.5, 0, clip=True)  # negative entries are white
        axes.imshow(found[layer, head], cmap="mako_r", norm=scale, interpolation="nearest")
        axes.set(xticks=[], yticks=[], title=looks[name][2] if kind == "next token" else "")
    row[0].set_yticks(range(0, len(tokens), step), labels=tokens[::step], fontsize=4.5, parse_math=False)
    row[0].set_ylabel(f"{kind}\nlayer {layer}, head {head}")
figure.supxlabel("attended token, or token that went in (same order as the rows; square-root colours)")
results.save_figure(figure, "pascual-F1-maps")

# %% [markdown]
# ## How far apart are attention and attribution?
#
# Every row of attention is compared with the row of attribution of the same token. The difference has two parts: attention
# against *local* attribution is what values and softmax make of the weights; *local* against *global* attribution is the
# mixing of tokens in the layers below.

# %%
apart = tables["discrepancy"]
of_layers = apart[apart["head"].isna() & apart["layer"].notna()]
pairs = {
    measures.WHOLE: (colours.VERMILION, "s", "attention and attribution"),
    measures.VALUES: (colours.GREEN, "^", "attention and local attribution"),
    measures.MIXING: (colours.BLUE, "o", "local and global attribution"),
}
units = {measures.JSD: "Jensen-Shannon\ndivergence (bits)", "pearson": "Pearson correlation\nof rows"}
kinds = {"all": "all tokens", "text": "without special tokens"}

# %%
figure, grid = plt.subplots(
    2, 2, figsize=(theme.DOUBLE, 4.2), sharex=True, sharey="row", layout="constrained"
)
for number, axes in enumerate(grid.flat):
    measure, of = [*units][number // 2], [*kinds][number % 2]
    part = of_layers[(of_layers["measure"] == measure) & (of_layers["tokens"] == of)]
    for place, (pair, (colour, mark, label)) in enumerate(pairs.items()):
        rows, shift = part[part["pair"] == pair], 0.12 * (place - 1)
        axes.vlines(rows["layer"] + shift, rows["low"], rows["high"], color=colour, alpha=0.5, lw=0.8)
        axes.plot(rows["layer"] + shift, rows["value"], mark, color=colour, markersize=2, alpha=0.6)
        means = rows.groupby("layer")["value"].mean()
        axes.plot(means.index + shift, means, marker=mark, color=colour, ms=4, lw=1.4, label=label)
    axes.set_title(kinds[of] if measure == measures.JSD else "")
    axes.set_ylabel(units[measure] if of == "all" else "")
figure.supxlabel(theme.LAYER)
figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
results.save_figure(figure, "pascual-F2-discrepancy")

# %%
means = of_layers.groupby(["pair", "tokens", "measure", "layer"])["value"].mean()
bits, text = (means.loc[measures.WHOLE, of, measures.JSD] for of in kinds)
share = means.loc[measures.WHOLE, "all", measures.SHARE].loc[1:]
finding(
    f"Attention and attribution differ least in layer {bits.idxmin():.0f} ({bits.min():.2f} bits) and most in layer "
    f"{bits.idxmax():.0f} ({bits.max():.2f} bits); without special tokens by {text.min():.2f} to {text.max():.2f} bits. "
    f"Mixing has {share.min():.0%} to {share.max():.0%} of the sum of both parts from layer 1 on."
)

# %% [markdown]
# Every head, mean over tasks and states:

# %%
of_heads = apart[apart["head"].notna()].groupby(["measure", "tokens", "layer", "head"])["value"].mean()
scales = {"pearson": {"cmap": "vlag", "vmin": -1, "vmax": 1}}
scales[measures.JSD] = {"cmap": "mako_r", "vmin": 0, "vmax": of_heads[measures.JSD].max()}
figure, grid = plt.subplots(2, 2, figsize=(theme.DOUBLE, 3.4), sharex=True, sharey=True, layout="constrained")
for row, (measure, scale) in zip(grid, scales.items(), strict=True):
    for axes, of in zip(row, kinds, strict=True):
        mesh = theme.layer_head_mesh(axes, of_heads[measure, of].unstack("head").to_numpy(), **scale)
        axes.set_title(kinds[of] if measure == "pearson" else "")
    figure.colorbar(mesh, ax=row, label=units[measure], pad=0.02)
figure.supxlabel(theme.HEAD)
figure.supylabel("layer (0-based, layer 0 at the bottom)")
results.save_figure(figure, "pascual-F3-heads")

# %% [markdown]
# *How far to trust it.* Intervals are over sequences. Attribution is estimated from a few random directions: see the
# validation below. A row's own token always matters to it, since it asks the question: attribution sees that, attention
# cannot.
#
# ## Which patterns remain?
#
# The score of the strongest head of each layer, on both maps and on local attribution, for five patterns (the tables have
# them all); the scores of all heads; and where, relative to a token, the mass of all heads lies. Thin lines are tasks and
# states, dotted is tau.

# %%
patterns = tables["patterns"]
five = {"offset_-1": "previous token", "offset_+1": "next token"}
five |= {role: role for role in ("local", "delimiter", "syntactic")}
best = patterns.groupby(["pattern", *order, "layer"])[[ATTENTION, LOCAL, GLOBAL]].max()
figure, grid = theme.panels(5, 5, 1.9, theme.LAYER, "highest mean score of a head\n(1 = uniform)")
for axes, (pattern, title) in zip(grid, five.items(), strict=True):
    for name in best:
        (colour, mark, label), lines = looks[name], best.loc[pattern, name].unstack("layer")
        axes.plot(lines.columns, lines.T, color=colour, linewidth=0.5, alpha=0.4)
        axes.plot(lines.columns, lines.mean(), color=colour, marker=mark, ms=3.5, lw=1.4, label=label)
    axes.axhline(tau, color="black", linestyle=":", linewidth=0.8)
    axes.set(yscale="log", title=title)
figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
results.save_figure(figure, "pascual-F4-patterns")

# %%
verdicts = (
    tables["persistence"].drop_duplicates([*order, "pattern"]).groupby("pattern", sort=False)["verdict"]
)
frequent = verdicts.agg(lambda each: each.mode().iloc[0])
told = [
    f"{verdict} {', '.join(frequent.index[frequent == verdict])}"
    for verdict in (measures.PERSISTS, measures.PARTLY, measures.LOST)
    if verdict in frequent.values
]
finding(
    f"Patterns that heads show on attribution, by their most frequent verdict over tasks and states: {'; '.join(told) or 'none'}."
)

# %% [markdown]
# Every head, coloured by its layer. On the line a head scores the same on both maps; below the dotted line it would have no
# label on attribution.

# %%
figure, grid = theme.panels(5, 5, 1.9, "score on attention", "mean score on attribution\n(1 = uniform)")
for axes, (pattern, title) in zip(grid, five.items(), strict=True):
    rows = patterns[patterns["pattern"] == pattern]
    across, upwards = (rows[name].clip(lower=0.02) for name in (ATTENTION, GLOBAL))
    marks = axes.scatter(across, upwards, c=rows["layer"], cmap="mako_r", s=5, linewidth=0, vmin=-1)
    axes.axline((1, 1), (10, 10), color=colours.GREY, linewidth=0.7)
    for line in (axes.axvline, axes.axhline):
        line(tau, color="black", linestyle=":", linewidth=0.8)
    axes.set(xscale="log", yscale="log", title=title)
bar = figure.colorbar(marks, ax=grid, label=theme.LAYER, aspect=20, pad=0.02, format="%d")
bar.ax.set_ylim(0)
results.save_figure(figure, "pascual-F5-scores")

# %%
told = []
for pattern, word in (("offset_+1", "next"), ("offset_-1", "previous")):
    means = patterns[patterns["pattern"] == pattern].groupby(["layer", "head"])[[ATTENTION, GLOBAL]].mean()
    layer, head = means[ATTENTION].idxmax()
    on, still = means.loc[(layer, head)]
    told.append(f"for the {word} token ({layer}-{head}) {on:.1f} and {still:.1f}")
finding(
    f"The strongest head on attention scores, there and on attribution, {' and '.join(told)} (1 = uniform)."
)

# %% [markdown]
# Where the mass lies, by offset:

# %%
mass = tables["offsets"].groupby(["map", "layer", "offset"])["mass"].mean()
figure, grid = plt.subplots(1, 3, figsize=(theme.DOUBLE, 1.9), sharey=True, layout="constrained")
for axes, name in zip(grid, (ATTENTION, LOCAL, GLOBAL), strict=True):
    wide = mass[name].unstack("offset")
    scale = PowerNorm(0.5, 0, mass.max())
    mesh = axes.pcolormesh(wide.columns, wide.index, wide, cmap="mako_r", norm=scale, shading="nearest")
    axes.set(title=looks[name][2], xlabel="offset (tokens)")
grid[0].set_ylabel(theme.LAYER)
figure.colorbar(mesh, ax=grid, label="mean mass\n(square-root scale)", pad=0.02)
results.save_figure(figure, "pascual-F6-offsets")

# %% [markdown]
# ## Do heads find syntax on attribution?
#
# The protocol of Clark et al. 2019: the word that a head attends to most is its guess of the syntactic head. The head that
# is best on attention is scored on both maps; beside it the head that is best on attribution. Each half of the sentences is
# scored by the head that the other half chose.

# %%
bundled = {"folder": results.cache / "dependencies", "n": dependency_documents, "seed": seed}
words = read_trees(conllu_files(dependency_files, split="dev", **bundled)).words
chosen = dependencies.short_sentences(model, words, dependency_pieces, dependency_sentences, seed)
derivatives = attribution.attributions(probes, seed)
attached = {
    ATTENTION: attachment.attach(model, chosen),
    GLOBAL: attachment.attach(model, chosen, budget=1, maps=derivatives),
}
relations = dependencies.dependency_survival(attached, dependency_minimum, resamples, seed)
results.save_table(relations, "pascual_dependencies")

# %%
systems = dict(zip(dependencies.SYSTEMS, (looks[ATTENTION], looks[LOCAL], looks[GLOBAL]), strict=True))
told = ("best head on attention", "same head on attribution", "best head on attribution")
figure, axes = plt.subplots(figsize=(theme.DOUBLE, 0.24 * len(relations) + 1.0), layout="constrained")
for number, ((name, (colour, mark, _)), label) in enumerate(zip(systems.items(), told, strict=True)):
    heights = np.arange(len(relations)) + 0.22 * (number - 1)
    axes.hlines(heights, relations[f"{name}_low"], relations[f"{name}_high"], color=colour, linewidth=1)
    axes.plot(relations[name], heights, mark, color=colour, markersize=4, label=label)
axes.plot(relations["offset_accuracy"], relations.index, "d", color="0.4", ms=4, label="best fixed offset")
axes.set_yticks(relations.index, labels=relations["relation"] + " (" + relations["n"].astype(str) + ")")
axes.set(ylim=(len(relations) - 0.5, -0.5), xlim=(-0.02, 1.02), ylabel="relation (arcs)")
axes.set_xlabel("proportion of arcs found")
figure.legend(loc="outside upper center", ncols=4)
results.save_figure(figure, "pascual-F7-dependencies")

# %%
single = relations[~relations["relation"].str.contains(r"^all|\+")]
loss = single.loc[single["change"].idxmin()] if len(single) else relations.iloc[0]
finding(
    f"The best head on attention finds fewer arcs on attribution in {(single['change_high'] < 0).sum()} of {len(single)} "
    f"single relations, more in {(single['change_low'] > 0).sum()} (interval without 0). The largest loss is that of "
    f"{loss['relation']}: {loss['attention']:.0%} to {loss['attribution_same_head']:.0%}."
)

# %% [markdown]
# ## Do roles survive?
#
# Labels of the published rule on every map, on the same sequences, and their agreement with those on attention. Each mark
# is a task and state; a role that no head has on either map has no agreement.

# %%
roles, others = theme.in_order(survival["role"]), [LOCAL, GLOBAL, EFFECTIVE, EFFECTIVE_SUM]
runs = survival[order].drop_duplicates().reset_index(drop=True)
figure, grid = theme.rows_of_axes(len(others), len(others), 3.6, sharex=True, sharey=True)
for axes, name in zip(grid, others, strict=True):
    colour, _, title = looks[name]
    for number, run in runs.iterrows():
        rows = survival[(survival["map"] == name) & (survival[order] == run).all(axis=1)]
        heights = rows["role"].map(roles.index) + 0.7 * ((number + 0.5) / len(runs) - 0.5)
        face = colour if run["state"] == "pretrained" else "white"
        axes.hlines(heights, rows["low"], rows["high"], color=colour, alpha=0.5, linewidth=0.8)
        axes.plot(rows["kappa"], heights, "o", color=colour, markersize=3, markerfacecolor=face)
    axes.hlines(np.arange(len(roles) - 1) + 0.5, -0.35, 1.05, color="0.9", linewidth=0.5, zorder=0)
    axes.axvline(0, color=colours.GREY, linewidth=0.7)
    axes.set(title=title, xlim=(-0.35, 1.05), ylim=(len(roles) - 0.5, -0.5))
grid[0].set_yticks(range(len(roles)), labels=roles)
grid[0].set_ylabel("role")
figure.supxlabel(
    "Cohen's kappa of labels on the map and on attention (filled: pre-trained, empty: fine-tuned)"
)
results.save_figure(figure, "pascual-F8-kappa")

# %%
medians = survival.dropna(subset="kappa").groupby(["map", "role"], sort=False)["kappa"].median()
told = [
    f"{looks[name][2]} {of_map.min():.2f} ({of_map.idxmin()}) to {of_map.max():.2f} ({of_map.idxmax()})"
    for name, of_map in medians.droplevel("map").groupby(medians.index.get_level_values("map"), sort=False)
]
finding(f"Agreement with the labels on attention, median kappa, lowest to highest role: {'; '.join(told)}.")

# %% [markdown]
# What effective attention removes, on the larger sample of sequences of any length; the table below counts heads on those
# that are longer than a value vector, since on shorter ones effective attention is attention:

# %%
whole = tables["sinks"][tables["sinks"]["layer"].isna()]
ends = whole.groupby(["target", "map"], sort=False)["mass"].agg(["min", "max"])
told = [
    f"{target}, "
    + ", ".join(f"{looks[name][2]} {r['min']:.3f} to {r['max']:.3f}" for (_, name), r in part.iterrows())
    for target, part in ends.groupby("target", sort=False)
]
finding(f"Share of the mass on special tokens, over tasks and states: {'; '.join(told)}.")

# %%
delimiters = tables["effective"].query("role in ['delimiter', 'cls', 'sep']")
delimiters.pivot(index=["task", "state", "role"], columns="map", values="heads")

# %% [markdown]
# *How far to trust it.* The part that effective attention removes cannot change what the head gives at this point, but it
# is not unused: it takes the weight that other tokens would have. The variant that keeps the sums of rows tells which of
# the two makes the difference.
#
# ## How exact is it?
#
# Exact attribution of a few short sequences, beside estimates from fewer directions. Last: what the choice of the input
# (before or after the normalisation of the embeddings) changes.

# %%
checked = load_examples("toy-sst-2", split="dev", n=60, seed=seed)
checked = maps.short_examples(model, checked, validated_pieces, validated, seed)
sequences = layout.layouts(model.tokenizer, checked, model.positions)
counts = sorted({*validated_probes, probes} - {None})
validation = discrepancy.validation_table(model, sequences, counts, seed)
results.save_table(validation, "pascual_validation")
means = validation.groupby(["compared", "probes"], sort=False, dropna=False).mean().drop(columns="layer")
means.style.format(precision=3)

# %%
told = [
    f"{name} {row['total_variation']:.3f} and {row['pearson']:.2f}"
    for (name, count), row in means.iterrows()
    if count == probes or np.isnan(count)
]
finding(
    f"Against exact attribution, total variation and Pearson's correlation of rows: {'; '.join(told)} (means over layers)."
)

# %% [markdown]
# ## The claims
#
# The abstract makes three of these claims; the others are this study's questions. Values are means over the layers from 1 on and
# over both states, by task.

# %%
claims = claim_table(measures.CLAIMS, measures.measures(tables))
results.save_table(claims, "claims-pascual2021")
results.save_figure(forest_plot(claims, measures.CLAIMS), "pascual-claims")

# %%
Markdown(claims_markdown(claims, measures.CLAIMS))
