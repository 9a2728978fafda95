# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 11. Heads that compare texts: one task
#
# Some heads attend from a word to the same word in the other text. Does a fine-tuned classifier **need** these *matching heads*?
# Does it matter **which word** they look at? Is it **enough** that they look across? And what do they **carry** there? The answers
# are interventions: no word is changed, and all other heads stay as they are. This chapter is about one task, and each of its
# fine-tuning runs is a row; [11_matching_all](11_matching_all.ipynb) says which heads match, what was known before, and what holds in
# all tasks.
#
# *Source: this study; ablation as in Michel et al. 2019. Layers and heads count from 0.*
#
# This chapter needs the role tables of [03_test_all](03_test_all.ipynb) and the checkpoints of its task.

# %% tags=["parameters"]
profile: str = "offline"
task: str = "toy-qnli"  # one of pair_tasks
heads: list[list[int]] | None = (
    None  # such as [[2, 9], [1, 1]]; none: those with a match score above the threshold
)
threshold: float = 5.0  # match score of a matching head; 1 is uniform attention
doses: list = [0.1, 0.25, 0.5, 0.75, 1.0]  # shares of attention that the dial moves
sets: int = 12  # other sets of as many heads

# seldom changed
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints instead of ours, {task} and {seed} are filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
pair_tasks: list = ["toy-mrpc", "toy-qqp", "toy-qnli"]  # for one of your own see data/README.md
seeds: list = [0, 1]  # fine-tuning runs
matched_n: int = 60  # dev sequences that match scores are means over
scored_n: int | None = 60  # dev pairs on which every head is ablated alone, as in 06_michel_ablation
edited_n: int | None = 40  # dev pairs on which the matching heads, and other sets, are edited
growing: int = 4  # heads, in the order of their match scores, that are added one by one
identical_tasks: list = ["toy-mrpc", "toy-qqp"]  # whose texts stand beside themselves
identical_n: int = 20
full_tasks: list = []  # tasks of which one more classifier learns from all training pairs
full_epochs: int = 5
blocked_tasks: list = []  # tasks of which classifiers are trained with heads blocked
blocked_runs: int = 3  # for each condition
blocked_n: int = 2000  # training pairs of such a run
max_tokens: int = 128
seed: int = 0
device: str = "cpu"

# %%
from functools import partial

import xarray as xr
from IPython.display import display

from analysis.encoders.classifiers import load_classifier, random_encoder
from analysis.encoders.measures import match_class
from analysis.encoders.models import load_encoder
from analysis.encoders.redirection import REGIONS, Redirection, Unread, other_text, redirect
from analysis.encoders.values import flag_directions, output_shares
from analysis.errors import check_choice
from analysis.figures.edits import dial_panels, effect_maps, marks_by_edit, region_panels, shares_by_edit
from analysis.figures.theme import style
from analysis.scores.extraction import read_attention
from analysis.scores.sieves import across
from analysis.scores.sink import sink
from analysis.statistics.effects import match_logit
from analysis.statistics.training import trained_runs
from analysis.study.profiles import parameters
from analysis.study.results import Results
from analysis.synthesis import matching, matching_measures, matching_runs
from analysis.synthesis.matching_runs import Classifier, match_scores, per_run
from analysis.tables import stacked
from analysis.texts.examples import Example
from analysis.texts.glue import PAIR, load_examples

style()
results = Results(profile)
model = load_encoder(encoder, device)
match = {name: match_class(name) for name in pair_tasks}
check_choice(f"pair_tasks has no {task!r}", task, match)
dev = load_examples(task, source, "dev", edited_n, seed)
scored = load_examples(task, source, "dev", scored_n, seed)
trained = trained_runs(results.join_parts("finetune", [task], every=False))
classifiers = [
    Classifier(
        task, run, load_classifier(results.weights(task, run, encoder, checkpoint), task, device),
        dev, match[task], (task, run) in trained, max_tokens, results.logits,
    )
    for run in seeds
]  # fmt: skip
results.record_weights(f"{encoder}-pretrained", model.digest)
for classifier in classifiers:
    results.record_weights(f"{task}-{classifier.seed}", classifier.encoder.digest)
