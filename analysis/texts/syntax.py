"""Grammatical relations and word tags of texts: gold, from a CoNLL-U file, or from a spaCy pipeline."""

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path

from tqdm import tqdm

from analysis.cache import digest, record_use
from analysis.errors import InputError
from analysis.files import expand, read_text, suffix, write_text
from analysis.texts.examples import Example, Parse, Relation, Tag, as_sequences
from analysis.texts.treebank import CONLLU, read_sentences

FORMAT = "arcs, tags"  # of the cache; files of another format have other names
AUXILIARY = frozenset({"aux", "aux:pass", "auxpass", "cop"})  # relations of auxiliaries
NEGATIONS = frozenset({"not", "n't", "nt", "n’t"})
# The Penn Treebank tags of each universal part of speech, for pipelines that give no other.
PENN = {
    "NOUN": "NN NNS", "PROPN": "NNP NNPS", "ADJ": "JJ JJR JJS AFX", "ADV": "RB RBR RBS WRB",
    "VERB": "VB VBD VBG VBN VBP VBZ", "AUX": "MD", "PRON": "PRP PRP$ WP WP$ WDT EX", "DET": "DT PDT", "PART": "TO POS",
    "ADP": "IN RP", "CCONJ": "CC", "NUM": "CD", "INTJ": "UH", "PUNCT": ". , : `` '' HYPH NFP -LRB- -RRB-",
    "SYM": "$ SYM #", "X": "FW GW ADD XX LS",
}  # fmt: skip
UPOS = {tag: upos for upos, tags in PENN.items() for tag in tags.split()}


def pipeline_parses(pipeline: str, texts: Sequence[str], cache: str | Path | None) -> dict[str, Parse]:
    """The parse of each text by a spaCy pipeline (package or folder), kept as a file in the folder `cache`."""
    if cache is None:
        return _parse_texts(pipeline, texts)
    path = Path(cache) / f"{digest([FORMAT, pipeline_digest(pipeline), texts])}.json"
    if not path.exists():
        record_use(computed=True)  # reading one is not recorded: the rest of the run takes longer
        write_text(path, json.dumps(_parse_texts(pipeline, texts)))
    return {text: Parse(*parse) for text, parse in json.loads(read_text(path)).items()}


def parser_name(parser: str | Path) -> str:
    """A parser in provenance: gold, the name of a CoNLL-U file, or a pipeline with its version and digest."""
    path = expand(parser)
    if str(parser) == "gold" or suffix(path) == ".conllu":
        return path.name
    meta = _load(str(path)).meta
    return f"{meta['lang']}_{meta['name']} {meta['version']} {pipeline_digest(str(path))[:12]}"


def pipeline_digest(pipeline: str) -> str:
    """The SHA-256 of the names and contents of a pipeline's files, and of the version of spaCy that reads them."""
    sha256 = hashlib.sha256(importlib.metadata.version("spacy").encode())
    folder = _load(pipeline).path
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        sha256.update(f"{path.relative_to(folder).as_posix()} {path.stat().st_size} ".encode())
        sha256.update(path.read_bytes())
    return sha256.hexdigest()


@lru_cache(maxsize=1)  # a corpus is parsed in many parts
def _load(pipeline: str):
    import spacy

    try:
        return spacy.load(pipeline, exclude=["ner", "lemmatizer"])
    except Exception as error:  # of any type: the name may be that of a package of another kind
        raise InputError(
            f"the spaCy pipeline {pipeline!r} cannot be loaded: install it (python -m spacy download "
            f"{Path(pipeline).name}) or name a pipeline folder"
        ) from error


def _parse_texts(pipeline: str, texts: Sequence[str]) -> dict[str, Parse]:
    nlp = _load(pipeline)
    bar = tqdm(nlp.pipe(texts, batch_size=64), "parsing", len(texts), leave=None, unit="text")
    parses = {}
    for text, document in zip(texts, bar, strict=True):
        if not document.has_annotation("DEP"):
            raise InputError(
                f"the spaCy pipeline {pipeline!r} gives no relations: none of its components "
                f"({', '.join(nlp.pipe_names) or 'none'}) is a parser: name another pipeline"
            )
        parses[text] = _parse(document)
    return parses


def _parse(document) -> Parse:
    words = [word for word in document if not word.is_space]
    spans = [(word.idx, word.idx + len(word)) for word in document]
    arcs = [(word.dep_, *spans[word.i], *spans[word.head.i]) for word in words if word.head.i != word.i]
    return Parse(arcs, [(_upos(word), *spans[word.i]) for word in words])


def _upos(word) -> str:
    """The universal part of speech of a word; without one, that of its Penn tag and its relation."""
    if word.pos_:
        return word.pos_
    if word.tag_.startswith("VB") and word.dep_ in AUXILIARY:
        return "AUX"
    if word.tag_ == "IN" and word.dep_ == "mark":
        return "SCONJ"
    if word.tag_ == "RB" and word.lower_ in NEGATIONS:
        return "PART"
    if word.tag_ == "DT" and not word.dep_.startswith("det"):
        return "PRON"
    return UPOS.get(word.tag_, "")


UNTAGGED = ("", "_")  # marks of an unknown part of speech


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
        parses = {sentence.text: sentence.parse for sentence in read_sentences(path)}
        if missing := [text for text in texts if text not in parses]:
            raise InputError(
                f"{path} has no sentence with the text {missing[0][:60]!r}: parse it or use another parser"
            )
    else:
        parses = pipeline_parses(str(path), texts, cache)
    by_text = {
        example.id: [getattr(parses[text], kind)(number) for number, text in enumerate(example.texts)]
        for example in sequences
    }
    return {name: tuple(chain.from_iterable(annotations)) for name, annotations in by_text.items()}
