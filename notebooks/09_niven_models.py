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
# *Source: Niven and Kao 2019, sections 4 to 6, Tables 1, 3 and 4. The article's encoder is BERT-large; the last sections, on
# heads, go beyond the article.*

# %% tags=["parameters"]
profile: str = "offline"
encoder: str = "minilm"
# bundled, or the folder that holds train-full.txt, dev-full.txt and test-full.txt of ARCT
argument_source: str = "bundled"
argument_n: int | None = 400  # arguments of each split, None for all
planted_productivity: float = 0.7  # of "not" in the bundled arguments
planted_coverage: float = 0.6
# a text file of GloVe vectors; None: what the encoder's word embeddings say of a word
glove: str | None = None
fits: float = 0.9  # the train accuracy at which a run has learnt its training set, and ends
spare: int = 1  # runs of a set-up that are drawn again with another seed because they do not fit
bag_seeds: list[int] = [0, 1, 2, 3, 4]  # runs of the bag of vectors
bag_epochs: int = 5  # at most, as for all models
lstm_seeds: list[int] = []  # runs of the BiLSTM
lstm_hidden: int = 128  # in each direction
lstm_epochs: int = 8
encoder_seeds: list[int] = [0, 1]
# the bundled warrants repeat with both labels: alone, they cannot be learnt
encoder_setups: list[str] = ["full"]
encoder_probed: list[str] = []  # set-ups of the encoder that are trained on the adversarial set
learning_rate: float = 1e-4  # of the encoder
encoder_epochs: int = 16  # at most
adversarial_epochs: int = 10
batch_size: int = 8
max_tokens: int = 80
minimum: int = 20  # warrants with "not" that a head is tested on
cue_heads_n: int = 6  # heads that are switched off together
random_sets: int = 9  # of as many heads of the same layers, to compare with
resamples: int = 999
seed: int = 0  # of the bundled arguments, of samples, of random sets and of resampling
device: str = "cpu"
training_precision: str = "float32"

# %%
import seaborn as sns
from IPython.display import Markdown

from analysis.encoders import load_encoder
from analysis.figures import finding, forest_plot, style
from analysis.figures.colours import BLACK, BLUE, GREEN, VERMILION
from analysis.figures.theme import rows_of_axes
from analysis.figures.words import listed
from analysis.papers.niven2019 import CLAIMS, accuracy, arguments, heads, networks, runs, training
from analysis.papers.niven2019.measures import measures
from analysis.statistics import Rule
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.study.results import Results

style()
CHANCE = {"color": BLACK, "linestyle": "--", "linewidth": 0.8}
MEAN = {"color": BLACK, "marker": "_", "markersize": 12, "linestyle": ""}
PAPER = {"color": VERMILION, "marker": "D", "markersize": 5, "markerfacecolor": "white", "linestyle": ""}
results = Results(profile)
planted = (planted_productivity, planted_coverage)
splits = {
    split: arguments.load_arguments(argument_source, split, argument_n, seed, *planted)
    for split in arguments.SPLITS
}
sets, model = runs.Sets.of(splits), load_encoder(encoder, device)
results.record_weights(encoder, model.digest)

# %% [markdown]
# ## Train
#
# Every run has a file of its own in the cache, so that a run that was finished before is not repeated. A run that has not
# learnt its training set says nothing of what a model learns: **training ends with the first epoch that fits** (train
# accuracy of at least `fits`), and a run that never fits is counted and drawn again with another seed, up to `spare` times a
# set-up. The small models take the article's learning rates; so does the encoder in profile `paper`.
#
# In the bundled arguments a fifth of the pairs of warrants stands there more than once, often with both labels. Models that
# see warrants alone cannot fit them, and the claims that need such runs are not applicable there; they are for ARCT.

# %%
cache = results.profile.cache / "niven"  # named after their content: every run may use them
words = networks.vocabulary(model, arguments.all_splits(sets.doubled)["all"], glove)
small = {
    arguments.BAG: (bag_seeds, bag_epochs, None),
    arguments.BILSTM: (lstm_seeds, lstm_epochs, lstm_hidden),
}
answers = [
    runs.collect(
        runs.plan(name, seeds), sets, cache, training.small_trainer(words, *sizes, fits), fits, spare
    )
    for name, (seeds, *sizes) in small.items()
]

# %%
recipe = dict(batch_size=batch_size, max_tokens=max_tokens, device=device, precision=training_precision)
epochs = {"original": encoder_epochs, "adversarial": adversarial_epochs}
trainer = training.encoder_trainer(encoder, epochs, learning_rate=learning_rate, fits=fits, **recipe)

