"""Drawing that several papers share."""

from analysis.lazy import lazy_names

HOMES = {
    "attention_maps": "diagrams",
    "claim_strip": "claims",
    "curves": "lines",
    "finding": "words",
    "head_grids": "grids",
    "learnt": "training",
    "role_layer_maps": "grids",
    "role_map": "grids",
    "sieve_diagrams": "diagrams",
    "style": "theme",
    "survival_map": "grids",
    "training_curves": "training",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
