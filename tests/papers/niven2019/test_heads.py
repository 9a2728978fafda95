import numpy as np
import pytest
import xarray as xr
from headtables import score_array
from removals import logits

from analysis.encoders.layout import layouts
from analysis.papers.niven2019.arguments import follows_cue, load_arguments
from analysis.papers.niven2019.heads import BEFORE, ablation_table, cue, cue_heads, head_table
from analysis.statistics.significance import Rule
from analysis.texts.examples import Example

ARGUMENTS = load_arguments("bundled", "test", 30)


@pytest.mark.parametrize(
    ("example", "marked"),
    [
        (Example("a", "it is not so", "they do not come, not ever"), ["not", "not"]),
        (Example("b", "it is so", "we don't and cannot come"), ["'", "t", "cannot"]),
        (Example("c", "it can't be"), ["'", "t"]),
        (Example("d", "it is not so", "nothing to note"), []),
        (Example("e", "it isn't so", "the dog's tail"), []),
    ],
)
def test_cue_marks_the_negations_of_the_warrant_alone(tiny, example: Example, marked: list[str]):
    (layout,) = layouts(tiny.tokenizer, [example])
    marks = cue(layout, {})
    assert (marks is None) == (not marked)
    if marked:
        places = np.flatnonzero(marks.sum(axis=0))
        assert [layout.tokens[place] for place in places] == marked
        assert (layout.text[places] == layout.text.max()).all()


def scores(shift: float, seed: int = 0) -> xr.DataArray:
    """Scores of 40 sequences, 2 layers x 3 heads; head 1-2 gains the shift."""
    values = np.random.default_rng(seed).gamma(4, 0.25, (40, 1, 2, 3)).astype(np.float32)
    values[:, :, 1, 2] += shift
    array = score_array(values, ["cue"], tokens=np.full(40, 9), cluster=np.arange(40) // 2)
    return array.assign_coords(units=(("sequence", "role"), np.full((40, 1), 9)))


def test_head_table_finds_the_head_that_gained():
    rule = Rule(minimum=20, resamples=99, unit="cluster")
    table = head_table({BEFORE: scores(0), 5: scores(4, 1)}, "W", rule).set_index(["layer", "head"])
    assert table.loc[(1, 2), "difference"] == pytest.approx(4, abs=0.4)
    assert table["p_by"].idxmin() == (1, 2)
    assert table.loc[(1, 2), "change"] == "gained"
    assert cue_heads(table.reset_index(), "W", 5, 1) == [(1, 2)]


def test_ablation_table_counts_answers_by_where_the_cue_stands():
    signs, labels = follows_cue(ARGUMENTS), np.array([argument.label for argument in ARGUMENTS])
    follower = np.where(signs >= 0, labels, 1 - labels)  # follows the cue, right where it is absent
    off = np.where(signs > 0, 1 - labels, labels)  # the reverse of the cue
    answers = logits(np.stack([follower, off, follower]), ["cue heads", "random 0"], sure=1)
    answers = answers.assign_coords(sequence=[argument.id for argument in ARGUMENTS])
    answers = answers.assign_attrs(heads="0-1")
    whole = ablation_table({("W", 3): answers}, ARGUMENTS, 99)
    table = whole.set_index(["points", "intervention"])
    changes = table["change"].xs("cue heads", level="intervention").to_dict()
    assert changes.pop("all") == pytest.approx(((signs < 0).sum() - (signs > 0).sum()) / 30)
    assert changes == {"right": -1, "wrong": 1, "absent": 0}
    assert table.loc[("right", "cue heads"), "p_random"] == 0.5
    assert table.loc[("absent", "cue heads"), "p_random"] == 1
    assert ablation_table({("W", 3): answers[:2]}, ARGUMENTS, 99)["p_random"].isna().all()
    assert whole[["setup", "seed", "heads"]].drop_duplicates().to_numpy().tolist() == [["W", 3, "0-1"]]
