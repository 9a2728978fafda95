# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 12. What carries over from encoder to encoder?
#
# Every chapter before this one is about one encoder. A result on one checkpoint may be a property of attention, or of this
# checkpoint alone. So we compare two: **MiniLM** (6 layers of 12 heads) and **MPNet** (12 layers of 12 heads, the size of BERT-base).
# Both were tuned on a billion pairs of texts before, so what they share may come from that. BERT-base itself, the encoder of the
# papers, is there with what was published of it.
#
# *Nothing is measured here.* The claims are those of the two profiles, with the same definitions and thresholds; the samples of
# MPNet are smaller, and it has one fine-tuning run a task where MiniLM has three.
#
# This chapter needs the claims of both profiles: `make reproduce PROFILE=glue-mpnet`, and `PROFILE=glue-minilm`. Then it takes
# seconds.

# %% tags=["parameters"]
profile: str = "offline"
first: str = "glue-mpnet"  # profiles whose claims are compared
second: str = "glue-minilm"

# %%
import pandas as pd

from analysis.figures.claims import encoder_plot
from analysis.figures.colours import SEQUENTIAL
from analysis.figures.grids import head_grids
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.pande2021 import published
from analysis.statistics.claim_pages import cells, short_results
from analysis.statistics.encoders import (
    BOTH,
    CONTRADICTED,
    NONE,
    NOT_JUDGED,
    ONE,
    agreement_counts,
    encoder_table,
    layer_correlations,
    role_shares,
)
from analysis.study import front_page
from analysis.study.profiles import parameters
from analysis.study.results import Results, results_to_read

style()
results = Results(profile)
claims = front_page.claims_by_encoder(
    first, second
)  # raises an error that names the command if a profile has none
known = [claim for claims_of_paper in front_page.known_claims().values() for claim in claims_of_paper]

# %% [markdown]
# ## Which claims hold on both?
#
# A claim is *supported on both* encoders, *on one* (on the other the interval decides nothing, or tasks disagree), or *on none*. It
# is *contradicted* if it is supported on one and the interval of the other lies on the wrong side of the threshold: then it is a
# property of the checkpoint. It is *not judged* if one of the two has no verdict, because nothing could be measured or because its
# notebook does not run in this profile.

# %%
table = encoder_table(claims)
results.save_table(table, "encoders")
counts = agreement_counts(table)
counts.to_frame().T.style.hide()

# %%
groups = table[table["holds"] != NOT_JUDGED].drop_duplicates("claim").set_index("claim")["holds"]
results.save_figure(
    encoder_plot(claims, known, groups.to_dict()),
    "encoders-F1",
    "Claims as rows, each on an axis of its own; shapes are encoders, fills verdicts, hollow diamonds "
    "BERT-base. Rows are ordered by agreement: at the bottom stand claims that hold on one encoder and fail "
    "on the other.",
)

# %%
judged = counts.drop(NOT_JUDGED).sum()
finding(
    f"Of {judged} claims with a verdict on both encoders, {counts[BOTH]} are supported on both, {counts[NONE]} on none and "
    f"{counts[ONE]} on one; {counts[CONTRADICTED]} are contradicted. {counts[NOT_JUDGED]} are not judged."
)

# %% [markdown]
# **Try it.** Count verdicts that are *equal* instead of claims that are supported:
# `(table.groupby("claim")["verdict"].nunique() == 1).sum()`.
#
# <details><summary>What happens</summary>
#
# Inconclusive on both counts as agreement then, although it only says that neither sample was large enough.
#
# </details>
#
# ## Where the two disagree
#
# The claims that hold on one encoder only, with both estimates. A claim that one encoder supports and the other leaves open need not
# be a difference: compare the intervals.

# %%
apart = table[table["holds"].isin([ONE, CONTRADICTED])]
words = (
    pd.concat(cells(rows, known) for rows in claims.values()).drop_duplicates("id").set_index("id")["claim"]
)
short = pd.DataFrame({name: short_results(rows) for name, rows in claims.items()}).reindex(
    apart["claim"].unique()
)
short.rename(index=lambda claim: f"{claim}: {words[claim]}")

# %% [markdown]
# ## Where do the roles sit?
#
# The published rule labels the heads of both encoders. Above, the encoder of the first profile; below, the authors' BERT-base, from
# the maps that they released. The darker a head, the more of the tasks give it the role. The number $r$ is the correlation of the two
# *layer profiles*: the share of heads with the role in each layer, mean over tasks. It is there where both have as many layers. In
# MPNet heads of the same number share a bias of relative positions in all layers, so that roles of position stand in columns.

# %%
ROLES = ["local", "syntactic", "delimiter", "cls", "sep", "block"]
name, tasks, encoder = [*claims][0], parameters("04_compare", first)["tasks"], results_to_read(first)
roles = pd.concat([encoder.load_table(f"roles-{task}-finetuned").assign(task=task) for task in tasks])
shares = role_shares(roles, ROLES)
grids = {f"{name}\n{role}": grid for role, grid in shares.items()}

released, correlations = published.roles(), {}
if {*tasks} <= {*released["task"]}:  # no toy tasks
    bert_base = role_shares(released[released["task"].isin(tasks)], ROLES)
    correlations = layer_correlations(shares, bert_base)
    values = {role: f"\nr = {value:.2f}" for role, value in correlations.items()}
    grids |= {f"BERT-base\n{role}{values.get(role, '')}": grid for role, grid in bert_base.items()}

label = "share of the tasks in which the head has the role"
figure = head_grids(grids, label, columns=len(ROLES), cmap=SEQUENTIAL, vmin=0, vmax=1)
results.save_figure(
    figure,
    "encoders-F2",
    "The share of the tasks in which each head has a role by the published rule; above this encoder, below "
    "the BERT-base of the authors. Compare the layers in which a role sits: r is the correlation over "
    "layers.",
)

# %%
order = sorted(correlations, key=correlations.get)
finding(
    f"Layer profiles of {name} and BERT-base agree most for {order[-1]} (r = {correlations[order[-1]]:.2f}) and least for "
    f"{order[0]} (r = {correlations[order[0]]:.2f})."
    if order
    else "Layer profiles cannot be compared: the released maps are of other tasks, or of another number of layers."
)

# %% [markdown]
# **Try it.** Exchange `first` and `second`.
#
# <details><summary>What happens</summary>
#
# The counts stay. The maps of MiniLM have six rows and no correlation, since its layer 3 is as deep as layer 6 of twelve, and not as
# layer 3.
#
# </details>
#
# **How far to trust it.** Two encoders are two cases. Both are sentence encoders, and neither is the masked language model of the
# papers. Claims supported on both, by an interval on each, are the ones to expect elsewhere; one contradicted claim shows that
# the checkpoint matters, and not why.
