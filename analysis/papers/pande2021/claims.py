"""The claims of Pande 2021 as data, judged on our evidence and on the released figures."""

from dataclasses import dataclass
from functools import partial

import pandas as pd

from analysis.papers.pande2021 import findings
from analysis.papers.pande2021.evidence import Evidence
from analysis.statistics.verdicts import Claim, ClaimTables, Finding, untestable

NEEDS = {
    "labels": "roles of a fine-tuned model",
    "p": "testable p-values of a fine-tuned model",
    "skewed": "testable skewness of a fine-tuned model's scores",
    "mass": "attention masses before and after fine-tuning",
    "change": "scores before and after fine-tuning",
    "above": "mean scores of a fine-tuned model",
}


@dataclass(frozen=True)
class RoleClaim(Claim):
    """A claim about heads: `needs` names the evidence it needs, `roles` the roles that must be testable in a task to
    count it."""

    needs: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_label", "labels" in self.needs)

    def find(self, evidence: Evidence) -> Finding:
        """What the evidence says: untestable where something needed is missing or empty."""
        for name in self.needs:
            array = getattr(evidence, name)
            if array is None or array.isel(replicate=0).isnull().all():
                return untestable(f"no {NEEDS[name]}")
        narrowed = evidence.with_testable(self.roles) if self.roles else evidence
        if self.roles and not narrowed.labels.sizes["task"]:
            return untestable(f"no task where {', '.join(self.roles)} can be tested")
        return self.function(narrowed)


