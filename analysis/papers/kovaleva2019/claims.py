"""The claims of Kovaleva 2019 as data, judged on the tables of this study's notebooks."""

from collections.abc import Collection, Mapping

import pandas as pd

from analysis.papers.kovaleva2019 import findings
from analysis.papers.kovaleva2019.findings import Tables
from analysis.statistics.leads import Run
from analysis.statistics.verdicts import Claim, ClaimTables

TABLES = {
    "patterns": "kovaleva_patterns",
    "links": "kovaleva_links",
    "features": "kovaleva_features",
    "cosine": "kovaleva_cosine",
    "verbs": "kovaleva_verbs",
    "rises": "kovaleva_rises",
    "initialisation": "kovaleva_initialisation",
}


LEAST_RUNS = 2  # that have learnt their task, for a claim about fine-tuned encoders


def evidence_of(tables: Mapping[str, pd.DataFrame], trained: Collection[Run] | None = None) -> Tables:
    """The evidence for the claims, from the saved tables named in TABLES; a claim without its table is untestable.

    `trained` are the fine-tuning runs that beat the constant answer by its margin (`leads.trained_runs`): rows of other
    runs are left out, since failed training is no evidence. With fewer than two such runs, nothing of fine-tuned
    encoders is left.
    """
    there = {name: tables[file] for name, file in TABLES.items() if file in tables}
    if trained is not None:
        runs = trained if len(trained) >= LEAST_RUNS else ()
        there = {name: _of_trained(name, table, runs) for name, table in there.items()}
    return Tables(**{name: table for name, table in there.items() if len(table)})


def _of_trained(name: str, table: pd.DataFrame, runs: Collection[Run]) -> pd.DataFrame:
    tasks = {task for task, _ in runs}
    if name in ("cosine", "rises"):
        return table[[(task, seed) in runs for task, seed in zip(table["task"], table["seed"], strict=True)]]
    if name == "features":
        return table[(table["state"] != "finetuned") | table["task"].isin(tasks)]
    return table[table["task"].isin(tasks)] if name == "initialisation" else table


