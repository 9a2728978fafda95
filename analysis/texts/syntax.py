"""Grammatical relations of texts: gold, from a CoNLL-U file, or from a spaCy pipeline."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import conllu
from tqdm import tqdm

from analysis.errors import InputError
from analysis.files import expand, write_text
from analysis.texts.examples import Example, Relation

Relations = Mapping[str, Sequence[Relation]]
Arc = tuple[str, tuple[int, int], tuple[int, int]]
# Stanford and ClearNLP names on the left are what spaCy's own English models print; UD's `obj` is the
# direct object that the paper calls dobj.
SAME_RELATION = {"obj": "dobj", "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass", "auxpass": "aux:pass"}
# Universal Dependencies v2, with `dobj` for `obj`.
UNIVERSAL = frozenset(
    """acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated dobj
    expl fixed flat goeswith iobj list mark nmod nsubj nummod obl orphan parataxis punct reparandum vocative
    xcomp""".split()
)


def canonical(label: str) -> str:
    """One name for the same relation in different schemes: UD's `obj` is `dobj`."""
    return SAME_RELATION.get(label, label)


def parse(
    examples: Sequence[Example], parser: str | Path = "gold", cache: str | Path | None = None
) -> dict[str, tuple[Relation, ...]]:
    """The grammatical relations of every example, by its id.

    `parser` is `gold` (relations that came with the examples), a CoNLL-U file whose sentences' texts are the
    examples' texts, or a spaCy pipeline (package or folder). With a folder as `cache`, spaCy parses each set
    of texts once. Raises InputError for missing gold relations, a text that the file lacks, broken CoNLL-U
    or a parser that is not installed.
    """
    if str(parser) == "gold":
        return {example.id: _gold(example) for example in examples}
    path = expand(parser)
    if path.suffix == ".conllu":
        return _assemble(examples, _conllu_arcs(path))
    return _assemble(examples, _spacy_arcs(str(path), examples, cache))


def _gold(example: Example) -> tuple[Relation, ...]:
    if example.relations is None:
        raise InputError(
            f"{example.id} has no gold relations: name a spaCy pipeline or a CoNLL-U file as parser"
        )
    return example.relations


def _assemble(examples: Sequence[Example], arcs: Callable[[str], Iterable[Arc]]) -> dict[str, tuple]:
    return {
        example.id: tuple(
            Relation(canonical(label), index, dependent, head)
            for index, text in enumerate(example.texts)
            for label, dependent, head in arcs(text)
        )
        for example in examples
    }


