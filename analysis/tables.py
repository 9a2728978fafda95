"""Tables from parts."""

from collections.abc import Mapping
from typing import Any

import pandas as pd


def stacked(tables: Mapping[Any, pd.DataFrame], *names: str) -> pd.DataFrame:
    """Tables one below the other, with their keys as leading columns `names`; a key of several columns is a tuple."""
    if not tables:
        return pd.DataFrame(columns=[*names])
    parts = pd.concat(tables, names=[*names])
    return parts.reset_index([*names]).reset_index(drop=True)
