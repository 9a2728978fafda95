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
    assert sentences.role_counts(table) == (
        "Of 4 heads 3 have the role cls and 1 local; local is rarest (1 head)."
    )
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
    assert "No means above τ do not pass" in sentences.decided(table.assign(mean=0), 3)


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
    assert "Layer 0 changes most in four of four" in sentences.changed_most(changes(0))


def test_gains_and_losses():
    moves = pd.DataFrame({"role": ["nsubj", "nsubj", "cls"], "gained": [1, 2, 0], "lost": [1, 0, 4]})
    assert sentences.gains_and_losses(moves) == (
        "Over all tasks fine-tuning gives 3 labels and takes 5. Most gains are of nsubj (3), most losses of cls (4)."
    )
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
    masses = pd.DataFrame({"task": "mrpc", "state": "pretrained", "layer": [0, 1], "cls": [0.1, 0.5], "sep": [0.3, 0.2]})
    assert sentences.resting_attention(masses, "tiny") == (
        "Before fine-tuning (tiny) heads park attention on [CLS]: a layer gives [CLS] up to 50% (layer 1, mrpc) and "
        "[SEP] up to 30% (layer 0, mrpc) on average."
    )
    assert "on [SEP]: a layer" in sentences.resting_attention(masses.assign(cls=0.1), "tiny")


def test_runs_and_their_agreement():
    counts = pd.DataFrame({"task": "mrpc", "role": ["cls"] * 3 + ["sep"] * 2, "seed": [0, 1, np.nan, 0, 1],
                           "published": [60, 66, 1, 2, 2]})  # fmt: skip
    assert sentences.spread_of_runs(counts) == (
        "Over 2 fine-tuning runs the number of heads with a role differs by 3 (median over tasks and roles), and most "
        "for cls in mrpc: from 60 to 66 heads."
    )
    agreement = pd.DataFrame({"between_runs": [0.9, 0.7], "with_pretrained": [0.5, 0.7], "always": [3, 4],
                              "ever": [5, 6]})  # fmt: skip
    assert "share 80% of the heads" in sentences.shared_by_runs(agreement)
    assert "encoder 60%. 7 labels stand in every run, 11 in" in sentences.shared_by_runs(agreement)


def test_choices():
    sweep = pd.DataFrame(
        {"role": ["cls", "sep"] * 2, "tau": [3.0, 3.0, 3.5, 3.5], "jaccard": [1, 1, 0.9, 0.2]}
    )
    assert "heads of sep most (Jaccard index down to 0.20) and those of cls least (0.90)" in (
        sentences.threshold_choice(sweep, 3)
    )
    stability = pd.DataFrame(
        {
            "role": ["cls", "sep", "sep"],
            "size": [20, 20, 50],
            "agreement": [1, 0.8, 1],
            "jaccard": [0.9, 0.3, 1],
        }
    )
    assert sentences.small_samples(stability).startswith("20 sequences give 90% of the heads")
    assert "share only 60%" in sentences.small_samples(stability)
    assert "sep is least stable (30%)" in sentences.small_samples(stability)


def test_labelled_controls():
    controls = pd.DataFrame(
        {
            "control": ["fine-tuned"] * 2 + ["shuffled"] * 2,
            "role": ["cls", "local"] * 2,
            "published": [6, 5, 6, 0],
        }
    )
    assert sentences.labelled_controls(controls) == (
        "A control has at least as many labels as the encoder for cls (shuffled: 6 heads, fine-tuned: 6): "
        "these labels prove nothing alone."
    )
    assert sentences.labelled_controls(controls.assign(published=[6, 5, 1, 0])).startswith("No control")


def test_simulations_and_claims():
    rates = pd.DataFrame(
        [("normal", 20, 0.0, "t", 0.05), ("left_skewed", 100, 0.0, "t", 0.17), ("normal", 20, 0.0, "audited", 0.01),
         ("normal", 20, 0.5, "t", 0.9), ("normal", 20, 0.0, "audited_family", 0.8)],
        columns=["shape", "n", "effect", "rule", "rate"],
    )  # fmt: skip
    assert (
        "up to 17.0% of the heads wrongly (left-skewed scores, n = 100); the audited rule at most 1.0%"
        in (sentences.false_labels(rates, 0.05))
    )
    power = pd.DataFrame({"effect": [0.2, 0.2, 0.5], "correction": ["none", "BY", "BY"], "n": [156, 1555, 9]})
    assert "needs 156 sequences (none) and 1,555 sequences (BY)" in sentences.needed_sequences(power)
    claims = pd.DataFrame({"verdict": ["holds", "holds", "undecided"]})
    assert sentences.verdicts(claims) == "Of 3 claims 2 hold and 1 is undecided."


def test_sentences_of_a_whole_role_table():
    table = role_table()
    assert "block" in sentences.role_counts(table)
    assert sentences.strongest_heads(table) != sentences.strongest_heads(role_table(seed=1))
