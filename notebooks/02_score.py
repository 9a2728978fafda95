# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 2. Score: what is a sieve, and what does it measure?
#
# A head gives, for every token of a sequence, a distribution of attention over all tokens. Does it attend to neighbouring words, to
# a word's governor (its head in the syntactic tree), to `[CLS]` and `[SEP]`? Pande et al. (2021) ask all these questions in one way.
# A **sieve** marks the cells of the attention matrix that a role is about. The **sieve bias score** compares the attention in these
# cells with that of a head that spreads its attention evenly:
#
# $$ s = T \sum_{ij} W_{ij} A_{ij}, $$
#
# where $A$ is the head's attention on a sequence of $T$ tokens (rows sum to 1) and $W$ the sieve (all cells sum to 1). A uniform head
# has $A_{ij} = 1/T$ everywhere and scores 1. Layers and heads count from 0, and a head is
# written as layer-head.
#
# This chapter needs no other run: without the scores of a fine-tuned encoder it scores fifty bundled pairs of sentences with the
# pre-trained one, which takes some ten seconds. (`make 02_score-toy-mrpc` makes these scores first, as for the committed copy.)
#
# *Source: Pande et al. 2021, attention sieves and the sieve bias score.*

# %% tags=["parameters"]
# tau, window and relations are shared with 02 to 04, 08, 10 and 98: to change them in all, write the section `common` of a
# profile (README).
profile: str = "offline"
tau: float = 3.0  # the score above which a head has a role
window: int = 2  # tokens on each side that count as local
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]  # pooled into the syntactic role
direction: str = "dependent_to_head"  # or head_to_dependent, both

# seldom changed
task: str = "toy-mrpc"
encoder: str = "minilm"
checkpoint: str | None = None
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
n: int | None = 200  # sequences that 01_extract scored
seed: int = 0  # of the sample of sequences
max_tokens: int = 128
seeds: list[int] = [0, 1]  # fine-tuning runs: the first is shown
device: str = "cpu"
arithmetic: str = "corrected"  # or published: as the authors' code computes
weighted_block: bool = True  # multiply the rows of the block role by their entropy, as published

# %%
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm

from analysis.encoders.models import load_encoder
from analysis.figures import theme
from analysis.figures.diagrams import attention_maps, sieve_diagrams
from analysis.figures.grids import head_grids
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.pande2021.drawing import illustration, role_sieves, score_histograms
from analysis.scores.extraction import extract, read_attention
from analysis.statistics.roles import COARSE, compose
from analysis.statistics.significance import Rule, published_table
from analysis.study.results import Results
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse
from analysis.texts.tasks import TASKS

style()
results = Results(profile)
choices = (window, relations, direction, arithmetic)
if results.scored(task, seeds[0]):
    bank, examples = results.load_scores(task, seeds[0]), load_examples(task, source, "dev", n, seed)
    model = load_encoder(results.weights(task, seeds[0], encoder, checkpoint), device)
else:  # 01_extract has not run
    model, examples = load_encoder(encoder, device), load_examples("toy-mrpc", n=50)
    bank = extract(model, examples, parse(examples), max_tokens=max_tokens)
scores = compose(bank, *choices, weighted_block)
table = published_table(scores, Rule(tau))

# %% [markdown]
# ## The sieves of one sequence (F1)
#
# The outlined token is the current one. Arrows lead to the tokens that its sieve marks. `match` is a role of this study: the same word
# in the other text.

