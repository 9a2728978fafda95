"""Arguments with two warrants, and cues: words of the warrants that predict the right one without claim or reason."""

import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
from jaxtyping import Int

from analysis.errors import InputError
from analysis.files import expand
from analysis.statistics.bootstrap import resampled
from analysis.statistics.intervals import percentile_interval
from analysis.tables import stacked
from analysis.texts.examples import Example, sample
from analysis.texts.glue import bundled_rows, bundled_sample, read_table, require_columns
from analysis.texts.tasks import CHOICE, Task

ARCT_COLUMNS = "#id warrant0 warrant1 correctLabelW0orW1 reason claim debateTitle debateInfo".split()
REQUIRED = "#id warrant0 warrant1 reason claim".split()  # columns that may not be empty
# The released files; published values hold for these alone.
MD5 = {
    "train": "17db7209b6f5052514c83fcc4b61e407",
    "dev": "79cd54fea2ae0269427670f485348994",
    "test": "51a715ebe50f189b0bf44a8f1941d80f",
}
SPLITS = tuple(MD5)
BUNDLED = "bundled"  # the source that is a grammar
SIZES = {"train": 1200, "dev": 300, "test": 400}  # its arguments, where no number is given
# The texts that a model sees beside each warrant: the reason (R), the claim (C), both or none.
SETUPS: Mapping[str, tuple[str, ...]] = {
    "full": ("claim", "reason"), "W": (), "RW": ("reason",), "CW": ("claim",)
}  # fmt: skip
BAG, BILSTM, ENCODER = MODELS = ("bag of vectors", "BiLSTM", "encoder")
# Training sets, and the halves of the adversarial test set. In Niven 2019 the training set called adversarial has
# swapped warrants (erratum); NEGATED is the one with negated claims that the erratum asks for.
ORIGINAL, DOUBLED, NEGATED = "original", "adversarial", "negated"
# The adversarial files of Niven 2019 by training set and split: the name, and the end of a copy's id.
RELEASED = {
    (DOUBLED, "train"): ("train-swapped.csv", "_swapped"),
    (DOUBLED, "dev"): ("dev-adv-negated.csv", "-adversarial"),
    (DOUBLED, "test"): ("test-adv-negated.csv", "-adversarial"),
    (NEGATED, "train"): ("train-adv-negated.csv", "-adversarial"),
}
RUN_KIND = ["model", "setup", "trained_on"]
NOT = "not"
RIGHT, WRONG, ABSENT = "in the right warrant", "in the wrong warrant", "absent"  # where the only "not" is
ARCT = Task("arct", metrics=("accuracy",), kind=CHOICE)


@dataclass(frozen=True)
class Argument:
    """A claim, a reason and two warrants; with the warrant number `label`, the reason supports the claim.

    `negated` is the claim's negation if the source gives it.
    """

    id: str
    claim: str
    reason: str
    warrants: tuple[str, str]
    label: int
    debate: str = ""
    negated: str | None = None


def load_arguments(
    source: str | Path,
    split: str,
    n: int | None = None,
    seed: int = 0,
    productivity: float = 0.7,
    coverage: float = 0.6,
) -> list[Argument]:
    """The arguments of a split of ARCT or of the bundled grammar, or a seeded sample of `n` if there are more.

    `source` is "bundled" or the folder that contains `<split>-full.txt`. `productivity` and `coverage` are those of the
    cue "not" in the texts of the grammar. Warns if a file is not the released one. Raises InputError, naming file and
    line, for missing columns, an unknown label, an empty text and two equal warrants.
    """
    if source == BUNDLED:
        table = bundled_arguments(n or SIZES[split], seed, split, productivity, coverage)
        return [_argument(row, f"{split}, row {row['#id']}") for row in table.to_dict("records")]
    path = expand(source) / f"{split}-full.txt"
    if not path.is_file():
        raise InputError(f"{path}: no such file; source must be 'bundled' or the folder of the ARCT files")
    table = read_table(path)
    require_columns(table, ARCT_COLUMNS, str(path))
    if hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() != MD5[split]:
        warnings.warn(f"{path} is not the released file: published values need not follow", stacklevel=2)
    rows = enumerate(table.to_dict("records"), start=2)
    return sample([_argument(row, f"{path}, line {number}") for number, row in rows], n, seed)


