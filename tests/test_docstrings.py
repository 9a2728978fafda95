"""Names that docstrings quote, such as those of modules and functions, are names of the code."""

import ast
import re
from pathlib import Path

from analysis.files import ROOT

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
NAME = re.compile(r"`(?!\w+\.(?:csv|mk|yaml)`)([a-z]\w*(?:\.\w+)*)(?:\(\))?`")  # not of a file
FIELDS = ("name", "id", "arg", "attr", "asname", "module", "value")  # of nodes: names and texts


def names_and_docstrings(source: str) -> tuple[set[str], list[str]]:
    """The names that code defines or reads, with the words of its texts, and its docstrings."""
    nodes, docstrings = [*ast.walk(ast.parse(source))], []
    for node in nodes:
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node, clean=False)):
            docstrings.append(docstring)
    texts = {getattr(node, field, None) for node in nodes for field in FIELDS if field in node._fields}
    texts = {text for text in texts if isinstance(text, str)} - {*docstrings}
    return set(re.findall(r"\w+", " ".join(texts))), docstrings


def test_names_in_docstrings_exist():
    """In the code, the notebooks or the tables.

    Of `module.name`, in the code of the module; of another one (`library.name`), the library in the file.
    """
    names, docstrings = {}, {}
    for path in (ROOT / "analysis").rglob("*.py"):
        names[path], docstrings[path] = names_and_docstrings(path.read_text(encoding="utf-8"))
    elsewhere = [*(ROOT / "notebooks").glob("*.py"), ROOT / "docs" / "tables.yaml"]
    words = set(re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in elsewhere)))
    modules = {part for path in names for part in path.relative_to(ROOT).with_suffix("").parts}
    known = words.union(modules, *names.values())

    def missing(path: Path, name: str) -> bool:
        *owners, last = name.split(".")
        inside = [
            read for file, read in names.items() if owners and owners[-1] in (file.stem, file.parent.name)
        ]
        if owners and not inside:
            return owners[0] not in names[path]
        return last not in (modules.union(*inside) if inside else known)

    quoted = {
        (path, name) for path, texts in docstrings.items() for text in texts for name in NAME.findall(text)
    }
    assert len(quoted) > 100
    gone = [f"{path.relative_to(ROOT)}: {name}" for path, name in sorted(quoted) if missing(path, name)]
    assert not gone
