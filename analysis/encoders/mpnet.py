"""MPNet's attention, for `dispatch`."""

from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

from analysis.encoders.dispatch import NAME


class Attention(MPNetSelfAttention):
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
