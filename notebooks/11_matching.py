# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 11. Heads that compare texts
#
# Some heads attend from a word to the same word in the other text. Does the fine-tuned encoder **need** these *matching heads*?
# Does it matter **which word** they look at? Is it **enough** that they look across? And what do they **carry** there? The answers
# are interventions: no word is changed, and all other heads stay as they are.
#
# **What is known.** Vig (2019) saw the pattern by eye in BERT. Lu et al. (2025) name such heads *matching heads* in a MiniLM ranker
# and take their attention as a soft term frequency, the observational twin of our dial; Chen et al. (2024) and Vast et al. (2025)
# find them by patching. Bhaskar et al. (2024) show that a few early heads carry shallow features of pair tasks, Vashishth et al.
# (2019) that disturbed attention hurts pair tasks and not single texts. Markers of exact matches help in the input (Boualili et al.
# 2022), and word overlap misleads (McCoy et al. 2019, Rajaee et al. 2022). Attention was edited before (Hassid et al. 2022, Zhang et
# al. 2023, Katz and Wolf 2024), and multiplied with word similarity in training (Xia et al. 2021). Heads that find an earlier copy
# are known from decoders (Olsson et al. 2022, Wang et al. 2023, Wu et al. 2024), and Ferrando and Costa-jussà (2021) read attention
# in translation as how much each context contributes. New here, to our knowledge, is the causal half: the same attention moved to
# wrong words, to the own text, and turned across where nothing matches.
#
# *Source: this study; ablation as in Michel et al. 2019. Layers and heads count from 0.*
#
# This chapter needs the role tables of [03_test_all](03_test_all.ipynb) and the checkpoints of 00_finetune; `make 11_matching` makes both.

# %% tags=["parameters"]
profile: str = "offline"
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours, {task} and {seed} are filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
pair_tasks: list = ["toy-mrpc", "toy-qqp", "toy-qnli"]  # for one of your own see data/README.md
single_tasks: list = ["toy-sst-2"]
seeds: list = [0, 1]  # fine-tuning runs
heads: list[list[int]] | None = (
    None  # such as [[2, 9], [1, 1]]; none: those with a match score above the threshold
)
threshold: float = 5.0  # match score of a matching head; 1 is uniform attention
doses: list = [0.1, 0.25, 0.5, 0.75, 1.0]  # shares of attention that the dial moves
matched_n: int = 150  # dev sequences that match scores are means over
scored_n: int | None = 100  # dev sequences that effects are measured on, as in 06_michel_ablation
sets: int = 20  # other sets of as many heads
set_tasks: list = ["toy-mrpc", "toy-sst-2"]  # tasks in which they are ablated
reference_n: int = 40  # dev sequences on which they are
growing: int = 4  # heads, in the order of their match scores, that are added one by one
identical_tasks: list = ["toy-mrpc", "toy-qqp"]
identical_n: int = 40  # texts beside themselves
full_tasks: list = []  # tasks of which one more classifier learns from all training pairs
full_epochs: int = 5
blocked_tasks: list = []  # tasks of which classifiers are trained with heads blocked
blocked_runs: int = 3  # for each condition
blocked_n: int = 2000  # training pairs of such a run
max_tokens: int = 128
seed: int = 0
device: str = "cpu"
precision: str = "float32"

# %%
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from IPython.display import Markdown

from analysis.encoders.classifiers import load_classifier, random_encoder
from analysis.encoders.measures import match_class, positive_class
from analysis.encoders.models import load_encoder
from analysis.encoders.redirection import Redirection, other_text, redirect
from analysis.encoders.values import flag_directions, output_shares
from analysis.figures.claims import forest_plot
from analysis.figures.edits import dial_panels, lines_beside_grid, marks_by_edit, shares_by_edit
from analysis.figures.grids import head_grids
from analysis.figures.theme import head_grid, style
from analysis.figures.words import finding
from analysis.scores.extraction import read_attention
from analysis.scores.sieves import across, same_pieces
from analysis.scores.sink import sink
from analysis.statistics.claim_pages import bracketed, claims_markdown
from analysis.statistics.claims import claim_table
from analysis.statistics.effects import match_logit
from analysis.statistics.training import trained_runs
from analysis.study.profiles import parameters
from analysis.study.results import Results
from analysis.synthesis import matching, matching_measures, matching_runs
from analysis.synthesis.matching_runs import Classifier, by_run, match_scores
from analysis.texts.examples import Example
from analysis.texts.glue import PAIR, load_examples

