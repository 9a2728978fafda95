"""One pass over an encoder: patterns of its maps, attention to features and links, similarity to another encoder."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from analysis.cache import cached
from analysis.encoders.layout import Layout, Pieces, batches, layouts, piece_ranges, token_pairs
from analysis.encoders.models import Encoder
from analysis.encoders.tap import read_layers
from analysis.papers.kovaleva2019.labellers import RULES_DIGEST, Maps, label_maps, padded
from analysis.papers.kovaleva2019.measures import ARGUMENTS, CLS, FEATURES, NEGATION, PARTS_OF_SPEECH, SEP
from analysis.scores.maps import real_tokens
from analysis.texts.examples import Example, Relation, Relations, Tag, clusters

# The paper's list of negations as words; a contraction is two words, and the second is n't.
NEGATIVE_WORDS = frozenset("neither nor not never none nothing nowhere n't n’t".split())
LINKS = ("subject to verb", "verb to subject")
LINK_MODES = ("aligned", "same distance")  # attention to the link, and to words at the same distance
HEADS = ("layer", "head")
AXES = {  # of the measures, after the sequence
    "received": ("feature", *HEADS),
    "cls_row": ("feature", "head"),
    "link": ("link_name", "link_mode", *HEADS),
    "pattern": HEADS,
    "cosine": HEADS,
}
FORMAT = 3  # of the saved file


class Placements(NamedTuple):
    """The token pairs (row, column) of a link, shifted to every position where they fit into the text.

    `original` is the number of the placement at which the link stands.
    """

    rows: Int[np.ndarray, "placement pair"]
    columns: Int[np.ndarray, "placement pair"]
    original: int


def placements(pairs: Sequence[tuple[int, int]], first: int, last: int) -> Placements:
    """All placements of these pairs among the tokens from `first` up to, but not including, `last`."""
    places = np.array(pairs)
    shifts = np.arange(first - places.min(), last - places.max())
    rows, columns = places.T[:, None] + shifts[:, None]
    return Placements(rows, columns, int(np.flatnonzero(shifts == 0)[0]))


class LinkScores(NamedTuple):
    """Attention to all placements of a link; `original` is the number of the link's own placement."""

    values: Float[np.ndarray, " placement *head"]
    original: int

    @property
    def link(self) -> Float[np.ndarray, "*head"]:
        """Attention to the link itself."""
        return self.values[self.original]

    @property
    def elsewhere(self) -> Float[np.ndarray, "*head"]:
        """The control: the mean over the other placements, or attention to the link if there is no other."""
        others = np.delete(self.values, self.original, axis=0)
        return others.mean(axis=0) if len(others) else self.link


def largest(attention: Num[np.ndarray, "*head token token"], places: Placements) -> LinkScores:
    """The largest attention of any of the pairs, for every placement (Kovaleva 2019, 4.2)."""
    values = attention[..., places.rows, places.columns].max(axis=-1)
    return LinkScores(np.moveaxis(values, -1, 0).astype(np.float64), places.original)


@dataclass(frozen=True)
class Targets:
    """One sequence: its layout, the tokens of each of FEATURES, and the placements of its subjects with their verbs.

    `cluster` is equal for sequences that share a text.
    """

    layout: Layout
    cluster: str
    features: Bool[np.ndarray, "feature token"]
    verbs: tuple[Placements, ...]


def find_targets(
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[Example],
    relations: Relations,
    tags: dict[str, Sequence[Tag]],
    max_tokens: int = 128,
) -> list[Targets]:
    """The targets of every example, from its relations and word tags (see `syntax.parse`, `syntax.tags`).

    Departures: only the words themselves count, where the authors' code takes every piece with the same spelling;
    universal parts of speech and relations replace spaCy's labels, so that auxiliaries are not verbs.
    """
    sequences, targets = layouts(tokenizer, examples, max_tokens), []
    for layout, cluster, example in zip(sequences, clusters(examples), examples, strict=True):
        words = relations[example.id], tags[example.id]
        features, verbs = feature_tokens(layout, example, *words), verb_placements(layout, *words)
        targets.append(Targets(layout, cluster, features, verbs))
    return targets


