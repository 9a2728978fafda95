# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 8. Attribute what heads give to the tokens that went in
#
# **Question.** Attention says where a head looks in its own layer. But what it finds there has been mixed by the layers
# below. How much does the *output* of a head depend on each *input token*?
#
# Five maps are made for every head, and scored with the same sieves: *attention*; *local attribution*, the derivative of
# the head's output with respect to the input of its layer; *attribution*, the same with respect to the input tokens;
# *effective attention*, without the part that cannot change the head's output; and effective attention that *keeps the
# sums* of its rows. Each attribution is the Frobenius norm of a block of the Jacobian, each row divided by its sum.
#
# *Source: Pascual et al. 2021 (attribution of heads), Brunner et al. 2020 (effective attention). Norm and estimator are
# this study's own choice. No number of the articles is known to the study: everything below is computed.*

# %% tags=["parameters"]
profile: str = "offline"
task: str = "toy-mrpc"
state: str = "pretrained"
encoder: str = "minilm"
checkpoint: str | None = None
source: str | None = None  # hub or a folder of GLUE files; none: toy tasks
split: str = "dev"
n: int | None = 300  # sequences to choose from, None for all
parser: str = "gold"
max_tokens: int = 128
seeds: list[int] = [0, 1]  # of the fine-tuning runs: the first is taken
seed: int = 0  # of the samples, the probes and the bootstrap
attributed: int = 24  # sequences whose attribution is computed
pieces: int = 24  # of them at most, [CLS] and [SEP] among them
probes: int | None = 8  # random directions of a derivative, None for all (exact)
projected: int = 100  # sequences whose effective attention is computed
tau: float = 3.0
alpha: float = 0.05
minimum: int = 20  # fewer than the 100 of 03_test: labels of both maps rest on the same few sequences here
resamples: int = 999
device: str = "cpu"
precision: str = "float32"  # of effective attention; derivatives are always float32

# %%
from analysis.encoders import load_encoder
from analysis.papers.pascual2021 import discrepancy, maps, roles
from analysis.papers.pascual2021.measures import ATTENTION, EFFECTIVE, EFFECTIVE_SUM, GLOBAL, LOCAL
from analysis.scores.map_store import MapStore
from analysis.scores.maps import attribution, local_attribution
from analysis.statistics import Rule, compose, controlled_table
from analysis.study.results import Results, seeds_of
from analysis.texts import load_examples, parse, parser_name, sample

# %%
results = Results(profile)
run = seeds_of(state, seeds, checkpoint)[0]
model = load_encoder(results.weights(task, run, encoder, checkpoint), device, precision)
results.record_weights(f"{task}-{state}", model.digest)
examples = load_examples(task, source, split, n, seed)
relations = parse(examples, parser, cache=results.parses)
results.record_parser(parser_name(parser))
described = {"source": str(source or task), "split": split, "parser": str(parser), "seed": seed}
part = f"{task}-{state}"

# %% [markdown]
# ## Effective attention
#
# A sequence of no more tokens than a value vector has entries has no null space: its effective attention is its
# attention. Entries may be negative, so that the rows are no distributions: *block*, which weighs rows by their entropy,
# is undefined. All else is scored as it is for attention, with the same corrections and the same controls.

# %%
whole = sample(examples, projected, seed)
sources = {name: name for name in (ATTENTION, EFFECTIVE, EFFECTIVE_SUM)}
banks, controls = maps.scored(model, whole, relations, sources, (EFFECTIVE, EFFECTIVE_SUM), max_tokens)
full = {name: compose(bank) for name, bank in banks.items()}
tested = {name: (full[name], compose(control)) for name, control in controls.items()}
for name in controls:
    results.save_scores(banks[name].assign_attrs(described), task, run, maps=name)
width = model.model.config.hidden_size // model.heads  # of a value vector
longer = {name: each.isel(sequence=(each.tokens > width).values) for name, each in full.items()}
print(
    f"{len(whole)} sequences of {banks[ATTENTION].tokens.mean().item():.0f} tokens on average, "
    f"{longer[ATTENTION].sizes['sequence']} of them of more than {width} tokens"
)

# %% [markdown]
# ## Attribution
#
# The sequences are a sample of those that are short enough. The derivatives of one sequence take a few seconds, so that
# its maps are made once and kept in memory for the scores, the controls and the comparison with attention.

# %%
short = maps.short_examples(model, examples, pieces, attributed, seed)
map_stores = {
    ATTENTION: MapStore(ATTENTION),
    LOCAL: MapStore(local_attribution(probes, seed)),
    GLOBAL: MapStore(attribution(probes, seed)),
}
sources = {name: store.source for name, store in map_stores.items()}
sources |= {EFFECTIVE: EFFECTIVE, EFFECTIVE_SUM: EFFECTIVE_SUM}
banks, controls = maps.scored(model, short, relations, sources, (LOCAL, GLOBAL), max_tokens)
scores = {name: maps.with_patterns(bank) for name, bank in banks.items()}
tested |= {name: (compose(banks[name]), compose(control)) for name, control in controls.items()}
for name in controls:
    results.save_scores(banks[name].assign_attrs(described), task, run, maps=name)
print(
    f"{len(short)} sequences of {banks[ATTENTION].tokens.mean().item():.0f} tokens on average, {probes} probes"
)

# %% [markdown]
# ## Roles on every map
#
# The tables have the columns of those of attention (see notebook 3): published, corrected and controlled labels.

# %%
rule = Rule(tau, alpha, minimum, resamples, seed)
for name, pair in tested.items():
    results.save_table(controlled_table(*pair, rule), f"roles-{name}-{part}")

# %% [markdown]
# ## How far attention and attribution differ
#
# Row by row: the row of a token in one map against its row in another, by Pearson's correlation and the Jensen-Shannon
# divergence in bits; mean over rows. Pairs: attention and attribution; attention and local attribution; local and global.

# %%
rows = discrepancy.by_sequence(map_stores)
tables = {"pascual_discrepancy": discrepancy.discrepancy_table(rows, resamples, seed)}

# %% [markdown]
# ## What else is compared
#
# Which heads have which pattern on which map; how much of the maps falls on the special tokens. Roles on effective
# attention are compared on sequences longer than a value vector alone. `08_pascual` shows all of it.

# %%
composed = {name: compose(bank) for name, bank in banks.items()}
tables |= {
    "pascual_patterns": roles.pattern_table(scores),
    "pascual_persistence": roles.persistence_table(scores, rule),
    "pascual_survival": roles.survival_table(composed, rule),
    "pascual_effective": roles.survival_table(longer, rule),
    "pascual_offsets": roles.offset_profiles(map_stores),
    "pascual_sinks": roles.sink_table(full, resamples, seed),
}
for name, table in tables.items():
    results.save_part(table.assign(task=task, state=state), name, part)

# %%
survival = tables["pascual_survival"]
survival.pivot(index="role", columns="map", values="heads").reindex(survival["role"].unique())

# %% [markdown]
# *What to look at.* The number of heads with each role on each map, on the same sequences. Missing: the role is undefined
# on the map, or no sequence shows it.
