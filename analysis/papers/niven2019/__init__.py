"""Probing Neural Network Comprehension of Natural Language Arguments (Niven and Kao, ACL 2019)."""

from pathlib import Path
from typing import Any

import pandas as pd

from analysis.statistics.claims import read_claims


def __getattr__(name: str) -> Any:
    """`CLAIMS`, the claims of the article and ours, read when they are asked for."""
    if name == "CLAIMS":
        return read_claims(Path(__file__).with_name("claims.yaml"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its notebook saved it."""
    return results.claims("claims-niven2019")
