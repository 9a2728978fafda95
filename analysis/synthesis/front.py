"""What the synthesis says on the front page and on the first screen of the summary, in sentences from its tables."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from analysis.figures.colours import LIME, VERMILION
from analysis.figures.words import counted, listed
from analysis.statistics.roles import RELATIONS, ROLES
from analysis.synthesis.agreement import ROLES as ACROSS_MAPS
from analysis.synthesis.measures import ABLATION, DELIMITERS, IMPORTANCE, SavedTables, chosen
from analysis.synthesis.regression import ALL_ROLES, RAW
from analysis.synthesis.sets import POOLED
from analysis.texts.tasks import TASKS

# Roles with a control that can refuse them; [CLS] has a strip of its own.
SHOWN = ("local", "syntactic", "block")


def foretold(regression: pd.DataFrame) -> str:
    """How well role scores predict what single heads matter, beside shuffled scores and a task that is left out."""
    rows = regression[regression["variant"] == RAW]
    joint = rows[rows["term"] == ALL_ROLES].dropna(subset="share")
    if joint.empty:
        return "Heads were not removed one by one, so that no role can predict what that costs."
    row = joint.iloc[0]
    alone = rows[rows["model"] == "alone"].dropna(subset="share").sort_values("share", ascending=False)
    beating = [
        f"{each.term} ({'more' if each.estimate > 0 else 'less'})"
        for each in alone[alone["p_holm"] < 0.05].itertuples()
    ]
    single = f"Of {len(alone)} roles alone, {listed(beating)} {'explain' if len(beating) > 1 else 'explains'}"
    return (
        f"Role scores together explain {row['share']:.0%} of what the removal of heads of a layer costs, shuffled "
        f"scores {row['share_shuffled']:.0%} (p = {row['p_holm']:.2g}, Holm); on a task that is left out R2 is "
        f"{row['r2_left_out']:.2f}. {single} more than shuffled scores."
    )


def roles_against_random(table: pd.DataFrame, alpha: float = 0.05) -> str:
    """Which roles' heads matter more, or less, than random heads of their layers, over all tasks."""
    tested = chosen(table, task=POOLED, metric="loss", label="audited").dropna(subset="p")
    if tested.empty:
        return "No role's set can be held against random sets."
    beyond = [f"{row.role} ({row.excess:+.2f} nats)" for row in tested[tested["p_holm"] < alpha].itertuples()]
    which = (
        f"{len(beyond)} of {len(tested)} roles: {listed(beyond)}"
        if beyond
        else f"none of {len(tested)} roles"
    )
    return (
        "With all heads of a role off, the loss differs from that with as many random heads of the same layers off "
        f"for {which} (two-sided, Holm). The test finds differences of about {tested['least'].median():.3f} nats."
    )


def matching_heads(tests: pd.DataFrame, alpha: float = 0.05) -> str:
    """In how many runs the heads that match words across texts cost more than other heads of their layers."""
    known = tests[tests["trained"].astype(bool) & tests["p"].notna()]
    if known.empty:
        return "No head attends to the same word in the other text, or no run has learnt its task."
    pairs = known["task"].map(lambda task: TASKS[task].pair)
    costly = [f"{(part['p'] < alpha).sum()} of {len(part)}" for part in (known[pairs], known[~pairs])]
    heads = known["heads"].mode().iloc[0]
    return (
        f"Which heads matter? Those that attend to the same word in the other text before fine-tuning ({heads}). "
        f"Chosen on other tasks, they cost more than sets of as many heads of their layers (exact p < {alpha:g}) in "
        f"{costly[0]} runs on pairs of texts and in {costly[1]} on single texts."
    )


