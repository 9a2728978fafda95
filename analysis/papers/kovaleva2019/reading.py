"""What one pass over an encoder says of every sequence: patterns, attention to features, links, similarity."""

import hashlib
from collections.abc import Sequence
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
from analysis.papers.kovaleva2019.placements import Placements, elsewhere, largest, placements
from analysis.scores.words import Words
from analysis.texts.examples import Example, Relation, Tag, clusters
from analysis.texts.syntax import Relations

MODES = ("faithful", "aligned")
# The article's list as words; a contraction is two words, and the second is n't.
NEGATIONS = (
    "neither nor not never none don't won't didn't hadn't haven't can't isn't wasn't shouldn't couldn't nothing nowhere"
).split()
NEGATIVE_WORDS = {word for word in NEGATIONS if "'" not in word} | {"n't", "n’t"}


@dataclass(frozen=True)
class Targets:
    """One sequence: its layout, the tokens of each feature, and its subjects and verbs.

    `cluster` is equal for sequences that share a text. `marked` says which tokens belong to a feature in a mode.
    `absent` is the value if none does: NaN leaves the sequence out, 0 is the value in the released code
    (except for negation). `verbs` are the placements from a subject to its verb, for every relation; `zipped` are the
    pairs of the released code, None if there are none.
    """

    layout: Layout
    cluster: str
    marked: Bool[np.ndarray, "mode feature token"]
    absent: Float[np.ndarray, "mode feature"]
    verbs: tuple[Placements, ...]
    zipped: Placements | None

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

    Mode aligned: the pieces of the words themselves. Mode faithful, as in the released code: every piece of the
    sequence that is spelt like one of them, 0 if a feature is absent (except negation, whose absence leaves the
    sequence out), and negation by strings within the text ("not" in "another" counts). Departures: universal parts of
    speech and relations instead of spaCy's labels, so that auxiliaries do not count as verbs.
    """
    spelt = {word: tokenizer(word, add_special_tokens=False)["input_ids"] for word in NEGATIONS}
    found = layouts(tokenizer, examples, max_tokens)
    return [
        _targets(layout, cluster, example, relations[example.id], tags[example.id], spelt)
        for layout, cluster, example in zip(found, clusters(examples), examples, strict=True)
    ]


def _targets(
    layout: Layout,
    cluster: str,
    example: Example,
    relations: Sequence[Relation],
    tags: Sequence[Tag],
    spelt: dict[str, list[int]],
) -> Targets:
    words = {
        name: [(tag.text, tag.word) for tag in tags if tag.upos in upos]
        for name, upos in PARTS_OF_SPEECH.items()
    }
    words |= {
        name: [(each.text, each.dependent) for each in relations if each.label in labels]
        for name, labels in ARGUMENTS.items()
    }
    words[NEGATION] = [
        (tag.text, tag.word)
        for tag in tags
        if example.texts[tag.text][slice(*tag.word)].lower() in NEGATIVE_WORDS
    ]
    aligned = {name: _marked(layout, spans) for name, spans in words.items()}
    special = {"punctuation": layout.punctuation, CLS: layout.cls, SEP: layout.sep}
    anywhere = {name: np.isin(layout.input_ids, layout.input_ids[mask]) for name, mask in aligned.items()}
    text = " ".join(example.texts).lower()
    negated = [piece for word, pieces in spelt.items() if word in text for piece in pieces]
    anywhere[NEGATION] = np.isin(layout.input_ids, negated)
    found = [anywhere | special, aligned | special]
    marked = np.array([[mode[name] for name in FEATURES] for mode in found])
    absent = np.full(marked.shape[:2], np.nan, np.float32)
    absent[0, : len(words)] = 0
    if not negated:
        absent[0, FEATURES.index(NEGATION)] = np.nan
    return Targets(layout, cluster, marked, absent, *_verbs(layout, relations, tags))


def _marked(layout: Layout, words: Sequence[tuple[int, tuple[int, int]]]) -> Bool[np.ndarray, " token"]:
    mask = np.zeros(len(layout), bool)
    if words:
        texts, spans = np.array([text for text, _ in words]), np.array([span for _, span in words])
        for start, end in piece_ranges(layout, texts, spans):
            mask[start:end] = True
    return mask


def _verbs(
    layout: Layout, relations: Sequence[Relation], tags: Sequence[Tag]
) -> tuple[tuple[Placements, ...], Placements | None]:
    """The placements of subjects with their verbs, and the pairs of the released code."""
    verbs = {(tag.text, tag.word) for tag in tags if tag.upos == "VERB"}
    kept = [each for each in relations if each.label == "nsubj" and (each.text, each.head) in verbs]
    found: list[Placements] = []
    subjects: set[int] = set()
    heads: set[int] = set()
    ids = layout.input_ids.tolist()
    for relation in kept:
        spans = np.array([relation.dependent, relation.head])
        subject, verb = (
            range(*ends) for ends in piece_ranges(layout, np.array([relation.text] * 2), spans).tolist()
        )
        if len(subject) and len(verb):
            inside = np.flatnonzero(layout.text == relation.text)
            found.append(placements([*product(subject, verb)], inside[0], inside[-1] + 1))
            subjects |= {ids[piece] for piece in subject}
            heads |= {ids[piece] for piece in verb}
    if not found:
        return (), None
    # The released notebook takes every piece that is spelt like one of a subject or verb, wherever it stands, in order.
    same = ([place for place, each in enumerate(ids) if each in pieces] for pieces in (subjects, heads))
    rows, columns = np.array([*zip(*same, strict=False)]).T[:, None]
    return tuple(found), Placements(rows, columns, own=0)


def targets_digest(targets: Sequence[Targets]) -> str:
    """A digest of the targets."""
    digest = hashlib.sha256()
    for each in targets:
        digest.update(
            each.layout.id.encode() + each.layout.input_ids.tobytes() + each.layout.type_ids.tobytes()
        )
        digest.update(each.marked.tobytes() + each.absent.tobytes())
        for places in (*each.verbs, *([each.zipped] if each.zipped else [])):
            digest.update(places.rows.tobytes() + places.columns.tobytes())
    return digest.hexdigest()


LINKS = ("subject to verb", "verb to subject")
LINK_MODES = ("faithful", "aligned", "same distance")
NOT_LABELLED = -1
FORMAT = 1  # of the saved file
PADDED = 200  # tokens of every map in the released code
BATCH = 8  # sequences so long at a time


def read_kept(
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
    computed = [encoder.precision, encoder.device.type, FORMAT]
    key = [weights, targets_digest(targets), labeller.key, labelled, padded, computed]

    def make() -> xr.Dataset:
        found = read_state(encoder, targets, labeller, labelled, before, padded)
        return found.assign_attrs(weights=encoder.digest)

    return cached(folder, name, key, make)


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

    received (sequence, mode, feature, layer, head): mean attention of all tokens to the most attended token of the
    feature; NaN if the sequence does not have it. cls_row (sequence, feature, head): the largest attention of [CLS] in
    the last layer. link (sequence, link, link_mode, layer, head): attention between subjects and verbs, and at the same
    distance. pattern (sequence, layer, head): the number in PATTERNS, for the first `labelled` sequences. With the
    encoder `before`: cosine (sequence, layer, head) between the maps of both and, for the first `padded` sequences,
    cosine_padded. Source: Kovaleva 2019, 4.1 and 4.3 to 4.5.
    """
    found = _empty(encoder, targets)
    cosines = np.full((len(targets), encoder.layers, encoder.heads), np.nan, np.float32)
    bar = tqdm(total=len(targets), desc=f"patterns of {encoder.name}", unit="sequence", leave=None)
    with cached_casts(encoder, *([before] if before else [])), bar:
        for indices in batches([each.layout for each in targets], budget):
            layouts = [targets[index].layout for index in indices]
            earlier = attention_of(before, layouts) if before else None

            def read(layer: int, attention: Maps, indices=indices, earlier=earlier, layouts=layouts) -> None:
                _add(found, targets, indices, layer, attention)
                chosen = [place for place, index in enumerate(indices) if index < labelled]
                if chosen:
                    own = [layouts[place] for place in chosen]
                    longest = max(map(len, own))
                    labels = labeller.find(attention[chosen][..., :longest, :longest], own)
                    found["pattern"].values[[indices[place] for place in chosen], layer] = labels
                if earlier is not None:
                    real = real_tokens(attention, layouts)
                    cosines[indices, layer] = cosine(earlier[layer], attention, real).cpu().numpy()

            read_layers(encoder, layouts, read)
            bar.update(len(indices))
    if before is not None:
        wide = np.full_like(cosines, np.nan)
        if padded:
            wide[:padded] = padded_cosine(before, encoder, [each.layout for each in targets[:padded]])
        dimensions = ("sequence", "layer", "head")
        found = found.assign(cosine=(dimensions, cosines), cosine_padded=(dimensions, wide))
    return found


