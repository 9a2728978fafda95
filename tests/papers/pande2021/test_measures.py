"""Every claim's measure against heads counted by hand, and the verdicts on the released maps."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from analysis.papers.pande2021 import published
from analysis.papers.pande2021.evidence import Evidence, evidence_of_labels
from analysis.papers.pande2021.measures import CLAIMS, MEASURES
from analysis.statistics.claims import STUDY, judge
from analysis.statistics.roles import MASSES, PUBLISHED_ROLES

HEADS = 10
BY_ID = {claim.id: claim for claim in CLAIMS}


def array(data: np.ndarray, tasks: list[str], **second: tuple[str, ...]) -> xr.DataArray:
    """Data (task, role or target, layer, head) as evidence of one replicate."""
    names = second or {"role": PUBLISHED_ROLES}
    coordinates = {"task": tasks} | {name: [*values] for name, values in names.items()}
    layers, heads = data.shape[-2:]
    coordinates |= {"layer": range(layers), "head": range(heads)}
    return xr.DataArray(data, coordinates, tuple(coordinates)).expand_dims("replicate")


def roles(marks: dict[tuple[str, str], set[tuple[int, int]]], layers: int = 12) -> Evidence:
    """Evidence in which exactly the marked heads {(task, role): {(layer, head)}} have a role."""
    tasks = sorted({task for task, _ in marks})
    found = array(np.zeros((len(tasks), len(PUBLISHED_ROLES), layers, HEADS)), tasks)
    for (task, role), heads in marks.items():
        for layer, head in heads:
            found.loc[{"task": task, "role": role, "layer": layer, "head": head}] = 1
    return Evidence(labels=found)


def block(layers, heads) -> set[tuple[int, int]]:
    """All combinations of the layers and heads."""
    return {(layer, head) for layer in layers for head in heads}


def values(name: str, evidence: Evidence) -> dict[str, float]:
    """The sample's measure of every unit; empty if the claim is untestable."""
    frame = MEASURES[name].of(evidence).query("replicate == 0").dropna(subset="value")
    return frame.groupby("unit", sort=False)["value"].median().to_dict()


def verdict(name: str, evidence: Evidence) -> str:
    """The verdict if every draw were like the sample."""
    claim, frame = BY_ID[name], MEASURES[name].of(evidence)
    draws = pd.concat([frame.assign(replicate=number, run=-1) for number in range(1, 100)])
    return judge(pd.concat([frame, draws]), claim.relation, claim.bound, claim.units).verdict


def test_every_claim_has_a_measure():
    assert [*BY_ID] == [*MEASURES]
    assert all(claim.by_label == ("labels" in MEASURES[claim.id].needs) for claim in CLAIMS)
    assert {claim.id for claim in CLAIMS if claim.origin == STUDY} == {"C1b", "C4b"}


def test_multifunctional_heads():
    """Three heads of 120 are local and delimiter, one of them in the sense of [CLS]; two are local and syntactic."""
    marks = {("qqp", "local"): block([3], range(5)), ("qqp", "delimiter"): block([3], [0, 1])}
    marks |= {("qqp", "cls"): block([3], [2]), ("qqp", "nsubj"): block([3], [3, 4])}
    assert values("C1", roles(marks)) == {"": pytest.approx(5 / 120)}
    assert values("C1b", roles(marks)) == {"": pytest.approx(2 / 120)}


def test_untestable_heads_are_no_delimiter_heads_and_do_not_count():
    known = roles({("qqp", "delimiter"): block(range(6), range(HEADS))}).labels
    whole = MEASURES["C2a"].of(Evidence(labels=known.where(known["layer"] < 8)))
    assert whole["value"].item() == pytest.approx(60 / 80)
    assert whole["n"].item() == 80


def test_local_heads_that_are_syntactic():
    marks = {("mrpc", "local"): block([0], range(4)), ("mrpc", "syntactic"): block([0], [0, 1, 9])}
    marks |= {("qqp", "local"): block([0], [0]), ("qqp", "syntactic"): block([0], [0])}
    evidence = roles(marks | {("sst-2", "syntactic"): block([0], [0])})
    assert values("C3", evidence) == {"mrpc": 0.5, "qqp": 1}
    assert MEASURES["C3"].of(evidence)["n"].unique() == [5]


def several(layers, task: str) -> dict[tuple[str, str], set[tuple[int, int]]]:
    """Two heads with two roles in each of the layers."""
    return {(task, role): block(layers, [0, 1]) for role in ("local", "delimiter")}


def test_layers_of_multifunctional_heads():
    evidence = roles(several(range(5, 9), "mrpc") | several(range(4), "qqp"))
    assert values("C4", evidence) == {"mrpc": pytest.approx(8 / 5), "qqp": 2}
    assert verdict("C4", evidence) == "holds"
    assert verdict("C4", roles(several([11], "mrpc") | several(range(4), "qqp"))) == "does not hold"
    assert not values("C4", roles(several([5], "rte")))


@pytest.mark.parametrize(("layers", "tested"), [(2, set()), (3, set()), (4, {"mrpc", "qqp"})])
def test_too_few_layers_on_a_side_are_untestable(layers, tested):
    """With four layers QQP's initial ones are 0 and 1, the middle ones 2 and 3."""
    evidence = roles(several([layers - 1], "mrpc") | several([0], "qqp"), layers)
    assert set(values("C4", evidence)) == tested
    assert (verdict("C4", evidence) == "untestable") == (not tested)


