from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from headtables import heads_by, score_array

from analysis.statistics import roles as module
from analysis.statistics.roles import DIRECTIONS, RELATIONS, ROLES, compose, families, transitions

SEQUENCES, LAYERS, HEADS = 8, 3, 5
FIXED = "window_1 window_2 window_2_published delimiter cls sep block own_sentence match".split()
SEEN = ["nsubj", "dobj", "amod"]  # advmod never occurs in these data
BANK = [*FIXED, *SEEN, *(f"{label}_reversed" for label in SEEN)]


@pytest.fixture
def bank() -> xr.DataArray:
    """Random scores of elementary sieves; relations are absent from some sequences, 0 all are absent."""
    random = np.random.default_rng(3)
    units = random.integers(0, 4, size=(SEQUENCES, len(BANK))).astype(np.int32)
    units[0] = 0
    units[:, : len(FIXED)] = 20
    units[:, -len(SEEN) :] = units[:, len(FIXED) : len(FIXED) + len(SEEN)]
    values = random.gamma(2, 2, size=(SEQUENCES, len(BANK), LAYERS, HEADS)).astype(np.float32)
    values[units == 0] = np.nan
    tokens, separators = random.integers(10, 30, SEQUENCES), [2] * SEQUENCES
    array = score_array(values, BANK, tokens=tokens, separators=separators).assign_attrs(model="random")
    return array.assign_coords(units=(("sequence", "role"), units))


def role_labels(seed: int, roles=ROLES, unknown: float = 0.1) -> pd.DataFrame:
    random, table = np.random.default_rng(seed), heads_by(LAYERS, HEADS, role=roles)
    labels = pd.array(random.random(len(table)) < 0.3, dtype="boolean")
    labels[random.random(len(table)) < unknown] = pd.NA
    return table.assign(mean=random.gamma(2, 2, len(table)), assigned=labels)


def heads_with(table: pd.DataFrame, role: str, layer: int | None = None) -> set[tuple[int, int]]:
    """The heads (layer, head) that have a role, by a loop over rows."""
    rows = [row for row in table.itertuples() if row.role == role and layer in (None, row.layer)]
    return {(row.layer, row.head) for row in rows if row.assigned is not pd.NA and row.assigned}


def coarse_heads(table: pd.DataFrame, layer: int | None = None) -> dict[str, set[tuple[int, int]]]:
    heads = {role: heads_with(table, role, layer) for role in ROLES}
    return {name: set().union(*(heads[role] for role in roles)) for name, roles in families().items()}


def test_compose_keeps_stored_roles_coordinates_and_attributes(bank):
    roles = compose(bank)
    assert roles.dims == bank.dims
    assert roles["role"].values.tolist() == [*ROLES]
    for role in ("local", "nsubj", "delimiter", "block", "cls", "sep", "match"):
        source = "window_2" if role == "local" else role
        np.testing.assert_array_equal(roles.sel(role=role), bank.sel(role=source))
        np.testing.assert_array_equal(roles["units"].sel(role=role), bank["units"].sel(role=source))
    for name in ("sequence", "layer", "head", "tokens", "separators"):
        np.testing.assert_array_equal(roles[name], bank[name])
    assert roles.attrs == {"arithmetic": "corrected", "model": "random"}


@pytest.mark.parametrize("relations", [RELATIONS, ("nsubj", "amod")])
def test_syntactic_pools_every_pair_once(bank, relations):
    roles = compose(bank, relations=relations).sel(role="syntactic")
    for number in range(SEQUENCES):
        total, pairs = np.zeros((LAYERS, HEADS)), 0
        for label in set(relations) & set(SEEN):
            units = int(bank["units"].sel(role=label)[number])
            if units:
                total += units * bank.sel(role=label)[number].values
                pairs += units
        assert int(roles["units"][number]) == pairs
        expected = total / pairs if pairs else np.full((LAYERS, HEADS), np.nan)
        np.testing.assert_allclose(roles[number], expected, rtol=1e-5)


def test_direction_window_arithmetic_and_block_are_choices(bank):
    forward, backward, both = (compose(bank, direction=name) for name in DIRECTIONS)
    for label in SEEN:
        np.testing.assert_array_equal(backward.sel(role=label), bank.sel(role=f"{label}_reversed"))
    relations = [*SEEN, "syntactic"]
    mean = (forward + backward.values).sel(role=relations) / 2
    np.testing.assert_allclose(both.sel(role=relations), mean, rtol=1e-5)
    np.testing.assert_array_equal(compose(bank, window=1).sel(role="local"), bank.sel(role="window_1"))
    published_roles = compose(bank, arithmetic="published")
    np.testing.assert_array_equal(published_roles.sel(role="local"), bank.sel(role="window_2_published"))
    assert published_roles.attrs["arithmetic"] == "published"
    unweighted = compose(bank, weighted_block=False)
    np.testing.assert_array_equal(unweighted.sel(role="block"), bank.sel(role="own_sentence"))


