"""Headers of notebooks and folders of papers: what is found, and one line for everything that is wrong."""

from pathlib import Path

import pytest
from studies import PARAMETERS, Study, Tree, error_of, started, write_notebook

from analysis.files import ROOT
from analysis.study import discovery
from analysis.study.discovery import Header, header, headers, paper_names, papers
from analysis.study.profiles import notebook_names


def test_header(study: Study):
    study.notebook("01_first")
    study.notebook("02_second", study="{paper: pande2021, after: [01_first]}")
    study.notebook("03_third", study="{after: [{01_first: {state: finetuned}}, 02_second]}")
    study.notebook("04_last", study="{after: all}")
    assert headers() == {
        "01_first": Header(None, {}),
        "02_second": Header("pande2021", {"01_first": {}}),
        "03_third": Header(None, {"01_first": {"state": "finetuned"}, "02_second": {}}),
        "04_last": Header(None, {}, last=True),
    }


def test_notebook_without_a_header(study: Study):
    (study.notebooks / "01_first.py").write_text(PARAMETERS)
    assert header("01_first") == Header()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{after: [02_second]}", "names '02_second' in after: choose from the notebooks before this one"),
        ("{after: [03_third]}", "names '03_third' in after: choose from the notebooks before this one"),
        ("{after: [absent]}", "names 'absent' in after: choose from"),
        ("{papers: pande2021}", "has an unknown key 'papers': write study: {paper: NAME, after: [NOTEBOOK"),
        ("{after: 3}", "cannot be read: write study: {paper: NAME"),
        ("[paper]", "cannot be read: write study: {paper: NAME"),
        ("{paper", "cannot be read: write study: {paper: NAME"),
    ],
)
def test_wrong_header(study: Study, text: str, reason: str):
    study.notebook("01_first")
    study.notebook("02_second", study=text)
    study.notebook("03_third")
    message = error_of(header, "02_second")
    assert message.startswith(f"{study.notebooks}/02_second.py: the header {reason}")


def test_papers_stand_in_the_order_of_their_notebooks(study: Study, tmp_path: Path, monkeypatch):
    for name in ("arendt1951", "berg2003", "clay1988"):
        (tmp_path / "papers" / name).mkdir(parents=True)
        (tmp_path / "papers" / name / "__init__.py").touch()
    (tmp_path / "synthesis").mkdir()
    (tmp_path / "synthesis" / "__init__.py").touch()
    monkeypatch.setattr(discovery, "PAPERS", tmp_path / "papers")
    study.notebook("01_first", study="{paper: clay1988}")
    study.notebook("02_second", study="{paper: arendt1951}")
    assert paper_names() == ["clay1988", "arendt1951", "berg2003", "synthesis"]
    study.notebook("03_third", study="{paper: dorn1970}")
    known = "arendt1951, berg2003, clay1988, synthesis"
    path = study.notebooks / "03_third.py"
    assert error_of(paper_names) == f"{path}: unknown paper 'dorn1970': choose from {known}"


def test_real_papers():
    """Every paper offers what the summary needs, and has a notebook."""
    found = papers()
    assert [*found][:2] == ["pande2021", "clark2019"]
    folders = {path.parent.name for path in (ROOT / "analysis/papers").glob("*/__init__.py")}
    assert folders | {discovery.SYNTHESIS} == {*found}
    assert {each.paper for each in headers().values()} - {None} == {*found}
    for paper in found.values():
        assert isinstance(paper.CLAIMS, tuple)
        assert callable(paper.summary)
    identifiers = [claim.id for paper in found.values() for claim in paper.CLAIMS]
    assert len(set(identifiers)) == len(identifiers)


def test_real_headers():
    assert [name for name in notebook_names() if headers()[name].last] == ["98_explorer", "99_summary"]


# --- a paper that is added -------------------------------------------------------------------------------

PACKAGE = '''"""A toy paper."""

from analysis.lazy import lazy_names

HOMES = {"CLAIMS": "claims", "mean_of": "claims", "summary": "claims"}
__getattr__, __all__ = lazy_names(__name__, HOMES)
'''
CLAIMS = '''"""The claim of a toy paper."""

import xarray as xr

from analysis.statistics.verdicts import Claim, Finding


def mean_of(evidence):
    """The mean of some numbers."""
    mean = evidence.numbers.mean()
    return Finding(f"mean {mean:g}", evidence.numbers.size, mean.expand_dims(["unit", "replicate"]))


CLAIMS = (Claim("T1", "numbers are large", "section 1", "mean above 2", "large", mean_of, ">", 2),)


class Numbers:
    """Numbers to judge."""

    drawn = "nothing"

    def __init__(self, numbers):
        self.numbers = xr.DataArray(numbers)


def summary(results):
    """The claim table."""
    return results.claims("claims-toy2030")
'''
CELL = """from analysis.papers.toy2030 import CLAIMS, summary
from analysis.papers.toy2030.claims import Numbers
from analysis.statistics import claim_table
from analysis.study import Results

results = Results(profile)
claims = claim_table(CLAIMS, Numbers(numbers)).assign(encoder="no encoder")
results.save_table(claims, "claims-toy2030")"""


@pytest.fixture(scope="module")
def with_toy(tmp_path_factory) -> Tree:
    """A copy of the study with one more paper: a folder, a notebook and a section of the profile."""
    tree = Tree.new(tmp_path_factory.mktemp("toy"), "notebooks", "profiles")
    (
        tree.repository / "notebooks/98_explorer.py"
    ).unlink()  # it loads an encoder, which the toy does not need
    folder = tree.repository / "analysis/papers/toy2030"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "claims.py").write_text(CLAIMS)
    write_notebook(
        tree.repository / "notebooks/20_toy.py", CELL,
        parameters='# %% tags=["parameters"]\nprofile = "offline"\nnumbers = [0]\n',
        study="{paper: toy2030, after: []}",
    )  # fmt: skip
    path = tree.repository / "profiles/smoke.yaml"
    path.write_text(path.read_text() + "20_toy: {numbers: [1, 3, 5]}\n")
    return tree


def test_a_paper_is_added_without_any_list(with_toy: Tree):
    """It runs alone with the summary, which shows its claim."""
    done = with_toy.make("reproduce", "PAPERS=toy2030")
    assert done.returncode == 0, done.stderr[-3000:]
    shown = (with_toy.folder / "notebooks/99_summary.ipynb").read_text()
    assert f"1 claims of 1 of {len(papers()) + 1} papers have a verdict here" in shown
    assert "T1: numbers are large" in shown
    assert "mean 3" in shown


def test_the_paper_runs_with_the_others(with_toy: Tree):
    would_run = with_toy.would_run()
    assert {"20_toy", "05_clark_surface", "03_test_all", "99_summary"} & would_run == (
        {"05_clark_surface", "03_test_all", "99_summary"}
    )
    changed = with_toy.make("-n", "-W", "analysis/papers/toy2030/claims.py", "PAPERS=toy2030", "study")
    assert started(changed) == {"20_toy", "99_summary"}
