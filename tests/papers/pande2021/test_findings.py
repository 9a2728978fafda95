from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

from analysis.papers.pande2021 import findings
from analysis.papers.pande2021.claims import CLAIMS
from analysis.papers.pande2021.evidence import Evidence, samples
from analysis.statistics.layers import layers_within
from analysis.statistics.roles import MASSES, ROLES
from analysis.statistics.verdicts import Finding, claim_table

HEADS = 10
BY_FUNCTION = {getattr(claim.function, "func", claim.function): claim for claim in reversed(CLAIMS)}
MANY = next(claim for claim in CLAIMS if claim.id == "C2b")


def array(data: np.ndarray, tasks: list[str], **second: tuple[str, ...]) -> xr.DataArray:
    """Data (task, role or target, layer, head) as evidence of one replicate."""
    names = second or {"role": ROLES}
    coordinates = {"task": tasks} | {name: [*values] for name, values in names.items()}
    layers, heads = data.shape[-2:]
    coordinates |= {"layer": range(layers), "head": range(heads)}
    return xr.DataArray(data, coordinates, tuple(coordinates)).expand_dims("replicate")


def labels(marks: dict[tuple[str, str], set[tuple[int, int]]], layers: int = 12) -> xr.DataArray:
    """Labels where exactly the marked heads {(task, role): {(layer, head)}} have a role."""
    tasks = sorted({task for task, _ in marks})
    found = array(np.zeros((len(tasks), len(ROLES), layers, HEADS)), tasks)
    for (task, role), heads in marks.items():
        for layer, head in heads:
            found.loc[{"task": task, "role": role, "layer": layer, "head": head}] = 1
    return found


def roles(marks: dict[tuple[str, str], set[tuple[int, int]]], layers: int = 12) -> Evidence:
    return Evidence(labels=labels(marks, layers))


def block(layers, heads) -> set[tuple[int, int]]:
    """All combinations of the layers and heads."""
    return {(layer, head) for layer in layers for head in heads}


def verdict(function: Callable[[Evidence], Finding], evidence: Evidence) -> str:
    """The verdict of the claim that a function is about."""
    return BY_FUNCTION[function].judge(evidence)[1].verdict


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
    assert layers_within(depth, region) == layers


@pytest.mark.parametrize("depth", range(1, 30))
def test_bands_split_the_layers(depth):
    cuts = [Fraction(part, 3) for part in range(4)]
    thirds = [set(layers_within(depth, region)) for region in zip(cuts, cuts[1:], strict=False)]
    assert set().union(*thirds) == set(range(depth))
    assert all(thirds)


def test_many_multifunctional_heads():
    marks = {("qqp", "cls"): block(range(12), range(2)), ("qqp", "nsubj"): block(range(12), [0])}
    found = findings.many_multifunctional(roles(marks))
    assert (found.value, found.n) == ("10% of heads (qqp 10%)", 120)
    assert verdict(findings.many_multifunctional, roles(marks)) == "holds"
    marks["qqp", "nsubj"].remove((11, 0))
    assert verdict(findings.many_multifunctional, roles(marks)) == "does not hold"


def test_many_delimiter_heads():
    marks = {
        ("qqp", "delimiter"): block(range(12), range(8)),
        ("mrpc", "delimiter"): block(range(12), range(7)),
    }
    found = findings.many_delimiter(roles(marks))
    assert found[:2] == ("75% of heads (mrpc 70%, qqp 80%)", 240)
    assert found.measures.item() == pytest.approx(0.75)
    marks["mrpc", "delimiter"] -= block(range(5), [6])
    assert MANY.judge(roles(marks))[1].verdict == "holds"  # 175 of 240 heads
    marks["mrpc", "delimiter"] -= block([5, 6], [6])
    assert MANY.judge(roles(marks))[1].verdict == "does not hold"


