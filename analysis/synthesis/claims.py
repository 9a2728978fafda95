"""The claims of the synthesis as data; they state what each verdict needs before anything is computed."""

from dataclasses import replace
from functools import partial

import pandas as pd

from analysis.statistics.verdicts import Claim, ClaimTables, claim_table
from analysis.synthesis import findings
from analysis.synthesis.findings import ABLATION, IMPORTANCE, TUNING, Tables

SOURCE = "this study"
MATTER = {"a": "local", "b": "syntactic", "c": "delimiter", "d": "block"}


def _matters(letter: str, role: str) -> Claim:
    return Claim(
        id=f"S1{letter}",
        brief=f"{role} heads matter more than random ones",
        shown="{:+.3f} nats",
        statement=f"{role} heads matter more than random heads of their layers",
        source=SOURCE,
        definition=f"Change of the loss when all {role} heads are off, minus that for random sets of as many heads of "
        "the same layers, mean over tasks (nats): above 0 when sequences are drawn anew and one random set is drawn "
        "for each task. n: heads of all tasks.",
        published="",
        function=partial(findings.set_against_random, role=role),
        relation=">",
        bound=0,
        by_label=True,
    )


CLAIMS = (
    *(_matters(letter, role) for letter, role in MATTER.items()),
    Claim(
        id="S2",
        brief="importance and removal order heads alike",
        shown="{:.2f}",
        statement="gradient importance and the removal of single heads order heads alike",
        source=SOURCE,
        definition="Spearman correlation over heads of gradient importance (per example) and change of the loss "
        "without the head, mean over runs: at least .5. n: heads.",
        published="",
        function=partial(findings.agree, first=ABLATION, second=IMPORTANCE),
        relation=">=",
        bound=0.5,
    ),
    Claim(
        id="S3",
        brief="roles on attention hold on attribution",
        shown="{:.2f}",
        statement="roles found on attention hold on attribution",
        source=SOURCE,
        definition="Cohen's kappa of the labels on attention and on attribution over heads, mean over tasks, for each "
        "coarse role that has one: at least .6 (substantial, after Landis and Koch 1977) for every role. n: heads that "
        "have the role on attribution, in all tasks.",
        published="",
        function=partial(findings.survive, other="attribution"),
        relation=">=",
        bound=0.6,
    ),
    Claim(
        id="S4a",
        brief="local roles persist in all layers",
        shown="{:.0f} layers without",
        statement="positional roles persist in all layers",
        source=SOURCE,
        definition="Layers in which no head is local on attribution: none in any task. The interval is "
        "one-sided: drawing the heads of a layer anew can only lose labelled ones, so it never lies below the count. "
        "n: layers.",
        published="",
        function=partial(findings.layers_without, role="local"),
        relation="<=",
        bound=0,
        by_label=True,
    ),
    Claim(
        id="S4b",
        brief="syntactic roles do not",
        shown="{:.0f} layers without",
        statement="syntactic roles do not persist in all layers",
        source=SOURCE,
        definition="Layers in which no head is syntactic on attribution: at least one in every task. The interval is "
        "one-sided, as that of S4a: one such layer in every task is enough. n: layers.",
        published="",
        function=partial(findings.layers_without, role="syntactic"),
        relation=">=",
        bound=1,
        by_label=True,
    ),
    Claim(
        id="S5",
        brief="fine-tuning changes most what matters",
        shown="{:+.2f}",
        statement="fine-tuning changes most the heads that matter",
        source=SOURCE,
        definition="Spearman correlation over heads of the change of attention in fine-tuning (1 - cosine, padding "
        "cropped) and change of the loss without the head, mean over runs: above 0. n: heads.",
        published="",
        function=partial(findings.agree, first=ABLATION, second=TUNING),
        relation=">",
        bound=0,
    ),
    Claim(
        id="S6",
        brief="interfering heads have no role",
        statement="heads that interfere have no role",
        source=SOURCE,
        definition="Share of the heads that interfere in both gate seeds with a role other than a delimiter's: at most "
        "10 %, with an exact binomial interval; at least 5 such heads are needed. n: heads of all tasks.",
        published="",
        function=findings.interfering_with_role,
        relation="<=",
        bound=0.1,
        by_label=True,
    ),
)


def needs() -> pd.DataFrame:
    """What each verdict needs: claim, statement, and the meaning of holds; it reads no table."""
    rows = [(claim.id, claim.statement, claim.definition) for claim in CLAIMS]
    return pd.DataFrame(
        rows, columns=["claim", "statement", "it holds when the whole 95 % interval says so of"]
    )


def judge_all(tables: Tables) -> pd.DataFrame:
    """The claim table, with verdicts under the controlled label beside it; no paper has numbers for these claims."""
    controlled = replace(tables, label="controlled")
    return claim_table(CLAIMS, tables, controlled=controlled).assign(published="")


def summary(results: ClaimTables) -> pd.DataFrame:
    """The claim table of the synthesis, as the notebook saved it."""
    return results.claims("claims-synthesis")
