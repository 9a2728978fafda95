# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 12. What carries over from encoder to encoder?
#
# Every chapter before this one is about one encoder. A result on one checkpoint may be a property of attention, of this checkpoint, or
# of its fine-tuning runs. So we compare encoders claim by claim: by how much do they **differ**, and on which does the claim hold?
# Both committed encoders, MPNet (profile glue-mpnet) and MiniLM (glue-minilm), were tuned on a billion pairs of texts before, so what they share may come from that:
# whether an encoder without such training has matching heads is the main open question of this study.
# [`profiles/glue-bert.yaml`](../../../profiles/glue-bert.yaml) answers it for BERT-base, and a profile of two lines for your own
# encoder ([encoders](../../../docs/encoders.md)). What was published of BERT-base is there as a mark.
#
# *Nothing is measured here.* The claims are those of the profiles, with the same definitions and thresholds.
#
# This chapter needs the claims of all profiles: `make reproduce PROFILE=...` for each. Then it takes seconds.

# %% tags=["parameters"]
profile: str = "offline"
# Profiles whose claims are compared; differences are from the first. That of this run joins them by its name.
profiles: list[str] = ["glue-mpnet", "glue-minilm"]

# %%
import pandas as pd

from analysis.figures.claims import encoder_plot
from analysis.figures.colours import SEQUENTIAL
from analysis.figures.edits import region_panels
from analysis.figures.grids import head_grids
from analysis.figures.theme import style
from analysis.figures.words import finding
from analysis.papers.pande2021 import published
from analysis.statistics.claim_texts import bracketed, number, with_sink
from analysis.statistics.encoders import (
    DIFFER,
    NOT_JUDGED,
    agreement_counts,
    encoder_table,
    layer_correlations,
    role_shares,
)
from analysis.study.claims import (
    by_encoder,
    claims_by_encoder,
    known_claims,
    papers_without_claims,
    units_by_encoder,
)
from analysis.study.profiles import parameters
from analysis.study.results import Results, results_to_read

style()
results = Results(profile)
names = profiles if profile in profiles else [profile, *profiles]
units = units_by_encoder(*names)  # an error names the command if a profile has none
known = [claim for claims_of_paper in known_claims().values() for claim in claims_of_paper]
for name in names:
    if missing := papers_without_claims(name):
        print(
            f"{name} has no claims of {', '.join(missing)}: run make reproduce PROFILE={name} for a whole comparison"
        )

# %% [markdown]
# ## By how much do the encoders differ?
#
# Samples are only comparable on the same **units**: a claim that one encoder measures on MRPC and the other on four tasks is compared
# on MRPC. We take the difference of the estimates on the units that all encoders have. Its interval treats the two samples as
# independent; they are the same sentences, so it is wider than it need be.
#
# Another fine-tuning run gives other numbers, and an interval over sequences alone does not see that. The variance between runs
# belongs to both sides. Where an encoder has fewer than three runs, it takes that of the other one (pooled over units,
# degrees of freedom by Satterthwaite): column `borrowed`. Its claim has a verdict if it holds with the borrowed variance. Without any
# encoder with three runs it is inconclusive.
#
# A claim is *supported on both* encoders; *on one, undecided on the other*, whose interval crosses the threshold or whose tasks
# disagree; *on one, refuted on the other*, whose interval lies on the wrong side: a property of the checkpoint **or its runs**; or *on
# none*. With three encoders or more it is supported on all, on some or on none. It is *not judged* without a shared unit. A claim about
# data, which no encoder enters, is not compared.

# %%
table = encoder_table(units, known)
results.save_table(table, "encoders")
judged = table[table["holds"] != NOT_JUDGED]
counts = agreement_counts(table)
differ = judged[judged["relation"] == DIFFER]["claim"].nunique()
measured = {
    name: rows.loc[rows["value"].notna() & rows["claim"].isin(table["claim"]), "claim"].nunique()
    for name, rows in units.items()
}
finding(
    f"Of {table['claim'].nunique()} claims about encoders, {judged['claim'].nunique()} have a verdict on all "
    f"({', '.join(f'{name} has {count}' for name, count in measured.items())}). The estimates of {differ} of them differ beyond "
    f"their intervals. " + "; ".join(f"{count} {name}" for name, count in counts.items()) + "."
)

# %%
released = pd.concat(claims_by_encoder(*names).values()).groupby("claim")["published_estimate"].mean()
results.save_figure(
    encoder_plot(table, known, released.to_dict()),
    "encoders-F1",
    "Claims as rows. Left, each on an axis of its own beside its threshold: shapes are encoders, fills verdicts. Right, the "
    "difference of the encoders with its interval: claims above the line differ. Two supported claims may lie far apart.",
)

