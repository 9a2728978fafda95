"""The student's path (extract, score, test, compare) stays short: all code that its notebooks reach by imports."""

import ast

import pytest

from analysis.files import ROOT

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "analysis").rglob("*.py")
}
PATH = ("01_extract", "02_score", "03_test", "03_test_all", "04_compare")


def imported(path) -> set[str]:
    """The modules of the package that a file imports, also inside functions, with the packages around them."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    sources = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    names |= {node.module for node in sources}
    names |= {f"{node.module}.{alias.name}" for node in sources for alias in node.names}
    prefixes = {
        name[:place] for name in names for place in range(len(name) + 1) if name[place:][:1] in ("", ".")
    }
    return prefixes & {*MODULES}


def reached(waiting: set[str], ends: frozenset[str] = frozenset()) -> set[str]:
    """These modules and all that they import, also through others, but not through those of the rooms `ends`."""
    modules: set[str] = set()
    while waiting := waiting - modules:
        modules |= waiting
        followed = (name for name in waiting if not {*name.split(".")[1:2]} & ends)
        waiting = set().union(*(imported(MODULES[name]) for name in followed))
    return modules


@pytest.mark.parametrize(("notebooks", "most"), [(PATH, 6_200), (("03_test",), 2_600)])
def test_what_the_notebooks_import_stays_short(notebooks: tuple[str, ...], most: int):
    modules = reached(set().union(*(imported(ROOT / "notebooks" / f"{name}.py") for name in notebooks)))
    lines = sum(len(MODULES[name].read_text(encoding="utf-8").splitlines()) for name in modules)
    assert lines <= most


def test_statistics_read_numbers_and_neither_texts_nor_encoders():
    modules = reached({name for name in MODULES if name.startswith("analysis.statistics")})
    assert [name for name in modules if name.startswith(("analysis.texts", "analysis.encoders"))] == []