def _empty(encoder: Encoder, targets: Sequence[Targets]) -> xr.Dataset:
    """The measures of a state, all NaN, and no map with a label."""
    coordinates = {
        "sequence": [each.layout.id for each in targets],
        "cluster": ("sequence", [each.cluster for each in targets]),
        "mode": [*MODES],
        "feature": [*FEATURES],
        "link_name": [*LINKS],
        "link_mode": [*LINK_MODES],
        "layer": range(encoder.layers),
        "head": range(encoder.heads),
    }
    heads, missing = ("layer", "head"), np.float32(np.nan)
    variables = {
        "received": (("sequence", "mode", "feature", *heads), missing),
        "cls_row": (("sequence", "feature", "head"), missing),
        "link": (("sequence", "link_name", "link_mode", *heads), missing),
        "pattern": (("sequence", *heads), np.int8(NOT_LABELLED)),
    }
    filled = {
        name: (axes, np.full([len(coordinates[axis]) for axis in axes], value))
        for name, (axes, value) in variables.items()
    }
    return xr.Dataset(filled, coordinates)


def _add(
    found: xr.Dataset, targets: Sequence[Targets], indices: list[int], layer: int, attention: Maps
) -> None:
    """Adds attention to features and links, from the maps of one layer of a batch."""
    batch = [targets[index] for index in indices]
    marked = stacked([each.marked for each in batch], attention)
    absent = torch.from_numpy(np.stack([each.absent for each in batch])).to(attention.device)
    real = real_tokens(attention, [each.layout for each in batch])
    received = (attention * real[:, None, :, None]).sum(2) / real.sum(1)[:, None, None]
    found["received"].values[indices, :, :, layer] = _most(received, marked, absent).cpu().numpy()
    if layer == found.sizes["layer"] - 1:
        aligned = [MODES.index("aligned")]
        most = _most(attention[:, :, 0], marked[:, aligned], absent[:, aligned])  # the row of [CLS]
        found["cls_row"].values[indices] = most[:, 0].cpu().numpy()
    for index, each, maps in zip(indices, batch, attention.cpu().numpy(), strict=True):
        found["link"].values[index, :, :, layer] = verb_links(maps, each)