# %%
encoder_runs = runs.plan(arguments.ENCODER, encoder_seeds, encoder_setups, encoder_probed)
answers = runs.joined([*answers, runs.collect(encoder_runs, sets, cache, trainer, fits, spare)])
results.record_weights("niven", answers.attrs["weights"])
Markdown(
    f"{answers.sizes['run']} runs, of which {int(answers['fitted'].sum())} fit. Word vectors of the small models: "
    f"{words.label}. The BiLSTM has {lstm_hidden} units in each direction (article: 512), one layer."
)

# %% [markdown]
# ## F2. Accuracy by what the model sees
#
# Each run that fits is a point; runs that do not stand apart, as crosses, and do not count in the mean. Small models cannot
# fit the adversarial set: they add one number for the claim and another for the warrant. The article counts all its runs,
# and calls one degenerate whose train accuracy is below 0.8. Diamonds are the article's means, **of BERT-large beside our
# encoder**.

# %%
table, summary = accuracy.accuracy_table(answers), accuracy.summary_table(answers)
results.save_table(table, "niven_accuracy")
results.save_table(summary, "niven_summary")
fitted = accuracy.evidence(answers)
means = accuracy.summary_table(fitted) if fitted.sizes["run"] else summary.head(0)

# %%
own, mean = (
    each[(each["tested_on"] == each["trained_on"]) & (each["half"] == "all")] for each in (table, means)
)
known = accuracy.published("results").replace({"BERT-large": "encoder"})
panels = own.groupby(["trained_on", "model"], sort=False)
widths = panels["setup"].nunique().to_list()
figure, grid = rows_of_axes(len(panels), len(panels), 2.5, sharey=True, width_ratios=widths)
for axes, ((trained_on, which), rows) in zip(grid, panels, strict=True):
    order = [*dict.fromkeys(rows["setup"])]
    sns.stripplot(
        rows, x="setup", y="accuracy", order=order, hue="fitted", hue_order=[True, False], palette=[BLUE, "0.7"],
        dodge=True, size=3, legend=False, ax=axes,
    )  # fmt: skip
    for each, look, label in ((mean, MEAN, "mean of those that fit"), (known, PAPER, "article's mean")):
        part = each.query("trained_on == @trained_on and model == @which and setup in @order")
        places = part["setup"].map(order.index)
        axes.plot(places, part["mean"], **look, label=label)
        if "low" in part:
            axes.vlines(places, part["low"], part["high"], color=BLACK, linewidth=1)
    axes.plot([], [], "o", color=BLUE, markersize=3, label="a run that fits")
    axes.plot([], [], "o", color="0.7", markersize=3, label="has not fitted")
    axes.axhline(0.5, **CHANCE, label="chance")
    axes.set_title(f"{which}\n{trained_on}", fontsize=7.5)
    axes.set(xlabel="", ylabel="", xlim=(-0.6, len(order) - 0.4))
grid[0].set_ylabel("test accuracy (proportion)")
figure.legend(*grid[0].get_legend_handles_labels(), ncols=5, loc="outside upper center")
figure.supxlabel("what the model sees: all (full), warrants (W), with reason (RW) or claim (CW)", fontsize=8)
results.save_figure(figure, "niven-F2-accuracy")

# %%
rows = means[(means["trained_on"] == "original") & (means["tested_on"] == "original")]
told = [
    f"{r.model}, {r.setup}, {r.fitted_mean:.3f} [{r.low:.3f}, {r.high:.3f}] in {r.runs}"
    for r in rows.itertuples()
]
once = table[(table["tested_on"] == "original")]
lost = once[~once["fitted"] & (once["trained_on"] == "original")]
finding(
    f"Test accuracy in the runs that fit, chance 0.5: {listed(told)}. "
    f"{len(lost)} of {(once['trained_on'] == 'original').sum()} runs on the original arguments have not fitted."
)

# %% [markdown]
# How many runs fit, of those that were drawn:

# %%
counts = once.groupby(["model", "setup", "trained_on"], sort=False)["fitted"].agg(runs="size", fitted="sum")
counts.assign(not_fitted=counts["runs"] - counts["fitted"])

# %%
published = accuracy.beside_published(summary, accuracy.published("results"))
results.save_table(published, "niven_published")
published.style.format(precision=3, na_rep="–").hide()

# %% [markdown]
# Intervals cover other seeds and other points; with two seeds they cover other points alone.
#
# ## What the claim and the reason add
#
# In the runs that fit:

