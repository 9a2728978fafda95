import numpy as np
import pytest
import xarray as xr

from analysis.papers.pande2021 import measures, published
from analysis.papers.pande2021.evidence import Evidence, evidence_of_labels, restricted_to
from analysis.papers.pande2021.measures import CLAIMS, claim_of_labels
from analysis.statistics.claims import claim_table
from analysis.statistics.roles import MASSES, PUBLISHED_ROLES

HEADS = 10


def array(data: np.ndarray, tasks: list[str], **second: tuple[str, ...]) -> xr.DataArray:
    """Data (task, role or target, layer, head) as evidence of one run and one replicate."""
    names = second or {"role": PUBLISHED_ROLES}
    coordinates = {"task": tasks} | {name: [*values] for name, values in names.items()}
    layers, heads = data.shape[-2:]
    coordinates |= {"layer": range(layers), "head": range(heads)}
    return xr.DataArray(data, coordinates, tuple(coordinates)).expand_dims({"run": [0], "replicate": 1})


def roles(marks: dict[tuple[str, str], set[tuple[int, int]]], layers: int = 12) -> Evidence:
    """Evidence in which exactly the marked heads {(task, role): {(layer, head)}} have a role."""
    tasks = sorted({task for task, _ in marks})
    labels = array(np.zeros((len(tasks), len(PUBLISHED_ROLES), layers, HEADS)), tasks)
    for (task, role), heads in marks.items():
        for layer, head in heads:
            labels.loc[{"task": task, "role": role, "layer": layer, "head": head}] = 1
    return Evidence(labels=labels)


def block(layers, heads) -> set[tuple[int, int]]:
    return {(layer, head) for layer in layers for head in heads}


def several(layers, task: str) -> dict[tuple[str, str], set[tuple[int, int]]]:
    """Two heads with two roles in each of the layers."""
    return {(task, role): block(layers, [0, 1]) for role in ("local", "delimiter")}


def values(name: str, evidence: Evidence) -> dict[str, float]:
    return claim_of_labels(name, evidence).dropna(subset="value").set_index("unit")["value"].to_dict()


LOCAL = {("mrpc", "local"): block([0], range(5)), ("mrpc", "syntactic"): block([0], [0, 1, 9])}
LOCAL[("mrpc", "nsubj")] = block([0], [3])  # a relation alone is not the pooled role


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        ("C1", roles({("qqp", "local"): block([3], range(5)), ("qqp", "cls"): block([3], [2, 9])}), {"qqp": 1 / 120}),
        ("C1", roles({("qqp", "local"): block([3], range(5)), ("qqp", "nsubj"): block([3], [3])}), {"qqp": 1 / 120}),
        ("C2", roles({("qqp", "delimiter"): block(range(6), range(HEADS))}), {"qqp": 1 / 2}),
        ("C3", roles(LOCAL), {"mrpc": 2 / 5}),
        ("C3", roles({("mrpc", "local"): block([0], range(4))}), {}),  # fewer than five
        ("C4", roles(several(range(5, 9), "mrpc") | several(range(4), "toy-qqp")), {"mrpc": 8 / 5, "toy-qqp": 2}),
        ("C4", roles(several([5], "rte")), {}),  # the paper names no band
        ("C4", roles(several([2], "mrpc") | several([0], "qqp"), 3), {}),  # fewer than two layers on a side
        ("C5a", roles({("qqp", "sep"): block([10], range(6)) | block([0], [0, 1])}), {"qqp": 6 / 8}),
        ("C5b", roles({("qqp", "cls"): block([0], range(6)) | block([6], range(2))}), {"qqp": 6 / 8}),
        ("C5b", roles({("qqp", "cls"): block([0], range(4))}), {}),
        ("C6", roles({("qqp", "block"): block([0], range(9)) | block([5], [1])}), {"qqp": 0.9}),
        ("C7", roles({("qqp", "nsubj"): block(range(9), [0, 1, 7])}), {"qqp": 0.25}),
        ("C8", roles(several([10, 11, 3], "qqp")), {"qqp": 4 / 20}),
        ("C8", roles(several([4, 5], "qqp"), 6), {"qqp": 2 / 10}),
    ],
)  # fmt: skip
def test_measures_of_labels_are_counted_by_hand(claim, evidence, expected):
    assert values(claim, evidence) == pytest.approx(expected)


