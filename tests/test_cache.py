import numpy as np
import pytest
import xarray as xr

from analysis.cache import cached, digest, working_folder

DATASET = xr.Dataset(
    {"logits": (("run", "class"), np.arange(6, dtype=np.float32).reshape(2, 3))},
    {"run": ["a", "b"]},
    {"n": 2},
)


def test_it_is_made_once_for_each_key(tmp_path):
    keys = [{"seed": 0, "texts": ["a"]}, {"seed": 1, "texts": ["a"]}]
    made = []
    for key in (*keys, *keys):
        dataset = cached(tmp_path / "new", "logits", key, lambda key=key: made.append(key) or DATASET)
        assert dataset.identical(DATASET)
    assert made == keys
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_what_is_damaged_is_made_again_and_what_fails_leaves_nothing(tmp_path):
    cached(tmp_path, "logits", 0, lambda: DATASET)
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    assert cached(tmp_path, "logits", 0, lambda: DATASET).identical(DATASET)
    assert xr.load_dataset(path).identical(DATASET)
    with pytest.raises(ZeroDivisionError) as failed:
        cached(tmp_path, "logits", 1, lambda: 1 / 0)
    assert failed.value.__context__ is None  # no "During handling of the above exception"
    assert [*tmp_path.iterdir()] == [path]


def test_what_killed_runs_left_beside_a_folder_is_removed(tmp_path):
    for name in (".model-killed", ".other-killed"):
        (tmp_path / name).mkdir()
    with working_folder(tmp_path / "model") as work:
        assert {*tmp_path.iterdir()} == {work, tmp_path / ".other-killed"}
    assert [*tmp_path.iterdir()] == [tmp_path / ".other-killed"]
