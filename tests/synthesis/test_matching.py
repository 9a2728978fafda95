import numpy as np
import pandas as pd
import pytest
import xarray as xr
from classifiers import classifier
from headtables import score_array
from scipy import stats
from studies import error_of

from analysis.encoders import interventions
from analysis.encoders.layout import layouts
from analysis.encoders.redirection import Redirection
from analysis.scores.extraction import read_attention
from analysis.statistics.claims import claim_table, frame, not_applicable
from analysis.synthesis import matching
from analysis.synthesis import matching_measures as measures
from analysis.synthesis import matching_runs as runs
from analysis.synthesis.matching_runs import Classifier
from analysis.tables import stacked
from analysis.texts.examples import Example

LAYERS, HEADS, N = 3, 4, 160
MATCHING = [(1, 1), (2, 0)]
PAIRS = [
    Example("one", "The cat ran home .", "A cat and a dog ran away .", 1),
    Example("two", "Nothing here", "is shared there", 0),
    Example("three", "cat", "cat", 1),
]
POSITIVE = np.arange(N) % 2 == 0


def scores(planted: float = 20.0) -> xr.DataArray:
    """Random scores of pairs, of which a third share no word; the heads MATCHING attend to matching pieces."""
    values = np.random.default_rng(0).gamma(2, 0.5, (N, len(matching.MATCH_SIEVES), LAYERS, HEADS))
    for layer, head in MATCHING:
        values[:, 0, layer, head] += planted
    values[::3] = np.nan
    return score_array(values, matching.MATCH_SIEVES)


def test_heads_that_match_in_every_task_are_the_matching_heads():
    table = matching.match_table(scores())
    assert table["n"].unique().tolist() == [N - len(range(0, N, 3))]
    assert ((table["low"] < table["match"]) & (table["match"] < table["high"])).all()
    role = table.rename(columns={"match": "mean"}).assign(role="match")
    lower = role.assign(mean=role["mean"] - 3 * (role["layer"] == 1))
    assert matching.matching_heads([role, lower]) == [(2, 0), (1, 1)]  # the highest mean first
    assert matching.matching_heads([role, role.assign(mean=1.0)]) == []
    assert matching.names_of(MATCHING) == "1-1, 2-0"
    assert matching.matching_heads([role], heads=[[0, 1]]) == [(0, 1)]
    for head in ([9, 9], [0], [0, 1, 2]):
        message = error_of(matching.matching_heads, [role], heads=[head])
        assert message.startswith(f"heads has {head}: give [layer, head], from [0, 0] to ")


def test_attention_across_is_that_of_matched_and_of_other_pieces():
    encoder, sums = classifier("bert", 2), {True: [], False: []}
    for example in PAIRS:
        layout, attention = read_attention(encoder, example)
        texts = layout.text
        words = [set(np.array(layout.tokens)[texts == side]) - {"."} for side in (0, 1)]
        for place in np.flatnonzero((texts >= 0) & ~layout.punctuation):
            matched = layout.tokens[place] in words[1 - texts[place]]
            sums[matched] += [attention[1, 0, place, texts == 1 - texts[place]].sum()]
    result = matching.attention_across(encoder, PAIRS, [(1, 0)])
    assert result == pytest.approx((np.mean(sums[True]), np.mean(sums[False])), abs=1e-6)
    assert matching.Masses(0.6, 0.2).dose == pytest.approx(0.5)
    assert matching.Masses(0.1, 0.2).dose == 0


def edited(**options: object) -> Classifier:
    return Classifier("mrpc", 0, classifier("bert", 2), PAIRS, 1, **options)


