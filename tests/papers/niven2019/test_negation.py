import pytest

from analysis.errors import InputError
from analysis.papers.niven2019 import negation
from analysis.papers.niven2019.arguments import Argument


def argument(name: str, claim: str, debate: str = "d", label: int = 0) -> Argument:
    return Argument(name, claim, "R", ("yes", "no"), label, debate)


@pytest.mark.parametrize(
    ("claim", "negated"),
    [
        ("Dogs should bark", "Dogs should not bark"),
        ("Dogs are loud", "Dogs are not loud"),
        ("Dogs can bark", "Dogs cannot bark"),
        ("Dogs have barked", "Dogs have not barked"),
        ("Dogs have children", "Dogs do not have children"),
        ("Dogs have hundreds", "Dogs do not have hundreds"),
        ("Dogs have a red bed", "Dogs do not have a red bed"),
        ("Dogs have already agreed", "Dogs have not already agreed"),
        ("A dog has been loud", "A dog has not been loud"),
        ("A dog has a use", "A dog does not have a use"),
        ("A dog had a use", "A dog did not have a use"),
        ("A dog needs a walk", "A dog does not need a walk"),
        ("Keep the dog", "Do not keep the dog"),
        ("Walks with a dog matter.", "Walks with a dog do not matter."),
        ("Dogs do bark", "Dogs do not bark"),
        ("Dogs shouldn't bark", "Dogs should bark"),
        ("Dogs can't bark", "Dogs can bark"),
        ("Dogs won't bark", "Dogs will bark"),
        ("Dogs cannot bark", "Dogs can bark"),
        ("A dog does not carry bags", "A dog carries bags"),
        ("Dogs don’t bark", "Dogs bark"),
        ("Do not keep the dog", "Keep the dog"),
        ("Not to bark", "To bark"),
    ],
)
def test_rule(claim: str, negated: str):
    assert negation.by_rule(claim) == negated


def test_other_claim_of_the_same_debate_comes_first():
    pair = [argument("a", "Iran needs it"), argument("b", "Iran doesn't need it")]
    assert negation.negations([*pair, argument("c", "Iran needs it", debate="e")]) == {
        "a": ("Iran doesn't need it", "debate"),
        "b": ("Iran needs it", "debate"),
        "c": ("Iran does not need it", "rule"),
    }


def test_corrections_replace_words(monkeypatch: pytest.MonkeyPatch):
    claim = "No, it will not do"
    monkeypatch.setattr(negation, "CORRECTIONS", {negation.digest(claim): [["No", "Yes"], ["not ", ""]]})
    assert negation.negations([argument("a", claim)]) == {"a": ("Yes, it will do", "correction")}


def test_adversarial_copies():
    first, second = negation.adversarial([argument("a", "Dogs are loud", label=1)])
    assert (second.id, second.label, second.claim) == ("a-adversarial", 0, "Dogs are not loud")
    assert (second.reason, second.warrants, second.debate) == (first.reason, first.warrants, first.debate)
    unchanged = Argument("u", "Dogs", "R", ("yes", "no"), 0, negated="dogs")
    with pytest.raises(InputError, match="^u: the claim 'Dogs' is not negated"):
        negation.adversarial([unchanged])


def test_every_claim_of_arct_is_negated(arct):
    table = negation.adversarial_table(arct).pivot(index="split", columns="source", values="n")
    assert table.sum(axis=1).to_dict() == {"train": 1210, "dev": 316, "test": 444}
    assert table["gold"].sum() == 0
    assert sum(negation.claim_sources(arct).values()) == 264
    # Niven and Kao found the negation of 46% of the rows of dev and 75% of those of test in the data.
    assert table["debate"].to_dict() == {"train": 696, "dev": 144, "test": 322}
    claims = {negation.digest(point.claim): point.claim for points in arct.values() for point in points}
    for key, replacements in negation.CORRECTIONS.items():
        assert all(old in claims[key] for old, _ in replacements)
    for points in arct.values():
        for point, (text, _) in zip(points, negation.negations(points).values(), strict=True):
            assert negation.is_negated(text) != negation.is_negated(point.claim) or "no longer" in text