by_run = partial(matching_runs.by_run, classifiers=classifiers)

# %% [markdown]
# ## Which heads match?
#
# The match score of a head is the attention that it pays to copies of a word in the other text, over what uniform
# attention would pay. Matching heads have a score above the threshold in every pair task **before** fine-tuning, so the choice does
# not use any measured effect.

# %%
roles = {name: results.load_table(f"roles-{name}-pretrained") for name in match}
ordered = matching.matching_heads(roles.values(), 0)  # all heads, the highest match score first
chosen = matching.matching_heads(roles.values(), threshold, heads)
edited = classifiers if chosen else []
states = {
    "pretrained": {(task, -1): model},
    "untrained": {(task, -1): random_encoder(encoder, seed, device)},
    "finetuned": {classifier.run: classifier.encoder for classifier in classifiers},
}
matched = {task: load_examples(task, source, "dev", matched_n, seed)}
table, scores_of_heads = matching_runs.match_tables(states, matched, threshold, max_tokens)
results.save_table(table, f"matching_heads-{task}")
largest = table.groupby(["state", "seed"])[["match", "match_control", "match_own"]].max()
largest.style.format(precision=1).set_caption(
    f"Largest scores of a head; matching heads: {matching.names_of(chosen)}"
)

# %% [markdown]
# ## One edit by hand
#
# One pair of sentences, one head, one word without a counterpart. We take half of the attention of its row, the *dose*, and spread
# it over the words of the other text. `redirect` does so for every word without a counterpart. The *match logit* is the classifier's log
# odds that the pair belongs to the class of matching pairs (paraphrase, duplicate, answered).

# %%
dose, classifier = 0.5, classifiers[0]
layer, head = [(0, 0), *chosen[:1]][-1]
example = Example("pair", *PAIR)  # the two sentences of 02_score and 03_test
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
# In profile glue-minilm the logit rises further with the dose, and to the own text it moves less: the head looks at words there too, but
# not across.
#
# </details>
#
# ## Does the classifier need them?
#
# We ablate each head alone: its output is multiplied by 0. The effect is the fall of the **AUC**, the probability that a
# matching pair gets a higher score than another one. Why not the loss? An ablation also moves all scores towards one class;
# the loss punishes that, the AUC does not see it ([06_michel_ablation](06_michel_ablation.ipynb)). A dot marks a matching head.

# %%
effects = by_run(per_run(classifiers, lambda c: matching_runs.single_effects(c, chosen, scored)))
results.save_table(effects, f"matching_effects-{task}")
results.save_figure(
    effect_maps(effects, "seed"),
    f"matching-F2-effects-{task}",
    "Dots mark the matching heads, colour the fall in AUC when a head is ablated alone. Is a dot among the "
    "darkest cells of its map?",
)

# %% [markdown]
# An encoder may have one matching head or six, and a set of heads may do what none of them does alone. So we ablate **the set**
# of matching heads, other sets of as many heads of the same layers, and as many heads with the highest scores of each role. Then
# we add heads one by one, in the order of their match scores: where does the fall saturate?

# %%
natural = per_run(edited, lambda c: matching.attention_across(c.encoder, c.dev, chosen, max_tokens))


def of_sets(c):
    """The match logits under sets of heads; in the first run the sets turn the dial too."""
    dose = natural[c.run].dose if c.seed == seeds[0] else None
    return match_scores(c, matching_runs.set_interventions(c, chosen, sets, dose))


def of_growing(c):
    return match_scores(c, matching_runs.growing_interventions(c, ordered[:growing], natural[c.run].dose))


