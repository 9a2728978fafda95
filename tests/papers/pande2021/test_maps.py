import numpy as np
import pandas as pd
from headtables import role_table

from analysis.papers.pande2021 import maps

TABLE = role_table()
TASKS = pd.concat([TABLE.assign(task="mrpc"), TABLE[TABLE["role"] != "block"].assign(task="sst-2")])


def test_a_role_has_one_place_in_the_cells_of_its_heads_and_delimiter_heads_are_grey():
    [axes] = maps.role_maps({"mrpc": TABLE}).axes
    heads = {
        role: {*zip(rows["layer"], rows["head"], strict=True)}
        for role, rows in TABLE[TABLE["assigned"].fillna(False)].groupby("role")
    }
    grey = {(round(bar.get_y() + 0.5), round(bar.get_x() + 0.5)) for bar in axes.patches}
    assert grey == heads.get("delimiter", set())
    roles, places = [role for row in maps.CELL for role in row], set()
    for role, marks in zip(roles, axes.collections, strict=False):
        offsets = np.asarray(marks.get_offsets())
        cells = [(round(y), round(x)) for x, y in offsets]
        assert {*cells} == (heads.get(role, set()) if role != maps.GROUND else set())
        inside = {
            (round(y - layer, 3), round(x - head, 3))
            for (x, y), (layer, head) in zip(offsets, cells, strict=True)
        }
        assert len(inside) <= 1
        assert not inside & places
        places |= inside


def test_the_legend_of_a_role_map_has_no_role_without_a_mark():
    [legend] = maps.role_maps({"mrpc": TABLE}).legends
    drawn = TABLE.loc[TABLE["assigned"].fillna(False), "role"]
    assert {text.get_text() for text in legend.get_texts()} - {" "} == {*drawn}


def test_the_sets_of_a_task_hold_all_heads_and_titles_the_local_ones_that_are_syntactic():
    figure = maps.role_sets({"MiniLM": TASKS, "BERT-base": TASKS.assign(assigned=False)})
    _, *panels = figure.axes
    assert [axes.get_title().splitlines()[0] for axes in panels] == ["mrpc", "sst-2"]
    for axes in panels:
        ours, theirs = axes.containers
        assert np.isclose(sum(bar.get_width() for bar in ours), 100)
        assert max(bar.get_width() for bar in theirs) == 100  # no head has a role
        assert axes.get_title().endswith("BERT-base: 0 of 0")


def test_a_map_of_means_has_its_task_and_role_and_what_is_missing_is_masked():
    axes = maps.mean_maps({"MiniLM": TASKS}).axes[0]
    tasks, roles = (
        [text.get_text() for text in labels] for labels in (axes.get_yticklabels(), axes.get_xticklabels())
    )
    assert tasks == ["sst-2", "mrpc"]  # the first task is on top
    layers, heads = TABLE[["layer", "head"]].max() + 1
    picture = axes.collections[0].get_array().reshape(2, layers, len(roles), heads)
    assert picture[0, :, roles.index("block")].mask.all()
    row = TABLE[TABLE["role"] == "local"].iloc[-1]
    assert picture[1, row["layer"], roles.index("local"), row["head"]] == row["mean"]