# %% [markdown]
# **Try it.** Count verdicts that are *equal* instead of claims that differ:
# `(judged.groupby("claim")["verdict"].nunique() == 1).sum()`.
#
# <details><summary>What happens</summary>
#
# Two supported claims count as agreement, whether their estimates are equal or ten times apart, and two close estimates on either side
# of a threshold count as disagreement.
#
# </details>
#
# ## Where do they differ most?
#
# The claims that are not supported alike, with both estimates on the shared units and the difference.

# %%
statements = {claim.id: f"{claim.id}: {with_sink(claim.statement, '')}" for claim in known}
text = judged.assign(
    estimate=[bracketed(*row) for row in judged[["estimate", "low", "high"]].to_numpy()],
    difference=[
        bracketed(*row) for row in judged[["difference", "difference_low", "difference_high"]].to_numpy()
    ],
    claim=judged["claim"].map(statements),
)
alike = [name for name in counts.index if name.endswith(("both", "all", "none"))]
columns = ["claim", "holds", "encoder", "units", "estimate", "runs", "borrowed", "verdict", "difference"]
text[~text["holds"].isin(alike)][columns].fillna("").style.hide().format({"runs": "{:g}"})

# %% [markdown]
# ## Where is the vote of the matching heads read?
#
# What the matching heads read in one region of keys is left out ([11_matching_all](11_matching_all.ipynb)); means over tasks and runs,
# bars are means of the intervals of single runs. An encoder without matching heads has no mark.

# %%
regions = {
    name: results_to_read(folder).load_if_saved("matching_regions")
    for name, folder in by_encoder(names).items()
}
regions = {name: rows for name, rows in regions.items() if "region" in rows and len(rows)}
if regions:
    by_region = [
        rows.groupby("region", sort=False).mean(numeric_only=True).reset_index().assign(task=name, seed=0)
        for name, rows in regions.items()
    ]
    results.save_figure(
        region_panels(pd.concat(by_region, ignore_index=True)),
        "encoders-F3",
        "What leaving out a region does to the AUC (left) and to the match logit (right), for each encoder. On the right, "
        "left of 0: what is left out votes for a match. Is it the same region in all encoders?",
    )

# %% [markdown]
# ## Where do the roles sit?
#
# The published rule labels the heads of all encoders. Above, the encoder of the first profile; below, the authors' BERT-base, from
# the maps that they released. The darker a head, the more of the tasks give it the role. The number $r$ is the correlation of the two
# *layer profiles*: the share of heads with the role in each layer, mean over tasks; its interval is over layers. It is there where
# both have as many layers.

# %%
chapter_roles = ["local", "syntactic", "delimiter", "cls", "sep", "block"]
name, tasks = next(iter(units)), parameters("04_compare", names[0])["tasks"]
first = results_to_read(names[0])
roles = pd.concat([first.load_table(f"roles-{task}-finetuned").assign(task=task) for task in tasks])
shares = role_shares(roles, chapter_roles)
grids = {f"{name}\n{role}": grid for role, grid in shares.items()}

maps, correlations = published.roles(), {}
if {*tasks} <= {*maps["task"]}:  # no toy tasks
    bert_base = role_shares(maps[maps["task"].isin(tasks)], chapter_roles)
    correlations = layer_correlations(shares, bert_base)
    values = {
        role: f"\nr = {number(r)}\n[{number(low)}, {number(high)}]"
        for role, (r, low, high) in correlations.items()
    }
    grids |= {f"BERT-base\n{role}{values.get(role, '')}": grid for role, grid in bert_base.items()}

label = "share of the tasks in which the head has the role"
results.save_figure(
    head_grids(grids, label, columns=len(chapter_roles), cmap=SEQUENTIAL, vmin=0, vmax=1),
    "encoders-F2",
    "Role maps of an encoder above those of BERT-base, in the layers where they sit. The darker a head, the more "
    "tasks give it the role; r compares the shares by layer.",
)

# %%
order = sorted(correlations, key=lambda role: correlations[role][0])
finding(
    f"Layer profiles of {name} and BERT-base agree most for {order[-1]} (r = {bracketed(*correlations[order[-1]])}) and least for "
    f"{order[0]} (r = {bracketed(*correlations[order[0]])})."
    if order
    else "Layer profiles cannot be compared: the released maps are of other tasks, or of another number of layers."
)

# %% [markdown]
# **Try it.** Exchange the profiles in `profiles`.
#
# <details><summary>What happens</summary>
#
# The counts stay, and differences change their sign. Where the first encoder has another number of layers than BERT-base, its maps
# have other rows and no correlation, since layer 3 of six is as deep as layer 6 of twelve, and not as layer 3.
#
# </details>
#
# **How far to trust it.** Two encoders are two cases, and the two committed ones are siblings: the same recipe tuned both on a
# billion pairs, and neither is the masked language model of the papers. A claim that holds on both by a wide margin, such as C1 and C2
# with thresholds of ours that any encoder may pass, says less than one that could have failed.
