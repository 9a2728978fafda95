# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 3. Which heads have which roles?
#
# **Question.** A head has a role when its sieve bias scores over sequences reject $H_0$: mean $\le \tau$ in a one-sided
# one-sample t test at level $\alpha$. Which heads have which roles, do roles exclude one another, and which labels
# remain when the tests are corrected?
#
# *Source: Pande et al. 2021, the heads hypothesis and question 1 (claims C1 to C3).*

# %% tags=["parameters"]
# tau, window and relations are shared with 02 to 04, 08, 10 and 98: to change them in all, write the section `common` of a
# profile (README).
profile: str = "offline"
task: str = "mrpc"
tau: float = 3.0  # the score above which a head has a role
alpha: float = 0.05  # level of each test; as published, not corrected for the number of tests
minimum: int = 100  # sequences with the role that a corrected label needs: 03_robustness says why
resamples: int = 999  # of the bootstrap
seed: int = 0  # of the bootstrap
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first is tested here, all in 04_compare_seeds
window: int = 2
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]
direction: str = "dependent_to_head"
arithmetic: str = "corrected"
weighted_block: bool = True

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import Markdown
from scipy import stats

from analysis.figures import finding, style, theme
from analysis.figures.colours import BLUE, VERMILION, colour
from analysis.figures.words import listed
from analysis.statistics import Rule, compose, controlled_table, published_table, roles, significance
from analysis.study import STATES, Results

style()
results = Results(profile)
runs = dict(zip(STATES, (None, seeds[0]), strict=True))
choices = (window, relations, direction, arithmetic, weighted_block)
bank = {state: results.load_scores(task, run) for state, run in runs.items()}
scores = {state: compose(bank[state], *choices) for state in STATES}
control = {state: compose(results.load_controls(task, run), *choices) for state, run in runs.items()}

# %% [markdown]
# ## The test
#
# The published rule in three lines: for every role, layer and head a one-sided t test of the scores over sequences. Sequences
# without the role have no score and are left out.

# %%
tuned = scores["finetuned"].transpose("sequence", "role", "layer", "head")
test = stats.ttest_1samp(tuned.values, popmean=tau, axis=0, alternative="greater", nan_policy="omit")
has_role = tuned[0].copy(data=np.asarray(test.pvalue < alpha, dtype=float))
has_role.sum(["layer", "head"]).to_series().astype(int).rename("heads with p < alpha").to_frame().T

# %% [markdown]
# `controlled_table` makes the same test and adds the corrected label (below): intervals, corrections, a bootstrap, the role's
# control.

# %%
rule = Rule(tau, alpha, minimum, resamples, seed)
tables = {state: controlled_table(scores[state], control[state], rule) for state in STATES}
for state, table in tables.items():
    results.save_table(table, f"roles-{task}-{state}")

# %% [markdown]
# ## F4. Heads and roles
#
# One column per head of the fine-tuned encoder, one row per role. A role that no sequence of the task can show
# (block in single sentences) is *untestable*, which is not the same as not having it. Rows between two lines belong to one
# coarse role: a head with any of them has that coarse role in F5.

# %%
table = tables["finetuned"]
families = [[role for role in each if role in {*table["role"]}] for each in roles.families().values()]
order = [role for family in families for role in family]
order += [role for role in theme.in_order(table["role"]) if role not in order]
layers, heads = theme.grid_size(table)
label = np.stack([theme.layer_head(table, role, "assigned").ravel() for role in order])
axes = theme.canvas(theme.DOUBLE, 0.21 * len(order) + 0.9)
rows, places = np.nonzero(label == 1)
axes.bar(places, 0.8, 0.86, rows - 0.4, color=[colour(order[row]) for row in rows])
rows, places = np.nonzero(np.isnan(label))
axes.bar(
    places, 0.4, 1, rows - 0.2, color="white", edgecolor="0.7", hatch="/////", linewidth=0, label="untestable"
)
theme.heads_by_layer(axes, layers, heads)
axes.hlines(np.cumsum([*map(len, families)]) - 0.5, -0.5, layers * heads - 0.5, color="0.4", linewidth=0.6)
axes.set(ylim=(len(order) - 0.5, -0.5), xlabel=theme.HEADS_BY_LAYER, ylabel="role (bar: the head has it)")
axes.set_yticks(range(len(order)), order)
if len(rows):
    axes.figure.legend(loc="outside upper right")
results.save_figure(axes.figure, f"F4-assignment-{task}")

# %%
held = table.groupby("role", sort=False)["assigned"].sum(min_count=1)
finding(
    f"Most heads have the role {held.dropna().astype(int).idxmax()} ({held.max()} of "
    f"{len(table) // table['role'].nunique()}). Roles that no sequence can show: {listed(held.index[held.isna()])}."
)

# %% [markdown]
# The heads with each role before and after fine-tuning, and how many sequences can show the role:

# %%
counts = pd.DataFrame(
    {s: t.groupby("role", sort=False)["assigned"].sum(min_count=1) for s, t in tables.items()}
)
sequences = table.groupby("role", sort=False)["n"].max()
counts.assign(sequences=sequences).rename_axis(f"heads of {len(table) // table['role'].nunique()}")

