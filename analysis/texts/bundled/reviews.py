"""Reviews with negation and contrast, positive or negative (sst-2)."""

import re
from functools import cache
from random import Random

from analysis.texts.bundled.drafts import Draft
from analysis.texts.bundled.grammar import sentence
from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.meanings import Meaning, draw, express, frame_lists
from analysis.texts.bundled.notation import slots

# Share of reviews without a verb, such as `never less than gripping`.
PHRASE_SHARE = 0.12


@cache
def review_frames(kind: str, label: int) -> tuple[str, ...]:
    """Frames of reviews (`clauses` or `phrases`); each judgement slot has the name of the list that suits the label."""
    agreeing, opposed = ("good", "bad") if label else ("bad", "good")
    frames = read("frames")["reviews"][kind]
    frames = [re.sub(r"\{(\w+)\+(\d?)", rf"{{{agreeing} \1\2", frame) for frame in frames]
    return tuple(re.sub(r"\{(\w+)-(\d?)", rf"{{{opposed} \1\2", frame) for frame in frames)


def sst2(label: int, rng: Random) -> Draft:
    """A review sentence or phrase, negative (0) or positive (1)."""
    kind = rng.choices(["clauses", "phrases"], [1 - PHRASE_SHARE, PHRASE_SHARE])[0]
    frame = rng.choice(review_frames(kind, label))
    # After a coordination, an adjunct would belong to the last conjunct; a phrase has no verb for an adjunct.
    told = 0 if kind == "phrases" or "(conj" in frame else rng.choices([0, 1, 2], [0.2, 0.5, 0.3])[0]
    adjuncts = rng.sample(frame_lists()["review adjunct"], told)
    frame = " ".join([frame, *adjuncts, "./punct"])
    review = Meaning("review", (frame,), {name: draw(name, rng) for name in slots(frame)})
    return Draft(label, (sentence(express(review, rng)),))