# %%
differences = accuracy.difference_table(fitted)
results.save_table(differences, "niven_differences")
differences.style.format(precision=3).hide()

# %%
added = differences[(differences["first"] == "full") & (differences["second"] == "W")]
told = [f"{r.model} {r.difference:+.3f} [{r.low:+.3f}, {r.high:+.3f}]" for r in added.itertuples()]
apart = ((differences["low"] > 0) | (differences["high"] < 0)).sum()
finding(
    f"Claim and reason together add to the warrants: {listed(told)}. {apart} of {len(differences)} differences of set-ups "
    "can be told from none."
)

# %% [markdown]
# ## F3. The two halves of the adversarial set
#
# A model that looks at warrants and reason alone is right in exactly one of a point and its copy: it stands on the dashed line.
# So do the small models, whatever they see: they add one number for the claim and the reason and another for the warrant,
# and the first is the same for both warrants.

# %%
wide = table[(table["tested_on"] == "adversarial") & (table["half"] != "all")]
wide = wide.pivot(
    index=["trained_on", "model", "setup", "seed"], columns="half", values="accuracy"
).reset_index()
drawn = sns.relplot(
    wide,
    x="original",
    y="adversarial",
    col="trained_on",
    hue="model",
    style="setup",
    style_order=[*arguments.SETUPS],
    height=3,
    s=35,
    palette=[BLUE, VERMILION, GREEN][: wide["model"].nunique()],
)
for axes in drawn.axes.flat:
    axes.axline((0.5, 0.5), slope=-1, **CHANCE)
drawn.set_axis_labels(
    "accuracy on the originals (proportion)", "accuracy on the\nnegated copies (proportion)"
)
drawn.set_titles("trained on the {col_name} set")
results.save_figure(drawn.figure, "niven-F3-halves")

# %%
halves = means[(means["tested_on"] == "adversarial") & (means["setup"] == "full")]
halves = halves.pivot(index=["trained_on", "model"], columns="half", values="mean")
told = [
    f"{model}, trained on the {kind} set, {r['original']:.3f} and {r['adversarial']:.3f}"
    for (kind, model), r in halves.iterrows()
]
finding(f"Accuracy on the originals and on their copies, with all of the argument: {listed(told)}.")

# %% [markdown]
# ## Reliance on "not"
#
# Which warrant do models take where "not" stands in one of the two, and how often are they right where that warrant is the
# right one, the wrong one, and where the cue is absent?

# %%
reliance = accuracy.reliance_table(answers, splits["test"])
results.save_table(reliance, "niven_reliance")
reliance.style.format(precision=3, na_rep="–").hide()

# %%
rows = reliance[(reliance["which"] == "fitted") & (reliance["setup"] == "full")]
told = [
    f"{r.model} in {r.follows:.0%} [{r.follows_low:.0%}, {r.follows_high:.0%}]" for r in rows.itertuples()
]
finding(f'The warrant with "not" is taken, where there is one, by {listed(told)}, in the runs that fit.')

# %% [markdown]
# In the committed run of glue-minilm the full input is worse than the warrants alone because the encoder then relies more on
# "not" and is right less often where no warrant has it: the claim and the reason help it to fit the training set, and that does
# not carry over to the test set.

# %% [markdown]
# The same **of the article's models**, computed from their released predictions on ARCT:

# %%
accuracy.published("reliance").style.format(precision=3).hide()

# %% [markdown]
# ## F4. Which heads look at the cue?
#
# Beyond the article. The sieve is the pieces of "not" in the warrant (not, cannot, the end of n't); a head that attends
# uniformly scores 1. The fine-tuned encoders are compared with the pre-trained one on the same warrants.

# %%
states = training.finetuned_states(sets, cache, trainer, answers, device)
rule = Rule(minimum=minimum, resamples=resamples, seed=seed, unit="cluster")
changed = heads.heads_by_setup(model, states, splits["test"], rule, max_tokens)
results.save_table(changed, "niven_heads")

# %% [markdown]
# A point for each head and run; on the dashed line nothing has changed. The names are layer and head, both from 0.

# %%
named = changed["p_by"].lt(0.05).map({True: "changed (p < 0.05)", False: "undecided"})
shown = changed.assign(change=named).dropna(subset="finetuned")
drawn = sns.relplot(
    shown,
    x="pretrained",
    y="finetuned",
    col="setup",
    hue="change",
    style="change",
    hue_order=["changed (p < 0.05)", "undecided"],
    style_order=["changed (p < 0.05)", "undecided"],
    palette=[BLUE, "0.6"],
    height=3,
    s=22,
    facet_kws={"sharex": False, "sharey": False},
)
for setup, axes in drawn.axes_dict.items():
    axes.axline((0, 0), slope=1, **CHANCE)
    tops = shown[shown["setup"] == setup].groupby(["layer", "head"])[["pretrained", "finetuned"]].mean()
    for (layer, head), place in tops.nlargest(4, "finetuned").iterrows():
        axes.annotate(f"{layer}-{head}", place, (5, 0), textcoords="offset points", fontsize=7)
