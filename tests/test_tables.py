"""How p-values are written."""

import numpy as np
import pandas as pd
import pytest

from analysis import tables
from analysis.statistics.significance import t_test


@pytest.mark.parametrize(
    ("p", "text", "sentence"),
    [(0.0341, "0.034", "p = 0.034"), (1.0, "1", "p = 1"), (2.3e-9, "2.3e-09", "p = 2.3e-09"),
     (0.0, "< 1e-300", "p < 1e-300"), (1e-300, "< 1e-300", "p < 1e-300"), (np.nan, "nan", "p = nan")],
)  # fmt: skip
def test_no_p_value_is_printed_as_0(p, text, sentence):
    assert (tables.p_text(p), tables.p_equals(p)) == (text, sentence)


def test_tables_have_no_p_of_0_in_print_and_in_files():
    n, values = np.array([1000, 1000]), np.array([[9.0, 3.1], [0.1, 1.0]])
    p = t_test(n, values[0], values[1], 3.0).p
    assert p[0] == 0
    table = pd.DataFrame({"p": p, "beyond_p_by": p, "p_holm": [np.nan, 0], "up": 0, "status": ["a", "b"]})
    saved = tables.above_zero(table)
    assert saved["p"].tolist() == [1e-300, p[1]]
    assert saved["p_holm"].isna().tolist() == [True, False]
    assert (saved["up"] == 0).all()
    assert set(tables.p_formats(table)) == {"p", "beyond_p_by", "p_holm"}
