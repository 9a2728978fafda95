# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 3, continued. How much depends on our choices?
#
# **Question.** A label says that a mean score exceeds a threshold that somebody chose, on sequences that somebody drew,
# for a definition of the role that could have been another one, and from a parse that may be wrong. Which labels
# survive other choices, and what are heads labelled that cannot have any role?
#
# *Source: choices of Pande et al. 2021 (threshold 3, window 2, dependent to head, block times entropy); controls and
# sensitivity analysis of this study. All labels follow the published rule unless they are called audited.*

# %% tags=["parameters"]
# tau, window and relations are shared with 02 to 04, 08, 10 and 98: to change them in all, write the section `common` of a
# profile (README).
profile = "offline"
tasks = ["mrpc", "qqp", "sst-2", "qnli"]
seeds = [0, 1]  # of the fine-tuning runs: the first is examined
encoder = "minilm"
checkpoint = None
source = "bundled"
split = "dev"
n = 300
parser = "gold"
max_tokens = 128
seed = 0
device = "cpu"
precision = "float32"
tau = 3.0
alpha = 0.05
window = 2
relations = ["nsubj", "dobj", "amod", "advmod"]
direction = "dependent_to_head"
arithmetic = "corrected"
weighted_block = True
minimum = 100  # sequences, or clusters of them, that an audited label needs
resamples = 999  # of the bootstrap
sizes = [20, 50, 100, 200, 500, 1000]  # of samples of the sequences
draws = 20  # samples of each size
control_n = 120  # sequences of the first task that the controls are scored on
treebank = None  # a CoNLL-U file with gold parses, such as the dev part of UD English EWT
treebank_n = 300  # sentences of it

# %%
import numpy as np
import pandas as pd
import seaborn as sns

from analysis.encoders import load_encoder, random_encoder
from analysis.figures import colours, curves, finding, style, theme
from analysis.files import expand
from analysis.papers.pande2021 import sensitivity
from analysis.scores import extract
from analysis.scores.controls import scored_with_controls
from analysis.statistics import compose
from analysis.study import Results
from analysis.texts import load_examples, parse, sample, treebank_examples

style()
results = Results(profile)
choices = {"window": window, "relations": relations, "direction": direction}
choices |= {"arithmetic": arithmetic, "weighted_block": weighted_block}
bank = {task: results.load_scores(task, seeds[0]) for task in tasks}
scores = {task: compose(bank[task], **choices) for task in tasks}
audit = {"alpha": alpha, "minimum": minimum, "resamples": resamples, "seed": seed}

# %% [markdown]
# ## F12. The threshold
#
# Above, the share of heads with each role over $\tau$. Below, how much the set of heads at each $\tau$ shares with the
# set at the default.

# %%
taus = sorted({*sensitivity.TAUS, float(tau)})
sweep = {task: sensitivity.tau_sweep(scores[task], taus, alpha, tau) for task in tasks}
sweep = pd.concat(sweep, names=["task"]).reset_index("task")
results.save_table(sweep, "sensitivity_tau")

# %%
kinds = {"share": "heads with the role", "jaccard": "Jaccard index with τ = " + f"{tau:g}"}
long = sweep.assign(share=sweep["heads"] / sweep["testable"]).melt(
    ["task", "role", "tau"], [*kinds], "kind", "proportion"
)
order = theme.in_order(long["role"])
drawn = sns.relplot(
    long.replace({"kind": kinds}), x="tau", y="proportion", hue="task", style="task", kind="line", row="kind", col="role",
    col_order=order, height=1.6, aspect=theme.DOUBLE / len(order) / 1.3, facet_kws={"margin_titles": False},
)  # fmt: skip
drawn.refline(x=tau).set_titles("{col_name}").set_axis_labels("τ", "")
for axes, name in zip(drawn.axes[:, 0], kinds.values(), strict=True):
    axes.set_ylabel(name)
