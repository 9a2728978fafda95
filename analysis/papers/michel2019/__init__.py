"""Are Sixteen Heads Really Better than One? (Michel et al., NeurIPS 2019)."""

from analysis.lazy import lazy_names

HOMES = {"CLAIMS": "measures"}
__getattr__, __all__ = lazy_names(__name__, HOMES)