def missing_files(folder: str | Path | None) -> list[str]:
    """The adversarial files of Niven 2019 that a folder lacks: all if it is not there, none if no folder is given."""
    names = [name for name, _ in RELEASED.values()]
    try:
        return [name for name in names if folder and not (expand(folder) / name).is_file()]
    except InputError:  # the folder of `make data` is not there
        return names


def released_sets(
    folder: str | Path, splits: Mapping[str, Sequence[Argument]]
) -> dict[str, dict[str, list[Argument]]]:
    """The adversarial sets of Niven 2019 by training set and split: the arguments, then their copies in this order.

    Both training sets are tested on the same dev and test sets. Raises InputError, naming the file, for a missing copy.
    """
    sets: dict[str, dict[str, list[Argument]]] = {DOUBLED: {}, NEGATED: {}}
    for (trained_on, split), (name, end) in RELEASED.items():
        table = read_table(path := expand(folder) / name)
        require_columns(table, ARCT_COLUMNS, str(path))
        rows = {row["#id"]: (row, number) for number, row in enumerate(table.to_dict("records"), start=2)}
        if lacking := [argument.id for argument in splits[split] if argument.id + end not in rows]:
            raise InputError(f"{path}: no copy {lacking[0]}{end}; delete the file and run make data")
        chosen = (rows[argument.id + end] for argument in splits[split])
        copies = [_argument(row, f"{path}, line {number}") for row, number in chosen]
        sets[trained_on][split] = [*splits[split], *copies]
    return sets | {NEGATED: sets[DOUBLED] | sets[NEGATED]}


def bundled_arguments(
    n: int, seed: int = 0, split: str = "train", productivity: float = 0.7, coverage: float = 0.6
) -> pd.DataFrame:
    """`n` arguments in the columns of the ARCT files (Habernal 2018), then the claim's negation.

    In a share `coverage` of the arguments, exactly one warrant contains a "not" (also n't and cannot); in a share
    `productivity` of these, it is the right warrant. Both are rounded to whole arguments. The cue is the only
    information on the label in the warrants alone. Labels are balanced.
    """
    for name, share in (("productivity", productivity), ("coverage", coverage)):
        if not 0 <= share <= 1:
            raise InputError(f"{name} is {share}: give a share from 0 to 1")
    applicable = round(coverage * n)
    if coverage and not applicable:
        raise InputError(f"coverage is {coverage}, which is none of {n} arguments: give at least {1 / n:.2g}")
    right = round(productivity * applicable)
    rows, arguments = bundled_rows("arguments", split), []
    for cue, count in ((RIGHT, right), (WRONG, applicable - right), (ABSENT, n - applicable)):
        pool = [row for row in rows if row["cue"] == cue]
        arguments += bundled_sample(pool, count, seed, f'{split} arguments with "not" {cue}')
    rng = Random(f"arguments {split} {seed}")
    rng.shuffle(arguments)
    labels = [number % 2 for number in range(n)]
    rng.shuffle(labels)
    table = []
    for number, (label, row) in enumerate(zip(labels, arguments, strict=True)):
        warrants = [row["right"], row["wrong"]][:: -1 if label else 1]
        texts = row["reason"], row["claim"], row["title"], row["title"], row["negated"]
        table.append((f"argument-{split}-{number:04d}-{row['id']}", *warrants, label, *texts))
    return pd.DataFrame(table, columns=[*ARCT_COLUMNS, "negatedClaim"])


def _argument(row: Mapping[str, str | int], place: str) -> Argument:
    """One row as an argument; raises InputError if it is wrong."""
    for column in REQUIRED:
        if not str(row[column]).strip():
            raise InputError(f"{place}: {column} is empty; fill it in or remove the row")
    label = str(row["correctLabelW0orW1"])
    if label not in ("0", "1"):
        raise InputError(f"{place}: label {label!r} is not one of 0, 1; correct it or remove the row")
    name, first, second, reason, claim = (str(row[column]).strip() for column in REQUIRED)
    if first.casefold() == second.casefold():
        raise InputError(f"{place}: the two warrants are equal; correct one or remove the row")
    debate, negated = str(row["debateTitle"]), row.get("negatedClaim")
    return Argument(name, claim, reason, (first, second), int(label), debate, negated)


