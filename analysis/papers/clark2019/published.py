"""Tables and layer means of Clark 2019; published.md says how they were read."""

from pathlib import Path

import pandas as pd

from analysis.errors import InputError

FOLDER = Path(__file__).parent
CLARK_TABLES = ("dependencies", "coreference", "probes")


def clark(table: str) -> pd.DataFrame:
    """A table of Clark 2019: `dependencies` (Table 1), `coreference` (2) or `probes` (3); values are percentages.

    All are of BERT-base: dependencies and probes on the Penn Treebank, coreference on CoNLL-2012. Layers and heads
    count from 0. Raises InputError for another table.
    """
    if table not in CLARK_TABLES:
        raise InputError(f"Clark 2019 has no table {table!r} here; use one of {', '.join(CLARK_TABLES)}")
    return pd.read_csv(FOLDER / f"published_{table}.csv", keep_default_na=False, na_values=[""])


def surface_layers() -> pd.DataFrame:
    """Mean over the heads of each layer of BERT-base (Clark 2019, figures 2 and 4), read off the figures.

    Columns layer, the proportions cls, sep, punct, rest_sep, sep_sep (within 0.015), and entropy, entropy_cls
    (nats, within 0.08), with the names in `surface_table`.
    """
    return pd.read_csv(FOLDER / "published_layers.csv")


def specialists() -> pd.DataFrame:
    """How many heads of BERT-base have more than half of their attention on the previous or next token (3.1).

    Columns statistic, heads and layers (once for each head, separated by blanks) from the text of the article,
    figure_heads and figure_layers from the figure in the authors' notebook, of (all heads of the encoder).
    """
    return pd.read_csv(FOLDER / "published_specialists.csv")