drawn.set_axis_labels(
    "pre-trained: score of the cue", "fine-tuned: score of the cue\n(1 = uniform attention)"
)
drawn.set_titles("set-up {col_name}")
drawn.figure.set_layout_engine("constrained")
sns.move_legend(drawn, "outside lower center", ncol=2, title="")
results.save_figure(drawn.figure, "niven-F4-heads")

# %%
most = changed.groupby(["setup", "layer", "head"], sort=False)[["pretrained", "finetuned"]].mean()
most = most.loc[most.groupby("setup")["finetuned"].idxmax().dropna()]
told = [
    f"{name}, {layer}-{head}, {r.finetuned:.1f} times (before {r.pretrained:.1f})"
    for (name, layer, head), r in most.iterrows()
]
finding(f"The head that looks at the cue most, against uniform attention, by set-up: {listed(told)}.")

# %% [markdown]
# ## F5. Without these heads
#
# The heads that look at the cue most are switched off together. If they carried the cue to the answer, accuracy would fall
# where the cue is right and rise where it is wrong. Random sets have as many heads of the same layers; they differ from
# each other and from the heads that look at the cue.

# %%
kept = results.profile.cache / "predictions"
chosen = (cue_heads_n, random_sets, kept, seed, max_tokens)
logits = heads.ablate_cue_heads(states, changed, splits["test"], *chosen)
off = heads.ablation_tables(logits, splits["test"], resamples, seed)
results.save_table(off, "niven_interventions")

# %% [markdown]
# Each run has a diamond with its interval, by what the cue says of a point, and the dashes of its random sets.

# %%
panels = off.assign(percent=100 * off["change"]).groupby("setup", sort=False)
figure, grid = rows_of_axes(len(panels), len(panels), 2.7, sharey=True)
for axes, (setup, rows) in zip(grid, panels, strict=True):
    kinds, seeds = [*dict.fromkeys(rows["points"])], [*dict.fromkeys(rows["seed"])]
    across = rows["points"].map(kinds.index) + 0.2 * (rows["seed"].map(seeds.index) - (len(seeds) - 1) / 2)
    own = rows["intervention"] == "cue heads"
    axes.plot(across[~own], rows["percent"][~own], "_", color="0.6", label="a random set of the same layers")
    axes.vlines(across[own], 100 * rows["low"][own], 100 * rows["high"][own], color=VERMILION, linewidth=1)
    axes.plot(across[own], rows["percent"][own], **PAPER, label="the heads that look at the cue most")
    axes.axhline(0, **CHANCE)
    counts = rows.groupby("points")["n"].first()
    axes.set(
        title=f"set-up {setup}",
        xticks=range(len(kinds)),
        xticklabels=[f"{kind}\nn = {counts[kind]}" for kind in kinds],
    )
grid[0].set_ylabel("change of accuracy (percentage points)")
figure.legend(*grid[0].get_legend_handles_labels(), ncols=2, loc="outside upper center")
results.save_figure(figure, "niven-F5-without-heads")

# %%
own = off[off["intervention"] == "cue heads"].groupby(["setup", "points"], sort=False)["change"].mean()
told = [f"{100 * change:+.1f} ({setup}, cue {points})" for (setup, points), change in own.items()]
finding(
    f"Change of accuracy without the heads that look at the cue most, percentage points, mean over runs: {listed(told)}."
)

# %% [markdown]
# *How far to trust it.* The heads are chosen by attention alone, on the points that they are then tested on; their answers play
# no part in the choice. Attention to a word is no proof that the word decides.
#
# ## The claims
#
# **The article's encoder is BERT-large; ours is another model**, on the same data where ARCT is named. Claims are judged on
# runs that fit; fewer than two of a set-up are no evidence. Intervals cover other points and, with three runs or more, other runs.

# %%
frames = measures(answers, splits["test"], results.load_table("niven_cues"), logits)
claims = claim_table(CLAIMS, frames)
results.save_table(claims, "claims-niven2019")
results.save_figure(forest_plot(claims, CLAIMS), "niven-claims")

# %%
Markdown(claims_markdown(claims, CLAIMS))
