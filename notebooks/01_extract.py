# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 1. Extract: score every head with every sieve
#
# **Question.** How much more than a uniform head does each attention head look at the tokens that a role names?
# An *attention sieve* is a $T \times T$ matrix $W$ that sums to 1 and weighs the token pairs of a role; the *sieve
# bias score* of a head with attention $A$ is $T \sum_{ij} W_{ij} A_{ij}$, which is 1 for uniform attention.
#
# One pass over the sequences scores all heads with all elementary sieves and throws the attention away.
# Changing a window, a direction or a relation later needs only these scores, never the model again.
#
# Layers and heads count from 0, as in the authors' code.
#
# *Source: Pande et al. 2021, attention sieves and sieve bias score.*

# %% tags=["parameters"]
profile: str = "offline"
task: str = "toy-mrpc"  # task whose sequences are scored
state: str = "pretrained"  # pretrained, or finetuned: the checkpoints that 00_finetune made, one per seed
n: int | None = 200  # sequences, None for all
parser: str = "gold"  # gold, a CoNLL-U file, or a spaCy pipeline

# seldom changed
encoder: str = "minilm"
checkpoint: str | None = None  # fine-tuned checkpoints to read instead, {task} and {seed} are filled in
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
max_tokens: int = 128
seeds: list[int] = [0, 1]  # of the fine-tuning runs
seed: int = 0  # of the sample of sequences
device: str = "cpu"

# %%
import numpy as np
import pandas as pd

from analysis.encoders.models import load_encoder
from analysis.roles import ROLES
from analysis.scores.extraction import extract, extract_controls, read_attention, read_sieves
from analysis.statistics.roles import compose
from analysis.study.results import Results, seeds_of
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse, parser_name

results = Results(profile)
examples = load_examples(task, source, "dev", n, seed)
relations = parse(examples, parser, cache=results.parses)
described = {"source": str(source or task), "split": "dev", "parser": parser_name(parser), "seed": seed}
print(f"{task}, {state}: {len(examples)} sequences, parses: {parser}")

# %% [markdown]
# ## One pass
#
# The first batch is checked: every head must return attention, its rows must sum to 1, and no attention may fall on
# padding. All fine-tuning runs are scored on the same sequences.

# %%
models = {
    run: load_encoder(results.weights(task, run, encoder, checkpoint), device)
    for run in seeds_of(state, seeds, checkpoint)
}
bank = {run: extract(model, examples, relations, max_tokens=max_tokens) for run, model in models.items()}
for run, scores in bank.items():
    results.save_scores(scores.assign_attrs(described), task, run)

# %%
scores = next(iter(bank.values()))
print("{role} sieves, {layer} layers x {head} heads; ".format(**scores.sizes), end="")
print(f"{scores.attrs['sequences_truncated']} sequences truncated to {max_tokens} tokens; ", end="")
print(f"{len(np.unique(scores.cluster))} clusters of sequences that share a text")

# %% [markdown]
# ## What extraction is
#
# One map, one sieve, the sum. The map is the attention of one head on the first sequence, and the sieve marks the tokens at
# most two positions away. Extraction does the same for all heads, sieves and sequences, and stores the scores.

# %%
example, layer, head = examples[0], 0, 0
layout, attention = read_attention(next(iter(models.values())), example, max_tokens)
sieve = read_sieves(next(iter(models.values())), example, relations, ["window_2"], max_tokens)["window_2"]
by_hand = len(layout.tokens) * (sieve * attention[layer, head]).sum()
stored = scores.sel(sequence=example.id, role="window_2", layer=layer, head=head).item()
print(f"head {layer}-{head}, {len(layout.tokens)} tokens: {by_hand:.3f} by hand, {stored:.3f} stored")

# %% [markdown]
# All heads by role: the mean score over the sequences (first run). A role that is absent from all sequences is left out.

# %%
by_role = compose(scores).mean("sequence").to_series().unstack("role")[[*ROLES]]
by_role.dropna(axis="columns", how="all").style.format(precision=2)

# %% [markdown]
# ## The controls
#
# Each role is compared with a control: attention that has the head's other habits but not the one that the role names.
# For *local* it is the head's own attention on *shuffled* word pieces. For syntactic relations it is the head's
# *positional twin*, which attends to distances, [CLS] and [SEP] as the head does on average. For *block* it is
# attention with the same row entropies, *spread* over both texts. [CLS] and [SEP] roles are compared with uniform
# attention, whose score is 1 and needs no pass.

# %%
for run, model in models.items():
    for control, control_scores in extract_controls(
        model, examples, relations, max_tokens=max_tokens
    ).items():
        results.save_scores(control_scores.assign_attrs(described), task, run, maps=control)

# %% [markdown]
# ## The strongest sieves
#
# `sequences` counts the sequences in which a sieve exists, and `units` the tokens or word pairs that a score averages
# over. The means over all heads show what this encoder's attention prefers as a whole. The table lists the twelve
# sieves with the strongest heads, among those that exist in at least 20 sequences (first run).

# %%
by_sieve = pd.DataFrame(
    {
        "sequences": (scores.units > 0).sum("sequence"),
        "units": scores.units.where(scores.units > 0).mean("sequence"),
        "mean score": scores.mean(["sequence", "layer", "head"]),
        "highest head": scores.mean("sequence").max(["layer", "head"]),
    },
    index=scores.role.to_index(),
)
common = by_sieve[by_sieve["sequences"] >= min(20, len(examples))]
common.sort_values("highest head", ascending=False).head(12).style.format(precision=2)

# %% [markdown]
# *What to look at.* A score of 3 is three times uniform attention. (The role *block* above is the exception: its rows are weighted by
# their entropy, [02_score](02_score.ipynb).) Means over few sequences vary by chance; the tests of notebook 3 take the number of
# sequences into account.
