# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 9, continued. Do models comprehend arguments, or read cues?
#
# Niven and Kao (2019) fine-tune BERT-large on arguments: its mean test accuracy is 0.67, and 0.77 in the best of 20 runs. With the
# warrants alone, which cannot decide the question without the claim and the reason, the mean is 0.66 and the best run 0.71. On an
# adversarial set, in which every argument has a copy with its claim negated, the mean is 0.50. They conclude that cues in the
# warrants account for what BERT learns. We repeat this, measure how closely models follow "not", and then ask two questions that the
# paper does not: which heads **attend** to that word, and what changes if they are **ablated**?
#
# *Source: Niven and Kao 2019, sections 4 to 6, Tables 1, 3 and 4. The paper's encoder is BERT-large; the sections on heads are ours, and
# count layers and heads from 0.*
#
# ## How is it measured?
#
# Each warrant $w_j$ is scored by itself with the same weights; with claim $c$ and reason $r$,
#
# $$ z_j = f_\theta(c, r, w_j), \qquad p = \mathrm{softmax}(z_0, z_1), $$
#
# and the model takes the warrant with the larger $z_j$. Set-ups differ in the input of $f$: everything (*full*), the warrant alone (*W*),
# with the reason (*RW*) or with the claim (*CW*). We also train a bag of word vectors and a BiLSTM.

# %% tags=["parameters"]
profile: str = "offline"
encoder: str = "minilm"  # encoder that is fine-tuned on arguments
# bundled, or the folder that holds train-full.txt, dev-full.txt and test-full.txt of ARCT
argument_source: str = "bundled"
encoder_epochs: int = 4  # epochs of fine-tuning
cue_heads_n: int = 6  # heads that are ablated together

# seldom changed
argument_n: int | None = 240  # arguments of each split, None for all
# the folder with the authors' adversarial files; none: claims negated here
adversarial_source: str | None = None
planted_productivity: float = 0.7  # of "not" in the bundled arguments
planted_coverage: float = 0.6
# a text file of GloVe vectors; None: principal components of the encoder's word embeddings
glove: str | None = None
bag_seeds: list[int] = [0, 1, 2]  # runs of the bag of vectors
bag_epochs: int = 3
lstm_seeds: list[int] = []  # runs of the BiLSTM
lstm_hidden: int = 128  # in each direction
lstm_epochs: int = 8
encoder_seeds: list[int] = [0, 1, 2]  # three runs, so that intervals cover the chance of a run
encoder_setups: list[str] = ["full", "W"]
encoder_probed: list[str] = []  # set-ups of the encoder that are trained on the adversarial set
small_probed: list[str] = []  # the same of the small models
learning_rate: float = 1.5e-4  # of the encoder
adversarial_epochs: int = 10
batch_size: int = 8
max_tokens: int = 80
minimum: int = 20  # warrants with "not" that a test of a head needs
random_sets: int = 5  # controls: as many heads of the same layers
resamples: int = 999
seed: int = 0  # of the bundled arguments, of samples, of random sets and of the bootstrap
device: str = "cpu"
training_precision: str = "float32"

# %%
from IPython.display import Markdown, display

from analysis.encoders.models import load_encoder
from analysis.figures.claims import FOREST_CAPTION, forest_plot
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.niven2019 import accuracy, arguments, drawing, heads, measures, networks, runs
from analysis.statistics.significance import Rule
from analysis.study.claim_pages import claims_markdown
from analysis.study.claims import judged
from analysis.study.results import Results

style()
results = Results(profile)
model = load_encoder(encoder, device)
results.record_weights(encoder, model.digest)
cue_strength = (planted_productivity, planted_coverage)
splits = {
    split: arguments.load_arguments(argument_source, split, argument_n, seed, *cue_strength)
    for split in arguments.SPLITS
}
missing = arguments.missing_files(adversarial_source)
sets = runs.training_sets(splits, None if missing else adversarial_source)

