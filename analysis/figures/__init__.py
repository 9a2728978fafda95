"""Drawing that several papers share."""

from analysis.lazy import lazy_names

HOMES = {
    "attention_maps": "diagrams",
    "forest_plot": "claims",
    "curves": "lines",
    "dial_panels": "edits",
    "finding": "words",
    "head_grids": "grids",
    "learnt": "training",
    "marks_by_edit": "edits",
    "rank_panels": "edits",
    "role_layer_maps": "grids",
    "sieve_diagrams": "diagrams",
    "style": "theme",
    "head_summary": "grids",
    "training_curves": "training",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
