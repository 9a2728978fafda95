"""Hand-made CoNLL-U for the tests of trees and of mentions."""

from pathlib import Path

from analysis.texts.chains import Document, read_chains


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


def read_document(folder: Path, *sentences: str) -> Document:
    """The one document of hand-made sentences."""
    (only,) = read_chains([write(folder, conllu(*sentences))]).documents
    return only


def write(folder: Path, content: str, name: str = "trees.conllu") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path
