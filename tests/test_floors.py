"""The house: a floor imports only from floors below it, and the light floors stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.files import ROOT
from analysis.study.front_page import PAPERS

PACKAGE = ROOT / "analysis"
GROUND = ("errors", "files", "cache", "tables")  # modules, each from those before it
FLOORS = (
    "texts roles control_scores encoders scores statistics figures papers synthesis explorer study".split()
)
ROOF = ("run", "scale")
HEAVY = {"torch", "transformers", "accelerate", "datasets"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
LIGHT = [name for name in MODULES if (name + "..").split(".")[1] in ("texts", "statistics", "files")]


def imports(name: str) -> set[str]:
    """The modules that a module's import statements name, wherever they stand."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}, line {node.lineno}: modules import by full path"
            whole = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            names |= whole or {node.module}
    return names


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


def own_imports(name: str) -> set[str]:
    return {target for target in imports(name) if target in MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_no_module_reaches_up(name: str):
    targets = own_imports(name) - {"analysis"}
    assert {target for target in targets if storey(target) > storey(name)} == set()


def test_no_circle():
    needs = {name: own_imports(name) - {name} for name in MODULES}
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
