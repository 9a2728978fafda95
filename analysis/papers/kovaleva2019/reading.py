"""One pass over a state of the encoder: its patterns, its attention to features, and its change by fine-tuning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from analysis.encoders.layout import Layout, Pieces, batches
from analysis.encoders.models import Encoder, kept_casts
from analysis.encoders.tap import read_layers
from analysis.files import replacing
from analysis.papers.kovaleva2019.names import FEATURES
from analysis.papers.kovaleva2019.placements import Placements, elsewhere, largest
from analysis.papers.kovaleva2019.quality import Labeller
from analysis.papers.kovaleva2019.targets import MODES, Targets, targets_digest

LINKS = ("subject to verb", "verb to subject")
LINK_MODES = ("faithful", "aligned", "same distance")
NOT_LABELLED = -1
FORMAT = 1  # of the saved file
PADDED = 200  # tokens of every map in the released code
Maps = Float[Tensor, "batch head token token"]
Found = Float[np.ndarray, "sequence ..."]


def kept(path: Path, about: Mapping[str, Any], make: Callable[[], xr.Dataset]) -> xr.Dataset:
    """The dataset in a file if it was made with the same `about`; otherwise a new one, which is saved there."""
    said = {name: str(value) for name, value in about.items()}
    if path.exists():
        try:
            found = xr.load_dataset(path, engine="h5netcdf")
            if found.attrs == said:
                return found
        except (OSError, ValueError, KeyError):  # damaged: computed again
            pass
    found = make().assign_attrs(said)
    with replacing(path) as temporary:
        temporary.write_bytes(found.to_netcdf(engine="h5netcdf"))
    return found


def read_kept(
    path: Path,
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
    about = {
        "weights": encoder.digest,
        "before": before.digest if before else "",
        "sequences": targets_digest(targets),
        "labeller": f"{labeller.name} {labeller.key}",
        "sizes": f"{labelled} labelled, {padded} padded",
        "computed": f"{encoder.precision}, {encoder.device.type}, format {FORMAT}",
    }
    return kept(path, about, lambda: read_state(encoder, targets, labeller, labelled, before, padded))


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
    for number, turned in enumerate((False, True)):
        places = [_turned(each) if turned else each for each in targets.verbs]
        first = targets.zipped and (_turned(targets.zipped) if turned else targets.zipped)
        found[number, 0] = 0 if first is None else largest(attention, first)[0]
        if places:
            scores = [(largest(attention, each), each.own) for each in places]
            found[number, 1] = np.mean([score[own] for score, own in scores], axis=0)
            found[number, 2] = np.mean([elsewhere(*pair) for pair in scores], axis=0)
    return found


def _turned(places: Placements) -> Placements:
    return Placements(places.columns, places.rows, places.own)
