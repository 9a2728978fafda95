import json

from studies import error_of

from analysis.papers.pande2021.measures import CLAIMS
from analysis.statistics.claims import claim_table, frame
from analysis.study.claim_pages import claims_document, claims_markdown, verdicts_by_paper
from analysis.study.index import write_index
from analysis.study.profiles import MADE_UP
from analysis.study.runs import Folders

UNITS = frame({"toy-mrpc": (0.3, 0.25, 0.35), "toy-qqp": (0.4, 0.35, 0.45)})
TABLE = claim_table(CLAIMS, {"C1": UNITS}, made_up=True)


def test_papers_have_a_row_with_the_number_of_each_verdict():
    rows = verdicts_by_paper({"pande2021": TABLE}, "docs/claims.md").splitlines()[2:]
    assert rows == ["| [Pande et al. 2021](docs/claims.md#pande2021) | 1 | 0 | 0 | 0 | 11 |"]


def test_a_claim_has_its_numbers_in_a_row_what_is_measured_and_its_figure():
    page = claims_document({"pande2021": TABLE}, "offline", "figures")
    link = '<a id="C1"></a>[C1](figures/F5-sets.png)'
    assert f"| {link} Roles are not mutually exclusive; many heads are multi-functional | 0.35 [0.31" in page
    assert "| 0.35 [0.31, 0.39] | > 0.1 ‡ |  |  | supported |" in page
    text = " ".join(page.split())
    definition = text[text.index("- **C1** (question 1). Share of heads") :].split(" - **C2**")[0]
    assert definition.endswith("by the published rule. 2 × task.")
    shown = " ".join(claims_markdown(TABLE, CLAIMS).split())  # in a notebook
    assert "by the published rule. 2 × task: 0.30 (toy-mrpc) to 0.40 (toy-qqp)." in shown


def test_the_page_says_which_encoder_has_too_few_runs_for_verdicts():
    for runs, says in ((1, True), (3, False)):
        others = {"MPNet": TABLE.assign(runs=runs)}
        page = claims_document({"pande2021": TABLE}, "offline", "figures", others)
        assert ("*inconclusive* on MPNet: too few runs." in " ".join(page.split())) == says


def test_notebooks_stand_in_the_order_of_the_runs_with_their_figures(tmp_path, monkeypatch):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    folders = Folders("offline")
    assert "has no executed copies" in error_of(write_index, "offline", ["03_test-toy-qqp"])
    for folder in (folders.notebooks, folders.provenance):
        folder.mkdir(parents=True)
    example, hidden = "01_extract-toy-mrpc-pretrained", "01_extract-toy-qqp-pretrained"
    runs = [example, "99_summary", "03_test-toy-qqp", "03_test-toy-mrpc"]
    for run in (hidden, *runs):
        (folders.notebooks / f"{run}.ipynb").touch()
    figures = {"figures": {"b-heads": {}, "a-layers": {}}}
    (folders.provenance / "03_test-toy-qqp.json").write_text(json.dumps(figures))
    lines = write_index("offline", [hidden, *runs]).read_text(encoding="utf-8").splitlines()
    assert lines[2] == MADE_UP
    assert lines[9].startswith("1. [Summary: ")
    assert lines[8] == "1. [3. Test: which heads have which roles?](notebooks/03_test-toy-qqp.ipynb)"
    extracted = f"- **1. Extract: score every head with every sieve** [toy-mrpc-pretrained](notebooks/{example}.ipynb)"
    assert extracted in lines
    copies = "[toy-qqp](notebooks/03_test-toy-qqp.ipynb) · [toy-mrpc](notebooks/03_test-toy-mrpc.ipynb)"
    assert lines[-2:] == [
        f"- **3. Test: which heads have which roles?** {copies}",
        "  - [b-heads](figures/b-heads.png) · [a-layers](figures/a-layers.png)",
    ]
