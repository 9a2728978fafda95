# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 9, continued. Do models comprehend arguments, or read cues?
#
# **Question.** A model that scores well on arguments may have read the warrants alone. How much of its accuracy is left when it
# sees warrants only; what remains on the adversarial set, where cues tell nothing; how closely does it follow "not"; and
# which attention heads look at that word?
#
# Every model scores each warrant by itself and takes the one with the larger score. It sees all of the argument (full), the
# warrants alone (W), or the warrants with the reason (RW) or the claim (CW).
#
# *Source: Niven and Kao 2019, sections 2 to 5, Tables 1, 3 and 4. The article's encoder is BERT-large; the last sections, on
# heads, go beyond the article.*

# %% tags=["parameters"]
profile = "offline"
encoder = "minilm"
argument_source = "bundled"  # or the folder that holds train-full.txt, dev-full.txt and test-full.txt of ARCT
argument_n = 400  # arguments of each split, None for all
planted_productivity = 0.7  # of "not" in the bundled arguments
planted_coverage = 0.6
glove = None  # a text file of GloVe vectors; None: what the encoder's word embeddings say of a word
bag_seeds = [0, 1, 2, 3, 4]  # runs of the bag of vectors
bag_epochs = 3
lstm_seeds = []  # runs of the BiLSTM
lstm_hidden = 128  # in each direction
lstm_epochs = 5
encoder_seeds = [0]
encoder_setups = ["full", "W"]
encoder_probed = []  # set-ups of the encoder that are trained on the adversarial set
encoder_epochs = 3
adversarial_epochs = 3
batch_size = 16
learning_rate = 1e-4
max_tokens = 80
minimum = 20  # warrants with "not" that a head is tested on
cue_heads_n = 6  # heads that are switched off together
random_sets = 9  # of as many heads of the same layers, to compare with
resamples = 999
seed = 0  # of the bundled arguments, of samples, of random sets and of resampling
device = "cpu"
training_precision = "float32"

# %%
from IPython.display import Markdown

from analysis.encoders import encoder_note, load_encoder
from analysis.figures import claim_intervals, finding, style
from analysis.papers.niven2019 import (
    BAG,
    BILSTM,
    CLAIMS,
    ENCODER,
    SPLITS,
    Answers,
    Sets,
    accuracy_table,
    adversarial_halves,
    all_splits,
    beside_published,
    collect,
    cue_heads,
    difference_table,
    encoder_trainer,
    finetuned_states,
    heads_by_setup,
    joined,
    load_arguments,
    niven,
    off_by_setup,
    plan,
    reliance_table,
    sentences,
    setup_accuracy,
    small_trainer,
    summary_table,
    switched_off_heads,
    vocabulary,
)
from analysis.statistics import claim_table, seed_table
from analysis.study import Results

style()
results = Results(profile)
planted = (planted_productivity, planted_coverage)
splits = {split: load_arguments(argument_source, split, argument_n, seed, *planted) for split in SPLITS}
sets, model = Sets.of(splits), load_encoder(encoder, device)
results.record_weights(encoder, model.digest)
print(encoder_note(encoder))

# %% [markdown]
# ## Train
#
# Every run has a file of its own in the cache, so that a run that was finished before is not repeated. The epoch with the
# best dev accuracy is kept. The small models take the article's learning rates; the encoder is fine-tuned with Hugging
# Face's `Trainer` under one output that scores a warrant.

# %%
runs = results.profile.cache / "niven"  # named after their content: every run may use them
words = vocabulary(model, all_splits(sets.doubled)["all"], glove)
bags = collect(plan(BAG, bag_seeds), sets, runs, small_trainer(words, bag_epochs))
lstms = collect(plan(BILSTM, lstm_seeds), sets, runs, small_trainer(words, lstm_epochs, lstm_hidden))

# %%
epochs = {"original": encoder_epochs, "adversarial": adversarial_epochs}
recipe = (batch_size, learning_rate, max_tokens, device, training_precision)
trainer = encoder_trainer(encoder, epochs, *recipe)
encoder_runs = plan(ENCODER, encoder_seeds, encoder_setups, encoder_probed)
answers = joined([bags, lstms, collect(encoder_runs, sets, runs, trainer)])
results.record_weights("niven", answers.attrs["weights"])
Markdown(f"{answers.sizes['run']} runs; word vectors of the small models: {words.label}.")

