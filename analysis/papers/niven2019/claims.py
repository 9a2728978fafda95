"""The claims of Niven 2019 as data, judged on the answers of the runs."""

from functools import partial

import pandas as pd

from analysis.papers.niven2019 import findings
from analysis.statistics.verdicts import Claim, ClaimTables

CLAIMS = (
    Claim(
        id="N1",
        brief="an encoder beats chance on arguments",
        shown="{:.3f}",
        statement="a fine-tuned encoder scores above chance on the test set",
        source="Table 1",
        definition="Test accuracy of the encoder that sees claim, reason and warrants, mean over runs: above 0.5. "
        "n: points.",
        published="BERT-large 0.671; median 0.712, best run 0.770",
        function=findings.beats_chance,
        relation=">",
        bound=0.5,
    ),
    Claim(
        id="N2",
        brief="the warrants alone explain it",
        shown="{:+.3f}",
        statement="the warrants alone explain the accuracy",
        source="section 3.1, Table 3",
        definition="Accuracy with all of the argument minus that with warrants alone, same points and seeds: at most "
        "0.05. n: points.",
        published="BERT-large +0.015; 0.671 and 0.656, best runs 0.770 and 0.712",
        function=partial(findings.differences, pairs=[("full", "W")]),
        relation="<=",
        bound=0.05,
    ),
    Claim(
        id="N3",
        brief="reason and claim add little",
        shown="{:+.3f}",
        statement="the reason and the claim, each beside the warrants, add little",
        source="section 3.1, Table 3",
        definition="Accuracy with reason and warrants, and with claim and warrants, minus that with warrants alone: at "
        "most 0.05 each. n: points.",
        published="BERT-large, best runs: +0.038 and +0.020; 0.750 and 0.732 against 0.712",
        function=partial(findings.differences, pairs=[("RW", "W"), ("CW", "W")]),
        relation="<=",
        bound=0.05,
    ),
    Claim(
        id="N4",
        brief='"not" tells the right warrant',
        shown="{:.3f}",
        statement='the cue "not" is productive beyond chance',
        source="section 3, Table 2",
        definition='Share of the points where one warrant alone has "not" (contractions written out) in which it is '
        "the right one: above 0.5 in each split. n: points where it applies.",
        published="0.65 (train), 0.62 (dev), 0.52 (test)",
        function=findings.productive_cue,
        relation=">",
        bound=0.5,
    ),
    Claim(
        id="N5",
        brief="on the adversarial set all is chance",
        shown="{:.3f}",
        statement="on the adversarial set, trained on one, an encoder is at chance",
        source="section 4, Table 4",
        definition="Distance from 0.5 of the accuracy on the adversarial test set, of the encoder with all of the "
        "argument, and with claim and warrants: at most 0.03 each. n: points and their copies.",
        published="BERT-large 0.004 and 0.001; accuracy 0.504 and 0.501",
        function=findings.adversarial_chance,
        relation="<=",
        bound=0.03,
    ),
    Claim(
        id="N6",
        brief="an encoder follows the cue less",
        shown="{:+.3f}",
        statement="an encoder relies on the strongest cue less than the small models do",
        source="section 6",
        definition='How much more often a small model takes the warrant with "not", where it applies, than the '
        "encoder: more than none in each. n: points.",
        published="BERT-large +0.070 and +0.147; bag of vectors 0.796 and BiLSTM 0.873 against 0.726, from the "
        "released predictions (BERT-large: non-degenerate runs)",
        function=findings.relies_less,
        relation=">",
        bound=0,
    ),
    Claim(
        id="N7",
        brief="accuracy moves with the cue",
        shown="{:+.3f}",
        statement="what an encoder gets right moves with the cue",
        source="sections 3 and 6",
        definition='Accuracy of the encoder where the right warrant alone has "not" minus that where the wrong one '
        "has: more than none. n: points.",
        published="BERT-large +0.441; 0.897 against 0.456, from the released predictions of non-degenerate runs",
        function=findings.moves_with_cue,
        relation=">",
        bound=0,
    ),
)


def summary(results: ClaimTables) -> pd.DataFrame:
    """The claim table of this paper, as its notebook saved it."""
    return results.claims("claims-niven2019")