style()
results = Results(profile)
model = load_encoder(encoder, device, precision)
match = {task: match_class(task) for task in pair_tasks}
pairs, tasks = [*match], match | {task: positive_class(task) for task in single_tasks}
dev = {task: load_examples(task, source, "dev", scored_n, seed) for task in tasks}
trained = trained_runs(results.join_parts("finetune", tasks, every=False))
classifiers = [
    Classifier(
        task, run, load_classifier(results.weights(task, run, encoder, checkpoint), task, device, precision),
        dev[task], tasks[task], (task, run) in trained, max_tokens, results.logits,
    )
    for task in tasks
    for run in seeds
]  # fmt: skip
results.record_weights(f"{encoder}-pretrained", model.digest)
for c in classifiers:
    results.record_weights(f"{c.task}-{c.seed}", c.encoder.digest)
comparing = [classifier for classifier in classifiers if classifier.pair]
measured = [classifier for classifier in comparing if classifier.trained]

# %% [markdown]
# ## Which heads match?
#
# The match score of a head is the attention that it pays to copies of a word in the other text, over what uniform
# attention would pay. Matching heads have a score above the threshold in every pair task **before** fine-tuning, so the choice does
# not use any measured effect. We found such heads on MRPC and QNLI; effects on QQP were first measured here. In an encoder with random
# weights no head should stand out.

# %%
matched = {task: load_examples(task, source, "dev", matched_n, seed) for task in pairs}
states = {
    "pretrained": {(task, -1): model for task in pairs},
    "untrained": {(task, -1): random_encoder(encoder, seed, device, precision) for task in pairs},
    "finetuned": {classifier.run: classifier.encoder for classifier in comparing},
}
table, scores_of_heads = matching_runs.match_tables(states, matched, threshold, max_tokens)
results.save_table(table, "matching_heads")
roles = {task: results.load_table(f"roles-{task}-pretrained") for task in pairs}
ordered = matching.matching_heads(roles.values(), 0)  # all heads, the highest match score first
chosen = matching.matching_heads(roles.values(), threshold, heads)

# %%
layer, head = [(0, 0), *chosen[:1]][-1]
example = Example("pair", *PAIR)  # the two sentences of 02_score and 03_test
layout, attention = read_attention(model, example, max_tokens)
lines = np.where(same_pieces(layout) & across(layout), attention[layer, head], 0)
mean = table[table["state"] == "pretrained"].groupby(["layer", "head"])["match"].mean().unstack().to_numpy()
title, label = f"head {layer}-{head}: from words to their copies", "match score before fine-tuning"
results.save_figure(
    lines_beside_grid(lines, layout.tokens, title, mean, label),
    "matching-F1-at-work",
    "Left, a matching head on one pair: lines go from each word to its copies in the other text. Right, the "
    "match score of every head before fine-tuning: few heads find the same word.",
)

# %%
largest, above = table.groupby("state")["match"].max(), matching.matching_heads(roles.values(), threshold)
finding(
    f"Before fine-tuning, {len(above)} of {mean.size} heads have a match score above {threshold:g} in every pair task "
    f"({matching.names_of(above) or 'none'}). The largest match score is {largest['pretrained']:.1f}, in the untrained encoder "
    f"{largest['untrained']:.1f}."
)

# %% [markdown]
# ## One edit by hand
#
# One pair of sentences, one head, one word without a counterpart. We take half of the attention of its row, the *dose*, and spread
# it over the words of the other text. `redirect` does so for every word without a counterpart. The *match logit* is the classifier's log
# odds that the pair belongs to the class of matching pairs (paraphrase, duplicate, answered).

# %%
dose, classifier = 0.5, comparing[0]
layout, attention = read_attention(classifier.encoder, example, max_tokens)
word = 4  # [CLS] old dogs never bite
row, targets, crossing = attention[layer, head, word], other_text(layout)[word], across(layout)[word]
moved = (1 - dose) * row + dose * targets / targets.sum()
print(
    f"attention of {layout.tokens[word]} to the other text: {row[crossing].sum():.2f}, now {moved[crossing].sum():.2f}"
)
one_head = {"one head": [(layer, head)]}
logits = redirect(classifier.encoder, [example], one_head, "unmatched", "other text", dose, progress=False)
before, after = match_logit(logits.values, classifier.match)[:, 0]
print(f"match logit: {before:.2f} before, {after:.2f} after")