def test_block_heads_do_not_count_without_block():
    marks = {("mrpc", role): block([6], [0]) for role in ("local", "block")}
    assert values("C4", roles(marks))["mrpc"] > 0
    assert values("C4b", roles(marks))["mrpc"] == 0


def test_each_special_token_is_judged_alone():
    """[SEP] heads sit late, [CLS] heads late too: the first part holds, the second does not."""
    evidence = roles({("qqp", role): block([10], range(6)) for role in ("sep", "cls")})
    assert (verdict("C5a", evidence), verdict("C5b", evidence)) == ("holds", "does not hold")
    mixed = roles({("qqp", "cls"): block([0], range(6)) | block([6], range(2))})
    assert values("C5b", mixed) == {"qqp": 0.75}
    assert verdict("C5b", roles({("qqp", "cls"): block([0], range(4))})) == "untestable"


def test_block_heads_in_layer_0():
    marks = {
        ("mrpc", "block"): block([0], range(2)) | block([5], [1]),
        ("qqp", "block"): block([0], range(9)),
    }
    evidence = roles(marks | {("sst-2", "local"): block([0], [0])})
    assert values("C6", evidence) == {"mrpc": pytest.approx(2 / 3), "qqp": 1}
    assert MEASURES["C6"].of(evidence).set_index("unit")["n"].to_dict() == {"mrpc": 3, "qqp": 9}


def test_layers_with_few_syntactic_heads():
    marks = {("qqp", "syntactic"): block(range(11), [0, 1]), ("qqp", "dobj"): block(range(10), [7])}
    assert values("C7", roles(marks)) == {"": pytest.approx(2 / 12)}


def test_multifunctional_heads_of_the_last_sixth():
    assert values("C8", roles(several([10, 11, 3], "qqp"))) == {"qqp": 4 / 20}
    assert values("C8", roles(several([4, 5], "qqp"), 6)) == {"qqp": 2 / 10}


def test_later_layers_change_with_and_without_special_tokens():
    """Attention to [CLS] changes most in layer 10, the rest in layer 2: the claim must hold in both."""
    change = np.zeros((1, len(PUBLISHED_ROLES), 12, HEADS))
    change[0, PUBLISHED_ROLES.index("local"), 2] = 1.0
    change[0, [PUBLISHED_ROLES.index("cls"), PUBLISHED_ROLES.index("delimiter")], 10] = -3.0
    evidence = Evidence(change=array(change, ["qqp"]))
    expected = {"qqp": pytest.approx((3 - 1) / 9), "qqp without special tokens": pytest.approx(-1 / 7)}
    assert values("C9a", evidence) == expected
    assert verdict("C9a", evidence) == "does not hold"


@pytest.mark.parametrize(("layers", "last_third"), [(12, 4), (6, 2), (4, 1), (2, 1)])
def test_mass_moves_in_the_last_third(layers, last_third):
    steps = np.zeros((2, 3, layers, HEADS))
    steps[:, :, layers - last_third :] = np.array([-0.2, 0.0, 0.1])[:, None, None]
    steps[1] = np.nan
    evidence = Evidence(mass=array(steps, ["mrpc", "qqp"], target=(*MASSES,)))
    assert values("C9b", evidence) == {"mrpc": pytest.approx(0.2)}
    assert values("C9c", evidence) == {"mrpc": pytest.approx(0.1)}


def test_extreme_p_values_and_skewed_scores():
    p = np.full((1, len(PUBLISHED_ROLES), 1, 1), np.nan)
    p[0, :4, 0, 0] = [0.01, 0.99, 0.5, 0.06]
    assert values("C10", Evidence(p=array(p, ["qqp"]))) == {"": 0.5}
    skewed = p.copy()
    skewed[0, :4, 0, 0] = [1, 0, 1, 1]
    assert values("C11a", Evidence(skewed=array(skewed, ["qqp"]))) == {"": 0.75}


def test_means_above_tau_that_fail():
    known = roles({("qqp", "local"): block([0], range(9))}).labels
    above = roles({("qqp", "local"): block([0], range(1, 10)) | block([1], [0])}).labels
    evidence = Evidence(labels=known, above=above)
    assert values("C11b", evidence) == {"": pytest.approx(2 / 10)}
    assert not values("C11b", Evidence(labels=known, above=0 * above))


def test_values_of_the_released_maps():
    """Counted from the released labels before claims became data."""
    released = evidence_of_labels(published.roles())
    assert MEASURES["C1"].of(released)["n"].item() == 4 * 144
    assert values("C2b", released)[""] == pytest.approx(0.67, abs=0.005)
    assert min(values("C3", released).values()) == pytest.approx(0.42, abs=0.005)
    assert MEASURES["C3"].of(released)["n"].unique() == [36 + 12 + 39 + 11]
    assert set(values("C6", released)) == {"mrpc", "qnli", "qqp"}
    assert verdict("C5a", released) == verdict("C5b", released) == "holds"
    assert not values("C9a", released)
