"""Arguments with two warrants; the word "not" is in the right warrant as often as requested."""

import hashlib
from collections.abc import Mapping
from random import Random

import pandas as pd

from analysis.errors import InputError
from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.splits import belongs, check_split

COLUMNS = (
    "#id", "warrant0", "warrant1", "correctLabelW0orW1", "reason", "claim", "debateTitle", "debateInfo",
    "negatedClaim",
)  # fmt: skip
RIGHT, WRONG, ABSENT = "in the right warrant", "in the wrong warrant", "absent"  # where the only "not" is


def generate_arguments(
    n: int, seed: int = 0, split: str = "train", productivity: float = 0.7, coverage: float = 0.6
) -> pd.DataFrame:
    """`n` arguments in the columns of the ARCT files (Habernal 2018), then the claim's negation.

    In a share `coverage` of the arguments, exactly one warrant contains a "not" (also n't and cannot); in a share
    `productivity` of these, it is the right warrant. Both numbers are rounded to whole arguments. Whether the claim is
    negated is drawn independently, so that the cue is the only information on the label in the warrants alone. Labels
    are balanced. The same arguments always give the same table, and splits share no argument. Raises InputError for an
    unknown split, a negative n and shares outside 0 to 1.
    """
    _check(n, split, {"productivity": productivity, "coverage": coverage})
    rng = Random(f"arguments {split} {seed}")
    applies = round(coverage * n)
    right = round(productivity * applies)
    cues = [RIGHT] * right + [WRONG] * (applies - right) + [ABSENT] * (n - applies)
    labels = [number % 2 for number in range(n)]
    rng.shuffle(cues)
    rng.shuffle(labels)
    seen: set[str] = set()
    rows = [_fresh(split, cue, seen, rng) for cue in cues]
    return pd.DataFrame(
        [_row(split, *each) for each in zip(range(n), labels, rows, strict=True)], columns=COLUMNS
    )


def _check(n: int, split: str, shares: Mapping[str, float]) -> None:
    check_split(split)
    if n < 0:
        raise InputError(f"n is {n}: ask for 0 or more arguments")
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise InputError(f"{name} is {share}: give a share from 0 to 1")


def _fresh(split: str, cue: str, seen: set[str], rng: Random) -> dict[str, str]:
    """An argument of the split that is not in `seen`; adds it to `seen`."""
    while True:
        drawn = _drawn(cue, rng)
        text = "\n".join(sorted([drawn[each] for each in ("claim", "negated", "reason", "right", "wrong")]))
        if text not in seen and belongs(text, split):
            seen.add(text)
            return drawn


def _drawn(cue: str, rng: Random) -> dict[str, str]:
    """Claim, its negation, reason, and the right and the wrong warrant."""
    lists = read("arguments")
    words = rng.choice(lists["topics"]) | {name: rng.choice(lists[f"{name}s"]) for name in ("value", "cost")}
    negated = rng.random() < 0.5
    if cue == ABSENT:
        right, wrong = rng.choice(lists["contrasts"])[:: -1 if negated else 1]
    else:
        # A negated claim needs a warrant against the thing that the reason names.
        side = "against" if negated == (cue == WRONG) else "for"
        plain, with_not = rng.choice(lists["negatable"][side])
        right, wrong = (with_not, plain) if cue == RIGHT else (plain, with_not)
    claims = [lists["claims"][kind].format(**words) for kind in ("plain", "negated")]
    claim, other = claims[:: -1 if negated else 1]
    reason = rng.choice(lists["reasons"]).format(**words)
    texts = {"claim": claim, "negated": other, "reason": f"{reason[0].upper()}{reason[1:]}."}
    return texts | {"right": right.format(**words), "wrong": wrong.format(**words), **words}


def _row(split: str, number: int, label: int, drawn: Mapping[str, str]) -> tuple:
    warrants = [drawn["right"], drawn["wrong"]][:: -1 if label else 1]
    texts = "\n".join([drawn["claim"], drawn["reason"], *warrants])
    name = f"argument-{split}-{number:04d}-{hashlib.sha256(texts.encode()).hexdigest()[:8]}"
    title = f"Should {drawn['actor'].lower()} {drawn['action']}?"
    return name, *warrants, label, drawn["reason"], drawn["claim"], title, title, drawn["negated"]