# %% [markdown]
# **Try it.** Set `dose = 1.0`, then `"other text"` to `"own text"` in the call of `redirect`.
#
# <details><summary>What happens</summary>
#
# Across, the logit rises further with the dose. To the own text it moves less: the head looks at words there too, but not across.
#
# </details>
#
# ## Are they needed?
#
# We ablate each head alone: its output is multiplied by 0. The effect is the fall of the **AUC**, the probability that a
# matching pair gets a higher score than another one. Why not the loss? An ablation also moves all scores towards one class;
# the loss punishes that, the AUC does not see it ([06_michel_ablation](06_michel_ablation.ipynb)). A dot marks a matching head.

# %%
alone = {c.run: matching_runs.single_effects(c, chosen) for c in classifiers}
effect_table = by_run(alone, classifiers, lambda effects_and_scores: effects_and_scores[0])
results.save_table(effect_table, "matching_effects")
auc = effect_table[effect_table["metric"] == "auc"]
means = auc.groupby(["task", "layer", "head"], sort=False)[["effect", "matching"]].mean().reset_index()
grids = {task: head_grid(rows, "effect") for task, rows in means.groupby("task", sort=False)}
dots = {task: head_grid(rows, "matching") > 0 for task, rows in means.groupby("task", sort=False)}
reach = max(float(means["effect"].abs().max()), 1e-6)
scale = {"cmap": "vlag", "vmin": -reach, "vmax": reach}
label = "fall in AUC\n(below 0: a rise; dot: matching head)"
columns = 2 if model.layers <= 8 else 4
results.save_figure(
    head_grids(grids, label, dots, columns, **scale),
    "matching-F2-effects",
    "Dots mark the matching heads, colour the fall in AUC when a head is ablated. In pair tasks the dots "
    "stand on the darkest cells, in tasks with one text they do not.",
)

# %% [markdown]
# An encoder may have one matching head or six, and a set of heads may do what none of them does alone. So we ablate **the set**
# of matching heads, other sets of as many heads of the same layers, and as many heads with the highest scores of each role. Then
# we add heads one by one, in the order of their match scores: where does the fall saturate?

# %%
edited = comparing if chosen else []
natural = {
    c.run: matching.attention_across(c.encoder, c.dev[:reference_n], chosen, max_tokens) for c in edited
}
of_sets, grown, of_roles = {}, {}, {}
for c in (c for c in classifiers if chosen and c.task in set_tasks):
    first = c.pair and c.seed == seeds[0]  # in the first run the sets turn the dial too
    interventions = matching_runs.set_interventions(c, chosen, sets, natural[c.run].dose if first else None)
    of_sets[c.run] = match_scores(c, interventions, c.dev[:reference_n])
for c in edited:
    interventions = matching_runs.growing_interventions(c, ordered[:growing], natural[c.run].dose)
    grown[c.run] = match_scores(c, interventions, c.dev[:reference_n])
    of_roles[c.run] = match_scores(c, matching_runs.role_interventions(c, chosen, roles[c.task]))
set_table = by_run(of_sets, classifiers, partial(matching_runs.set_table, heads=chosen))
growing_table = by_run(grown, classifiers, matching_runs.growing_table)
results.save_table(set_table, "matching_sets")
results.save_table(growing_table, "matching_growing")

# %%
growing_table.pivot_table("fall", ["task", "seed"], "k", sort=False).style.format(precision=3)

# %%
largest_falls = set_table.pivot_table("fall", ["task", "seed"], "set", aggfunc="max", sort=False)
largest_falls = largest_falls.reindex(columns=["matching heads", "other heads"]).dropna()
lead = largest_falls["matching heads"] > largest_falls["other heads"]
of_pairs = lead.index.isin(pairs, level="task")
matching.finding_about(
    chosen if len(lead) else [],
    f"Ablating the matching heads lowers the AUC more than ablating any of the other sets in {lead[of_pairs].sum()} of "
    f"{of_pairs.sum()} runs on pairs, and in {lead[~of_pairs].sum()} of {(~of_pairs).sum()} on single texts.",
)

