# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 9. Arguments: what do the warrants alone give away?
#
# **Question.** An argument is a claim, a reason for it, and two warrants, of which one makes the reason support the claim.
# Choosing it asks for all of the argument. Or do single words of the warrants tell the right one, so that a model can be
# right without the argument?
#
# A cue *applies* where one of the two warrants alone has it. Its *productivity* is how often that warrant is the right one,
# its *coverage* how often it applies. No model is involved; the bundled arguments have the cue "not" planted, so that the
# estimates can be held against what was planted.
#
# *Source: Niven and Kao 2019, "Probing Neural Network Comprehension of Natural Language Arguments", sections 3 and 4; data of
# Habernal et al. 2018 (ARCT).*

# %% tags=["parameters"]
profile = "offline"
argument_source = "bundled"  # or the folder that holds train-full.txt, dev-full.txt and test-full.txt of ARCT
argument_n = 400  # arguments of each split, None for all
planted_productivity = 0.7  # of "not" in the bundled arguments
planted_coverage = 0.6
applicable_minimum = 30  # points of all splits that a cue must apply to
resamples = 999
seed = 0  # of the bundled arguments, of samples and of resampling

# %%
from IPython.display import Markdown

from analysis.figures import finding, style
from analysis.papers.niven2019 import (
    SPLITS,
    adversarial,
    adversarial_table,
    all_splits,
    baseline_table,
    claim_sources,
    cue_map,
    cue_table,
    load_arguments,
    niven,
    pmi_table,
    sentences,
)
from analysis.study import Results

style()
results = Results(profile)
planted = (planted_productivity, planted_coverage)
splits = {split: load_arguments(argument_source, split, argument_n, seed, *planted) for split in SPLITS}
counts = ", ".join(f"{len(arguments):,} {split}" for split, arguments in splits.items())
Markdown(f"Arguments from {argument_source.rsplit('/', 1)[-1]}: {counts}.")

# %% [markdown]
# ## F1. Productivity and coverage
#
# Words and pairs of words, contracted negations written out. A cue is useful above the dashed line. Bars are 95 % intervals
# over points drawn anew.

# %%
cues = cue_table(splits, applicable_minimum, resamples, seed)
results.save_table(cues, "niven_cues")
results.save_figure(cue_map(cues, niven("cues")), "niven-F1-cues")

# %%
finding(sentences.strongest_cue(cues))

# %% [markdown]
# ## Four rules of what counts as "not"
#
# `expanded` counts n't, cannot and the like; `treebank` counts "not" and cannot; `whitespace` counts the word "not" alone;
# `any negation` counts all negating words as one cue. Beside them the values of the article (of ARCT).

# %%
rules = cues[cues["cue"] == "not"].merge(niven("cues"), on="split", suffixes=("", "_published"))
rules.drop(columns=["cue", "order"]).style.format(precision=3).hide()

# %%
is_planted = argument_source == "bundled"
finding(
    sentences.against_planted(cues, *planted)
    if is_planted
    else sentences.against_published(cues, niven("cues"))
)

# %% [markdown]
# ## Answers that need no model

# %%
baselines = baseline_table(all_splits(splits), resamples, seed)
results.save_table(baselines, "niven_baselines")
baselines.style.format(precision=3).hide()

# %%
finding(sentences.baselines_compared(baselines))

# %% [markdown]
# The longer warrant leaves out the points where both have as many words. A majority of the training points need not be one
# of the test points: a cue that is productive in train and not in test misleads a model that has learnt it.
#
# ## The adversarial set
#
# Each point once more with its claim negated and its label turned, warrants and reason as they are: every warrant is then
# right as often as wrong, and whoever looks at warrants and reason alone is right in exactly half of the points. The negated
# claim is that of the source where it gives one, else a mend of ours where the list has one, else the other claim of the
# same debate where the two differ in negation alone, else a rule makes it.

# %%
made = adversarial_table(splits)
results.save_table(made, "niven_adversarial")
doubled = {split: adversarial(arguments) for split, arguments in splits.items()}
finding(sentences.negations_made(made, claim_sources(splits)))

# %%
pmi = pmi_table(
    splits | {f"{split}, adversarial": arguments for split, arguments in doubled.items()}, minimum=10
)
results.save_table(pmi, "niven_pmi")
cancelled = cue_table(doubled, applicable_minimum, resamples, seed)
finding(sentences.cues_cancelled(cancelled, pmi[pmi["set"].str.endswith("adversarial")]))

# %% [markdown]
# ## Words that speak for a warrant
#
# The pointwise mutual information of a word and the right warrant (nats, smoothed as in the released code), the five highest
# and the lowest of each split:

# %%
shown = pmi[~pmi["set"].str.endswith("adversarial")].groupby("set", sort=False)
shown.nth([0, 1, 2, 3, 4, -1]).style.format(precision=3).hide()

# %% [markdown]
# *How far to trust it.* Cues are words that correlate with the label; many cues of a few points lie above chance by luck, and
# the intervals are not corrected for their number. The article's train set of the adversarial experiment had swapped
# warrants instead of negated claims (erratum), and 40 of its rows kept their claim; ours has neither defect. A rule negates
# the sentence, not always the meaning: "should not live off campus" is weaker than "should live on campus".
