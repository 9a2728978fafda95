"""Attention through `tap` also in families whose attention transformers does not dispatch: MPNet and DeBERTa-v2."""

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


class DispatchedMPNet(MPNetSelfAttention):
    """MPNet's attention: a bias of relative positions, the same for all sequences, is added to the logits."""

    remaining_heads = slice(None)  # in a pruned encoder their numbers

    def forward(self, hidden_states, attention_mask=None, position_bias=None, output_attentions=False, **_):
        """The output, and the attention of all heads if it is asked for: else the layer would keep it to its end."""
        query, key, value = (
            linear(hidden_states).unflatten(-1, (-1, self.attention_head_size)).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        bias = None if position_bias is None else position_bias[:1, self.remaining_heads]
        context, weights = ALL_ATTENTION_FUNCTIONS[NAME](
            self, query, key, value, attention_mask, dropout=self.dropout.p, bias=bias
        )
        output = self.o(context.flatten(2))
        return (output, weights) if output_attentions else (output,)


class DispatchedDeberta(DisentangledSelfAttention):
    """DeBERTa's attention: a bias that depends on queries, keys and their distance is added to the logits."""

    def forward(
        self,
        hidden_states,
        attention_mask,
        output_attentions=False,
        query_states=None,
        relative_pos=None,
        rel_embeddings=None,
    ):
        """The output and the attention of all heads."""
        heads = self.num_attention_heads
        queries = hidden_states if query_states is None else query_states
        query, key, value = (  # each (batch * head, token, size), as the library's own methods expect
            self.transpose_for_scores(linear(states), heads)
            for linear, states in (
                (self.query_proj, queries),
                (self.key_proj, hidden_states),
                (self.value_proj, hidden_states),
            )
        )
        terms = 1 + sum(kind in self.pos_att_type for kind in ("c2p", "p2c"))  # of the logits
        bias = None
        if self.relative_attention:
            distances = self.pos_dropout(rel_embeddings)
            bias = self.disentangled_attention_bias(query, key, relative_pos, distances, terms)
            bias = bias.unflatten(0, (-1, heads))
        mask = torch.where(attention_mask.bool(), 0.0, torch.finfo(hidden_states.dtype).min)
        context, weights = ALL_ATTENTION_FUNCTIONS[NAME](
            self,
            *(states.unflatten(0, (-1, heads)) for states in (query, key, value)),
            mask,
            scaling=(query.shape[-1] * terms) ** -0.5,
            dropout=self.dropout.p,
            bias=bias,
        )
        return context.flatten(2), weights


DISPATCHED = {MPNetSelfAttention: DispatchedMPNet, DisentangledSelfAttention: DispatchedDeberta}


def dispatch(model: PreTrainedModel) -> list[nn.Module]:
    """Exchanges the class of attention modules of the types in DISPATCHED; returns these modules."""
    modules = [module for module in model.modules() if type(module) in DISPATCHED]
    for module in modules:
        module.__class__, module.config = DISPATCHED[type(module)], model.config
    return modules


@contextmanager
def dispatched(model: PreTrainedModel) -> Iterator[None]:
    """Within the context, the attention of all layers goes through the function NAME."""
    modules, implementation = dispatch(model), model.config._attn_implementation
    # Those of a pruned MPNet have the other class outside of the context too.
    by_class = any(isinstance(module, tuple(DISPATCHED)) for module in model.modules())
    if not by_class and not model._can_set_attn_implementation():
        raise InputError(
            f"{type(model).__name__} has no exchangeable attention, its heads cannot be read: use an encoder that "
            "docs/encoders.md lists"
        )
    try:
        if not by_class:
            model.set_attn_implementation(NAME)
        yield
    finally:
        for module in modules:
            module.__class__ = type(module).__base__
            del module.config
        if not by_class:
            model.set_attn_implementation(implementation)