def feature_tokens(
    layout: Layout, example: Example, relations: Sequence[Relation], tags: Sequence[Tag]
) -> Bool[np.ndarray, "feature token"]:
    """Which tokens belong to each of FEATURES."""
    spans = {
        name: [(tag.text, tag.word) for tag in tags if tag.upos in upos]
        for name, upos in PARTS_OF_SPEECH.items()
    }
    words = {(tag.text, tag.word): example.texts[tag.text][slice(*tag.word)].lower() for tag in tags}
    spans[NEGATION] = [place for place, word in words.items() if word in NEGATIVE_WORDS]
    for name, labels in ARGUMENTS.items():
        spans[name] = [(pair.text, pair.dependent) for pair in relations if pair.label in labels]
    tokens = {name: pieces_of(layout, words) for name, words in spans.items()}
    tokens |= {"punctuation": layout.punctuation, CLS: layout.cls, SEP: layout.sep}
    return np.array([tokens[name] for name in FEATURES])


def pieces_of(layout: Layout, words: Sequence[tuple[int, tuple[int, int]]]) -> Bool[np.ndarray, " token"]:
    """Which tokens are pieces of words, given by text and character span."""
    tokens = np.zeros(len(layout), bool)
    for text, span in words:
        [(start, end)] = piece_ranges(layout, text, np.array([span]))
        tokens[start:end] = True
    return tokens


def verb_placements(
    layout: Layout, relations: Sequence[Relation], tags: Sequence[Tag]
) -> tuple[Placements, ...]:
    """The pairs from the pieces of every subject to those of its verb, with their other placements in the text."""
    verbs = {(tag.text, tag.word) for tag in tags if tag.upos == "VERB"}
    subjects = [pair for pair in relations if pair.label == "nsubj" and (pair.text, pair.head) in verbs]
    links = []
    for subject, verb in token_pairs(layout, subjects).get("nsubj", ()):
        inside = np.flatnonzero(layout.text == layout.text[subject[0]])
        links.append(placements([*product(subject, verb)], inside[0], inside[-1] + 1))
    return tuple(links)


def targets_digest(targets: Sequence[Targets]) -> str:
    """A digest of the targets."""
    digest = hashlib.sha256()
    for target in targets:
        layout = target.layout
        digest.update(layout.id.encode() + layout.input_ids.tobytes() + layout.type_ids.tobytes())
        digest.update(target.features.tobytes())
        for link in target.verbs:
            digest.update(link.rows.tobytes() + link.columns.tobytes())
    return digest.hexdigest()


def read_runs(
    load: Callable[[str, int | None], Encoder],
    targets: Mapping[str, Sequence[Targets]],
    runs: Sequence[int],
    folder: Path,
) -> dict[tuple[str, int | None], xr.Dataset]:
    """What `read_state` measures for each task before fine-tuning (run None) and after each run, cached in `folder`.

    `load` gives the encoder of a task and run. The attribute `weights` is the digest of its weights.
    """
    readings = {}
    for task, sequences in targets.items():
        pretrained = load(task, None)
        for run in (None, *runs):
            encoder, before = (pretrained, None) if run is None else (load(task, run), pretrained)
            weights = [encoder.digest, before.digest if before else ""]
            arithmetic = [encoder.precision, encoder.device.type, FORMAT]
            key = [weights, targets_digest(sequences), RULES_DIGEST, arithmetic]
            measure = partial(read_state, encoder, sequences, before)
            name = f"{task}-pretrained" if run is None else f"{task}-{run}"
            readings[task, run] = cached(folder, name, key, measure)
    return readings


def read_state(encoder: Encoder, targets: Sequence[Targets], before: Encoder | None = None) -> xr.Dataset:
    """Measures every sequence in one forward pass; maps are not stored. The axes of each measure stand in AXES.

    received: mean attention of all tokens to the most attended token of the feature, NaN if the sequence does not have
    it. cls_row: the largest attention of [CLS] in the last layer. link: attention between subjects and verbs, and at
    the same distance. pattern: the number in PATTERNS. cosine: similarity to the maps of the encoder `before`, NaN
    without one. Source: Kovaleva 2019, 4.1 and 4.3 to 4.5.
    """
    parts, order = [], []
    with tqdm(total=len(targets), desc=f"patterns of {encoder.name}", unit="sequence", leave=None) as bar:
        for indices in batches([target.layout for target in targets]):
            parts.append(measure_batch(encoder, [targets[index] for index in indices], before))
            order += indices
            bar.update(len(indices))
    arrays = {name: np.concatenate([part[name] for part in parts])[np.argsort(order)] for name in parts[0]}
    coordinates = {
        "sequence": [target.layout.id for target in targets],
        "cluster": ("sequence", [target.cluster for target in targets]),
        "feature": [*FEATURES],
        "link_name": [*LINKS],
        "link_mode": [*LINK_MODES],
        "layer": range(encoder.layers),
        "head": range(encoder.heads),
    }
    variables = {name: (("sequence", *AXES[name]), array) for name, array in arrays.items()}
    return xr.Dataset(variables, coordinates, {"weights": encoder.digest})


