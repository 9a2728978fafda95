from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from analysis import findings
from analysis.findings import Evidence, band
from analysis.roles import ROLES

HEADS = 10


def roles(marks: dict[tuple[str, str], set[tuple[int, int]]], layers: int = 12) -> Evidence:
    """Evidence in which exactly the marked heads {(task, role): {(layer, head)}} have a role."""
    tasks = list(dict.fromkeys(task for task, _ in marks))
    names = ["task", "role", "layer", "head"]
    index = pd.MultiIndex.from_product([tasks, ROLES, range(layers), range(HEADS)], names=names)
    table = index.to_frame(index=False).assign(state="finetuned")
    held = {(task, role, *head) for (task, role), heads in marks.items() for head in heads}
    table["assigned"] = pd.array([row in held for row in index], dtype="boolean")
    return Evidence(roles=table)


def block(layers, heads) -> set[tuple[int, int]]:
    """Every head of the product of layers and heads."""
    return {(layer, head) for layer in layers for head in heads}


def verdict(function, evidence) -> str:
    return function(evidence).verdict


@pytest.mark.parametrize(
    ("depth", "region", "layers"),
    [
        (12, findings.MIDDLE, [5, 6, 7, 8, 9]),
        (12, findings.INITIAL, [0, 1, 2, 3]),
        (12, findings.LAST_THIRD, [8, 9, 10, 11]),
        (12, findings.LAST_SIXTH, [10, 11]),
        (6, findings.MIDDLE, [3, 4]),
        (6, findings.LAST_SIXTH, [5]),
        (3, findings.LAST_SIXTH, [2]),
        (1, findings.LAST_SIXTH, [0]),
        (5, findings.FIRST_HALF, [0, 1, 2]),
        (5, findings.LAST_HALF, [3, 4]),
    ],
)
def test_band_is_relative_depth(depth, region, layers):
    assert band(pd.Index(range(depth)), region) == layers


@pytest.mark.parametrize("depth", range(1, 30))
def test_bands_split_the_layers(depth):
    cuts = [Fraction(part, 3) for part in range(4)]
    thirds = [set(band(pd.Index(range(depth)), region)) for region in zip(cuts, cuts[1:], strict=False)]
    assert set().union(*thirds) == set(range(depth))
    assert all(thirds)


def test_many_multifunctional_heads():
    marks = {("qqp", "cls"): block(range(12), range(2)), ("qqp", "nsubj"): block(range(12), [0])}
    found = findings.many_multifunctional(roles(marks))
    assert (found.verdict, found.n) == ("holds", 120)
    assert found.value == "10% of heads (qqp 10%)"
    marks["qqp", "nsubj"].remove((11, 0))
    assert verdict(findings.many_multifunctional, roles(marks)) == "does not hold"


def test_many_delimiter_heads():
    marks = {
        ("qqp", "delimiter"): block(range(12), range(8)),
        ("mrpc", "delimiter"): block(range(12), range(7)),
    }
    found = findings.many_delimiter(roles(marks))
    assert found == ("75% of heads (mrpc 70%, qqp 80%)", 240, "holds")
    marks["mrpc", "delimiter"] -= block(range(5), [6])
    assert verdict(findings.many_delimiter, roles(marks)) == "holds"  # 175 of 240 heads
    marks["mrpc", "delimiter"] -= block([5, 6], [6])
    assert verdict(findings.many_delimiter, roles(marks)) == "does not hold"


def test_untestable_heads_are_no_delimiter_heads_and_no_others():
    evidence = roles({("qqp", "delimiter"): block(range(12), range(4))})
    table = evidence.roles
    table.loc[(table["role"] == "delimiter") & (table["head"] >= 5), "assigned"] = pd.NA
    assert findings.many_delimiter(evidence) == ("80% of heads (qqp 80%)", 60, "holds")


def test_local_heads_are_syntactic():
    marks = {
        ("qqp", "local"): block([3], range(10)),
        ("qqp", "syntactic"): block([3], range(5)),
        ("mrpc", "local"): block([1], range(5)),
        ("mrpc", "syntactic"): block([1], range(5)),
    }
    found = findings.local_is_syntactic(roles(marks))
    assert found == ("50% to 100% (mrpc 100%, qqp 50%)", 15, "holds")
    marks["qqp", "syntactic"].remove((3, 0))
    assert verdict(findings.local_is_syntactic, roles(marks)) == "does not hold"
    marks["qqp", "local"].clear()
    assert findings.local_is_syntactic(roles(marks)).n == 5
    marks["mrpc", "local"].clear()
    assert verdict(findings.local_is_syntactic, roles(marks)) == "untestable"