sns.move_legend(drawn, "lower center", ncol=len(tasks), title="", bbox_to_anchor=(0.5, 1))
results.save_figure(drawn.figure, "F12-tau")

# %%
near = sweep[sweep["tau"].between(tau - 0.5, tau + 0.5)].groupby("role", sort=False)["jaccard"].min()
finding(
    f"A threshold that differs from τ = {tau:g} by at most 0.5 changes the heads of {near.idxmin()} most (Jaccard index "
    f"down to {near.min():.2f}) and those of {near.idxmax()} least ({near.max():.2f})."
)

# %% [markdown]
# Where a line is steep at the dashes, a slightly different threshold gives a different count: the count then depends on
# the threshold more than on the heads. Does the threshold also decide in which layers the heads sit?

# %%
profiles = {task: sensitivity.tau_layers(scores[task], taus, alpha) for task in tasks}
profiles = pd.concat(profiles, names=["task"]).reset_index("task")
results.save_table(profiles, "sensitivity_tau_layers")
means = profiles.groupby(["role", "layer", "tau"])["heads"].mean()
grids = {role: means[role].unstack("tau") for role in theme.in_order(profiles["role"])}
figure, grid = theme.panels(len(grids), 5, 1.1, "threshold τ (score)", theme.LAYER)
for axes, (role, each) in zip(grid, grids.items(), strict=True):
    mesh = axes.pcolormesh(
        each.columns, each.index, each, cmap="mako_r", vmin=0, vmax=means.max(), shading="nearest"
    )
    axes.axvline(tau, color="0.5", linestyle="--", linewidth=0.9)
    axes.set_title(role)
figure.colorbar(mesh, ax=grid, aspect=40, pad=0.02, label="heads with the role (mean over tasks)")
results.save_figure(figure, "F12-layers")

# %%
fullest = means[means > 0].unstack("layer").idxmax(axis=1).unstack("tau")
steady = [role for role, layers in fullest.iterrows() if layers.nunique() == 1]
finding(
    f"From τ = {taus[0]:g} to {taus[-1]:g} the layer with the most heads stays the same for {', '.join(steady) or 'no role'}, of "
    f"{len(fullest)} roles."
)

# %% [markdown]
# ## The number of sequences
#
# Labels on random samples of the sequences against those on all of them. Samples are parts of the whole, so that the
# agreement must reach 1 at the end: what matters is how early it does.

# %%
stability = {
    task: sensitivity.label_stability(scores[task], sizes, draws, seed, tau, alpha) for task in tasks
}
stability = pd.concat(stability, names=["task"]).reset_index("task")
results.save_table(stability, "sensitivity_n")
spread = stability["jaccard_sd"]
banded = stability.assign(low=stability["jaccard"] - spread, high=stability["jaccard"] + spread)
drawn = curves(banded, "size", "jaccard", series="task", column="role", columns=5, log=True)
drawn.set(ylim=(-0.03, 1.03)).set_axis_labels("sequences (log scale)", "Jaccard index\n± 1 sd")
results.save_figure(drawn.figure, "F12-stability")

# %%
smallest = stability[stability["size"] == stability["size"].min()]
finding(
    f"{smallest['size'].min()} sequences give {smallest['agreement'].mean():.0%} of the heads the label that all "
    f"sequences give them, but share only {smallest['jaccard'].mean():.0%} of the labelled heads with them (Jaccard "
    "index)."
)

# %% [markdown]
# The article's authors released scores of 20 sentences, the left end of the axis. The Jaccard index compares labelled
# heads only. The proportion of heads with the same label looks better because many heads never have the role. Sizes above
# the number of sequences that have the role are left out.
#
# ## Other definitions of the roles

# %%
others = {task: sensitivity.variants(bank[task], tau, alpha, **choices) for task in tasks}
others = pd.concat(others, names=["task"]).reset_index("task")
results.save_table(others, "sensitivity_variants")
others.pivot(index=["variant", "value", "role"], columns="task", values="jaccard")[tasks].style.format(
    "{:.2f}", na_rep="–"
).set_caption("Jaccard index with the labels of the default definition")

