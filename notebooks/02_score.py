# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 2. Sieves, patterns and scores
#
# **Question.** What does a sieve look like on a sentence? What does a head look like that scores high? How are the
# scores distributed over sequences, and does their average tell the whole story?
#
# *Source: Pande et al. 2021, figures of sieves and attention patterns, and the argument for a test (claim C11).*

# %% tags=["parameters"]
# tau, window and relations are shared with 02 to 04, 08, 10 and 98: to change them in all, write the section `common` of a
# profile (README).
profile: str = "offline"
task: str = "toy-mrpc"
encoder: str = "minilm"
checkpoint: str | None = None
max_tokens: int = 128
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first is shown
device: str = "cpu"
tau: float = 3.0  # the score above which a head has a role
window: int = 2  # tokens on each side that count as local
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]  # pooled into the syntactic role
direction: str = "dependent_to_head"  # or head_to_dependent, both
arithmetic: str = "corrected"  # or published: as the released code computes
weighted_block: bool = True  # multiply the rows of the block role by their entropy, as published

# %%
import numpy as np
from matplotlib.colors import LogNorm

from analysis.encoders import load_encoder
from analysis.figures import attention_maps, finding, head_grids, sieve_diagrams, style, theme
from analysis.figures.colours import BLUE, MISSING, ORANGE
from analysis.papers.pande2021.drawn_sieves import illustration, role_sieves
from analysis.scores import read_attention
from analysis.statistics import COARSE, Rule, compose, published_table
from analysis.study.results import Results
from analysis.texts import TASKS, parse

style()
results = Results(profile)
bank = results.load_scores(task, seeds[0])
scores = compose(bank, window, relations, direction, arithmetic, weighted_block)
table = published_table(scores, Rule(tau))

# %% [markdown]
# ## F1. Sieves of one sequence
#
# A made-up sequence that has every role: one sentence for a task of single sentences, else two. The outlined token is
# the current one. Arrows lead to the tokens that its sieve names.