@pytest.mark.parametrize(("layers", "middle", "initial"), [(12, 7, 2), (6, 3, 1)])
def test_multifunctional_layers_depend_on_the_task(layers, middle, initial):
    def evidence(mrpc_layer, qqp_layer):
        marks = {(task, "delimiter"): block(range(layers), range(HEADS)) for task in ("mrpc", "qqp", "rte")}
        marks["mrpc", "local"] = block([mrpc_layer], range(4))
        marks["qqp", "local"] = block([qqp_layer], range(4))
        return roles(marks, layers)

    found = findings.multifunctional_layers(evidence(middle, initial))
    assert (found.verdict, found.n) == ("holds", 2)
    assert "rte" not in found.value
    assert verdict(findings.multifunctional_layers, evidence(initial, initial)) == "does not hold"
    assert verdict(findings.multifunctional_layers, evidence(middle, middle)) == "does not hold"
    only_rte = roles({("rte", "local"): block([0], [0])}, layers)
    assert verdict(findings.multifunctional_layers, only_rte) == "untestable"


def test_multifunctional_layers_count_heads_per_layer():
    marks = {
        ("mrpc", "delimiter"): block(range(12), range(HEADS)),
        ("mrpc", "local"): block([5], range(5)) | block([11], range(6)),
    }
    # 5 heads in 5 middle layers are 1.0 per layer, 6 in the 7 others 0.9.
    found = findings.multifunctional_layers(roles(marks))
    assert found == ("heads per layer: mrpc 1.0 in layers 5-9, 0.9 elsewhere", 1, "holds")


def test_delimiter_layers():
    marks = {("qqp", "sep"): block([5, 7, 9], [0]), ("qqp", "cls"): block([0, 1, 11], [0])}
    found = findings.delimiter_layers(roles(marks))
    assert (found.verdict, found.n) == ("holds", 6)
    assert found.value.endswith("qqp 67% and 67%")
    for role, change in (("sep", block([5], [1])), ("cls", block([6], [1]))):
        worse = marks | {("qqp", role): marks["qqp", role] | change}
        assert verdict(findings.delimiter_layers, roles(worse)) == "does not hold"
    assert verdict(findings.delimiter_layers, roles(marks | {("qqp", "cls"): set()})) == "untestable"


def test_block_layers():
    marks = {("qqp", "block"): block([0], range(5)) | block(range(1, 9), range(4))}
    found = findings.block_layers(roles(marks))
    assert found == ("block heads: qqp 5 in layer 0, 32 later (0 untestable)", 37, "holds")
    marks["qqp", "block"] |= {(4, 4)}
    assert verdict(findings.block_layers, roles(marks)) == "does not hold"
    assert verdict(findings.block_layers, roles({("qqp", "block"): set()})) == "does not hold"


def test_syntactic_layers():
    marks = {("qqp", "amod"): block(range(11), [0, 1]), ("qqp", "syntactic"): block(range(11), [1, 2])}
    found = findings.syntactic_layers(roles(marks))
    assert (found.verdict, found.n) == ("holds", 12)
    assert found.value.startswith("11 of 12 layers (qqp apart), 11 of 12")
    marks["qqp", "amod"].remove((3, 0))
    assert verdict(findings.syntactic_layers, roles(marks)) == "does not hold"


def test_syntactic_layers_of_all_tasks_together_are_only_reported():
    marks = {("qqp", "amod"): block(range(12), [0, 1]), ("mrpc", "amod"): block(range(12), [2])}
    found = findings.syntactic_layers(roles(marks))
    assert found.verdict == "does not hold"
    assert found.value.startswith("0 of 24 layers (mrpc, qqp apart), 12 of 12")