def test_every_edit_runs_and_pairs_without_shared_words_keep_what_matched_pieces_say():
    run = edited()
    moves = {
        "removed": Redirection("matched", "nowhere", matching.MATCHING),
        matching.TO_OWN: Redirection("matched", "own text", matching.MATCHING),
        "positions alone": matching.Twins(run.encoder, run.layouts()),
        **matching.value_edits(run.encoder, run.layouts()),
        **matching.flag(run.encoder, run.layouts()),
    }
    edits = matching.edits(run.encoder, [(0, 1)], moves)
    scores = runs.match_scores(run, edits)
    changed = abs(scores - scores[0])
    assert [edit.name for edit in edits] == [*moves]
    moved = changed.sel(intervention=["removed", matching.TO_OWN])
    assert (moved.sel(sequence="two") < 1e-6).all()
    assert (moved.sel(sequence="one") > 1e-5).all()
    rest = [matching.OTHER_PAIR, matching.TYPES, matching.POSITIONS, matching.FLAG, "positions alone"]
    assert (changed.sel(intervention=rest).max("sequence") > 1e-5).all()
    table = runs.answer_table(scores)
    first = table.set_index("edit").loc["none"]
    assert first["fall"] == first["shift"] == 0
    assert first["logit"] == pytest.approx(scores[0].mean())
    assert matching.edits(run.encoder, [], moves) == []


def test_tables_of_runs_name_the_run_and_the_baseline():
    run = edited(trained=False)
    table = runs.by_run({run.run: {"edit": ["none"]}}, [run], pd.DataFrame)
    assert table.iloc[0].to_dict() == {
        "task": "mrpc", "seed": 0, "trained": False, "edit": "none", "overlap_auc": 1.0,
    }  # fmt: skip
    assert np.isnan(edited()._replace(dev=PAIRS[1:2]).overlap_auc())
    assert {"task", "edit", "overlap_auc"} <= {*runs.by_run({}, [], pd.DataFrame)}


def test_other_sets_are_heads_of_the_same_layers():
    sets = matching.other_sets(MATCHING, 4, 60)
    assert len({*sets}) == len(sets) == 9
    assert all([layer for layer, _ in heads] == [1, 2] and not {*heads} & {*MATCHING} for heads in sets)
    assert len(matching.other_sets([(0, 3), *MATCHING], 12, 60)) == 60
    assert matching.other_sets([(0, 0), (0, 1), (0, 2)], 4, 60) == []
    assert matching.neighbours([(1, 1), (1, 2), (2, 3)], 4) == [(1, 3), (1, 0), (2, 0)]


def test_sets_are_ablated_and_turn_the_dial():
    run = edited()
    scores = runs.match_scores(run, runs.set_interventions(run, [(0, 1)], 2, 0.5))
    table = runs.set_table(scores, [(0, 1)])
    assert table["set"].tolist() == ["none", runs.SET, "other heads", "other heads"]
    assert table["heads"].iloc[1] == "0-1"
    alone = runs.match_scores(run, interventions.sets(run.encoder, {"ablated": [(0, 1)]}))
    assert table["auc"].iloc[1] == pytest.approx(runs.answer_table(alone)["auc"].iloc[1])
    turned = runs.match_scores(run, interventions.sets(run.encoder, {"dial": [(0, 1)]}, Redirection(), 0.5))
    assert table["shift"].iloc[1] == pytest.approx(float((turned[1] - turned[0]).mean()), abs=1e-6)
    places = [*np.ndindex(run.encoder.layers, run.encoder.heads)]
    roles = pd.DataFrame(places, columns=["layer", "head"])
    roles = roles.assign(role="local", mean=np.arange(len(places))[::-1])
    of_roles = runs.role_interventions(run, [(0, 1)], pd.concat([roles, roles.assign(role="match")]))
    assert [named.name for named in of_roles] == [runs.SET, "local"]
    assert np.argwhere(of_roles[1].gate == 0).tolist() == [[0, 0]]  # the highest; of two, 0-1 would stay out
    two = runs.role_interventions(run, [(0, 1), (0, 0)], roles)
    assert not {(0, 0), (0, 1)} & {*map(tuple, np.argwhere(two[1].gate == 0).tolist())}
    grown = runs.growing_table(runs.match_scores(run, runs.growing_interventions(run, [(0, 1), (0, 2)], 0.5)))
    assert grown["k"].tolist() == [0, 1, 2]
    assert grown["heads"].tolist() == ["", "0-1", "0-1, 0-2"]
    assert grown["fall"].iloc[1] == pytest.approx(table["fall"].iloc[1])


