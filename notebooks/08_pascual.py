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
profile = "offline"
tasks = ["sst-2"]
encoder = "minilm"
device = "cpu"
seed = 0
tau = 3.0
resamples = 999
probes = 8
shown_probes = 16  # of the maps that are drawn
validated = 1  # short sequences whose attribution is also computed exactly
validated_pieces = 14
validated_probes = [1, 2, 4, 8, 16]
dependency_files = []  # CoNLL-U files, or folders of them; none: the bundled documents
dependency_documents = 20  # bundled documents to take sentences from
dependency_sentences = 24
dependency_pieces = 24
dependency_minimum = 20  # arcs of a relation

# %%
from analysis.encoders import encoder_note, load_encoder
from analysis.figures import claim_intervals, finding, style
from analysis.papers.pascual2021 import (
    attachments,
    dependency_changes,
    dependency_survival,
    discrepancy_by_layer,
    discrepancy_heads,
    example_maps,
    exemplars,
    illustrated,
    kappa_by_role,
    offset_strips,
    pattern_layers,
    pattern_scatter,
    sentences,
    short_layouts,
    short_sentences,
    validation_table,
)
from analysis.papers.pascual2021.measures import CLAIMS, measures
from analysis.statistics.claim_tables import claim_table, seed_table, single_runs
from analysis.study import STATES, Results
from analysis.texts import conllu_files, load_examples, read_trees

style()
results = Results(profile)
model = load_encoder(encoder, device)
results.record_weights(encoder, model.digest)
names = ["discrepancy", "patterns", "persistence", "offsets", "survival", "effective", "sinks"]
parts = [f"{task}-{state}" for task in tasks for state in STATES]
tables = {name: results.join_parts(f"pascual_{name}", parts) for name in names}
order = ["task", "state"]
tables = {name: table[[*order, *table.columns.drop(order)]] for name, table in tables.items()}
print(encoder_note(encoder))

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
heads = exemplars(tables["patterns"].query("state == 'pretrained' and task == @tasks[0]"))
layout, maps = illustrated(model, load_examples("mrpc", "bundled", "dev", 60, seed), shown_probes, seed)
results.save_figure(example_maps(maps, layout.tokens, heads), "pascual-F1-maps")

# %% [markdown]
# ## How far apart are attention and attribution?
#
# Every row of attention is compared with the row of attribution of the same token. The difference has two parts: attention
# against *local* attribution is what values and softmax make of the weights; *local* against *global* attribution is the
# mixing of tokens in the layers below.

# %%
discrepancy = tables["discrepancy"]
results.save_figure(discrepancy_by_layer(discrepancy), "pascual-F2-discrepancy")

# %%
finding(sentences.discrepancy(discrepancy))

# %%
results.save_figure(discrepancy_heads(discrepancy), "pascual-F3-heads")

# %% [markdown]
# *How far to trust it.* Intervals are over sequences. Attribution is estimated from a few random directions: see the
# validation below. A row's own token always matters to it, since it asks the question: attribution sees that, attention
# cannot.
#
# ## Which patterns remain?
#
# The score of the strongest head of each layer, on both maps and on local attribution; the scores of all heads; and where,
# relative to a token, the mass of all heads lies.

# %%
patterns = tables["patterns"]
results.save_figure(pattern_layers(patterns, tau), "pascual-F4-patterns")

# %%
finding(sentences.persistence(tables["persistence"]))

# %% [markdown]
# Every head, coloured by its layer. On the line a head scores the same on both maps; below the dotted line it would have no
# label on attribution.

# %%
results.save_figure(pattern_scatter(patterns, tau), "pascual-F5-scores")

# %%
finding(sentences.strongest_patterns(patterns))

# %%
results.save_figure(offset_strips(tables["offsets"]), "pascual-F6-offsets")

# %% [markdown]
# ## Do heads find syntax on attribution?
#
# The protocol of Clark et al. 2019: the word that a head attends to most is its guess of the syntactic head. The head that
# is best on attention is scored on both maps; beside it the head that is best on attribution. Each half of the sentences is
# scored by the head that the other half chose.

# %%
bundled = {"folder": results.cache / "dependencies", "n": dependency_documents, "seed": seed}
words = read_trees(conllu_files(dependency_files, split="dev", **bundled)).words
chosen = short_sentences(model, words, dependency_pieces, dependency_sentences, seed)
attached = attachments(model, chosen, probes, seed)
dependencies = dependency_survival(attached, dependency_minimum, resamples, seed)
results.save_table(dependencies, "pascual_dependencies")
results.save_figure(dependency_changes(dependencies), "pascual-F7-dependencies")

# %%
finding(sentences.dependencies(dependencies))

# %% [markdown]
# ## Do roles survive?
#
# Labels of the published rule on every map, on the same sequences, and their agreement with those on attention.

# %%
results.save_figure(kappa_by_role(survival), "pascual-F8-kappa")

# %%
finding(sentences.survival(survival))

# %% [markdown]
# What effective attention removes, on the larger sample of sequences of any length; the table below counts heads on those
# that are longer than a value vector, since on shorter ones effective attention is attention:

# %%
finding(sentences.sinks(tables["sinks"]))

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
checked = short_layouts(
    model, load_examples("sst-2", "bundled", "dev", 60, seed), validated_pieces, validated, seed
)
counts = sorted({*validated_probes, probes} - {None})
validation = validation_table(model, checked, counts, seed)
results.save_table(validation, "pascual_validation")
validation.groupby(["compared", "probes"], sort=False, dropna=False).mean().drop(
    columns=["layer"]
).style.format(precision=3)

# %%
finding(sentences.validation(validation, probes))

# %% [markdown]
# ## The claims

# %%
frames = measures(tables)
claims = claim_table(CLAIMS, frames, drawn="sequences").assign(encoder=encoder_note(encoder))
results.save_table(claims, "claims-pascual2021")
results.save_figure(claim_intervals(claims, seed_table(CLAIMS, single_runs(frames))), "pascual-claims")

# %% [markdown]
# The abstract makes three of these claims; the others are this study's questions. Beside the least favourable unit stand
# the median of all units (`pooled`) and how many of them hold.

# %%
shown = ["claim", "origin", "ours", "n", "pooled", "holding", "unit_count", "verdict", "control_value"]
claims[shown].style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})
