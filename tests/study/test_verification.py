"""The results of this machine against the committed ones, in a clone and outside."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from studies import error_of

from analysis.statistics.agreement import PARSED, SAME, TRAINED
from analysis.study import verification
from analysis.study.verification import committed

ROLES = """layer,head,role,mean,p,assigned,status
0,0,local,0.333333,1e-300,True,tested
0,1,local,2.5,0.05,False,tested
0,2,local,1.2e+06,0.5,,untestable
1,0,local,-0.4,0.25,True,tested
"""
CLAIMS = "claim,ours,verdict\nC1: roles,38% of heads (mrpc 44%),holds\nC2: many,0.66 to 0.72,undecided\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with the committed tables of a profile, which a run has made since."""
    root = tmp_path / "clone"
    tables = root / "results/quick/tables"
    tables.mkdir(parents=True)
    (tables / "roles.csv").write_text(ROLES)
    (tables / "claims.csv").write_text(CLAIMS)
    git(root, "init", "--quiet")
    commit(root)
    monkeypatch.setattr(verification, "committed", lambda *asked: committed(*asked, root=root))
    monkeypatch.setenv("RESULTS_DIR", str(root / "results"))
    return root


def record(checkout: Path, **weights: dict[str, str]) -> None:
    """Writes the provenance of a run that names the weights of each table."""
    path = checkout / "results/quick/provenance/03_test.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"tables": {name: {"weights": each} for name, each in weights.items()}}))


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "tables")


def test_command_passes(checkout: Path, capsys):
    assert verification.main(["--profile", "quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [text.split(":")[0] for text in lines[:2]] == ["pass  claims", "pass  roles"]
    assert lines[2].startswith("2 of 2 tables agree with commit HEAD; 0 rest on weights trained here")


def test_command_fails(checkout: Path, capsys):
    tables = checkout / "results/quick/tables"
    (tables / "claims.csv").unlink()
    (tables / "roles.csv").write_text(ROLES.replace("2.5,", "2.6,"))
    assert verification.main(["--profile", "quick"]) == 1
    out, err = capsys.readouterr()
    assert f"{tables / 'claims.csv'} does not exist: run make reproduce" in out.splitlines()[0]
    assert err == "error: profile quick is not reproduced: see claims, roles\n"


def test_weights_decide_how_a_table_is_judged(checkout: Path, capsys):
    """The committed provenance and that of this machine name the weights of each table."""
    folder = checkout / "results/quick"
    record(checkout, roles={"0": "a"}, claims={})
    commit(checkout)
    (folder / "tables/roles.csv").write_text(ROLES.replace("2.5,", "2.6,"))
    assert verification.main(["--profile", "quick"]) == 1
    record(checkout, roles={"0": "b"})
    capsys.readouterr()
    assert verification.main(["--profile", "quick"]) == 0
    assert [f"[{SAME}]", f"[{TRAINED}]"] == [
        text[text.index("[") :] for text in capsys.readouterr().out.splitlines()[:2]
    ]
    (folder / "provenance/03_test.json").write_text("{")
    assert verification.main(["--profile", "quick"]) == 1
    assert "provenance/03_test.json is damaged" in capsys.readouterr().err


def test_another_parser_is_said(checkout: Path, capsys):
    record(checkout, roles={"0": "a", "parser": "one 1.0"})
    commit(checkout)
    record(checkout, roles={"0": "a", "parser": "another 2.0"})
    roles = checkout / "results/quick/tables/roles.csv"
    roles.write_text(ROLES + "0,0,nsubj,3.1,0.01,True,tested\n")
    assert verification.main(["--profile", "quick"]) == 0
    assert f"[{PARSED}]" in capsys.readouterr().out


def test_labels_of_all_tables_together(checkout: Path, capsys):
    """Each small table may differ in one label, but not all of them."""
    folder = checkout / "results/quick"
    for number in range(3):
        (folder / f"tables/few{number}.csv").write_text("task,verdict\nmrpc,holds\n")
    record(checkout, **{f"few{number}": {"0": "a"} for number in range(3)})
    commit(checkout)
    record(checkout, **{f"few{number}": {"0": "b"} for number in range(3)})
    assert verification.main(["--profile", "quick"]) == 0
    (folder / "tables/few1.csv").write_text("task,verdict\nmrpc,undecided\n")
    assert verification.main(["--profile", "quick"]) == 1
    out, err = capsys.readouterr()
    assert "fail" not in out
    assert err == "error: profile quick is not reproduced: see labels\n"


def test_release_is_compared_with_the_tables_that_make_keeps(checkout: Path, capsys):
    """Outside of git, also below the clone of another project."""
    shutil.rmtree(checkout / ".git")
    git(checkout.parent, "init", "--quiet")
    folder = checkout / "results/quick"
    assert "nothing to compare with" in error_of(committed, "quick", "HEAD", checkout)
    shutil.copytree(folder / "tables", folder / "released/tables")
    found, source = committed("quick", root=checkout)
    assert source == str(folder / "released")
    assert found == {"tables/roles.csv": ROLES.encode(), "tables/claims.csv": CLAIMS.encode()}
    assert verification.main(["--profile", "quick"]) == 0
    (folder / "tables/roles.csv").write_text(ROLES.replace("2.5,", "2.6,"))
    assert verification.main(["--profile", "quick"]) == 1
    assert "line 3 holds '2.6', committed '2.5'" in capsys.readouterr().out