set_scores = per_run(edited, of_sets)
role_scores = per_run(
    edited, lambda c: match_scores(c, matching_runs.role_interventions(c, chosen, roles[task]))
)
set_table = by_run(set_scores, table=partial(matching_runs.set_table, heads=chosen))
growing_table = by_run(per_run(edited, of_growing), table=matching_runs.growing_table)
results.save_table(set_table, f"matching_sets-{task}")
results.save_table(growing_table, f"matching_growing-{task}")
growing_table.pivot_table("fall", "seed", "k").style.format(precision=3)

# %%
ablated_sets = set_table[set_table["set"] != "none"]
falls = ablated_sets.groupby(["set", "seed"], sort=False)["fall"].agg(["max", "median", "count"])
falls.style.format(precision=3)

# %%
matching.finding_about(
    edited,
    f"Ablating the {len(chosen)} matching heads of {profile} together lowers the AUC by "
    f"{set_table.loc[set_table['set'].eq(matching_runs.SET), 'fall'].mean():.3f}, the worst of {sets} other sets of as many heads by "
    f"{set_table.loc[set_table['set'].eq('other heads'), 'fall'].max():.3f}.",
)

# %% [markdown]
# ## Does it matter which word they look at?
#
# We leave the heads on and move the attention that a word pays to its copies in the other text. It is *removed* (set to 0, and
# the rest of the row divided by its sum), or it goes *to the sink*, the special token on which the heads rest, or evenly *to the
# own text*, that is, to the other words there. If the heads fetch the meaning of the copy, it should hurt as much to move
# it *to wrong words* of the other text, evenly, or *to one wrong word*, drawn at random. With *positions alone*, the heads keep their
# mean attention by position. Two yardsticks stand beside them: the heads *ablated*, and attending *uniformly* to all tokens.

# %%
rest = sink(model)  # the special token on which heads rest
MATCHES = matching.MATCHING
moves = {
    "ablated": "zero",
    matching.UNIFORM: "uniform",
    "removed": Redirection("matched", "nowhere", MATCHES),
    "to the sink": Redirection("matched", rest, MATCHES),
    "to the own text": Redirection("matched", "own text", MATCHES),
    "to wrong words": Redirection("matched", "other text", MATCHES),
    "to one wrong word": Redirection("matched", "one other word", MATCHES),
    "to the own text, first text": Redirection("matched", "own text", MATCHES, 0),
    "to the own text, second text": Redirection("matched", "own text", MATCHES, 1),
}


def attention_edits(c):
    twins = {"positions alone": matching.Twins(c.encoder, c.layouts())}
    return matching.edits(c.encoder, chosen, moves | twins)


edits = per_run(edited, attention_edits)
moved_scores = per_run(edited, lambda c: match_scores(c, edits[c.run]))
redirected = by_run(
    per_run(edited, lambda c: matching_runs.redirection_table(moved_scores[c.run], c, edits[c.run]))
)
results.save_table(redirected, f"matching_redirection-{task}")
labels = {"fall": "fall in AUC", "shift": "shift of the match logit\n(below 0: fewer matches)"}
results.save_figure(
    marks_by_edit(redirected, labels),
    f"matching-F3-redirected-{task}",
    "Each row is an edit of the matching heads, each mark a run with its 95 % interval. Left: compare wrong words of the other "
    "text with the own text, does the word count, or the text? Right: what an edit does to all answers; ablation is the yardstick.",
)

# %%
by_edit = redirected.groupby("edit")[["fall", "shift", "share"]].mean().reindex([*moves])
matching.finding_about(
    edited,
    f"Fall in AUC, mean over runs: {by_edit.loc['to wrong words', 'fall']:.3f} to wrong words of the other text, "
    f"{by_edit.loc['to the own text', 'fall']:.3f} to the own text, "
    f"{by_edit.loc['ablated', 'fall']:.3f} ablated.",
)

