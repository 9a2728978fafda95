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
# BERT-base; its values stand beside ours as those of another model. Departures: two labellers that code fits on drawn
# maps, in the place of one trained on 400 maps labelled by hand; intervals; a control at the same distance for every
# link; words found by their place in the text (the released code's way stands beside it).*

# %% tags=["parameters"]
profile = "offline"
tasks = ["mrpc", "qqp"]
encoder = "minilm"
checkpoint = None  # fine-tuned checkpoints to use instead of ours: "models/{task}-{seed}" is filled in
source = "bundled"
parser = "gold"
seeds = [0, 1]  # fine-tuning runs
sequences = 100  # dev sequences of each task
labelled = 100  # of them, those whose maps are labelled with a pattern
padded = 20  # of them, those whose maps are compared with their padding too
max_tokens = 128
drawn_maps = 1500  # maps drawn by code that the labellers learn from
held_out_maps = 500  # further ones that judge them
network_epochs = 10
frames = (
    "bundled"  # links.jsonl, a folder of FrameNet 1.7, or bundled: arguments of verbs in the bundled grammar
)
frame_sentences = 200  # of the frames, None for all
permutations = 9999
alpha = 0.05
resamples = 999
seed = 0  # of samples, drawn maps and tests
device = "cpu"
precision = "float32"

# %%
from pathlib import Path

import pandas as pd
from IPython.display import Markdown

from analysis.encoders import encoder_note, load_encoder
from analysis.figures import finding, style
from analysis.papers.kovaleva2019 import (
    NetworkLabeller,
    RuleLabeller,
    better,
    cls_rows,
    cls_table,
    cosine_table,
    draw_maps,
    eye_maps,
    feature_layers,
    feature_table,
    find_targets,
    kovaleva,
    link_maps,
    link_scores,
    link_table,
    pattern_examples,
    pattern_heads,
    pattern_shares,
    pattern_table,
    quality_tables,
    read_kept,
    read_links,
    sentences,
    similarity_maps,
    typical_heads,
    verb_table,
)
from analysis.scores import read_attention
from analysis.study import Results
from analysis.texts import load_examples, parse, tags

style()
results = Results(profile)
model = load_encoder(encoder, device, precision)
results.record_weights(encoder, model.digest)
folder = results.cache / "kovaleva"
print(encoder_note(encoder))

# %%
examples = {task: load_examples(task, source, "dev", sequences, seed) for task in tasks}
targets = {
    task: find_targets(
        model.tokenizer,
        found,
        parse(found, parser, results.parses),
        tags(found, parser, results.parses),
        max_tokens,
    )
    for task, found in examples.items()
}
counts = ", ".join(f"{len(found)} of {task}" for task, found in targets.items())
Markdown(f"Dev sequences: {counts}.")

# %% [markdown]
# ## Two labellers of maps
#
# Maps are drawn by code for the layouts of these sequences: columns, a band beside the diagonal, both, blocks of the two
# texts, or none of them (heterogeneous), with noise and faint traces of the others. A few rules about measures of a map
# and a convolutional network learn from them. Both are judged on further drawn maps, and on 300 maps of pre-trained
# MiniLM that were labelled by eye once, before either labeller was written; neither was changed afterwards.

# %%
layouts = [each.layout for found in targets.values() for each in found]
drawn = draw_maps(layouts, drawn_maps, seed)
labellers = [
    RuleLabeller.fitted(drawn),
    NetworkLabeller.kept(folder / "network.safetensors", drawn, network_epochs, seed),
]
sets = {"drawn": draw_maps(layouts, held_out_maps, seed + 1), "eye": eye_maps(load_encoder("minilm"))}
quality, confusion = quality_tables(labellers, sets)
for each in labellers:
    results.record_weights(f"{each.name} of patterns", each.key)
results.save_table(quality, "kovaleva_pattern_quality")
results.save_table(confusion, "kovaleva_pattern_confusion")
labeller = better(labellers, quality)

# %%
finding(sentences.labelling(quality, labeller.name))

# %%
quality.style.format(precision=2).hide()

# %%
order = dict.fromkeys(confusion["pattern"])
eye = confusion[(confusion["set"] == "eye") & (confusion["labeller"] == labeller.name)]
eye.pivot(index="pattern", columns="found", values="n").loc[[*order], [*order]].style.set_caption(
    f"Maps labelled by eye (rows) and by the {labeller.name} (columns)"
)

# %%
print(labellers[0].words())

