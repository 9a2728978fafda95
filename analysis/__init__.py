"""Statistics of attention heads: sieves, scores, tests and roles."""

from importlib import import_module

# Loaded on first use, so that the statistics work without loading torch.
_HOMES = {
    "Example": "examples",
    "InputError": "errors",
    "Relation": "examples",
    "Results": "store",
    "SIEVES": "sieves",
    "TASKS": "tasks",
    "extract": "extraction",
    "load_encoder": "models",
    "load_examples": "tasks",
    "parse": "syntax",
    "published_table": "significance",
    "role_table": "significance",
    "sieve": "sieves",
}
__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
