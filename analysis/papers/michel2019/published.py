"""Values of Michel 2019 and of an independent replication; published.md gives their sources."""

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent


def single_heads() -> pd.DataFrame:
    """BERT-base on MNLI-m, from the replication: change of accuracy (proportion) without each head, and importance.

    Columns layer, head (0-based), change, importance (unit norm in each layer).
    """
    return _table("single_heads")


def all_but_one() -> pd.DataFrame:
    """Change of accuracy (MNLI) or Matthews (CoLA), as a proportion, of BERT-base with one head left in a layer.

    Columns source (article, replication), task, chosen_on, layer (0-based), change.
    """
    return _table("all_but_one")


def pruning() -> pd.DataFrame:
    """Scores of BERT-base by the number of pruned heads (of 144), from the replication: task, order, heads, value."""
    return _table("pruning")


def prunable() -> pd.DataFrame:
    """Share of heads that the article prunes without noticeable loss: task, model, share."""
    return _table("prunable")


def transfer() -> pd.DataFrame:
    """Correlation of single-head scores of BERT-base on two dev sets: source, data_a, data_b, r, spearman."""
    return _table("transfer")


def speed() -> pd.DataFrame:
    """Examples per second of BERT-base on a GPU, whole and with half of the heads: batch, original, pruned, gain."""
    return _table("speed")


def translation() -> pd.DataFrame:
    """Change of BLEU of a translation model with one head left in a layer (literature; nothing here translates).

    Columns table, attention (EncEnc, EncDec, DecDec), layer (0-based), change_bleu, significant (p < .01).
    """
    return _table("translation")


def _table(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"published_{name}.csv")
