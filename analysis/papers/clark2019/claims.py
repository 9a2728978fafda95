"""The claims of Clark 2019 as data, judged on the tables of this study's notebooks."""

from collections.abc import Mapping
from functools import partial

import pandas as pd

from analysis.papers.clark2019 import findings
from analysis.papers.clark2019.findings import Tables
from analysis.statistics.verdicts import Claim, ClaimTables

TABLES = {
    "surface": "clark_surface",
    "gradients": "clark_gradients_heads",
    "distances": "clark_distances",
    "dependencies": "clark_dependencies",
    "coreference": "clark_coreference_readings",
    "probes": "clark_probes",
}


def evidence_of(tables: Mapping[str, pd.DataFrame]) -> Tables:
    """The evidence for the claims, from the saved tables named in TABLES; a claim without its table is untestable."""
    there = {name: tables[file] for name, file in TABLES.items() if file in tables}
    return Tables(**{name: table for name, table in there.items() if len(table)})


CLAIMS = (
    Claim(
        id="CL1",
        brief="heads for the next and previous token",
        shown="{:.0f}",
        statement="some heads attend mostly to the previous or to the next token",
        source="section 3.1",
        definition="Heads with more than half of their attention on the previous token, and on the next: at least one "
        "of each; draws take the heads of each layer anew. n: heads of the encoder.",
        published="4 and 5 of 144 heads",
        function=findings.neighbour_heads,
        relation=">=",
        bound=1,
    ),
    Claim(
        id="CL2",
        brief="[SEP] takes half of middle layers' attention",
        statement="in the middle layers more than half of the attention goes to [SEP]",
        source="section 3.2, figure 2",
        definition="Mean share of attention on [SEP] in each layer of relative depth 5/12 to 10/12: above one half. "
        "n: heads of a layer.",
        published="more than half in layers 5 to 9 of 12",
        function=partial(findings.layer_means, column="sep"),
        relation=">",
        bound=0.5,
    ),
    Claim(
        id="CL3",
        brief="there, [SEP] attends to [SEP]",
        statement="there, [SEP] attends to [SEP] nearly always",
        source="section 3.2, figure 2",
        definition="Mean share of the attention of [SEP] rows on [SEP] in each of the layers of CL2: above 90%. "
        "n: heads of a layer.",
        published="over 90%",
        function=partial(findings.layer_means, column="sep_sep"),
        relation=">",
        bound=0.9,
    ),
    Claim(
        id="CL4",
        brief="early [CLS] heads, deep punctuation heads",
        shown="{:+.2f}",
        statement="early heads attend to [CLS], deep ones to full stops and commas",
        source="section 3.2",
        definition="Mean share on [CLS] in the first third of the layers minus that in the last third, and the reverse "
        "for full stops and commas: more than none, both. n: heads of two thirds of the layers.",
        published="early heads [CLS], deep ones punctuation",
        function=findings.first_and_last_targets,
        relation=">",
        bound=0,
    ),
    Claim(
        id="CL5",
        brief="attention to [SEP] changes the output least",
        shown="{:.2f}",
        statement="where [SEP] gets most attention, changing that attention changes the output least",
        source="section 3.2, figure 3",
        definition="Mean gradient of the loss with respect to attention on [SEP] over that on other words, in each "
        "layer from relative depth 5/12 on: at most one half. n: heads of a layer.",
        published="gradients become very small from layer 4 of 12 on",
        function=findings.separator_gradients,
        relation="<=",
        bound=0.5,
    ),
    Claim(
        id="CL6",
        brief="heads of the first layers attend broadly",
        shown="{:+.2f} nats",
        statement="heads of the first layers attend broadly",
        source="section 3.3, figure 4",
        definition="Mean entropy of the first sixth of the layers minus that of the middle layers (as CL2), nats: more "
        "than none. n: heads of both.",
        published="entropy 3.6 nats in layer 0, 1.8 in layer 7",
        function=findings.broad_heads,
        relation=">",
        bound=0,
    ),
    Claim(
        id="CL7",
        brief="single heads beat fixed offsets in syntax",
        shown="{:+.2f}",
        statement="single heads find the syntactic head better than any fixed offset",
        source="section 4.2, Table 1 (relations in bold)",
        definition="Accuracy of the best head minus that of the best offset, cross-fitted, for direct objects, "
        "determiners, possessors, passive auxiliaries and objects of prepositions: more than none in each that occurs "
        "often enough; the offset's accuracy is taken as known. n: arcs of the relation that decides.",
        published="86.8 against 40.0 (dobj), 94.3 against 51.7 (det), 80.5 against 47.7 (poss), 82.5 against 40.5 "
        "(auxpass; 94.1 against 82.5 in the notebook), 76.3 against 34.6 (pobj)",
        function=findings.heads_beat_offsets,
        relation=">",
        bound=0,
    ),
    Claim(
        id="CL8",
        brief="no single head knows all syntax",
        statement="no single head does well at syntax overall",
        source="section 4.2, Table 1",
        definition="Accuracy of the best head over all arcs: at most one half. n: arcs.",
        published="34.5, the right-branching tree 26.3",
        function=findings.overall_accuracy,
        relation="<=",
        bound=0.5,
    ),
    Claim(
        id="CL9",
        brief="one head beats head match in coreference",
        shown="{:+.2f}",
        statement="one head resolves coreference better than the match of head words",
        source="section 4.3, Table 2",
        definition="Accuracy of the best head minus that of the head match, cross-fitted, in each reading of what it "
        "chooses among: more than none; the rule's accuracy is taken as known. n: anaphors.",
        published="65 against 52",
        function=partial(findings.antecedents, rule="head match"),
        relation=">",
        bound=0,
    ),
    Claim(
        id="CL10",
        brief="it comes close to the rules",
        shown="{:+.2f}",
        statement="it comes close to a rule-based system",
        source="section 4.3, Table 2",
        definition="The same against the four sieves: not more than 5 points behind in each reading. n: anaphors.",
        published="65 against 69",
        function=partial(findings.antecedents, rule="rule-based"),
        relation=">=",
        bound=-0.05,
    ),
    Claim(
        id="CL11",
        brief="attention with words beats distances with words",
        shown="{:+.2f}",
        statement="attention and words together know more of the tree than distances and words",
        source="section 5, Table 3",
        definition="Accuracy of the attention-and-words probe minus that of distances and words, without punctuation: "
        "more than none. n: seeds.",
        published="77 against 58",
        function=partial(findings.probes_differ, first="attention + words", second="distances + words"),
        relation=">",
        bound=0,
    ),
    Claim(
        id="CL12",
        brief="an untrained encoder knows little of trees",
        shown="{:+.2f}",
        statement="what the probe reads was learnt: an untrained encoder knows little",
        source="section 5, Table 3",
        definition="Accuracy of the attention-and-words probe on the encoder minus that on random layers: more than "
        "none. n: seeds.",
        published="77 against 30",
        function=partial(findings.probes_differ, first="attention + words", second=""),
        relation=">",
        bound=0,
    ),
    Claim(
        id="CL13",
        brief="heads of one layer behave alike",
        shown="{:+.3f}",
        statement="heads of one layer behave alike",
        source="section 6, figure 6",
        definition="Mean distance (Jensen-Shannon) between heads of different layers minus that within layers, over "
        "the former: more than none; draws take the heads of each layer anew. n: heads.",
        published="heads of one layer lie close together",
        function=findings.layers_cluster,
        relation=">",
        bound=0,
    ),
)


def summary(results: ClaimTables) -> pd.DataFrame:
    """The claim table of this paper, as its notebook of verdicts saved it."""
    return results.claims("claims-clark2019")
