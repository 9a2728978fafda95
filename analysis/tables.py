"""Tables from parts, and how p-values are written."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

LEAST = 1e-300  # smaller p-values are written as this number, and printed as "< 1e-300"
P_VALUES = re.compile(r"(^|_)p(_|$)")  # the names of their columns


def stacked(tables: Mapping[Any, pd.DataFrame], *names: str) -> pd.DataFrame:
    """Tables one below the other, with their keys as leading columns `names`; a key of several columns is a tuple."""
    if not tables:
        return pd.DataFrame(columns=[*names])
    parts = pd.concat(tables, names=[*names])
    return parts.reset_index([*names]).reset_index(drop=True)


def published(paper: Path, name: str) -> pd.DataFrame:
    """A table of published values in the folder of a paper, whose published.md says where each comes from."""
    return pd.read_csv(paper / f"published_{name}.csv")


def p_text(p: float) -> str:
    """A p-value with two digits, "0.034" or "< 1e-300"."""
    return f"{p:.2g}" if not p <= LEAST else f"< {LEAST:g}"


def p_equals(p: float) -> str:
    """A p-value in a sentence, "p = 0.034" or "p < 1e-300"."""
    return f"p {'<' if p <= LEAST else '='} {p_text(p).removeprefix('< ')}"


def p_formats(table: pd.DataFrame) -> dict[str, Callable[[float], str]]:
    """The formats of the columns of p-values, for `table.style.format`."""
    return {column: p_text for column in _columns(table)}


def above_zero(table: pd.DataFrame) -> pd.DataFrame:
    """The table with LEAST in place of smaller p-values, so that a file does not say 0."""
    return table.assign(**{column: table[column].clip(lower=LEAST) for column in _columns(table)})


def _columns(table: pd.DataFrame) -> list[str]:
    numbers = table.select_dtypes("number").columns
    return [column for column in numbers if P_VALUES.search(str(column))]