# %% [markdown]
# ## Does it matter which word they look at?
#
# We leave the heads on and move the attention that a word pays to its copies in the other text. It is *removed* (set to 0, and
# the rest of the row divided by its sum), or it goes *to the sink*, the special token on which the heads rest, or evenly *to the
# own text*, that is, to the other words there. If the heads fetch the meaning of the copy, it should hurt as much to move
# it *to wrong words* of the other text, evenly, or *to one wrong word*, drawn at random. With *positions alone*, the heads keep their
# mean attention by position.

# %%
rest = sink(model)  # the special token on which heads rest
MATCHES = matching.MATCHING
moves = {
    "ablated": "zero",
    "removed": Redirection("matched", "nowhere", MATCHES),
    "to the sink": Redirection("matched", rest, MATCHES),
    "to the own text": Redirection("matched", "own text", MATCHES),
    "to wrong words": Redirection("matched", "other text", MATCHES),
    "to one wrong word": Redirection("matched", "one other word", MATCHES),
    "to the own text, first text": Redirection("matched", "own text", MATCHES, 0),
    "to the own text, second text": Redirection("matched", "own text", MATCHES, 1),
}
moved_scores, tables = {}, {}
for c in edited:
    twins = {"positions alone": matching.Twins(c.encoder, c.layouts())}
    edits = matching.edits(c.encoder, chosen, moves | twins)
    moved_scores[c.run] = match_scores(c, edits)
    tables[c.run] = matching_runs.redirection_table(moved_scores[c.run], c, edits)
redirected = by_run(tables, classifiers, pd.DataFrame)
results.save_table(redirected, "matching_redirection")
label = "fall in AUC (bars: 95 % intervals)"
results.save_figure(
    marks_by_edit(redirected, "fall", label),
    "matching-F3-redirected",
    "Each row is an edit of the attention that matching heads pay to the same word, each mark a run. "
    "Compare wrong words of the other text with the own text: which word they look at hardly counts, which "
    "text does.",
)

# %%
trained_rows = redirected[redirected["trained"].eq(True)]
fall = trained_rows.pivot_table("fall", "edit", "task", sort=False).reindex(moves)
matching.finding_about(
    chosen if len(trained_rows) else [],
    "Fall in AUC, mean over trained runs. "
    + " ".join(
        f"{task}: wrong words {column['to wrong words']:.3f}, own text {column['to the own text']:.3f}, "
        f"ablated {column['ablated']:.3f}."
        for task, column in fall.items()
    ),
)

# %% [markdown]
# Moving the attention of matching words to the sink, or removing it, can hurt more than ablation does, and even push the AUC below one
# half (run 2 of MRPC in glue-minilm). The heads then say "no match" where there is one, and nothing where there is none: the more words
# match, the more votes against.
#
# **Does crossing count, or only leaving the sink?** The *crossing share* is (fall to own text - fall to wrong words) / (fall to the
# sink - fall to wrong words): 1 if only the other text counts, 0 if any text will do and the sink alone says "no match". The same for
# the dial of the next section, with shifts of the match logit.
#
# ## Is it enough that they look across? The dial
#
# Now we leave matching words alone. For every word **without** a counterpart we move a share of the heads' attention, the
# *dose*, to the words of the other text. At the *natural dose* (dotted) such words look across as much as matching words do by
# themselves. Grey: other sets of as many heads of these layers, in the first run.

# %%
natural_edits = {
    matching.NATURAL: Redirection(),
    matching.OWN: Redirection(to="own text"),
    matching.SINK: Redirection(to=rest),
    matching.UNMATCHED: Redirection(to="unmatched other text"),
}
dialled = {}
for c in edited:
    edits = matching.edits(c.encoder, chosen, natural_edits, natural[c.run].dose)
    for dose in doses:
        edits += matching.edits(c.encoder, chosen, {f"dial {dose:g}": Redirection()}, dose)
    dialled[c.run] = match_scores(c, edits)