# %% [markdown]
# ## Train
#
# Every run trains for a fixed number of epochs, and the last one counts. A run **trained successfully** if its accuracy on the training
# points is above the share of the most frequent label (exact binomial test, p < 0.05); a run that did not says nothing about what a model
# learns, and is left out. Small models have the learning rates of the paper. Each run has a file in the cache; a killed notebook resumes
# with the next run.

# %%
cache = results.profile.cache / "niven"  # files are named after their content: every run may use them
probed_sets = [] if missing else [name for name in sets if name != "original"]
words = networks.vocabulary(
    model, [point for part in sets.values() for split in part.values() for point in split], glove
)
bag_trainer = runs.small_trainer(words, bag_epochs)
bag_runs = runs.plan(arguments.BAG, bag_seeds, probed=small_probed, sets=probed_sets)
bags = runs.collect(bag_runs, sets, cache, bag_trainer)
lstm_trainer = runs.small_trainer(words, lstm_epochs, lstm_hidden)
lstm_runs = runs.plan(arguments.BILSTM, lstm_seeds, probed=small_probed, sets=probed_sets)
lstms = runs.collect(lstm_runs, sets, cache, lstm_trainer)

# %%
recipe = dict(batch_size=batch_size, max_tokens=max_tokens, device=device, precision=training_precision)
epochs = {"original": encoder_epochs, "adversarial": adversarial_epochs}
trainer = runs.encoder_trainer(encoder, epochs, learning_rate=learning_rate, **recipe)
encoder_runs = runs.plan(arguments.ENCODER, encoder_seeds, encoder_setups, encoder_probed, probed_sets[:1])
encoders = runs.collect(encoder_runs, sets, cache, trainer)

# %%
answers = runs.joined(bags | lstms | encoders)
results.record_weights("niven", answers.attrs["weights"])
Markdown(
    f"{int(answers['trained'].sum())} of {answers.sizes['run']} runs trained successfully. Word vectors of the small models: "
    f"{words.label}. The BiLSTM has {lstm_hidden} units in each direction (paper: 512)."
)

# %% [markdown]
# ## How accurate are models that see a part of the argument? (tables 1 and 3)
#
# A dot is a run that is trained and tested on the original arguments. Bars are 95 % intervals over points and, with three runs or more,
# over runs. On ARCT, the authors' twenty runs stand beside ours as small dots, their mean as a diamond; beside our encoder these are runs
# **of BERT-large**.

# %%
accuracies, summary = accuracy.accuracy_table(answers), accuracy.summary_table(answers)
results.save_table(accuracies, "niven_accuracy")
results.save_table(summary, "niven_summary")
right_answers = accuracy.right_answers(answers)
results.save_claim("N1", measures.accuracy_of_encoder(right_answers, splits["test"]))
published, released = (accuracy.published(name) for name in ("results", "seeds"))
if argument_source == "bundled":  # all published values are about ARCT
    published, released = published.head(0), released.head(0)
on_originals = accuracies["trained_on"] == "original"
results.save_figure(
    drawing.accuracy_panels(accuracies[on_originals], summary, released),
    "niven-T1-accuracy",
    "Test accuracy of every run by what the model sees of the argument, with means and 95 % intervals; beside it the runs of the "
    "authors. Where W is as high as full, claim and reason add nothing to the warrants (Tables 1 and 3 of Niven and Kao).",
)

# %%
original = summary[(summary["tested_on"] == "original") & (summary["trained_on"] == "original")]
full = original[original["setup"] == "full"].set_index("model")["trained_mean"]
encoder_mean, bag_mean = full.reindex([arguments.ENCODER, arguments.BAG])
finding(
    f"With the full input, the encoder is right in {100 * encoder_mean:.0f} % of the test points and the bag of vectors in "
    f"{100 * bag_mean:.0f} % (chance: 50 %)."
    if full.reindex([arguments.ENCODER, arguments.BAG]).notna().all()
    else "No run of the encoder, or none of the bag of vectors, trained successfully with the full input."
)

