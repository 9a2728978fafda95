"""The sentences of the synthesis follow from its tables, also if some are missing."""

import pandas as pd
from syntheses import made_agreement, made_atlas, made_regression, made_sets

from analysis.synthesis import sentences
from analysis.synthesis.findings import heads_with_role


class Saved:
    """Tables by name, none where one has not been made."""

    def __init__(self, **tables: pd.DataFrame):
        self.tables = tables

    def claims(self, name: str) -> pd.DataFrame:
        return self.tables.get(name, pd.DataFrame(columns=["claim", "verdict"]))


EVERY = Saved(
    atlas=made_atlas(), synthesis_sets=made_sets(), synthesis_regression=made_regression(),
    synthesis_agreement=made_agreement(),
)  # fmt: skip
CLAIMS = {"pande2021": pd.DataFrame({"verdict": ["holds", "holds", "undecided"]}), "clark2019": pd.DataFrame(),
          "synthesis": pd.DataFrame({"verdict": ["does not hold", "untestable"]})}  # fmt: skip


def test_overview_is_five_sentences_of_the_numbers():
    said = sentences.overview(EVERY, CLAIMS, "minilm: a sentence encoder")
    assert len(said) == 5
    assert said[0].startswith(
        "Of 5 claims in two groups (papers and synthesis), 2 hold, 1 do not hold, 1 are undecided"
    )
    assert (
        "the scores of local together (in the 3 of 4 fine-tuned encoders whose texts have all of them)"
        in said[2]
    )
    assert "explain 10% of the differences" in said[2]
    assert "for local, syntactic" in said[2]
    assert "a median kappa of 0.80 (attribution)" in said[3]
    assert "20 heads, 4 fine-tuned encoders (minilm: a sentence encoder);" in said[4]
    assert all(text.count(". ") == 0 and text.endswith(".") for text in said)


def test_overview_where_the_synthesis_has_not_run():
    said = sentences.overview(Saved(), CLAIMS, "minilm")
    assert len(said) == 3
    assert said[1] == sentences.NOT_RUN
    assert sentences.highlights(Saved()) == []


def test_highlights_answer_the_question():
    (line,) = sentences.highlights(EVERY)
    assert line.startswith(
        "Do roles foretell what matters? Heads of a layer differ in what their removal costs. The "
    )
    assert "explain 10% of this variance, scores shuffled within layers 4% on average" in line


def test_what_was_measured():
    assert "nowhere measured: surface_next, surface_previous" in sentences.what_was_measured(made_atlas())
    said = sentences.what_was_measured(made_atlas(measure=False))
    assert said.startswith("80 rows, one for every head of 4 fine-tuned encoders; 0% of")
    assert said.endswith("roles on attention, roles on effective and roles on attribution.")


def test_sets_in_words():
    said = sentences.roles_against_random(made_sets())
    assert "local (+0.20 nats)" in said
    assert "of 9 roles" in said
    none = sentences.roles_against_random(made_sets(p=0.2))
    assert "for none of 9 roles" in none


def test_regression_in_words():
    said = sentences.foretold(made_regression())
    assert (
        "Alone, local of 10 roles beat shuffled scores (permutation, Holm); local explains most, 5%: heads"
        in said
    )
    assert said.endswith("heads with higher scores cost more.")
    unsure = sentences.foretold(made_regression().assign(p_holm=0.5))
    assert unsure.endswith(
        "Alone, none of 10 roles beat shuffled scores (permutation, Holm); local explains most, 5%."
    )
    bold = made_regression().assign(
        null_mixed=lambda table: table["null_mixed"].where(table["term"] != "block", 0.2)
    )
    assert "The mixed model finds too many for block: their intervals" in sentences.nulls(bold)
    assert "too many" not in sentences.nulls(made_regression())
    assert sentences.foretold(made_regression(float("nan"))).startswith("Heads were not removed one by one")
    assert "the permutation test 5.0% to 5.0% and the mixed model 3.0% to 3.0%" in sentences.nulls(
        made_regression()
    )


def test_gates_and_agreement_in_words():
    atlas = made_atlas().query("seed == 0")
    assert sentences.gates_found(atlas, made_agreement()).startswith(
        "Of 40 heads of 2 tasks: 10 facilitating, "
    )
    assert "(kappa of the classes 0.70)" in sentences.gates_found(atlas, made_agreement())
    classes = made_atlas().query("seed == 0 and gate_class == 'mixed'")
    share = heads_with_role(classes).mean()
    assert f"{share:.0%} of {len(classes)} mixed heads" in sentences.gates_and_roles(atlas)
    said = sentences.measures_agree(made_agreement())
    assert said.startswith(
        "Of 15 pairs of measures, ablation, loss and uniform head, metric agree most (rank correlation 1.00"
    )
    assert "on attribution local, syntactic" in sentences.roles_survive(made_agreement())
    empty = made_agreement().iloc[:0]
    assert sentences.measures_agree(empty).startswith("No two measures")
    assert sentences.roles_survive(empty).startswith("Roles on other maps were not measured")
