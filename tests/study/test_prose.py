"""Executed copies of all profiles show the same prose: what holds for one encoder names the profile of its run."""

import ast
import re
from collections.abc import Iterator

import jupytext
import pytest

from analysis.study.parameters import source
from analysis.study.profiles import notebook_names

# A head by its name, an encoder, or the matching heads of MiniLM. Layers 5-9, say, are a range.
OF_ONE_ENCODER = re.compile(r"\bMiniLM|\bMPNet|\bthe two heads\b|(?:\bheads?|,|\band|\bor) \d{1,2}-\d{1,2}\b")
# Committed results, by the profile that made them.
NAMED = re.compile(r"glue-minilm|glue-mpnet")


def paragraphs(notebook: str) -> Iterator[str]:
    """The paragraphs of the Markdown cells, then the strings of the code cells that no run fills in."""
    for cell in jupytext.read(source(notebook)).cells:
        if cell.cell_type == "markdown":
            yield from (" ".join(text.split()) for text in re.split(r"\n\s*\n|\n(?=[-|] )", cell.source))
        else:
            tree = ast.parse(cell.source)
            filled = {
                part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
            }
            constants = (
                node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in filled
            )
            yield from (node.value for node in constants if isinstance(node.value, str))


@pytest.mark.parametrize("notebook", notebook_names())
def test_what_holds_for_one_encoder_names_its_profile(notebook: str):
    unnamed = [
        text for text in paragraphs(notebook) if OF_ONE_ENCODER.search(text) and not NAMED.search(text)
    ]
    assert unnamed == []