# %% [markdown]
# **What does ablation do?** It takes information away, and it moves all answers one way. Which way depends on the encoder: a head that
# is ablated says neither "match" nor "no match", so the shift (right panel above) tells which of the two the heads said more. X4,
# X5 and X11 are read beside this yardstick.

# %%
share_before = by_run(moved_scores, table=lambda answers: matching_runs.answer_table(answers)[:1])[
    "share"
].mean()
matching.finding_about(
    edited,
    f"With the matching heads ablated, the classifiers call {by_edit.loc['ablated', 'share']:.0%} of the pairs a match "
    f"({share_before:.0%} before): the match logit shifts by {by_edit.loc['ablated', 'shift']:+.2f}, with uniform attention "
    f"by {by_edit.loc[matching.UNIFORM, 'shift']:+.2f}.",
)

# %% [markdown]
# Moving the attention of matching words to the sink, or removing it, can hurt more than ablation does, and even push the AUC below one
# half. The heads then say "no match" where there is one, and nothing where there is none: the more words match, the more votes against.
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


def of_dial(c):
    interventions = matching.edits(c.encoder, chosen, natural_edits, natural[c.run].dose)
    for dose in doses:
        interventions += matching.edits(c.encoder, chosen, {f"dial {dose:g}": Redirection()}, dose)
    return match_scores(c, interventions)


dialled = per_run(edited, of_dial)
dial = by_run(per_run(edited, lambda c: matching_runs.dial_table(dialled[c.run], natural[c.run])))
results.save_table(dial, f"matching_dial-{task}")
results.save_figure(
    dial_panels(dial, set_table, matching.NATURAL, matching.OWN),
    f"matching-F4-dial-{task}",
    "Words without a counterpart are made to look at the other text. Where the solid line rises, more pairs are "
    "called a match; the dashed one turns the same heads to their own text, grey lines turn other heads.",
)

# %%
together = {"coords": "minimal", "compat": "override"}
scores = per_run(
    edited, lambda c: xr.concat([moved_scores[c.run], dialled[c.run][1:]], "intervention", **together)
)
crossing = by_run(scores, table=matching_runs.crossing_table)
results.save_table(crossing, f"matching_crossing-{task}")
crossing.pivot_table("crossing", "seed", "measure").style.format(precision=2)

# %%
at_dose = dial.groupby("edit")["share"].mean().reindex(["none", *natural_edits])
matching.finding_about(
    edited,
    f'The share of pairs called "match" goes from {at_dose["none"]:.0%} to '
    f"{at_dose[matching.NATURAL]:.0%} at the natural dose, and to {at_dose[matching.OWN]:.0%} with the "
    f"same heads turned to their own text.",
)

# %% [markdown]
# ## Where is the vote read?
#
# The crossing share is a ratio of small differences. A direct way: attention stays as it is, and what the heads read in one **region**
# of keys is left out. Weights there become 0 and the others stay, so the head says what it says without that region. If the vote
# for "match" is read in the other text, the match logit falls when this region is left out, and falls nearly as far without the copies
# alone. A region whose loss *raises* the logit says "no match" by being read. What each reading predicts for profile glue-mpnet was written down
# before it was measured ([method](../../../docs/method.md#matching-heads)). The finding names the region whose loss moves the logit most.
# Where another one moves it nearly as far the other way, the heads vote with both: in glue-mpnet, what they read at [SEP] says "no
# match", and what they read in the other text says "match".

# %%
regions = {name: Unread(name) for name in REGIONS}
region_table = by_run(
    per_run(edited, lambda c: match_scores(c, matching.edits(c.encoder, chosen, regions))),
    table=matching_runs.region_table,
)
results.save_table(region_table, f"matching_regions-{task}")
if edited:
    results.save_figure(
        region_panels(region_table),
        f"matching-F6-regions-{task}",
        "Rows are what is left out of what the matching heads read. Left, how much the AUC falls; right, where the match logit "
        "moves, for matching pairs and for the others. Left of 0, what is left out votes for a match; right of 0, against one.",
    )

