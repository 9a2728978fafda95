"""Values of Niven and Kao 2019; published.md says where they come from."""

from pathlib import Path

import pandas as pd

from analysis.errors import InputError

FOLDER = Path(__file__).parent
TABLES = ("cues", "results", "reliance")
KEYS = ["model", "setup", "trained_on"]
BAG, BILSTM, ENCODER = "bag of vectors", "BiLSTM", "encoder"  # models
ORIGINAL, DOUBLED = "original", "adversarial"  # training sets, and the halves of the adversarial set


def niven(table: str) -> pd.DataFrame:
    """A table of Niven 2019: `cues` (Table 2), `results` (Tables 1, 3, 4) or `reliance` (from the released
    predictions); all values are proportions. Raises InputError for another table."""
    if table not in TABLES:
        raise InputError(f"Niven 2019 has no table {table!r} here; use one of {', '.join(TABLES)}")
    return pd.read_csv(FOLDER / f"published_{table}.csv")
