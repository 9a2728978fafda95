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
# *Source: Niven and Kao 2019, "Probing Neural Network Comprehension of Natural Language Arguments", sections 4 and 6; data of
# Habernal et al. 2018 (ARCT).*

# %% tags=["parameters"]
profile: str = "offline"
# bundled, or the folder that holds train-full.txt, dev-full.txt and test-full.txt of ARCT
argument_source: str = "bundled"
argument_n: int | None = 400  # arguments of each split, None for all
planted_productivity: float = 0.7  # of "not" in the bundled arguments
planted_coverage: float = 0.6
applicable_minimum: int = 30  # points of all splits that a cue must apply to
resamples: int = 999
seed: int = 0  # of the bundled arguments, of samples and of resampling

# %%
import pandas as pd
import seaborn as sns
from IPython.display import Markdown

from analysis.figures import finding, style
from analysis.figures.colours import BLACK, BLUE, GREEN, VERMILION
from analysis.figures.words import counted, listed
from analysis.papers.niven2019 import accuracy, arguments, cues, negation
from analysis.study.results import Results

style()
results = Results(profile)
planted = (planted_productivity, planted_coverage)
splits = {
    split: arguments.load_arguments(argument_source, split, argument_n, seed, *planted)
    for split in arguments.SPLITS
}
counts = ", ".join(f"{len(points):,} {split}" for split, points in splits.items())
Markdown(f"Arguments from {argument_source.rsplit('/', 1)[-1]}: {counts}.")

# %% [markdown]
# ## F1. Productivity and coverage
#
# Words and pairs of words, contracted negations written out. A cue is useful above the dashed line. Bars are 95 % intervals
# over points drawn anew. Diamonds: "not" in the article (Table 2).

# %%
table = cues.cue_table(splits, applicable_minimum, resamples, seed)
results.save_table(table, "niven_cues")

# %%
expanded = table[table["rule"] == "expanded"]
expanded = expanded.assign(kind=expanded["order"].map({1: "word", 2: "pair of words"}))
looks = dict(hue="kind", style="kind", palette=[BLUE, GREEN], s=18, height=2.5, aspect=0.75)
drawn = sns.relplot(expanded, x="coverage", y="productivity", col="split", **looks)
published = accuracy.published("cues").set_index("split")
for split, axes in drawn.axes_dict.items():
    part = expanded[expanded["split"] == split]
    pairs = part[(part["order"] == 2) & (part["low"] > 0.5)].nlargest(4, "applicability")
    named = pd.concat([part[part["cue"] == "not"], pairs.sort_values("productivity", ascending=False)])
    axes.axhline(0.5, color=BLACK, linestyle="--", linewidth=0.8)
    axes.vlines(named["coverage"], named["low"], named["high"], color="0.5", linewidth=0.9)
    axes.plot(
        *published.loc[split, ["coverage", "productivity"]], "D", color=VERMILION, markerfacecolor="white"
    )
    for place, row in enumerate(named.itertuples()):
        spot, line = (0.03, 0.3 - 0.065 * place), {"arrowstyle": "-", "linewidth": 0.4, "color": "0.5"}
        at = (row.coverage, row.productivity)
        axes.annotate(row.cue, at, spot, textcoords="axes fraction", fontsize=7, arrowprops=line)
drawn.set(xscale="log", xlim=(0.003, 1), ylim=(0, 1), xlabel="coverage (logarithmic)")
drawn.set(ylabel="productivity (share of points)").set_titles("{col_name}")
drawn.figure.set_layout_engine("constrained")
sns.move_legend(drawn, "outside lower center", ncol=2, title="")
results.save_figure(drawn.figure, "niven-F1-cues")

# %%
rows = expanded[expanded["cue"] == "not"].set_index("split")
others = expanded[(expanded["cue"] != "not") & (expanded["split"] == "all")]
shares = [
    f"{row.productivity:.3f} [{row.low:.3f}, {row.high:.3f}] in {row.Index}"
    for row in rows.drop("all").itertuples()
]
above, below = (others["low"] > 0.5).sum(), (others["high"] < 0.5).sum()
finding(
    f'"not" stands in one warrant alone in {rows.loc["all", "coverage"]:.0%} of the points. That warrant is right in '
    f"{listed(shares)}; chance is 0.5. Of {len(others)} other cues, {above} speak for and {below} against "
    "their warrant with the whole interval."
)

# %% [markdown]
# ## Four rules of what counts as "not"
#
# `expanded` counts n't, cannot and the like; `treebank` counts "not" and cannot; `whitespace` counts the word "not" alone;
# `any negation` counts all negating words as one cue. Beside them the values of the article (of ARCT).

# %%
rules = table[table["cue"] == "not"].merge(
    accuracy.published("cues"), on="split", suffixes=("", "_published")
)
rules.drop(columns=["cue", "order"]).style.format(precision=3).hide()

# %%
names = ["coverage", "productivity"]
apart = sum((rules[name] - rules[f"{name}_published"]).abs() for name in names).groupby(rules["rule"]).max()
covered = rows["low"].le(planted_productivity) & rows["high"].ge(planted_productivity)
finding(
    f"The interval covers the planted productivity of {planted_productivity:g} in {covered.sum()} of {len(rows)} splits. "
    "The values of the article are those of other arguments."
    if argument_source == "bundled"
    else f"Table 2 of the article does not follow from the released data unless a rule is less than 0.02 away: the "
    f'nearest, "{apart.idxmin()}", is {apart.min():.2f} away in its worst split (coverage and productivity together).'
)

# %% [markdown]
# ## An answer that needs no model

# %%
baselines = cues.baseline_table(arguments.all_splits(splits), resamples, seed)
results.save_table(baselines, "niven_baselines")
baselines.style.format(precision=3).hide()

# %%
parts = [f"{row.accuracy:.3f} in {row.split}" for row in baselines[baselines["split"] != "all"].itertuples()]
finding(f'The warrant with "not" is right in this share of the points, ties counting half: {listed(parts)}.')

# %% [markdown]
# A cue that is productive in train and not in test misleads a model that relies on it.
#
# ## The adversarial set
#
# Each point once more with its claim negated and its label turned, warrants and reason as they are: every warrant is then
# right as often as wrong, and whoever looks at warrants and reason alone is right in exactly half of the points. The negated
# claim is that of the source where it gives one, else a mend of ours where the list has one, else the other claim of the
# same debate where the two differ in negation alone, else a rule makes it.

# %%
made = negation.adversarial_table(splits)
results.save_table(made, "niven_adversarial")
doubled = {split: negation.adversarial(points) for split, points in splits.items()}
sources, claims = made.groupby("source", sort=False)["n"].sum(), negation.claim_sources(splits)
parts = [
    f"{source}, {counted(int(n), 'point')} ({counted(claims[source], 'claim')})"
    for source, n in sources.items()
    if n
]
finding(f"Where the negated claims come from: {listed(parts)}.")

# %%
cancelled = cues.cue_table(doubled, applicable_minimum, resamples, seed)["productivity"].dropna()
finding(
    f"In the adversarial set the productivity of all {len(cancelled)} measured cues differs from 0.5 by at most "
    f"{(cancelled - 0.5).abs().max():.3f}."
)

# %% [markdown]
# *How far to trust it.* Cues are words that correlate with the label; many cues of a few points lie above chance by luck, and
# the intervals are not corrected for their number. The article's train set of the adversarial experiment had swapped
# warrants instead of negated claims (erratum), and 40 of its rows kept their claim; ours has neither defect. A rule negates
# the sentence, not always the meaning: "should not live off campus" is weaker than "should live on campus".