# %% [markdown]
# ## F2. Accuracy by what the model sees
#
# Each run is a point. A run that does not even learn the training set (accuracy below 0.8) is degenerate and drawn open;
# the article counts such runs too. Diamonds are the article's means, **of BERT-large beside our encoder**.

# %%
table, summary = accuracy_table(answers), summary_table(answers, resamples, seed)
results.save_table(table, "niven_accuracy")
results.save_table(summary, "niven_summary")
results.save_figure(setup_accuracy(table, summary, niven("results")), "niven-F2-accuracy")

# %%
finding(sentences.accuracies(summary))

# %%
published = beside_published(summary, niven("results"))
results.save_table(published, "niven_published")
published.style.format(precision=3, na_rep="–").hide()

# %% [markdown]
# Intervals draw seeds and points anew, both at once. Means of few seeds say little of the spread over seeds.
#
# ## What the claim and the reason add

# %%
differences = difference_table(answers, resamples, seed)
results.save_table(differences, "niven_differences")
differences.style.format(precision=3).hide()

# %%
finding(sentences.setups_compared(differences))

# %% [markdown]
# ## F3. The two halves of the adversarial set
#
# A model that looks at warrants and reason alone is right in exactly one of a point and its copy: it stands on the dashed line.
# So do the small models, whatever they see: they add one number for the claim and the reason and another for the warrant,
# and the first is the same for both warrants.

# %%
results.save_figure(adversarial_halves(table), "niven-F3-halves")

# %%
finding(sentences.halves_compared(summary))

# %% [markdown]
# ## Reliance on "not"
#
# Which warrant do models take where "not" stands in one of the two, and how often are they right where that warrant is the
# right one, the wrong one, and where the cue is absent?

# %%
reliance = reliance_table(answers, splits["test"], resamples, seed)
results.save_table(reliance, "niven_reliance")
reliance.style.format(precision=3, na_rep="–").hide()

# %%
finding(sentences.reliance_compared(reliance))

# %% [markdown]
# The same **of the article's models**, computed from their released predictions on ARCT:

# %%
niven("reliance").style.format(precision=3).hide()

# %% [markdown]
# ## F4. Which heads look at the cue?
#
# Beyond the article. The sieve is the pieces of "not" in the warrant (not, cannot, the end of n't); a head that attends
# uniformly scores 1. The fine-tuned encoders are compared with the pre-trained one on the same warrants.

# %%
states = finetuned_states(sets, runs, trainer, encoder_runs, device)
heads = heads_by_setup(model, states, splits["test"], minimum, max_tokens, resamples=resamples, seed=seed)
results.save_table(heads, "niven_heads")
results.save_figure(cue_heads(heads), "niven-F4-heads")

# %%
finding(sentences.heads_changed(heads))

# %% [markdown]
# ## F5. Without these heads
#
# The heads that look at the cue most are switched off together. If they carried the cue to the answer, accuracy would fall
# where the cue is right and rise where it is wrong. Random sets have as many heads of the same layers; they differ from
# each other and from the heads that look at the cue.

# %%
kept = results.profile.cache / "predictions"
chosen = (cue_heads_n, random_sets, kept, resamples, seed, max_tokens)
off = off_by_setup(states, heads, splits["test"], *chosen)
results.save_table(off, "niven_interventions")
results.save_figure(switched_off_heads(off), "niven-F5-without-heads")

# %%
finding(sentences.heads_off(off))

# %% [markdown]
# *How far to trust it.* The heads are chosen by attention alone, on the points that they are then tested on; their answers play
# no part in the choice. Attention to a word is no proof that the word decides.
#
# ## The claims
#
# **The article's encoder is BERT-large; ours is another model**, on the same data where ARCT is named. Intervals draw seeds and
# points anew; with one seed they know nothing of the spread over seeds.

# %%
evidence = Answers(answers, splits["test"], results.load_table("niven_cues"), resamples, seed)
claims = claim_table(CLAIMS, evidence).assign(encoder=encoder_note(encoder))
results.save_table(claims, "claims-niven2019")
results.save_figure(claim_intervals(claims, seed_table(CLAIMS, {0: evidence})), "niven-claims")

# %%
shown = ["claim", "published", "ours", "n", "verdict", "control_value"]
claims[shown].style.hide().set_properties(**{"text-align": "left", "vertical-align": "top"})

# %%
print(", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items()))
