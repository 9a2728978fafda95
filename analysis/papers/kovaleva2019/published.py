"""Values of Kovaleva 2019 and of later work by the same authors; published.md says how they were read."""

from pathlib import Path

import pandas as pd

from analysis.errors import InputError

FOLDER = Path(__file__).parent
TABLES = ("patterns", "heads", "layers", "features", "cls", "initialisation")


def kovaleva(table: str) -> pd.DataFrame:
    """One of TABLES, all of BERT-base; layers and heads count from 0. Raises InputError for another table."""
    if table not in TABLES:
        raise InputError(f"Kovaleva 2019 has no table {table!r} here; use one of {', '.join(TABLES)}")
    return pd.read_csv(FOLDER / f"published_{table}.csv")
