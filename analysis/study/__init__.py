"""The files of a run: profiles, results, provenance, executed copies, and the pages made of them."""

from analysis.study.folders import STATES
from analysis.study.front_page import (
    claims_document,
    claims_section,
    classifiers_section,
    encoder_of,
    paper_titles,
    papers,
    places,
    save_front_page,
    saved_claims,
)
from analysis.study.results import Results, seeds_of
