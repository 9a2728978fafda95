"""Claims of papers whose last notebook a profile does not run, from the tables of the notebooks that it runs."""

from collections.abc import Mapping

import pandas as pd

from analysis.papers.kovaleva2019 import measures as kovaleva
from analysis.papers.niven2019 import measures as niven
from analysis.papers.pascual2021 import measures as pascual
from analysis.statistics.claims import claim_table, not_applicable
from analysis.statistics.training import trained_runs
from analysis.study.profiles import not_run, parameters
from analysis.study.results import Results
from analysis.synthesis import measures as synthesis
from analysis.texts.tasks import TASKS

Frames = Mapping[str, pd.DataFrame]


def of_patterns(results: Results) -> Frames:
    """The frames of the claims that 07_kovaleva_patterns measures."""
    from analysis.encoders.models import load_encoder  # loads torch
    from analysis.scores.sink import sinks

    encoder = load_encoder(parameters("07_kovaleva_patterns", results.profile.folder.name)["encoder"])
    tables = {name: results.load_table(f"kovaleva_{name}") for name in kovaleva.PATTERN_TABLES}
    trained = trained_runs(results.join_parts("finetune", [*TASKS], every=False))
    return kovaleva.measures_of_patterns(tables, trained, sinks(encoder))


def of_cues(results: Results) -> Frames:
    """The frame of the claim that 09_niven_cues measures."""
    return {"N4": niven.productivity_of_cue(results.load_table("niven_cues"))}


# Tables of claims, by name: the notebook that saves it, where it may be left out, and the claims. Where an earlier
# notebook of the paper measures some of them: a table of its, and the frames of these claims.
PARTS = {
    "claims-kovaleva2019": ("07_kovaleva_disable", kovaleva.CLAIMS, "kovaleva_verb_blocks", of_patterns),
    "claims-pascual2021": ("08_pascual", pascual.CLAIMS, None, None),
    "claims-niven2019": ("09_niven_models", niven.CLAIMS, "niven_cues", of_cues),
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
