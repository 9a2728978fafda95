"""Every figure names its axes and shows what its table says."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from drawing import unnamed
from layouts_by_hand import PAIR

from analysis.papers.kovaleva2019.feature_figures import cls_rows, disabled_layers, feature_layers
from analysis.papers.kovaleva2019.head_figures import disabled_heads, link_maps, similarity_maps
from analysis.papers.kovaleva2019.names import FEATURES, PATTERNS
from analysis.papers.kovaleva2019.pattern_figures import pattern_examples, pattern_shares, typical_heads
from analysis.papers.kovaleva2019.published import kovaleva

RNG = np.random.default_rng(0)
LAYERS, HEADS = 3, 5
PLACES = pd.MultiIndex.from_product([range(LAYERS), range(HEADS)], names=["layer", "head"]).to_frame(
    index=False
)
TASKS = ("mrpc", "rte")


def heads(**columns) -> pd.DataFrame:
    return PLACES.assign(mean=RNG.random(len(PLACES)), **columns)


def test_typical_heads_and_their_maps():
    labels = np.zeros((4, LAYERS, HEADS), np.int8)
    labels[:, 1, 3] = 4
    labels[:2, 2, 2] = 1
    found = typical_heads(xr.Dataset({"pattern": (("sequence", "layer", "head"), labels)}))
    assert found == {PATTERNS[0]: (0, 0), PATTERNS[1]: (2, 2), PATTERNS[4]: (1, 3)}
    maps = RNG.dirichlet(np.ones(len(PAIR)), (LAYERS, HEADS, len(PAIR)))
    figure = pattern_examples(maps, PAIR, found)
    assert unnamed(figure) == []
    assert [len(axes.images) for axes in figure.axes[:5]] == [1, 1, 0, 0, 1]


def test_shares_are_stacked_to_one():
    rows = [
        (task, state, pattern, 0.2, 0.15, 0.25, 9)
        for task in TASKS
        for state in ("pretrained", "finetuned")
        for pattern in PATTERNS
    ]
    table = pd.DataFrame(rows, columns=["task", "state", "pattern", "share", "low", "high", "n"])
    figure = pattern_shares(table, kovaleva("patterns"))
    assert unnamed(figure) == []
    bars = figure.axes[0].patches
    assert len(bars) == 2 * 2 * len(PATTERNS)
    assert max(bar.get_y() + bar.get_height() for bar in bars) == pytest.approx(1)


def test_maps_of_heads():
    links = pd.concat(
        [
            heads(mode=mode, direction=direction, p_by=np.arange(len(PLACES)) / 100, control=0.1)
            for mode in ("faithful", "all_pairs")
            for direction in ("element_to_target", "target_to_element")
        ]
    )
    figure = link_maps(links, kovaleva("heads"))
    assert unnamed(figure) == []
    assert len(figure.axes) == 4 + 2 + 1  # modes and directions, the control, the published map, the scale
    assert len(figure.axes[0].collections[-1].get_offsets()) == 5  # p below .05
    cosines = pd.concat(
        [heads(task=task, seed=0, padding=kind) for task in TASKS for kind in ("cropped", "kept")]
    )
    figure = similarity_maps(cosines, kovaleva("heads"))
    titles = [axes.get_title() for axes in figure.axes[:5]]
    assert titles[:4] == ["mrpc, cropped", "rte, cropped", "mrpc, kept", "rte, kept"]
    disabled = pd.concat(
        [heads(task=task, metric="accuracy", baseline=0.8, change=-0.01, p_by=1.0) for task in TASKS]
    )
    figure = disabled_heads(disabled)
    assert unnamed(figure) == []
    assert figure.axes[0].get_title() == "mrpc\naccuracy 0.800"


def test_features_and_layers():
    table = pd.concat(
        [
            heads(task=task, state=state, feature=feature, mode="aligned")
            for task in TASKS
            for state in ("pretrained", "finetuned")
            for feature in FEATURES
        ]
    )
    figure = feature_layers(table, kovaleva("layers"))
    assert unnamed(figure) == []
    drawn = [len(axes.lines) for axes in figure.axes]
    assert drawn == [4] * (len(FEATURES) - 2) + [6, 6]  # [CLS] and [SEP] have published lines
    rows = table[table["layer"] == 0]
    figure = cls_rows(rows, kovaleva("cls"))
    assert unnamed(figure)[:1] != ["across"]
    assert len(figure.axes) == len(TASKS) + 2
    layers = pd.DataFrame(
        {"layer": range(LAYERS), "change": 0.01, "low": 0.0, "high": 0.02, "metric": "accuracy"}
    )
    figure = disabled_layers(
        pd.concat([layers.assign(task=task, seed=seed) for task in TASKS for seed in (0, 1)])
    )
    assert unnamed(figure) == []