# %% [markdown]
# ## The length of the sequences
#
# A score is a ratio to uniform attention. Its ceiling is $T / |S|$, for a sieve of $|S|$ of $T$ tokens: the same
# proportion of attention is a higher score in a longer sequence. `mass_at_tau` is the proportion of the ceiling that
# suffices for a score of $\tau$; `below` the proportion of sequences that can never exceed $\tau$; `score` and `mass`
# are those of the heads labelled on all sequences.

# %%
lengths = {task: sensitivity.length_table(scores[task], tau, alpha, window, weighted_block) for task in tasks}
lengths = pd.concat(lengths, names=["task"]).reset_index("task")
results.save_table(lengths, "sensitivity_length")
shown = lengths[lengths["task"] == tasks[0]].drop(columns="task")
shown.pivot(index="role", columns="stratum", values=["heads", "score", "mass"]).style.format(precision=2)

# %%
strata = lengths.set_index(["stratum", "task", "role"])
thirds = [
    name for name in sensitivity.STRATA if name in strata.index
]  # sequences of one length are one third
ratio = (strata.loc[thirds[-1]] / strata.loc[thirds[0]])[["score", "mass"]].median()
print(f"from the {thirds[0]} to the {thirds[-1]} third of sequences the score of the same heads is ", end="")
print(f"{ratio['score']:.2f} times as ")
print(f"high, their proportion of the ceiling {ratio['mass']:.2f} times (medians over tasks and roles);")
never = lengths[(lengths["stratum"] == "all") & (lengths["below"] > 0)]
listed = [f"{row.below:.0%} for {row.role} ({row.task})" for row in never.itertuples()]
print(f"sequences that cannot exceed tau = {tau:g}: {', '.join(listed) or 'none'}")

# %% [markdown]
# *How far to trust it.* Where the score rises with length and the proportion of the ceiling does not, tasks with
# texts of different lengths must not be compared by counts of labels.
#
# ## Sequences that share a text
#
# Tests take sequences for independent. Pairs that share a question or a sentence form clusters; the bootstrap then draws
# clusters, and the t test takes an error that is robust to them.

# %%
shared = {task: sensitivity.dependence(scores[task], tau, **audit) for task in tasks}
shared = pd.concat(shared, names=["task"]).reset_index("task")
results.save_table(shared, "sensitivity_clusters")
shared.groupby("task", sort=False).agg(
    {"sequences": "max", "clusters": "max", "cluster_size": "max", "published": "sum", "audited_sequence": "sum",
     "audited_cluster": "sum", "differ": "sum", "width_ratio": "median"}
)  # fmt: skip

# %% [markdown]
# ## Heads without a role
#
# Controls are maps, and so can be labelled as heads are: *uniform* attention, *shuffled* words, the *twin* that knows
# positions alone, and rows *spread* evenly, all of the fine-tuned encoder on sequences of the first task. Beside them
# stand *ideal heads* that always look at one offset, and the heads of the same architecture with *random weights*. Each
# is held against controls of its own.

# %%
task = tasks[0]
examples = load_examples(task, source, split, n, seed)
parses = parse(examples, parser, cache=results.parses)
chosen = sample(examples, control_n, seed)
tuned = load_encoder(results.weights(task, seeds[0], encoder, checkpoint), device, precision)
untrained = random_encoder(encoder, seed, device, precision)
made = [("shuffled", tuned, "shuffled"), ("twin", tuned, "twin"), ("spread", tuned, "spread")]
made += [(f"offset {step:+d}", tuned, sensitivity.offset_head(step)) for step in (-2, -1, 0, 1, 2)]
made += [("random weights", untrained, "attention")]
found = {name: scored_with_controls(model, chosen, parses, maps, max_tokens) for name, model, maps in made}
compared = {name: [compose(each, **choices) for each in pair] for name, pair in found.items()}
even = sensitivity.uniform_head(
    scores[task].sel(sequence=[example.id for example in chosen]), window, weighted_block
)
compared["uniform"] = [even, even]

