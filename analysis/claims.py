"""The claims of Pande 2021 as data, judged on our evidence and on the released figures."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from . import findings
from .errors import InputError
from .findings import Evidence, Finding

PUBLISHED_LAYERS = {"0-11": range(12), "0-5": range(6), "6-11": range(6, 12)}
NEEDS = {
    "finetuned": "roles of a fine-tuned model",
    "tests": "testable p-values of a fine-tuned model",
    "asymmetry": "testable skewness of a fine-tuned model's scores",
    "masses": "attention masses",
    "change": "scores before and after fine-tuning",
}


@dataclass(frozen=True)
class Claim:
    """One claim: as stated, its source, as computed, the article's figure, what judges it.

    `needs` names the evidence it needs, `roles` the roles that must be testable in a task to count it.
    """

    id: str
    statement: str
    source: str
    definition: str
    published: str
    needs: tuple[str, ...]
    function: Callable[[Evidence], Finding]
    roles: tuple[str, ...] = ()

    def judge(self, evidence: Evidence) -> Finding:
        """The finding on this evidence: untestable where something needed is missing or empty."""
        for name in self.needs:
            table = getattr(evidence, name)
            if table is None or table.empty:
                return findings.untestable(f"no {NEEDS[name]}")
        if not self.roles:
            return self.function(evidence)
        narrowed = evidence.with_testable(self.roles)
        if narrowed.roles.empty:
            return findings.untestable(f"no task where {', '.join(self.roles)} can be tested")
        return self.function(narrowed)


COARSELY = "syntactic: the pooled role or any of the four relations; delimiter: [CLS] or [SEP] too"
COARSE_TESTABLE = ("local", "syntactic", "delimiter")  # block needs pairs of sentences
CLAIMS = (
    Claim(
        id="C1",
        statement="roles are not mutually exclusive; many heads are multi-functional",
        source="article, question 1",
        definition="Share of heads with at least two of the roles local, syntactic, delimiter and block "
        f"({COARSELY}), tasks together; holds from 10%. n: heads times tasks.",
        published="many heads are multi-functional",
        needs=("finetuned",),
        function=findings.many_multifunctional,
        roles=COARSE_TESTABLE,
    ),
    Claim(
        id="C2",
        statement="delimiter heads are many",
        source="article",
        definition="Share of heads that the test labels delimiter, tasks together; holds from 73%, rounded. "
        "The released mean scores give 73% when the label is mean > 3, without the test. "
        "n: testable heads times tasks.",
        published="73% of heads over the four tasks",
        needs=("finetuned",),
        function=findings.many_delimiter,
        roles=("delimiter",),
    ),
    Claim(
        id="C3",
        statement="the overlap of local and syntactic heads is high",
        source="article; README of the released code",
        definition="Share of local heads that have the pooled syntactic role, per task with local heads; "
        "holds where it is at least 42%, rounded, in each. The released maps reach 87% when any of the four "
        "relations counts as syntactic. n: local heads, tasks together.",
        published="42% to 89% across tasks, 42% to 88% in the README",
        needs=("finetuned",),
        function=findings.local_is_syntactic,
        roles=("local", "syntactic"),
    ),
    Claim(
        id="C4",
        statement="multi-functional heads are most frequent in middle layers, for QQP in initial layers",
        source="article, question 2",
        definition="Multi-functional heads (as C1) per layer inside and outside the layers of relative depth "
        "5/12 to 10/12 (MRPC, QNLI, SST-2) or 0 to 1/3 (QQP); holds where there are more inside for each of "
        "these tasks. n: tasks.",
        published="layers 5-9 for MRPC, QNLI and SST-2, the initial layers for QQP",
        needs=("finetuned",),
        function=findings.multifunctional_layers,
        roles=COARSE_TESTABLE,
    ),
    Claim(
        id="C5",
        statement="heads attending to [SEP] sit in later layers, heads attending to [CLS] in initial layers",
        source="article",
        definition="Share of [SEP] heads in the later half of the layers and of [CLS] heads in the earlier "
        "half; holds where both exceed one half in each task that has both. n: [SEP] and [CLS] heads, tasks "
        "together.",
        published="[SEP] in later layers, [CLS] in initial layers",
        needs=("finetuned",),
        function=findings.delimiter_layers,
        roles=("cls", "sep"),
    ),
    Claim(
        id="C6",
        statement="block heads are mostly in layer 0; their presence later varies by task",
        source="article",
        definition="Block heads in layer 0 and later; holds where layer 0 has more of them than any other "
        "layer in each task of sentence pairs. Untestable heads are left out. n: block heads of all tasks.",
        published="mostly in layer 0",
        needs=("finetuned",),
        function=findings.block_layers,
        roles=("block",),
    ),
    Claim(
        id="C7",
        statement="at least 3 syntactic heads in each layer, with very few exceptions",
        source="article",
        definition="Layers with at least 3 syntactic heads (the pooled role or any of the four relations), "
        "each task apart; holds where at most 10% of the layers have fewer. n: layers times tasks.",
        published="at least 3 in each layer",
        needs=("finetuned",),
        function=findings.syntactic_layers,
        roles=("syntactic",),
    ),
    Claim(
        id="C8",
        statement="very few multi-functional heads in the last two layers, all tasks",
        source="article",
        definition="Multi-functional heads (as C1) in the last sixth of the layers, at least one layer; "
        "holds where they are at most 10% of its heads in each task. n: heads of these layers times tasks.",
        published="very few in layers 10 and 11",
        needs=("finetuned",),
        function=findings.last_layers,
        roles=COARSE_TESTABLE,
    ),
    Claim(
        id="C9",
        statement="fine-tuning changes the later layers most; attention to [SEP] falls there and goes to "
        "other tokens",
        source="article, question 3; README of the released code",
        definition="The layer whose scores change most (mean absolute difference over heads and roles), and "
        "the mean attention mass in the last third of the layers, fine-tuned minus pre-trained; holds where "
        "that layer lies in the last third, [SEP] loses and tokens other than [CLS] and [SEP] gain, in each "
        "task. n: tasks.",
        published="the later layers change most",
        needs=("change", "masses"),
        function=findings.later_layers_change,
    ),
    Claim(
        id="C10",
        statement="almost all p-values lie near 0 or 1",
        source="README of the released code",
        definition="Share of p-values below 0.05 or above 0.95, fine-tuned models, all roles and heads; "
        "holds from 95%. n: testable tests.",
        published="about 98% of p-values",
        needs=("tests",),
        function=findings.extreme_p_values,
    ),
    Claim(
        id="C11",
        statement="the scores are not distributed symmetrically over sentences, so a bare average misleads",
        source="article",
        definition="Share of heads and roles of the fine-tuned models where D'Agostino's test rejects zero "
        "skewness at 0.05; holds above one half. n: testable heads times roles times tasks.",
        published="the distributions are not symmetric",
        needs=("asymmetry",),
        function=findings.asymmetric_scores,
    ),
)


def claim_table(evidence: Evidence, published: Evidence | None = None) -> pd.DataFrame:
    """One row per claim: claim, source, definition, published, ours, n, verdict.

    `published` is the evidence of the released figures, `Evidence(roles=published.roles())`: what it
    gives stands beside the article's own figure. The verdict is one of holds, does not hold, untestable.
    """
    return pd.DataFrame([_row(claim, evidence, published) for claim in CLAIMS])


def _row(claim: Claim, evidence: Evidence, published: Evidence | None) -> dict[str, str | int]:
    ours = claim.judge(evidence)
    return {
        "claim": f"{claim.id}: {claim.statement}",
        "source": claim.source,
        "definition": claim.definition,
        "published": claim.published + _recomputed(claim, published),
        "ours": ours.value,
        "n": ours.n,
        "verdict": ours.verdict,
    }


def _recomputed(claim: Claim, published: Evidence | None) -> str:
    """What the released figures give for the claim, as a sentence to follow the article's own."""
    if published is None:
        return " (article)"
    found = claim.judge(published)
    if found.verdict == "untestable":
        return " (article); the released maps cannot tell"
    return f" (article); {found.value} recomputed from the released maps: {found.verdict}"