# %% [markdown]
# What else stands in Table 1 (accuracy on ARCT, mean and standard deviation; people, and systems of other authors):
#
# | | dev | test |
# |---|---|---|
# | people with training in reasoning | | 0.909 ± 0.11 |
# | people without | | 0.798 ± 0.16 |
# | BERT-large | 0.701 ± 0.05 | 0.671 ± 0.09 |
# | GIST (Choi and Lee 2018) | 0.716 ± 0.01 | 0.711 ± 0.01 |
# | BERT-base | 0.680 ± 0.02 | 0.623 ± 0.07 |
# | World Knowledge (Botschen et al. 2018) | 0.674 ± 0.01 | 0.568 ± 0.03 |
# | bag of vectors | 0.639 ± 0.02 | 0.564 ± 0.02 |
# | BiLSTM | 0.658 ± 0.01 | 0.552 ± 0.02 |
#
# The means of all our runs compared with those of the paper (Tables 1 and 3), which counts all of its runs; the table `niven_published` has
# the other set-ups and Table 4:

# %%
comparison = accuracy.beside_published(summary, published)
results.save_table(comparison, "niven_published")
columns = ["model", "setup", "trained_on", "published_mean", "published_max", "mean", "max"]
shown = comparison["setup"].isin(["full", "W"]) & (comparison["trained_on"] == "original")
comparison.loc[shown, columns].style.format(precision=2, na_rep="–").hide()

# %% [markdown]
# ## What do the claim and the reason add?
#
# Differences of two set-ups of one model on the same points.

# %%
differences = accuracy.difference_table(answers)
results.save_table(differences, "niven_differences")
results.save_claim("N2", measures.gains_over_warrants(right_answers, "full"))
results.save_claim("N3", measures.gains_over_warrants(right_answers, "RW", "CW"))
differences[differences["first"] == "full"].style.format(precision=2).hide()

# %% [markdown]
# ## Does the claim matter? The two halves of the adversarial set
#
# A point and its copy have the same warrants and the same reason, and opposite labels. A model that ignores the claim gives both the
# same answer, so that it is right in exactly one of them, and its two accuracies sum to 1. With the small models they do so by
# construction: the claim adds the same number to the scores of both warrants. A sum above 1 shows a model that uses the claim to tell
# point and copy apart. Means of the runs on the original arguments, full input:

# %%
results.save_claim("N8", measures.accuracy_on_copies(right_answers))
halves = accuracy.halves_table(accuracies)
halves.style.format(precision=2, na_rep="–")

# %%
encoder_halves = halves.reindex([arguments.ENCODER]).iloc[0]
finding(
    f"Trained on the original arguments, the encoder is right in {100 * encoder_halves['originals']:.0f} % of the originals and in "
    f"{100 * encoder_halves['negated copies']:.0f} % of their copies."
    if encoder_halves.notna().all()
    else "No run of the encoder trained successfully with the full input."
)

# %% [markdown]
# **Try it.** In profile offline, set `lstm_seeds = [0]`.
#
# <details><summary>What happens</summary>
#
# A BiLSTM joins, and its two accuracies sum to 1 exactly.
# </details>
#
# ## And if it is trained on adversarial data? (table 4)
#
# The paper's conclusion rests on this: trained on an adversarial training set, BERT-large is right in 50.4 % of the adversarial test
# set (best of 20 runs 53.3 %). By an error, which the authors report, their training set holds each point a second time with its warrants
# exchanged, not with its claim negated. A model that scores each warrant by itself learns nothing new from such a copy. We train on this
# set, *adversarial*, as they did, and test on theirs, in which claims are negated. The small models are trained on *negated claims* too,
# the set that they meant. With warrants alone, or with the reason, every input of the test set occurs with both labels, so that
# accuracy is one half, exactly; the small models, which add one number for the claim and another for the warrant, cannot do better with
# any input.