# %%
others = sensitivity.control_table(compared, tau, **audit).assign(task=task, state="control")
heads = sensitivity.control_counts_of(results.role_tables(tasks).assign(control="heads"))
both = pd.concat([heads, others])[
    ["task", "state", "control", *others.columns.drop(["task", "state", "control"])]
]
results.save_table(both, "controls")
real = heads[(heads["task"] == task) & (heads["state"] == "finetuned")].assign(control="fine-tuned")
few = others[others["control"].isin(["uniform", "shuffled", "twin", "spread", "random weights"])]

# %%
counts = pd.concat([real, few]).pivot(index="control", columns="role", values="published").astype(float)
order, names = theme.in_order(counts), ["fine-tuned", *few["control"].unique()]
axes = theme.canvas(theme.DOUBLE, 2.6)
for mark, shift, name in zip("Do^vPX", np.linspace(-0.3, 0.3, len(names)), names, strict=True):
    shade = colours.BLACK if name == "fine-tuned" else None
    axes.plot(np.arange(len(order)) + shift, counts.loc[name, order], mark, color=shade, ms=4, label=name)
axes.set_xticks(range(len(order)), order)
axes.set(ylabel=f"heads with the published label\n({task})", xlabel="role")
axes.figure.legend(ncols=6, loc="outside upper center")
results.save_figure(axes.figure, "F12-controls")

# %%
most = few.groupby("role")["published"].max()
as_many = [
    role for role, heads in real.set_index("role")["published"].items() if 0 < most.get(role, 0) >= heads
]
finding(
    f"A control has at least as many published labels as the fine-tuned encoder for {', '.join(as_many) or 'no role'}: "
    "such labels prove nothing alone."
)

# %%
rules = ["published", "audited", "controlled"]
others.groupby("control", sort=False)[rules].sum().join(others.groupby("control")["n"].max())

# %%
false = others[others["published"] > 0].groupby("control", sort=False)["role"].agg(", ".join)
print(
    "roles that the published rule gives to controls:",
    "; ".join(f"{name}: {of}" for name, of in false.items()),
)
held = others[others["controlled"] > 0].groupby("control", sort=False)["role"].agg(", ".join)
print("roles that are left under control:", "; ".join(f"{name}: {of}" for name, of in held.items()) or "none")

# %% [markdown]
# Labels that a control gets too say nothing about the head. No control can touch cls, sep and delimiter but uniform
# attention. Constant scores, as those of a uniform head where $T$ plays no part, are untestable and so have no label. An
# ideal head is rightly local, and by the published rule also syntactic wherever words stand close to their heads: that is
# what its twin takes away.
#
# ## Errors of the parser
#
# Labels of the pre-trained encoder on the same sentences with gold and with predicted parses.

# %%
if treebank is None or parser == "gold" or not expand(treebank).is_file():
    print(f"Not compared: treebank is {treebank}, parser {parser}. ", end="")
    print("Give a CoNLL-U file (UD English EWT) and a spaCy pipeline.")
else:
    sentences = treebank_examples(treebank, treebank_n, seed)
    pretrained = load_encoder(encoder, device, precision)
    made = [parse(sentences), parse(sentences, parser, results.parses)]
    scored = [extract(pretrained, sentences, arcs, max_tokens=max_tokens) for arcs in made]
    noise = sensitivity.parser_noise(*(compose(each, **choices) for each in scored), tau, alpha)
    noise = noise.merge(sensitivity.parser_accuracy(*made), how="left", on="role")
    results.save_table(noise, "sensitivity_parser")
    display(noise.style.format(precision=2, na_rep="–").hide())