# %% [markdown]
# ## F5. Do roles exclude one another?
#
# How many heads have exactly each set of the four coarse roles. *Syntactic* is the pooled role or any of the four
# relations; *delimiter* is also [CLS] or [SEP] alone.

# %%
shared = roles.overlap(pd.concat([t.assign(state=s, task=task) for s, t in tables.items()]))
results.save_table(shared.drop(columns="task"), f"overlap-{task}")
members = roles.coarse_memberships(table)
sets = members.value_counts()
figure, (bars, dots) = plt.subplots(
    2, 1, figsize=(theme.DOUBLE, 2.6), sharex=True, height_ratios=(1.6, 1), layout="constrained"
)
bars.bar_label(bars.bar(range(len(sets)), sets, color="0.25"))
bars.margins(y=0.2)
bars.set(ylabel="heads with exactly\nthese roles", xticks=[])
for place, held in enumerate(sets.index):
    rows = np.flatnonzero(held)
    dots.plot([place] * len(held), range(len(held)), "o", color="0.85", markersize=4)
    dots.plot([place] * len(rows), rows, "o-", color="0.15", markersize=5, linewidth=1.2)
union = {"syntactic": "syntactic or a relation", "delimiter": "delimiter, cls or sep"}
dots.set_yticks(range(members.shape[1]), [f"{union.get(r, r)} ({members[r].sum()})" for r in members])
dots.set(xlabel="combination of roles (heads of each role in brackets)", ylim=(members.shape[1] - 0.5, -0.5))
results.save_figure(figure, f"F5-sets-{task}")

# %%
several = members.sum(axis=1) >= 2
finding(
    f"{several.sum()} of {len(members)} heads ({several.mean():.0%}) have at least two of the coarse roles, in the run of "
    f"seed {seeds[0]}; claim C1 takes the median of the runs."
)

# %% [markdown]
# The overlap of each two of these roles: of the heads with the role of the row, the share with the role of the column, and
# how many heads that is.

# %%
both = members.astype(int).T @ members.astype(int)
share = both.div(np.diag(both), axis=0)  # 0 / 0 where no head has the role
names = share.map("{:.0%}".format).where(share.notna(), "–") + "\n" + both.astype(str)
axes = theme.canvas(theme.SINGLE + 0.6, 2.6)
sns.heatmap(
    share,
    annot=names,
    fmt="",
    cmap="mako_r",
    vmin=0,
    vmax=1,
    ax=axes,
    cbar_kws={"label": "share of the row's heads"},
)
axes.set(xlabel="have this role too", ylabel="heads with this role")
results.save_figure(axes.figure, f"F5-overlap-{task}")

# %%
either = members[["local", "syntactic"]]
finding(
    f"{either.all(axis=1).sum()} heads are both local and syntactic (by the pooled role or any relation), of "
    f"{either['local'].sum()} local and {either['syntactic'].sum()} syntactic heads."
)

# %% [markdown]
# ## F9. How close are the decisions?
#
# Most p-values lie near 0 or 1. The label then says on which side of $\tau$ the mean lies, and the choice of $\tau$
# matters more than the level of the test.

# %%
tested = table.dropna(subset="p").assign(log10=lambda rows: np.log10(rows["p"].astype(float).clip(1e-20)))
figure, (left, right) = plt.subplots(
    1, 2, figsize=(theme.DOUBLE, 2.6), width_ratios=(2, 3), layout="constrained"
)
sns.histplot(tested, x=tested["p"].astype(float), bins=np.linspace(0, 1, 21), color="0.55", ax=left)
sns.stripplot(
    tested,
    x="log10",
    y="role",
    hue="role",
    order=order,
    palette=[colour(role) for role in order],
    size=2.5,
    legend=False,
    ax=right,
)
left.axvline(alpha, color=VERMILION, linestyle="--")
right.axvline(np.log10(alpha), color=VERMILION, linestyle="--", label=f"level {alpha:g}")
left.set(xlabel="p-value (one-sided), bins of 0.05", ylabel=f"heads and roles (of {len(tested)})")
right.set(xlabel="log10 of the p-value (below −20 at the left edge)", ylabel="")
right.legend(loc="lower left")
results.save_figure(figure, f"F9-p-values-{task}")

# %%
clear = (table["p"].dropna().sub(0.5).abs() > 0.45).mean()
failing = (table["mean"] > tau) & ~table["assigned"].fillna(False).astype(bool)
finding(
    f"{clear:.1%} of {table['p'].count():,} p-values lie within 0.05 of 0 or 1; {failing.sum()} means above τ = {tau:g} "
    "do not pass the test."
)

# %% [markdown]
# ## F10. Which labels remain when the tests are corrected?
#
# The published label asks whether an uncorrected t test rejects. The *corrected* label asks more: the p-value of a t test that
# corrects for skewness (Hall 1992), corrected after Benjamini and Yekutieli over all heads of the role, lies below $\alpha$;
# the lower bound of the bootstrap-t
# interval lies above $\tau$; and enough sequences have the role. The figure shows, for every role, the heads with the
# means nearest to $\tau$ and their intervals.