# %%
results.save_claim("N5", measures.distance_from_chance(right_answers))
probed = accuracies[~on_originals]
if missing:
    display(
        Markdown(
            f"Not run: {adversarial_source} lacks {', '.join(missing)}. `make data` brings these files of the authors (IKMLab/arct2). Without "
            "them, copies with negated claims are those of [09_niven_cues](09_niven_cues.ipynb), and no model is trained on them."
        )
    )
elif probed.empty:
    display(
        Markdown(
            "Not run: in this profile no set-up is trained on adversarial data (`encoder_probed`, `small_probed`)."
        )
    )
else:
    figure = drawing.accuracy_panels(probed, summary, released)
    results.save_figure(
        figure,
        "niven-T4-adversarial",
        "Accuracy on the adversarial test set of every run that is trained on adversarial data, with means and 95 % intervals; beside it "
        "the runs of the authors. A run above the dashed line uses the claim to tell a point from its copy (Table 4 of Niven and Kao).",
    )

# %%
of_encoder = summary.query("trained_on == 'adversarial' and model == @arguments.ENCODER and setup == 'full'")
halves_of = of_encoder.set_index(["tested_on", "half"])["mean"]
unchanged = accuracy.unchanged_claims(sets["adversarial"]["test"])
if len(halves_of):
    both, copies = halves_of["adversarial", "all"], halves_of["adversarial", "adversarial"]
    display(
        finding(
            f"Trained on the adversarial set, the encoder is right in {100 * both:.1f} % of the adversarial test set (mean of all runs) and in "
            f"{100 * copies:.1f} % of the copies with negated claims. In {unchanged} of {len(splits['test'])} copies the claim is not changed, so that "
            f"no model can exceed {100 - 50 * unchanged / len(splits['test']):.1f} %."
        )
    )

# %% [markdown]
# ## How closely do models follow "not"?
#
# Where one warrant alone has "not": how often does a model take it (`follows`)? And how accurate is it where that warrant is the right one,
# the wrong one, and where neither or both have the cue (`absent`)?

# %%
reliance = accuracy.reliance_table(answers, splits["test"])
results.save_table(reliance, "niven_reliance")
results.save_claim("N7", measures.gap_by_cue(right_answers, splits["test"]))
columns = ["model", "setup", "runs", "follows", "right", "wrong", "absent"]
reliance[columns].style.format(precision=2, na_rep="–").hide()

# %%
full = reliance[reliance["setup"] == "full"].set_index("model")["follows"]
encoder_follows, bag_follows = full.reindex([arguments.ENCODER, arguments.BAG])
finding(
    f'With the full input, the encoder takes the warrant with "not" in {100 * encoder_follows:.0f} % of the points in which one '
    f"warrant alone has it, and the bag of vectors in {100 * bag_follows:.0f} %."
    if full.reindex([arguments.ENCODER, arguments.BAG]).notna().all()
    else "No run of the encoder, or none of the bag of vectors, trained successfully with the full input."
)

# %% [markdown]
# If the full input helps no more than the warrants alone, a likely reason is that claims and reasons identify the 1,210 training points of
# ARCT: the encoder can learn them without comparing warrants, while the test set has claims of other debates.

# %% [markdown]
# How often the **models of the paper** take the warrant with "not", computed from their released predictions on ARCT:

# %%
columns = ["model", "setup", "follows", "right", "wrong", "absent", "always_right"]
accuracy.published("reliance")[columns].style.format(precision=2).hide()

# %% [markdown]
# ## Which heads attend to the cue?
#
# The sieve marks the pieces of "not" in the warrant (not, cannot, the end of n't), and a head with uniform attention scores 1. The
# fine-tuned encoders are compared with the pre-trained one on the same warrants, with a correction over heads. A mark is a head and run;
# the names are layer and head, both from 0.

