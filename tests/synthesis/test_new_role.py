"""A sieve and one row give a role labels, colours and places everywhere: CONTRIBUTING, "How to add"."""

import numpy as np
import pytest
from chapters import opened_results, run_cells

from analysis.encoders.models import load_encoder
from analysis.errors import InputError
from analysis.explorer.view import about
from analysis.figures import colours, theme
from analysis.roles import ROLES, Role, control_sources
from analysis.scores.extraction import extract, extract_controls
from analysis.scores.sieves import SIEVES, rows, sieve
from analysis.statistics.controls import controlled_table
from analysis.statistics.roles import compose, compose_controls
from analysis.statistics.significance import Rule
from analysis.synthesis import agreement, regression, sets
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse

NEW = "backwards"


@pytest.fixture
def scored(request, monkeypatch):
    """Scores and controls of an encoder, with a new role that has one of the kinds of controls."""
    monkeypatch.setitem(ROLES, NEW, Role(NEW, "before", request.param, "", "GREY", "p"))

    @sieve("before", bank=True)
    def before(layout, pairs):
        """Every earlier token."""
        return rows(np.tri(len(layout), k=-1, dtype=bool))

    examples = load_examples("toy-mrpc", split="dev", n=12)
    arguments = load_encoder("tiny"), examples, parse(examples)
    yield extract(*arguments), extract_controls(*arguments)
    del SIEVES["before"]


@pytest.mark.parametrize("scored", ["uniform", "match_control"], indirect=True)
def test_a_new_role_is_tested_drawn_and_related_to_the_ablation_effect(scored):
    scores, control = compose(scored[0]), compose_controls(*scored)
    table = controlled_table(scores, control, Rule(1.0, minimum=5, resamples=99))
    own_rows = table[table["role"] == NEW]
    assert own_rows["assigned_controlled"].notna().sum() == 12
    assert own_rows["control"].eq(ROLES[NEW].control).all()
    assert about(NEW) == "Every earlier token."
    assert (colours.colour(NEW), colours.marker(NEW)) == (colours.GREY, "p")
    assert theme.in_order(table["role"])[-1] == NEW

    run = {("mrpc", 0): scores}
    columns = ["layer", "head", "role", "assigned", "assigned_corrected", "assigned_controlled"]
    labels = table[columns].assign(task="mrpc", seed=0)
    wide = agreement.atlas_table(agreement.run_roles(run, labels), {})
    data = agreement.role_scores(wide.assign(ablation_loss=np.arange(12.0)), ROLES, "ablation_loss")
    terms = regression.regression_table(data, [*ROLES], [NEW], permutations=99, resamples=9)
    assert NEW in {*terms["term"]}
    assert NEW in {item.role for item in sets.role_sets(table, "mrpc", 3)}


@pytest.mark.parametrize("scored", ["shuffled"], indirect=True)
def test_chapter_3_runs_with_a_new_role(scored, monkeypatch, tmp_path):
    """All tasks and then one: every cell but that of the parameters, which are changed for so few sequences."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    saved = opened_results(monkeypatch, *scored)
    for name in ("03_test_all", "03_test"):
        run_cells(name, "tasks, tau, minimum, resamples = ['toy-mrpc'], 1.0, 5, 99")
    assert NEW in {*saved.load_table("roles-toy-mrpc-finetuned")["role"]}


def test_an_unknown_control_is_one_line(monkeypatch):
    monkeypatch.setitem(ROLES, NEW, Role(NEW, "offset_-1", "nonsense", "", "GREY", "p"))
    with pytest.raises(InputError, match="role 'backwards': the control 'nonsense' is no sieve of the bank"):
        extract_controls(load_encoder("tiny"), [], {})
    assert "nonsense" in control_sources(SIEVES)
