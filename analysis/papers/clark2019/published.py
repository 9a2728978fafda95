"""What Clark 2019 published, and this study's values beside it; published.md says how it was read."""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.texts.dependencies import STANFORD

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
BEST_HEAD = "best head among"  # starts several names; the article does not say among what its head chooses
THEIR_HEAD = "BERT head 4-3"
WORDS, GLOVE = "words", "GloVe"  # word vectors in the names of probes, here and in Table 3
ORIGINAL = ", original ROOT alignment"  # ends the names of probes that pair words as the released code does
NO_ENCODER = "none"
BOTH_HALVES = "both halves in turn"  # value of `scored_on` for cross-fitted heads
UNTRAINED = "random layers"  # the end of the names of untrained encoders


def table(name: str) -> pd.DataFrame:
    """A table of BERT-base from the article or the authors' notebook; published.md says what is in it.

    dependencies (Table 1), coreference (2) and probes (3) in percent; layers (means over the heads of a layer, read off
    figures 2 and 4, with the names in `surface_table`); specialists (heads for the previous and next token, 3.1).
    """
    path = Path(__file__).with_name(f"published_{name}.csv")
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def dependencies_beside_published(dependencies: pd.DataFrame, optimistic: pd.DataFrame) -> pd.DataFrame:
    """Accuracies in percent: held out, on the data that chose the head, for the offset, and those of Clark 2019.

    From `dependency_table` and `best_heads`; columns that start with `BERT-base` hold the output of the authors'
    notebook for the Penn Treebank, NaN if a relation has no counterpart there.
    """
    relations = dependencies["relation"]
    same_data = relations.map(optimistic.set_index("relation")["accuracy"])
    ours = {
        "held_out": dependencies["accuracy"],
        "same_data": same_data,
        "offset": dependencies["offset_accuracy"],
    }
    theirs = table("dependencies").set_index("relation")[["head", "accuracy", "offset_accuracy"]]
    return _beside(relations, pd.DataFrame(ours), theirs.reindex(relations.map(STANFORD)))


def systems_beside_published(systems: pd.DataFrame) -> pd.DataFrame:
    """Table 2: our accuracies in percent, then BERT-base's on CoNLL-2012 (columns BERT-base ...), by kind of mention.

    `systems` is that of `coreference.held_out_systems`. NaN if the article has no such system. The article does not say
    what its head chooses among, so its value stands next to every reading of ours.
    """
    names = [THEIR_HEAD if name.startswith(BEST_HEAD) else SYSTEMS.get(name) for name in systems["system"]]
    theirs = table("coreference").set_index("system").reindex(names)
    return _beside(systems["system"], systems[theirs.columns], theirs)


def _beside(names: pd.Series, ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Names, our proportions in percent, then percentages of BERT-base, row by row."""
    return pd.concat([names, 100 * ours, theirs.add_prefix("BERT-base ").reset_index(drop=True)], axis=1)


def probes_beside_published(probes: pd.DataFrame) -> pd.DataFrame:
    """Table 3: our accuracies without punctuation in percent (mean over seeds), then BERT-base's with GloVe vectors.

    Columns probe, encoder, seeds, this_encoder, bert_base_published; `probes` is that of `probes.probe_table`. NaN if
    the article has no such probe.
    """
    scores = probes.groupby(["probe", "encoder"], sort=False)["uas_no_punct"]
    ours = scores.agg(seeds="size", this_encoder="mean").reset_index()
    probe = ours["probe"].str.removesuffix(ORIGINAL).str.replace(WORDS, GLOVE)
    none, untrained = ours["encoder"] == NO_ENCODER, ours["encoder"].str.endswith(UNTRAINED)
    encoder = np.select([none, untrained], [NO_ENCODER, UNTRAINED], "BERT-base")
    theirs = table("probes").set_index(["probe", "encoder"])["uas"]
    counterparts = theirs.reindex(pd.MultiIndex.from_arrays([probe, encoder])).to_numpy()
    return ours.assign(this_encoder=100 * ours["this_encoder"], bert_base_published=counterparts)
