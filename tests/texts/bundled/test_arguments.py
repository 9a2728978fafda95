"""The bundled arguments have the planted cue, and no other information on the label in the warrants."""

import re

import numpy as np
import pytest

from analysis.errors import InputError
from analysis.texts.bundled.arguments import COLUMNS, generate_arguments

NOT = re.compile(r"n't\b|\bnot\b|\bcannot\b")


def right_and_wrong(n: int, **options) -> list[tuple[bool, bool]]:
    rows = generate_arguments(n, **options).to_dict("records")
    texts = [(row[f"warrant{row[COLUMNS[3]]}"], row[f"warrant{1 - row[COLUMNS[3]]}"]) for row in rows]
    return [(bool(NOT.search(right)), bool(NOT.search(wrong))) for right, wrong in texts]


@pytest.mark.parametrize(
    ("productivity", "coverage"), [(0.7, 0.6), (0.5, 1.0), (1.0, 0.25), (0.0, 0.5), (0.3, 0.0)]
)
def test_productivity_and_coverage_are_as_asked(productivity: float, coverage: float):
    found = right_and_wrong(80, productivity=productivity, coverage=coverage)
    applies = [right for right, wrong in found if right != wrong]
    assert len(applies) == 80 * coverage
    assert sum(applies) == round(productivity * len(applies))


def test_same_arguments_for_the_same_seed_and_none_in_two_splits():
    one, again = generate_arguments(60, 1, "dev"), generate_arguments(60, 1, "dev")
    assert one.equals(again)
    assert not one.equals(generate_arguments(60, 2, "dev"))
    keys = [
        {
            (*sorted([row[5], row[8]]), row[4], *sorted(row[1:3]))
            for row in generate_arguments(300, 0, split).to_numpy()
        }
        for split in ("train", "dev", "test")
    ]
    assert [len(each) for each in keys] == [300] * 3
    assert not keys[0] & keys[1]
    assert not keys[0] & keys[2]
    assert not keys[1] & keys[2]


def test_the_negated_claim_asks_for_the_other_warrant():
    """Read as sentences: a warrant for the thing that the reason names goes only with the plain claim."""
    table = generate_arguments(300, 3)
    negated = table["claim"].str.contains(" should not ")
    assert (table["negatedClaim"].str.contains(" should not ") != negated).all()
    right = np.where(table["correctLabelW0orW1"] == 0, table["warrant0"], table["warrant1"])
    worth = np.array([" is worth " in text for text in right])
    not_worth = np.array([" is not worth " in text for text in right])
    assert worth.any()
    assert not_worth.any()
    assert not negated[worth].any()
    assert negated[not_worth].all()
    assert 0.4 < negated.mean() < 0.6
    assert table["correctLabelW0orW1"].mean() == 0.5


def test_wrong_requests():
    with pytest.raises(InputError, match="unknown split 'x'"):
        generate_arguments(1, split="x")
    with pytest.raises(InputError, match="n is -1"):
        generate_arguments(-1)
    with pytest.raises(InputError, match="coverage is 1.5"):
        generate_arguments(1, coverage=1.5)
