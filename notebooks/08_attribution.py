# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 8. How much does the output of a head depend on each input token?
#
# Attention says where a head looks in its own layer. The hidden states there are already mixtures of tokens, made by the layers
# below. Pascual et al. (2021) therefore differentiate the output of a head with respect to the *input* tokens, and find a
# significant mismatch with attention; their text is not known to the project beyond the abstract. This notebook computes such maps for one task and one state of the encoder, and scores them
# with the sieves of all other chapters. [08_pascual](08_pascual.ipynb) has the equations, the figures and the claims.
#
# | map | entry (row, column) |
# |---|---|
# | attention | weight that the head gives to the token of the column |
# | local attribution | derivative of the head's output at the row's token, with respect to the column's hidden state below the layer |
# | attribution | the same, with respect to the column's input embedding |
# | effective attention | attention without the part that cannot change the head's output |
# | effective attention, sums kept | the same, with the sum of each row preserved |
#
# An entry of attribution is the Frobenius norm of a block of the Jacobian; each row is divided by its sum, as in attention.
#
# *Source: Pascual et al. 2021 (abstract), Brunner et al. 2020 (hidden token attribution, effective attention). Norm and estimator are our choice. Layers and heads
# count from 0.*

# %% tags=["parameters"]
profile: str = "offline"
task: str = "toy-mrpc"  # task whose sequences are read
state: str = "pretrained"  # pretrained or finetuned
attributed: int = 12  # sequences whose attribution is computed
probes: int | None = 8  # random directions that estimate a norm; None: all directions (exact)

# seldom changed
encoder: str = "minilm"
checkpoint: str | None = None
source: str | None = None  # hub or a folder of GLUE files; None: toy tasks
n: int | None = 200  # sequences to choose from, None for all
parser: str = "gold"
max_tokens: int = 128
seeds: list[int] = [0, 1]  # fine-tuning runs; the first one is read
seed: int = 0  # of the samples, the probes and the bootstrap
pieces: int = 24  # their greatest length in word pieces, with [CLS] and [SEP]
projected: int = 100  # sequences whose effective attention is computed
tau: float = 3.0
alpha: float = 0.05
resamples: int = 999
device: str = "cpu"

# %%
from analysis.encoders.models import load_encoder
from analysis.papers.pascual2021 import attribution, discrepancy, roles
from analysis.papers.pascual2021.attribution import MapStore
from analysis.papers.pascual2021.measures import ATTENTION, EFFECTIVE, EFFECTIVE_SUM, GLOBAL, LOCAL
from analysis.scores.extraction import extract
from analysis.statistics.roles import compose
from analysis.statistics.significance import Rule, published_table
from analysis.study.results import Results, seeds_of
from analysis.texts.examples import sample
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse, parser_name

# %%
results = Results(profile)
run = seeds_of(state, seeds, checkpoint)[0]
model = load_encoder(results.weights(task, run, encoder, checkpoint), device)
results.record_weights(f"{task}-{state}", model.digest)
examples = load_examples(task, source, "dev", n, seed)
relations = parse(examples, parser, cache=results.parses)
results.record_parser(parser_name(parser))
part = f"{task}-{state}"

# %% [markdown]
# ## Effective attention
#
# A sequence with no more tokens than a value vector has entries has no null space: its effective attention is its attention.
# Effective attention may be negative, so that its rows are no distributions, and *block*, which weights rows by their entropy, is
# undefined. All other roles are scored as on attention.

# %%
long_sample = sample(examples, projected, seed)
scores = {
    name: compose(extract(model, long_sample, relations, max_tokens=max_tokens, maps=name))
    for name in (ATTENTION, EFFECTIVE, EFFECTIVE_SUM)
}
sinks = roles.sink_table(scores, resamples, seed)

# %%
width = model.model.config.hidden_size // model.heads  # entries of a value vector
long_scores = {name: array.isel(sequence=(array.tokens > width).values) for name, array in scores.items()}
print(
    f"{len(long_sample)} sequences of {scores[ATTENTION].tokens.mean().item():.0f} tokens on average, "
    f"{long_scores[ATTENTION].sizes['sequence']} of them of more than {width} tokens"
)