# %% [markdown]
# *How far to trust it.* One eye labelled the maps, a single time. Most of MiniLM's maps have a bright column of `[CLS]`,
# and where a faint column or a faint band begins to count is a matter of taste: that is where labellers and eye differ
# most. The article reports an F1 of 0.86 on its own labels.
#
# ## One pass over every state
#
# A single forward pass gives patterns, attention to features, links of subjects and verbs and, for the fine-tuned
# encoders, the similarity of each map with that of the pre-trained one. Maps are not kept.

# %%
readings = {
    (task, run): read_kept(
        folder / f"{task}-{'pretrained' if run is None else run}.nc",
        load_encoder(results.weights(task, run, encoder, checkpoint), device, precision),
        targets[task],
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
heads = typical_heads(readings[tasks[0], None])
results.save_figure(pattern_examples(attention, layout, heads), "kovaleva-F1-patterns")

# %% [markdown]
# ## Figure 2. How often
#
# On the right, shares that a later network of the same laboratory found in BERT-base: another model and another labeller.
# Heterogeneous maps are what the article takes for the upper bound of informative ones. Shares depend on the length of the
# inputs; a black bar spans the interval of the heterogeneous share over sequences.

# %%
shares = pattern_table(readings, alpha, resamples, seed)
results.save_table(shares, "kovaleva_patterns")
results.save_table(pattern_heads(readings), "kovaleva_pattern_heads")
results.save_figure(pattern_shares(shares, kovaleva("patterns")), "kovaleva-F2-shares")

# %%
finding(sentences.shares(shares))

# %% [markdown]
# ## Figure 3. Links of a frame
#
# The largest attention between a frame element and the word that evokes the frame, mean over sentences. The released code
# lets the element attend to the target and pairs their pieces one by one; the text speaks of attention from the target to
# the element. Both directions stand here, as released and with all pairs. The control moves the same arrangement of tokens
# through the sentence; a dot marks heads that give the link more (permutation test, adjusted over heads). With
# `frames="bundled"` there are no frames: the links join the verbs of bundled sentences to their subjects and objects.

# %%
links = read_links(frames, frame_sentences, seed)
scores, left_out = link_scores(model, links)
linked = link_table(scores, "pretrained", permutations, seed)
results.save_table(linked, "kovaleva_links")
results.save_figure(link_maps(linked, kovaleva("heads"), alpha), "kovaleva-F3-links")

# %%
finding(
    f"{sentences.links(linked, alpha)} {len(links) - sum(left_out.values())} sentences from {Path(frames).name}."
)

# %% [markdown]
# ## Figure 6. Attention to features
#
# The mean attention of all tokens to the most attended word piece of a feature. The released code counts a sequence
# without the feature as 0 (except negation) and finds words by their spelling; the table has that too (mode `faithful`).

# %%
features = feature_table(readings)
results.save_table(features, "kovaleva_features")
results.save_figure(feature_layers(features, kovaleva("layers")), "kovaleva-F6-features")

# %%
finding(f"{sentences.separators(features)} {sentences.gains(features)}")

# %%
published = kovaleva("features").set_index("feature")
ours = features[features["mode"] == "aligned"].groupby(["feature", "state"])["mean"].mean().unstack()
columns = ["pretrained", "finetuned"]
pd.concat(
    {"this encoder": ours[columns], "BERT-base, qqp": published[columns]}, axis=1
).dropna().style.format(precision=3)

# %% [markdown]
# ## Figure 7. What does `[CLS]` look at in the end?

# %%
row = cls_table(readings)
results.save_table(row, "kovaleva_cls")
results.save_figure(cls_rows(row, kovaleva("cls")), "kovaleva-F7-cls")

# %%
finding(sentences.last_row(row))

# %% [markdown]
# ## Subjects and verbs
#
# The article finds that the heads which link subjects and verbs are those of adjacent words. The control is the attention
# that the same head gives to other words of the text at the same distance.

# %%
verbs = verb_table(readings, alpha, resamples, permutations, seed)
results.save_table(verbs, "kovaleva_verbs")
finding(sentences.verbs(verbs, alpha))

# %% [markdown]
# ## Figure 5. What does fine-tuning change?
#
# The cosine of each map with that of the pre-trained encoder. The released code compares maps padded to 200 tokens, where
# the rows of padding are most of a short sequence's map ("kept"); cropped maps hold the sequence alone.

# %%
cosines = cosine_table(readings, alpha, resamples, seed)
results.save_table(cosines, "kovaleva_cosine")
results.save_figure(similarity_maps(cosines, kovaleva("heads")), "kovaleva-F5-similarity")

# %%
finding(sentences.similarity(cosines))

# %% [markdown]
# *How far to trust it.* Attention to a word is not use of it: `07_kovaleva_disable` switches heads off.