def test_layers_count_roles_and_multifunctional_heads():
    table = role_labels(4)
    coarse, counts = module.coarse_memberships(table), module.layer_counts(table)
    for name, heads in coarse_heads(table).items():
        assert set(coarse.index[coarse[name]]) == heads
    for layer in range(LAYERS):
        heads = counts[counts["layer"] == layer].set_index("role")["heads"]
        for role in ROLES:
            assert heads[role] == len(heads_with(table, role, layer))
        twice = [a & b for a, b in combinations(coarse_heads(table, layer).values(), 2)]
        assert heads["multi-functional"] == len(set().union(*twice))
        assert heads["none"] == HEADS - len(set().union(*(heads_with(table, role, layer) for role in ROLES)))
    by_task = module.layer_counts(pd.concat([table.assign(task=task) for task in ("qqp", "mrpc")]))
    assert by_task["task"].unique().tolist() == ["qqp", "mrpc"]
    pd.testing.assert_frame_equal(by_task.iloc[: len(counts), 1:], counts)


def test_transitions_count_gains_and_losses():
    before, after = role_labels(10), role_labels(11)
    result = transitions(before, after)
    assert len(result) == LAYERS * len(ROLES)
    for record in result.itertuples():
        had, has = heads_with(before, record.role, record.layer), heads_with(after, record.role, record.layer)
        assert (record.gained, record.lost, record.kept) == (len(has - had), len(had - has), len(had & has))


def test_attention_mass_comes_back_from_the_scores():
    random = np.random.default_rng(5)
    masses = random.dirichlet(np.ones(3), size=(SEQUENCES, LAYERS, HEADS))
    cls, sep, other = np.moveaxis(masses, -1, 0)
    tokens, separators = random.integers(6, 12, SEQUENCES), np.arange(SEQUENCES) % 2 + 1
    t, k = tokens[:, None, None], separators[:, None, None]
    values = np.stack([cls * t, sep * t / k], axis=1)
    table = module.mass_table(score_array(values, ["cls", "sep"], tokens=tokens, separators=separators))
    for role, mass in {"cls": cls, "sep": sep, "other": other}.items():
        np.testing.assert_allclose(table[role], mass.mean(axis=0).ravel())


def test_a_role_that_no_head_can_be_tested_for_has_no_transitions():
    before, after = (role_labels(seed) for seed in (1, 2))
    for table in (before, after):
        table.loc[table["role"] == "block", "assigned"] = pd.NA
    moves = transitions(before, after)
    assert set(moves["role"]) == {*ROLES} - {"block"}
    tasks = [before.assign(task="single"), role_labels(1).assign(task="pair")]
    again = [after.assign(task="single"), role_labels(2).assign(task="pair")]
    by_task = transitions(pd.concat(tasks), pd.concat(again)).groupby("task")["role"].agg(set)
    assert by_task["pair"] - by_task["single"] == {"block"}


def test_agreement_of_runs_is_the_mean_similarity_of_pairs():
    """Three runs: sets {0, 1}, {0, 1}, {0}; pre-trained {1, 2}; a missing label counts as absent."""
    labels = {
        None: [False, True, True, False],
        0: [True, True, None, False],
        1: [True, True, False, False],
        5: [True, False, False, None],
    }
    table = pd.DataFrame(labels).melt(var_name="seed", value_name="assigned", ignore_index=False)
    table = table.rename_axis("head").reset_index().assign(task="mrpc", role="local", layer=0)
    (row,) = module.label_agreement(table).to_dict("records")
    assert row["between_runs"] == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)
    assert row["with_pretrained"] == pytest.approx((1 / 3 + 1 / 3 + 0) / 3)
    assert (row["runs"], row["always"], row["ever"]) == (3, 1, 2)


def test_the_base_rate_is_that_of_the_heads_without_the_role():
    """Six heads of one role: three labelled, two of which exceed the control, as one of two others does."""
    table = pd.DataFrame({
        "role": "local",
        "mean": [6.0, 4.0, 4.0, 2.0, 2.0, 2.0],
        "control_mean": 2.0,
        "assigned": pd.array([True, True, True, False, False, None], "boolean"),
        "exceeds_control": pd.array([True, True, False, True, False, None], "boolean"),
        "assigned_controlled": pd.array([True, False, False, False, False, None], "boolean"),
    })  # fmt: skip
    counts = module.role_counts(table).loc["local"].to_dict()
    expected = {"assigned": 3, "exceeds_control": 2, "assigned_controlled": 1}
    assert counts == expected | {"unlabelled": 2, "unlabelled_exceed": 1, "ratio": 2.0}


def test_local_heads_are_syntactic_by_the_pooled_role_or_by_a_relation():
    """Head 0 has both roles, head 1 is local and has a relation, head 2 is local alone, head 3 syntactic alone."""
    labels = {"local": "0 1 2", "syntactic": "0 3", "amod": "1", "cls": "2", "block": ""}
    rows = [(0, head, role, str(head) in heads) for role, heads in labels.items() for head in range(4)]
    counts = module.local_and_syntactic(pd.DataFrame(rows, columns=["layer", "head", "role", "assigned"]))
    assert counts == {"local": 3, "syntactic": 2, "both": 1, "both_any": 2}