# %%
by_region = region_table.groupby("region")[["fall", "shift"]].mean().reindex([*regions])
copies = by_region.loc["copies alone"]  # a part of the other text
whole = by_region.drop("copies alone")
strongest = whole["shift"].abs().fillna(0).idxmax()
matching.finding_about(
    edited,
    f"The region whose loss moves the match logit most is {strongest}: left out, it shifts the logit by "
    f"{whole.loc[strongest, 'shift']:+.2f} and the AUC by {-whole.loc[strongest, 'fall']:+.3f} (the copies alone: "
    f"{copies['shift']:+.2f} and {-copies['fall']:+.3f}). Every other region shifts the logit by at most "
    f"{whole['shift'].drop(strongest).abs().max():.2f}.",
)

# %% [markdown]
# ## What do they read there?
#
# A head writes attention times values. So we leave attention as it is and change the **values** that the heads read in the other
# text: those of *another pair's words* at the same positions; those of the pair with *token types exchanged*; and those of the pair
# with the *positions exchanged*, as if the second text came first. The *flag* adds one fixed vector where nothing matches, at the
# natural dose: the mean of what the head would read in the other text minus what it would read in its own.


# %%
def of_values(c):
    interventions = matching.edits(c.encoder, chosen, {matching.TO_OWN: moves["to the own text"]})
    interventions += matching.edits(c.encoder, chosen, matching.value_edits(c.encoder, c.layouts()))
    flag = matching.flag(c.encoder, c.layouts())
    return match_scores(c, interventions + matching.edits(c.encoder, chosen, flag, natural[c.run].dose))


values = per_run(edited, of_values)
value_table = by_run(values, table=lambda answers: matching_runs.answer_table(answers)[1:])
results.save_table(value_table, f"matching_values-{task}")
value_table.pivot_table(["fall", "shift"], "edit", "seed", sort=False).style.format(precision=3)


# %%
def of_outputs(c):
    read = c.layouts()
    return output_shares(c.encoder, read, chosen, flag_directions(c.encoder, read))


output_table = by_run(per_run(edited, of_outputs))
results.save_table(output_table, f"matching_outputs-{task}")
output_table.pivot_table(["share", "cosine"], ["layer", "head"], "seed").style.format(precision=2)

# %% [markdown]
# The second table says how flat the signal is: the share of the variance of a head's outputs at matched words that lies in one
# direction, and the cosine of that direction with the flag.
#
# ## Which pairs fool it?
#
# The sharpest test: a text beside **itself**. Does the encoder recognise identical texts when the matching heads look away? Beside it:
# the text with two words exchanged, as in PAWS (Zhang et al. 2019), and with all words shuffled. It is done in the tasks whose two texts
# are of one kind (parameter `identical_tasks`): a question beside itself is no question and answer.

# %%
watched = {name: moves[name] for name in ("ablated", "to the own text", "to wrong words")}


def of_identical(c):
    return matching_runs.identical_scores(c, matching.edits(c.encoder, chosen, watched), identical_n, seed)


same = per_run(edited if task in identical_tasks else [], of_identical)
if same:
    identical = by_run(same, table=matching_runs.identical_table)
    results.save_table(identical, f"matching_identical-{task}")
    figure = shares_by_edit(identical, ["none", *watched])
    results.save_figure(
        figure,
        f"matching-F5-identical-{task}",
        "Each mark is the share of texts that a run calls a match with themselves, with two words exchanged, or "
        "shuffled. Compare the heads as they are with the heads turned to the own text.",
    )

# %% [markdown]
# Which real pairs are misled? We count the pairs that are called "match" by label and by *overlap*, the share of words that stand in
# both texts (terciles). `overlap_auc` in all tables is the AUC of the overlap alone.

