"""Hand-made CoNLL-U for the tests of trees and of mentions."""

from pathlib import Path


def conllu(*sentences: str) -> str:
    """CoNLL-U of sentences written a word per line: form, upos, xpos, head, relation and, if any, Entity."""
    text = ""
    for sentence in sentences:
        rows = [line.split() for line in sentence.strip().splitlines()]
        for number, (form, upos, xpos, head, relation, *entity) in enumerate(rows, 1):
            misc = f"Entity={entity[0]}" if entity else "_"
            text += "\t".join([str(number), form, "_", upos, xpos, "_", head, relation, "_", misc]) + "\n"
        text += "\n"
    return text


def write(folder: Path, content: str, name: str = "trees.conllu") -> Path:
    """The path of a new file with this content."""
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path