def read_conllu(path: Path) -> list[conllu.TokenList]:
    """The sentences of a CoNLL-U file; raises InputError naming the file and, where known, the sentence."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not readable as CoNLL-U: {error}") from error
    return parse_conllu(text, str(path))


def parse_conllu(text: str, place: str) -> list[conllu.TokenList]:
    """The sentences of a text in CoNLL-U; raises InputError naming the place it comes from."""
    try:
        sentences = conllu.parse(text)
    except conllu.exceptions.ParseException as error:
        raise InputError(f"{place} is not readable as CoNLL-U: {' '.join(str(error).split())}") from error
    if not sentences:
        raise InputError(f"{place} holds no sentence: give a CoNLL-U file")
    short = [
        word for sentence in sentences for word in sentence if len(word) < len(conllu.parser.DEFAULT_FIELDS)
    ]
    if short:
        raise InputError(
            f"{place}: the line {list(short[0].values())} lacks columns: CoNLL-U has 10, divided by tabs"
        )
    return sentences


def _conllu_arcs(path: Path) -> Callable[[str], Iterable[Arc]]:
    sentences = {sentence_text(s): sentence_arcs(s, path) for s in read_conllu(path)}

    def arcs(text: str) -> Iterable[Arc]:
        if text not in sentences:
            raise InputError(
                f"{path} has no sentence with the text {text[:60]!r}: parse it or use another parser"
            )
        return sentences[text]

    return arcs


def sentence_text(sentence: conllu.TokenList) -> str:
    """The text of a sentence: its `# text` comment, or its words with the blanks that MISC asks for."""
    if "text" in sentence.metadata:
        return sentence.metadata["text"].strip()
    return "".join(
        word["form"] + ("" if (word["misc"] or {}).get("SpaceAfter") == "No" else " ")
        for word in surface(sentence)
    ).strip()


def surface(sentence: conllu.TokenList) -> list[conllu.Token]:
    """The tokens as written: multiword tokens instead of the words they contain, no empty nodes."""
    covered: set[int] = set()
    tokens = []
    for token in sentence:
        if isinstance(token["id"], tuple) and token["id"][1] == "-":
            covered.update(range(token["id"][0], token["id"][2] + 1))
            tokens.append(token)
        elif isinstance(token["id"], int) and token["id"] not in covered:
            tokens.append(token)
    return tokens


def sentence_arcs(sentence: conllu.TokenList, path: Path) -> list[Arc]:
    """The arcs of one sentence by character span; words inside a multiword token share or divide its span."""
    name = f"{path}, sentence {sentence.metadata.get('sent_id', sentence_text(sentence)[:40])}"
    spans = _word_spans(sentence, name)
    arcs = []
    for word in sentence:
        if not isinstance(word["id"], int) or word["head"] == 0:
            continue
        if word["head"] not in spans:
            raise InputError(
                f"{name}: word {word['id']} has head {word['head']}, which is no word: mend the file"
            )
        arcs.append((word["deprel"], spans[word["id"]], spans[word["head"]]))
    return arcs


def _word_spans(sentence: conllu.TokenList, name: str) -> dict[int, tuple[int, int]]:
    text, position, spans = sentence_text(sentence), 0, {}
    words = {word["id"]: word["form"] for word in sentence if isinstance(word["id"], int)}
    for token in surface(sentence):
        start = text.find(token["form"], position)
        if start < 0:
            raise InputError(f"{name}: {token['form']!r} is not in its text: mend the # text line")
        position = start + len(token["form"])
        if isinstance(token["id"], int):
            spans[token["id"]] = (start, position)
            continue
        members = range(token["id"][0], token["id"][2] + 1)
        # `don't` = do + n't divides its span; where the words are not what is written, they share it.
        divides = "".join(words[member] for member in members) == token["form"]
        for member in members:
            end = start + len(words[member]) if divides else position
            spans[member] = (start, end)
            start = end if divides else start
    return spans


def _spacy_arcs(
    pipeline: str, examples: Sequence[Example], cache: str | Path | None
) -> Callable[[str], Iterable[Arc]]:
    texts = sorted({text for example in examples for text in example.texts})
    if cache is None:
        return _parse_texts(_load_spacy(pipeline), texts).__getitem__
    meta = _spacy_meta(pipeline)
    identity = json.dumps([FORMAT, meta["name"], meta["version"], meta.get("performance"), texts])
    path = Path(cache) / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
    if not path.exists():
        parsed = _parse_texts(_load_spacy(pipeline), texts)
        write_text(path, json.dumps({text: _packed(arcs) for text, arcs in parsed.items()}))
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is damaged: delete it") from error
    return lambda text: _unpacked(*stored[text])


FORMAT = (
    "labels, numbers"  # of the cache: few objects for a text, since Python's are slow to make and to keep
)


def _packed(arcs: Sequence[Arc]) -> tuple[str, list[int]]:
    return " ".join(label for label, *_ in arcs), [
        number for _, *spans in arcs for span in spans for number in span
    ]


def _unpacked(labels: str, numbers: Sequence[int]) -> list[Arc]:
    spans = zip(*[iter(numbers)] * 4, strict=True)
    return [(label, (a, b), (c, d)) for label, (a, b, c, d) in zip(labels.split(), spans, strict=True)]


@lru_cache(maxsize=1)
def _spacy_meta(pipeline: str) -> dict[str, Any]:
    """What a pipeline says of itself, without loading it."""
    import spacy

    folder = Path(pipeline)
    try:
        return spacy.util.get_model_meta(folder if folder.is_dir() else spacy.util.get_package_path(pipeline))
    except (OSError, ValueError, ImportError) as error:
        raise _no_pipeline(pipeline) from error


@lru_cache(maxsize=1)  # a corpus is parsed in many parts
def _load_spacy(pipeline: str):
    import spacy

    try:
        return spacy.load(pipeline, exclude=["ner", "lemmatizer", "attribute_ruler"])
    except (OSError, ValueError) as error:
        raise _no_pipeline(pipeline) from error


def _no_pipeline(pipeline: str) -> InputError:
    return InputError(
        f"the spaCy pipeline {pipeline!r} cannot be loaded: install it (python -m spacy download "
        f"{Path(pipeline).name}) or name a pipeline folder"
    )


def _parse_texts(nlp, texts: Sequence[str]) -> dict[str, list[Arc]]:
    documents = nlp.pipe(texts, batch_size=64)
    return {
        text: [
            (word.dep_, _span(word), _span(word.head))
            for word in document
            if word.head.i != word.i and not word.is_space
        ]
        for text, document in zip(
            texts, tqdm(documents, "parsing", len(texts), leave=None, unit="text"), strict=True
        )
    }


def _span(word) -> tuple[int, int]:
    return (word.idx, word.idx + len(word))
