"""The attention of DeBERTa-v2, for `dispatch`."""

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

from analysis.encoders.dispatch import NAME


class Attention(DisentangledSelfAttention):
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
