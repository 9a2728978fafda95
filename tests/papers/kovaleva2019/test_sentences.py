"""Findings in words say what the tables say."""

import pandas as pd

from analysis.papers.kovaleva2019 import sentences


def test_labelling():
    rows = [
        ("rules", "drawn", 0.951),
        ("rules", "eye", 0.6),
        ("network", "drawn", 0.9),
        ("network", "eye", 0.5),
    ]
    table = pd.DataFrame(rows, columns=["labeller", "set", "f1"]).assign(pattern="macro average")
    text = sentences.labelling(table, "rules")
    assert "the rules 0.95 on drawn maps and 0.60 on eye maps" in text
    assert text.endswith("Used from here on: the rules.")


def test_shares():
    rows = [
        ("qqp", "pretrained", "heterogeneous", 0.5),
        ("qqp", "finetuned", "heterogeneous", 0.4),
        ("qqp", "pretrained", "vertical", 0.5),
        ("qqp", "finetuned", "vertical", 0.6),
    ]
    text = sentences.shares(pd.DataFrame(rows, columns=["task", "state", "pattern", "share"]))
    assert "40% of the maps of qqp" in text
    assert "more than 10.0 points" in text


def test_links():
    table = pd.DataFrame({"layer": 0, "head": range(200), "mean": 0.0, "p_by": 1.0})
    table.loc[7, ["mean", "p_by"]] = 0.5, 0.01
    text = sentences.links(table.assign(mode="all_pairs", direction="target_to_element"))
    assert "0-7 (0.50) beyond the 99th percentile" in text
    assert "1 of 200 heads above" in text


def test_disabled():
    row = {"task": "mrpc", "unit": "head", "metric": "accuracy", "variants": 72, "raised": 10, "raised_by_chance": 16.0,
           "beyond": 1, "rise": 0.021, "largest": "1-3", "least": 0.05}  # fmt: skip
    text = sentences.disabled(pd.DataFrame([row]))
    assert text.startswith(
        "In mrpc 10 of 72 heads raise the accuracy, where chance gives up to 16, and 1 raise it"
    )
    assert "(the rise that stands out most from chance is +2.1 points, head 1-3; a loss of 5.0 points" in text
    none = sentences.disabled(pd.DataFrame([row | {"raised": 0, "beyond": 0, "rise": 0.0, "largest": "0-0"}]))
    assert "0 raise it beyond chance (a loss of 5.0 points is" in none


def test_layers_and_starts():
    table = pd.DataFrame(
        {"unit": "layer", "task": "rte", "metric": "accuracy", "layer": [0, 1], "change": [0.03, -0.1]}
    )
    text = sentences.layers(table)
    assert "rte loses most for layer 1 (-10.0 points) and least for layer 0 (+3.0)" in text
    rows = [("rte", "untuned", 0, "accuracy", 0.5, 0.53), ("rte", "untuned", 1, "accuracy", 0.6, 0.53)]
    starts = pd.DataFrame(rows, columns=["task", "start", "seed", "metric", "value", "constant"])
    assert sentences.starts(starts) == "rte (accuracy; constant 0.53): 0.55 untuned."
    both = pd.concat([starts, starts.assign(metric="matthews", value=0.2)]).assign(task="cola")
    assert "cola (matthews; constant 0.53): 0.20" in sentences.starts(both)


def test_similarity():
    rows = [(task, layer, 0, 1 - 0.1 * layer) for task in ("rte", "qqp") for layer in range(4)]
    table = pd.DataFrame(rows, columns=["task", "layer", "head", "mean"]).assign(padding="cropped")
    assert "2 and 3 in rte and 2 and 3 in qqp (of 4" in sentences.similarity(table)
