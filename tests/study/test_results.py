"""Files of results come back as they were, and their provenance names what made them."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure
from studies import error_of

from analysis.errors import InputError
from analysis.files import ROOT, versions
from analysis.run import publish
from analysis.study.provenance import finish_record, new_record, print_plan
from analysis.study.results import Results, results_to_read
from analysis.study.runs import VARIABLE, Run


def results_of(
    monkeypatch,
    scratch: str | None = None,
    notebook: str = "01_first",
    running: bool = False,
    profile: str = "quick",
) -> Results:
    """What a notebook has that runs with a profile's own values, or with others."""
    run = Run(notebook, {"profile": profile, "n": 3}, scratch, running)
    monkeypatch.setenv(VARIABLE, json.dumps(run._asdict()))
    return Results(profile)


@pytest.fixture
def results(tmp_path: Path, monkeypatch) -> Results:
    """The files of a profile under a temporary folder."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    return results_of(monkeypatch)


def scores() -> xr.DataArray:
    """Random scores with everything that goes with them; one role is absent from one sequence."""
    generator = np.random.default_rng(0)
    values = generator.random((3, 2, 2, 5)).astype(np.float32)
    values[1, 1] = np.nan
    return xr.DataArray(
        values,
        dims=("sequence", "role", "layer", "head"),
        coords={
            "sequence": ["a-1", "é", "c"],
            "role": ["offset_+0", "nsubj"],
            "layer": range(2),
            "head": range(5),
            "tokens": ("sequence", [4, 9, 128]),
            "separators": ("sequence", [1, 2, 3]),
            "units": (("sequence", "role"), np.array([[4, 1], [9, 0], [128, 2]], np.int32)),
        },
        attrs={"arithmetic": "corrected", "encoder": "tiny", "max_tokens": 128},
    )


def test_scratch_run_writes_aside_and_reads_from_the_profile(results: Results, tmp_path: Path, monkeypatch):
    """A scratch run reads what it has written itself, else the profile's files, never those of another scratch run."""
    results.save_scores(scores(), "mrpc", None)
    results.save_table(table(), "roles")
    results.save_part(table(), "part", "mrpc")
    (results.tables / "michel_speed.csv").write_text("model,speedup\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for _ in range(2):  # the second finds what the first left
        scratch = results_of(monkeypatch, "01_first")
        assert scratch.folder == tmp_path / "scratch/01_first"
        assert scratch.load_scores("mrpc", None).identical(results.load_scores("mrpc", None))
        pd.testing.assert_frame_equal(scratch.load_table("roles"), results.load_table("roles"))
        assert (
            len(scratch.join_parts("part", ["mrpc"])) == len(scratch.load_if_saved("roles")) == len(table())
        )
        assert scratch.checkpoint("mrpc", 0) == results.checkpoint("mrpc", 0)
        assert scratch.parses == results.parses
        scratch.save_table(table().assign(mean=7.0), "roles")
        scratch.save_scores(scores() + 1, "mrpc", None)
        assert scratch.table_names() == ["roles"]
        assert scratch.load_table("roles")["mean"].eq(7).all()
        assert scratch.load_scores("mrpc", None).mean() > 1
        new = scratch.checkpoint("mrpc", 0, new=True)
        assert new.is_relative_to(scratch.folder)
        assert scratch.weights("mrpc", 0, "tiny") == new
    assert {path: path.read_bytes() for path in before} == before


def published_record(results: Results) -> dict:
    """The record of a run that ends well."""
    finish_record(results, results.run.name, new_record(results.run), 1, 1, [])
    (results.folder / "cache/done").mkdir(parents=True, exist_ok=True)
    (results.folder / "cache/done" / results.run.name).touch()
    publish(results)
    return json.loads((results.home / "provenance" / f"{results.run.name}.json").read_text())


def test_provenance_of_a_run_names_its_tables_and_figures(results: Results, monkeypatch):
    results = results_of(monkeypatch, running=True)
    digested = scores().assign_attrs(weights_sha256="abc")
    results.save_scores(digested, "mrpc", 1)
    results.load_scores("mrpc", 1)
    results.save_table(table(), "roles")
    results.record_weights("minilm", "def")
    results.save_table(table(), "other")
    results.save_figure(Figure(figsize=(2, 1)), "F1.2", "A caption.")
    first = published_record(results)
    assert (first["notebook"], first["parameters"]) == ("01_first", {"profile": "quick", "n": 3})
    assert "torch " in first["versions"]
    assert re.match(r"[0-9a-f]{12}|unknown", first["commit"])
    assert set(first["tables"]) == {"roles", "other"}
    assert first["tables"]["roles"]["weights"] == {"mrpc-finetuned-1": "abc"}
    assert first["tables"]["other"]["weights"] == {"mrpc-finetuned-1": "abc", "minilm": "def"}
    assert first["figures"]["F1.2"]["weights"] == first["tables"]["other"]["weights"]

    later = results_of(
        monkeypatch, notebook="02_second", running=True
    )  # a notebook that reads a table has its weights too
    later.load_table("other")
    later.save_table(table(), "joined")
    assert published_record(later)["tables"]["joined"]["weights"] == first["tables"]["other"]["weights"]

    again = results_of(monkeypatch, running=True)  # what the run no longer saves is gone
    again.save_table(table(), "roles")
    assert set(published_record(again)["tables"]) == {"roles"}


def test_joined_table_has_the_weights_of_its_parts(results: Results, monkeypatch):
    for task in ("mrpc", "qqp"):
        part = results_of(monkeypatch)
        part.record_weights(f"{task}-finetuned-0", f"digest of {task}")
        part.save_part(table(), "part", task)
    results = results_of(monkeypatch, running=True)
    results.save_table(results.join_parts("part", ["qqp", "mrpc"]), "joined")
    weights = published_record(results)["tables"]["joined"]["weights"]
    assert weights == {"mrpc-finetuned-0": "digest of mrpc", "qqp-finetuned-0": "digest of qqp"}


def test_scores_come_back_as_they_were(results: Results):
    """Those of other maps have files of their own."""
    path = results.save_scores(scores(), "mrpc", None)
    assert path.is_relative_to(results.cache)
    loaded = results.load_scores("mrpc", None)
    xr.testing.assert_equal(loaded, scores())
    assert (loaded.dtype, loaded.units.dtype) == (np.float32, np.int32)
    added = {"task": "mrpc", "state": "pretrained", "versions": versions()}
    assert loaded.attrs == scores().attrs | added
    results.save_scores(2 * scores(), "mrpc", None, maps="twin")
    xr.testing.assert_allclose(results.load_scores("mrpc", None, maps="twin"), 2 * scores())
    with pytest.raises(
        InputError, match="shuffled.nc is missing: make reproduce PROFILE=quick makes all that"
    ):
        results.load_scores("mrpc", None, maps="shuffled")


def table() -> pd.DataFrame:
    """A role table's kinds of columns."""
    return pd.DataFrame(
        {
            "layer": [0, 1, 2],
            "role": ["local", "nsubj", "a, b"],
            "mean": [1 / 3, 1234567.89, np.nan],
            "p": [1e-300, 0.05, np.nan],
            "assigned": pd.array([True, False, None], dtype="boolean"),
        }
    )


def test_tables_have_six_digits_and_come_back_with_their_third_state(results: Results):
    assert results.save_table(table(), "roles").read_bytes().decode().split("\n") == [
        "layer,role,mean,p,assigned",
        "0,local,0.333333,1e-300,True",
        "1,nsubj,1.23457e+06,0.05,False",
        '2,"a, b",,,',
        "",
    ]
    loaded = results.load_table("roles")
    pd.testing.assert_frame_equal(loaded, table(), rtol=1e-5)


def test_words_are_no_missing_values(results: Results):
    words = pd.DataFrame({"word": ["null", "NA", "nan", None], "n": [1.0, None, 3.0, 4.0]})
    results.save_table(words, "words")
    pd.testing.assert_frame_equal(results.load_table("words"), words, check_dtype=False)
    results.save_part(words, "words", "mrpc")
    pd.testing.assert_frame_equal(results.join_parts("words", ["mrpc"]), words, check_dtype=False)


def test_results_of_the_checkout_are_found_beside_a_folder_of_results(tmp_path: Path, monkeypatch):
    """That of RESULTS_DIR has the claims of a profile or not; of a table, the message says where it is."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    results_of(monkeypatch, profile="offline").save_table(table(), "roles")
    assert results_to_read("offline").profile.folder == ROOT / "results/offline"
    message = error_of(Results("offline").load_table, "claims-pande2021")
    assert message.endswith(
        "; results/offline/tables/claims-pande2021.csv is there: unset RESULTS_DIR to read it"
    )
    Results("offline").save_table(table(), "claims-pande2021")
    assert results_to_read("offline").profile.folder == tmp_path / "offline"


def test_a_missing_file_names_the_command_that_makes_it(tmp_path: Path, monkeypatch):
    """That of the notebook which reads it."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    run = Run("03_test", {"profile": "offline", "task": "toy-mrpc"}, "03_test-toy-mrpc")
    monkeypatch.setenv(VARIABLE, json.dumps(run._asdict()))
    results = Results("offline")
    remedy = "is missing: make 03_test-toy-mrpc PROFILE=offline makes all that this notebook reads"
    for read in (
        lambda: results.load_scores("toy-mrpc", None),
        lambda: results.load_table("layers"),
        lambda: results.join_parts("finetune", ["toy-mrpc"]),
    ):
        assert remedy in error_of(read)
    (tmp_path / "offline/tables").mkdir(parents=True)
    (tmp_path / "offline/tables/layers.csv").touch()
    done = tmp_path / "offline/cache/done"
    message = error_of(results.load_table, "layers")
    assert message.endswith(f"is damaged: delete {done}, and run make 03_test-toy-mrpc PROFILE=offline")


def test_recorded_seconds(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    folder = tmp_path / "quick/provenance"
    folder.mkdir(parents=True)
    records = {
        "01_a": {"cpu_seconds": 1000.4, "cached": False},
        "02_b-y": {"cpu_seconds": 3, "whole_cpu_seconds": 30, "cached": True},
        "02_b-x": {"seconds": 40},
    }
    for run, record in records.items():
        (folder / f"{run}.json").write_text(json.dumps(record))
    print_plan("quick", [*records, "03_c"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "01_a 1,000", "02_b-y 30", "02_b-x not recorded", "03_c not recorded",
        "4 runs, 2 of them recorded: 1,030 CPU seconds",
    ]  # fmt: skip
