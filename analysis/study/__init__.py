"""The files of a run: profiles, results, provenance, executed copies, and the pages made of them."""

from analysis.lazy import lazy_names

HOMES = {
    "Results": "results",
    "claims_document": "front_page",
    "claims_section": "front_page",
    "classifiers_section": "front_page",
    "encoder_of": "front_page",
    "papers": "front_page",
    "paper_titles": "front_page",
    "places": "front_page",
    "save_front_page": "front_page",
    "saved_claims": "front_page",
    "STATES": "folders",
    "seeds_of": "results",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
