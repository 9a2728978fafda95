# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 9, continued. Do models comprehend arguments, or read cues?
#
# Niven and Kao (2019) fine-tune BERT-large on arguments: its mean test accuracy is .671, and .770 in the best of 20 runs. With the
# warrants alone, which cannot decide the question without the claim and the reason, the mean is .656 and the best run .712. On an
# adversarial set, in which every argument has a copy with its claim negated, the mean is .504. They conclude that cues in the
# warrants account for what BERT learns. We repeat this, measure how closely models follow "not", and then ask two questions that the paper does not: which heads
# **attend** to that word, and what changes if they are **ablated**?
#
# *Source: Niven and Kao 2019, sections 4 to 6, Tables 1, 3 and 4. The paper's encoder is BERT-large; the sections on heads are ours.*
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
encoder: str = "minilm"
# bundled, or the folder that holds train-full.txt, dev-full.txt and test-full.txt of ARCT
argument_source: str = "bundled"
argument_n: int | None = 400  # arguments of each split, None for all
planted_productivity: float = 0.7  # of "not" in the bundled arguments
planted_coverage: float = 0.6
# a text file of GloVe vectors; None: principal components of the encoder's word embeddings
glove: str | None = None
fits: float = 0.9  # train accuracy of a run that fits; training ends with the first such epoch
spare: int = 1  # runs of a set-up that are repeated with another seed if they do not fit
bag_seeds: list[int] = [0, 1, 2, 3, 4]  # runs of the bag of vectors
bag_epochs: int = 5  # at most, as for all models
lstm_seeds: list[int] = []  # runs of the BiLSTM
lstm_hidden: int = 128  # in each direction
lstm_epochs: int = 8
encoder_seeds: list[int] = [0, 1]
# bundled warrants repeat with both labels: from them alone, no model can fit
encoder_setups: list[str] = ["full"]
encoder_probed: list[str] = []  # set-ups of the encoder that are trained on the adversarial set
learning_rate: float = 1e-4  # of the encoder
encoder_epochs: int = 16  # at most
adversarial_epochs: int = 10
batch_size: int = 8
max_tokens: int = 80
minimum: int = 20  # warrants with "not" that a test of a head needs
cue_heads_n: int = 6  # heads that are ablated together
random_sets: int = 9  # controls: as many heads of the same layers
resamples: int = 999
seed: int = 0  # of the bundled arguments, of samples, of random sets and of the bootstrap
device: str = "cpu"
training_precision: str = "float32"

# %%
from IPython.display import Markdown

from analysis.encoders.models import load_encoder
from analysis.figures.claims import forest_plot
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.niven2019 import accuracy, arguments, drawing, heads, networks, runs, training
from analysis.papers.niven2019.measures import CLAIMS, measures
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.statistics.significance import Rule
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
sets = runs.training_sets(splits)

# %% [markdown]
# ## Train
#
# A run that does not fit its training set says nothing about what a model learns from it. So **training ends with the first epoch
# whose train accuracy is at least `fits`**, and a run that never fits is repeated with another seed, up to `spare` times per set-up.
# Small models have the learning rates of the paper. Each run has a file in the cache; a killed notebook resumes with the next run.
#
# In the bundled arguments a fifth of the pairs of warrants occurs more than once, often with both labels. Models that see warrants
# alone cannot fit them, so that claims on such models are not applicable there.

# %%
cache = results.profile.cache / "niven"  # files are named after their content: every run may use them
words = networks.vocabulary(model, arguments.all_splits(sets["adversarial"])["all"], glove)
bag_trainer = training.small_trainer(words, bag_epochs, fits=fits)
bags = runs.collect(runs.plan(arguments.BAG, bag_seeds), sets, cache, bag_trainer, fits, spare)
lstm_trainer = training.small_trainer(words, lstm_epochs, lstm_hidden, fits)
lstms = runs.collect(runs.plan(arguments.BILSTM, lstm_seeds), sets, cache, lstm_trainer, fits, spare)

# %%
recipe = dict(batch_size=batch_size, max_tokens=max_tokens, device=device, precision=training_precision)
epochs = {"original": encoder_epochs, "adversarial": adversarial_epochs}
trainer = training.encoder_trainer(encoder, epochs, learning_rate=learning_rate, fits=fits, **recipe)
encoder_runs = runs.plan(arguments.ENCODER, encoder_seeds, encoder_setups, encoder_probed)
encoders = runs.collect(encoder_runs, sets, cache, trainer, fits, spare)