tables = {run: matching_runs.dial_table(answers, natural[run]) for run, answers in dialled.items()}
dial = by_run(tables, classifiers, pd.DataFrame)
results.save_table(dial, "matching_dial")
results.save_figure(
    dial_panels(dial, set_table, matching.NATURAL, matching.OWN),
    "matching-F4-dial",
    "Follow the solid lines: words without a counterpart are made to look at the other text, and more pairs "
    "are called a match. The same heads turned to their own text, and other heads, change less.",
)

# %%
share = dial[dial["trained"].eq(True)].pivot_table("share", "edit", "task", sort=False)
matching.finding_about(
    chosen if len(share) else [],
    'The share of pairs called "match" at the natural dose. '
    + " ".join(
        f"{task}: from {column['none']:.0%} to {column[matching.NATURAL]:.0%}, with the same heads turned to their own text "
        f"{column[matching.OWN]:.0%}."
        for task, column in share.items()
    ),
)

# %%
both = {run: [moved_scores[run], dialled[run][1:]] for run in dialled}
scores = {
    run: xr.concat(parts, "intervention", coords="minimal", compat="override") for run, parts in both.items()
}
crossing = by_run(scores, classifiers, matching_runs.crossing_table)
results.save_table(crossing, "matching_crossing")
crossing.pivot_table("crossing", ["task", "seed"], "measure", sort=False).style.format(precision=2)

# %% [markdown]
# ## What do they read there?
#
# A head writes attention times values. So we leave attention as it is and change the **values** that the heads read in the other
# text: those of *another pair's words* at the same positions; those of the pair with *token types exchanged*; and those of the pair
# with the *positions exchanged*, as if the second text came first. The *flag* adds one fixed vector where nothing matches, at the
# natural dose: the mean of what the head would read in the other text minus what it would read in its own.

# %%
values = {}
for c in edited:
    edits = matching.edits(c.encoder, chosen, {matching.TO_OWN: moves["to the own text"]})
    edits += matching.edits(c.encoder, chosen, matching.value_edits(c.encoder, c.layouts()))
    edits += matching.edits(c.encoder, chosen, matching.flag(c.encoder, c.layouts()), natural[c.run].dose)
    values[c.run] = match_scores(c, edits)
value_table = by_run(values, classifiers, lambda answers: matching_runs.answer_table(answers)[1:])
results.save_table(value_table, "matching_values")
value_table.pivot_table(["fall", "shift"], "edit", "task", sort=False).style.format(precision=3)

# %%
outputs = {}
for c in edited:
    read = c.layouts(reference_n)
    outputs[c.run] = output_shares(c.encoder, read, chosen, flag_directions(c.encoder, read))
output_table = by_run(outputs, classifiers, matching_runs.output_table)
results.save_table(output_table, "matching_outputs")
output_table.pivot_table(["share", "cosine"], ["layer", "head"], "task").style.format(precision=2)

# %% [markdown]
# The second table says how flat the signal is: the share of the variance of a head's outputs at matched words that lies in one
# direction, and the cosine of that direction with the flag.
#
# ## Which pairs fool it?
#
# The sharpest test: a text beside **itself**. Does the encoder recognise identical texts when the matching heads look away? Beside it:
# the text with two words exchanged, as in PAWS (Zhang et al. 2019), and with all words shuffled.

# %%
watched = {name: moves[name] for name in ("ablated", "to the own text", "to wrong words")}
same = {
    c.run: matching_runs.identical_scores(c, matching.edits(c.encoder, chosen, watched), identical_n, seed)
    for c in edited
    if c.task in identical_tasks
}
identical = by_run(same, classifiers, matching_runs.identical_table)
results.save_table(identical, "matching_identical")
results.save_figure(
    shares_by_edit(identical, ["none", *watched]),
    "matching-F5-identical",
    "Each mark is the share of texts that a run calls a match with themselves, with two words exchanged, or "
    "shuffled. Compare the heads as they are with the heads turned to the own text.",
)

# %%
of_itself = identical[identical["trained"].eq(True) & identical["pair"].eq("identical")]
shares = of_itself.pivot_table("share", "edit", "task", sort=False)
matching.finding_about(
    chosen if len(of_itself) else [],
    "Identical texts called a match. "
    + " ".join(
        f"{task}: {column['none']:.0%}; heads ablated {column['ablated']:.0%}, turned to the own text "
        f"{column['to the own text']:.0%}, to wrong words of the other text {column['to wrong words']:.0%}."
        for task, column in shares.items()
    ),
)

