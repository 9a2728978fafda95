"""The files of a run: results, profiles, what Make needs to know, the execution of a notebook."""

from analysis.lazy import lazy_names

HOMES = {
    "papers": "discovery",
    "Results": "results",
    "definitions_page": "front_page",
    "findings_section": "front_page",
    "save_claims_page": "front_page",
    "verdicts_section": "front_page",
    "STATES": "folders",
    "seeds_of": "results",
    "update_readme": "results",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