# %%
looks = {
    "both labels": ("o", BLUE, BLUE),
    "published only": ("D", VERMILION, "white"),
    "corrected only": ("^", "black", "black"),
    "neither": ("s", "0.55", "0.55"),
    "untestable": ("x", "0.7", "0.7"),
}
figure, grid = theme.rows_of_axes(len(order), 5, 1.8, 0.6)
for axes, role in zip(grid, order, strict=True):
    rows = table[table["role"] == role].dropna(subset="mean")
    rows = rows.loc[(rows["mean"] - tau).abs().nsmallest(10).index].sort_values("mean").reset_index(drop=True)
    for name, chosen in rows.groupby(significance.label_comparison(rows)):
        mark, shade, inside = looks[name]
        ends = [chosen["mean"] - chosen["low"], chosen["high"] - chosen["mean"]]
        axes.errorbar(
            chosen["mean"],
            chosen.index,
            xerr=ends,
            fmt=mark,
            color=shade,
            markerfacecolor=inside,
            markersize=4,
        )
    axes.axvline(tau, color="black", linestyle="--", linewidth=0.8)
    axes.set_yticks(rows.index, rows["layer"].astype(str) + "-" + rows["head"].astype(str))
    axes.set_title(role if len(rows) else f"{role}: untestable")
marks = [
    plt.Line2D([], [], marker=m, color=c, markerfacecolor=f, linestyle="", label=n)
    for n, (m, c, f) in looks.items()
]
figure.legend(handles=marks, ncols=5, loc="outside upper center")
figure.supxlabel(
    f"mean sieve bias score with its 95 % interval (dashes: τ = {tau:g}; each panel has its own scale)"
)
figure.supylabel("head (layer-head), the 10 with the mean nearest to τ")
results.save_figure(figure, f"F10-forest-{task}")

# %%
near = table[(table["low"] <= tau) & (table["high"] >= tau)]
finding(
    f"The intervals of {len(near)} of {table['low'].count():,} heads and roles contain τ = {tau:g}. The corrected rule gives "
    f"{table['assigned_corrected'].sum()} labels where the published rule gives {table['assigned'].sum()}."
)

# %% [markdown]
# How many heads have both labels or one, and the median effect (mean minus $\tau$ in standard deviations), share of
# sequences above $\tau$ and skewness:

# %%
counts = pd.crosstab(table["role"], significance.label_comparison(table)).loc[table["role"].unique()]
counts.join(table.groupby("role")[["effect", "above", "skewness"]].median()).style.format(precision=2)

# %%
limit = 1 / (1 + resamples)
heads = len(table) // table["role"].nunique()
needed = alpha / heads / sum(1 / rank for rank in range(1, heads + 1))
Markdown(
    f"The least p-value of {resamples} resamples is {limit:.4f}, but BY over {heads} heads asks {needed:.6f} of a lone "
    "head. So the corrected rule corrects the t test and takes the bootstrap as a bound."
)

# %% [markdown]
# A label that only the published rule gives belongs to a head near $\tau$, or to a head whose scores are so skewed to
# the left that the t test rejects too easily.
#
# ## Which labels survive a control?
#
# The published rule asks whether a head exceeds a *uniform* head, whose score is 1, by more than $\tau - 1$. The
# *controlled* label keeps the margin and puts the role's control in the place of the uniform head, sequence by
# sequence, with the same corrections: a syntactic head must exceed its twin, which knows positions alone, a local head its own
# attention to shuffled words, a block head even rows of the same entropies. The score of a twin that comes close to the
# head's says that the label was about position.

# %%
counts = roles.role_counts(table, alpha).assign(control=table.groupby("role", sort=False)["control"].first())
counts.style.format(precision=2, na_rep="–")

# %%
syntactic = table[table["role"].isin(["syntactic", *relations])]
kept = syntactic[syntactic["assigned_controlled"].fillna(False).astype(bool)]
names = [f"{row.layer}-{row.head} ({row.role})" for row in kept.itertuples()]
exceed = counts.loc[counts.index.isin(["syntactic", *relations]), "exceeds_control"].sum()
finding(
    f"Of {syntactic['assigned'].sum()} syntactic labels {exceed} exceed the positional twin, {len(kept)} by τ − 1: "
    f"{listed(names)}."
)

# %% [markdown]
# ## Does the released arithmetic matter?
#
# The released code divides the local band by one position too many at the end of a sequence and takes the population
# standard deviation. All else is equal here.

# %%
exact, released = (
    published_table(compose(bank["finetuned"], window, relations, direction, kind, weighted_block), rule)
    for kind in ("corrected", "published")
)
ours, theirs = (each["assigned"].astype(object).fillna("untestable") for each in (exact, released))
changed = (ours != theirs).groupby(exact["role"], sort=False).sum()
differences = changed.rename("heads").reset_index().assign(task=task)[["task", "role", "heads"]]
results.save_part(differences, "arithmetic", task)
finding(
    f"The released arithmetic gives another label in {differences['heads'].sum()} of {exact['assigned'].count():,} cases."
)