# %% [markdown]
# Which real pairs are misled? We count the pairs that are called "match" by label and by *overlap*, the share of words that stand in
# both texts (terciles). `overlap_auc` in all tables is the AUC of the overlap alone.

# %%
groups = {c.run: matching_runs.group_table(scores[c.run], matching.overlap(c.layouts())) for c in edited}
groups = by_run(groups, classifiers, pd.DataFrame)
results.save_table(groups, "matching_groups")
columns = ["n", "overlap", "share", "share_ablated", "share_dial", "overlap_auc"]
others = groups[
    groups["group"].isin([f"other pairs, {words} words shared" for words in ("few", "some", "many")])
]
others.reindex(columns=["task", "group", *columns]).groupby(
    ["task", "group"], sort=False
).mean().style.format(precision=2)

# %% [markdown]
# In the committed run of glue-minilm two heads, 1-1 and 2-9, match. Turned to the other text from words that have no match there, they
# make QNLI classifiers call nearly every question answered and QQP classifiers call many more pairs duplicates; turned to their own
# text, the same heads change little on these tasks. On MRPC the dial turns too, but there the own text turns it half as far. Pointed
# at wrong words of the other text, whichever word they read there, the heads cost next to nothing in all three tasks. One run of MRPC
# (run 2) loses almost twice as much when the matching attention is removed, or goes to the sink, as by ablation: all runs stand as marks
# in the figures, since a mean would hide it.
#
# In the committed run of glue-mpnet six of 144 heads match. None of them matters much alone; ablated together they cost more than the
# two of MiniLM do on QNLI and MRPC, and as little on QQP. They are a dial in all three tasks. But there the own text turns it most of
# the way, and moving the attention of matching words to the own text costs little, while moving it to the special token costs
# much on QNLI and MRPC. Wrong words of the other text cost next to nothing there either, values of another pair's words cost
# more, and identical texts stay matches. So MPNet's classifiers read whether these heads look **at a text at all**, MiniLM's
# whether they look **across**. It carries over that such heads exist before fine-tuning and that they are a dial. One run a
# task, on 40 or 60 pairs.
#
# The plain reading: **the matching heads are the classifier's word-overlap feature.** Is there more to the classifier than overlap?

# %%
of_dial = dial[dial["trained"].eq(True) & dial["edit"].eq("none")].groupby("task", sort=False)
beside_overlap = of_dial[["auc", "overlap_auc"]].mean()
beside_overlap["ablated"] = trained_rows[trained_rows["edit"].eq("ablated")].groupby("task")["auc"].mean()
matching.finding_about(
    chosen if len(beside_overlap) else [],
    "AUC of the classifier, of the classifier with its matching heads ablated, and of word overlap alone: "
    + "; ".join(
        f"{task} {row['auc']:.2f}, {row['ablated']:.2f} and {row['overlap_auc']:.2f}"
        for task, row in beside_overlap.iterrows()
    )
    + ".",
)

# %% [markdown]
# ## Does a classifier that has learnt more use them?
#
# Our classifiers learn from part of the data. One more learns from all training pairs (profile glue-minilm; set `full_tasks`).

# %%
full = {}
for task in full_tasks if chosen else []:
    recipe, folder = (
        parameters("00_finetune", profile),
        results.checkpoint(f"{task}-full", seeds[0], new=True),
    )
    like = next(c for c in comparing if c.task == task)
    more, accuracy = matching_runs.train(
        encoder, like, load_examples(task, source, "train", None, seed), folder, recipe, full_epochs, seeds[0]
    )
    mass = matching.attention_across(more.encoder, more.dev[:reference_n], chosen, max_tokens)
    edits = matching.edits(more.encoder, chosen, moves) + matching.edits(
        more.encoder, chosen, natural_edits, mass.dose
    )
    answers = matching_runs.answer_table(match_scores(more, edits))
    ranked = matching_runs.single_effects(more, chosen)[0]
    full[like.run] = matching_runs.with_ranks(answers, ranked).assign(accuracy=accuracy)
full_table = by_run(full, classifiers, pd.DataFrame)
if full:
    results.save_table(full_table, "matching_full")