def test_untestable_heads_are_no_delimiter_heads_and_no_others():
    known = labels({("qqp", "delimiter"): block(range(12), range(4))})
    untestable = (known["role"] == "delimiter") & (known["head"] >= 5)
    found = findings.many_delimiter(Evidence(labels=known.where(~untestable)))
    assert found[:2] == ("80% of heads (qqp 80%)", 60)


def test_untestable_heads_have_no_role():
    marks = {("qqp", "cls"): block(range(12), range(4)), ("qqp", "nsubj"): block(range(12), range(4))}
    known = labels(marks)
    untestable = (known["role"] == "nsubj") & (known["head"] < 2)
    found = findings.many_multifunctional(Evidence(labels=known.where(~untestable)))
    assert found[:2] == ("20% of heads (qqp 20%)", 120)


def test_local_heads_are_syntactic():
    marks = {
        ("qqp", "local"): block([3], range(10)),
        ("qqp", "syntactic"): block([3], range(5)),
        ("mrpc", "local"): block([1], range(5)),
        ("mrpc", "syntactic"): block([1], range(5)),
    }
    found = findings.local_is_syntactic(roles(marks))
    assert found[:2] == ("50% to 100% (mrpc 100%, qqp 50%)", 15)
    assert found.measures["unit"].values.tolist() == ["mrpc", "qqp"]
    assert verdict(findings.local_is_syntactic, roles(marks)) == "holds"
    marks["qqp", "syntactic"].remove((3, 0))
    assert verdict(findings.local_is_syntactic, roles(marks)) == "does not hold"
    marks["qqp", "local"].clear()
    assert findings.local_is_syntactic(roles(marks)).n == 5
    marks["mrpc", "local"].clear()
    assert verdict(findings.local_is_syntactic, roles(marks)) == "untestable"


def test_replicate_without_local_heads_has_nothing_to_measure():
    marks = {("qqp", "local"): block([3], range(4)), ("qqp", "syntactic"): block([3], range(4))}
    whole = roles(marks).followed_by(roles(marks | {("qqp", "local"): set()}))
    np.testing.assert_array_equal(findings.local_is_syntactic(whole).measures, [[1, np.nan]])


@pytest.mark.parametrize(("layers", "middle", "initial"), [(12, 7, 2), (6, 3, 1)])
def test_multifunctional_layers_depend_on_the_task(layers, middle, initial):
    def evidence(mrpc_layer, qqp_layer):
        marks = {(task, "delimiter"): block(range(layers), range(HEADS)) for task in ("mrpc", "qqp", "rte")}
        marks["mrpc", "local"] = block([mrpc_layer], range(4))
        marks["qqp", "local"] = block([qqp_layer], range(4))
        return roles(marks, layers)

    found = findings.multifunctional_layers(evidence(middle, initial))
    assert found.n == 2
    assert "rte" not in found.value
    assert verdict(findings.multifunctional_layers, evidence(middle, initial)) == "holds"
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
    assert found[:2] == ("heads per layer: mrpc 1.0 in layers 5-9, 0.9 elsewhere", 1)
    assert found.measures.item() == pytest.approx(1 - 6 / 7)


def test_delimiter_layers():
    marks = {("qqp", "sep"): block([5, 7, 9], [0, 1]), ("qqp", "cls"): block([0, 1, 11], [0, 1, 2])}
    found = findings.delimiter_layers(roles(marks))
    assert found.value.endswith("qqp 67% and 67%")
    assert found.n == {"qqp [SEP]": 6, "qqp [CLS]": 9}
    assert found.measures["unit"].values.tolist() == ["qqp [SEP]", "qqp [CLS]"]
    assert verdict(findings.delimiter_layers, roles(marks)) == "holds"
    for role, change in (("sep", block([4], [1, 2])), ("cls", block([6], range(3)))):
        worse = marks | {("qqp", role): marks["qqp", role] | change}
        assert verdict(findings.delimiter_layers, roles(worse)) == "does not hold"