def as_examples(arguments: Sequence[Argument], setup: str) -> list[Example]:
    """The arguments as a model of a set-up sees them: the text before both warrants, and the warrants as choices.

    Claim and reason are joined to "claim. reason."; a single one is not changed. Source: Niven 2019, authors' code.
    """
    examples = []
    for argument in arguments:
        texts = [getattr(argument, part) for part in SETUPS[setup]]
        if len(texts) > 1:
            texts = [text if text.endswith(".") else f"{text}." for text in texts]
        shared = " ".join(texts)
        examples.append(Example(argument.id, shared, label=argument.label, choices=argument.warrants))
    return examples


def all_splits(splits: Mapping[str, Sequence[Argument]]) -> dict[str, Sequence[Argument]]:
    """The splits, and all of them together as one more."""
    return {**splits, "all": [argument for arguments in splits.values() for argument in arguments]}


def expanded(text: str) -> list[str]:
    """Lower-case runs of letters, with contracted negations written out: cannot and can't are "can not"."""
    text = text.lower().replace("’", "'")
    text = re.sub(r"\b(can't|cannot)\b", "can not", text)
    text = re.sub(r"\bwon't\b", "will not", text)
    return re.findall(r"[a-z]+", re.sub(r"n't\b", " not", text))


def grams(text: str) -> set[tuple[str, ...]]:
    """The words of a text (see `expanded`), and its pairs of adjacent words."""
    words = expanded(text)
    return {(word,) for word in words} | set(pairwise(words))


def cue_table(
    splits: Mapping[str, Sequence[Argument]], minimum: int = 30, resamples: int = 999, seed: int = 0
) -> pd.DataFrame:
    """The table `niven_cues` (docs/tables.yaml): applicability, productivity and coverage of unigrams and bigrams.

    Cues are "not" and all that apply to at least `minimum` points of all splits together. low and high are the
    percentile interval of the productivity over resampled points. Source: Niven 2019, section 4.
    """
    splits = all_splits(splits)
    cues = _frequent(splits["all"], minimum)
    names = pd.DataFrame({"cue": [" ".join(cue) for cue in cues], "order": [len(cue) for cue in cues]})
    tables = {
        split: names.join(_productivity(sides(arguments, cues), resamples, seed))
        for split, arguments in splits.items()
    }
    return stacked(tables, "split")


def _frequent(arguments: Sequence[Argument], minimum: int) -> list[tuple[str, ...]]:
    """The cues that apply to at least `minimum` points, the most frequent first; always with "not"."""
    counts: Counter[tuple] = Counter()
    for argument in arguments:
        first, second = map(grams, argument.warrants)
        counts.update(first ^ second)
    frequent = [cue for cue, count in counts.items() if count >= minimum and cue != (NOT,)]
    return [(NOT,), *sorted(frequent, key=lambda cue: (len(cue), -counts[cue], cue))]


def sides(arguments: Sequence[Argument], cues: Sequence[tuple[str, ...]]) -> Int[np.ndarray, "point cue"]:
    """For each point and cue: 1 if only the right warrant has the cue, -1 if only the wrong one has it, else 0."""
    places = {cue: place for place, cue in enumerate(cues)}
    signs = np.zeros((len(arguments), len(cues)), int)
    for row, argument in zip(signs, arguments, strict=True):
        right, wrong = (grams(argument.warrants[choice]) for choice in (argument.label, 1 - argument.label))
        for sign, words in ((1, right - wrong), (-1, wrong - right)):
            row[[places[cue] for cue in words if cue in places]] = sign
    return signs


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
    """1 if only the right warrant has "not" (see `expanded`), -1 if only the wrong one has it, else 0."""
    return sides(arguments, [(NOT,)])[:, 0]


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
