"""Sieve bias scores by loops, straight from the formulas of the paper, token by token and pair by pair; a test by hand.

They share only the tokens with the package: special tokens are recognised by their spelling.
"""

from collections.abc import Callable, Sequence
from math import log, nan

import numpy as np
from scipy import stats

from analysis.encoders.layout import Pairs

SPECIAL = {"cls": ("[CLS]", "<s>"), "sep": ("[SEP]", "</s>")}
PAIRS = {"nsubj", "dobj", "amod", "advmod"}
MARKS = set(".,;:!?'\"()-")


def mean(values: Sequence[float]) -> float:
    """The mean, or NaN if there are no values."""
    return sum(values) / len(values) if values else nan


def skew_corrected_p(scores: np.ndarray, tau: float, clusters: np.ndarray | None = None) -> float:
    """One-sided p of mean > tau with Hall's (1992) correction of t for skewness, as he writes it: by W = mean / sd."""
    groups = np.arange(len(scores)) if clusters is None else clusters
    sums = [float((scores[groups == name] - scores.mean()).sum()) for name in dict.fromkeys(groups.tolist())]
    n = len(sums)
    error = (n / (n - 1) * sum(item**2 for item in sums)) ** 0.5 / len(scores)
    w = (scores.mean() - tau) / error / n**0.5
    g = mean([item**3 for item in sums]) / mean([item**2 for item in sums]) ** 1.5
    return float(stats.t.sf(n**0.5 * (w + g * w**2 / 3 + g**2 * w**3 / 27 + g / (6 * n)), n - 1))


def bias(attention: np.ndarray, token: int, sieve: set[int]) -> float:
    """Mean attention of a token to its sieve, over its mean attention to all T tokens, which is 1 / T."""
    return mean([float(attention[token, other]) for other in sieve]) / (1 / len(attention))


def sequence_score(attention: np.ndarray, sieve_of: Callable[[int], set[int]]) -> float:
    tokens = range(len(attention))
    return mean([bias(attention, token, sieve_of(token)) for token in tokens if sieve_of(token)])


def entropy(row: np.ndarray) -> float:
    """Entropy in nats."""
    return -sum(float(p) * log(p) for p in row if p > 0)


def window_published(attention: np.ndarray, width: int) -> float:
    """The released code: the band of token t is `min(t + width, T) + 1 - max(t - width, 0)` tokens wide."""
    size, scores = len(attention), []
    for token in range(size):
        first = max(token - width, 0)
        band = sum(float(attention[token, other]) for other in range(first, min(token + width, size - 1) + 1))
        scores.append(band / (min(token + width, size) + 1 - first) / (1 / size))
    return mean(scores)


