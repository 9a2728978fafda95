"""Edits of the vectors that named heads read, where their attention stays as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from analysis.encoders.interventions import texts_digest
from analysis.encoders.layout import Layout, across, batches
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import Edit, Operator, Prefix, Share, for_queries, repeated
from analysis.encoders.redirection import ROWS, TARGETS, padded
from analysis.encoders.tap import Reading, Rows, ValueReader, Values, read_layers, tap
from analysis.errors import InputError
from analysis.roles import Head

Inputs = dict[str, Tensor]
Outputs = Float[Tensor, "batch head query size"]


@dataclass(frozen=True)
class ChangedValues(Operator):
    """An operator of interventions: heads read the other text's value vectors from a pass over changed inputs.

    `change` gives the inputs of a batch, and `name` stands for it in the cache.
    """

    name: str
    change: Callable[[Encoder, Sequence[Layout]], Inputs]
    argument: ClassVar[str] = "values"

    def __str__(self) -> str:
        return f"values-{self.name}"

    def edit(self, prefix: Prefix) -> Edit:
        """The edit of one batch (see `Operator`)."""
        encoder, exchanged = prefix.encoder, []
        inputs = self.change(encoder, prefix.batch)
        reader = ValueReader(lambda _, reading: exchanged.append(reading.values))
        with torch.no_grad(), tap(encoder.model, reader), encoder.autocast():
            encoder.model(**inputs)
        other = padded([across(layout) for layout in prefix.batch]).to(encoder.device)

        def mixed(layer: int, share: Share, weights: Rows, values: Values) -> Outputs:
            moved = share * weights * for_queries(other, weights)
            changed = repeated(exchanged[layer], len(values) // len(exchanged[layer])).to(values.dtype)
            return (weights - moved) @ values + moved @ changed

        return mixed


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
class Flag(Operator):
    """An operator of interventions: the output of heads at unmatched pieces gets a fixed vector, and nothing else.

    `directions` holds it for the rows of each text, as `flag_directions` gives it.
    """

    directions: Float[Tensor, "text layer head size"]
    argument: ClassVar[str] = "values"

    def __str__(self) -> str:
        return f"flag-{sha256(self.directions.cpu().numpy().tobytes()).hexdigest()[:16]}"

    def edit(self, prefix: Prefix) -> Edit:
        """The edit of one batch (see `Operator`)."""
        marks = [row_marks(prefix.batch, "unmatched", text).to(prefix.encoder.device) for text in (0, 1)]

        def flagged(layer: int, share: Share, weights: Rows, values: Values) -> Outputs:
            output = weights @ values
            for rows, direction in zip(marks, self.directions[:, layer], strict=True):
                marked = for_queries(rows[:, None, :, None], weights)
                output = output + share * marked * direction[:, None].to(output)
            return output

        return flagged


def row_marks(batch: Sequence[Layout], rows: str, text: int | None = None) -> Tensor:
    """Which tokens, of one text or of both, are in the named rows, (sequence, token), padded with False."""
    texts = (0, 1) if text is None else [text]
    marks = [torch.from_numpy(ROWS[rows](layout) & np.isin(layout.text, texts)) for layout in batch]
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
            ((shares[0] - shares[1])[:, 0] * (both & row_marks(batch, "all", text))[..., None]).sum(1)
            for text in (0, 1)
        ]).to(encoder.device)  # fmt: skip
        counts += torch.stack([(both & row_marks(batch, "all", text)).sum() for text in (0, 1)])

        def read(layer: int, reading: Reading, weights: Tensor = weights) -> None:
            sums[:, layer] += torch.einsum("tbk,bhkd->thd", weights, reading.values).cpu()

        read_layers(encoder, batch, ValueReader(read))
    return (sums / counts.clamp_min(1)[:, None, None, None]).to(encoder.device)


def output_shares(
    encoder: Encoder, sequences: Sequence[Layout], heads: Sequence[Head], directions: Tensor
) -> pd.DataFrame:
    """By layer, head and text: the share of the variance of a head's outputs at matched rows in their first direction.

    cosine: that of this direction with the flag of these rows (see `flag_directions`), without sign.
    """
    outputs: dict[tuple[int, int, int], list[Tensor]] = {}
    for indices in batches(sequences):
        batch = [sequences[index] for index in indices]

        def read(layer: int, reading: Reading, batch: Sequence[Layout] = batch) -> None:
            for text in (0, 1):
                rows = row_marks(batch, "matched", text).to(encoder.device)
                for head in (head for place, head in heads if place == layer):
                    outputs.setdefault((layer, head, text), []).append(reading.context[:, head][rows])

        read_layers(encoder, batch, ValueReader(read))
    result = []
    for (layer, head, text), parts in outputs.items():
        rows = torch.cat(parts)
        if len(rows) < 2:
            continue
        _, sizes, vectors = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
        cosine = torch.cosine_similarity(vectors[0], directions[text, layer, head], dim=0).abs()
        result.append((layer, head, text, float(sizes[0] ** 2 / (sizes**2).sum()), float(cosine)))
    return pd.DataFrame(result, columns=["layer", "head", "text", "share", "cosine"])
