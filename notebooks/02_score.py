# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   study: {paper: pande2021, after: [01_extract]}
# ---

# %% [markdown]
# # 2. Sieves, patterns and scores
#
# **Question.** What does a sieve look like on a sentence, what does a head look like that scores high, and how are
# the scores distributed over sequences: would their average tell the whole story?
#
# *Source: Pande et al. 2021, figures of sieves and attention patterns, and the argument for a test (claim C11).*

# %% tags=["parameters"]
profile = "offline"
task = "mrpc"
encoder = "minilm"
checkpoint = None
max_tokens = 128
seeds = [0, 1]  # of the fine-tuning runs: the first is shown
seed = 0  # of the illustrating sequence
device = "cpu"
tau = 3.0  # the score above which a head has a role
window = 2  # tokens on each side that count as local
relations = ["nsubj", "dobj", "amod", "advmod"]  # pooled into the syntactic role
direction = "dependent_to_head"  # or head_to_dependent, both
arithmetic = "corrected"  # or published: as the released code computes
weighted_block = True  # multiply the rows of the block role by their entropy, as published

# %%
import numpy as np

from analysis.encoders import load_encoder
from analysis.figures import attention_maps, mean_maps, sieve_diagrams, style
from analysis.papers.pande2021 import role_sieves, score_distributions
from analysis.scores import read_attention
from analysis.statistics import COARSE, compose, published_table
from analysis.study import Results
from analysis.texts import load_examples, parse

style()
results = Results(profile)
bank = results.load_scores(task, seeds[0])
scores = compose(bank, window, relations, direction, arithmetic, weighted_block)
table = published_table(scores, tau)

# %% [markdown]
# ## F1. Sieves of one sequence
#
# The sequence is a short one of the bundled corpus with many of the relations, whatever data the scores come from:
# task data are not reprinted. The outlined token is the current one; arrows lead to the tokens that its sieve names.

# %%
examples = load_examples(task, "bundled", "dev", 50, seed)
richness = [
    8 * len({r.label for r in e.relations} & set(relations)) - len(" ".join(e.texts).split())
    for e in examples
]
example = examples[int(np.argmax(richness))]  # one more relation is worth eight more words
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
# For each role, the head of the fine-tuned encoder with the highest mean score over the scored sequences, on the
# same sequence. Local heads show a diagonal, delimiter heads columns, block heads squares.

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

# %% [markdown]
# *What to look at.* One sequence is an illustration, not evidence: a head chosen for its mean need not show its
# pattern on every sequence.
#
# ## F3. Scores over sequences
#
# Left, the scores of single sequences, pooled over heads and for the strongest head; right, how skewed the scores of
# each head are. A bare mean above the threshold can come from a few sequences; this is why the study tests.

# %%
results.save_figure(score_distributions(scores, tau), f"F3-distributions-{task}")

# %%
skewed = scores.to_series().groupby(["role", "layer", "head"]).skew().abs()
print(
    f"{len(bank.sequence)} sequences; skewness beyond 1 in {np.mean(skewed.dropna() > 1):.0%} of heads and roles; "
    f"a uniform head would score {np.log(bank.tokens).mean().item():.2f} on block, 1 on every other role"
)

# %% [markdown]
# The block role multiplies every row by its entropy, as published, so that even a head without any pattern scores
# about $\ln T$ on it: its labels must be read beside this control (set `weighted_block = False` to remove the factor).
#
# ## Mean scores of every head

# %%
results.save_figure(mean_maps(table, tau), f"F3-means-{task}")

# %% [markdown]
# *What to look at.* Dots mark heads whose mean passes the test of notebook 3. The scale ends at three times the
# threshold; many heads go beyond it.
