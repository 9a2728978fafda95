"""Cues: words in the warrants that predict the right warrant without the claim or the reason."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from jaxtyping import Int

from analysis.papers.niven2019.arguments import Argument, all_splits
from analysis.statistics.intervals import percentile_interval
from analysis.statistics.resampling import resampled

NOT = "not"
# Words that count as a negation in the fourth rule.
NEGATIONS = frozenset("not no never none nothing nobody neither nor without".split())


def expanded(text: str) -> list[str]:
    """Lower-case runs of letters, with contracted negations written out: cannot and can't are "can not"."""
    text = text.lower().replace("’", "'")
    text = re.sub(r"\b(can't|cannot)\b", "can not", text)
    text = re.sub(r"\bwon't\b", "will not", text)
    return re.findall(r"[a-z]+", re.sub(r"n't\b", " not", text))


def treebank(text: str) -> list[str]:
    """Lower-case tokens as in the Penn Treebank: n't and 's are tokens of their own, cannot is two tokens."""
    text = re.sub(r"([^\w\s'.,])", r" \1 ", text.lower())
    text = re.sub(r"\.(\s*)$", r" . ", re.sub(r",(?!\d)", " , ", text))
    text = re.sub(r"\bcannot\b", "can not", re.sub(r"n't\b", " n't", text))
    return re.sub(r"'(s|re|ve|ll|d|m)\b", r" '\1", text).split()


def whitespace(text: str) -> list[str]:
    """Lower-case words between spaces, with their punctuation."""
    return text.lower().split()


def any_negation(text: str) -> list[str]:
    """The cue "not" if the text has any word of NEGATIONS, else nothing."""
    return [NOT] if NEGATIONS.intersection(expanded(text)) else []


RULES: Mapping[str, Callable[[str], list[str]]] = {
    "expanded": expanded,
    "treebank": treebank,
    "whitespace": whitespace,
    "any negation": any_negation,
}


def cue_table(
    splits: Mapping[str, Sequence[Argument]], minimum: int = 30, resamples: int = 999, seed: int = 0
) -> pd.DataFrame:
    """The table `niven_cues` (docs/tables.yaml): applicability, productivity and coverage of unigrams and bigrams.

    low and high are the percentile interval of the productivity over resampled points. Rule "expanded" has "not" and
    all cues that apply to at least `minimum` points of all splits together; the other rules have "not" alone. Source:
    Niven 2019, section 4.
    """
    splits, parts = all_splits(splits), []
    for rule, tokens in RULES.items():
        cues = _frequent(splits["all"], tokens, minimum) if rule == "expanded" else [(NOT,)]
        for split, arguments in splits.items():
            table = _productivity(sides(arguments, tokens, cues), resamples, seed)
            names = {"cue": [" ".join(cue) for cue in cues], "order": [len(cue) for cue in cues]}
            parts.append(table.assign(split=split, rule=rule, **names))
    columns = "split rule cue order applicability productivity coverage low high".split()
    return pd.concat(parts, ignore_index=True)[columns]


def grams(tokens: Sequence[str]) -> set[tuple[str, ...]]:
    """The unigrams and bigrams of a text."""
    return {(token,) for token in tokens} | set(pairwise(tokens))


def sides(
    arguments: Sequence[Argument], tokens: Callable[[str], list[str]], cues: Sequence[tuple[str, ...]]
) -> Int[np.ndarray, "point cue"]:
    """For each point and cue: 1 if only the right warrant has the cue, -1 if only the wrong one has it, else 0."""
    places = {cue: place for place, cue in enumerate(cues)}
    signs = np.zeros((len(arguments), len(cues)), int)
    for row, argument in zip(signs, arguments, strict=True):
        warrants = [grams(tokens(warrant)) for warrant in argument.warrants]
        right, wrong = warrants[argument.label], warrants[1 - argument.label]
        row[[places[cue] for cue in right - wrong if cue in places]] = 1
        row[[places[cue] for cue in wrong - right if cue in places]] = -1
    return signs


def _frequent(arguments: Sequence[Argument], tokens: Callable[[str], list[str]], minimum: int) -> list[tuple]:
    """The cues that apply to at least `minimum` points, the most frequent first; always with "not"."""
    counts: Counter[tuple] = Counter()
    for argument in arguments:
        first, second = (grams(tokens(warrant)) for warrant in argument.warrants)
        counts.update(first ^ second)
    frequent = [cue for cue, count in counts.items() if count >= minimum and cue != (NOT,)]
    return [(NOT,), *sorted(frequent, key=lambda cue: (len(cue), -counts[cue], cue))]


def _productivity(signs: Int[np.ndarray, "point cue"], resamples: int, seed: int) -> pd.DataFrame:
    """Applicability, productivity with its interval, and coverage of every cue."""
    right, applies = (signs > 0).astype(float), (signs != 0).astype(float)
    weights = resampled(len(signs), resamples, seed)
    with np.errstate(invalid="ignore"):
        productivity = (weights @ right) / (weights @ applies)
    low, high = percentile_interval(productivity)
    counts = (weights[0] @ applies).astype(int)
    columns = {"applicability": counts, "productivity": productivity[0], "coverage": counts / len(signs)}
    return pd.DataFrame(columns | {"low": low, "high": high})


def follows_cue(arguments: Sequence[Argument]) -> Int[np.ndarray, " point"]:
    """1 if only the right warrant has "not" (rule "expanded"), -1 if only the wrong one has it, else 0."""
    return sides(arguments, expanded, [(NOT,)])[:, 0]


def baseline_table(splits: Mapping[str, Sequence[Argument]], draws: int = 999, seed: int = 0) -> pd.DataFrame:
    """The table `niven_baselines` (docs/tables.yaml): always the warrant with "not", where ties count half.

    low and high are the percentile interval over resampled points.
    """
    rows = []
    for split, arguments in splits.items():
        right = (1 + follows_cue(arguments)) / 2
        means = resampled(len(right), draws, seed) @ right / len(right)
        rows.append((split, NOT, len(right), means[0], *percentile_interval(means)))
    return pd.DataFrame(rows, columns=["split", "baseline", "n", "accuracy", "low", "high"])
