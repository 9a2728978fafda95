"""What one pass over an encoder says of every sequence: patterns, attention to features, links, similarity."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from analysis.cache import cached
from analysis.encoders.layout import Layout, Pieces, batches, layouts, piece_ranges
from analysis.encoders.models import Encoder, kept_casts
from analysis.encoders.tap import read_layers
from analysis.papers.kovaleva2019.labellers import Labeller
from analysis.papers.kovaleva2019.names import ARGUMENTS, CLS, FEATURES, NEGATION, PARTS_OF_SPEECH, SEP
from analysis.papers.kovaleva2019.placements import Placements, elsewhere, largest, placements
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
        name: [*_words(name, example, relations, tags)] for name in (*PARTS_OF_SPEECH, *ARGUMENTS, NEGATION)
    }
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


def _words(
    name: str, example: Example, relations: Sequence[Relation], tags: Sequence[Tag]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The text and the character span of every word of a feature."""
    if name in PARTS_OF_SPEECH:
        yield from ((tag.text, tag.word) for tag in tags if tag.upos in PARTS_OF_SPEECH[name])
    elif name in ARGUMENTS:
        yield from ((each.text, each.dependent) for each in relations if each.label in ARGUMENTS[name])
    else:
        written = ((tag, example.texts[tag.text][slice(*tag.word)].lower()) for tag in tags)
        yield from ((tag.text, tag.word) for tag, word in written if word in NEGATIVE_WORDS)


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
Maps = Float[Tensor, "batch head token token"]


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
    key = [weights, targets_digest(targets), labeller.name, labeller.key, labelled, padded, computed]

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
    progress: bool = True,
) -> xr.Dataset:
    """Measures of one state of an encoder on every sequence, from one forward pass; maps are not kept.

    received (sequence, mode, feature, layer, head): mean attention of all tokens to the most attended token of the
    feature; NaN if the sequence does not have it. cls_row (sequence, feature, head): the largest attention of [CLS] in
    the last layer. link (sequence, link, link_mode, layer, head): attention between subjects and verbs, and at the same
    distance. pattern (sequence, layer, head): the number in PATTERNS, for the first `labelled` sequences. With the
    encoder `before`: cosine (sequence, layer, head) between the maps of both and, for the first `padded` sequences,
    cosine_padded. Source: Kovaleva 2019, 4.1 and 4.3 to 4.5.
    """
    pass_ = _Pass.new(encoder, targets, labeller, labelled)
    cosines = np.full((len(targets), encoder.layers, encoder.heads), np.nan, np.float32)
    bar = tqdm(total=len(targets), desc=f"patterns of {encoder.name}", unit="sequence", disable=not progress)
    with kept_casts(encoder, *([before] if before else [])), bar:
        for indices in batches([each.layout for each in targets], budget):
            layouts = [targets[index].layout for index in indices]
            earlier = attention_of(before, layouts) if before else None
            real = _real(layouts, encoder.device)

            def read(layer: int, attention: Maps, indices=indices, earlier=earlier, real=real) -> None:
                pass_.add(indices, layer, attention, real)
                if earlier is not None:
                    cosines[indices, layer] = cosine(earlier[layer], attention, real).cpu().numpy()

            read_layers(encoder, layouts, read)
            bar.update(len(indices))
    found = pass_.dataset()
    if before is not None:
        dimensions = ("sequence", "layer", "head")
        layouts = [each.layout for each in targets[:padded]]
        wide = np.full_like(cosines, np.nan)
        if layouts:
            wide[:padded] = padded_cosine(before, encoder, layouts, progress=progress)
        found = found.assign(cosine=(dimensions, cosines), cosine_padded=(dimensions, wide))
    return found


def _real(layouts: Sequence[Pieces], device: torch.device) -> Bool[Tensor, "batch token"]:
    rows = [torch.ones(len(layout), dtype=torch.bool) for layout in layouts]
    return pad_sequence(rows, batch_first=True).to(device)


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


@dataclass(frozen=True)
class Filler:
    """A sequence of a given number of tokens; it makes a batch that long."""

    input_ids: np.ndarray
    type_ids: np.ndarray

    def __len__(self) -> int:
        return len(self.input_ids)