def compare_maps(ours: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Our mean scores of BERT-base against the published ones, over the heads of all, lower and upper layers.

    `ours` is a role table with a column task, `published` comes from `published.scores()`. Columns task,
    role, layers, heads, correlation (Spearman), deviation (largest absolute, in units of the score), and
    the layer and head where it is. Raises InputError unless our model has 12 layers of 12 heads.
    """
    for name in ("layer", "head"):
        if {*ours[name]} != {*range(12)}:
            raise InputError(
                f"the role table does not have 12 {name}s; the published maps are of BERT-base, 12 x 12"
            )
    keys = ["task", "role", "layer", "head"]
    both = ours.merge(published[[*keys, "mean"]], on=keys, suffixes=("", "_published")).dropna(
        subset=["mean"]
    )
    groups = both.groupby(["task", "role"], sort=False)
    rows = [
        {"task": task, "role": role, "layers": name} | _agreement(part[part["layer"].isin(layers)])
        for (task, role), part in groups
        for name, layers in PUBLISHED_LAYERS.items()
    ]
    columns = ["task", "role", "layers", "heads", "correlation", "deviation", "layer", "head"]
    return pd.DataFrame(rows, columns=columns)


def _agreement(part: pd.DataFrame) -> dict[str, float | int]:
    deviation = (part["mean"] - part["mean_published"]).abs()
    worst = part.loc[deviation.idxmax()]
    return {
        "heads": len(part),
        "correlation": part["mean"].corr(part["mean_published"], method="spearman"),
        "deviation": deviation.max(),
        "layer": int(worst["layer"]),
        "head": int(worst["head"]),
    }
