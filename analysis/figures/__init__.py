"""Drawing that several papers share."""

from analysis.lazy import lazy_names

HOMES = {
    "attention_maps": "diagrams",
    "claim_intervals": "intervals",
    "curves": "lines",
    "finding": "words",
    "head_grids": "grids",
    "learnt": "training",
    "role_layer_maps": "grids",
    "role_map": "grids",
    "sieve_diagrams": "diagrams",
    "style": "theme",
    "training_curves": "training",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
