"""The house: a floor imports only from floors below it, and the light floors stay light."""

import subprocess
import sys

import pytest
from test_closure import MODULES, imported

from analysis.files import ROOT
from analysis.study.front_page import PAPERS

GROUND = ("errors", "files", "cache", "tables")  # modules, each from those before it
FLOORS = (
    "texts roles control_scores encoders scores statistics figures papers synthesis explorer study".split()
)
ROOF = ("run", "scale")
HEAVY = {"torch", "transformers", "accelerate", "datasets"}
LIGHT = [name for name in MODULES if (name + "..").split(".")[1] in ("texts", "statistics", "files")]


def storey(name: str) -> tuple[int, int]:
    """How high a module stands: its floor, and among papers the paper's place in the list."""
    parts = name.split(".")[1:]
    if not parts or parts[0] in ROOF:
        return len(GROUND) + len(FLOORS), 0
    if parts[0] in GROUND:
        return GROUND.index(parts[0]), 0
    assert parts[0] in FLOORS, f"{name} stands on no floor"
    paper = PAPERS.index(parts[1]) if parts[0] == "papers" and len(parts) > 1 else 0
    return len(GROUND) + FLOORS.index(parts[0]), paper


@pytest.mark.parametrize("name", MODULES)
def test_no_module_reaches_up(name: str):
    targets = imported(MODULES[name]) - {"analysis"}
    assert {target for target in targets if storey(target) > storey(name)} == set()


def test_no_circle():
    needs = {name: imported(path) - {name} for name, path in MODULES.items()}
    while ready := {name for name, targets in needs.items() if not targets}:
        needs = {name: targets - ready for name, targets in needs.items() if name not in ready}
    assert not needs, f"a circle of imports goes through {', '.join(sorted(needs))}"


def test_tables_and_claims_are_read_without_torch():
    """The light floors load it neither themselves nor through libraries, and a figure's library neither.

    The summary and the end of `make reproduce` read the claims of every paper.
    """
    code = f"import sys, importlib\nfor name in {LIGHT}: importlib.import_module(name)\n"
    code += f"assert not {HEAVY | {'matplotlib'}} & sys.modules.keys(), [*sys.modules]\n"
    code += "from analysis import Results, role_table\nfrom analysis.study.front_page import known_claims\n"
    code += "assert all(known_claims().values())\n"
    code += f"assert not {HEAVY} & sys.modules.keys(), [*sys.modules]"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=3600)
