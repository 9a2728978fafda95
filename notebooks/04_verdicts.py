# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # 4c. Which claims hold?
#
# **Question.** Which claims of the paper does this encoder support? Each claim compares a number with a threshold. Beside it
# stand the published value and, for claims on roles, the value recomputed from the authors' released maps (BERT-base
# fine-tuned, 20 sequences a task). A verdict on another encoder is no verdict on BERT.
#
# *Source: Pande et al. 2021; the claims and their definitions stand in the table.*

# %% tags=["parameters"]
# tau, window and relations are shared with 02 to 04, 08, 10 and 98: to change them in all, write the section `common` of a
# profile (README).
profile: str = "offline"
tasks: list[str] = ["toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"]
seeds: list[int] = [0, 1]  # of the fine-tuning runs
replicates: int = 199  # of the bootstrap
seed: int = 0  # of the bootstrap
tau: float = 3.0
alpha: float = 0.05
window: int = 2
relations: list[str] = ["nsubj", "dobj", "amod", "advmod"]
direction: str = "dependent_to_head"
arithmetic: str = "corrected"
weighted_block: bool = True
# compare mean scores with the released maps (needs an encoder of 12 layers x 12 heads)
compare_published: bool = False

# %%
import pandas as pd
from IPython.display import Markdown

from analysis.encoders import load_encoder
from analysis.figures import forest_plot, style
from analysis.papers.pande2021 import evidence, published
from analysis.papers.pande2021.measures import CLAIMS, measures
from analysis.scores.sink import sink
from analysis.statistics import LABELS, ROLES, Rule, compose
from analysis.statistics.claim_pages import claims_markdown
from analysis.statistics.claims import claim_table
from analysis.statistics.training import trained_runs
from analysis.study import STATES, Results

style()
results = Results(profile)

# %%
choices = (window, relations, direction, arithmetic, weighted_block)
runs = (None, *seeds)
scores = {run: {t: compose(results.load_scores(t, run), *choices) for t in tasks} for run in runs}
controls = {run: {t: compose(results.load_controls(t, run), *choices) for t in tasks} for run in runs}
described = scores[None][tasks[0]]
origin = described.attrs
print(f"encoder {origin['encoder']} ({origin['architecture']}, {described.sizes['layer']} layers), ", end="")
print(f"data {origin['source']}, parses {origin['parser']}, {origin['versions']}")

# %% [markdown]
# ## The claims
#
# The estimate is the mean over tasks of the mean over the fine-tuning runs that trained successfully. Each bootstrap replicate
# draws new clusters of sequences of every task (those that share a text stay together) and labels every head again; with
# three or more runs the interval covers other runs too. The control of C3 and C7 is a twin of the encoder that knows
# positions only, that of C6 a head that spreads rows of the same entropy evenly; their labels follow the same rule.

# %%
finetune = results.join_parts("finetune", tasks, every=False)
rule = Rule(tau, alpha, seed=seed)
sample = evidence.evidence_of(scores[None], {run: scores[run] for run in seeds}, rule, replicates)
sample = sample.with_trained(trained_runs(finetune) if len(finetune) else None)
of_controls = {run: controls[run] for run in seeds}
control = evidence.evidence_of(controls[None], of_controls, rule, replicates)
token = sink(load_encoder(origin["encoder"]))
frames = measures(sample, evidence.restricted_to(control, sample), token)

# %%
released = measures(evidence.evidence_of_labels(published.roles()))
claims = claim_table(CLAIMS, frames, released)
results.save_table(claims, "claims-pande2021")
results.save_figure(forest_plot(claims, CLAIMS), "F14-claims")

# %%
Markdown(claims_markdown(claims, CLAIMS))

# %% [markdown]
# ## Heads worth knowing
#
# The three heads of each role that exceed its control most, whatever the threshold: mean score minus the control's mean,
# over the tasks; the last columns count the tasks in which the head has the label of each rule.

# %%
roles = results.role_tables(tasks)
tested = roles[(roles["state"] == STATES[-1]) & roles["assigned"].notna()].rename(columns=LABELS)
columns = {"tasks": ("mean", "size"), "mean": ("mean", "mean"), "control_mean": ("control_mean", "mean")}
columns |= {label: (label, "sum") for label in LABELS.values()}
heads = tested.groupby(["role", "layer", "head"], sort=False).agg(**columns).reset_index()
heads.insert(6, "beyond", heads["mean"] - heads["control_mean"])
heads.insert(1, "rank", heads.groupby("role")["beyond"].rank(ascending=False, method="first").astype(int))
ranking = heads[heads["rank"] <= 3].sort_values(
    ["role", "rank"], key=lambda c: c.map([*ROLES].index) if c.name == "role" else c
)
results.save_table(ranking, "ranking")
ranking.style.format(precision=2).hide()

# %% [markdown]
# What the tables say of one head, here of the first syntactic one, by role:

# %%
best = ranking.loc[ranking["role"].eq("syntactic").idxmax()]  # the first row where no sequence has relations
of_head = roles[
    (roles["layer"] == best["layer"]) & (roles["head"] == best["head"]) & (roles["task"] == tasks[0])
]
of_head[["state", "role", "mean", "low", "high", "control_mean", *LABELS]].style.format(precision=2).hide()

# %% [markdown]
# *How far to trust it.* The interval covers new sequences of the same kind and new runs of the same recipe, as far as
# a few runs show them; it does not cover another encoder, threshold or parser.
#
# ## Mean scores beside the released maps
#
# Only an encoder of BERT-base's shape can be compared head by head. Another fine-tuning seed moves the upper layers;
# layers 0 to 5 should agree closely.

# %%
if compare_published:
    maps = pd.concat(
        [
            published.compare_maps(roles[roles["state"] == s], published.scores()).assign(state=s)
            for s in STATES
        ]
    )
    results.save_table(maps, "published")
else:
    maps = f"not compared: this profile's encoder has {described.sizes['layer']} layers, BERT-base has 12"
maps