# %%
answers = runs.joined(bags | lstms | encoders)
results.record_weights("niven", answers.attrs["weights"])
Markdown(
    f"{answers.sizes['run']} runs, of which {int(answers['fitted'].sum())} fit. Word vectors of the small models: "
    f"{words.label}. The BiLSTM has {lstm_hidden} units in each direction (paper: 512)."
)

# %% [markdown]
# ## How accurate are models that see a part of the argument? (F2)
#
# A dot is a run; grey ones do not fit and are left out of the mean. Bars are 95 % intervals over points and, with three runs or more,
# over runs. Small models cannot fit the adversarial set: they add one number for the claim and another for the warrant. The
# paper counts all its runs; the diamonds beside our encoder are **of BERT-large**.

# %%
table, summary = accuracy.accuracy_table(answers), accuracy.summary_table(answers)
results.save_table(table, "niven_accuracy")
results.save_table(summary, "niven_summary")
fitting_answers = accuracy.evidence(answers)
means = accuracy.summary_table(fitting_answers)
published_means = accuracy.published("results")
results.save_figure(drawing.accuracy_panels(table, means, published_means), "niven-F2-accuracy")

# %%
on_original = table[table["tested_on"] == "original"]
original = on_original[on_original["trained_on"] == "original"]
full = original[original["setup"] == "full"].groupby("model")["accuracy"].mean()
encoder_mean, bag_mean = full.reindex([arguments.ENCODER, arguments.BAG])
finding(
    f"With the full input, the mean test accuracy of all runs is {encoder_mean:.3f} for the encoder and {bag_mean:.3f} for the bag of "
    f"vectors (chance: 0.5); {original['fitted'].sum()} of {len(original)} runs on the original arguments fit."
)

# %% [markdown]
# How many runs fit, and our means compared with those of the paper:

# %%
counts = on_original.groupby(["model", "setup", "trained_on"], sort=False)["fitted"].agg(
    runs="size", fitted="sum"
)
counts.assign(not_fitted=counts["runs"] - counts["fitted"])

# %%
comparison = accuracy.beside_published(summary, published_means)
results.save_table(comparison, "niven_published")
columns = ["model", "setup", "trained_on", "published_mean", "published_max", "mean", "max"]
comparison[columns].style.format(precision=3, na_rep="–").hide()

# %% [markdown]
# ## What do the claim and the reason add?
#
# Differences of set-ups on the same points, in the runs that fit. A comparison needs two set-ups of one model: profile offline
# trains the encoder with the full input alone, so that it has nothing to compare.

# %%
differences = accuracy.difference_table(fitting_answers)
results.save_table(differences, "niven_differences")
differences.style.format(precision=3).hide()

# %%
differs = (differences["low"] > 0) | (differences["high"] < 0)
finding(f"The interval excludes 0 in {differs.sum()} of {len(differences)} comparisons of two set-ups.")

# %% [markdown]
# ## Does the claim matter? The two halves of the adversarial set (F3)
#
# A point and its copy have the same warrants and the same reason, and opposite labels. A model that ignores the claim gives both the
# same answer, so that it is right in exactly one of them and lies on the dashed line. Small models lie there too, whatever they see:
# what they add for the claim is the same for both warrants. A mark above the line is a run that uses the claim to tell point and
# copy apart.

# %%
results.save_figure(drawing.halves_panels(table), "niven-F3-halves")

# %%
halves = table[(table["trained_on"] == "original") & (table["tested_on"] == "adversarial")]
halves = halves[(halves["model"] == arguments.ENCODER) & (halves["setup"] == "full")]
halves = halves.groupby("half")["accuracy"].mean().reindex(["original", "adversarial"])
finding(
    f"Trained on the original arguments with the full input, the encoder is right in {halves['original']:.1%} of the originals and "
    f"{halves['adversarial']:.1%} of their copies (mean of all runs; together 100% on the line)."
)

# %% [markdown]
# ## How closely do models follow "not"?
#
# Where one warrant alone has "not": how often does a model take it (`follows`)? And how accurate is it where that warrant is the right one,
# the wrong one, and where neither or both have the cue (`absent`)?

# %%
reliance = accuracy.reliance_table(answers, splits["test"])
results.save_table(reliance, "niven_reliance")
columns = ["model", "setup", "which", "runs", "follows", "right", "wrong", "absent"]
reliance[columns].style.format(precision=3, na_rep="–").hide()

# %%
full = reliance[(reliance["which"] == "all") & (reliance["setup"] == "full")].set_index("model")["follows"]
encoder_follows, bag_follows = full.reindex([arguments.ENCODER, arguments.BAG])
finding(
    f'With the full input, the encoder takes the warrant with "not" in {encoder_follows:.0%} of the points in which one warrant alone has '
    f"it, and the bag of vectors in {bag_follows:.0%} (means of all runs)."
)

