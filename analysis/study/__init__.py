"""The files of a run: results, profiles, the rules of Make, the execution of a notebook."""

from analysis.lazy import lazy_names

HOMES = {
    "papers": "discovery",
    "Results": "results",
    "all_highlights": "front_page",
    "definitions_page": "front_page",
    "findings_section": "front_page",
    "paper_titles": "front_page",
    "save_claims_page": "front_page",
    "verdicts_section": "front_page",
    "STATES": "folders",
    "seeds_of": "results",
    "update_readme": "results",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
