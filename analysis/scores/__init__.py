"""Maps to numbers: sieves, their contraction with maps, and the one streaming pass."""

from analysis.lazy import lazy_names

HOMES = {
    "CONTROLS": "banks",
    "control_bank": "banks",
    "control_sieves": "banks",
    "extract_controls": "controls",
    "scored_with_controls": "controls",
    "MAPS": "maps",
    "extract": "extraction",
    "extract_states": "extraction",
    "read_attention": "extraction",
    "read_sieves": "extraction",
    "changed": "maps",
    "map_source": "maps",
    "shuffled": "maps",
    "spread": "maps",
    "twin": "maps",
    "uniform": "maps",
    "SIEVES": "sieves",
    "columns": "sieves",
    "rows": "sieves",
    "sieve": "sieves",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