@pytest.mark.parametrize(("layers", "allowed"), [(12, 2), (6, 1)])
def test_last_layers(layers, allowed):
    marks = {(task, "sep"): block(range(layers), range(HEADS)) for task in ("qqp", "mrpc")}
    marks["qqp", "local"] = block(range(layers - 2), range(HEADS)) | block([layers - 1], range(allowed))
    found = findings.last_layers(roles(marks, layers))
    assert (found.verdict, found.n) == ("holds", 2 * allowed * HEADS)
    assert f"qqp {allowed} of {allowed * HEADS}" in found.value
    marks["qqp", "local"] |= {(layers - 1, allowed)}
    assert verdict(findings.last_layers, roles(marks, layers)) == "does not hold"


def compared(
    changed_layer: int = 10, separator: float = -0.2, other: float = 0.2, tasks=("qqp", "mrpc")
) -> Evidence:
    """Evidence of a change that is largest in one layer; the last task alone has the given masses."""
    index = pd.MultiIndex.from_product([tasks, range(12), range(HEADS)], names=["task", "layer", "head"])
    change = index.to_frame(index=False).assign(role="local")
    change["difference"] = np.where(change["layer"] == changed_layer, -3.0, 1.0)
    before = index.to_frame(index=False).assign(state="pretrained", sep=0.5, cls=0.1, other=0.4)
    after = before.assign(state="finetuned", sep=0.3, other=0.6)
    last = (after["task"] == tasks[-1]) & (after["layer"] >= 8)
    after.loc[last, ["sep", "other"]] = 0.5 + separator, 0.4 + other
    return Evidence(change=change, masses=pd.concat([before, after]))


def test_later_layers_change():
    found = findings.later_layers_change(compared())
    assert (found.verdict, found.n) == ("holds", 2)
    assert "mrpc layer 10, [SEP] -0.200, other +0.200" in found.value
    assert verdict(findings.later_layers_change, compared(changed_layer=7)) == "does not hold"
    assert verdict(findings.later_layers_change, compared(separator=0.1)) == "does not hold"
    assert verdict(findings.later_layers_change, compared(other=-0.1)) == "does not hold"


@pytest.mark.parametrize("state", ["pretrained", "finetuned"])
def test_change_needs_both_states(state):
    evidence = compared()
    one = Evidence(change=evidence.change, masses=evidence.masses[evidence.masses["state"] == state])
    assert verdict(findings.later_layers_change, one) == "untestable"


def test_extreme_p_values():
    def evidence(middle: int) -> Evidence:
        p = [0.5] * middle + [0.04, 0.97] * ((100 - middle) // 2) + [np.nan] * 3
        return Evidence(roles=pd.DataFrame({"task": "qqp", "state": "finetuned", "p": p}))

    assert findings.extreme_p_values(evidence(4)) == ("96% of p-values (qqp 96%)", 100, "holds")
    assert findings.extreme_p_values(evidence(6)) == ("94% of p-values (qqp 94%)", 100, "does not hold")


def test_asymmetric_scores():
    table = pd.DataFrame(
        {"task": ["qqp", "qqp", "mrpc", "mrpc"], "state": "finetuned", "p": [0.01, 0.2, 0.04, np.nan]}
    )
    found = findings.asymmetric_scores(Evidence(skewness=table))
    assert found == ("67% of heads and roles (mrpc 100%, qqp 50%)", 3, "holds")
    table.loc[3, "p"] = 0.06
    assert verdict(findings.asymmetric_scores, Evidence(skewness=table)) == "does not hold"


def test_only_finetuned_models_count():
    evidence = roles({("qqp", "delimiter"): block(range(12), range(HEADS))})
    before = evidence.roles.assign(
        state="pretrained", assigned=pd.array([False] * len(evidence.roles), "boolean")
    )
    both = Evidence(roles=pd.concat([before, evidence.roles]))
    assert findings.many_delimiter(both) == findings.many_delimiter(evidence)


def test_tasks_where_a_role_is_untestable_are_left_out():
    evidence = roles({("qqp", "syntactic"): {(0, 0)}, ("mrpc", "syntactic"): {(0, 0)}})
    table = evidence.roles
    table.loc[(table["role"] == "syntactic") & (table["task"] == "qqp"), "assigned"] = pd.NA
    assert set(evidence.with_testable(("local",)).roles["task"]) == {"qqp", "mrpc"}
    assert set(evidence.with_testable(("local", "syntactic")).roles["task"]) == {"mrpc"}