# %%
example = illustration(TASKS[task].pair)
model = load_encoder(results.weights(task, seeds[0], encoder, checkpoint), device)
choices = (window, relations, direction, arithmetic)
sieves = role_sieves(model, example, parse([example]), *choices, max_tokens)
layout, attention = read_attention(model, example, max_tokens)
tokens = list(layout.tokens)
words = {role: np.flatnonzero(sieve.any(axis=1) & (layout.text >= 0)) for role, sieve in sieves.items()}
queries = {role: int(found[len(found) // 2]) for role, found in words.items()}
results.save_figure(sieve_diagrams(tokens, sieves, queries), f"F1-sieves-{task}")

# %% [markdown]
# ## F2. Heads that show the patterns
#
# For each role, the head of the fine-tuned encoder with the highest mean score over the scored sequences, on the same
# sequence. A local head shows a diagonal, a delimiter head shows columns, a block head shows squares.

# %%
means = scores.mean("sequence")
best = {
    role: means.sel(role=role).argmax(["layer", "head"])
    for role in COARSE
    if means.sel(role=role).notnull().any()
}
heads = {role: (int(at["layer"]), int(at["head"])) for role, at in best.items()}
panels = {
    f"{role}: layer {layer}, head {head}": (attention[layer, head], tokens)
    for role, (layer, head) in heads.items()
}
results.save_figure(attention_maps(panels), f"F2-attention-{task}")

# %%
tops = table.loc[table.dropna(subset="mean").groupby("role", sort=False)["mean"].idxmax()].sort_values("mean")
low, high = tops.iloc[0], tops.iloc[-1]
finding(
    f"The highest mean score is {high['mean']:.1f}, of head {high['layer']}-{high['head']} for {high['role']}. For "
    f"{low['role']} no head exceeds {low['mean']:.1f}."
)

# %% [markdown]
# One sequence is an illustration, not evidence. A head with a high mean need not show its pattern on every sequence.
#
# ## F3. Scores over sequences
#
# Each panel shows the scores of single sequences for one role: of all heads (grey), of the head with the median mean among those
# with the label (orange: a typical labelled head), and of the head with the mean nearest to the threshold (blue), where the
# label is decided. The axis is logarithmic. A mean above the threshold can come from a few sequences with high scores. This is
# why the study tests the mean.

# %%
roles = theme.in_order(table["role"])
figure, grid = theme.rows_of_axes(len(roles), 5, 1.25, 0.7, sharex=True)
edges = np.geomspace(0.1, 100, 41)
for axes, role in zip(grid, roles, strict=True):
    rows = table[table["role"] == role].dropna(subset="mean").sort_values("mean")
    held = rows[rows["assigned"]]
    nearest = rows.loc[(rows["mean"] - tau).abs().nsmallest(1).index]
    of_role = scores.sel(role=role)
    samples = [(of_role, {"color": MISSING, "fill": True}, "all heads")]
    for shown, colour, name in ((held.iloc[[len(held) // 2]] if len(held) else held, ORANGE, "a typical labelled head"),
                                (nearest, BLUE, "the head nearest to τ")):  # fmt: skip
        samples += [
            (of_role.sel(layer=r.layer, head=r.head), {"color": colour}, name) for r in shown.itertuples()
        ]
    for sample, look, name in samples:
        counts = np.histogram(sample.values[np.isfinite(sample.values)].clip(edges[0], edges[-1]), edges)[0]
        axes.stairs(counts / max(1, counts.max()), edges, label=name, **look)
    axes.axvline(tau, color="black", linestyle="--", linewidth=0.8, label=f"τ = {tau:g}")
    axes.set(title=role if len(rows) else f"{role}: untestable", xscale="log", yticks=[])
handles = {
    name: handle for axes in grid for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
}
figure.legend(handles.values(), handles, ncols=4, loc="outside upper center")
figure.supxlabel("sieve bias score of one sequence (1 = uniform attention; below 0.1 at the left edge)")
figure.supylabel("frequency (highest bin = 1)")
results.save_figure(figure, f"F3-distributions-{task}")

# %%
skewness = scores.to_series().groupby(["role", "layer", "head"]).skew()
finding(
    f"Over {len(bank.sequence):,} sequences the scores of {(skewness.dropna().abs() > 1).mean():.0%} of "
    f"{skewness.count():,} heads and roles are strongly skewed (skewness beyond 1), {(skewness > 1).sum():,} to the right "
    f"and {(skewness < -1).sum():,} to the left. Their mean is not the score of a typical sequence."
)

# %% [markdown]
# The block role multiplies every row by its entropy, as published. So even a head without any pattern scores about
# $\ln T$ on it. Set `weighted_block = False` to remove the factor.

# %%
block = np.log(bank.tokens).mean().item() if weighted_block else 1.0
finding(
    f"A head that attends uniformly scores {block:.2f} on block and 1 on every other role; τ is {tau:g}. A label of block "
    f"{'says nothing without this control' if block > tau else 'needs more than this control'}."
)

# %% [markdown]
# ## Mean scores of every head
#
# The scale is logarithmic and centred at 1, the score of uniform attention: red heads attend to the tokens of the role
# more than a uniform head does, blue heads less.

# %%
scale = {"cmap": "vlag", "norm": LogNorm(1 / 30, 30)}
label = "mean sieve bias score, logarithmic\n(1 = uniform attention; dot: head has the role)"
means = {role: np.maximum(theme.layer_head(table, role, "mean"), 1e-3) for role in roles}
held = {role: theme.layer_head(table, role, "assigned") == 1 for role in roles}
results.save_figure(head_grids(means, label, held, **scale), f"F3-means-{task}")

# %%
held = table.groupby("role", sort=False)["assigned"].sum(min_count=1).dropna()
finding(
    f"Of {len(table) // table['role'].nunique()} heads most have the role {held.astype(int).idxmax()} ({held.max()})."
)

# %% [markdown]
# The same before fine-tuning.

# %%
before = published_table(compose(results.load_scores(task, None), *choices, weighted_block), Rule(tau))
means = {role: np.maximum(theme.layer_head(before, role, "mean"), 1e-3) for role in roles}
held = {role: theme.layer_head(before, role, "assigned") == 1 for role in roles}
results.save_figure(head_grids(means, label, held, **scale), f"F3-means-{task}-pretrained")

# %%
held = before.groupby("role", sort=False)["assigned"].sum(min_count=1).dropna()
finding(f"Before fine-tuning most have the role {held.astype(int).idxmax()} ({held.max()}).")

# %% [markdown]
# Dots mark heads whose mean passes the test of notebook 3.
