"""The tables of a made-up synthesis: an atlas of heads with random values, sets, agreement, regression."""

from collections.abc import Callable
from functools import cache, wraps

import numpy as np
import pandas as pd

from analysis.statistics.roles import CONTROLS
from analysis.synthesis.agreement import ROLES as ACROSS_MAPS
from analysis.synthesis.agreement import importance_agreement
from analysis.synthesis.atlas import KEYS, MAPS, atlas_table
from analysis.synthesis.measures import NAMES, measured
from analysis.synthesis.regression import ALL_ROLES, RAW
from analysis.synthesis.regression import COLUMNS as REGRESSION
from analysis.synthesis.sets import CHANGED, LABELS, POOLED
from analysis.synthesis.sets import COLUMNS as SETS

TASKS, SEEDS, LAYERS, HEADS = ("mrpc", "sst-2"), (0, 1), 4, 5
CLASSES = ("facilitating", "interfering", "irrelevant", "mixed")


def once(made: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """A table that is made once for each call, and copied."""
    kept = cache(made)
    return wraps(made)(lambda *arguments, **options: kept(*arguments, **options).copy())


@once
def made_atlas(measure: bool = True) -> pd.DataFrame:
    """An atlas with labels on three maps, and the measures where asked."""
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([TASKS, SEEDS, range(LAYERS), range(HEADS)], names=KEYS)
    heads = index.to_frame(index=False)
    roles = pd.concat([heads.assign(role=role) for role in CONTROLS], ignore_index=True)
    names = ["assigned", "assigned_audited", "assigned_controlled"]
    labels = pd.DataFrame(rng.random((len(roles), 3)) < 0.4, columns=names)
    roles = roles.join(labels).assign(mean=rng.gamma(2, 1, len(roles)), control_share=0.5, status="tested")
    number = rng.normal(size=len(heads))
    loss, fall = heads.assign(metric="loss", change=number), heads.assign(metric="accuracy", change=-number)
    classes = np.resize(CLASSES, len(heads))
    gates = dict.fromkeys(("opened", "closed", "interfering", "irrelevant"), 0.5)
    tables = {
        "michel_ablation": pd.concat([loss, fall]),
        "michel_importance": heads.assign(
            granularity="example", normalised=False, importance=number + rng.normal(size=80)
        ),
        "kovaleva_cosine": heads.assign(padding="cropped", mean=1 - 0.1 * rng.random(len(heads))),
        "kovaleva_disable": fall.assign(unit="head"),
        "gates": heads.assign(gate_class=classes, facilitating=rng.random(len(heads)), **gates),
    }
    return atlas_table(heads, dict.fromkeys(MAPS, roles) if measure else {}, tables if measure else {})


def made_sets(excess: float = 0.2, p: float = 0.01) -> pd.DataFrame:
    """A table of sets in which every role has the same excess."""
    rows = [
        {"task": task, "role": role, "label": label, "metric": metric, "heads": 7, "sets": 19, "tasks": 2,
         "change": sign * 0.5, "random": sign * (0.5 - excess), "least": 0.15,
         "random_low": sign * 0.1, "random_high": sign * 0.4,
         "excess": sign * excess, "low": sign * excess - 0.1, "high": sign * excess + 0.1, "p": p,
         "p_holm": 4 * p if task == POOLED else np.nan, "status": "tested"}
        for task in ("mrpc", POOLED) for role in CONTROLS for label in LABELS
        for metric, sign in zip(CHANGED, (1, -1), strict=True)
    ]  # fmt: skip
    table = pd.DataFrame(rows)[SETS]
    table.loc[table["role"] == "sep", ["change", "excess", "low", "high", "least", "p", "p_holm"]] = np.nan
    return table


@once
def _pairs() -> pd.DataFrame:
    return importance_agreement(measured(made_atlas()), NAMES, draws=49)


def made_agreement(kappa: float = 0.8) -> pd.DataFrame:
    """Agreement of the measures of the made-up atlas, and of all roles on two maps."""
    same = {"value": kappa, "low": kappa - 0.1, "high": kappa + 0.1, "runs": 2, "heads": 40}
    facts = {"kind": ACROSS_MAPS, "task": POOLED, "first": "attention", "statistic": "kappa"} | same
    rows = [facts | {"second": other, "role": role} for other in MAPS[1:] for role in CONTROLS]
    gates = {
        "kind": "gate seeds",
        "task": POOLED,
        "first": "gate class",
        "second": "gate class",
        "value": 0.7,
    }
    gates |= {"statistic": "kappa of classes", "low": 0.6, "high": 0.8, "runs": 1, "heads": 20}
    return pd.concat([_pairs(), pd.DataFrame([*rows, gates])], ignore_index=True)


def made_regression(share: float = 0.1) -> pd.DataFrame:
    """A regression in which only the first role predicts something."""
    rows = [
        {"model": "alone", "term": role, "estimate": 0.1, "low": -0.1, "high": 0.3, "share": 0.05,
         "runs": 4, "p_holm": 0.01 if number == 0 else 0.5, "status": "tested"}
        for number, role in enumerate(CONTROLS)
    ]  # fmt: skip
    local = {
        "model": "together",
        "term": "local",
        "estimate": 0.2,
        "low": 0.1,
        "high": 0.3,
        "status": "tested",
    }
    every = {
        "model": "together",
        "term": ALL_ROLES,
        "runs": 3,
        "share": share,
        "share_shuffled": 0.04,
        "p_permutation": 0.002,
        "p_holm": 0.01,
        "r2_left_out": -0.02,
        "status": "tested",
    }
    return pd.DataFrame([*rows, local, every]).assign(variant=RAW).reindex(columns=REGRESSION)