def attention_of(encoder: Encoder, batch: Sequence[Pieces]) -> list[Maps]:
    """The maps of one batch, layer by layer."""
    found: list[Maps] = []
    read_layers(encoder, batch, lambda _, attention: found.append(attention))
    return found


def cosine(
    first: Maps, second: Maps, rows: Bool[Tensor, "batch token"] | None = None
) -> Float[Tensor, "batch head"]:
    """The cosine similarity of two maps, flattened; with `rows`, of these rows only."""
    if rows is not None:
        first, second = (maps * rows[:, None, :, None] for maps in (first, second))
    return torch.nn.functional.cosine_similarity(first.flatten(2), second.flatten(2), dim=-1)


def padded_cosine(
    before: Encoder, after: Encoder, layouts: Sequence[Layout], length: int = PADDED
) -> Float[np.ndarray, "sequence layer head"]:
    """The cosine of maps padded to `length` tokens, with the rows of padding, as in the released code.

    These rows attend to the real tokens; they are most of the map of a short sequence.
    """
    length = min(length, before.positions, before.tokenizer.model_max_length)
    length = max(length, *(len(layout) for layout in layouts))
    filler = Words(0, np.full(length, before.tokenizer.pad_token_id), np.zeros(length, int))
    found = []
    for start in tqdm(range(0, len(layouts), BATCH), "padded maps", unit="batch", leave=None):
        batch = [*layouts[start : start + BATCH], filler]  # its last sequence makes it that long
        pairs = zip(attention_of(before, batch), attention_of(after, batch), strict=True)
        found.append(torch.stack([cosine(*pair)[:-1] for pair in pairs], dim=1).cpu().numpy())
    return np.concatenate(found)


def _most(
    attention: Float[Tensor, "batch head token"],
    marked: Bool[Tensor, "batch mode feature token"],
    absent: Float[Tensor, "batch mode feature"],
) -> Float[Tensor, "batch mode feature head"]:
    """The largest attention to a marked token; `absent` replaces it if no token is marked."""
    values = attention[:, None, None].masked_fill(~marked[:, :, :, None], -torch.inf).amax(-1)
    return torch.where(marked.any(-1)[..., None], values, absent[..., None])


def verb_links(
    attention: Float[np.ndarray, "head token token"], targets: Targets
) -> Float[np.ndarray, "link mode head"]:
    """Attention from subjects to verbs and back: released code, mean over the relations, mean at the same distance."""
    found = np.full((len(LINKS), len(LINK_MODES), len(attention)), np.nan)
    for number, maps in enumerate((attention, attention.swapaxes(1, 2))):
        found[number, 0] = largest(maps, targets.zipped)[0] if targets.zipped else 0
        if targets.verbs:
            scores = [(largest(maps, each), each.own) for each in targets.verbs]
            found[number, 1] = np.mean([score[own] for score, own in scores], axis=0)
            found[number, 2] = np.mean([elsewhere(*pair) for pair in scores], axis=0)
    return found