def heads_in_short(atlas: pd.DataFrame, tests: pd.DataFrame) -> dict[str, Any]:
    """What `survival_map` draws: shares of the tasks with each label, heads that match words, and the costliest heads.

    From the first run of every task. The costliest head is the one without which the loss is largest; a task whose
    heads were not removed, or whose run has not learnt it, has none.
    """
    first = atlas[atlas["seed"] == atlas["seed"].min()]
    syntactic = [f"attention_{role}" for role in ("syntactic", *RELATIONS)]
    either = {
        label: first[[f"{name}_{label}" for name in syntactic]].eq(True).any(axis=1).astype(float)
        for label in ("published", "controlled")
    }
    grids = {
        label: {
            role: _grid(first, either[label] if role == "syntactic" else first[f"attention_{role}_{label}"])
            for role in SHOWN
        }
        for label in ("published", "controlled")
    }
    costs = first.dropna(subset="ablation_loss") if "ablation_loss" in first else first.iloc[:0]
    if len(tests):
        learnt = tests[tests["trained"].astype(bool)]
        costs = costs.merge(learnt[["task", "seed"]])
    tops = costs.loc[costs.groupby("task")["ablation_loss"].idxmax()]
    known = tests[tests["heads"].astype(str).str.contains("-")] if len(tests) else tests
    matching = known["heads"].mode().iloc[0].split(", ") if len(known) else []
    shape = grids["published"]["local"].shape
    framed = {
        "matches words across texts": (
            LIME,
            _at(shape, [tuple(map(int, name.split("-"))) for name in matching]),
        ),
        "costliest head of a task": (VERMILION, _at(shape, tops[["layer", "head"]].to_numpy(int))),
    }
    return {**grids, "framed": framed, "cls": _grid(first, first["attention_cls_published"])}


def _grid(rows: pd.DataFrame, labels: pd.Series) -> Float[np.ndarray, "layer head"]:
    """The share of the tasks in which each head has a label."""
    held = labels.eq(True).astype(float).groupby([rows["layer"], rows["head"]]).mean()
    return held.unstack().to_numpy()


def _at(shape: tuple[int, ...], heads: Iterable[tuple[int, int]]) -> Bool[np.ndarray, "layer head"]:
    found = np.zeros(shape, bool)
    for layer, head in heads:
        found[layer, head] = True
    return found


def highlights(results: SavedTables) -> list[str]:
    """The answer of the synthesis, for the README; empty if the synthesis has not run."""
    found, regression = results.claims("synthesis_sets"), results.claims("synthesis_regression")
    if found.empty or "variant" not in regression:
        return []
    tests = results.claims("matching_tests")
    roles = f"Do roles predict what matters? {foretold(regression)} {roles_against_random(found)}"
    return [roles, *([matching_heads(tests)] if len(tests) else [])]


def overview(results: SavedTables, encoder: str) -> list[str]:
    """What the whole study found for this encoder, and how far this generalises; shorter without the synthesis."""
    last = (
        f"All of this is about one encoder ({encoder}); intervals cover other sequences and, where a claim has several "
        "fine-tuning runs, other runs of the same recipe, but no other encoder, task or language."
    )
    atlas, agreements = results.claims("atlas"), results.claims("synthesis_agreement")
    if atlas.empty:
        return ["The synthesis has not run in this profile.", last]
    return [_labels(atlas), *highlights(results), _methods(agreements), last]


def _labels(atlas: pd.DataFrame) -> str:
    audited, controlled = (
        sum(atlas[f"attention_{role}_{label}"].eq(True).sum() for role in ROLES if role not in DELIMITERS)
        for label in ("audited", "controlled")
    )
    heads = counted(atlas.groupby(["task", "seed"]).ngroups, "fine-tuned encoder")
    return (
        f"Of {audited:,} audited labels (role and head in {heads}, delimiter roles aside), "
        f"{controlled / max(audited, 1):.0%} remain when heads must beat a control that cannot know the role."
    )


def _methods(agreements: pd.DataFrame) -> str:
    same = chosen(agreements, first=ABLATION, second=IMPORTANCE, statistic="spearman")["value"]
    kappas = chosen(agreements, kind=ACROSS_MAPS, task=POOLED).groupby("second")["value"].median()
    order = f"order heads with a rank correlation of {same.iloc[0]:.2f}" if len(same) else "were not compared"
    kept = listed(f"{value:.2f} ({other.replace('_', ' ')})" for other, value in kappas.items())
    return (
        f"Gradient importance and the removal of single heads {order}; labels on attention and on other maps agree "
        f"with a median kappa of {kept or 'no map that was measured'}."
    )
