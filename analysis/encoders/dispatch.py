"""Attention through `tap` also in families whose attention transformers does not dispatch."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from torch import nn
from transformers import PreTrainedModel

from analysis.errors import InputError

NAME = "tapped"  # the attention function that `tap` registers
# By the type of a model, the module whose class `Attention` takes the place of its base; only its encoders import it.
FAMILIES = {"mpnet": "analysis.encoders.mpnet", "deberta-v2": "analysis.encoders.deberta"}


def dispatching_class(model: PreTrainedModel) -> type[nn.Module] | None:
    """The class of attention modules for a model of FAMILIES; None for others."""
    name = FAMILIES.get(model.config.model_type)
    return import_module(name).Attention if name else None


def dispatch(model: PreTrainedModel) -> list[nn.Module]:
    """Exchanges the class of the attention modules in a model of FAMILIES; returns these modules."""
    if (attention := dispatching_class(model)) is None:
        return []
    # Those of a pruned MPNet have this class already.
    modules = [module for module in model.modules() if type(module) is attention.__base__]
    for module in modules:
        module.__class__, module.config = attention, model.config
    return modules


@contextmanager
def dispatched(model: PreTrainedModel) -> Iterator[None]:
    """Within the context, the attention of all layers goes through the function NAME."""
    modules, implementation = dispatch(model), model.config._attn_implementation
    by_class = dispatching_class(model) is not None
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
