"""The claims of Michel 2019 as data."""

from functools import partial

import pandas as pd

from analysis.papers.michel2019 import findings
from analysis.statistics.verdicts import Claim, ClaimTables

CLAIMS = (
    Claim(
        id="M1",
        brief="most single heads can go",
        statement="most heads can be removed one at a time without a significant loss",
        source="section 3.2, figure 1",
        definition="Share of heads whose removal does not lower the task's metric significantly (two-sided "
        "paired t test at .05, not corrected): above one half in each task and fine-tuning run. "
        "Untestable where the median least loss that the test finds (power .8) is above 10 points, as"
        " in M3 and M5. n: heads.",
        published="most heads of BERT-base on MNLI; 2 of 144 differ significantly (p < .01) in a replication",
        function=partial(findings.shares, claim="M1"),
        relation=">",
        bound=0.5,
    ),
    Claim(
        id="M2",
        brief="some removals raise the score",
        shown="{:+.3f}",
        statement="some removals raise the score beyond chance",
        source="section 3.2, table 1",
        definition="The rise of the task's metric without one head that lies farthest from chance, with the low "
        "end of its interval, which is simultaneous over all heads, tasks and runs (answers swapped),"
        " and the highest end of all heads: above none. The claim holds if one head's interval is "
        "above none, and does not hold only if no head's interval reaches above it. n: heads times "
        "tasks and runs.",
        published="4 of 96 heads of a translation model; 55 of 144 changes of BERT-base above 0 in a replication",
        function=findings.rising,
        relation=">",
        bound=0,
    ),
    Claim(
        id="M3",
        brief="one head per layer is enough in most layers",
        statement="most layers can be reduced to one head that is chosen on training examples",
        source="section 3.3, tables 3 and 6",
        definition="Share of layers that keep one head, chosen on training examples, and do not lose "
        "significantly (as M1) on dev sequences, mean over tasks: above one half. n: tasks.",
        published="all 12 layers of BERT-base on MNLI; half of those of a translation model",
        function=partial(findings.shares, claim="M3"),
        relation=">",
        bound=0.5,
    ),
    Claim(
        id="M4",
        brief="effects of heads agree across data",
        shown="{:.2f}",
        statement="effects of heads agree across data sets",
        source="section 3.4, figure 2",
        definition="Pearson's r over heads of the changes of the loss when one head is removed, on two data sets"
        " of one question: above 0. Interval over heads. n: pairs of data sets.",
        published="r = .68 for BERT-base on MNLI matched and mismatched; .81, Spearman .38, in a replication",
        function=findings.agreeing,
        relation=">",
        bound=0,
    ),
    Claim(
        id="M5",
        brief="40 % of heads can be pruned",
        statement="40 % or more of all heads can be pruned by importance without a significant loss",
        source="section 4.2, figures 3 and 6",
        definition="Largest share of heads, pruned from the least important on in steps of 10 %, before the "
        "first significant loss (as M1), or before the lead over the constant answer is gone: at "
        "least 40 % in each task. n: steps.",
        published="40 % on MNLI, 60 % on SST-2, 50 % on CoLA and MRPC, without noticeable loss",
        function=partial(findings.shares, claim="M5"),
        relation=">=",
        bound=0.4,
    ),
    Claim(
        id="M6",
        brief="importance prunes better than single scores",
        shown="{:+.3f}",
        statement="pruning by importance degrades later than pruning by single-head scores",
        source="section 4.2, figure 3",
        definition="Mean of the task's metric over the steps of pruning by importance minus that by single-head "
        "scores (of the same sequences, which flatters them), mean over tasks: above 0. n: tasks.",
        published="on MNLI .80 against .72 with 60 % of the heads pruned (replication)",
        function=partial(findings.differences, claim="M6"),
        relation=">",
        bound=0,
    ),
    Claim(
        id="M7",
        brief="pruned models are faster",
        shown="{:.2f}",
        statement="physically pruned models are faster at 16 sequences at once and more",
        source="section 4.3, table 4",
        definition="CPU time of one thread with all heads over that with half of them, at 16 sequences of 128 "
        "tokens and more, for each encoder: above 1. Interval over rounds. n: encoders times batch "
        "sizes.",
        published="1.175 at 16 and at 64 (GPU), 1.02 to 1.03 at 1 and 4",
        function=findings.faster,
        relation=">",
        bound=1,
    ),
    Claim(
        id="M8",
        brief="early on heads matter alike, later few",
        shown="{:+.2f}",
        statement="early in fine-tuning heads matter alike, later few do",
        source="section 5, figure 5",
        definition="Share of the lead over the constant answer that stays when heads are pruned by importance, "
        "mean over the steps; at the end of fine-tuning minus at the first checkpoint that has a lead"
        " above its margin: above 0 in each task. n: steps.",
        published="translation: in epochs 1 and 2 the score falls linearly, from epoch 10 on 40 % of heads can go",
        function=partial(findings.differences, claim="M8"),
        relation=">",
        bound=0,
    ),
)


def summary(results: ClaimTables) -> pd.DataFrame:
    """The claim table of this paper, as its notebook of pruning saved it."""
    return results.claims("claims-michel2019")