def test_few_heads_do_not_tell_where_they_sit():
    marks = {
        ("qqp", "sep"): block([7, 9], [0, 1]),
        ("qqp", "cls"): block([0, 1], range(4)),
        ("mrpc", "sep"): {(0, 0)},
    }
    found = findings.delimiter_layers(roles(marks))
    assert found.measures is None
    assert found.value == "fewer than 5: 1 [SEP] heads in mrpc, 4 [SEP] heads in qqp, 0 [CLS] heads in mrpc"
    claim = BY_FUNCTION[findings.delimiter_layers]
    table = claim_table([claim], roles(marks))
    assert (table.loc[0, "verdict"], table.loc[0, "n"]) == ("untestable", 0)


def test_n_is_that_of_the_unit_that_decides():
    marks = {("qqp", "sep"): block([5, 7, 9], [0, 1]), ("qqp", "cls"): block([0, 1, 2], [0, 1, 2])}
    table = claim_table([BY_FUNCTION[findings.delimiter_layers]], roles(marks))
    assert (table.loc[0, "n"], table.loc[0, "unit"]) == (6, "qqp [SEP]")


def test_block_layers():
    marks = {("qqp", "block"): block([0], range(5)) | block(range(1, 5), [0])}
    found = findings.block_layers(roles(marks))
    assert found[:2] == ("block heads in layer 0: qqp 5 of 9 (0 untestable)", 9)
    assert found.measures.item() == pytest.approx(5 / 9)
    assert verdict(findings.block_layers, roles(marks)) == "holds"
    marks["qqp", "block"] |= {(4, 4)}
    assert verdict(findings.block_layers, roles(marks)) == "does not hold"
    marks["mrpc", "block"] = block([0], range(3))
    assert findings.block_layers(roles(marks)).n == {"mrpc": 3, "qqp": 10}
    assert verdict(findings.block_layers, roles({("qqp", "block"): set()})) == "untestable"


def test_syntactic_layers():
    marks = {("qqp", "amod"): block(range(11), [0, 1]), ("qqp", "syntactic"): block(range(11), [1, 2])}
    found = findings.syntactic_layers(roles(marks))
    assert found.n == 12
    assert found.value.startswith("11 of 12 layers (qqp apart), 11 of 12")
    assert verdict(findings.syntactic_layers, roles(marks)) == "holds"
    marks["qqp", "amod"].remove((3, 0))
    assert verdict(findings.syntactic_layers, roles(marks)) == "does not hold"


def test_syntactic_layers_of_all_tasks_together_are_only_reported():
    marks = {("qqp", "amod"): block(range(12), [0, 1]), ("mrpc", "amod"): block(range(12), [2])}
    found = findings.syntactic_layers(roles(marks))
    assert found.value.startswith("0 of 24 layers (mrpc, qqp apart), 12 of 12")
    assert verdict(findings.syntactic_layers, roles(marks)) == "does not hold"


@pytest.mark.parametrize(("layers", "allowed"), [(12, 2), (6, 1)])
def test_last_layers(layers, allowed):
    marks = {(task, "sep"): block(range(layers), range(HEADS)) for task in ("qqp", "mrpc")}
    marks["qqp", "local"] = block(range(layers - 2), range(HEADS)) | block([layers - 1], range(allowed))
    found = findings.last_layers(roles(marks, layers))
    assert found.n == 2 * allowed * HEADS
    assert f"qqp {allowed} of {allowed * HEADS}" in found.value
    assert verdict(findings.last_layers, roles(marks, layers)) == "holds"
    marks["qqp", "local"] |= {(layers - 1, allowed)}
    assert verdict(findings.last_layers, roles(marks, layers)) == "does not hold"


