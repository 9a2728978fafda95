from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.errors import InputError
from analysis.papers.niven2019 import arguments as module
from analysis.papers.niven2019.accuracy import unchanged_claims
from analysis.papers.niven2019.arguments import SETUPS, Argument, cue_table, follows_cue, load_arguments
from analysis.papers.niven2019.negation import adversarial, agreement
from analysis.texts.examples import as_sequences


@pytest.fixture(scope="module")
def table(arct: dict[str, list[Argument]]) -> pd.DataFrame:
    return cue_table(arct, resamples=99).set_index(["split", "cue"])


def test_contractions_are_written_out():
    text = "They can't, won't and don't; he cannot. It's Not so."
    assert module.expanded(text) == "they can not will not and do not he can not it s not so".split()


def test_not_in_arct(table: pd.DataFrame):
    values = table.xs("not", level="cue")[["productivity", "coverage"]].round(3)
    expected = [(0.706, 0.640), (0.703, 0.608), (0.514, 0.561), (0.666, 0.617)]
    assert [*values.loc[["train", "dev", "test", "all"]].itertuples(index=False, name=None)] == expected


@pytest.mark.parametrize(
    ("cue", "values"),
    [
        ("do", (232, 0.612, 0.118)), ("does", (123, 0.642, 0.062)), ("are", (64, 0.594, 0.032)),
        ("to", (110, 0.455, 0.056)), ("a", (79, 0.456, 0.040)), ("can", (76, 0.408, 0.039)),
        ("is", (65, 0.369, 0.033)), ("no", (85, 0.365, 0.043)), ("and", (89, 0.315, 0.045)),
        ("do not", (240, 0.625, 0.122)), ("is not", (229, 0.594, 0.116)), ("are not", (192, 0.688, 0.097)),
        ("can not", (136, 0.794, 0.069)), ("does not", (127, 0.630, 0.064)), ("not be", (105, 0.724, 0.053)),
        ("will not", (93, 0.796, 0.047)), ("should not", (72, 0.681, 0.037)), ("would not", (38, 0.842, 0.019)),
        ("not always", (32, 0.844, 0.016)), ("can be", (48, 0.312, 0.024)),
    ],
)  # fmt: skip
def test_other_cues(table: pd.DataFrame, cue: str, values: tuple[int, float, float]):
    row = table.loc[("all", cue)]
    values_of_cue = (row["applicability"], round(row["productivity"], 3), round(row["coverage"], 3))
    assert values_of_cue == pytest.approx(values, abs=1e-9)


def test_the_adversarial_set_has_no_cue_in_its_warrants(arct: dict[str, list[Argument]]):
    doubled = {split: adversarial(arguments) for split, arguments in arct.items()}
    signs_by_split = [follows_cue(arguments) for arguments in doubled.values()]
    assert [int(np.abs(signs).sum()) for signs in signs_by_split] == [1550, 384, 498]
    assert [int(signs.sum()) for signs in signs_by_split] == [0, 0, 0]
    cues = cue_table(doubled, minimum=1, resamples=9)
    assert (cues["productivity"].dropna() == 0.5).all()


def test_planted_cues_are_found():
    splits = {"train": load_arguments("bundled", "train", 200, 0, 0.8, 0.5)}
    table = cue_table(splits, resamples=499).set_index(["split", "cue"])
    row = table.loc[("train", "not")]
    assert (row["applicability"], row["productivity"], row["coverage"]) == (100, 0.8, 0.5)
    assert sum(argument.label for argument in splits["train"]) == 100
    # The half width of the normal interval of a share of 100 points.
    assert row["high"] - row["low"] == pytest.approx(2 * 1.96 * np.sqrt(0.8 * 0.2 / 100), rel=0.25)


def test_signs_by_hand():
    first = Argument("a", "C", "R", ("it is not so", "it is so today and always"), 0)
    second = Argument("b", "C", "R", ("it isn't so", "it is not so"), 1)
    third = Argument("c", "C", "R", ("it is so", "it cannot be so"), 0)
    assert follows_cue([first, second, third]).tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("split", "n", "ones"), [("train", 1210, 619), ("dev", 316, 156), ("test", 444, 230)]
)
def test_released_files(arct_folder, split: str, n: int, ones: int, recwarn: pytest.WarningsRecorder):
    arguments = load_arguments(arct_folder, split)
    assert (len(arguments), sum(argument.label for argument in arguments)) == (n, ones)
    assert not recwarn.list


