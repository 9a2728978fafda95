"""Maps to numbers: sieves, their contraction with maps, and the one streaming pass."""

from analysis.lazy import lazy_names

HOMES = {
    "extract": "extraction",
    "extract_states": "extraction",
    "read_attention": "extraction",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
