import numpy as np
import pandas as pd
import pytest

from analysis.statistics import encoders


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("supported", "supported", "supported on both"),
        ("supported", "mixed", "supported on one"),
        ("inconclusive", "supported", "supported on one"),
        ("supported", "not supported", "contradicted"),
        ("not supported", "not supported", "supported on none"),
        ("mixed", "inconclusive", "supported on none"),
        ("supported", "not applicable", "not judged"),
    ],
)
def test_verdicts_of_two_encoders(first: str, second: str, expected: str):
    for verdicts in ([first, second], [second, first]):
        assert encoders.agreement(pd.Series(verdicts)) == expected


def claims(**verdicts: str) -> pd.DataFrame:
    numbers = dict.fromkeys(["estimate", "low", "high", "published_estimate"], 1.0) | {"published": "a half"}
    return pd.DataFrame({"claim": [*verdicts], "verdict": [*verdicts.values()]}).assign(**numbers)


def test_rows_are_ordered_by_agreement_and_claims_of_one_encoder_left_out():
    first = claims(A="not applicable", B="supported", C="supported", D="supported", E="mixed")
    second = claims(A="supported", B="not supported", C="supported", D="supported")
    table = encoders.encoder_table({"one": first, "two": second})
    assert [*table["claim"]] == ["C", "C", "D", "D", "B", "B", "A", "A"]
    assert [*table["encoder"]] == ["one", "two"] * 4
    assert [*table["verdict"]][4:6] == ["supported", "not supported"]
    counts = encoders.agreement_counts(table)
    assert [*counts.index] == [*encoders.AGREEMENTS]
    assert [*counts] == [2, 0, 0, 1, 1]


def test_roles_of_two_encoders_by_layer():
    heads = [(task, layer, head) for task in "ab" for layer in range(3) for head in range(2)]
    labels = pd.DataFrame(heads, columns=["task", "layer", "head"]).assign(role="local")
    in_task = (labels["task"] == "a") & (labels["layer"] == 0)
    labels["assigned"] = ((labels["layer"] == 1) | in_task).astype("boolean")
    shares = encoders.role_shares(labels, ["local"])
    assert np.allclose(shares["local"], [[0.5, 0.5], [1, 1], [0, 0]])
    others = [1 - shares["local"], shares["local"][:, :1], shares["local"][:2], np.ones((3, 2))]
    correlations = [encoders.layer_correlations(shares, {"local": other}) for other in others]
    assert [item.get("local") for item in correlations] == [pytest.approx(-1), pytest.approx(1), None, None]