# %% [markdown]
# In the committed run of glue-minilm the full input gives a lower accuracy (0.592) than the warrants alone (0.656); in the paper it
# gives 0.015 more. The table says where the accuracy is lost: with the full input the encoder takes the warrant with "not" more often,
# and it is less accurate where the cue is absent. A likely reason is that claims and reasons identify the 1,210 training points, so that
# the encoder can fit them without comparing warrants, while the test set has claims of other debates.

# %% [markdown]
# The same **of the models of the paper**, computed from their released predictions on ARCT:

# %%
accuracy.published("reliance").style.format(precision=3).hide()

# %% [markdown]
# ## Which heads attend to the cue? (F4)
#
# The sieve marks the pieces of "not" in the warrant (not, cannot, the end of n't), and a head with uniform attention scores 1. The
# fine-tuned encoders are compared with the pre-trained one on the same warrants, with a correction over heads. A mark is a head and run;
# the names are layer and head, both from 0.

# %%
states = training.finetuned_states(sets, cache, trainer, answers, device)
rule = Rule(minimum=minimum, resamples=resamples, seed=seed, unit="cluster")
changes = heads.heads_by_setup(model, states, splits["test"], rule, max_tokens)
results.save_table(changes, "niven_heads")
results.save_figure(drawing.head_panels(changes), "niven-F4-heads")

# %%
top = changes.sort_values("finetuned", ascending=False).iloc[0]
finding(
    f'Head {top["layer"]}-{top["head"]} attends to "not" most (set-up {top["setup"]}, run {top["seed"]}): {top["finetuned"]:.1f} times as '
    f"much as uniform attention, {top['pretrained']:.1f} times before fine-tuning."
)

# %% [markdown]
# ## Do these heads carry the cue to the answer? (F5)
#
# We ablate the heads that attend to the cue most, together: their outputs are multiplied by 0. If they carry the cue, accuracy falls
# where the cue is right and rises where it is wrong. Controls are random sets of as many heads of the same layers.

# %%
logits_folder = results.profile.cache / "predictions"
logits = heads.ablate_cue_heads(
    states, changes, splits["test"], cue_heads_n, random_sets, logits_folder, seed, max_tokens
)
ablations = heads.ablation_tables(logits, splits["test"], resamples, seed)
results.save_table(ablations, "niven_interventions")
results.save_figure(drawing.ablation_panels(ablations), "niven-F5-without-heads")

# %%
cue_sets = ablations[ablations["intervention"] == accuracy.CUE_HEADS]
change = 100 * cue_sets.groupby("points")["change"].mean().reindex(["right", "wrong", "absent"])
finding(
    f"Ablating these heads changes accuracy by {change['right']:+.1f} points where the cue is right, {change['wrong']:+.1f} where it is "
    f"wrong and {change['absent']:+.1f} where it is absent (means over set-ups and runs)."
)

# %% [markdown]
# **Try it.** In profile offline, set `lstm_seeds = [0]`: a BiLSTM joins, and in F3 it lies on the line exactly. Set `cue_heads_n = 1`: one
# head alone carries less of the cue, so that the diamonds of F5 move towards 0 (in the committed run of glue-minilm, accuracy falls by 1 point
# instead of 21 where the cue is right). Set `fits = 0.0`: training no longer stops at the epoch that fits but keeps the one with the best dev
# accuracy, as in the paper, and every run whose train accuracy is above the majority counts.
#
# **How far to trust it.** The heads are chosen by attention alone, on the points on which they are tested; their answers play no part in the
# choice. Attention to a word is no proof that the word decides, which is why we ablate. Ablation says what a trained encoder uses, not
# whether it could learn to do without.
#
# ## The claims
#
# **The encoder of the paper is BERT-large; ours is another model**, on the same data where the source is ARCT. Claims are judged on runs that
# fit; fewer than two of a set-up are no evidence.

# %%
frames = measures(answers, splits["test"], results.load_table("niven_cues"), logits)
claims = claim_table(CLAIMS, frames)
results.save_table(claims, "claims-niven2019")
results.save_figure(forest_plot(claims, CLAIMS), "niven-claims")

# %%
Markdown(claims_markdown(claims, CLAIMS))

# %% [markdown]
# In the committed run of glue-minilm, N3 and N5 are *not applicable* because their set-ups were not run: encoders with the reason or the
# claim beside the warrants, and training on the adversarial set, take some four hours on two cores. Profile `paper` runs them.