# %%
overlap = matching.overlap(classifiers[0].layouts())
groups = by_run(per_run(edited, lambda c: matching_runs.group_table(scores[c.run], overlap)))
results.save_table(groups, f"matching_groups-{task}")
columns = ["n", "overlap", "share", "share_ablated", "share_dial"]
by_group = groups.reindex(columns=["group", *columns]).groupby("group").mean().sort_values("overlap")
by_group.style.format(precision=2).format("{:.0f}", subset="n")

# %% [markdown]
# ## Does a classifier that has learnt more use them?
#
# Our classifiers learn from part of the data. In the tasks of `full_tasks` one more learns from all training pairs; in others nothing
# stands below.


# %%
def edits_of_full(more):
    """The edits above of the classifier that learnt from all pairs, at its own natural dose."""
    mass = matching.attention_across(more.encoder, more.dev, chosen, max_tokens)
    at_dose = matching.edits(more.encoder, chosen, natural_edits, mass.dose)
    return matching.edits(more.encoder, chosen, moves) + at_dose


recipe = parameters("00_finetune", profile)
if chosen and task in full_tasks:
    folder = results.checkpoint(f"{task}-full", seeds[0], new=True)
    train = load_examples(task, source, "train", None, seed)
    more, accuracy = matching_runs.train(
        encoder, classifiers[0], train, folder, recipe, full_epochs, seeds[0]
    )
    answers = matching_runs.answer_table(match_scores(more, edits_of_full(more)))
    ranked = matching_runs.single_effects(more, chosen, scored)
    full = by_run({classifiers[0].run: matching_runs.with_ranks(answers, ranked).assign(accuracy=accuracy)})
    results.save_table(full, f"matching_full-{task}")
    display(full[["edit", "auc", "fall", "share", "rank", "accuracy"]].style.format(precision=3, na_rep=""))

# %% [markdown]
# ## Could training do without them?
#
# Ablation shows what a trained classifier uses. In the tasks of `blocked_tasks` it is trained with the attention of the matching heads
# to the other text blocked from the first step, and beside it with that of as many other heads; in others nothing stands below.

# %%
blocked = {}
if chosen and task in blocked_tasks:
    train = load_examples(task, source, "train", blocked_n, seed)
    conditions = matching_runs.blocking(chosen, model.heads)
    blocked[task] = {name: [] for name in conditions}
    for name, run in [(name, run) for name in conditions for run in range(blocked_runs)]:
        folder = results.checkpoint(f"{task}-{name.replace(' ', '-')}", run, new=True)
        like = classifiers[0]
        without, _ = matching_runs.train(
            encoder, like, train, folder, recipe, recipe["epochs"], run, conditions[name]
        )
        blocked[task][name].append(matching_runs.blocked_scores(without, conditions))
    table = matching_runs.blocked_table(blocked, {task: classifiers[0].overlap_auc()})
    results.save_table(table, f"matching_blocked-{task}")
    display(table.pivot_table("auc", "training", "evaluation", sort=False).style.format(precision=3))

# %% [markdown]
# **Try it.** Set `heads` to two neighbours of the matching heads, in profile glue-minilm to `[[1, 2], [2, 10]]`.
#
# <details><summary>What happens</summary>
#
# In glue-minilm all falls shrink to a hundredth of AUC or less, the natural dose turns no answer, and identical texts stay matches. On another
# encoder look first whether the neighbours match themselves.
#
# </details>
#
# ## What the claims need
#
# The claims X1 to X14 are about all pair tasks, but for X3, which is about single texts. This task gives its value to each;
# [11_matching_all](11_matching_all.ipynb) takes the means and judges them.

# %%
by_section = {"sets": set_scores, "roles": role_scores, "attention": scores, "values": values}
texts = {run: answers["identical"] for run, answers in same.items() if "identical" in answers}
frames = matching_measures.frames(classifiers, chosen, scores_of_heads, by_section, texts, blocked, threshold)
units = stacked(frames, "claim")
results.save_table(units, f"matching_units-{task}", digits=9)
units.style.format(precision=3, na_rep="").hide()
