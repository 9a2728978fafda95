"""Hand-made CoNLL-U for the tests of trees and of mentions."""

from pathlib import Path


def conllu(*sentences: str) -> str:
    """CoNLL-U of sentences written a word per line: form, upos, xpos, head, relation and, if any, Entity."""
    return "".join(f"{_sentence(lines)}\n" for lines in sentences)


def _sentence(lines: str) -> str:
    rows = [line.split() for line in lines.strip().splitlines()]
    return "".join(_row(number, *row) for number, row in enumerate(rows, 1))


def _row(number: int, form: str, upos: str, xpos: str, head: str, relation: str, entity: str = "") -> str:
    misc = f"Entity={entity}" if entity else "_"
    return "\t".join([str(number), form, "_", upos, xpos, "_", head, relation, "_", misc]) + "\n"


def write(folder: Path, content: str, name: str = "trees.conllu") -> Path:
    """The path of a new file with this content."""
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path
