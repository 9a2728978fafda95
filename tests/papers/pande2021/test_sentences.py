"""Sentences say what the numbers are: other numbers, another sentence."""

import numpy as np
import pandas as pd
import pytest
from drawing import role_table

from analysis.papers.pande2021 import sentences

HEADS = {"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1]}


def roles(**columns) -> pd.DataFrame:
    """Two roles of four heads; columns hold eight values."""
    keys = pd.concat([pd.DataFrame(HEADS).assign(role=role) for role in ("local", "cls")], ignore_index=True)
    table = keys.assign(**columns)
    return table.astype({name: "boolean" for name in table if name.startswith("assigned")})


def test_strongest_heads():
    table = roles(mean=[1, 2, 3, 1.5, 9, 8, 12.4, 7])
    assert sentences.strongest_heads(table) == (
        "The highest mean score is 12.4, of head 1-0 for cls. For local no head exceeds 3.0 (head 1-0)."
    )
    assert sentences.strongest_heads(table.assign(mean=-table["mean"])).startswith(
        "The highest mean score is -1.0, of head 0-0 for local"
    )


def test_skewed_scores():
    skewed = sentences.skewed_scores(pd.Series([2, -3, 1.5, 0, np.nan]), 1200)
    assert "Over 1,200 sequences the scores of 75% of 4 heads" in skewed
    assert "67% of them to the right" in skewed
    assert "25% of 4" in sentences.skewed_scores(pd.Series([0, 0, 1.5, 0]), 20)


def test_uniform_block():
    assert "scores 3.80 on block" in sentences.uniform_block(3.8, 3)
    assert "above τ = 3. A label of block says nothing" in sentences.uniform_block(3.8, 3)
    assert "not above τ = 4. The control has no label" in sentences.uniform_block(3.8, 4)


def test_role_counts():
    table = roles(assigned=[True, False, False, False, True, True, True, False])
    assert sentences.role_counts(table) == "Of 4 heads 3 have the role cls and 1 have the role local."
    third = pd.concat([table, table[:4].assign(role="sep")])
    assert sentences.role_counts(third).endswith("; the rarest role is sep (1 head).")
    absent = pd.concat([table, table[:4].assign(role="sep", assigned=False)])
    assert sentences.role_counts(absent).endswith("local; no head has the role sep.")
    assert sentences.role_counts(table.assign(assigned=False)) == "None of 4 heads has a role."
    untestable = pd.concat([table, table[:4].assign(role="block", assigned=pd.NA)]).astype(
        {"assigned": "boolean"}
    )
    assert sentences.role_counts(untestable).endswith("No sequence can show block.")


def test_several_roles():
    members = pd.DataFrame(
        {"local": [True, False, False], "delimiter": [True, True, True], "block": [False] * 3}
    )
    assert sentences.several_roles(members) == (
        "1 of 3 heads (33%) have at least two of the roles local, syntactic, delimiter and block. "
        "The most frequent set is delimiter alone (2 heads)."
    )
    assert "The most frequent set is no role (3 heads)" in sentences.several_roles(members & False)


@pytest.mark.parametrize(("both", "share"), [(11, "65%"), (17, "100%")])
def test_local_and_syntactic(both, share):
    row = {"role_a": ["local"], "role_b": ["syntactic"], "heads_a": [17], "heads_b": [20], "both": [both]}
    text = sentences.local_and_syntactic(pd.DataFrame(row))
    assert text.startswith(f"{both} of 17 local heads ({share}) are syntactic too")
    none = sentences.local_and_syntactic(pd.DataFrame(row).assign(heads_a=0))
    assert none == "There are no local heads and 20 syntactic heads: no overlap."


def test_decided():
    table = roles(p=[0.01, 0.99, 0.5, 0.96, 0, 1, 1, np.nan], mean=[4, 1, 3.5, 1, 9, 1, 1, 1],
                  assigned=[True, False, False, False, True, False, False, None])  # fmt: skip
    text = sentences.decided(table, 3)
    assert "85.7% of 7 p-values lie within 0.05 of 0 or 1" in text
    assert "1 mean above τ does not pass the test" in text
    assert "Every mean above τ passes the test." in sentences.decided(table.assign(mean=0), 3)


def test_near_threshold():
    table = roles(low=[1, 2, 4, 2.9, 2, 2, 9, np.nan], high=[2, 5, 5, 3.1, 4, 4, 10, np.nan])
    assert "of 4 heads (of 7 heads and roles) contains τ = 3" in sentences.near_threshold(table, 3)
    assert sentences.near_threshold(table, 30).startswith("No interval of 7")


def test_frequent_roles():
    table = roles(assigned=[True, False, False, False, True, True, True, False])
    both = pd.concat([table.assign(task="mrpc"), table.assign(task="qqp")])
    assert "role cls (3 of 4 on average over tasks, from 3 to 3), then local (1)" in sentences.frequent_roles(
        both
    )
    other = both.assign(assigned=~both["assigned"] | (both["role"] == "local"))
    assert "role local (4 of 4" in sentences.frequent_roles(other)


def test_fullest_layers():
    counts = pd.DataFrame({"task": ["mrpc"] * 3, "layer": [0, 1, 2], "heads": [2, 6, 1]})
    counts = counts.assign(state="finetuned", role="multi-functional")
    assert sentences.fullest_layers(counts) == (
        "Multi-functional heads are most frequent in layer 1 for mrpc (6 heads). "
        "The last layer has 1.0 of them on average over tasks, a layer 3.0."
    )
    assert sentences.fullest_layers(counts.assign(heads=0)) == "No head of any task is multi-functional."
    assert "in layer 0 for mrpc (9 heads)" in sentences.fullest_layers(counts.assign(heads=[9, 6, 1]))


def test_removed_labels_of_two_and_three_rules():
    table = roles(assigned=[True] * 8, assigned_audited=[True] * 6 + [False] * 2)
    names = {"assigned": "published", "assigned_audited": "audited", "assigned_controlled": "controlled"}
    assert sentences.removed_labels(table, names) == (
        "Of 8 published labels the audited rule takes away 2 (25.0%, most for cls (2))."
    )
    three = table.assign(assigned_controlled=[False] * 4 + [True] * 4)
    assert "and the controlled rule takes away 4 (50.0%, most for local (4))" in sentences.removed_labels(
        three, names
    )


def test_kept_under_control():
    table = roles(
        assigned=[True] * 5 + [False] * 3, assigned_controlled=[True, False, True] + [False] * 4 + [None]
    )
    assert sentences.kept_under_control(table) == (
        "Of 5 published labels of syntactic roles 2 are left under control: 0-0 and 1-0 for local."
    )
    none = sentences.kept_under_control(
        table.assign(assigned_controlled=pd.array([False] * 8, dtype="boolean"))
    )
    assert none == "Of 5 published labels of syntactic roles 0 are left under control."


def test_released_arithmetic():
    table = pd.DataFrame({"role": ["local", "cls", "local"], "heads": [0, 0, 0]})
    assert (
        sentences.released_arithmetic(table, 1200) == "The released arithmetic gives the same 1,200 labels."
    )
    assert sentences.released_arithmetic(table.assign(heads=[2, 0, 1]), 1200) == (
        "The released arithmetic gives another label in 3 of 1,200 cases: local (3)."
    )


def changes(largest: int) -> pd.DataFrame:
    rows = [
        (task, layer, sign * (2.0 if layer == (largest if task != "qnli" else 0) else 0.5))
        for task in ("mrpc", "qqp", "sst-2", "qnli")
        for layer in range(4)
        for sign in (-1, 1)
    ]
    return pd.DataFrame(rows, columns=["task", "layer", "difference"])


def test_changed_most():
    assert sentences.changed_most(changes(3)) == (
        "Layer 3 changes most in three of four tasks (mean change 1.6 against 0.6 in the other layers)."
    )
    assert sentences.changed_most(changes(1)).startswith("Layer 1 changes most in three of four tasks")
    small = changes(3).assign(difference=changes(3)["difference"] / 100)
    assert "(mean change 0.02 against 0.006 in" in sentences.changed_most(small)
    assert "Layer 0 changes most in four of four" in sentences.changed_most(changes(0))


def test_gains_and_losses():
    moves = pd.DataFrame({"role": ["nsubj", "nsubj", "cls"], "gained": [1, 2, 0], "lost": [1, 0, 4]})
    assert sentences.gains_and_losses(moves) == (
        "Over all tasks fine-tuning gives 3 labels and takes 5. Most gains are of nsubj (3), most losses of cls (4)."
    )
    assert sentences.gains_and_losses(moves.assign(gained=0, lost=0)) == "Fine-tuning changes no label."
    assert "most losses of nsubj (9)" in sentences.gains_and_losses(moves.assign(lost=[9, 0, 4]))


def test_classes_of_change():
    table = pd.DataFrame({"change": ["gained", "lost", "lost", "kept", "equivalent", None]})
    text = sentences.classes_of_change(table, 0.5)
    assert text.startswith(
        "Of 5 tested heads and roles 1 gain the role beyond chance and 2 lose it; 1 keep it."
    )
    assert "1 change by less than 0.5, and 0 remain undecided" in text


def test_moved_attention():
    rows = [
        ("mrpc", state, layer, sep)
        for state in ("pretrained", "finetuned")
        for layer, sep in ((0, 0.9), (5, 0.2))
    ]
    masses = pd.DataFrame(rows, columns=["task", "state", "layer", "sep"]).assign(cls=0.1)
    masses.loc[3, "sep"] = 0.1
    masses["other"] = 1 - masses["sep"] - masses["cls"]
    text = sentences.moved_attention(masses)
    assert "to [SEP] by −10.0 to −10.0, to [CLS] by +0.0 to +0.0" in text
    assert text.endswith("On average other tokens gain most.")
    masses.loc[3, ["sep", "other"]] = [0.9, 0.0]
    assert sentences.moved_attention(masses).endswith("On average [SEP] gains most.")


def test_resting_attention():
    masses = pd.DataFrame(
        {"task": "mrpc", "state": "pretrained", "layer": [0, 1], "cls": [0.1, 0.5], "sep": [0.3, 0.2]}
    )
    assert sentences.resting_attention(masses, "tiny") == (
        "Before fine-tuning (tiny) heads park attention on [CLS]: a layer gives [CLS] up to 50% (layer 1, mrpc) and "
        "[SEP] up to 30% (layer 0, mrpc) on average."
    )
    assert "on [SEP]: a layer" in sentences.resting_attention(masses.assign(cls=0.1), "tiny")


def test_sentences_of_a_whole_role_table():
    table = role_table()
    assert "block" in sentences.role_counts(table)
    assert sentences.strongest_heads(table) != sentences.strongest_heads(role_table(seed=1))


def test_verdicts():
    claims = pd.DataFrame({"verdict": ["holds", "holds", "undecided"]})
    assert sentences.verdicts(claims) == "Of 3 claims 2 hold and 1 is undecided."
