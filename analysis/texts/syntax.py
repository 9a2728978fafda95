"""Grammatical relations and word tags of texts: gold, from a CoNLL-U file, or from a spaCy pipeline."""

from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path

from analysis.errors import InputError
from analysis.files import expand, suffix
from analysis.texts.examples import Example, Relation, Tag, as_sequences

CONLLU = ".conllu"
# Modules that read other parses than gold ones, imported when a parser is named.
TREEBANK, PIPELINES = "analysis.texts.treebank", "analysis.texts.pipelines"
UNTAGGED = ("", "_")  # marks of an unknown part of speech


def parser_name(parser: str | Path) -> str:
    """A parser in provenance: gold, the name of a CoNLL-U file, or a pipeline with its version and digest."""
    path = expand(parser)
    if str(parser) == "gold" or suffix(path) == CONLLU:
        return path.name
    return import_module(PIPELINES).pipeline_name(str(path))


def parse(
    examples: Sequence[Example], parser: str | Path = "gold", cache: str | Path | None = None
) -> dict[str, tuple[Relation, ...]]:
    """The grammatical relations of every example, by its id.

    `parser` is `gold` (the relations of the examples themselves), a CoNLL-U file with sentences of the same texts, or a
    spaCy pipeline (package or folder). With a folder as `cache`, spaCy parses each set of texts once. An example with
    choices has the relations of each of its sequences (see `as_sequences`).
    """
    return _annotations(examples, parser, cache, "relations")


def tags(
    examples: Sequence[Example], parser: str | Path = "gold", cache: str | Path | None = None
) -> dict[str, tuple[Tag, ...]]:
    """The universal part of speech of every word of every example, by its id, from the same parse as `parse`."""
    tagged = _annotations(examples, parser, cache, "tags")
    for name, words in tagged.items():
        if str(parser) != "gold" and any(tag.upos in UNTAGGED for tag in words):
            raise InputError(f"{parser} gives no part of speech of a word of {name}: name another parser")
    return tagged


def _annotations(
    examples: Sequence[Example], parser: str | Path, cache: str | Path | None, kind: str
) -> dict[str, tuple]:
    """The relations or tags (`kind`) of every example: its gold ones, or those of the parses of its texts."""
    sequences = as_sequences(examples)
    if str(parser) == "gold":
        for example in sequences:
            if getattr(example, kind) is None:
                raise InputError(
                    f"{example.id} has no gold {kind}: name a spaCy pipeline or a CoNLL-U file as parser"
                )
        return {example.id: getattr(example, kind) for example in sequences}
    texts = sorted({text for example in sequences for text in example.texts})
    path = expand(parser)
    if suffix(path) == CONLLU:
        parses = import_module(TREEBANK).parses_of(path, texts)
    else:
        parses = import_module(PIPELINES).pipeline_parses(str(path), texts, cache)
    by_text = {
        example.id: [getattr(parses[text], kind)(number) for number, text in enumerate(example.texts)]
        for example in sequences
    }
    return {name: tuple(chain.from_iterable(annotations)) for name, annotations in by_text.items()}