def measure_batch(
    encoder: Encoder, batch: Sequence[Targets], before: Encoder | None
) -> dict[str, np.ndarray]:
    """The measures of `read_state` for one batch."""
    sequences = [target.layout for target in batch]
    maps = attention_of(encoder, sequences)
    layers = [measure_layer(attention, batch) for attention in maps]
    measures = {name: np.stack([layer[name] for layer in layers], axis=-2) for name in layers[0]}
    measures["cls_row"] = measures["cls_row"][..., -1, :]
    measures["cosine"] = np.full(measures["pattern"].shape, np.nan, np.float32)
    if before is not None:
        real = real_tokens(maps[0].shape[-1], sequences, maps[0].device)
        pairs = zip(attention_of(before, sequences), maps, strict=True)
        measures["cosine"] = torch.stack([cosine(*pair, real) for pair in pairs], dim=-2).cpu().numpy()
    return measures


def measure_layer(attention: Maps, batch: Sequence[Targets]) -> dict[str, np.ndarray]:
    """What `measure_batch` reads from the maps of one layer; the first axis is the sequence, the last the head."""
    sequences = [target.layout for target in batch]
    features = padded([target.features for target in batch], attention)
    real = real_tokens(attention.shape[-1], sequences, attention.device)
    received = (attention * real[:, None, :, None]).sum(2) / real.sum(1)[:, None, None]
    by_sequence = zip(attention.cpu().numpy(), batch, strict=True)
    links = [verb_links(maps, target.verbs) for maps, target in by_sequence]
    return {
        "received": largest_to(received, features).cpu().numpy(),
        "cls_row": largest_to(attention[:, :, 0], features).cpu().numpy(),
        "link": np.stack(links).astype(np.float32),
        "pattern": label_maps(attention, sequences).astype(np.int8),
    }


def largest_to(
    attention: Float[Tensor, "batch head token"], features: Bool[Tensor, "batch feature token"]
) -> Float[Tensor, "batch feature head"]:
    """The largest attention to a token of each feature; NaN if a sequence has none."""
    values = attention[:, None].masked_fill(~features[:, :, None], -torch.inf).amax(-1)
    return values.masked_fill(~features.any(-1)[..., None], torch.nan)


def verb_links(
    attention: Float[np.ndarray, "head token token"], verbs: Sequence[Placements]
) -> Float[np.ndarray, "link mode head"]:
    """Attention from subjects to verbs and back, mean over the relations, and that at the same distance elsewhere.

    NaN if there are none.
    """
    links = np.full((len(LINKS), len(LINK_MODES), len(attention)), np.nan)
    if verbs:
        for number, maps in enumerate((attention, attention.swapaxes(1, 2))):
            scores = [largest(maps, places) for places in verbs]
            links[number, 0] = np.mean([score.link for score in scores], axis=0)
            links[number, 1] = np.mean([score.elsewhere for score in scores], axis=0)
    return links


def attention_of(encoder: Encoder, batch: Sequence[Pieces]) -> list[Maps]:
    """The maps of one batch, layer by layer."""
    layers: list[Maps] = []
    read_layers(encoder, batch, lambda _, attention: layers.append(attention))
    return layers


def cosine(first: Maps, second: Maps, rows: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch head"]:
    """The cosine similarity of two maps, flattened, of these rows only."""
    first, second = (maps * rows[:, None, :, None] for maps in (first, second))
    return torch.nn.functional.cosine_similarity(first.flatten(2), second.flatten(2), dim=-1)