main = ["none", "ablated", "to the own text", "to wrong words", matching.NATURAL, matching.OWN]
shown = full_table.reindex(
    columns=["task", "edit", "auc", "fall", "share", "rank", "accuracy", "overlap_auc"]
)
shown[shown["edit"].isin(main) | shown["rank"].notna()].style.format(precision=3, na_rep="").hide()

# %% [markdown]
# ## Could training do without them?
#
# Ablation shows what a trained classifier uses. Here it is trained with the attention of the matching heads to the other text
# blocked from the first step, and beside it with that of as many other heads (profile glue-minilm; set `blocked_tasks`).

# %%
blocked = {}
for c in (c for c in edited if c.task in blocked_tasks and c.seed == seeds[0]):
    recipe, train = (
        parameters("00_finetune", profile),
        load_examples(c.task, source, "train", blocked_n, seed),
    )
    conditions = matching_runs.blocking(chosen, c.encoder.heads)
    blocked[c.task] = {name: [] for name in conditions}
    for name, run in [(name, run) for name in conditions for run in range(blocked_runs)]:
        folder = results.checkpoint(f"{c.task}-{name.replace(' ', '-')}", run, new=True)
        without, _ = matching_runs.train(
            encoder, c, train, folder, recipe, recipe["epochs"], run, conditions[name]
        )
        blocked[c.task][name].append(matching_runs.blocked_scores(without, conditions))
overlaps = {c.task: c.overlap_auc() for c in comparing}
blocked_table = matching_runs.blocked_table(blocked, overlaps)
if blocked:
    results.save_table(blocked_table, "matching_blocked")
blocked_table.pivot_table(["auc", "overlap_auc"], "training", "evaluation", sort=False).style.format(
    precision=3
)

# %% [markdown]
# **Try it.** Set `heads = [[1, 2], [2, 10]]`: two neighbours of the matching heads of MiniLM.
#
# <details><summary>What happens</summary>
#
# All falls shrink to a hundredth of AUC or less, the natural dose turns no answer, and identical texts stay matches.
#
# </details>
#
# **Try it.** Set `threshold = 2`: another head joins, which matches far less. Does the set matter more?
#
# <details><summary>What happens</summary>
#
# A head that matches little adds little: the falls of the growing sets are flat after the first two.
#
# </details>
#
# **How far to trust it.** Thresholds were set after a prototype on the same encoder and recipe. All runs are seeds and tasks of one
# checkpoint, which was tuned on a billion pairs before: nine runs are not nine encoders. Which heads survive pruning differs
# between pre-trained seeds (Budhraja et al. 2020, Prasanna et al. 2020); ours come from one checkpoint, and nothing is trained after an
# ablation. Lower layers can do without attention across if they are trained so (Cao et al. 2020). Above the natural dose the edit
# leaves the range that the encoder knows. Rankers treat the two texts differently (Zhan et al. 2020, Schlatt et al. 2024), so the
# rows of each text are also moved alone. The edit of positions exchanges absolute ones; a bias of relative positions stays.
#
# ## The claims

# %%
by_section = {
    "sets": of_sets,
    "roles": of_roles,  # as many heads with the highest scores of another role
    "attention": scores,
    "values": values,
}
texts = {run: answers["identical"] for run, answers in same.items() if "identical" in answers}
frames = matching_measures.frames(classifiers, chosen, scores_of_heads, by_section, texts, blocked, threshold)
claims = claim_table(matching_measures.CLAIMS, frames)
results.save_table(claims, "claims-matching")
results.save_figure(
    forest_plot(claims, matching_measures.CLAIMS),
    "matching-claims",
    "The claims on matching heads, with 95 % intervals beside their thresholds. Filled marks are decided.",
)

# %%
crossing_share = claims.set_index("claim").loc["X12", ["estimate", "low", "high"]].astype(float)
direction = "look across" if crossing_share["low"] > 0.5 else "look at a text at all"
matching.finding_about(
    chosen if measured else [],
    f"The matching heads tell whether two texts share words by whether they {direction}: the crossing share is "
    f"{bracketed(*crossing_share)}."
    if crossing_share.notna().all()
    else "Turning the matching heads to the sink costs too little to tell whether it counts that they look across.",
)

# %%
Markdown(claims_markdown(claims, matching_measures.CLAIMS))
