"""Edits of what named heads read: attention moves elsewhere, or it stays and the vectors there change."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from analysis.encoders.interventions import Head, predict, sets, texts_digest
from analysis.encoders.layout import Layout, across, batches, same_pieces
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import Changes, Gates, Prefix
from analysis.encoders.tap import Reading, Rows, ValueReader, Values, read_layers, tap
from analysis.errors import InputError
from analysis.texts.examples import Example

Pairs = Bool[np.ndarray, "token token"]  # query, key
Inputs = dict[str, Tensor]
Outputs = Float[Tensor, "batch head query size"]


def matching_pairs(layout: Layout) -> Pairs:
    """Pairs of equal word pieces in different texts."""
    return same_pieces(layout) & across(layout)


def other_text(layout: Layout) -> Pairs:
    """Pieces of the other text that differ from the query's; no special tokens, no punctuation."""
    return across(layout) & ~same_pieces(layout) & ~layout.punctuation


def unmatched_other_text(layout: Layout) -> Pairs:
    """Of `other_text`, the pieces that have no counterpart themselves."""
    return other_text(layout) & ~matching_pairs(layout).any(axis=0)


def one_other_word(layout: Layout) -> Pairs:
    """For every query, one piece of `other_text` drawn at random; the same one in every run."""
    rng = np.random.default_rng(layout.input_ids)
    order = np.where(other_text(layout), rng.random((len(layout), len(layout))), 0)
    return (order == order.max(axis=1, keepdims=True)) & (order > 0)


def own_text(layout: Layout) -> Pairs:
    """Other pieces of the same text; no punctuation."""
    words = (layout.text >= 0) & ~layout.punctuation
    return (layout.text == layout.text[:, None]) & words & words[:, None] & ~np.eye(len(layout), dtype=bool)


NOWHERE = "nowhere"  # the attention is removed, and the rest of the row divided by its sum
TARGETS: dict[str, Callable[[Layout], Pairs]] = {
    "other text": other_text,
    "unmatched other text": unmatched_other_text,
    "one other word": one_other_word,
    "own text": own_text,
    "cls": lambda layout: np.broadcast_to(layout.cls, (len(layout), len(layout))),
    "sep": lambda layout: np.broadcast_to(layout.sep, (len(layout), len(layout))),
}
ROWS: dict[str, Callable[[Layout], Bool[np.ndarray, " token"]]] = {
    "matched": lambda layout: matching_pairs(layout).any(axis=1),
    "unmatched": lambda layout: (
        (layout.text >= 0) & ~layout.punctuation & ~matching_pairs(layout).any(axis=1)
    ),
    "all": lambda layout: layout.text >= 0,
}
MOVED: dict[str, Callable[[Layout], Pairs]] = {
    "all attention": lambda layout: np.ones((len(layout), len(layout)), bool),
    "matching pieces": matching_pairs,
    "other text": across,
}


@dataclass(frozen=True)
class Redirection:
    """An operator of interventions: in `rows`, the attention on `moved` goes to `to`, evenly over the pieces there.

    `rows`, `moved` and `to` are names in ROWS, MOVED and TARGETS; `to` may be "nowhere". A row is "matched" if an equal
    piece stands in the other text. `text` 0 or 1 leaves out the rows of the other text. Rows still sum to 1; a row
    whose target is empty keeps its attention.
    """

    rows: str = "unmatched"
    to: str = "other text"
    moved: str = "all attention"
    text: int | None = None

    def __post_init__(self) -> None:
        choices = {"rows": ROWS, "to": [*TARGETS, NOWHERE], "moved": MOVED, "text": [None, 0, 1]}
        for name, names in choices.items():
            if (value := getattr(self, name)) not in names:
                raise InputError(f"{name} is {value!r}: choose from {', '.join(map(str, names))}")

    def sources(self, layout: Layout) -> Pairs:
        """The pairs whose attention moves."""
        rows = ROWS[self.rows](layout)
        if self.text is not None:
            rows = rows & (layout.text == self.text)
        return rows[:, None] & MOVED[self.moved](layout)

    def prepared(self, prefix: Prefix) -> Changes:
        """The edit of one batch, as a function of gates: 1 - gate is the share that moves."""
        sources, targets = self.pairs(prefix.batch, prefix.encoder.device)

        def changes(gates: Gates) -> dict:
            touched = (gates != 1).any(-1).any(0).tolist()
            copies = len(gates) // len(sources)
            moving, spread = (
                None if part is None else part.repeat(copies, 1, 1, 1) for part in (sources, targets)
            )

            def replace(layer: int, weights: Rows, _: Bool[Tensor, "batch token"]) -> Rows:
                if not touched[layer]:
                    return weights
                queries = slice(weights.shape[2])  # in the last layer [CLS] alone is a query
                removed = (1 - gates[:, layer, :, None, None]) * weights * moving[:, :, queries]
                rest, mass = weights - removed, removed.sum(-1, keepdim=True)
                if spread is not None:
                    return rest + mass * spread[:, :, queries]
                total = rest.sum(-1, keepdim=True)
                return torch.where((mass > 0) & (total > 1e-6), rest / total.clamp_min(1e-6), weights)

            return {"replace": replace}

        return changes

    def pairs(
        self, batch: Sequence[Layout], device: torch.device
    ) -> tuple[Bool[Tensor, "batch 1 token token"], Tensor | None]:
        """The pairs whose attention moves, and the share of each target in its row; None if it goes nowhere."""
        sources = padded([self.sources(layout) for layout in batch]).to(device)
        if self.to == NOWHERE:
            return sources, None
        targets = padded([TARGETS[self.to](layout) for layout in batch]).to(device)
        counts = targets.sum(-1, keepdim=True)
        return sources & (counts > 0), targets / counts.clamp_min(1)


