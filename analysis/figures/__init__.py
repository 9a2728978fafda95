"""Drawing that several papers share."""

from analysis.lazy import lazy_names

HOMES = {
    "attention_maps": "diagrams",
    "sieve_diagrams": "diagrams",
    "assignment": "grids",
    "change_map": "grids",
    "mean_maps": "grids",
    "role_map": "grids",
    "change_intervals": "intervals",
    "claim_intervals": "intervals",
    "forest": "intervals",
    "LABELS": "labels",
    "differing_labels": "labels",
    "label_differences": "labels",
    "style": "theme",
    "finding": "words",
    "learnt": "training",
    "training_curves": "training",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