def test_what_each_setup_shows():
    argument = Argument("a", "We need it", "It helps.", ("help counts", "help does not count"), 0)
    examples = {setup: as_sequences(module.as_examples([argument], setup)) for setup in SETUPS}
    texts = {setup: [example.texts for example in examples[setup]] for setup in SETUPS}
    assert texts == {
        "full": [("We need it. It helps.", "help counts"), ("We need it. It helps.", "help does not count")],
        "W": [("help counts",), ("help does not count",)],
        "RW": [("It helps.", "help counts"), ("It helps.", "help does not count")],
        "CW": [("We need it", "help counts"), ("We need it", "help does not count")],
    }


def test_a_coverage_of_no_argument_is_refused():
    assert len(module.bundled_arguments(40, coverage=1 / 40)) == 40
    with pytest.raises(
        InputError, match="coverage is 0.001, which is none of 40 arguments: give at least 0.025"
    ):
        module.bundled_arguments(40, coverage=0.001)


def test_bundled_splits_share_no_whole_argument():
    """They share claims, reasons and warrants."""
    texts = ["claim", "reason", "warrant0", "warrant1"]
    train, dev = (module.bundled_arguments(100, 1, split)[texts].to_numpy() for split in ("train", "dev"))
    assert not {*map(frozenset, train)} & {*map(frozenset, dev)}


@pytest.fixture
def adversarial_folder(tmp_path):
    """Adversarial files for bundled arguments: originals and copies shuffled, the columns of test reversed."""
    splits = {split: load_arguments("bundled", split, 8) for split in module.SPLITS}
    for (_, split), (name, end) in module.RELEASED.items():
        table = module.bundled_arguments(8, 0, split).iloc[:, :8].astype(str)
        copies = table.assign(**{"#id": table["#id"] + end, "claim": "No. " + table["claim"]})
        copies["correctLabelW0orW1"] = (1 - table["correctLabelW0orW1"].astype(int)).astype(str)
        rows = pd.concat([copies, table]).sample(frac=1, random_state=0)
        rows.iloc[:, :: -1 if split == "test" else 1].to_csv(tmp_path / name, sep="\t", index=False)
    return tmp_path, splits


def test_copies_of_released_files_follow_the_originals_whatever_the_order_of_rows_and_columns(
    adversarial_folder,
):
    folder, splits = adversarial_folder
    assert module.missing_files(folder) == module.missing_files(None) == []
    sets = module.released_sets(folder, {split: points[:5] for split, points in splits.items()})
    assert sets["negated"]["test"] == sets["adversarial"]["test"]
    for split, points in sets["adversarial"].items():
        assert points[:5] == splits[split][:5]
        assert [copy.claim for copy in points[5:]] == [f"No. {point.claim}" for point in points[:5]]
        assert [copy.label for copy in points[5:]] == [1 - point.label for point in points[:5]]
    others = splits | {"dev": [replace(point, id="new") for point in splits["dev"]]}
    with pytest.raises(InputError, match="no copy new-adversarial; delete the file and run make data"):
        module.released_sets(folder, others)
    (folder / "train-swapped.csv").unlink()
    assert module.missing_files(folder) == ["train-swapped.csv"]
    assert len(module.missing_files(folder / "none")) == 4


def test_released_adversarial_files(arct, data_dir):
    """Of the copies of the test set 28 keep their claim; our negation has the words of 246 of 264 claims."""
    folder = data_dir / "arct2"
    if not folder.is_dir():
        pytest.skip("DATA_DIR holds no arct2")
    sets = module.released_sets(folder, arct)
    assert unchanged_claims(sets["adversarial"]["test"]) == 28
    assert [len(sets[name]["train"]) for name in ("adversarial", "negated")] == [2420, 2420]
    pairs = [agreement(part, sets["negated"][split][len(part) :]) for split, part in arct.items()]
    assert [*map(sum, zip(*pairs, strict=True))] == [246, 264]
