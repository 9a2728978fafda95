"""What Clark 2019 published, and this study's values beside it; published.md says how it was read."""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.errors import InputError
from analysis.texts.chains import KINDS
from analysis.texts.dependencies import STANFORD

FOLDER = Path(__file__).parent
CLARK_TABLES = ("dependencies", "coreference", "probes")
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


def layers_beside_published(table: pd.DataFrame) -> pd.DataFrame:
    """Layer means next to those in the article's figures for BERT-base: another model on other text.

    Columns layer, statistic, bert_base_published, this_encoder; missing if an encoder has no such layer. `table` is
    that of `surface_table`.
    """
    theirs = surface_layers().set_index("layer")
    columns = {
        "bert_base_published": theirs,
        "this_encoder": table.groupby("layer")[[*theirs.columns]].mean(),
    }
    long = {name: means.rename_axis(columns="statistic").stack() for name, means in columns.items()}
    return pd.DataFrame(long).reindex(long["bert_base_published"].index).reset_index()


def beside_published(table: pd.DataFrame, optimistic: pd.DataFrame) -> pd.DataFrame:
    """Accuracies in percent: held out, on the data that chose the head, for the offset, and those of Clark 2019.

    `table` is that of `dependency_table`, `optimistic` that of `best_heads`; columns that start with `BERT-base` hold
    the output of the authors' notebook for the Penn Treebank, NaN if a relation has no counterpart there.
    """
    theirs = clark("dependencies").set_index("relation")[["head", "accuracy", "offset_accuracy"]]
    same_data = optimistic.set_index("relation")["accuracy"].reindex(table["relation"]).to_numpy()
    ours = {"held_out": table["accuracy"], "same_data": same_data, "offset": table["offset_accuracy"]}
    percent = pd.DataFrame(
        {"relation": table["relation"], **{name: 100 * each for name, each in ours.items()}}
    )
    published = (
        theirs.reindex(table["relation"].map(STANFORD)).add_prefix("BERT-base ").reset_index(drop=True)
    )
    return percent.join(published)


def systems_beside_published(systems: pd.DataFrame) -> pd.DataFrame:
    """Table 2: our accuracies in percent, then BERT-base's on CoNLL-2012 (columns BERT-base ...), by kind of mention.

    `systems` is that of `coreference.held_out_systems`. NaN if the article has no such system. The article does not say
    what its head chooses among, so its value stands next to every reading of ours.
    """
    theirs = clark("coreference").set_index("system")[["all", *KINDS]].add_prefix("BERT-base ")
    names = [THEIR_HEAD if name.startswith(BEST_HEAD) else SYSTEMS.get(name) for name in systems["system"]]
    ours = systems[["system", "all", *KINDS]].set_index("system").mul(100).reset_index()
    return ours.join(theirs.reindex(names).reset_index(drop=True))


def probes_beside_published(probes: pd.DataFrame) -> pd.DataFrame:
    """Table 3: our accuracies without punctuation in percent (mean over seeds), then BERT-base's with GloVe vectors.

    Columns probe, encoder, seeds, this_encoder, bert_base_published; `probes` is that of `probes.probe_table`. NaN if
    the article has no such probe.
    """
    theirs = clark("probes").set_index(["probe", "encoder"])["uas"]
    scores = probes.groupby(["probe", "encoder"], sort=False)["uas_no_punct"]
    table = scores.agg(seeds="size", this_encoder="mean").reset_index()
    places = [
        (probe.removesuffix(ORIGINAL).replace(WORDS, GLOVE), _kind(encoder))
        for probe, encoder in zip(table["probe"], table["encoder"], strict=True)
    ]
    published_scores = [theirs.get(place, np.nan) for place in places]
    return table.assign(this_encoder=100 * table["this_encoder"], bert_base_published=published_scores)


def linguistic_heads(
    dependencies: pd.DataFrame, coreference: pd.DataFrame, alpha: float = 0.05
) -> pd.DataFrame:
    """The heads that find a relation better than position does, or antecedents best: layer, head, what they find.

    From `attachment.dependency_table`, relations count if p_adjusted < `alpha` and the head exceeds the offset.
    `coreference` holds the saved readings of `coreference.antecedent_table`; only the cross-fitted heads count.
    """
    ahead = (dependencies["p_adjusted"] < alpha) & (
        dependencies["accuracy"] > dependencies["offset_accuracy"]
    )
    relations = dependencies[ahead].rename(columns={"relation": "finds"})
    antecedents = (
        coreference[coreference["scored_on"] == BOTH_HALVES]
        .dropna(subset="layer")
        .assign(finds="coreference")
    )
    both = pd.concat([relations, antecedents])[["layer", "head", "finds"]].astype({"layer": int, "head": int})
    return (
        both.groupby(["layer", "head"])["finds"]
        .agg(lambda names: ", ".join(dict.fromkeys(names)))
        .reset_index()
    )


def _kind(encoder: str) -> str:
    """The counterpart in Table 3 of an encoder of ours."""
    if encoder == NO_ENCODER:
        return NO_ENCODER
    return UNTRAINED if encoder.endswith(UNTRAINED) else "BERT-base"