def test_a_text_beside_itself_keeps_its_words():
    texts = [*PAIRS, Example("long", "Some birds sing while small birds sleep", "x", 0)]
    pairs = matching.beside_itself(texts, 5)
    assert [len(examples) for examples in pairs.values()] == [2, 2, 2]
    same, exchanged, shuffled = (examples[-1] for examples in pairs.values())
    assert same.text_a == same.text_b == exchanged.text_a
    words, others = (text.split() for text in exchanged.texts)
    assert sorted(words) == sorted(others) == sorted(shuffled.text_b.split())
    assert sum(word != other for word, other in zip(words, others, strict=True)) == 2
    table = runs.identical_table(runs.identical_scores(edited()._replace(dev=texts), [], 5))
    assert table["pair"].tolist() == [*pairs]
    assert (table["low"] < table["high"]).all()


def test_crossing_is_1_where_only_the_other_text_counts_and_0_where_any_text_will_do():
    rng, names = np.random.default_rng(0), ["none", matching.TO_OWN, matching.TO_WRONG, matching.TO_SINK]
    noise = rng.normal(size=N)
    for own, expected in ((0.0, 1.0), (2.0, 0.0)):
        signal = np.array([2.0, own, 2.0, 0.0])[:, None] * POSITIVE
        table = runs.crossing_table(match_logits(noise + signal, names))
        assert table["crossing"].tolist() == pytest.approx([expected], abs=0.1)
        assert table["low"].iloc[0] <= expected + 1e-6
        assert table["high"].iloc[0] >= expected - 1e-6
    nothing = match_logits(noise + 2.0 * POSITIVE + np.zeros((4, 1)), names)
    assert runs.crossing_table(nothing)["crossing"].isna().all()


def match_logits(values: np.ndarray, names: list[str], positive: np.ndarray = POSITIVE) -> xr.DataArray:
    """Match logits (intervention, sequence), with a first axis for runs if there are any."""
    coordinates = {"intervention": names, "positive": ("sequence", positive)}
    return xr.DataArray(values, coordinates, ("run", "intervention", "sequence")[-values.ndim :])


def test_overlap_and_groups_by_it():
    shares = matching.overlap(layouts(classifier("bert").tokenizer, PAIRS))
    assert shares[1:].tolist() == [0, 1]
    assert shares[0] == pytest.approx((2 / 4 + 2 / 7) / 2)
    answers = np.array([[1, -1, 1], [-1, -1, 1], [1, 1, 1.0]])
    array = match_logits(answers, ["none", matching.BOTH, matching.NATURAL], np.array([True, False, True]))
    table = runs.group_table(array, shares).set_index("group")
    columns = ["n", "share", "share_ablated", "share_dial"]
    assert table.loc["matching pairs, many words shared", columns].tolist() == [1, 1, 1, 1]
    assert table.loc["matching pairs, some words shared", columns].tolist() == [1, 1, 0, 1]
    assert table.loc["other pairs, few words shared", columns].tolist() == [1, 0, 0, 1]


SETS = ["none", runs.SET, "0-0, 1-1", "0-1, 1-2"]


