"""Forward passes under interventions start at the first layer that changes; the layers below run only once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

from analysis.encoders.layout import Pieces
from analysis.encoders.models import Encoder
from analysis.encoders.tap import Replace, Rows, Values, tap, uniform_rows
from analysis.errors import InputError

Gates = Float[Tensor, "sequence layer head"]
Changes = Callable[[Gates], dict[str, Any]]
Share = Float[Tensor, "sequence head 1 1"]
Edit = Callable[[int, Share, Rows, Values], Tensor]  # of a layer
Call = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]  # a module and the arguments, positional and by name


def uniform_heads(shares: Shaped[Tensor, "layer head"] | Shaped[Tensor, "sequence layer head"]) -> Replace:
    """A `replace` for `tap`: heads with share 1 attend equally to all real tokens (Kovaleva 2019, section 4.6).

    A number between 0 and 1 mixes uniform attention with the head's own.
    """
    touched = (shares != 0).any(-1).reshape(-1, shares.shape[-2]).any(0).tolist()

    def replace(layer: int, weights: Rows, real: Bool[Tensor, "batch token"]) -> Rows:
        if not touched[layer]:
            return weights
        share = shares[..., layer, :, None, None].to(weights.dtype)
        return torch.lerp(weights, uniform_rows(real).to(weights.dtype), share)

    return replace


# Arguments of `tap` for each operator: gate 1 leaves a head as it is, gate 0 ablates it, others lie between.
OPERATORS: Mapping[str, Changes] = {
    "zero": lambda gates: {"gate": gates},  # outputs zeros (Michel 2019)
    "uniform": lambda gates: {"replace": uniform_heads(1 - gates)},  # its mean value (Kovaleva 2019)
}


@dataclass(frozen=True)
class Prefix:
    """An ordinary pass over a padded batch; passes under interventions can start at any of its layers."""

    encoder: Encoder
    batch: Sequence[Pieces]
    owner: nn.Module  # runs the layers
    layers: Sequence[nn.Module]
    first: Mapping[str, Tensor]  # the model's inputs, cut to the first token of each sequence
    hidden: Sequence[Float[Tensor, "sequence token width"]]  # the input of each layer
    # What layers add to their logits: the mask, None without padding, and in MPNet the bias of relative positions.
    terms: Sequence[Float[Tensor, "_ _ token token"] | None]
    logits: Float[Tensor, "sequence class"]

    @property
    def tokens(self) -> int:
        """Number of tokens in the padded batch."""
        return self.hidden[0].shape[0] * self.hidden[0].shape[1]

    def resume(
        self, layer: int, gates: Float[Tensor, "variant layer head"], changes: Changes
    ) -> Float[Tensor, "variant sequence class"]:
        """The logits of passes under gates that change nothing before `layer`; the variants run as one batch.

        In the last layer only the first token is a query, because the classification head reads no other token (see
        `check_first_token`).
        """
        count, sequences = len(gates), len(self.logits)
        hidden = repeated(self.hidden[layer], count)
        terms = [term if term is None or len(term) == 1 else repeated(term, count) for term in self.terms]
        repeated_gates = gates.to(hidden.device).repeat_interleave(sequences, dim=0)
        with (
            tap(self.encoder.model, **changes(repeated_gates)) as tapped,
            torch.no_grad(),
            self.encoder.autocast(),
        ):
            tapped.resume(layer)
            for module in self.layers[layer:-1]:
                hidden = _states(module(hidden, *terms))
            tapped.others = hidden
            first_rows = (None if term is None else term[:, :, :1] for term in terms)
            hidden = _states(self.layers[-1](hidden[:, :1], *first_rows))
        return self._finish(hidden).unflatten(0, (count, sequences))

    def _finish(self, last: Float[Tensor, "row 1 width"]) -> Float[Tensor, "row class"]:
        """The classification head's logits from the last layer's output for the first token of each sequence.

        The modules that read the last layer (pooler, classifier) have another name and form in every architecture. So
        the model itself calls them, after a body that returns `last`.
        """
        inputs = {name: repeated(column, len(last) // len(column)) for name, column in self.first.items()}
        self.owner.forward = lambda *_, **__: BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=last
        )
        try:
            with torch.no_grad(), self.encoder.autocast():
                return self.encoder.model(**inputs).logits.float()
        finally:
            del self.owner.forward

    def check_first_token(self) -> None:
        """Refuses a classification head that reads more than the first token of the last layer, and NaN."""
        ones = torch.ones(1, self.encoder.layers, self.encoder.heads)
        # With gate 1 this operator changes nothing, however many heads a pruned encoder has left.
        error = (
            (self.resume(self.encoder.layers - 1, ones, OPERATORS["uniform"])[0] - self.logits).abs().max()
        )
        if not error <= (1e-4 if self.encoder.precision == "float32" else 5e-2):
            raise InputError(
                f"{self.encoder.name}: its logits are NaN, or its classification head reads more than the first token: "
                "use a BERT-like classifier"
            )


class Operator(ABC):
    """An operator that depends on the texts, such as `Redirection`; `str` gives its name in the cache."""

    argument: ClassVar[str] = "replace"  # of `tap`: attention, or "values" for head outputs

    @abstractmethod
    def edit(self, prefix: Prefix) -> Edit:
        """The edit of a batch: a function of a layer, the share that changes, the attention there, and value vectors.

        It gives what `argument` names. Operators of attention have no use for its last argument.
        """

    def changes(self, prefix: Prefix) -> Changes:
        """The edit of a batch as a function of gates like those of OPERATORS: 1 - gate is the share that changes."""
        edit = self.edit(prefix)

        def changes(gates: Gates) -> dict[str, Any]:
            shares = 1 - gates
            touched = shares.any(-1).any(0).tolist()

            # In the place of the values, "replace" has a mark for the real tokens.
            def edited(layer: int, weights: Rows, values: Tensor) -> Tensor:
                if touched[layer]:
                    return edit(layer, shares[:, layer, :, None, None], weights, values)
                return weights if self.argument == "replace" else weights @ values

            return {self.argument: edited}

        return changes


def for_queries(part: Shaped[Tensor, "sequence _ token _"], weights: Rows) -> Shaped[Tensor, "row _ query _"]:
    """A tensor of a batch for all variants in `weights`, cut to their queries: in the last layer [CLS] alone."""
    return repeated(part, len(weights) // len(part))[:, :, : weights.shape[2]]


def ordinary_pass(encoder: Encoder, batch: Sequence[Pieces]) -> Prefix:
    """Runs a padded batch without interventions, and keeps the input of each layer."""
    owner, layers = body(encoder)
    inputs = encoder.inputs(batch)
    with recorded_calls(layers) as calls, tap(encoder.model), torch.no_grad(), encoder.autocast():
        logits = encoder.model(**inputs).logits.float()
    hidden = [arguments[0] for _, arguments, _ in calls]
    terms = [_one_of_equal(term) for term in calls[0][1][1:] if term is None or term.ndim == 4]
    first = {name: column[:, :1] for name, column in inputs.items()}
    return Prefix(encoder, batch, owner, layers, first, hidden, terms, logits)


@contextmanager
def recorded_calls(modules: Sequence[nn.Module]) -> Iterator[list[Call]]:
    """Within the context, every call of the modules is added to the list, in calling order."""
    calls: list[Call] = []
    with ExitStack() as hooks:
        for module in modules:
            hook = module.register_forward_pre_hook(lambda *call: calls.append(call), with_kwargs=True)
            hooks.enter_context(hook)
        yield calls


def body(encoder: Encoder) -> tuple[nn.Module, Sequence[nn.Module]]:
    """The module that runs the encoder's layers one after the other, and the layers.

    ALBERT has none: all its layers are the same module.
    """
    for owner in encoder.model.base_model.modules():
        for child in owner.children():
            if isinstance(child, nn.ModuleList) and len(child) == encoder.layers:
                projections(child[0], encoder.name)
                return owner, [*child]
    raise InputError(
        f"{encoder.name}: {type(encoder.model).__name__} has no list of its own {encoder.layers} layers: use a "
        "BERT-like encoder whose layers do not share weights"
    )


class Projections(NamedTuple):
    """The linear layers of one layer's attention; each head has rows of the first three and columns of the last."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear


PROJECTIONS = (  # their names in a layer
    ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
    ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),  # DistilBERT
    ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"),  # MPNet
)


def projections(layer: nn.Module, name: str) -> Projections:
    """The projections of a layer of the encoder called `name`."""
    modules = dict(layer.named_modules())
    for paths in PROJECTIONS:
        if modules.keys() >= {*paths}:
            return Projections(*(modules[path] for path in paths))
    raise InputError(
        f"{name}: the heads of {type(layer).__name__} can be neither ablated nor pruned, its attention has none of the "
        "known names: use BERT, RoBERTa, ELECTRA, DistilBERT or MPNet"
    )


def _one_of_equal(
    term: Float[Tensor, "sequence _ token token"] | None,
) -> Float[Tensor, "_ _ token token"] | None:
    """A mask as it is; of a bias of relative positions, which has a map for each head, that of one sequence."""
    return term if term is None or term.shape[1] == 1 else term[:1]


def _states(result: Tensor | tuple[Tensor, ...]) -> Tensor:
    """The hidden states that a layer gives, in MPNet as the first of several results."""
    return result[0] if isinstance(result, tuple) else result


def repeated(values: Shaped[Tensor, " row *rest"], count: int) -> Shaped[Tensor, " rows *rest"]:
    """A batch repeated `count` times; the same tensor if `count` is 1."""
    return values.expand(count, *values.shape).flatten(0, 1)
