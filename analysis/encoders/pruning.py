"""Removes heads from a model for good, which makes it smaller and faster (Michel 2019, table 4)."""

import copy

import numpy as np
import torch
from jaxtyping import Int, Num
from torch import Tensor, nn

from analysis.encoders.dispatch import MPNetDispatched, dispatch
from analysis.encoders.interventions import check_gate
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import body
from analysis.encoders.tap import projections
from analysis.errors import InputError


def prune(encoder: Encoder, gate: Num[np.ndarray, "..."]) -> Encoder:
    """A copy of the encoder without the heads whose gate is 0; it gives the same logits as the encoder with that gate.

    A layer may lose all heads. The remaining heads get new numbers: use gates, `tap` and `predict` with interventions
    on the original encoder.
    """
    gate = check_gate(encoder, gate)
    if not np.isin(gate, (0, 1)).all():
        raise InputError("the gate has numbers between 0 and 1: a head is pruned (0) or kept (1)")
    model = copy.deepcopy(encoder.model)
    name = f"{encoder.name}, {int(gate.sum())} of {gate.size} heads"
    smaller = Encoder(name, model, encoder.tokenizer, encoder.precision, encoder.absent)
    dispatch(model)  # an attention of our own reads the bias of the heads that are left
    for layer, row in zip(body(smaller)[1], gate, strict=True):
        query, key, value, output = projections(layer, name)
        if query.out_features < query.in_features:
            raise InputError(
                f"{encoder.name!r} is already pruned: prune the whole encoder, with one gate for all heads"
            )
        dimensions = torch.from_numpy(np.flatnonzero(row.repeat(query.out_features // len(row))))
        for linear in (query, key, value):
            _shrink(linear, dimensions.to(encoder.device), dim=0)
        _shrink(output, dimensions.to(encoder.device), dim=1)
        for module in layer.modules():
            if isinstance(module, MPNetDispatched):
                module.kept = np.flatnonzero(row)
    return smaller


def _shrink(linear: nn.Linear, dimensions: Int[Tensor, " dimension"], dim: int) -> None:
    """Leaves a linear layer these output dimensions (dim 0) or input dimensions (dim 1)."""
    linear.weight = nn.Parameter(linear.weight.detach().index_select(dim, dimensions))
    if dim == 0 and linear.bias is not None:
        linear.bias = nn.Parameter(linear.bias.detach()[dimensions])
    linear.out_features, linear.in_features = linear.weight.shape