CLAIMS = (
    Claim(
        id="K1",
        brief="more heterogeneous maps in QQP than MRPC",
        shown="{:+.0%}",
        statement="more maps are heterogeneous in QQP than in MRPC",
        source="section 4.1, figure 2",
        definition="Share of heterogeneous maps of the encoder fine-tuned on QQP minus that on MRPC: more than "
        "none. n: sequences of a task.",
        published="61% against 32%",
        function=findings.more_heterogeneous,
        relation=">",
        bound=0,
    ),
    Claim(
        id="K2",
        brief="fine-tuning hardly moves pattern shares",
        shown="{:.1%}",
        statement="fine-tuning moves the shares of the patterns by at most 8 points",
        source="section 4.1 and later work of the same laboratory",
        definition="Absolute change of the share of each pattern in each task: at most 8 points, a bound "
        "borrowed from that later work. The interval treats both states as independent samples, "
        "though they are of the same sequences, so it is too wide. n: sequences of a task.",
        published="at most 7.3 points (heterogeneous in QNLI), by a later network of the same laboratory",
        function=findings.pattern_moves,
        relation="<=",
        bound=0.08,
    ),
    Claim(
        id="K3",
        brief="some heads link frame elements",
        shown="{:.0f} heads",
        statement="some head attends to frame elements more than to pairs at the same distance",
        source="section 4.2, figure 3",
        definition="Heads that give the link more attention than the same arrangement elsewhere in the sentence "
        "(adjusted p < .05), in each direction: at least one. A test that finds none leaves it undecided. "
        "Bundled links join a verb to its subjects and objects, not a target to its frame elements. n: sentences.",
        published="2 of 144 heads beyond the 99th percentile; no control",
        function=findings.frame_heads,
        relation=">=",
        bound=1,
    ),
    Claim(
        id="K4",
        brief="the last two layers change most",
        shown="{:+.2f}",
        statement="fine-tuning changes the last two layers most, but for QQP",
        source="section 4.3, figure 5",
        definition="Least mean similarity of a layer before the last sixth minus the mean of the last sixth (the"
        " last two of twelve), in each task but QQP: more than none. n: heads of a layer.",
        published="last two layers in all tasks but QQP",
        function=findings.last_layers_change,
        relation=">",
        bound=0,
    ),
    Claim(
        id="K5",
        brief="early layers attend to [CLS], late to [SEP]",
        shown="{:+.1%}",
        statement="early layers attend to [CLS], later ones to [SEP]",
        source="section 4.4, figure 6",
        definition="Mean attention to [CLS] in the first third of the layers minus that in the last third, and "
        "the reverse for [SEP], in each task before fine-tuning: more than none. n: sequences of a "
        "task.",
        published="QQP: [CLS] 38% in layer 1 and 1% in layer 10, [SEP] 8% and 45%",
        function=findings.early_and_late,
        relation=">",
        bound=0,
    ),
    Claim(
        id="K6",
        brief="linguistic gains small beside special tokens",
        shown="{:.1%}",
        statement="what fine-tuning adds to attention to linguistic features is small beside [CLS] and [SEP]",
        source="section 4.4, figure 6",
        definition="Largest gain of mean attention to a linguistic feature over the mean attention to [CLS] or "
        "[SEP], the larger, in each task: at most 10%. n: sequences of a task.",
        published="QQP: nouns +2.1 points beside 26.9% on [SEP]",
        function=findings.small_gains,
        relation="<=",
        bound=0.1,
    ),
    Claim(
        id="K7",
        brief="subject-verb heads are those of adjacent words",
        statement="the heads that link subjects and verbs are those that link adjacent words",
        source="section 4.5",
        definition="Of the head with most attention between subject and verb, what it gives to words at the same"
        " distance over what it gives to the link, in each direction and task before fine-tuning: at "
        "least one half; the attention to the link is taken as known. n: sequences with a subject.",
        published="candidates coincide with diagonal heads",
        function=findings.adjacent_verbs,
        relation=">=",
        bound=0.5,
    ),
    Claim(
        id="K8",
        brief="disabling some head raises every score",
        shown="{:+.1%}",
        statement="in every task disabling some head raises the score",
        source="section 4.6, figure 8",
        definition="Rise of the first metric when one head attends to all tokens alike, for the head whose rise "
        "stands out most from chance (in units of its standard deviation over swaps of answers), with"
        " the low end of its simultaneous interval and the highest end of all heads, in each task: "
        "more than none. n: heads.",
        published="+0.1 (STS-B) to +1.2 points (MRPC); no test",
        function=findings.some_head_helps,
        relation=">",
        bound=0,
    ),
    Claim(
        id="K9",
        brief="in MRPC and RTE a random head hinders",
        shown="{:+.2%}",
        statement="in MRPC and RTE disabling a random head helps on average",
        source="section 4.6, figure 8",
        definition="Mean change of the first metric over all heads, interval over sequences, in MRPC and RTE: "
        "more than none. n: heads.",
        published="an increase on average; no number",
        function=findings.random_head_helps,
        relation=">",
        bound=0,
    ),
    Claim(
        id="K10",
        brief="pre-training beats random weights",
        shown="{:+.2f}",
        statement="pre-training beats random initialisation",
        source="section 4.3, Table 1",
        definition="First metric of the task from pre-trained weights minus that from random ones after the same"
        " training, t interval over seeds, in each task: more than none. n: seeds.",
        published="MRPC 82.3 against 68.3, SST-2 92 against 80.5, RTE 64.6 against 52.7",
        function=findings.pretraining_helps,
        relation=">",
        bound=0,
    ),
)


def summary(results: ClaimTables) -> pd.DataFrame:
    """The claim table of this paper, as its last notebook saved it."""
    return results.claims("claims-kovaleva2019")
