"""The claims of Pascual 2021 and further questions of this study, as data, judged on the notebooks' tables."""

from collections.abc import Mapping
from functools import partial

import pandas as pd

from analysis.papers.pascual2021 import findings
from analysis.papers.pascual2021.findings import Tables
from analysis.papers.pascual2021.names import SHARE
from analysis.statistics.claims import STUDY
from analysis.statistics.verdicts import Claim, ClaimTables

TABLES = {
    "discrepancy": "pascual_discrepancy",
    "persistence": "pascual_persistence",
    "effective": "pascual_effective",
    "survival": "pascual_survival",
    "sinks": "pascual_sinks",
}
ABSTRACT, OWN = "abstract", "asked by this study"
UNKNOWN, NOT_ASKED = "stated without a number", "not asked"


def evidence_of(tables: Mapping[str, pd.DataFrame]) -> Tables:
    """The evidence for the claims, from the saved tables named in TABLES; a claim without its table is untestable."""
    there = {name: tables[file] for name, file in TABLES.items() if file in tables}
    return Tables(**{name: table for name, table in there.items() if len(table)})


CLAIMS = (
    Claim(
        id="P1",
        brief="attention and attribution differ",
        shown="{:.2f} bits",
        statement="attention and attribution differ significantly",
        source=ABSTRACT,
        definition="Jensen-Shannon divergence of rows of attention and attribution (bits, mean over rows and heads) "
        "in each layer from 1 on, each task and state: above 0.1. n: sequences.",
        published=UNKNOWN,
        function=findings.differs,
        relation=">",
        bound=0.1,
    ),
    Claim(
        id="P2",
        brief="mixing explains most of the difference",
        statement="the mixing of tokens in the layers below explains most of the difference",
        source=ABSTRACT,
        definition="Divergence of local and global attribution over the sum of that and the divergence of attention "
        "and local attribution, in each layer from 1 on, each task and state: more than one half. n: sequences.",
        published=UNKNOWN,
        function=partial(findings.differs, measure=SHARE),
        relation=">",
        bound=0.5,
    ),
    Claim(
        id="P3",
        brief="above layer 0 the difference grows",
        shown="{:+.3f} bits a layer",
        statement="above layer 0 the mismatch grows with depth",
        source=OWN,
        origin=STUDY,
        definition="Slope of the divergence over the layers above layer 0 (least squares, bits a layer), each task and "
        "state: above 0. In layer 0 nothing is mixed yet. n: sequences.",
        published=UNKNOWN,
        function=findings.grows,
        relation=">",
        bound=0,
    ),
    Claim(
        id="P4",
        brief="some patterns persist in all layers",
        shown="{:.0f} heads",
        statement="some patterns persist across all layers despite the mixing",
        source=ABSTRACT,
        definition="Heads with the pattern that persists best, on attribution, in the layer that has fewest of them: "
        "at least 1, each task and state; that a head has a pattern from tau = 3 on is this study's choice. "
        "n: tasks and states.",
        published=UNKNOWN,
        function=findings.persisting,
        relation=">=",
        bound=1,
    ),
    Claim(
        id="P5",
        brief="delimiter heads vanish under effective attention",
        statement="delimiter roles vanish under effective attention",
        source=OWN,
        origin=STUDY,
        definition="Heads with the delimiter role on effective attention over those on attention, the latter taken as "
        "known, each task and state in which at least nine tenths of the sequences have more tokens than a value "
        "vector has entries (else effective attention is attention): at most one in ten. n: sequences.",
        published=NOT_ASKED,
        function=findings.vanishing,
        relation="<=",
        bound=0.1,
    ),
    Claim(
        id="P6",
        brief="syntactic roles survive",
        shown="kappa {:.2f}",
        statement="syntactic roles survive on effective attention and on attribution",
        source=OWN,
        origin=STUDY,
        definition="Cohen's kappa of the labels of the syntactic role on attention and on the other map: above 0.6 "
        "(substantial, Landis and Koch 1977), each map, task and state. n: maps, tasks and states.",
        published=NOT_ASKED,
        function=findings.surviving,
        relation=">",
        bound=0.6,
    ),
)


def summary(results: ClaimTables) -> pd.DataFrame:
    """The claim table of this paper, as its notebook saved it."""
    return results.claims("claims-pascual2021")
