"""Claims of papers whose last notebook a profile does not run, from the tables of the notebooks that it runs."""

from analysis.statistics.claims import claim_table, not_applicable
from analysis.study.profiles import not_run
from analysis.study.results import Results
from analysis.synthesis import measures as synthesis

# Tables of claims, by name: the notebook that saves it, where it may be left out, and the claims. Where an earlier
# notebook of the paper measures some of them: a table of its, and the frames of these claims.
PARTS = {
    "claims-synthesis": ("10_synthesis", synthesis.CLAIMS, None, None),
}


def save_partial_claims(results: Results) -> None:
    """Saves the tables of claims whose notebooks the profile does not run.

    Claims that need these notebooks are not applicable (not run).
    """
    left_out = not_run(results.profile.folder.name)
    for name, (notebook, claims, table, frames_of) in PARTS.items():
        if notebook in left_out:
            frames = {claim.id: not_applicable("not run") for claim in claims}
            if table in results.table_names():
                frames |= frames_of(results)
            results.save_table(claim_table(claims, frames), name)
