"""Removes heads from a model for good, which makes it smaller and faster (Michel 2019, table 4)."""

import copy

import numpy as np
import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from analysis.encoders.interventions import check_gate
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import body
from analysis.encoders.tap import projections
from analysis.errors import InputError


def prune(encoder: Encoder, gate: Num[np.ndarray, "..."]) -> Encoder:
    """A copy of the encoder without the heads whose gate is 0; it gives the same logits as the encoder with that gate.

    A layer may lose all heads. The remaining heads get new numbers: use gates, `tap` and `predict` with interventions
    on the original encoder. Raises InputError for a gate of the wrong shape or with numbers other than 0 and 1, and for
    an encoder that is already pruned.
    """
    gate = _check_whole(encoder, gate)
    model = copy.deepcopy(encoder.model)
    name = f"{encoder.name}, {int(gate.sum())} of {gate.size} heads"
    smaller = Encoder(name, model, encoder.tokenizer, encoder.precision, encoder.absent)
    for layer, row in zip(body(smaller)[1], gate, strict=True):
        query, key, value, output = projections(layer, name)
        columns = torch.from_numpy(np.flatnonzero(row.repeat(query.out_features // len(row))))
        for linear in (query, key, value):
            _keep_rows(linear, columns.to(encoder.device))
        _keep_columns(output, columns.to(encoder.device))
    return smaller


def _check_whole(encoder: Encoder, gate: Num[np.ndarray, "..."]) -> Float[np.ndarray, "layer head"]:
    gate = check_gate(encoder, gate)
    if not np.isin(gate, (0, 1)).all():
        raise InputError("the gate has numbers between 0 and 1: a head is pruned (0) or kept (1)")
    queries = [projections(layer, encoder.name)[0] for layer in body(encoder)[1]]
    if any(query.out_features != encoder.heads * (query.in_features // encoder.heads) for query in queries):
        raise InputError(
            f"{encoder.name!r} is already pruned: prune the whole encoder, with one gate for all heads"
        )
    return gate


def _keep_rows(linear: nn.Linear, rows: Int[Tensor, " row"]) -> None:
    linear.weight = _parameter(linear.weight[rows], linear.weight)
    if linear.bias is not None:
        linear.bias = _parameter(linear.bias[rows], linear.bias)
    linear.out_features = len(rows)


def _keep_columns(linear: nn.Linear, columns: Int[Tensor, " column"]) -> None:
    linear.weight = _parameter(linear.weight[:, columns].contiguous(), linear.weight)
    linear.in_features = len(columns)


def _parameter(values: Tensor, like: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(values.detach(), requires_grad=like.requires_grad)
