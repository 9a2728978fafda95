"""What Clark 2019 published, and how its names match those of this study; published.md says how it was read."""

from pathlib import Path

import pandas as pd

MARKED = {  # what the columns of the surface table are about, in words
    "previous": "previous token",
    "next": "next token",
    "most": "most attended token",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punct": "full stops and commas",
    "cls_cls": "[CLS] to [CLS]",
    "sep_sep": "[SEP] to [SEP]",
    "rest_sep": "other tokens to [SEP]",
    "self": "itself",
}
# Our systems that Table 2 has too; by its values, its nearest mention is the nearest on either side.
SYSTEMS = {"nearest, either side": "Nearest", "head match": "Head match", "rule-based": "Rule-based"}
THEIR_HEAD = "BERT head 4-3"
BOTH_HALVES = "both halves in turn"  # value of `scored_on` for cross-fitted heads
UNTRAINED = "random layers"  # the end of the names of untrained encoders, and their name in Table 3


def table(name: str) -> pd.DataFrame:
    """A table of BERT-base from the article or the authors' notebook; published.md says what is in it.

    dependencies (Table 1), coreference (2) and probes (3) in percent; layers (means over the heads of a layer, read off
    figures 2 and 4, with the names in `surface_table`); specialists (heads for the previous and next token, 3.1).
    """
    path = Path(__file__).with_name(f"published_{name}.csv")
    return pd.read_csv(path, keep_default_na=False, na_values=[""])