def padded_cosine(
    before: Encoder,
    after: Encoder,
    layouts: Sequence[Layout],
    length: int = PADDED,
    most: int = 8,
    progress: bool = True,
) -> Float[np.ndarray, "sequence layer head"]:
    """The cosine of maps padded to `length` tokens, with the rows of padding, as in the released code.

    These rows attend to the real tokens; they are most of the map of a short sequence.
    """
    length = min(length, before.positions, before.tokenizer.model_max_length)
    length = max(length, *(len(layout) for layout in layouts))
    filler = Filler(*np.full((2, length), [[before.tokenizer.pad_token_id], [0]]))
    found = []
    for start in tqdm(range(0, len(layouts), most), "padded maps", disable=not progress, unit="batch"):
        batch = [*layouts[start : start + most], filler]
        pairs = zip(attention_of(before, batch), attention_of(after, batch), strict=True)
        found.append(torch.stack([cosine(*pair)[:-1] for pair in pairs], dim=1).cpu().numpy())
    return np.concatenate(found)


@dataclass(frozen=True)
class _Pass:
    """Collects the measures of one state, batch by batch and layer by layer."""

    encoder: Encoder
    targets: Sequence[Targets]
    labeller: Labeller
    labelled: int
    received: Float[np.ndarray, "sequence mode feature layer head"]
    cls_row: Float[np.ndarray, "sequence feature head"]
    link: Float[np.ndarray, "sequence link mode layer head"]
    pattern: np.ndarray

    @classmethod
    def new(cls, encoder: Encoder, targets: Sequence[Targets], labeller: Labeller, labelled: int) -> "_Pass":
        n, heads = len(targets), (encoder.layers, encoder.heads)
        shapes = [
            (n, len(MODES), len(FEATURES), *heads),
            (n, len(FEATURES), encoder.heads),
            (n, len(LINKS), len(LINK_MODES), *heads),
        ]
        empty = [np.full(shape, np.nan, np.float32) for shape in shapes]
        return cls(encoder, targets, labeller, labelled, *empty, np.full((n, *heads), NOT_LABELLED, np.int8))

    def add(self, indices: list[int], layer: int, attention: Maps, real: Bool[Tensor, "batch token"]) -> None:
        """Adds the maps of one layer of a batch."""
        batch = [self.targets[index] for index in indices]
        marked = _stacked([each.marked for each in batch], attention)
        absent = torch.from_numpy(np.stack([each.absent for each in batch])).to(attention.device)
        received = (attention * real[:, None, :, None]).sum(2) / real.sum(1)[:, None, None]
        self.received[indices, :, :, layer] = _most(received, marked, absent).cpu().numpy()
        if layer == self.encoder.layers - 1:
            aligned = MODES.index("aligned")
            row = attention[:, :, 0]  # of [CLS]
            self.cls_row[indices] = _most(row, marked[:, [aligned]], absent[:, [aligned]])[:, 0].cpu().numpy()
        for index, each, maps in zip(indices, batch, attention.cpu().numpy(), strict=True):
            self.link[index, :, :, layer] = verb_links(maps, each)
        chosen = [place for place, index in enumerate(indices) if index < self.labelled]
        if chosen:
            layouts = [batch[place].layout for place in chosen]
            longest = max(map(len, layouts))
            labels = self.labeller(attention[chosen][..., :longest, :longest], layouts)
            self.pattern[[indices[place] for place in chosen], layer] = labels

    def dataset(self) -> xr.Dataset:
        """All collected measures, with labels."""
        heads = ("layer", "head")
        variables = {
            "received": (("sequence", "mode", "feature", *heads), self.received),
            "cls_row": (("sequence", "feature", "head"), self.cls_row),
            "link": (("sequence", "link_name", "link_mode", *heads), self.link),
            "pattern": (("sequence", *heads), self.pattern),
        }
        coordinates = {
            "sequence": [each.layout.id for each in self.targets],
            "cluster": ("sequence", [each.cluster for each in self.targets]),
            "mode": [*MODES],
            "feature": [*FEATURES],
            "link_name": [*LINKS],
            "link_mode": [*LINK_MODES],
            "layer": range(self.encoder.layers),
            "head": range(self.encoder.heads),
        }
        return xr.Dataset(variables, coordinates)


def _stacked(masks: Sequence[Bool[np.ndarray, "mode feature token"]], like: Tensor) -> Bool[Tensor, "..."]:
    padded = pad_sequence([torch.from_numpy(mask).movedim(-1, 0) for mask in masks], batch_first=True)
    return padded.movedim(1, -1).to(like.device)


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
