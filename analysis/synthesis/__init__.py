"""Do roles predict which heads matter? (this study, across the papers)."""

from analysis.lazy import lazy_names

HOMES = {"CLAIMS": "measures"}
__getattr__, __all__ = lazy_names(__name__, HOMES)
