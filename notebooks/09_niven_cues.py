# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 9. Arguments: what do the warrants alone give away?
#
# An argument has a claim, a reason, and two warrants, of which one makes the reason support the claim. The task is to choose it
# (ARCT, Habernal et al. 2018). The best run of BERT-large is right in 77 % of the test points, untrained people in 80 %. But Niven
# and Kao (2019) show that single words of the warrants, *cues*, predict the right one: by their count the warrant with "not" is right
# in 61 % of the points in which one warrant alone has it, and these are 64 % of all points. How strong are such cues, and what is left
# of them if every argument has a copy with its claim negated?
#
# No model is involved in this chapter. The bundled arguments have the cue "not" planted, so that an estimate can be compared with the
# truth; ARCT itself is in profile glue-minilm.
#
# *Source: Niven and Kao 2019, "Probing Neural Network Comprehension of Natural Language Arguments", sections 4 and 6.*

# %% tags=["parameters"]
profile: str = "offline"
# bundled, or the folder that holds train-full.txt, dev-full.txt and test-full.txt of ARCT
argument_source: str = "bundled"
argument_n: int | None = 240  # arguments of each split, None for all
# the folder with the authors' adversarial files, with which our negation is compared; none: not compared
adversarial_source: str | None = None
planted_productivity: float = 0.7  # of "not" in the bundled arguments
applicable_minimum: int = 30  # points of all splits that a cue must apply to

# seldom changed
planted_coverage: float = 0.6
resamples: int = 999
seed: int = 0  # of the bundled arguments, of samples and of the bootstrap

# %%
import pandas as pd
from IPython.display import Markdown, display

from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.niven2019 import accuracy, arguments, drawing, measures, negation
from analysis.study.results import Results

style()
results = Results(profile)
cue_strength = (planted_productivity, planted_coverage)
splits = {
    split: arguments.load_arguments(argument_source, split, argument_n, seed, *cue_strength)
    for split in arguments.SPLITS
}
counts = ", ".join(f"{len(points):,} {split}" for split, points in splits.items())
Markdown(f"Arguments from {argument_source.rsplit('/', 1)[-1]}: {counts}.")

# %% [markdown]
# ## What does an argument look like?
#
# One argument with its two warrants, of which the marked one is right, and the copy that the adversarial set adds: its claim is negated,
# so that the other warrant is right. (Figures 1 and 4 of the paper show such a pair.)

# %%
short = [argument for argument in splits["test"] if len(argument.claim + argument.reason) < 160]
example, copy = negation.adversarial([(short or splits["test"])[0]])
for argument in (example, copy):
    print(f"claim      {argument.claim}\nreason     {argument.reason}")
    for number, warrant in enumerate(argument.warrants):
        print(f"warrant {number}{'*' if number == argument.label else ' '} {warrant}")
    print()

# %% [markdown]
# ## How is a cue measured?
#
# A cue $k$ *applies* to point $i$ if one warrant alone has it. Of $n$ points, with $T^{(i)}_j$ the words of warrant $j$ and $y_i$ the
# number of the right one, its applicability $\alpha_k$, **productivity** $\pi_k$ and **coverage** $\xi_k$ are
#
# $$ \alpha_k = \sum_{i} \mathbb{1}\bigl[\exists j : k \in T^{(i)}_j \setminus T^{(i)}_{1-j}\bigr], \qquad
# \pi_k = \frac{1}{\alpha_k} \sum_{i} \mathbb{1}\bigl[k \in T^{(i)}_{y_i} \setminus T^{(i)}_{1-y_i}\bigr], \qquad
# \xi_k = \frac{\alpha_k}{n}. $$
#
# A cue is useful if its productivity is not one half. For "not" in the training set, with contractions written out:

# %%
applicability, right = 0, 0
for argument in splits["train"]:
    has_cue = ["not" in arguments.expanded(warrant) for warrant in argument.warrants]
    if has_cue[0] != has_cue[1]:
        applicability += 1
        right += has_cue[argument.label]
productivity, coverage = right / applicability, applicability / len(splits["train"])
print(f"applicability {applicability}, productivity {productivity:.2f}, coverage {coverage:.2f}")

# %% [markdown]
# ## Which words and pairs of words are productive? (table 2)
#
# The same for every word and every pair of adjacent words. "not" and the most frequent pairs whose 95 % bootstrap interval lies above
# chance have their interval and, above it, their name. On ARCT, a diamond is "not" in Table 2 of the paper.

# %%
cues = arguments.cue_table(splits, applicable_minimum, resamples, seed)
results.save_table(cues, "niven_cues")
results.save_claim("N4", measures.productivity_of_cue(results.load_table("niven_cues")))
published = accuracy.published("cues").head(0 if argument_source == "bundled" else None)  # about ARCT
results.save_figure(
    drawing.cue_panels(cues, published),
    "niven-T2-cues",
    "Coverage and productivity of every word and pair of words of the warrants, a panel per split; the "
    'dashed line is chance. Marks far above the line at the right are cues: "not" gives an answer in most '
    "points, and where its mark comes down to the line it gives nothing away (Table 2 of Niven and Kao).",
)

