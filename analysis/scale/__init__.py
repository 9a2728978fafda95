"""Corpora beyond one machine: shards, and a cluster that makes them."""

from analysis.lazy import lazy_names

HOMES = {}
__getattr__, __all__ = lazy_names(__name__, HOMES)