def changes(layers: int = 12) -> Evidence:
    """Block changes most in layer 10, [CLS] loses attention in the last third; p-values of four tests."""
    change = np.zeros((1, len(PUBLISHED_ROLES), layers, HEADS))
    change[0, PUBLISHED_ROLES.index("local"), 2] = 1.0
    change[0, PUBLISHED_ROLES.index("block"), layers - 2] = -3.0
    for role in ("cls", "sep", "delimiter"):  # these do not count
        change[0, PUBLISHED_ROLES.index(role), 0] = 9.0
    mass = np.zeros((1, 3, layers, HEADS))
    mass[:, :, layers - layers // 3 :] = np.array([-0.1, -0.2, 0.3])[:, None, None]
    p = np.full((1, len(PUBLISHED_ROLES), layers, HEADS), np.nan)
    p[0, :4, 0, 0] = [0.01, 0.99, 0.5, 0.06]
    labels = roles({("qqp", "local"): set()}, layers).labels
    targets = {"target": (*MASSES,)}
    return Evidence(labels, array(p, ["qqp"]), array(change, ["qqp"]), array(mass, ["qqp"], **targets))


@pytest.mark.parametrize("layers", [12, 6])
def test_changes_of_layers_attention_that_the_sink_loses_and_extreme_p_values(layers):
    evidence = changes(layers)
    assert measures.later_layers_change(evidence)["value"].item() == pytest.approx((3 - 1) / 7)
    sink = measures.sink_loses(evidence, ("cls",)).iloc[0]
    assert sink["token"] == "[CLS]"
    assert (sink["value"], sink["control"]) == pytest.approx((0.2, 0.1))
    assert measures.extreme_p_values(evidence)["value"].item() == pytest.approx(2 / 3)  # 0.06 is of nsubj


def test_controls_have_the_same_measure_and_untrained_runs_are_left_out():
    evidence = roles({("qqp", "block"): block([0], range(6)), ("mrpc", "block"): block([0], range(6))})
    control = roles({("qqp", "block"): block([5], range(6)), ("mrpc", "block"): block([0], range(6))})
    untested = Evidence(labels=control.labels.where(control.labels == 1))  # a constant control has no p
    frame = claim_of_labels("C6", evidence, restricted_to(untested, evidence)).set_index("unit")
    assert frame["control"].to_dict() == {"qqp": 0, "mrpc": 1}
    rows = claim_of_labels("C6", evidence.with_trained({("qqp", 0)})).set_index("unit")
    assert rows.loc["mrpc", "reason"] == "no run trained successfully"
    assert (rows.loc["qqp", "value"], rows.loc["qqp", "runs"]) == (1, 1)


def test_the_intervals_of_shares_end_at_0_and_1():
    labels = xr.concat([roles(several(layers, "qqp")).labels for layers in ([3], [3], [10, 11])], "replicate")
    [unit] = claim_of_labels("C8", Evidence(labels=labels)).to_dict("records")
    assert (unit["value"], unit["low"]) == (0, 0)
    assert 0.1 < unit["high"] <= 1


def test_beside_c3_stands_its_share_over_the_local_heads_of_all_tasks():
    many = {("qqp", "local"): block([0, 1], range(HEADS)), ("qqp", "syntactic"): block([0], range(HEADS))}
    evidence, twins = roles(LOCAL | many), roles(LOCAL | {("qqp", "local"): block([0], range(5))})
    assert measures.all_local_heads(evidence, twins) == pytest.approx((12 / 25, 2 / 10))
    assert measures.all_local_heads(evidence.with_trained({("mrpc", 0)}), twins) == pytest.approx(
        (2 / 5, 2 / 5)
    )
    [row] = claim_table([CLAIMS[2]], {"C3": claim_of_labels("C3", evidence, twins)}).to_dict("records")
    assert row["reason"].startswith("of all local heads together 0.48, of their twins 0.20;")


def test_values_of_the_released_maps():
    released = evidence_of_labels(published.roles())
    units = {name: claim_of_labels(name, changes(), released=released) for name in measures.BY_LABEL}
    table = claim_table(CLAIMS, units).set_index("claim")["published_estimate"]
    assert table["C2"] == pytest.approx(0.67, abs=0.005)
    assert table["C6"] == pytest.approx(0.52, abs=0.005)
    assert table[["C9a", "C9b", "C10"]].isna().all()
    assert [claim.id for claim in CLAIMS] == [*measures.BY_LABEL, "C9a", "C9b", "C10"]