def redirect(
    encoder: Encoder,
    examples: Sequence[Example],
    heads: Mapping[str, Sequence[Head]],
    rows: str = "unmatched",
    to: str = "other text",
    dose: float | int = 0.5,
    only_matching: bool = False,
    max_tokens: int = 128,
    progress: bool = True,
    text: int | None = None,
    cache: Path | None = None,
) -> xr.DataArray:
    """Logits (heads, sequence, class) when each named set of heads has its attention redirected.

    `dose` is the share of the attention that moves, `only_matching` moves that on matching pieces alone, and the other
    choices are those of `Redirection`. The first entry, "none", is the unchanged encoder; `cache` as in `predict`.
    Source: this study.
    """
    operator = Redirection(rows, to, "matching pieces" if only_matching else "all attention", text)
    for name, members in heads.items():
        if not len(members):
            raise InputError(f"the set {name!r} names no head: name one or more as (layer, head)")
    edits = sets(encoder, heads, operator, dose)
    logits = predict(encoder, examples, edits, max_tokens=max_tokens, cache=cache, progress=progress)
    return logits.rename(intervention="heads")


@contextmanager
def blocked_across(encoder: Encoder, heads: Sequence[Head]) -> Iterator[None]:
    """Within the context, also in training, these heads attend to no piece of the other text; rows sum to 1.

    The first separator ends the first text.
    """
    model, tokenizer = encoder.model, encoder.tokenizer
    [intervention] = sets(encoder, {"blocked": heads})
    edited = torch.from_numpy(intervention.gate == 0)
    special = torch.tensor([tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id])
    other: list[Tensor] = []

    def read(_, arguments: tuple, inputs: dict[str, Tensor]) -> None:
        ids = inputs["input_ids"]
        second = ((ids == tokenizer.sep_token_id).cumsum(1) > 0).long()
        text = second.masked_fill(torch.isin(ids, special.to(model.device)), -2)
        other[:] = [(text[:, None, :, None] == 1 - text[:, None, None, :])]

    def replace(layer: int, weights: Rows, _: Bool[Tensor, "batch token"]) -> Rows:
        if not edited[layer].any():
            return weights
        rest = weights * ~(other[0] & edited[layer][:, None, None].to(weights.device))
        return rest / rest.sum(-1, keepdim=True)

    with model.register_forward_pre_hook(read, with_kwargs=True), tap(model, replace=replace):
        yield


def padded(pairs: Sequence[np.ndarray]) -> Bool[Tensor, "batch 1 token token"]:
    """The pairs of every sequence in one tensor, padded with False."""
    longest = max(map(len, pairs))
    tensor = torch.zeros(len(pairs), 1, longest, longest, dtype=torch.bool)
    for row, matrix in zip(tensor, pairs, strict=True):
        row[0, : len(matrix), : len(matrix)] = torch.from_numpy(np.ascontiguousarray(matrix))
    return tensor


