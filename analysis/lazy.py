"""Names that a package offers and loads on first use, so that a reader of one table does not load torch."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` and `__all__` of a package whose names live in the modules that `homes` gives.

    A home is the module's dotted name inside the package. The function raises AttributeError for any other name.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load, list(homes)
