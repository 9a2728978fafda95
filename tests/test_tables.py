import pandas as pd

from analysis.tables import stacked


def test_tables_are_stacked_with_their_keys_in_front():
    part = pd.DataFrame({"value": [1, 2]})
    table = stacked({("mrpc", 0): part, ("qqp", 1): part}, "task", "seed")
    assert [*table.columns] == ["task", "seed", "value"]
    assert table["task"].tolist() == ["mrpc", "mrpc", "qqp", "qqp"]
    assert [*table.index] == [0, 1, 2, 3]
    assert [*stacked({"a": part}, "task")["task"]] == ["a", "a"]
    assert [*stacked({}, "task").columns] == ["task"]