@dataclass(frozen=True)
class ChangedValues:
    """An operator of interventions: heads read the other text's value vectors from a pass over changed inputs.

    `change` gives the inputs of a batch, and `name` stands for it in the cache.
    """

    name: str
    change: Callable[[Encoder, Sequence[Layout]], Inputs]

    def __str__(self) -> str:
        return f"values-{self.name}"

    def prepared(self, prefix: Prefix) -> Changes:
        """The edit of one batch, as a function of gates: 1 - gate is the share of these value vectors."""
        encoder, values = prefix.encoder, []
        inputs = self.change(encoder, prefix.batch)
        reader = ValueReader(lambda _, reading: values.append(reading.values))
        with torch.no_grad(), tap(encoder.model, reader), encoder.autocast():
            encoder.model(**inputs)
        other = padded([across(layout) for layout in prefix.batch]).to(encoder.device)

        def changes(gates: Gates) -> dict:
            copies = len(gates) // len(other)

            def mix(layer: int, weights: Rows, value: Values) -> Outputs:
                crossing = other.repeat(copies, 1, 1, 1)[:, :, : weights.shape[2]]
                moved = (1 - gates[:, layer, :, None, None]) * weights * crossing
                changed = values[layer].repeat(copies, 1, 1, 1).to(value.dtype)
                return (weights - moved) @ value + moved @ changed

            return {"values": mix}

        return changes


def exchanged_types(encoder: Encoder, batch: Sequence[Layout]) -> Inputs:
    """The inputs with the token types of both texts exchanged; an encoder with one token type is refused."""
    inputs = encoder.inputs(batch)
    if "token_type_ids" not in inputs:
        raise InputError(f"{encoder.name} has one token type: there is nothing to exchange")
    return inputs | {"token_type_ids": 1 - inputs["token_type_ids"]}


def exchanged_positions(encoder: Encoder, batch: Sequence[Layout]) -> Inputs:
    """The inputs with the absolute positions that the pieces would have if the texts stood in the other order.

    An encoder without absolute positions is refused; relative ones stay as they are.
    """
    table = position_embeddings(encoder)
    if table is None:
        raise InputError(f"{encoder.name} has no absolute positions: there is nothing to exchange")
    inputs, first = encoder.inputs(batch), 0 if table.padding_idx is None else table.padding_idx + 1
    positions = torch.zeros_like(inputs["input_ids"])
    for row, layout in zip(positions, batch, strict=True):
        row[: len(layout)] = torch.from_numpy(places_in_other_order(layout))
    return inputs | {"position_ids": positions + first}


def position_embeddings(encoder: Encoder) -> nn.Embedding | None:
    """The embeddings of absolute positions, if the encoder has any."""
    embeddings = getattr(encoder.model.base_model, "embeddings", None)
    return getattr(embeddings, "position_embeddings", None)


def places_in_other_order(layout: Layout) -> Int[np.ndarray, " token"]:
    """Where every token would stand if the second text came first; separators keep their number between the texts."""
    places = np.arange(len(layout))
    first, second = (np.flatnonzero(layout.text == text) for text in (0, 1))
    if not len(second):
        return places
    between = places[first[-1] + 1 : second[0]]
    order = [places[: first[0]], second, between, first, places[second[-1] + 1 :]]
    return np.argsort(np.concatenate(order))


def other_words(sequences: Sequence[Layout]) -> ChangedValues:
    """The operator that puts the words of another pair at the positions of a pair's words, text by text.

    The other pair is the next one by length among these sequences; its texts are cut, or repeated, to the length.
    """
    order = sorted(sequences, key=lambda layout: (len(layout), layout.id))
    others = {layout.id: other for layout, other in zip(order, [*order[1:], *order[:1]], strict=True)}

    def change(encoder: Encoder, batch: Sequence[Layout]) -> Inputs:
        inputs = encoder.inputs(batch)
        for row, layout in zip(inputs["input_ids"], batch, strict=True):
            for text in (0, 1):
                places = np.flatnonzero(layout.text == text)
                words = others[layout.id].input_ids[others[layout.id].text == text]
                row[places] = torch.from_numpy(np.resize(words, len(places))).to(row)
        return inputs

    return ChangedValues(f"other-words-{texts_digest(sequences)[:16]}", change)