def compared(
    changed_layer: int = 10, separator: float = -0.2, other: float = 0.2, tasks=("mrpc", "qqp")
) -> Evidence:
    """Evidence of a change that is largest in one layer; the last task alone has the given masses."""
    change = np.full((len(tasks), len(ROLES), 12, HEADS), np.nan)
    change[:, 0] = np.where(np.arange(12) == changed_layer, -3.0, 1.0)[:, None]
    steps = np.empty((len(tasks), 3, 12, HEADS))
    steps[:] = np.array([-0.2, 0.0, 0.2])[:, None, None]
    steps[-1, :, 8:] = np.array([separator, 0.0, other])[:, None, None]
    mass = array(steps, [*tasks], target=(*MASSES,))
    return Evidence(change=array(change, [*tasks]), mass=mass)


def test_later_layers_change():
    found = findings.later_layers_change(compared())
    assert found.n == 2
    assert "qqp layer 10, without special tokens 10" in found.value
    assert found.measures.sel(unit="qqp").item() == 2
    assert verdict(findings.later_layers_change, compared()) == "holds"
    assert verdict(findings.later_layers_change, compared(changed_layer=7)) == "does not hold"


def test_special_tokens_count_once_or_not_at_all():
    """Attention to [CLS] changes most in layer 10, the rest in layer 2: the claim must hold in both."""
    change = np.zeros((1, len(ROLES), 12, HEADS))
    change[0, ROLES.index("local"), 2] = 1.0
    change[0, [ROLES.index("cls"), ROLES.index("delimiter")], 10] = 3.0
    evidence = Evidence(change=array(change, ["qqp"]))
    found = findings.later_layers_change(evidence)
    assert found.value == "most changed layer: qqp layer 10, without special tokens 2"
    roles_left, words = 9, 7
    assert found.measures.sel(unit="qqp").item() == pytest.approx((3 - 1) / roles_left)
    assert found.measures.sel(unit="qqp without special tokens").item() == pytest.approx(-1 / words)
    assert verdict(findings.later_layers_change, evidence) == "does not hold"


def test_attention_leaves_separators_for_other_tokens():
    lost, won = (find(compared()) for find in (findings.separators_lose, findings.others_gain))
    assert lost.value.endswith("last third: mrpc -0.200, qqp -0.200")
    assert won.value.endswith("last third: mrpc +0.200, qqp +0.200")
    np.testing.assert_allclose(lost.measures.squeeze(), [0.2, 0.2])
    assert (
        verdict(findings.separators_lose, compared()) == verdict(findings.others_gain, compared()) == "holds"
    )
    assert verdict(findings.separators_lose, compared(separator=0.1)) == "does not hold"
    assert verdict(findings.others_gain, compared(separator=0.1)) == "holds"
    assert verdict(findings.others_gain, compared(other=-0.1)) == "does not hold"


def test_change_needs_attention_masses():
    evidence = compared()
    unknown = Evidence(change=evidence.change, mass=evidence.mass * np.nan)
    assert verdict(findings.separators_lose, unknown) == "untestable"
    some = Evidence(change=evidence.change, mass=evidence.mass.where(evidence.mass["task"] != "qqp"))
    assert findings.separators_lose(some).n == 1


def test_misleading_means():
    """Of 20 heads with a high mean, 3 fail; 2 of the others pass; one is untestable."""
    known = labels({("qqp", "local"): block([0, 1], range(HEADS))}, layers=2)
    above = known.copy()
    known.loc[{"role": "local", "layer": 0, "head": [0, 1, 2]}] = 0
    known.loc[{"role": "sep", "layer": 0, "head": [0, 1]}] = 1
    known.loc[{"role": "local", "layer": 1, "head": 0}] = np.nan
    found = findings.misleading_means(Evidence(labels=known, above=above))
    assert found.value == (
        "16% of heads and roles with a mean above tau fail the test (qqp 16%); 2 pass it with a mean not above tau"
    )
    assert found.n == 19
    assert found.measures.item() == pytest.approx(3 / 19)
    assert verdict(findings.misleading_means, Evidence(labels=known, above=above)) == "holds"
    assert verdict(findings.misleading_means, Evidence(labels=above, above=above)) == "does not hold"
    assert verdict(findings.misleading_means, Evidence(labels=known, above=0 * above)) == "untestable"