# %% [markdown]
# ## Attribution
#
# The derivatives of one sequence take seconds, so we draw a sample of short sequences, compute their maps once and keep them in
# memory for the scores and the comparison with attention.

# %%
short_sample = roles.short_examples(model, examples, pieces, attributed, seed)
map_stores = {
    ATTENTION: MapStore(ATTENTION),
    LOCAL: MapStore(attribution.local_attribution(probes, seed)),
    GLOBAL: MapStore(attribution.attribution(probes, seed)),
}
sources = {name: store.source for name, store in map_stores.items()}
sources |= {EFFECTIVE: EFFECTIVE, EFFECTIVE_SUM: EFFECTIVE_SUM}
banks = {
    name: extract(model, short_sample, relations, max_tokens=max_tokens, maps=source_of_maps)
    for name, source_of_maps in sources.items()
}
print(
    f"{len(short_sample)} sequences of {banks[ATTENTION].tokens.mean().item():.0f} tokens on average, {probes} probes"
)

# %% [markdown]
# ## Roles on every map
#
# The mean score of every head for every role, and the label of the published rule, as on attention
# ([03_test_all](03_test_all.ipynb)).

# %%
rule = Rule(tau, alpha, resamples=resamples, seed=seed)
composed = {name: compose(bank) for name, bank in banks.items()}
on_maps = {name: composed[name] for name in (LOCAL, GLOBAL)}
on_maps |= {name: scores[name] for name in (EFFECTIVE, EFFECTIVE_SUM)}
for name, map_scores in on_maps.items():
    labels = published_table(map_scores, rule)[["layer", "head", "role", "mean", "assigned"]]
    results.save_table(labels, f"roles-{name}-{part}", digits=5)

# %% [markdown]
# ## How far do attention and attribution differ?
#
# The row of a token in one map is compared with its row in another: Pearson's correlation, and the Jensen-Shannon divergence in
# bits, means over rows. There are three pairs: attention and attribution; attention and local attribution (what values and softmax
# make of the weights); local attribution and attribution (the mixing in the layers below).

# %%
rows = discrepancy.by_sequence(map_stores)
tables = {"pascual_discrepancy": discrepancy.discrepancy_table(rows, resamples, seed), "pascual_sinks": sinks}

# %% [markdown]
# ## Which patterns and roles do heads show on each map?
#
# Roles on effective attention are compared on sequences that are longer than a value vector.

# %%
scores = {name: roles.with_patterns(bank) for name, bank in banks.items()}
tables |= {
    "pascual_patterns": roles.pattern_table(scores),
    "pascual_persistence": roles.persistence_table(scores, rule),
    "pascual_survival": roles.survival_table(composed, rule),
    "pascual_effective": roles.survival_table(long_scores, rule),
    "pascual_offsets": roles.offset_profiles(map_stores),
}
for name, table in tables.items():
    results.save_part(table.assign(task=task, state=state), name, part)

# %% [markdown]
# Heads with each role on each map, on the same sequences. A cell is empty where the role is undefined on the map, or where no
# sequence shows it.

# %%
survival = tables["pascual_survival"]
survival.pivot(index="role", columns="map", values="heads").reindex(survival["role"].unique())

# %% [markdown]
# **Try it.** Set `probes = 1`, or `pieces = 16`.
#
# <details><summary>What happens</summary>
#
# With one probe the notebook takes a fraction of the time, and single entries of the maps get noisier, but the scores of heads hardly
# move, since they are means over tokens and sequences. With at most 16 pieces, fewer heads have a role: uniform attention gives more to
# each token of a short sequence, and τ is harder to reach.
# </details>
#
# **How far to trust it.** A label rests on the few dozen short sequences that derivatives allow. The estimator is validated against
# exact derivatives at the end of 08_pascual.