@dataclass(frozen=True, eq=False)
class Flag:
    """An operator of interventions: the output of heads at unmatched pieces gets a fixed vector, and nothing else.

    `directions` holds it for the rows of each text, as `flag_directions` gives it.
    """

    directions: Float[Tensor, "text layer head size"]

    def __str__(self) -> str:
        return f"flag-{sha256(self.directions.cpu().numpy().tobytes()).hexdigest()[:16]}"

    def prepared(self, prefix: Prefix) -> Changes:
        """The edit of one batch, as a function of gates: 1 - gate is the share of the vector that is added."""
        marks = [row_marks(prefix.batch, text).to(prefix.encoder.device) for text in (0, 1)]

        def changes(gates: Gates) -> dict:
            copies = len(gates) // len(marks[0])

            def add(layer: int, weights: Rows, value: Values) -> Outputs:
                output, share = weights @ value, (1 - gates[:, layer, :, None, None])
                for rows, direction in zip(marks, self.directions[:, layer], strict=True):
                    rows = rows.repeat(copies, 1)[:, None, : output.shape[2], None]
                    output = output + share * rows * direction[:, None].to(output)
                return output

            return {"values": add}

        return changes


def row_marks(batch: Sequence[Layout], text: int, rows: str = "unmatched") -> Tensor:
    """Which tokens of a text are in the named rows, (sequence, token), padded with False."""
    marks = [torch.from_numpy(ROWS[rows](layout) & (layout.text == text)) for layout in batch]
    return nn.utils.rnn.pad_sequence(marks, batch_first=True)


def flag_directions(encoder: Encoder, sequences: Sequence[Layout]) -> Float[Tensor, "text layer head size"]:
    """The mean of what heads would read evenly in the other text, minus what they would read in their own text.

    It is a mean over all rows of a text: one vector for the rows of the first text, one for those of the second.
    """
    size = encoder.model.config.hidden_size // encoder.heads
    sums, counts = torch.zeros(2, encoder.layers, encoder.heads, size), torch.zeros(2)
    for indices in batches(sequences):
        batch = [sequences[index] for index in indices]
        shares = []
        for name in ("other text", "own text"):
            targets = padded([TARGETS[name](layout) for layout in batch]).float()
            shares.append(targets / targets.sum(-1, keepdim=True).clamp_min(1))
        both = (shares[0].sum(-1) * shares[1].sum(-1))[:, 0] > 0
        weights = torch.stack([
            ((shares[0] - shares[1])[:, 0] * (both & row_marks(batch, text, "all"))[..., None]).sum(1)
            for text in (0, 1)
        ]).to(encoder.device)  # fmt: skip
        counts += torch.stack([(both & row_marks(batch, text, "all")).sum() for text in (0, 1)])

        def read(layer: int, reading: Reading, weights: Tensor = weights) -> None:
            sums[:, layer] += torch.einsum("tbk,bhkd->thd", weights, reading.values).cpu()

        read_layers(encoder, batch, ValueReader(read))
    return (sums / counts.clamp_min(1)[:, None, None, None]).to(encoder.device)


def output_shares(
    encoder: Encoder, sequences: Sequence[Layout], heads: Sequence[tuple[int, int]], directions: Tensor
) -> Mapping[tuple[int, int, int], tuple[float, float]]:
    """By layer, head and text: the share of the variance of a head's outputs at matched rows in their first direction.

    The second number is the cosine of that direction with the flag of these rows (see `flag_directions`), without sign.
    """
    outputs: dict[tuple[int, int, int], list[Tensor]] = {}
    for indices in batches(sequences):
        batch = [sequences[index] for index in indices]

        def read(layer: int, reading: Reading, batch: Sequence[Layout] = batch) -> None:
            for text in (0, 1):
                rows = row_marks(batch, text, "matched").to(encoder.device)
                for head in (head for place, head in heads if place == layer):
                    outputs.setdefault((layer, head, text), []).append(reading.context[:, head][rows])

        read_layers(encoder, batch, ValueReader(read))
    result = {}
    for (layer, head, text), parts in outputs.items():
        rows = torch.cat(parts)
        if len(rows) < 2:
            continue
        _, sizes, vectors = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
        cosine = torch.cosine_similarity(vectors[0], directions[text, layer, head], dim=0).abs()
        result[layer, head, text] = float(sizes[0] ** 2 / (sizes**2).sum()), float(cosine)
    return result
