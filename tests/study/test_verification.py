"""The results of this machine against the committed ones: every outcome on small tables, in a clone and an archive."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from studies import error_of

from analysis.files import ROOT
from analysis.study import reference, verification
from analysis.study.verification import compare, differences, row_names

ROLES = """layer,head,role,mean,p,assigned,status
0,0,local,0.333333,1e-300,True,tested
0,1,local,2.5,0.05,False,tested
0,2,local,1.2e+06,0.5,,untestable
1,0,local,-0.4,0.25,True,tested
"""
CLAIMS = "claim,ours,verdict\nC1: roles,38% of heads (mrpc 44%),holds\nC2: many,0.66 to 0.72,undecided\n"


def line(made: str | bytes, known: str = ROLES, weights: str = "same") -> str:
    content = made if isinstance(made, bytes) else made.encode()
    found = str(compare("roles", content, known.encode(), weights))
    assert "\n" not in found
    return found


def test_equal_tables_pass():
    assert line(ROLES) == "pass  roles: 4 rows, labels 12 of 12 equal, worst difference 0"


@pytest.mark.parametrize(
    ("old", "new", "worst"),
    [
        ("0.333333", "0.333334", "3e-06 (mean)"),
        ("2.5", "2.501", "0.0004 (mean)"),
        ("0.05", "0.05004", "0.0008 (p)"),
        ("1e-300", "1e-250", "1e-248 (p)"),
    ],
)
def test_last_digits_pass_and_the_worst_is_shown(old: str, new: str, worst: str):
    assert (
        line(ROLES.replace(old, new))
        == f"pass  roles: 4 rows, labels 12 of 12 equal, worst difference {worst}"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("2.5,", "2.6,", "column mean: line 3 holds '2.6', committed '2.5'"),
        ("0.25,", ",", "worst difference inf (p); column p: line 5 holds '', committed '0.25'"),
        ("True,tested\n0,1", "False,tested\n0,1", "column assigned: 1 cells differ: line 2 holds 'False'"),
        (",,untestable", ",False,untestable", "line 4 holds 'False', committed ''"),
        ("1,0,local", "1,1,local", "column head: line 5 holds '1', committed '0'"),
        ("1,0,local", "1,0,block", "column role: 1 cells differ: line 5 holds 'block', committed 'local'"),
        ("1,0,local,-0.4,0.25,True,tested\n", "", "3 rows instead of 4"),
        ("status", "state", "columns differ: missing ['status'], new ['state']"),
        ("mean,p", "p,mean", "columns differ: missing [], new [], or in another order"),
    ],
)
def test_what_differs_fails_and_is_named(old: str, new: str, words: str):
    found = line(ROLES.replace(old, new))
    assert found.startswith("fail  roles: ")
    assert words in found


def test_other_weights_need_a_share_of_the_labels():
    """Numbers are shown and not judged; the names of the rows must be the same, and do not count as labels."""
    rows = [f"local,{head},{head / 7:.6g},{head % 3 == 0}" for head in range(20)]
    known = "\n".join(["role,head,mean,assigned", *rows, ""])
    one = known.replace("local,0,0,True", "local,0,9,False")
    assert line(one, known, "other") == (
        "pass  roles: 20 rows, labels 19 of 20 equal, worst difference 9e+02 (mean), not judged: other weights"
    )
    assert line(one, known, "same").startswith("fail")
    assert line(one, known, "unknown").startswith("fail")
    many = known.replace("True", "False")
    assert line(many, known, "other").endswith("; fewer than 90% of the labels are equal")
    assert "column role: 1 cells differ" in line(known.replace("local,0", "block,0", 1), known, "other")


def test_leading_columns_that_name_a_row():
    read = verification._read
    assert row_names(read(ROLES.encode(), ",")) == ["layer", "head"]
    assert row_names(read(CLAIMS.encode(), ",")) == ["claim"]
    assert row_names(read(b"a,b\n1,2\n1,2\n", ",")) == []


def test_numbers_inside_a_text_may_differ_in_their_last_digit():
    assert line(CLAIMS.replace("38%", "39%").replace("0.66", "0.67"), CLAIMS).startswith("pass")
    found = line(CLAIMS.replace("0.66", "0.60"), CLAIMS)
    assert "column ours: line 3 holds '0.60 to 0.72', committed '0.66 to 0.72'" in found
    assert "1 cells differ" in line(CLAIMS.replace("heads", "tails"), CLAIMS)
    assert "1 cells differ" in line(CLAIMS.replace("C2", "C3"), CLAIMS), "C3 is a name"


SHEETS = {
    "a semicolon for a comma": (ROLES.replace(",", ";"), "fail", "re-saved: columns separated by ';'"),
    "a decimal comma": (
        ROLES.replace(",", ";").replace("0.333333", "0,333333"),
        "fail",
        "column mean: 1 cells are no numbers any more: line 2 holds '0,333333', committed '0.333333'",
    ),
    "a date": (
        ROLES.replace("2.5,", "2. May,"),
        "fail",
        "column mean: 1 cells are no numbers any more: line 3",
    ),
    "two decimals": (ROLES.replace("0.333333", "0.33"), "fail", "column mean: line 2 holds '0.33'"),
    "words in capitals": (
        ROLES.replace("True", "TRUE"),
        "fail",
        "column assigned: 2 cells differ: line 2 holds 'TRUE'",
    ),
    "CR LF": (ROLES.replace("\n", "\r\n"), "pass", "re-saved: line ends CR LF"),
    "a byte-order mark": ("\ufeff" + ROLES, "pass", "re-saved: a byte-order mark"),
}


@pytest.mark.parametrize("sheet", SHEETS)
def test_table_that_a_spreadsheet_has_saved(sheet: str):
    text, verdict, words = SHEETS[sheet]
    found = line(text)
    assert found.startswith(verdict)
    assert words in found
    assert verdict == "pass" or "make reproduce" in found or "two decimals" in sheet or "capitals" in sheet


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'layer,head\n1,2\n3,4,5,"6\n'])
def test_file_that_is_no_table(content: bytes):
    assert line(content).startswith("fail")


def test_measured_times_are_not_compared():
    known = "claim,definition,estimate\nM6,score,0.1\nM7,CPU time of one thread,1.2\n"
    assert line(known.replace("1.2", "1.4"), known).startswith("pass  roles: 1 rows")
    assert line(known.replace("0.1", "0.2"), known).startswith("fail")
    assert not reference.is_table("michel_speed.csv")


def test_differences_equal_a_loop():
    made = np.array([1.0, np.nan, 2.0, np.inf, -np.inf, 0.0, 5e-4, np.nan])
    known = np.array([1.1, np.nan, np.nan, np.inf, np.inf, 0.0, 0.0, 3.0])
    expected = [0.1 / 1.1, 0, np.inf, 0, np.inf, 0, 0.05, np.inf]
    np.testing.assert_allclose(differences(made, known), expected)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with the committed tables of a profile, and what a run has made of them since."""
    root = tmp_path / "clone"
    tables = root / "results/quick/tables"
    tables.mkdir(parents=True)
    (tables / "roles.csv").write_text(ROLES)
    (tables / "claims.csv").write_text(CLAIMS)
    (tables / "times.csv").write_text("notebook,seconds\n01_extract,21\n")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "tables")
    monkeypatch.setattr(verification, "committed", lambda *asked: reference.committed(*asked, root=root))
    monkeypatch.setenv("RESULTS_DIR", str(root / "results"))
    (tables / "times.csv").write_text("notebook,seconds\n01_extract,99\n")
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True)


