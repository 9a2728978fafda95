"""Arguments with two warrants, from the files of ARCT or from the bundled grammar."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import InputError
from analysis.files import expand
from analysis.texts.bundled import bundled_arguments
from analysis.texts.examples import Example, sample
from analysis.texts.glue import read_table, require_columns
from analysis.texts.tasks import CHOICE, Task

COLUMNS = "#id warrant0 warrant1 correctLabelW0orW1 reason claim debateTitle debateInfo".split()
REQUIRED = "#id warrant0 warrant1 reason claim".split()  # columns that may not be empty
# The released files; published values hold for these alone.
MD5 = {
    "train": "17db7209b6f5052514c83fcc4b61e407",
    "dev": "79cd54fea2ae0269427670f485348994",
    "test": "51a715ebe50f189b0bf44a8f1941d80f",
}
SPLITS = tuple(MD5)
BUNDLED = {"train": 1200, "dev": 300, "test": 400}  # arguments of the bundled grammar without a number
# The texts that a model sees beside each warrant: the reason (R), the claim (C), both or none.
SETUPS: Mapping[str, tuple[str, ...]] = {
    "full": ("claim", "reason"), "W": (), "RW": ("reason",), "CW": ("claim",)
}  # fmt: skip
BAG, BILSTM, ENCODER = "bag of vectors", "BiLSTM", "encoder"  # models
ORIGINAL, DOUBLED = "original", "adversarial"  # training sets, and the halves of the adversarial set
KEYS = ["model", "setup", "trained_on"]
TASK = Task("arct", metrics=("accuracy",), kind=CHOICE)


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
    if split not in SPLITS:
        raise InputError(f"split {split!r} is unknown; choose one of {', '.join(SPLITS)}")
    if source == "bundled":
        table = bundled_arguments(n or BUNDLED[split], seed, split, productivity, coverage)
        return [_argument(row, f"{split}, row {row['#id']}") for row in table.to_dict("records")]
    path = expand(source) / f"{split}-full.txt"
    if not path.is_file():
        raise InputError(f"{path}: no such file; source must be 'bundled' or the folder of the ARCT files")
    table = read_table(path)
    require_columns(table, COLUMNS, str(path))
    if hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() != MD5[split]:
        warnings.warn(f"{path} is not the released file: published values need not follow", stacklevel=2)
    rows = enumerate(table.to_dict("records"), start=2)
    return sample([_argument(row, f"{path}, line {number}") for number, row in rows], n, seed)


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
