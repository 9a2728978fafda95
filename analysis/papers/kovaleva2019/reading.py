"""One pass over an encoder: patterns of its maps, attention to features and links, similarity to another encoder."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from analysis.cache import cached
from analysis.encoders.layout import Layout, Pieces, batches, layouts, piece_ranges
from analysis.encoders.models import Encoder, cached_casts
from analysis.encoders.tap import read_layers
from analysis.papers.kovaleva2019.labellers import Labeller, Maps, real_tokens, stacked
from analysis.papers.kovaleva2019.names import ARGUMENTS, CLS, FEATURES, NEGATION, PARTS_OF_SPEECH, SEP
from analysis.papers.kovaleva2019.placements import Placements, largest, placements
from analysis.scores.words import Words
from analysis.texts.examples import Example, Relation, Tag, clusters
from analysis.texts.syntax import Relations

# The article's list of negations as words; a contraction is two words, and the second is n't.
NEGATIVE_WORDS = frozenset("neither nor not never none nothing nowhere n't n’t".split())
LINKS = ("subject to verb", "verb to subject")
LINK_MODES = ("aligned", "same distance")  # attention to the link, and to words at the same distance
NOT_LABELLED = -1
FORMAT = 2  # of the saved file
PADDED = 200  # tokens of every map in the released code
BATCH = 8  # sequences so long at a time


@dataclass(frozen=True)
class Targets:
    """One sequence: its layout, the tokens of each of FEATURES, and its subjects with their verbs.

    `cluster` is equal for sequences that share a text. `verbs` holds, for every relation, the pairs from the pieces of
    a subject to those of its verb, and their other placements in the text.
    """

    layout: Layout
    cluster: str
    features: Bool[np.ndarray, "feature token"]
    verbs: tuple[Placements, ...]

    def __len__(self) -> int:
        return len(self.layout)


def find_targets(
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[Example],
    relations: Relations,
    tags: dict[str, Sequence[Tag]],
    max_tokens: int = 128,
) -> list[Targets]:
    """The targets of every example, from its relations and word tags (see `syntax.parse`, `syntax.tags`).

    Departures: the words themselves count, while the released code takes every piece that is spelled like one of them;
    universal parts of speech and relations replace spaCy's labels, so that auxiliaries are no verbs.
    """
    sequences = layouts(tokenizer, examples, max_tokens)
    return [
        Targets(
            layout,
            cluster,
            feature_tokens(layout, example, relations[example.id], tags[example.id]),
            verb_placements(layout, relations[example.id], tags[example.id]),
        )
        for layout, cluster, example in zip(sequences, clusters(examples), examples, strict=True)
    ]


def feature_tokens(
    layout: Layout, example: Example, relations: Sequence[Relation], tags: Sequence[Tag]
) -> Bool[np.ndarray, "feature token"]:
    """Which tokens belong to each of FEATURES."""
    words = {
        name: [(tag.text, tag.word) for tag in tags if tag.upos in upos]
        for name, upos in PARTS_OF_SPEECH.items()
    }
    words |= {
        name: [(relation.text, relation.dependent) for relation in relations if relation.label in labels]
        for name, labels in ARGUMENTS.items()
    }
    words[NEGATION] = [
        (tag.text, tag.word)
        for tag in tags
        if example.texts[tag.text][slice(*tag.word)].lower() in NEGATIVE_WORDS
    ]
    tokens = {name: _pieces_of(layout, spans) for name, spans in words.items()}
    tokens |= {"punctuation": layout.punctuation, CLS: layout.cls, SEP: layout.sep}
    return np.array([tokens[name] for name in FEATURES])


def _pieces_of(layout: Layout, words: Sequence[tuple[int, tuple[int, int]]]) -> Bool[np.ndarray, " token"]:
    """Which tokens are pieces of words, given by text and character span."""
    tokens = np.zeros(len(layout), bool)
    if words:
        texts, spans = np.array([text for text, _ in words]), np.array([span for _, span in words])
        for start, end in piece_ranges(layout, texts, spans):
            tokens[start:end] = True
    return tokens


def verb_placements(
    layout: Layout, relations: Sequence[Relation], tags: Sequence[Tag]
) -> tuple[Placements, ...]:
    """The pairs from the pieces of every subject to those of its verb, with their other placements in the text."""
    verbs = {(tag.text, tag.word) for tag in tags if tag.upos == "VERB"}
    links: list[Placements] = []
    for relation in relations:
        if relation.label != "nsubj" or (relation.text, relation.head) not in verbs:
            continue
        spans = np.array([relation.dependent, relation.head])
        ends = piece_ranges(layout, np.array([relation.text] * 2), spans).tolist()
        subject, verb = (range(start, end) for start, end in ends)
        if len(subject) and len(verb):
            inside = np.flatnonzero(layout.text == relation.text)
            links.append(placements([*product(subject, verb)], inside[0], inside[-1] + 1))
    return tuple(links)


def targets_digest(targets: Sequence[Targets]) -> str:
    """A digest of the targets."""
    digest = hashlib.sha256()
    for sequence in targets:
        layout = sequence.layout
        digest.update(layout.id.encode() + layout.input_ids.tobytes() + layout.type_ids.tobytes())
        digest.update(sequence.features.tobytes())
        for link in sequence.verbs:
            digest.update(link.rows.tobytes() + link.columns.tobytes())
    return digest.hexdigest()


def cached_state(
    folder: Path,
    name: str,
    encoder: Encoder,
    targets: Sequence[Targets],
    labeller: Labeller,
    labelled: int,
    before: Encoder | None = None,
    padded: int = 0,
) -> xr.Dataset:
    """The result of `read_state`, saved in a file and read from it if weights, sequences and labeller are the same.

    The attribute `weights` is the digest of the encoder's weights.
    """
    weights = [encoder.digest, before.digest if before else ""]
    arithmetic = [encoder.precision, encoder.device.type, FORMAT]
    key = [weights, targets_digest(targets), labeller.key, labelled, padded, arithmetic]

    def make() -> xr.Dataset:
        state = read_state(encoder, targets, labeller, labelled, before, padded)
        return state.assign_attrs(weights=encoder.digest)

    return cached(folder, name, key, make)


def read_runs(
    load: Callable[[str, int | None], Encoder],
    targets: Mapping[str, Sequence[Targets]],
    runs: Sequence[int],
    labeller: Labeller,
    labelled: int,
    padded: int,
    folder: Path,
) -> dict[tuple[str, int | None], xr.Dataset]:
    """The states of all tasks: before fine-tuning (run None), and after each run, compared with the state before.

    `load` gives the encoder of a task and run. See `read_state`; results are saved in `folder`.
    """
    readings = {}
    for task, sequences in targets.items():
        before = load(task, None)
        rest = (sequences, labeller, labelled)
        readings[task, None] = cached_state(folder, f"{task}-pretrained", before, *rest)
        for run in runs:
            encoder = load(task, run)
            readings[task, run] = cached_state(folder, f"{task}-{run}", encoder, *rest, before, padded)
    return readings


def read_state(
    encoder: Encoder,
    targets: Sequence[Targets],
    labeller: Labeller,
    labelled: int,
    before: Encoder | None = None,
    padded: int = 0,
    budget: int = 2048,
) -> xr.Dataset:
    """Measures of one state of an encoder on every sequence, from one forward pass; maps are not kept.

    received (sequence, feature, layer, head): mean attention of all tokens to the most attended token of the feature;
    NaN if the sequence does not have it. cls_row (sequence, feature, head): the largest attention of [CLS] in the last
    layer. link (sequence, link_name, link_mode, layer, head): attention between subjects and verbs, and at the same
    distance. pattern (sequence, layer, head): the number in PATTERNS, for the first `labelled` sequences. With the
    encoder `before`: cosine (sequence, layer, head) between the maps of both and, for the first `padded` sequences,
    cosine_padded. Source: Kovaleva 2019, 4.1 and 4.3 to 4.5.
    """
    state = _empty(encoder, targets)
    cosines = np.full((len(targets), encoder.layers, encoder.heads), np.nan, np.float32)
    bar = tqdm(total=len(targets), desc=f"patterns of {encoder.name}", unit="sequence", leave=None)
    with cached_casts(encoder, *([before] if before else [])), bar:
        for indices in batches([sequence.layout for sequence in targets], budget):
            batch = [targets[index] for index in indices]
            earlier = attention_of(before, [sequence.layout for sequence in batch]) if before else None

            def read(layer: int, attention: Maps, indices=indices, earlier=earlier, batch=batch) -> None:
                _read_features(state, batch, indices, layer, attention)
                _read_patterns(state, batch, indices, layer, attention, labeller, labelled)
                if earlier is not None:
                    real = real_tokens(attention, batch)
                    cosines[indices, layer] = cosine(earlier[layer], attention, real).cpu().numpy()

            read_layers(encoder, [sequence.layout for sequence in batch], read)
            bar.update(len(indices))
    if before is not None:
        with_padding = np.full_like(cosines, np.nan)
        if padded:
            beginning = [sequence.layout for sequence in targets[:padded]]
            with_padding[:padded] = padded_cosine(before, encoder, beginning)
        axes = ("sequence", "layer", "head")
        state = state.assign(cosine=(axes, cosines), cosine_padded=(axes, with_padding))
    return state


def _empty(encoder: Encoder, targets: Sequence[Targets]) -> xr.Dataset:
    """The measures of a state, all NaN, and no map with a label."""
    coordinates = {
        "sequence": [sequence.layout.id for sequence in targets],
        "cluster": ("sequence", [sequence.cluster for sequence in targets]),
        "feature": [*FEATURES],
        "link_name": [*LINKS],
        "link_mode": [*LINK_MODES],
        "layer": range(encoder.layers),
        "head": range(encoder.heads),
    }
    heads, missing = ("layer", "head"), np.float32(np.nan)
    variables = {
        "received": (("sequence", "feature", *heads), missing),
        "cls_row": (("sequence", "feature", "head"), missing),
        "link": (("sequence", "link_name", "link_mode", *heads), missing),
        "pattern": (("sequence", *heads), np.int8(NOT_LABELLED)),
    }
    filled = {
        name: (axes, np.full([len(coordinates[axis]) for axis in axes], value))
        for name, (axes, value) in variables.items()
    }
    return xr.Dataset(filled, coordinates)


def _read_features(
    state: xr.Dataset, batch: Sequence[Targets], indices: list[int], layer: int, attention: Maps
) -> None:
    """Writes attention to features and links, from the maps of one layer of a batch."""
    features = stacked([sequence.features for sequence in batch], attention)
    real = real_tokens(attention, batch)
    received = (attention * real[:, None, :, None]).sum(2) / real.sum(1)[:, None, None]
    state["received"].values[indices, :, layer] = _largest_of(received, features).cpu().numpy()
    if layer == state.sizes["layer"] - 1:
        state["cls_row"].values[indices] = _largest_of(attention[:, :, 0], features).cpu().numpy()
    for index, sequence, maps in zip(indices, batch, attention.cpu().numpy(), strict=True):
        if sequence.verbs:
            state["link"].values[index, :, :, layer] = verb_links(maps, sequence.verbs)


def _read_patterns(
    state: xr.Dataset,
    batch: Sequence[Targets],
    indices: list[int],
    layer: int,
    attention: Maps,
    labeller: Labeller,
    labelled: int,
) -> None:
    """Writes the patterns of the maps of one layer, for those of the first `labelled` sequences in a batch."""
    places = [place for place, index in enumerate(indices) if index < labelled]
    if places:
        sequences = [batch[place].layout for place in places]
        longest = max(map(len, sequences))
        patterns = labeller.find(attention[places][..., :longest, :longest], sequences)
        state["pattern"].values[[indices[place] for place in places], layer] = patterns


def _largest_of(
    attention: Float[Tensor, "batch head token"], features: Bool[Tensor, "batch feature token"]
) -> Float[Tensor, "batch feature head"]:
    """The largest attention to a token of each feature; NaN if a sequence has none."""
    values = attention[:, None].masked_fill(~features[:, :, None], -torch.inf).amax(-1)
    return values.masked_fill(~features.any(-1)[..., None], torch.nan)


def verb_links(
    attention: Float[np.ndarray, "head token token"], verbs: Sequence[Placements]
) -> Float[np.ndarray, "link mode head"]:
    """Attention from subjects to verbs and back, mean over the relations, and that at the same distance elsewhere."""
    links = np.empty((len(LINKS), len(LINK_MODES), len(attention)))
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


def cosine(
    first: Maps, second: Maps, rows: Bool[Tensor, "batch token"] | None = None
) -> Float[Tensor, "batch head"]:
    """The cosine similarity of two maps, flattened; with `rows`, of these rows only."""
    if rows is not None:
        first, second = (maps * rows[:, None, :, None] for maps in (first, second))
    return torch.nn.functional.cosine_similarity(first.flatten(2), second.flatten(2), dim=-1)


def padded_cosine(
    before: Encoder, after: Encoder, sequences: Sequence[Layout], length: int = PADDED
) -> Float[np.ndarray, "sequence layer head"]:
    """The cosine of maps padded to `length` tokens, with the rows of padding, as in the released code.

    These rows attend to the real tokens; they are most of the map of a short sequence.
    """
    length = min(length, before.positions, before.tokenizer.model_max_length)
    length = max(length, *(len(layout) for layout in sequences))
    filler = Words(0, np.full(length, before.tokenizer.pad_token_id), np.zeros(length, int))
    cosines = []
    for start in tqdm(range(0, len(sequences), BATCH), "padded maps", unit="batch", leave=None):
        batch = [*sequences[start : start + BATCH], filler]  # its last sequence makes it that long
        layers = zip(attention_of(before, batch), attention_of(after, batch), strict=True)
        cosines.append(torch.stack([cosine(*maps)[:-1] for maps in layers], dim=1).cpu().numpy())
    return np.concatenate(cosines)
