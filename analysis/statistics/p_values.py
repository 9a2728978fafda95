"""P-values in print: none is 0."""

import re
from collections.abc import Callable

import pandas as pd

LEAST = 1e-300  # smaller ones are written as this number, and printed as "< 1e-300"
COLUMN = re.compile(r"(^|_)p(_|$)")


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
    return [column for column in numbers if COLUMN.search(str(column))]
