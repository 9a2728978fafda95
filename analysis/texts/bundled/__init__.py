"""The bundled corpus: texts with gold trees and chains, written by a seeded grammar."""

from analysis.lazy import lazy_names

HOMES = {
    "generate": "corpus",
    "generate_documents": "documents",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