COARSELY = "syntactic: the pooled role or any of the four relations; delimiter: [CLS] or [SEP] too"
COARSE_TESTABLE = ("local", "syntactic", "delimiter")  # block needs pairs of sentences
CLAIMS = (
    RoleClaim(
        id="C1",
        brief="many heads have several roles",
        statement="roles are not mutually exclusive; many heads are multi-functional",
        source="article, question 1",
        definition="Share of heads with at least two of the roles local, syntactic, delimiter and block "
        f"({COARSELY}), tasks together: at least 10%. n: heads times tasks.",
        published="many heads are multi-functional",
        needs=("labels",),
        function=findings.many_multifunctional,
        relation=">=",
        bound=0.10,
        roles=COARSE_TESTABLE,
    ),
    RoleClaim(
        id="C1b",
        brief="several roles also without delimiter roles",
        statement="many heads are multi-functional even without the delimiter roles",
        source="article, question 1; the split is this study's",
        definition="Share of heads with at least two of the roles local, syntactic (as C1) and block, tasks together: "
        "at least 10%. Without delimiter, as nearly every head of some encoders has one. n: heads times tasks.",
        published="not counted apart",
        needs=("labels",),
        function=partial(findings.many_multifunctional, without=("delimiter",)),
        relation=">=",
        bound=0.10,
        roles=("local", "syntactic"),
    ),
    RoleClaim(
        id="C2a",
        brief="half of the heads are delimiter heads",
        statement="delimiter heads are many",
        source="article",
        definition="Share of heads that the test labels delimiter, tasks together: at least half. "
        "n: testable heads times tasks.",
        published="73% of heads over the four tasks",
        needs=("labels",),
        function=findings.many_delimiter,
        relation=">=",
        bound=0.5,
        roles=("delimiter",),
    ),
    RoleClaim(
        id="C2b",
        brief="73 % of the heads are delimiter heads",
        statement="delimiter heads are as many as printed",
        source="article",
        definition="Share of heads that the test labels delimiter, tasks together: at least 73%, rounded. "
        "The released mean scores give 73% when the label is mean > 3, without the test. "
        "n: testable heads times tasks.",
        published="73% of heads over the four tasks",
        needs=("labels",),
        function=findings.many_delimiter,
        relation=">=",
        bound=0.725,
        roles=("delimiter",),
    ),
    RoleClaim(
        id="C3",
        brief="local heads are often syntactic too",
        statement="the overlap of local and syntactic heads is high",
        source="article; README of the released code",
        definition="Share of local heads that have the pooled syntactic role: at least 42%, rounded, in each "
        "task with local heads. The released maps reach 87% when any of the four relations counts as "
        "syntactic. n: local heads, tasks together.",
        published="42% to 89% across tasks, 42% to 88% in the README",
        needs=("labels",),
        function=findings.local_is_syntactic,
        relation=">=",
        bound=0.415,
        roles=("local", "syntactic"),
    ),
    RoleClaim(
        id="C4",
        brief="several roles: mostly in middle layers",
        shown="{:+.1f}",
        statement="multi-functional heads are most frequent in middle layers, for QQP in initial layers",
        source="article, question 2",
        definition="Multi-functional heads (as C1) per layer inside the layers of relative depth 5/12 to 10/12 "
        "(MRPC, QNLI, SST-2) or 0 to 1/3 (QQP), minus those outside: more than none in each of these tasks. "
        "n: tasks.",
        published="layers 5-9 for MRPC, QNLI and SST-2, the initial layers for QQP",
        needs=("labels",),
        function=findings.multifunctional_layers,
        relation=">",
        bound=0,
        roles=COARSE_TESTABLE,
    ),
    RoleClaim(
        id="C4b",
        brief="the same without block heads",
        shown="{:+.1f}",
        statement="the same without block heads",
        source="article, question 2; the split is this study's",
        definition="As C4, with at least two of the roles local, syntactic and delimiter: block is tested in pairs of "
        "sentences alone, and nearly every head passes its published rule. n: tasks.",
        published="not counted apart",
        needs=("labels",),
        function=partial(findings.multifunctional_layers, without=("block",)),
        relation=">",
        bound=0,
        roles=COARSE_TESTABLE,
    ),
    RoleClaim(
        id="C5",
        brief="[SEP] heads sit late, [CLS] heads early",
        statement="heads attending to [SEP] sit in later layers, heads attending to [CLS] in initial layers",
        source="article",
        definition="Share of [SEP] heads in the later half of the layers and of [CLS] heads in the earlier "
        "half: above one half, both, in each task. Untestable where a task has fewer than 5 heads of either kind. "
        "n: heads of the kind and task that decide.",
        published="[SEP] in later layers, [CLS] in initial layers",
        needs=("labels",),
        function=findings.delimiter_layers,
        relation=">",
        bound=0.5,
        roles=("cls", "sep"),
    ),
    RoleClaim(
        id="C6",
        brief="most block heads sit in layer 0",
        statement="block heads are mostly in layer 0; their presence later varies by task",
        source="article",
        definition="Share of the block heads that lie in layer 0: above one half, in each task of sentence pairs with "
        "block heads. Untestable heads are left out. n: block heads of the task that decides.",
        published="mostly in layer 0",
        needs=("labels",),
        function=findings.block_layers,
        relation=">",
        bound=0.5,
        roles=("block",),
    ),
    RoleClaim(
        id="C7",
        brief="few layers lack 3 syntactic heads",
        statement="at least 3 syntactic heads in each layer, with very few exceptions",
        source="article",
        definition="Share of layers, each task apart, with fewer than 3 syntactic heads (the pooled role or "
        "any of the four relations): at most 10%. n: layers times tasks.",
        published="at least 3 in each layer",
        needs=("labels",),
        function=findings.syntactic_layers,
        relation="<=",
        bound=0.10,
        roles=("syntactic",),
    ),
    RoleClaim(
        id="C8",
        brief="few heads of several roles at top",
        statement="very few multi-functional heads in the last two layers, all tasks",
        source="article",
        definition="Share of heads in the last sixth of the layers, at least one layer, that are "
        "multi-functional (as C1): at most 10% in each task. n: heads of these layers times tasks.",
        published="very few in layers 10 and 11",
        needs=("labels",),
        function=findings.last_layers,
        relation="<=",
        bound=0.10,
        roles=COARSE_TESTABLE,
    ),
    RoleClaim(
        id="C9a",
        brief="fine-tuning changes the later layers most",
        shown="{:+.2f}",
        statement="fine-tuning changes the later layers most",
        source="article, question 3; README of the released code",
        definition="Change of the layer that changes most in the last third of the layers (mean absolute difference of "
        "the scores over heads and roles), minus that of any other layer: more than none in each task, both over all "
        "roles but delimiter, which would count [CLS] and [SEP] twice, and without [CLS] and [SEP] too. n: tasks.",
        published="the later layers change most",
        needs=("change",),
        function=findings.later_layers_change,
        relation=">",
        bound=0,
    ),
    RoleClaim(
        id="C9b",
        brief="attention to [SEP] falls in later layers",
        shown="{:+.3f}",
        statement="attention to [SEP] falls in the later layers",
        source="article, question 3; README of the released code",
        definition="Mean attention mass that [SEP] loses in the last third of the layers: more than none in each task. "
        "n: tasks.",
        published="it falls",
        needs=("mass",),
        function=findings.separators_lose,
        relation=">",
        bound=0,
    ),
    RoleClaim(
        id="C9c",
        brief="there it goes to other tokens",
        shown="{:+.3f}",
        statement="there, attention goes to other tokens",
        source="article, question 3; README of the released code",
        definition="Mean attention mass that tokens other than [CLS] and [SEP] gain in the last third of the layers: "
        "more than none in each task. n: tasks.",
        published="it goes to other tokens",
        needs=("mass",),
        function=findings.others_gain,
        relation=">",
        bound=0,
    ),
    RoleClaim(
        id="C10",
        brief="p-values lie near 0 or 1",
        statement="almost all p-values lie near 0 or 1",
        source="README of the released code",
        definition="Share of p-values below 0.05 or above 0.95, fine-tuned models, all roles and heads: at "
        "least 95%. n: testable tests.",
        published="about 98% of p-values",
        needs=("p",),
        function=findings.extreme_p_values,
        relation=">=",
        bound=0.95,
    ),
    RoleClaim(
        id="C11a",
        brief="scores are distributed asymmetrically",
        statement="the scores are not distributed symmetrically over sentences",
        source="article",
        definition="Share of heads and roles of the fine-tuned models where D'Agostino's test rejects zero "
        "skewness at 0.05: above one half. n: testable heads times roles times tasks.",
        published="the distributions are not symmetric",
        needs=("skewed",),
        function=findings.asymmetric_scores,
        relation=">",
        bound=0.5,
    ),
    RoleClaim(
        id="C11b",
        brief="so a bare average misleads",
        statement="so a bare average misleads",
        source="article",
        definition="Of the heads and roles whose mean is above tau, the share that fails the test: at least 10%. The "
        "other way round, a pass without a mean above tau, is counted beside it; the published test allows none. "
        "n: heads and roles with a mean above tau.",
        published="the average misleads",
        needs=("labels", "above"),
        function=findings.misleading_means,
        relation=">=",
        bound=0.10,
    ),
)


def summary(results: ClaimTables) -> pd.DataFrame:
    """The claim table of this paper, as its notebook of verdicts saved it."""
    return results.claims("claims")
