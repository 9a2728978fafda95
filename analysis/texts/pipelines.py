"""Parses of texts by spaCy pipelines, for `syntax`."""

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tqdm import tqdm

from analysis.cache import digest, record_use
from analysis.errors import InputError
from analysis.files import read_text, write_text
from analysis.texts.parses import Parse

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
    with suppress(ValueError, TypeError, AttributeError):  # missing (an InputError) or damaged
        return _read(path)
    record_use(computed=True)  # reading one is not recorded: the rest of the run takes longer
    write_text(path, json.dumps(_parse_texts(pipeline, texts)))
    return _read(path)


def _read(path: Path) -> dict[str, Parse]:
    return {text: Parse(*parse) for text, parse in json.loads(read_text(path)).items()}


def pipeline_name(pipeline: str) -> str:
    """A pipeline in provenance: its language, name and version, and the beginning of its digest."""
    meta = _load(pipeline).meta
    return f"{meta['lang']}_{meta['name']} {meta['version']} {pipeline_digest(pipeline)[:12]}"


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