def planted(names: list[str], strong: tuple[str, ...], count: int = 3, strength: float = 0.2) -> xr.DataArray:
    """Match logits of trained runs; the named interventions take the signal away."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(count, 1, N)) + 0.05 * rng.normal(size=(count, len(names), N))
    signal = np.array([strength if name in strong else 2.0 for name in names])
    return match_logits(noise + signal[:, None] * POSITIVE, names)


def attention(strong: tuple[str, ...], dial: float = 2.0, own: float = 0.0) -> xr.DataArray:
    """Match logits under the edits of matched words, and under the dial, which adds to all of them."""
    edits = [matching.BOTH, matching.UNIFORM, matching.TO_OWN, matching.TO_WRONG, matching.TO_SINK]
    moved = planted(["none", *edits], strong)
    whole = moved.values[:, :1]
    values = np.concatenate([moved.values, whole + dial, whole + own, whole], axis=1)
    return match_logits(values, ["none", *edits, matching.NATURAL, matching.OWN, matching.SINK])


def beside(own: float) -> xr.DataArray:
    """Match logits of identical texts: matches, but for the share `own` when heads are turned to the own text."""
    called = np.ones((3, 2, N))
    called[:, 1, int(own * N) :] = -1
    return match_logits(called, ["none", matching.TO_OWN])


STRONG = (matching.BOTH, matching.TO_OWN, matching.TO_SINK)
READ = ["none", matching.TO_OWN, matching.OTHER_PAIR, matching.POSITIONS]


def verdicts(**changed: object) -> dict[str, str]:
    arguments = {
        "heads": MATCHING, "before": scores(), "sets": planted(SETS, (runs.SET,)),
        "single": planted(SETS, ("0-0, 1-1",)),
        "attention": attention(STRONG), "values": planted(READ, (matching.TO_OWN, matching.POSITIONS)),
        "same": beside(0.2), "roles": planted(["none", runs.SET, "local", "block"], (runs.SET,)),
        "blocked": {"matching heads": 0.2, "other heads": 2.0},
    } | changed  # fmt: skip
    noise = np.random.default_rng(4).normal(size=(3, 1, N))
    signals = arguments["blocked"].items()
    conditions = {name: [*match_logits(noise + signal * POSITIVE, [name])] for name, signal in signals}
    sections = ("sets", "roles", "attention", "values")
    pairs = {name: {("mrpc", run): item for run, item in enumerate(arguments[name])} for name in sections}
    of_texts = {("sst-2", run): array for run, array in enumerate(arguments["single"])}
    same = {("mrpc", run): array for run, array in enumerate(arguments["same"])}
    texts = [Example("one", "A text")]
    classifiers = [Classifier("mrpc", run, None, PAIRS, 1) for run in range(3)]
    singles = [Classifier("sst-2", run, None, texts, 1) for run in range(3)]
    match_scores = {("pretrained", "mrpc"): arguments["before"].sel(role="match")}
    blocked = {"mrpc": conditions} if conditions else {}
    of_task = measures.frames(classifiers, arguments["heads"], match_scores, pairs, same, blocked, 5)
    frames = measures.over_tasks(stacked(of_task, "claim"))
    frames["X3"] = measures.single_texts(singles, arguments["heads"], of_texts)
    return claim_table(measures.CLAIMS, frames).set_index("claim")["verdict"].to_dict()


def test_claims_are_supported_where_planted_heads_carry_the_signal():
    result = verdicts()
    assert result.pop("X1") == "not supported"  # two of twelve heads are more than a twentieth
    assert {*result.values()} == {"supported"}
    assert verdicts(before=scores(0))["X1"] == "supported"


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("X2", {"sets": planted(SETS, ("0-0, 1-1",))}),
        ("X3", {"single": planted(SETS, (runs.SET,))}),
        ("X4", {"attention": attention((matching.BOTH,))}),
        ("X5", {"attention": attention((*STRONG, matching.TO_WRONG))}),
        ("X6", {"attention": attention(STRONG, 0.1, 2.0)}),
        ("X7", {"roles": planted(["none", runs.SET, "local"], ("local",))}),
        ("X8", {"blocked": {"matching heads": 2.0, "other heads": 0.2}}),
        ("X9", {"values": planted(READ, (matching.TO_OWN, matching.OTHER_PAIR))}),
        ("X10", {"values": planted(READ, (matching.TO_OWN,))}),
        ("X11", {"same": beside(0.95)}),
        ("X12", {"attention": attention((matching.BOTH, matching.TO_SINK))}),
        ("X13", {"attention": attention(STRONG, 2.0, 1.9)}),
        ("X14", {"same": -beside(0.95)}),
    ],
)
def test_claims_are_refused_one_by_one(claim: str, changed: dict):
    assert verdicts(**changed)[claim] == "not supported"


def test_units_of_several_tasks_are_means_and_reasons_count_where_no_task_has_a_value():
    first = {"X7": frame({"local": (0.1, 0.0, 0.2)}, runs=3), "X8": not_applicable("not trained")}
    second = {"X7": frame({"local": (0.3, 0.2, 0.4)}, runs=2), "X8": frame({"mrpc": (0.5, 0.4, 0.6)}, runs=3)}
    frames = measures.over_tasks(
        pd.concat([stacked(first, "claim"), stacked(second, "claim")], ignore_index=True)
    )
    role = frames["X7"].iloc[0]
    half = 0.1 / np.sqrt(2)
    assert role[["value", "low", "high"]].tolist() == pytest.approx([0.2, 0.2 - half, 0.2 + half])
    assert role["runs"] == 2
    assert frames["X8"][["unit", "value"]].to_numpy().tolist() == [["mrpc", 0.5]]
    unmeasured = measures.over_tasks(pd.concat([stacked({"X8": first["X8"]}, "claim")] * 2))
    assert unmeasured["X8"]["reason"].tolist() == ["not trained"]


def test_without_matching_heads_claims_are_not_applicable():
    assert {*verdicts(heads=[], blocked={}).values()} == {"not applicable"}


def test_differences_of_shares_near_1_are_covered():
    """Texts that are nearly always called a match, and less often with an edit: one run, 60 texts."""
    rng, covered, draws = np.random.default_rng(0), 0, 500
    for _ in range(draws):
        first, second = (rng.random((1, 60)) < share for share in (0.98, 0.6))
        _, low, high = measures.share_difference(first.astype(float), second.astype(float))
        covered += low <= 0.98 - 0.6 <= high
    assert 0.93 <= covered / draws <= 0.99


def test_the_difference_of_two_shares_is_that_of_newcombe_and_three_runs_widen_it():
    """9 of 10 against 3 of 10, by method 10 of Newcombe 1998."""
    first, second, runs = (
        (np.arange(10) < np.array(counts)[:, None]).astype(float) for counts in ([9], [3], [10, 9, 8])
    )
    assert measures.share_difference(first, second) == pytest.approx((0.6, 0.1705, 0.8090), abs=1e-4)
    low, high = stats.ttest_1samp([0.7, 0.6, 0.5], 0).confidence_interval()
    ends = 0.6 - np.hypot(0.6 - 0.1705, 0.6 - low), 0.6 + np.hypot(0.8090 - 0.6, high - 0.6)
    assert measures.share_difference(runs, second)[1:] == pytest.approx(ends, abs=1e-4)


def test_shifts_of_regions_by_label():
    scores = match_logits(np.stack([np.zeros(N), np.where(POSITIVE, -1.0, 0.5)]), ["none", "other text"])
    row = runs.region_table(scores).iloc[0]
    assert row[["region", "shift_matching", "shift_other"]].tolist() == ["other text", -1, 0.5]
    assert row["shift"] == pytest.approx(-0.25)


def test_training_twice_with_heads_blocked_decides_nothing():
    noise = np.random.default_rng(4).normal(size=(2, 1, N))
    strengths = {"matching heads": 0.2, "other heads": 2.0}
    answers = {name: [*match_logits(noise + signal * POSITIVE, [name])] for name, signal in strengths.items()}
    table = claim_table(measures.CLAIMS, {"X8": measures.needed({"mrpc": answers})}).set_index("claim")
    assert table.loc["X8", ["verdict", "reason"]].tolist() == ["inconclusive", "2 runs"]
