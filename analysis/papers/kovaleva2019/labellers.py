"""Patterns of attention maps: the rules that label them, and how often the rules are right."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder, load_encoder
from analysis.papers.kovaleva2019.measures import PATTERNS
from analysis.scores.extraction import read_attention
from analysis.scores.maps import real_tokens
from analysis.texts.examples import Example

MEASURES = ("column", "neighbours", "nearest", "inside")
MACRO = "macro average"
FOLDER = Path(__file__).parent
LABELLED = {"minilm": "MiniLM before fine-tuning", "mpnet": "MPNet fine-tuned on MRPC"}
RULES = pd.read_csv(FOLDER / "pattern_rules.csv")  # published.md says where the thresholds come from
RULES_DIGEST = hashlib.sha256(RULES.to_csv().encode()).hexdigest()
Maps = Float[Tensor, "batch head token token"]


class LabelledMaps(NamedTuple):
    """The measures of maps, and the number of each map's pattern in PATTERNS."""

    values: Float[np.ndarray, "map measure"]
    patterns: Int[np.ndarray, " map"]


def find_patterns(values: Float[np.ndarray, "map measure"]) -> Int[np.ndarray, " map"]:
    """The number in PATTERNS of every map: the pattern of the first of RULES that holds for its MEASURES."""
    table = pd.DataFrame(values, columns=[*MEASURES])
    holds = [table.eval(condition) for condition in RULES["condition"]]
    return np.select(holds, [PATTERNS.index(pattern) for pattern in RULES["pattern"]])


def label_maps(attention: Maps, layouts: Sequence[Layout]) -> Int[np.ndarray, "batch head"]:
    """The number of the pattern, in PATTERNS, of every map of a padded batch."""
    values = map_measures(attention, layouts).cpu().numpy()
    return find_patterns(values.reshape(-1, len(MEASURES))).reshape(values.shape[:2])


def map_measures(attention: Maps, layouts: Sequence[Layout]) -> Float[Tensor, "batch head measure"]:
    """The measures in MEASURES, for every map of a padded batch.

    column: the largest median over rows of the attention to one token, in units of uniform attention (logarithm). The
    others subtract the mean attention of all rows to the same tokens. neighbours: mean attention to the token itself
    and both neighbours. nearest: mean attention to the best of these three. inside: mean attention to the text of the
    current token, in a pair of texts.
    """
    real = real_tokens(attention.shape[-1], layouts, attention.device)
    rows = attention * real[:, None, :, None]
    count = real.sum(1, keepdim=True)
    received = rows.sum(2) / count[:, :, None]
    column = rows.masked_fill(~real[:, None, :, None], torch.nan).nanmedian(dim=2).values.amax(-1)
    excess = torch.where(real[:, None, :, None], rows - received[:, :, None], 0)
    adjacent = [excess.diagonal(offset, dim1=-2, dim2=-1).sum(-1) / count for offset in (-1, 0, 1)]
    # The number of the text in a pair, 1 or 2; 0 for a single text.
    side = padded([(layout.sentence + 1) * (layout.sep.sum() > 1) for layout in layouts], attention)
    inside = (side[:, :, None] == side[:, None]) & (side > 0)[:, :, None]
    values = [
        (column * count).clamp(min=0.1).log(),
        sum(adjacent),
        torch.stack(adjacent).amax(0),
        torch.einsum("bhij,bij->bh", excess, inside.to(excess.dtype)) / count,
    ]
    return torch.stack(values, dim=-1)


def padded(rows: Sequence[np.ndarray], like: Tensor) -> Tensor:
    """Arrays (..., token) as one batch (sequence, ..., token), padded with zeros."""
    tokens_first = [torch.from_numpy(np.ascontiguousarray(row)).movedim(-1, 0) for row in rows]
    return pad_sequence(tokens_first, batch_first=True).movedim(1, -1).to(like.device)


def eye_maps(encoder: Encoder) -> LabelledMaps:
    """The maps that were labelled by eye, computed again: pre-trained MiniLM on sentences of the bundled corpus.

    `eye_labels.csv` has a row per map, `eye_sentences.csv` the texts. A map is vertical if its brightest marks are
    columns through most rows, diagonal if they are a band along the diagonal, block if each text of a pair attends to
    itself, and heterogeneous if none of this stands out. One person labelled them once, before the rules were written.
    """
    labels = pd.read_csv(FOLDER / "eye_labels.csv")
    texts = pd.read_csv(FOLDER / "eye_sentences.csv", keep_default_na=False).set_index("sequence")
    values = []
    for name, heads in labels.groupby("sequence", sort=False):
        example = Example(name, texts.loc[name, "text_a"], texts.loc[name, "text_b"] or None)
        layout, attention = read_attention(encoder, example)
        maps = torch.from_numpy(attention[heads["layer"], heads["head"]])
        values.append(map_measures(maps[None], [layout])[0].numpy())
    return LabelledMaps(np.concatenate(values), labels["pattern"].map(PATTERNS.index).to_numpy())


def maps_to_label(
    encoder: Encoder, examples: Sequence[Example], count: int = 150, seed: int = 0
) -> pd.DataFrame:
    """Maps of an encoder to be labelled by eye, in the order of a seed: sequence, layer, head, and their MEASURES.

    With a column `pattern`, filled in before the rules are applied, and saved as eye_labels-<encoder>.csv beside
    `eye_labels.csv`, they qualify the rules for this encoder (see `labelled_maps`): the measures stay, since
    fine-tuned weights and texts of GLUE are not part of the study.
    """
    size, generator = encoder.layers * encoder.heads, np.random.default_rng(seed)
    places = generator.choice(len(examples) * size, count, replace=False)
    rows = []
    for number, place in zip(places // size, places % size, strict=True):
        layer, head = divmod(int(place), encoder.heads)
        layout, attention = read_attention(encoder, examples[number])
        values = map_measures(torch.from_numpy(attention[None, layer, head][:, None]), [layout])[0, 0]
        rows.append((examples[number].id, layer, head, *values.tolist()))
    return pd.DataFrame(rows, columns=["sequence", "layer", "head", *MEASURES])


def labelled_maps(encoder: str) -> tuple[str, LabelledMaps]:
    """The maps labelled by eye that are nearest to an encoder, and whose they are: its own, else of MiniLM."""
    path = FOLDER / f"eye_labels-{encoder}.csv"
    if not path.is_file():
        return LABELLED["minilm"], eye_maps(load_encoder("minilm"))
    table = pd.read_csv(path)
    return LABELLED.get(encoder, encoder), LabelledMaps(
        table[[*MEASURES]].to_numpy(), table["pattern"].map(PATTERNS.index).to_numpy()
    )


def quality_tables(maps: LabelledMaps) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `kovaleva_pattern_quality` (with a row MACRO) and `kovaleva_pattern_confusion` of the rules."""
    patterns, numbers = find_patterns(maps.values), range(len(PATTERNS))
    scores = precision_recall_fscore_support(maps.patterns, patterns, labels=numbers, zero_division=0)
    names = ("precision", "recall", "f1", "n")
    quality = pd.DataFrame(dict(zip(names, scores, strict=True)), pd.Index(PATTERNS, name="pattern"))
    quality.loc[MACRO] = [*quality[["precision", "recall", "f1"]].mean(), len(patterns)]
    counts = confusion_matrix(maps.patterns, patterns, labels=numbers)
    confusion = pd.DataFrame(counts, pd.Index(PATTERNS, name="pattern"), pd.Index(PATTERNS, name="found"))
    return quality.astype({"n": int}).reset_index(), confusion.stack().rename("n").reset_index()
