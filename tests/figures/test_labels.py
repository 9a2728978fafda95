import pandas as pd
import pytest
from drawing import role_table
from matplotlib.collections import PathCollection
from matplotlib.colors import same_color

from analysis.figures.labels import LABELS, differing_labels, label_differences

HEADS = pd.DataFrame(
    [
        ("mrpc", "local", 0, 1, True, False, False),
        ("mrpc", "local", 2, 3, True, False, False),
        ("mrpc", "local", 2, 4, True, True, True),
        ("qqp", "local", 1, 1, False, False, False),
        ("qqp", "local", 1, 2, True, True, False),
        ("mrpc", "cls", 0, 0, True, None, None),
        ("qqp", "sep", 0, 0, None, None, None),
    ],
    columns=["task", "role", "layer", "head", *LABELS],
).astype(dict.fromkeys(LABELS, "boolean"))


def rows(found: pd.DataFrame) -> dict[tuple, dict[str, str]]:
    """Cells by role and labels, untestable as None."""
    keys = [tuple(None if pd.isna(part) else part for part in index) for index in found.index]
    return dict(zip(keys, found.to_dict("records"), strict=True))


def test_rows_are_the_combinations_where_three_labels_differ():
    found = differing_labels(HEADS)
    assert found.index.names == ["role", "published", "audited", "controlled"]
    assert rows(found) == {
        ("local", True, False, False): {"mrpc": "0-1, 2-3", "qqp": ""},
        ("local", True, True, False): {"mrpc": "", "qqp": "1-2"},
        ("cls", True, None, None): {"mrpc": "0-0", "qqp": ""},
    }


def test_a_table_of_two_labels():
    found = differing_labels(HEADS.drop(columns="assigned_controlled"))
    assert rows(found) == {
        ("local", True, False): {"mrpc": "0-1, 2-3", "qqp": ""},
        ("cls", True, None): {"mrpc": "0-0", "qqp": ""},
    }


def test_the_figure_shows_marks_names_and_counts():
    many = pd.concat([HEADS, *(HEADS[:1].assign(layer=layer) for layer in (5, 6))])
    figure = label_differences(differing_labels(many))
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert {"role", "published", "audited", "controlled", "mrpc", "qqp", "local", "cls"} <= {*texts}
    assert "4 heads" in texts
    assert "1-2" in texts
    marks = [part for part in axes.collections if isinstance(part, PathCollection)]
    assert len(marks) == 3 * 3
    full = [same_color(part.get_facecolor()[0], "black") for part in marks[:6]]
    assert full == [True, False, False, True, True, False]


@pytest.mark.parametrize("labels", [2, 3])
def test_equal_labels_leave_nothing_to_show(labels):
    same = role_table().assign(task="mrpc")
    for label in list(LABELS)[1:labels]:
        same[label] = same["assigned"]
    found = differing_labels(same)
    assert found.empty
    (axes,) = label_differences(found).axes
    assert "the labels are the same everywhere" in [text.get_text() for text in axes.texts]
