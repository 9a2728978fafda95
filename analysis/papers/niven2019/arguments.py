"""Arguments with two warrants, read from the files of ARCT or written by the bundled grammar, and checked."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import InputError
from analysis.files import expand
from analysis.texts.bundled import bundled_arguments
from analysis.texts.examples import Example
from analysis.texts.glue import read_table, require_columns, sample
from analysis.texts.tasks import CHOICE, Task

COLUMNS = "#id warrant0 warrant1 correctLabelW0orW1 reason claim debateTitle debateInfo".split()
LABELS = ("0", "1")
SPLITS = ("train", "dev", "test")
ROWS = {"train": 1210, "dev": 316, "test": 444, "train-w-swap": 2420}
MD5 = {
    "train": "17db7209b6f5052514c83fcc4b61e407",
    "dev": "79cd54fea2ae0269427670f485348994",
    "test": "51a715ebe50f189b0bf44a8f1941d80f",
}
SWAPPED = "-swapped"
BUNDLED = {"train": 1200, "dev": 300, "test": 400}  # arguments of the bundled grammar by default
# The texts that a model sees next to each warrant: the reason (R), the claim (C), both or none.
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
    cue "not" in the texts of the grammar. If a file repeats an id with the warrants exchanged and the label reversed,
    the second of the two gets the id `<id>-swapped`. Warns if a file is not the released one, byte for byte. Raises
    InputError, naming file and line, for missing columns, another number of rows, an unknown label, an empty text, two
    equal warrants and any other repeated id.
    """
    if source == "bundled":
        size = BUNDLED.get(split, 0) if n is None else n
        table = bundled_arguments(size, seed, split, productivity, coverage)
        return [
            _argument(row, f"{split}, row {number}") for number, row in enumerate(table.to_dict("records"))
        ]
    if split not in ROWS:
        raise InputError(f"split {split!r} is unknown; choose one of {', '.join(ROWS)}")
    path = expand(source) / f"{split}-full.txt"
    if not path.is_file():
        raise InputError(f"{path}: no such file; source must be 'bundled' or the folder of the ARCT files")
    return sample(read_arguments(path, ROWS[split], MD5.get(split)), n, seed)


def read_arguments(path: Path, rows: int | None = None, md5: str | None = None) -> list[Argument]:
    """All arguments of a file of ARCT. Warns and raises as `load_arguments` does."""
    table = read_table(path)
    require_columns(table, COLUMNS, str(path))
    arguments: dict[str, Argument] = {}
    for number, row in enumerate(table.to_dict("records"), start=2):
        place = f"{path}, line {number}"
        argument = _argument(row, place)
        arguments[_name(argument, arguments, place)] = argument
    if rows is not None and len(arguments) != rows:
        raise InputError(f"{path}: {len(arguments):,} rows, ARCT has {rows:,}: give the released file")
    if md5 and hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() != md5:
        warnings.warn(
            f"{path} is not the released file: published values need not follow from it", stacklevel=3
        )
    return [Argument(**vars(argument) | {"id": name}) for name, argument in arguments.items()]


def _argument(row: Mapping[str, str | int], place: str) -> Argument:
    """One row as an argument; raises InputError if it is wrong."""
    for column in ("#id", "warrant0", "warrant1", "reason", "claim"):
        if not str(row[column]).strip():
            raise InputError(f"{place}: {column} is empty; fill it in or remove the row")
    label = str(row["correctLabelW0orW1"])
    if label not in LABELS:
        raise InputError(
            f"{place}: label {label!r} is not one of {', '.join(LABELS)}; correct it or remove the row"
        )
    claim, reason, *warrants = (
        str(row[name]).strip() for name in ("claim", "reason", "warrant0", "warrant1")
    )
    if warrants[0].casefold() == warrants[1].casefold():
        raise InputError(f"{place}: the two warrants are equal; correct one or remove the row")
    return Argument(
        str(row["#id"]), claim, reason, (warrants[0], warrants[1]), int(label), str(row["debateTitle"]),
        row.get("negatedClaim"),
    )  # fmt: skip


def _name(argument: Argument, earlier: Mapping[str, Argument], place: str) -> str:
    """The id, or `<id>-swapped` for the second of a swapped pair; raises InputError for other repeated ids."""
    if argument.id not in earlier:
        return argument.id
    first, name = earlier[argument.id], argument.id + SWAPPED
    if name in earlier or argument.warrants != first.warrants[::-1] or argument.label == first.label:
        raise InputError(f"{place}: id {argument.id!r} stands on an earlier line too; remove one of the rows")
    return name


def as_examples(arguments: Sequence[Argument], setup: str) -> list[Example]:
    """The arguments as a model of a set-up sees them: the text before both warrants, and the warrants as choices.

    Claim and reason are joined to "claim. reason."; a single one is not changed. Raises InputError for another
    set-up. Source: Niven 2019, released code.
    """
    if setup not in SETUPS:
        raise InputError(f"set-up {setup!r} is unknown; choose one of {', '.join(SETUPS)}")
    return [
        Example(
            argument.id, _shared(argument, SETUPS[setup]), label=argument.label, choices=argument.warrants
        )
        for argument in arguments
    ]


def _shared(argument: Argument, parts: tuple[str, ...]) -> str:
    texts = [getattr(argument, part) for part in parts]
    if len(texts) == 1:
        return texts[0]
    return " ".join(text if text.endswith(".") else f"{text}." for text in texts)


def all_splits(splits: Mapping[str, list[Argument]]) -> dict[str, list[Argument]]:
    """The splits, and all of them together as one more."""
    return {**splits, "all": [argument for arguments in splits.values() for argument in arguments]}
