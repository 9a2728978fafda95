"""Attention that `tap` can exchange, also in families whose attention transformers does not dispatch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

from analysis.errors import InputError

NAME = "tapped"  # the attention function that `tap` registers


class MPNetDispatched(MPNetSelfAttention):
    """MPNet's attention, which adds a bias of relative positions to the logits of the heads that are `kept`."""

    kept = slice(None)

    def forward(self, hidden_states, attention_mask=None, position_bias=None, *_, **__):
        """The output and the attention of all heads."""
        states = (
            linear(hidden_states).unflatten(-1, (-1, self.attention_head_size)).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        bias = None if position_bias is None else position_bias[:, self.kept]
        context, weights = ALL_ATTENTION_FUNCTIONS[NAME](
            self, *states, attention_mask, dropout=self.dropout.p, bias=bias
        )
        return self.o(context.flatten(2)), weights


class DebertaDispatched(DisentangledSelfAttention):
    """DeBERTa's attention, whose bias depends on queries, keys and their distance."""

    def forward(
        self,
        hidden_states,
        attention_mask,
        _=False,
        query_states=None,
        relative_pos=None,
        rel_embeddings=None,
    ):
        """The output and the attention of all heads."""
        inputs = hidden_states if query_states is None else query_states, hidden_states, hidden_states
        linears = self.query_proj, self.key_proj, self.value_proj
        heads, bias = self.num_attention_heads, None
        parts = 1 + sum(kind in self.pos_att_type for kind in ("c2p", "p2c"))
        states = [
            self.transpose_for_scores(linear(each), heads)
            for linear, each in zip(linears, inputs, strict=True)
        ]
        if self.relative_attention:
            distances = self.pos_dropout(rel_embeddings)
            bias = self.disentangled_attention_bias(*states[:2], relative_pos, distances, parts)
            bias = bias.unflatten(0, (-1, heads))
        mask = torch.where(attention_mask.bool(), 0.0, torch.finfo(hidden_states.dtype).min)
        states = [state.unflatten(0, (-1, heads)) for state in states]
        context, weights = ALL_ATTENTION_FUNCTIONS[NAME](
            self, *states, mask, (states[0].shape[-1] * parts) ** -0.5, self.dropout.p, bias=bias
        )
        return context.flatten(2), weights


DISPATCHED = {MPNetSelfAttention: MPNetDispatched, DisentangledSelfAttention: DebertaDispatched}


def dispatch(model: PreTrainedModel) -> list[nn.Module]:
    """Lets attention of the classes in DISPATCHED go through NAME; returns the modules that this changes."""
    changed = [module for module in model.modules() if type(module) in DISPATCHED]
    for module in changed:
        module.__class__, module.config = DISPATCHED[type(module)], model.config
    return changed


@contextmanager
def dispatched(model: PreTrainedModel) -> Iterator[None]:
    """Within the context, the attention of all layers goes through NAME."""
    changed, before = dispatch(model), model.config._attn_implementation
    own = any(isinstance(module, tuple(DISPATCHED)) for module in model.modules())
    if not own and not model._can_set_attn_implementation():
        raise InputError(
            f"{type(model).__name__} has no exchangeable attention, its heads cannot be read: use an encoder that "
            "docs/encoders.md lists"
        )
    try:
        if not own:
            model.set_attn_implementation(NAME)
        yield
    finally:
        for module in changed:
            module.__class__ = type(module).__base__
            del module.config
        if not own:
            model.set_attn_implementation(before)
