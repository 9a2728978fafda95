import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.statistics import encoders
from analysis.statistics.claims import Claim


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["supported", "supported"], "supported on both"),
        (["supported", "mixed"], "supported on one, undecided on the other"),
        (["inconclusive", "supported"], "supported on one, undecided on the other"),
        (["supported", "not supported"], "supported on one, refuted on the other"),
        (["not supported", "not supported"], "supported on none"),
        (["mixed", "inconclusive"], "supported on none"),
        (["supported", "not applicable"], "not judged"),
        (["supported", "supported", "supported"], "supported on all"),
        (["supported", "not supported", "supported"], "supported on some"),
        (["mixed", "not supported", "inconclusive"], "supported on none"),
    ],
)
def test_words_for_verdicts_of_several_encoders(verdicts: list[str], expected: str):
    assert encoders.agreement(verdicts) == encoders.agreement(verdicts[::-1]) == expected


def claim(name: str = "A", interval: str = "runs and sequences", **fields: object) -> Claim:
    return Claim(name, "words", "", "", 0, ">", unit="task", interval=interval, **fields)


def units(claim: str = "A", **columns: object) -> pd.DataFrame:
    table = pd.DataFrame({"claim": claim} | columns)
    return table.assign(low=table["value"] - table["half"], high=table["value"] + table["half"])


def test_encoders_are_compared_on_the_units_that_all_of_them_have():
    first = units(unit=["mrpc", "qqp"], value=[0.3, 9.0], half=0.1, runs=3)
    second = units(unit=["sst-2", "mrpc"], value=[7.0, 0.1], half=0.1, runs=3)
    table = encoders.encoder_table({"one": first, "two": second}, [claim(), claim("B")])
    assert table["units"].dropna().tolist() == ["mrpc", "mrpc"]
    assert table["estimate"].dropna().tolist() == pytest.approx([0.3, 0.1])
    row = table.iloc[1]
    half = 0.1 * np.sqrt(2)
    ends = ["difference", "difference_low", "difference_high"]
    assert row[ends].tolist() == pytest.approx([-0.2, -0.2 - half, -0.2 + half])
    assert row["relation"] == "differ"
    assert table["holds"].tolist() == [encoders.UNDECIDED, encoders.UNDECIDED, "not judged", "not judged"]
    assert table["verdict"].tolist()[2:] == ["not applicable"] * 2
    apart = encoders.encoder_table({"one": first[1:], "two": second}, [claim()])
    assert {*apart["holds"]} == {"not judged"}


def test_numbers_of_data_are_not_compared():
    table = units(unit=["test"], value=[0.3], half=0.1, runs=0)
    assert encoders.encoder_table({"one": table, "two": table}, [claim(measures="data")]).empty


def test_one_run_borrows_the_variance_between_runs():
    """Pooled over units, with a t quantile of its degrees of freedom; without three runs there is no verdict."""
    names = ["mrpc", "qqp"]
    many = units(unit=names, value=[0.5, 0.5], half=0.2, runs=3, between=[0.01, 0.03])
    single = units(unit=names, value=[0.2, 0.2], half=0.02, runs=1)
    variance, freedom = encoders.between_runs([many.set_index("unit")])
    assert (variance, freedom) == (pytest.approx(0.02), 4)
    rows = encoders.encoder_table({"many": many, "single": single}, [claim()]).set_index("encoder")
    assert rows.loc["single", ["verdict", "borrowed"]].tolist() == ["inconclusive", "many"]
    assert rows.loc["single", "low"] < 0 < rows.loc["single", "estimate"]
    alone = encoders.encoder_table({"one": single, "two": single}, [claim()])
    assert {*alone["verdict"]} == {"inconclusive"}
    before = encoders.encoder_table({"one": single, "two": single}, [claim(interval="sequences")])
    assert {*before["verdict"]} == {"supported"}
    # Where the variance was not saved, the interval is read as if runs alone made it.
    implied, _ = encoders.between_runs([many.drop(columns="between").set_index("unit")])
    assert implied == pytest.approx(3 * (0.2 / stats.t.ppf(0.975, 2)) ** 2)


def test_differences_of_three_encoders_are_from_the_first():
    tables = {
        name: units(unit=["mrpc"], value=[value], half=0.1, runs=0)
        for name, value in {"a": 1, "b": 2, "c": 1.05}.items()
    }
    table = encoders.encoder_table(tables, [claim(interval="sequences")])
    assert table["relation"].tolist() == ["", "differ", "not shown to differ"]
    counts = encoders.agreement_counts(table)
    assert counts["supported on all"] == 1
    assert "supported on both" not in counts


def test_a_claim_without_saved_units_is_its_mean():
    row = {"claim": "A", "estimate": 0.5, "low": 0.4, "high": 0.6, "units": 4, "runs": 3}
    table = encoders.units_of_claims(pd.DataFrame([row, row | {"units": np.nan}, row | {"estimate": np.nan}]))
    assert table["unit"].tolist() == ["mean of 4 units", ""]


def test_roles_of_two_encoders_by_layer():
    heads = [(task, layer, head) for task in "ab" for layer in range(3) for head in range(2)]
    labels = pd.DataFrame(heads, columns=["task", "layer", "head"]).assign(role="local")
    in_task = (labels["task"] == "a") & (labels["layer"] == 0)
    labels["assigned"] = ((labels["layer"] == 1) | in_task).astype("boolean")
    shares = encoders.role_shares(labels, ["local"])
    assert np.allclose(shares["local"], [[0.5, 0.5], [1, 1], [0, 0]])
    others = [1 - shares["local"], shares["local"][:, :1], shares["local"][:2], np.ones((3, 2))]
    correlations = [encoders.layer_correlations(shares, {"local": other}).get("local") for other in others]
    assert [item and item[0] for item in correlations] == [pytest.approx(-1), pytest.approx(1), None, None]


def test_the_interval_of_a_correlation_of_layers_is_that_of_fisher():
    rng = np.random.default_rng(0)
    first, second = ({"local": rng.random((12, 2))} for _ in range(2))
    r, low, high = encoders.layer_correlations(first, second)["local"]
    assert np.arctanh([low, high]) == pytest.approx(np.arctanh(r) + np.array([-1.96, 1.96]) / 3, abs=1e-3)