# %%
states = runs.finetuned_states(sets, cache, trainer, answers, device)
rule = Rule(minimum=minimum, resamples=resamples, seed=seed, unit="cluster")
changes = heads.heads_by_setup(model, states, splits["test"], rule, max_tokens)
results.save_table(changes, "niven_heads")
results.save_figure(
    drawing.head_panels(changes),
    "niven-heads",
    'How much each head attends to "not" before and after fine-tuning, a mark for each head and run (1 = '
    "uniform head). Marks above the dashed line turned to the cue while learning; the names are those that "
    "attend to it most.",
)

# %%
top = changes.sort_values("finetuned", ascending=False).iloc[0]
finding(
    f'Head {top["layer"]}-{top["head"]} attends to "not" most (set-up {top["setup"]}, run {top["seed"]}): {top["finetuned"]:.1f} times as '
    f"much as a uniform head, {top['pretrained']:.1f} times before fine-tuning."
)

# %% [markdown]
# ## Do these heads carry the cue to the answer?
#
# We ablate the heads that attend to the cue most, together: their outputs are multiplied by 0. If they carry the cue, accuracy falls
# where the cue is right and rises where it is wrong. Controls are random sets of as many heads of the same layers.

# %%
logits_folder = results.profile.cache / "predictions"
logits = heads.ablate_cue_heads(
    states, changes, splits["test"], cue_heads_n, random_sets, logits_folder, seed, max_tokens
)
ablations = heads.ablation_table(logits, splits["test"], resamples, seed)
results.save_table(ablations, "niven_interventions")
results.save_claim("N9", measures.loss_without_cue_heads(right_answers, splits["test"], logits))
results.save_figure(
    drawing.ablation_panels(ablations),
    "niven-without-heads",
    'Change of accuracy when the heads that attend to "not" most are ablated together, by where the word '
    "stands; grey dashes are random sets of heads of the same layers. If the heads carry the cue, diamonds "
    "lie below zero where it is right and above zero where it is wrong, beyond the dashes.",
)

# %%
cue_sets = ablations[ablations["intervention"] == accuracy.CUE_HEADS]
change = 100 * cue_sets.groupby("points")["change"].agg(["min", "median", "max"])
right, wrong = change.reindex(["right", "wrong"]).itertuples(index=False)
finding(
    f"Ablating these heads changes accuracy by {right.median:+z.0f} points where the cue is right (median of set-ups and runs; {right.min:+z.0f} "
    f"to {right.max:+z.0f}) and by {wrong.median:+z.0f} where it is wrong ({wrong.min:+z.0f} to {wrong.max:+z.0f})."
)

# %% [markdown]
# **Try it.** Set `cue_heads_n = 1` in the parameters.
#
# <details><summary>What happens</summary>
#
# One head alone carries less of the cue: the diamonds move towards 0.
# </details>
#
# **How far to trust it.** The heads are chosen by attention alone, on the points on which they are tested; their answers play no part in the
# choice. Attention to a word is no proof that the word decides, which is why we ablate. Ablation says what a trained encoder uses, not
# whether it could learn to do without. A single run can make a mean, so the sentence above gives the median and the range.
#
# ## The claims
#
# **The encoder of the paper is BERT-large; ours is another model**, on the same data where the source is ARCT. Claims are judged on runs that
# trained successfully; fewer than three of them decide nothing.

# %%
claims = judged(results, measures.CLAIMS)
results.save_figure(forest_plot(claims, measures.CLAIMS), "niven-claims", FOREST_CAPTION)
Markdown(claims_markdown(claims, measures.CLAIMS))

# %% [markdown]
# N3 needs encoders that see the reason or the claim beside the warrants (`encoder_setups`), N5 encoders that are trained on the adversarial
# set (`encoder_probed`).