# %%
rows = cues[cues["cue"] == "not"].set_index("split")
finding(
    f'One warrant alone has "not" in {100 * rows.loc["all", "coverage"]:.0f} % of the points; it is the right one in '
    f"{100 * rows.loc['train', 'productivity']:.0f} % of these in train and in {100 * rows.loc['test', 'productivity']:.0f} % in test "
    "(chance: 50 %)."
)

# %% [markdown]
# **Try it.** Set `planted_productivity = 0.5` (bundled arguments), or `applicable_minimum = 5`.
#
# <details><summary>What happens</summary>
#
# With 0.5, "not" and its pairs move to the dashed line, and so does the answer without a model below. With 5, many rare cues join on the
# left, far above and below the line: their productivity rests on few points.
# </details>

# %% [markdown]
# ## What counts as "not"?
#
# We write contractions out: n't, cannot and the like count as "not". The paper does not say what it counts, and no rule gives the values
# of its Table 2. Productivity and coverage of "not" in ARCT by four rules:
#
# | counts as "not" | train | dev | test | all |
# |---|---|---|---|---|
# | not, n't, cannot (here) | 0.71, 0.64 | 0.70, 0.61 | 0.51, 0.56 | 0.67, 0.62 |
# | not, cannot | 0.73, 0.37 | 0.69, 0.38 | 0.49, 0.38 | 0.67, 0.38 |
# | the word not alone | 0.71, 0.35 | 0.70, 0.35 | 0.49, 0.36 | 0.66, 0.35 |
# | any of not, no, never, n't and the like | 0.67, 0.69 | 0.65, 0.66 | 0.50, 0.63 | 0.63, 0.67 |
# | the paper's Table 2 | 0.65, 0.66 | 0.62, 0.44 | 0.52, 0.77 | 0.61, 0.64 |

# %% [markdown]
# ## How far does the cue alone get?
#
# An answer without a model: always the warrant with "not"; where both or neither have it, the point counts half.

# %%
baselines = arguments.baseline_table(arguments.all_splits(splits), resamples, seed)
results.save_table(baselines, "niven_baselines")
baselines.style.format(precision=2).hide()

# %%
by_split = baselines.set_index("split")["accuracy"]
finding(
    f'Always taking the warrant with "not" is right in {100 * by_split["train"]:.0f} % of the points in train, '
    f"{100 * by_split['dev']:.0f} % in dev and {100 * by_split['test']:.0f} % in test."
)

# %% [markdown]
# A cue that is productive in train and not in test misleads a model that relies on it. In the committed run of glue-minilm, "not" points to
# the right warrant in 71 % of the training points that it applies to, but in 51 % of the test points.
#
# ## Do cues cancel out on the adversarial set?
#
# Each point gets a copy with its claim negated and its label reversed; reason and warrants stay. Every warrant is then right as often as
# wrong, so that a model that sees warrants alone is right in half of the points, exactly. The negation comes from the
# source if it gives one (*gold*), else from our list of corrections (*correction*), else from another claim of the same debate that differs
# in negation alone (*debate*), else from a rule. The table counts points by split, and different claims.

# %%
sources = negation.adversarial_table(splits)
results.save_table(sources, "niven_adversarial")
points = sources.pivot(index="source", columns="split", values="n")[[*splits]]
points.assign(claims=pd.Series(negation.claim_sources(splits)))

# %%
if adversarial_source and not arguments.missing_files(adversarial_source):
    released = arguments.released_sets(adversarial_source, splits)["negated"]
    pairs = [negation.agreement(part, released[split][len(part) :]) for split, part in splits.items()]
    equal, claims = map(sum, zip(*pairs, strict=True))
    display(Markdown(f"Our negation has the words of the authors' in {equal} of {claims} different claims."))

# %%
adversarial = {split: negation.adversarial(points) for split, points in splits.items()}
productivities = arguments.cue_table(adversarial, applicable_minimum, resamples, seed)[
    "productivity"
].dropna()
finding(
    "On the adversarial set, the productivity of no word and of no pair of words in a warrant differs from one half (chance) by "
    f"more than {(productivities - 0.5).abs().max():.2g}."
)

# %% [markdown]
# **Try it.** Negate claims of your own: `negation.by_rule("Dogs should bark")`. Which sentence does the rule get wrong?
#
# <details><summary>What happens</summary>
#
# It negates the first auxiliary ("Dogs should not bark"), or adds one to a verb that it knows ("Dogs need walks" becomes "Dogs do not
# need walks"); else it returns nothing ("Dogs bark"). "Everybody should vote" becomes "Everybody should not vote", which says more than
# the negation: some should vote and some should not.
# </details>
#
# **How far to trust it.** Of many cues some lie above chance by luck; intervals are not corrected for their number. The training set of
# the paper's adversarial experiment had swapped warrants instead of negated claims (its erratum), and 40 of the released rows
# kept their claim; the set made here has neither defect. [09_niven_models](09_niven_models.ipynb) trains and tests on the authors' files
# where the profile has them. A rule negates the sentence, not always the meaning: "should not live off campus" is
# weaker than "should live on campus".
