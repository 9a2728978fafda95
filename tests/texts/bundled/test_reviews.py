"""Reviews: the label turns every judgement and no word decides it."""

from analysis.texts.bundled.notation import slots
from analysis.texts.bundled.reviews import review_frames


def test_reviews_use_judgements_of_both_polarities_under_either_label():
    for label in (0, 1):
        used = {
            name.split()[0]
            for frame in review_frames("clauses", label)
            for name in slots(frame)
            if " " in name
        }
        assert used == {"good", "bad"}


def test_label_turns_every_judgement():
    turned = {"good": "bad", "bad": "good"}
    for negative, positive in zip(review_frames("phrases", 0), review_frames("phrases", 1), strict=True):
        words = [[name.split()[0] for name in slots(frame) if " " in name] for frame in (negative, positive)]
        assert words[1] == [turned[word] for word in words[0]]
