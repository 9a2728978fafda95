"""The conclusions of this machine against the committed ones."""

import json
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from studies import error_of

from analysis.files import write_text
from analysis.study import verification
from analysis.study.provenance import committed, output_digests
from analysis.study.runs import PARSER
from analysis.study.verification import largest_difference, verify

HEADS = pd.MultiIndex.from_product([["local", "nsubj"], range(5), range(10)], names=["role", "layer", "head"])
ROLES = HEADS.to_frame(index=False).assign(mean=1.5, assigned=True)
ROLES["assigned_corrected"] = ROLES["layer"].map({0: True, 1: False})  # elsewhere the label is missing
VERDICTS = ["supported", "mixed", "not supported", *["inconclusive"] * 8]
NAMES = [f"C{n}" for n in range(1, 12)]
CLAIMS = pd.DataFrame({"claim": NAMES, "estimate": 0.5, "low": 0.4, "high": 0.6, "verdict": VERDICTS})
CLAIMS["interval"] = "sequences"
TABLES = {"roles-mrpc": "03_test", "claims-pande2021": "04_claims", "michel_speed": "06_michel"}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with the committed results of a profile, whose runs this machine has made."""
    root = tmp_path / "clone"
    folder = root / "results/quick"
    (folder / "tables").mkdir(parents=True)
    record(folder)
    save(folder, "roles-mrpc", ROLES)
    save(folder, "claims-pande2021", CLAIMS)
    save(folder, "michel_speed", pd.DataFrame({"speedup": [1.5]}))
    (root / ".gitignore").write_text("cache/\n")
    git(root, "init", "--quiet")
    commit(root)
    monkeypatch.setattr(verification, "committed", lambda profile: committed(profile, root))
    monkeypatch.setenv("RESULTS_DIR", str(root / "results"))
    for run in TABLES.values():
        stamp(folder, run)
    return folder


def save(folder: Path, name: str, table: pd.DataFrame) -> None:
    """Writes the table of a run, which has ended well if it has before."""
    table.to_csv(folder / f"tables/{name}.csv", index=False)
    if (folder / "cache").exists():
        stamp(folder, TABLES[name])


def record(folder: Path, weights: str = "a", parser: str = "one 1.0", data: str = "b") -> None:
    """Writes the provenance of all runs; weights, parser and data are those behind the role labels."""
    (folder / "provenance").mkdir(exist_ok=True)
    for table, run in TABLES.items():
        roles = {"weights": {"mrpc": weights, PARSER: parser} if run == "03_test" else {}}
        text = json.dumps({"data": data if run == "03_test" else "", "tables": {table: roles}})
        (folder / f"provenance/{run}.json").write_text(text)
        if (folder / "cache").exists():
            stamp(folder, run)


def stamp(folder: Path, run: str) -> None:
    """Marks a run as done with what it has saved."""
    names = [f"tables/{table}.csv" for table in TABLES if TABLES[table] == run]
    names = [name for name in (*names, f"provenance/{run}.json") if (folder / name).exists() or not names]
    write_text(folder / f"cache/done/{run}", json.dumps(output_digests(folder, names)))


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "tables")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)


@pytest.mark.parametrize("stamps", ["", "of an earlier version"])
def test_where_nothing_has_run_nothing_is_reproduced(checkout: Path, stamps: str):
    """A fresh clone, and one with stamps that say not what a run has saved."""
    for run in TABLES.values():
        path = checkout / f"cache/done/{run}"
        path.write_text("") if stamps else path.unlink()
    message = error_of(verify, "quick")
    assert message.startswith("nothing of profile quick has run here")
    assert message.endswith("run make reproduce PROFILE=quick")


def test_committed_results_are_not_taken_for_those_of_a_run(checkout: Path):
    """After `git checkout results`."""
    save(checkout, "claims-pande2021", CLAIMS.assign(verdict="mixed"))
    git(checkout.parents[1], "checkout", "--quiet", "results")
    message = error_of(verify, "quick")
    assert message.startswith("the results of 04_claims are not those that were made here")
    assert f"delete {checkout / 'cache/done'}, and run make reproduce" in message


def test_some_runs_alone_are_judged_and_the_others_named(checkout: Path, capsys):
    """Those of PAPERS= or of single goals."""
    (checkout / "cache/done/04_claims").unlink()
    (checkout / "tables/claims-pande2021.csv").unlink()  # of no interest
    verify("quick")
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "judged: 03_test, 06_michel", "not judged, since they have not run here: 04_claims",
        "1 tables of 2 of 3 runs of profile quick are reproduced",
    ]  # fmt: skip
    (checkout / "tables/roles-mrpc.csv").unlink()
    assert "03_test" in error_of(verify, "quick")


def test_runs_without_committed_tables_judge_nothing(checkout: Path):
    """Those of `make first`, which scores alone."""
    for run in TABLES.values():
        (checkout / f"cache/done/{run}").unlink()
    stamp(checkout, "01_extract")
    assert error_of(verify, "quick").startswith("no run with committed tables has run here")


def test_equal_results_are_reproduced_whatever_the_times_are(checkout: Path, capsys):
    save(checkout, "michel_speed", pd.DataFrame({"speedup": [9.0]}))
    verify("quick")
    assert capsys.readouterr().out.splitlines()[-1] == "profile quick is reproduced"


@pytest.mark.parametrize(
    ("verdicts", "reproduced"),
    [
        ({"C1": "mixed"}, False),
        ({"C2": "not supported"}, False),
        ({"C3": "supported"}, False),
        ({"C1": "inconclusive"}, True),
        ({"C4": "supported"}, True),
        ({"C5": "not applicable"}, True),
        ({"C1": "inconclusive", "C4": "supported"}, False),  # two of eleven
        ({"C1": "missing"}, False),
    ],
)
def test_verdicts_that_differ_are_printed(checkout: Path, capsys, verdicts: dict[str, str], reproduced: bool):
    made = CLAIMS.assign(verdict=CLAIMS["claim"].map(verdicts).fillna(CLAIMS["verdict"]))
    save(checkout, "claims-pande2021", made[made["verdict"] != "missing"])
    if reproduced:
        verify("quick")
    else:
        assert error_of(verify, "quick").endswith("claims-pande2021: too many verdicts differ")
    known = CLAIMS.set_index("claim")["verdict"]
    lines = [f"{claim} is {verdict}, committed: {known[claim]}" for claim, verdict in verdicts.items()]
    assert capsys.readouterr().out.splitlines()[:-1][: len(lines)] == lines


def test_estimates_outside_the_committed_intervals_are_listed(checkout: Path, capsys):
    """A missing estimate is outside of none, and times, here C11, are not compared."""
    timed = CLAIMS.assign(interval=[*["sequences"] * 10, "rounds"])
    save(checkout, "claims-pande2021", timed)
    commit(checkout.parents[1])
    estimates = [0.39, 0.61, 0.41, None, *[0.5] * 6, 99]
    save(checkout, "claims-pande2021", timed.assign(estimate=estimates))
    verify("quick")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["C1 is 0.39, committed: 0.5 [0.4, 0.6]", "C2 is 0.61, committed: 0.5 [0.4, 0.6]"]
    assert (
        lines[-1] == "profile quick is reproduced, but for 2 of 11 claims outside their committed intervals"
    )


def test_a_checkout_of_another_owner_ends_in_the_words_of_git(checkout: Path, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    message = error_of(verify, "quick")
    assert "detected dubious ownership" in message
    assert "safe.directory" in message


@pytest.mark.parametrize(
    ("role", "differing", "provenance", "reproduced"),
    [
        ("nsubj", 2, {}, True),  # of 200 labels
        ("nsubj", 3, {}, False),
        ("nsubj", 10, {"weights": "trained here"}, True),
        ("nsubj", 11, {"weights": "trained here"}, False),
        ("nsubj", 50, {"parser": "another 1.0"}, True),
        ("local", 1, {"parser": "another 1.0"}, True),  # of 100 labels
        ("local", 2, {"parser": "another 1.0"}, False),
    ],
)
def test_role_labels(checkout: Path, role: str, differing: int, provenance: dict, reproduced: bool):
    record(checkout, **provenance)
    made = ROLES.copy()
    made.loc[made.index[made["role"] == role][:differing], "assigned"] = False
    save(checkout, "roles-mrpc", made.sample(frac=1, random_state=0))  # in any order of the rows
    if reproduced:
        verify("quick")
    else:
        assert "roles-mrpc: " in error_of(verify, "quick")


def test_other_data_are_compared_and_not_judged(checkout: Path, capsys):
    record(checkout, data="of make data")
    save(checkout, "claims-pande2021", CLAIMS.assign(verdict="mixed"))
    message = error_of(verify, "quick")
    assert capsys.readouterr().out.startswith("C1 is mixed, committed: supported\n")
    assert message.endswith("not judged: 03_test read other data than for the committed results")


def test_largest_differences(checkout: Path, capsys):
    save(checkout, "roles-mrpc", ROLES.assign(mean=1.2))
    verify("quick")
    assert "{'roles-mrpc': 0.2, 'claims-pande2021': 0.0}" in capsys.readouterr().out
    save(checkout, "roles-mrpc", ROLES.assign(mean=None))
    verify("quick")
    printed = capsys.readouterr().out
    assert "{'claims-pande2021': 0.0}" in printed
    assert "one side alone has, in: roles-mrpc" in printed
    some = pd.DataFrame({"n": [0.001, 5.0, None], "word": "a"})
    assert largest_difference(some, some) == 0
    assert largest_difference(some.assign(n=[0.002, 5.0, None]), some) == pytest.approx(0.1)
    for other in (some.fillna(1), some.head(1), some.rename(columns={"n": "m"})):
        assert largest_difference(other, some) == float("inf")


def test_missing_files(checkout: Path):
    (checkout / "tables/michel_speed.csv").unlink()
    stamp(checkout, "06_michel")
    assert error_of(verify, "quick").endswith("not reproduced: tables/michel_speed.csv is missing")


def test_release_is_compared_with_the_tables_that_make_keeps(checkout: Path):
    """Outside of git, also below the clone of another project."""
    root = checkout.parents[1]
    shutil.rmtree(root / ".git")
    git(root.parent, "init", "--quiet")
    assert "nothing to compare with" in error_of(verify, "quick")
    for folder in ("tables", "provenance"):
        shutil.copytree(checkout / folder, checkout / "released" / folder)
    verify("quick")
    save(checkout, "claims-pande2021", CLAIMS.assign(verdict="mixed"))
    assert "too many verdicts differ" in error_of(verify, "quick")