def test_command_passes(checkout: Path, capsys):
    assert verification.main(["--profile", "quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "pass  claims: 2 rows, labels 4 of 4 equal, worst difference 0",
        "pass  roles: 4 rows, labels 12 of 12 equal, worst difference 0",
        "2 of 2 tables agree with commit HEAD (16 of 16 labels equal; numbers may differ by 0.001 of their size; "
        "0 tables made with other weights)",
        "profile quick is reproduced",
    ]


def test_command_fails(checkout: Path, capsys):
    tables = checkout / "results/quick/tables"
    (tables / "claims.csv").unlink()
    (tables / "roles.csv").write_text(ROLES.replace("2.5,", "2.6,"))
    assert verification.main(["--profile", "quick"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0].endswith(f"{tables / 'claims.csv'} does not exist: run make reproduce")
    assert err == "error: profile quick is not reproduced: see claims, roles\n"


def test_weights_decide_how_a_table_is_judged(checkout: Path, capsys):
    """The committed provenance and that of this machine name the weights of each table."""
    tables = checkout / "results/quick/tables"
    for digest, commit in (("a", True), ("b", False)):
        (tables / "provenance.json").write_text(
            json.dumps({"roles": {"weights": {"0": digest}}, "claims": {}})
        )
        if commit:
            git(checkout, "add", "results/quick/tables/provenance.json")
            git(checkout, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "weights")
    (tables / "roles.csv").write_text(ROLES.replace("2.5,", "7.5,"))
    assert verification.main(["--profile", "quick"]) == 0
    assert "not judged: other weights" in capsys.readouterr().out
    (tables / "provenance.json").write_text("{")
    assert verification.main(["--profile", "quick"]) == 1
    assert "provenance.json is damaged" in capsys.readouterr().err


def test_file_that_was_changed_after_its_run(checkout: Path, capsys):
    tables = checkout / "results/quick/tables"
    digest = hashlib.sha256(ROLES.encode()).hexdigest()
    (tables / "provenance.json").write_text(json.dumps({"roles": {"sha256": digest}}))
    assert verification.main(["--profile", "quick"]) == 0
    assert "changed after" not in capsys.readouterr().out
    (tables / "roles.csv").write_text(ROLES.replace("2.5,", "2.50,"))
    assert verification.main(["--profile", "quick"]) == 0
    assert (
        "roles: 4 rows, labels 12 of 12 equal, worst difference 0; the file was changed"
        in capsys.readouterr().out
    )


def test_archive_is_compared_with_its_packed_copy(checkout: Path, capsys):
    """A clone without its history, also below the clone of another project."""
    with pytest.raises(SystemExit):
        verification.main(["--nonsense"])
    path = reference.pack("quick", checkout)
    first = path.read_bytes()
    assert reference.pack("quick", checkout).read_bytes() == first
    shutil.rmtree(checkout / ".git")
    git(checkout.parent, "init", "--quiet")
    found, source = reference.committed("quick", root=checkout)
    assert source == str(path)
    assert found == {"roles.csv": ROLES.encode(), "claims.csv": CLAIMS.encode()}
    (checkout / "results/quick/tables/roles.csv").write_text(ROLES.replace("2.5,", "2.6,"))
    assert verification.main(["--profile", "quick"]) == 1
    assert "line 3 holds '2.6', committed '2.5'" in capsys.readouterr().out
    path.write_bytes(first[:100])
    message = error_of(reference.committed, "quick", "HEAD", checkout)
    assert "is damaged" in message
    path.unlink()
    assert "nothing to compare with" in error_of(reference.committed, "quick", "HEAD", checkout)


def test_nothing_to_pack(checkout: Path):
    assert "run make reproduce" in error_of(reference.pack, "absent", checkout)


def test_packed_copies_hold_the_committed_tables():
    """`make pack` writes the packed tables again after the tables have changed."""
    if not reference._is_clone(ROOT):
        pytest.skip("no clone: the committed tables are not known")
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", f"results/*/{reference.PACK}"], capture_output=True, text=True
    ).stdout.split()
    assert packed
    for name in packed:
        profile = Path(name).parent.name
        tables = reference.committed(profile, _index())[0]
        assert reference._unpacked(_staged(name)) == {
            file: content
            for file, content in tables.items()
            if reference.is_table(file) or file == "provenance.json"
        }, f"{name}: run make pack PROFILE={profile}"


def _index() -> str:
    """What is staged as a tree, which is what the next commit holds."""
    return subprocess.run(
        ["git", "-C", str(ROOT), "write-tree"], capture_output=True, text=True, check=True
    ).stdout.strip()


def _staged(name: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(ROOT), "show", f":{name}"], capture_output=True, check=True
    ).stdout
