"""The house: a floor imports only from floors below it, the light floors stay light, and the student's path short."""

import ast
import subprocess
import sys

import pytest

from analysis.files import ROOT
from analysis.study.claims import PAPERS

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "analysis").rglob("*.py")
}
PATH = ("01_extract", "02_score", "03_test", "03_test_all", "04_compare")  # extract, score, test, compare
GROUND = ("errors", "files", "cache", "tables")  # modules, each from those before it
FLOORS = "texts roles encoders scores statistics figures papers synthesis explorer study".split()
ROOF = ("run", "scale")
HEAVY = {"torch", "transformers", "accelerate", "datasets"}
LIGHT = [name for name in MODULES if (name + "..").split(".")[1] in ("texts", "statistics", "files")]


def imported(path) -> set[str]:
    """The modules of the package that a file imports, also inside functions, with the packages around them."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    sources = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    names |= {node.module for node in sources}
    names |= {f"{node.module}.{alias.name}" for node in sources for alias in node.names}
    parts = [name.split(".") for name in names]
    return {".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)} & {*MODULES}


def reached(waiting: set[str], ends: frozenset[str] = frozenset()) -> set[str]:
    """These modules and all that they import, also through others, but not through those of the rooms `ends`."""
    modules: set[str] = set()
    while waiting := waiting - modules:
        modules |= waiting
        followed = (name for name in waiting if not {*name.split(".")[1:2]} & ends)
        waiting = set().union(*(imported(MODULES[name]) for name in followed))
    return modules


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
    code += "from analysis import Results, role_table\nfrom analysis.study.claims import known_claims\n"
    code += "assert all(known_claims().values())\n"
    code += f"assert not {HEAVY} & sys.modules.keys(), [*sys.modules]"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=3600)


@pytest.mark.parametrize(("notebooks", "most"), [(PATH, 4_700), (("03_test",), 2_000)])
def test_what_the_notebooks_import_stays_short(notebooks: tuple[str, ...], most: int):
    """Modules count that every user imports, not those of one family of encoders or one source of texts."""
    modules = reached(set().union(*(imported(ROOT / "notebooks" / f"{name}.py") for name in notebooks)))
    lines = sum(len(MODULES[name].read_text(encoding="utf-8").splitlines()) for name in modules)
    assert lines <= most


def test_statistics_read_numbers_and_neither_texts_nor_encoders():
    modules = reached({name for name in MODULES if name.startswith("analysis.statistics")})
    assert [name for name in modules if name.startswith(("analysis.texts", "analysis.encoders"))] == []
