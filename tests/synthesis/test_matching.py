from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from classifiers import classifier
from headtables import score_array

from analysis.encoders.interventions import predict
from analysis.encoders.layout import layouts
from analysis.scores.extraction import read_attention
from analysis.statistics.claims import claim_table
from analysis.statistics.effects import match_logit
from analysis.synthesis import matching
from analysis.synthesis import matching_measures as measures
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
    values = np.random.default_rng(0).gamma(2, 0.5, (N, len(matching.ROLES), LAYERS, HEADS))
    for layer, head in MATCHING:
        values[:, 0, layer, head] += planted
    values[::3] = np.nan
    return score_array(values, matching.ROLES)


def test_heads_that_match_in_every_task_are_the_matching_heads():
    table = matching.match_table(scores())
    assert table["n"].unique().tolist() == [N - len(range(0, N, 3))]
    assert ((table["low"] < table["match"]) & (table["match"] < table["high"])).all()
    assert matching.matching_heads(table) == MATCHING
    both = pd.concat([table, matching.match_table(scores(0))])
    assert matching.matching_heads(both) == []
    assert matching.names_of(MATCHING) == "1-1, 2-0"


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


def test_every_edit_runs_and_pairs_without_shared_words_keep_what_matched_pieces_say():
    encoder = classifier("bert", 2)
    edits = matching.edits(encoder, [(0, 1)], "cls", 0.4, PAIRS, 128)
    logits = predict(encoder, PAIRS, edits, progress=False)
    changed = abs(logits - logits[0]).max("class")
    names = [edit.name for edit in edits]
    assert len({*names}) == len(names) == 22
    moved = changed.sel(intervention=["removed", "to the sink", matching.TO_OWN, matching.TO_WRONG])
    assert (moved.sel(sequence="two") < 1e-6).all()
    assert (moved.sel(sequence="one") > 1e-5).all()
    assert changed.sel(intervention="positions alone").max() > 1e-4
    table = matching.answer_table(matching.match_scores(logits, 1, np.array([True, False, True])))
    first = table.set_index("edit").loc["none"]
    assert first["fall"] == first["shift"] == 0
    assert first["logit"] == pytest.approx(match_logit(logits.values[0], 1).mean())


def test_reference_sets_are_other_heads_of_the_same_layers():
    sets = matching.reference_sets(MATCHING, 4)
    assert len({*sets}) == len(sets) == 9
    assert all([layer for layer, _ in heads] == [1, 2] and not {*heads} & {*MATCHING} for heads in sets)
    random = matching.reference_sets([(0, 3), *MATCHING], 12)
    assert len({*random}) == len(random) in range(150, matching.SETS + 1)  # of equal draws, one stays
    assert matching.reference_sets([(0, 0), (0, 1)], 3) == []
    assert matching.neighbours([(1, 1), (1, 2), (2, 3)], 4) == [(1, 3), (1, 0), (2, 0)]


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
    table = matching.group_table(array, shares).set_index("group")
    columns = ["n", "share", "share_ablated", "share_dial"]
    assert table.loc["matching pairs, many words shared", columns].tolist() == [1, 1, 1, 1]
    assert table.loc["other pairs, few words shared", columns].tolist() == [1, 0, 0, 1]


SINGLES = [f"{layer}-{head}" for layer in range(LAYERS) for head in range(HEADS)]
OWN_NAMES = [f"{layer}-{head}" for layer, head in MATCHING]


def answers(
    strong: tuple[str, ...] = (*OWN_NAMES, matching.BOTH, matching.TO_OWN), runs: int = 3
) -> xr.DataArray:
    """Match logits of trained runs; the named interventions take the signal away."""
    names = ["none", *SINGLES, matching.BOTH, matching.TO_OWN, matching.TO_WRONG]
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(runs, 1, N)) + 0.05 * rng.normal(size=(runs, len(names), N))
    signal = np.array([0.2 if name in strong else 2.0 for name in names])
    return match_logits(noise + signal[:, None] * POSITIVE, names)


def shifts(own: float, dial: float = 2.0) -> xr.DataArray:
    names = [matching.NATURAL, matching.OWN, *(f"set {number}" for number in range(9))]
    values = np.random.default_rng(3).normal(scale=0.3, size=(len(names), N)) + 0.1
    values[0] += dial
    values[1] += own
    return match_logits(values, names)


def verdicts(**changed: object) -> dict[str, str]:
    arguments = {
        "heads": MATCHING, "before": scores(), "pairs": answers(), "singles": answers(("0-0",)), "shift": shifts(0),
        "role": np.arange(LAYERS * HEADS)[::-1], "blocked": {"matching heads": 0.2, "other heads": 2.0},
    } | changed  # fmt: skip
    places = pd.DataFrame([*np.ndindex(LAYERS, HEADS)], columns=["layer", "head"]).assign(role="local")
    heads, noise = arguments["heads"], np.random.default_rng(4).normal(size=(2, 1, N))
    conditions = {
        name: [*match_logits(noise + signal * POSITIVE, [name])]
        for name, signal in arguments["blocked"].items()
    }
    by_task = {"mrpc": arguments["pairs"], "sst-2": arguments["singles"]}
    runs = {(task, run): logits for task, array in by_task.items() for run, logits in enumerate(array)}
    study = SimpleNamespace(trained=[*runs], dev=by_task, pairs=[run for run in runs if run[0] == "mrpc"])
    match_scores = {("pretrained", "mrpc"): arguments["before"].sel(role="match"),
                    ("untrained", "mrpc"): scores(0).sel(role="match")}  # fmt: skip
    roles, shift = {"mrpc": places.assign(mean=arguments["role"])}, {"mrpc": arguments["shift"]}
    blocked = {"mrpc": conditions} if conditions else {}
    frames = measures.frames(study, runs, heads, match_scores, 5, shift, roles, blocked)
    return claim_table(measures.CLAIMS, frames).set_index("claim")["verdict"].to_dict()


def test_claims_are_supported_where_planted_heads_carry_the_signal():
    result = verdicts()
    assert result.pop("X1") == "not supported"  # two of twelve heads are more than a twentieth
    assert {*result.values()} == {"supported"}
    assert verdicts(before=scores(0))["X1"] == "supported"


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("X2", {"pairs": answers(("1-1", "0-0", "0-1", matching.BOTH))}),
        ("X3", {"singles": answers()}),
        ("X4", {"pairs": answers((*OWN_NAMES, matching.BOTH))}),
        ("X5", {"pairs": answers((*OWN_NAMES, matching.BOTH, matching.TO_WRONG))}),
        ("X6", {"shift": shifts(0, -2.0)}),
        ("X7", {"role": [float(name == "0-0") for name in SINGLES], "pairs": answers(("0-0", "1-1"))}),
        ("X8", {"blocked": {"matching heads": 2.0, "other heads": 0.2}}),
    ],
)
def test_claims_are_refused_one_by_one(claim: str, changed: dict):
    assert verdicts(**changed)[claim] == "not supported"


def test_without_matching_heads_claims_are_not_applicable():
    assert {*verdicts(heads=[], blocked={}).values()} == {"not applicable"}
