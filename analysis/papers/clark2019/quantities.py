"""The results of this study next to those that Clark 2019 published for BERT-base: another model on other data."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.papers.clark2019 import published
from analysis.texts.chains import KINDS
from analysis.texts.dependencies import STANFORD

COLUMNS = ["part", "quantity", "bert_base_published", "this_encoder", "unit"]
TARGETS = {"sep": "[SEP]", "cls": "[CLS]", "punct": "full stops and commas"}
PERCENT, DEPTH = "% of attention", "% of depth"
# Our systems that Table 2 has too; by its values, its nearest mention is the nearest on either side.
SYSTEMS = {"nearest, either side": "Nearest", "head match": "Head match", "rule-based": "Rule-based"}
BEST_HEAD = "best head among"  # starts several names; the article does not say among what its head chooses
THEIR_HEAD = "BERT head 4-3"
WORDS, GLOVE = "words", "GloVe"  # word vectors in the names of probes, here and in Table 3
ORIGINAL = ", original ROOT alignment"  # ends the names of probes that pair words as the released code does
NO_ENCODER = "none"
BOTH_HALVES = "both halves in turn"  # value of `scored_on` for cross-fitted heads
UNTRAINED = "random layers"  # the end of the names of untrained encoders
Row = tuple[str, float, float, str]


def summary_table(
    surface: pd.DataFrame, dependencies: pd.DataFrame, coreference: pd.DataFrame, probes: pd.DataFrame
) -> pd.DataFrame:
    """Quantities of Clark 2019 as published and as found here, a row each: the columns COLUMNS.

    The tables are the saved ones: `surface.surface_table`, `attachment.dependency_table`,
    `antecedents.held_out_systems` and `probing.probe_table`. NaN if one side has no such value. Here, heads are chosen
    and scored on different data; the article uses the same data for both.
    """
    parts = {
        "heads on neighbours": _specialists(surface),
        "layers": _layers(surface),
        "dependencies": _dependencies(dependencies),
        "coreference": _coreference(coreference),
        "probes": _probes(probes),
    }
    rows = [(part, *row) for part, found in parts.items() for row in found]
    return pd.DataFrame(rows, columns=COLUMNS)


def systems_beside_published(systems: pd.DataFrame) -> pd.DataFrame:
    """Table 2: our accuracies in percent, then BERT-base's on CoNLL-2012 (columns BERT-base ...), by kind of mention.

    `systems` is that of `antecedents.held_out_systems`. NaN if the article has no such system. The article does not say
    what its head chooses among, so its value stands next to every reading of ours.
    """
    theirs = published.clark("coreference").set_index("system")[["all", *KINDS]].add_prefix("BERT-base ")
    names = [THEIR_HEAD if name.startswith(BEST_HEAD) else SYSTEMS.get(name) for name in systems["system"]]
    ours = systems[["system", "all", *KINDS]].set_index("system").mul(100).reset_index()
    return ours.join(theirs.reindex(names).reset_index(drop=True))


def probes_beside_published(probes: pd.DataFrame) -> pd.DataFrame:
    """Table 3: our accuracies without punctuation in percent (mean over seeds), then BERT-base's with GloVe vectors.

    Columns probe, encoder, seeds, this_encoder, bert_base_published; `probes` is that of `probing.probe_table`. NaN if
    the article has no such probe.
    """
    theirs = published.clark("probes").set_index(["probe", "encoder"])["uas"]
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
    `coreference` holds the saved readings of `antecedents.antecedent_table`; only the cross-fitted heads count.
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


def _specialists(surface: pd.DataFrame) -> Iterator[Row]:
    """Heads with more than half of their attention on a neighbour (section 3.1), counted and as a share."""
    theirs = published.specialists().set_index("statistic")
    for place in theirs.index:
        heads = (surface[place] > 0.5).sum()
        quantity = f"heads with more than half of their attention on the {place} token"
        yield quantity, theirs.loc[place, "heads"], heads, "heads"
        shares = theirs.loc[place, "heads"] / theirs.loc[place, "of"], heads / len(surface)
        yield f"the same, of all heads ({place} token)", *(100 * share for share in shares), "% of heads"


def _layers(surface: pd.DataFrame) -> Iterator[Row]:
    """Extremes of layer means (sections 3.2 and 3.3), and the depth of their layers."""
    theirs = published.surface_layers().set_index("layer")
    ours = surface.drop(columns="head").groupby("layer").mean()
    for statistic, target in TARGETS.items():
        means = theirs[statistic], ours[statistic]
        yield f"largest layer mean of attention to {target}", *(100 * each.max() for each in means), PERCENT
        yield f"depth of that layer ({target})", *(_depth(each, int(each.idxmax())) for each in means), DEPTH
    means = theirs["entropy"], ours["entropy"]
    yield "smallest layer mean of entropy", *(each.min() for each in means), "nats"
    yield "depth of that layer (entropy)", *(_depth(each, int(each.idxmin())) for each in means), DEPTH


def _depth(means: pd.Series, layer: int) -> float:
    """How far a layer is from the first (0) to the last (100); NaN for an encoder of one layer."""
    return 100 * layer / (len(means) - 1) if len(means) > 1 else np.nan


def _dependencies(dependencies: pd.DataFrame) -> Iterator[Row]:
    """The relations of Table 1: accuracies of the best head and of the best offset, in percent of the arcs.

    If the authors' notebook prints another value than the article, both are given.
    """
    ours = dependencies.set_index("relation")
    counterparts = {theirs: name for name, theirs in STANFORD.items()}
    table = published.clark("dependencies").dropna(subset="paper_accuracy")
    for row in table.to_dict("records"):
        name = counterparts[row["relation"]]
        label = name if name == row["relation"] else f"{name} (Stanford: {row['relation']})"
        for measure, column in (("best head", "accuracy"), ("best offset", "offset_accuracy")):
            found = 100 * ours[column].get(name, np.nan)
            yield f"{label}, {measure}", row[f"paper_{column}"], found, "% of arcs"
            if row[column] != row[f"paper_{column}"]:
                yield f"{label}, {measure}, by the authors' notebook", row[column], found, "% of arcs"


def _coreference(coreference: pd.DataFrame) -> Iterator[Row]:
    """The systems of Table 2 with a counterpart, by kind of mention, in percent of the anaphors."""
    theirs = published.clark("coreference").set_index("system")
    for row in coreference.to_dict("records"):
        name = THEIR_HEAD if row["system"].startswith(BEST_HEAD) else SYSTEMS.get(row["system"])
        if name:
            for kind in ("all", *KINDS):
                yield f"{row['system']}: {kind}", theirs.loc[name, kind], 100 * row[kind], "% of anaphors"


def _probes(probes: pd.DataFrame) -> Iterator[Row]:
    """The probes of Table 3, mean over seeds, in percent of the words without punctuation."""
    theirs = published.clark("probes").set_index(["probe", "encoder"])["uas"]
    ours = probes.groupby(["probe", "encoder"], sort=False)["uas_no_punct"].mean()
    for (probe, encoder), score in ours.items():
        kind = _kind(encoder)
        label = f"{probe}, {kind}" if kind == UNTRAINED else probe
        place = probe.removesuffix(ORIGINAL).replace(WORDS, GLOVE), kind
        yield label, theirs.get(place, np.nan), 100 * score, "% of words"


def _kind(encoder: str) -> str:
    """The counterpart in Table 3 of an encoder of ours."""
    if encoder == NO_ENCODER:
        return NO_ENCODER
    return UNTRAINED if encoder.endswith(UNTRAINED) else "BERT-base"
