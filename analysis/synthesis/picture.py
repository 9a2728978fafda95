"""What the picture of heads on the front page draws, from the atlas."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from analysis.figures.colours import LIME, VERMILION
from analysis.statistics.effects import AUC
from analysis.statistics.roles import RELATIONS

# Roles with a control that a head can fall short of; [CLS] has a strip of its own.
SHOWN = ("local", "syntactic", "block")


def heads_in_short(atlas: pd.DataFrame, effects: pd.DataFrame) -> dict[str, Any]:
    """What `survival_map` draws: shares of the tasks with each label, matching heads, and those that matter most.

    Labels are those of the first run of every task. The head that matters most is the one with the largest fall in AUC
    in the first trained run, by the table `matching_effects`; without it, by the atlas.
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
    places, shape = ["layer", "head"], grids["published"]["local"].shape
    matching = first.iloc[:0]
    falls = first.dropna(subset="ablation_auc") if "ablation_auc" in first else first.iloc[:0]
    tops = falls.loc[falls.groupby("task")["ablation_auc"].idxmax()]
    if len(effects):
        falls = effects[effects["metric"].eq(AUC) & effects["trained"].eq(True)].sort_values("seed")
        tops, matching = (
            falls[falls["rank"] == 1].drop_duplicates("task"),
            effects[effects["matching"].eq(True)],
        )
    framed = {
        "matches words across texts": (LIME, _at(shape, matching[places].to_numpy(int))),
        "largest fall in AUC of a task": (VERMILION, _at(shape, tops[places].to_numpy(int))),
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
