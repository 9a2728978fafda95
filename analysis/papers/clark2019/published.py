"""Published values of Clark 2019 beside those of this study; published.md says where they come from."""

from pathlib import Path

import pandas as pd

from analysis.texts.dependencies import STANFORD

COLUMN_NAMES = {  # columns of the surface table in words
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
# Systems of Table 2; by its values, its nearest mention is the nearest on either side.
PRINTED_SYSTEMS = {"nearest, either side": "Nearest", "head match": "Head match", "rule-based": "Rule-based"}
PUBLISHED_HEAD = "BERT head 4-3"
UNTRAINED = "random layers"  # the end of the names of untrained encoders, and their name in Table 3


def table(name: str) -> pd.DataFrame:
    """A table of BERT-base from the paper or the authors' notebook; published.md says what is in it.

    dependencies (Table 1), coreference (2) and probes (3) in percent; layers (means over the heads of a layer, read off
    figures 2 and 4, with the names of `surface_table`).
    """
    path = Path(__file__).with_name(f"published_{name}.csv")
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def beside_dependencies(relations: pd.DataFrame, best_heads: pd.DataFrame) -> pd.DataFrame:
    """Accuracies in percent: of a `dependency_table`, of `best_heads` (same data), and in the authors' notebook."""
    result = relations[["accuracy", "offset_accuracy"]].set_axis(["held out", "offset"], axis=1)
    same_data = best_heads.set_index("relation")["accuracy"]
    result.insert(1, "same data", relations["relation"].map(same_data))
    bert_base = table("dependencies").set_index("relation")[["head", "accuracy", "offset_accuracy"]]
    bert_base = bert_base.reindex(relations["relation"].map(STANFORD)).reset_index(drop=True)
    return pd.concat([relations["relation"], 100 * result, bert_base.add_prefix("BERT-base ")], axis=1)


def beside_coreference(systems: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of Table 2 for each row of `clark_coreference`; the head of the paper stands beside every head."""
    names = systems["system"].map(PRINTED_SYSTEMS).mask(systems["layer"].notna(), PUBLISHED_HEAD)
    return table("coreference").set_index("system").reindex(names).set_index(systems.index) / 100


def beside_probes(means: pd.DataFrame) -> pd.Series:
    """The value of Table 3, in percent, for each row of `probe_means`; NaN for a probe that the paper lacks."""
    names = pd.DataFrame({
        "probe": means["probe"].str.replace("words", "GloVe"),
        "encoder": means["encoder"].mask(means["encoder"] != "none", "BERT-base"),
    })  # fmt: skip
    names["encoder"] = names["encoder"].mask(means["encoder"].str.endswith(UNTRAINED), UNTRAINED)
    return names.merge(table("probes"), how="left")["uas"].set_axis(means.index)