# %%
example = illustration(TASKS[task].pair)
parsed = parse([example])
sieves = role_sieves(model, example, parsed, *choices, max_tokens)
layout, attention = read_attention(model, example, max_tokens)
tokens = list(layout.tokens)
marked = {role: np.flatnonzero(sieve.any(axis=1) & (layout.text >= 0)) for role, sieve in sieves.items()}
current = {role: int(rows[len(rows) // 2]) for role, rows in marked.items()}
results.save_figure(
    sieve_diagrams(tokens, sieves, current),
    f"F1-sieves-{task}",
    "The sieve of each role on one pair of sentences; arrows lead from the outlined token to those that its "
    "role marks. The score of a head is the attention along such arrows, compared with uniform attention.",
)

# %% [markdown]
# ## One score by hand
#
# The head with the highest mean score for subjects (`nsubj`), on this sequence. The sieve has one row for each word piece of a subject,
# and in it the word pieces of its verb. We multiply, sum, and compare with `extract`, which does the same for all heads and roles in
# one pass of the encoder.

# %%
best = scores.sel(role="nsubj").mean("sequence").argmax(["layer", "head"])
layer, head = int(best["layer"]), int(best["head"])
sieve, heads_attention = sieves["nsubj"], attention[layer, head]
by_hand = len(tokens) * (sieve * heads_attention).sum()
by_extract = extract(model, [example], parsed, roles=["nsubj"], max_tokens=max_tokens, progress=False)
by_extract = by_extract.sel(role="nsubj", layer=layer, head=head).item()
assert direction != "dependent_to_head" or np.isclose(by_hand, by_extract, rtol=1e-4)
cells = [(tokens[i], tokens[j], j - i, heads_attention[i, j], sieve[i, j]) for i, j in np.argwhere(sieve)]
pd.DataFrame(cells, columns=["from", "to", "distance", "attention", "weight"]).style.format(
    precision=2
).hide()

# %%
finding(
    f"The score of head {layer}-{head} for subjects is {len(tokens)} x {by_hand / len(tokens):.3f} = {by_hand:.2f}: in the cells of the "
    f"sieve it has {by_hand:.1f} times the attention of a uniform head."
)

# %% [markdown]
# Compare the rows: does the head attend to a verb two tokens away as it does to the one that comes next? If not, it finds the next token,
# and not the governor of a word. In the committed run of glue-minilm the best head is 1-8, which attends to the next token, whatever
# it is. A high score does not tell; the [next chapter](03_test.ipynb) compares every head with a copy of itself that knows only
# positions.
#
# **Try it.** Set `direction = "head_to_dependent"`: another head is best, and the arrows of the relations turn round.
#
# <details><summary>What happens</summary>
#
# A verb looks for its subject, which stands before it. In profiles offline and glue-minilm the best head is now one that attends to the
# previous token, and gives nothing to the subject that stands two tokens before; in glue-mpnet it gives little to either subject of the
# pair on show, since a head with a high mean need not show it on every sentence. The sum above is of the new sieve, while `extract` still
# scores the relation from the dependent: the comparison is skipped.
#
# </details>
#
# ## The same number in store
#
# `01_extract` has stored such a sum for every sequence, head and sieve. For its first sequence, the local score of the same head:

# %%
stored = scores.sel(sequence=examples[0].id, role="local", layer=layer, head=head).item()
near = role_sieves(model, examples[0], {examples[0].id: []}, *choices, max_tokens)["local"]
first_attention = read_attention(model, examples[0], max_tokens)[1][layer, head]
finding(f"{len(near) * (near * first_attention).sum():.3f} by hand, {stored:.3f} stored.")

# %% [markdown]
# ## The head with the highest score of each role (F2)
#
# For each role, the head with the highest mean score over the scored sequences, on the same pair of sentences. One sequence is an
# illustration, not evidence: a head with a high mean need not show its pattern on every sequence.

# %%
means = scores.mean("sequence")
panels, places = {}, {}
for role in [role for role in (*COARSE, "match") if means.sel(role=role).notnull().any()]:
    place = means.sel(role=role).argmax(["layer", "head"])
    places[role] = (int(place["layer"]), int(place["head"]))
    panels[f"{role}: layer {places[role][0]}, head {places[role][1]}"] = (attention[places[role]], tokens)
results.save_figure(
    attention_maps(panels),
    f"F2-attention-{task}",
    "Attention maps, on one pair of sentences, of the head with the highest mean score of each role. Local "
    "heads show a diagonal, delimiter heads columns, and matching heads single cells in the other text; a "
    "block head would show squares.",
)

# %%
layer, head = places[list(places)[-1]]
finding(
    f"The head with the highest score for {list(places)[-1]} is {layer}-{head}: {means.sel(role=list(places)[-1], layer=layer, head=head):.1f} "
    "times the attention of a uniform head."
)

# %% [markdown]
# In a task with pairs of texts, the last panel is the head that finds the same word in the other text best. In the committed run of
# glue-minilm it is head 2-9: from *old* in the first sentence it sends most of its attention to *old* in the second. With head 1-1 it comes
# back in [chapter 11](11_matching_all.ipynb).
#
# ## Does the mean tell the whole story? (F3)
#
# Each panel shows the scores of single sequences for one role: of all heads (grey), of the head with the median mean among those
# with the role (orange), and of the head with the mean nearest to the threshold (blue), where the label is decided. The axis is
# logarithmic. A mean above the threshold can come from a few sequences with high scores, which is why the next chapter tests it.

# %%
panels = {role: (scores, table, role) for role in theme.in_order(table["role"])}
results.save_figure(
    score_histograms(panels, tau),
    f"F3-distributions-{task}",
    "Scores of single sequences by role, of all heads, a typical head and the head nearest to the "
    "threshold. A long tail means that a mean above the threshold can come from a few sequences.",
)

# %%
skewness = scores.to_series().groupby(["role", "layer", "head"]).skew().dropna()
finding(
    f"For {(skewness.abs() > 1).mean():.0%} of the heads and roles, the scores are strongly skewed over the "
    f"{scores.sizes['sequence']:,} sequences (skewness beyond 1)."
)

# %% [markdown]
# ## All heads
#
# The scale is logarithmic and centred at 1, the score of uniform attention: red heads attend to the tokens of the role
# more than a uniform head does, blue heads less. Dots mark heads whose mean passes the test of `03_test`.

# %%
roles = theme.in_order(table["role"])
mean_scores = {role: np.maximum(theme.layer_head(table, role, "mean"), 1e-3) for role in roles}
has_role = {role: theme.layer_head(table, role, "assigned") == 1 for role in roles}
label = "mean sieve bias score, logarithmic\n(1 = uniform attention; dot: head has the role)"
figure = head_grids(mean_scores, label, has_role, cmap="vlag", norm=LogNorm(1 / 30, 30))
results.save_figure(
    figure,
    f"F3-means-{task}",
    "Mean scores of all heads by role, on a logarithmic scale centred at uniform attention; dots mark heads "
    "that pass the test. Red cells without a dot are heads that attend to the tokens of the role, but less "
    "than the threshold asks or not on every sequence.",
)

# %%
uniform = np.log(scores.tokens).mean().item() if weighted_block else 1.0
finding(
    f"A head without any pattern scores {uniform:.2f} for block and 1 for every other role. A head has a role above τ = {tau:g}."
)

# %% [markdown]
# With the published weighting, a head without any pattern passes as a block head on all but short sequences: the score multiplies each
# row by its entropy, which is $\ln T$ for uniform attention.
#
# **Try it.** Set `weighted_block = False`, and look at *block* in the last figure.
#
# <details><summary>What happens</summary>
#
# Without the weights, a uniform head scores 1 for block too, and no head passes.
#
# </details>
#
# **Try it.** Set `window = 1`, and look at *local*.
#
# <details><summary>What happens</summary>
#
# Heads that attend to the next or the previous token turn darker, since uniform attention has less in a narrower band. A head with
# much attention two tokens away turns paler.
#
# </details>
#
# **How far to trust it.** F1 and F2 are one invented pair of sentences. F3 has the sequences of one task and one encoder.
