"""The Heads Hypothesis (Pande et al., AAAI 2021)."""

from analysis.lazy import lazy_names

HOMES = {"CLAIMS": "measures"}
__getattr__, __all__ = lazy_names(__name__, HOMES)