def test_roles_left_out_do_not_make_a_head_multifunctional():
    marks = {("qqp", "cls"): block(range(12), [0]), ("qqp", "nsubj"): block(range(12), [0, 1])}
    marks["qqp", "local"] = block([6], [1, 2])
    assert findings.many_multifunctional(roles(marks)).measures.item() == pytest.approx(13 / 120)
    without = findings.many_multifunctional(roles(marks), without=("delimiter",))
    assert without.measures.item() == pytest.approx(1 / 120)
    layers = findings.multifunctional_layers(roles(marks), without=("delimiter",))
    assert layers.measures.item() == pytest.approx(0 - 1 / 8)


def test_extreme_p_values():
    def evidence(middle: int) -> Evidence:
        p = [0.5] * middle + [0.04, 0.97] * ((100 - middle) // 2) + [np.nan] * 10
        return Evidence(p=array(np.array(p).reshape(1, 1, 11, 10), ["qqp"], role=("local",)))

    found = findings.extreme_p_values(evidence(4))
    assert found[:2] == ("96% of p-values (qqp 96%)", 100)
    assert verdict(findings.extreme_p_values, evidence(4)) == "holds"
    assert verdict(findings.extreme_p_values, evidence(6)) == "does not hold"


def test_asymmetric_scores():
    def evidence(*skewed: float) -> Evidence:
        return Evidence(skewed=array(np.reshape(skewed, (2, 1, 1, 2)), ["mrpc", "qqp"], role=("local",)))

    found = findings.asymmetric_scores(evidence(1, np.nan, 1, 0))
    assert found[:2] == ("67% of heads and roles (mrpc 100%, qqp 50%)", 3)
    assert verdict(findings.asymmetric_scores, evidence(1, np.nan, 1, 0)) == "holds"
    assert verdict(findings.asymmetric_scores, evidence(1, 0, 1, 0)) == "does not hold"


def random_evidence(seed: int) -> Evidence:
    """Arbitrary evidence of three tasks, with untestable heads."""
    rng = np.random.default_rng(seed)
    tasks, shape = ["mrpc", "qqp", "rte"], (3, len(ROLES), 6, HEADS)
    known = np.where(rng.random(shape) < 0.1, np.nan, rng.random(shape) < 0.5)
    return Evidence(
        labels=array(known, tasks),
        p=array(np.where(np.isnan(known), np.nan, rng.random(shape)), tasks),
        change=array(rng.normal(size=shape), tasks),
        mass=array(rng.normal(size=(3, 3, 6, HEADS)), tasks, target=(*MASSES,)),
        skewed=array(known, tasks),
        above=array(np.where(np.isnan(known), np.nan, rng.random(shape) < 0.6), tasks),
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_replicates_are_measured_as_the_sample_is(claim):
    first, second = random_evidence(1), random_evidence(2)
    both = claim.find(first.followed_by(second))
    assert both[:2] == claim.find(first)[:2]
    middle = claim.find(samples([first, second, first]))
    assert middle[:2] == claim.find(first)[:2]  # two of three runs are the same
    assert both.measures.dims == ("unit", "replicate")
    alone = [claim.find(evidence).measures for evidence in (first, second)]
    np.testing.assert_allclose(both.measures, np.concatenate(alone, axis=1))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_an_encoder_of_one_layer_is_no_error(claim):
    evidence = random_evidence(1)
    first = {name: known.sel(layer=[0]) for name, known in evidence.arrays.items()}
    first["labels"] = first["labels"].where(
        ~first["labels"]["role"].isin(["cls", "sep"]), 1
    )  # enough heads for C5
    assert claim.find(Evidence(**first)).measures is not None