def word_pairs(attention: np.ndarray, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> float:
    """Mean over pairs of the mean over the dependent's pieces of the bias towards the head's pieces."""
    biases = [[bias(attention, int(d), {*map(int, head)}) for d in dependent] for dependent, head in pairs]
    return mean([*map(mean, biases)])


class Oracle:
    """The scores of one map of one sequence; `pairs` are (dependent, head) token positions by label."""

    def __init__(self, tokens: Sequence[str], pairs: dict):
        self.size, self.pairs = len(tokens), pairs
        self.cls = {0}
        self.seps = [t for t in range(self.size) if tokens[t] in SPECIAL["sep"]]
        spelt = [token.removeprefix("Ġ") for token in tokens]
        self.spelling = [token.lower() for token in spelt]
        self.stops = {t for t in range(self.size) if spelt[t] in (".", ",")}
        self.marks = {t for t in range(self.size) if spelt[t] and set(spelt[t]) <= MARKS}
        last_of_first = self.seps[0]
        self.first = set(range(1, last_of_first))
        self.second = set(range(last_of_first + 1, self.size)) - set(self.seps)

    def sentences(self, token: int) -> tuple[set[int], set[int]]:
        """The words of the token's own text and of the other one; nothing in a single text."""
        if not self.second:
            return set(), set()
        return (self.first, self.second) if token < self.seps[0] else (self.second, self.first)

    def alike(self, token: int, other: bool) -> set[int]:
        """Word pieces spelt as this one in the other text, or in its own; a blank alone is like nothing."""
        own_rows, far = self.sentences(token)
        text = (far if other else own_rows or self.first) - self.marks
        if token in self.cls | set(self.seps) | self.marks or not self.spelling[token]:
            return set()
        return {item for item in text if self.spelling[item] == self.spelling[token]}

    def others(self, token: int) -> set[int]:
        return self.sentences(token)[1] - self.marks

    def near(self, token: int, width: int) -> set[int]:
        return {other for other in range(self.size) if abs(other - token) <= width}

    def sieve(self, role: str) -> Callable[[int], set[int]]:
        """The sieve of every token, for a role that has one."""
        name, _, number = role.partition("_")
        if name == "window":
            return lambda token: self.near(token, int(number))
        if name == "offset":
            return lambda token: {token + int(number)} & set(range(self.size))
        everything, seps = set(range(self.size)), set(self.seps)
        return {
            "stops": lambda token: self.stops,
            "content": lambda token: everything - self.cls - seps - self.stops,
            "match": lambda token: self.alike(token, other=True),
            "match_control": lambda token: (
                self.others(token) - self.alike(token, other=True) if self.alike(token, other=True) else set()
            ),
            "match_own": lambda token: self.alike(token, other=False) - {token},
            "cls_to_cls": lambda token: self.cls if token in self.cls else set(),
            "sep_to_sep": lambda token: seps if token in seps else set(),
            "rest_to_sep": lambda token: set() if token in seps else seps,
            "local": lambda token: self.near(token, 2),
            "cls": lambda token: self.cls,
            "sep": lambda token: set(self.seps),
            "sep_first": lambda token: {self.seps[0]} | ({self.seps[0] + 1} & set(self.seps[:-1])),
            "sep_last": lambda token: {self.seps[-1]} if self.second else set(),
            "delimiter": lambda token: self.cls | set(self.seps),
            "punctuation": lambda token: self.marks,
            "own_sentence": lambda token: self.sentences(token)[0],
            "other_sentence": lambda token: self.sentences(token)[1],
        }[role]

    def score(self, role: str, attention: np.ndarray) -> float:
        """The sieve bias score of a role, NaN where the sequence has no such sieve."""
        if role.endswith("_published"):
            return window_published(attention, 2 if role.startswith("local") else int(role.split("_")[1]))
        if role == "block":
            weighted = np.array([row * entropy(row) for row in attention])
            return sequence_score(weighted, self.sieve("own_sentence"))
        if role == "syntactic":
            pooled = [pair for label in sorted(PAIRS) for pair in self.pairs.get(label, [])]
            return word_pairs(attention, pooled)
        if role.endswith("_reversed"):
            forward = self.pairs.get(role.removesuffix("_reversed"), [])
            return word_pairs(attention, [(head, dependent) for dependent, head in forward])
        if role in PAIRS | set(self.pairs):
            return word_pairs(attention, self.pairs.get(role, []))
        return sequence_score(attention, self.sieve(role))

    def scores(self, role: str, maps: np.ndarray) -> np.ndarray:
        flat = maps.reshape(-1, *maps.shape[-2:])
        return np.array([self.score(role, attention) for attention in flat]).reshape(maps.shape[:-2])


def random_pairs(size: int, seed: int = 0) -> dict:
    """Word pairs of random positions, one to three pieces a word, for three of the roles and one more."""
    generator = np.random.default_rng(seed)

    def word() -> tuple[int, int]:
        first = generator.integers(size)
        return first, min(first + generator.integers(1, 4), size)

    def pairs(count: int) -> Pairs:
        return Pairs(np.array([(*word(), *word()) for _ in range(count)]))

    return {"nsubj": pairs(2), "dobj": pairs(1), "advmod": pairs(3), "case": pairs(2)}


def random_maps(size: int, heads: int = 3, seed: int = 0) -> np.ndarray:
    """Row-stochastic maps."""
    maps = np.random.default_rng(seed).random((heads, size, size)) ** 4
    return maps / maps.sum(-1, keepdims=True)
