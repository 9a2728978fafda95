"""The head explorer: a page to browse every head, and the same view of one text in a notebook cell."""

from analysis.lazy import lazy_names

HOMES = {
    "explorer": "view",
    "head_view": "view",
    "illustrative": "packing",
    "pack": "packing",
    "role_tables": "payload",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
