"""Grammatical relations and word tags of texts: gold, from a CoNLL-U file, or from a spaCy pipeline."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import conllu

from analysis.errors import InputError
from analysis.files import expand, read_text, suffix
from analysis.texts.examples import Example, Relation, Tag, as_sequences
from analysis.texts.pipelines import Parse, pipeline_parses

Relations = Mapping[str, Sequence[Relation]]
UNTAGGED = ("", "_")  # marks of an unknown part of speech
# The paper calls UD's `obj` dobj; the other names on the left are those of spaCy's English models.
SAME_RELATION = {"obj": "dobj", "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass", "auxpass": "aux:pass"}
REVERSED = "_reversed"  # the end of the name of a relation from head to dependent
RELATIONS = ("nsubj", "dobj", "amod", "advmod")  # the syntactic roles of Pande 2021
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

    `parser` is `gold` (the relations of the examples themselves), a CoNLL-U file with sentences of the same texts, or a
    spaCy pipeline (package or folder). With a folder as `cache`, spaCy parses each set of texts once. An example with
    choices has the relations of each of its sequences (see `as_sequences`). Raises InputError for missing gold
    relations, a text that is not in the file, broken CoNLL-U or a parser that is not installed.
    """
    return _of_texts(examples, parser, cache, "relations", relations_of)


def relations_of(found: Parse, text: int = 0) -> list[Relation]:
    """The relations of a parse, which is that of the text of this number in its example."""
    return [Relation(canonical(label), text, (a, b), (c, d)) for label, a, b, c, d in found.arcs]


def tags(
    examples: Sequence[Example], parser: str | Path = "gold", cache: str | Path | None = None
) -> dict[str, tuple[Tag, ...]]:
    """The universal part of speech of every word of every example, by its id, from the same parse as `parse`.

    Raises InputError as `parse` does, and for a parser that gives a word no part of speech.
    """
    found = _of_texts(examples, parser, cache, "tags", _tags_of)
    if str(parser) != "gold":
        for name, words_of in found.items():
            if any(tag.upos in UNTAGGED for tag in words_of):
                raise InputError(f"{parser} gives no part of speech of a word of {name}: name another parser")
    return found


def _tags_of(found: Parse, text: int) -> list[Tag]:
    return [Tag(upos, text, (start, end)) for upos, start, end in found.tags]


def _of_texts(
    examples: Sequence[Example],
    parser: str | Path,
    cache: str | Path | None,
    kind: str,
    read: Callable[[Parse, int], list],
) -> dict[str, tuple]:
    """The gold attribute `kind` of every example, or what `read` makes of the parse and the number of each text."""
    sequences = as_sequences(examples)
    if str(parser) == "gold":
        for example in sequences:
            if getattr(example, kind) is None:
                raise InputError(
                    f"{example.id} has no gold {kind}: name a spaCy pipeline or a CoNLL-U file as parser"
                )
        return {example.id: getattr(example, kind) for example in sequences}
    path = expand(parser)
    if suffix(path) == ".conllu":
        parses = _conllu_parses(path)
    else:
        texts = sorted({text for example in sequences for text in example.texts})
        parses = pipeline_parses(str(path), texts, cache)
    return {
        example.id: tuple(
            item for index, text in enumerate(example.texts) for item in read(parses(text), index)
        )
        for example in sequences
    }


def read_conllu(path: Path) -> list[conllu.TokenList]:
    """The sentences of a CoNLL-U file; raises InputError naming the file and, if it is known, the sentence."""
    return parse_conllu(read_text(path), str(path))


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


def _conllu_parses(path: Path) -> Callable[[str], Parse]:
    sentences = {sentence_text(each): sentence_parse(each, str(path)) for each in read_conllu(path)}

    def parsed(text: str) -> Parse:
        if text not in sentences:
            raise InputError(
                f"{path} has no sentence with the text {text[:60]!r}: parse it or use another parser"
            )
        return sentences[text]

    return parsed


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


def sentence_parse(sentence: conllu.TokenList, place: str) -> Parse:
    """The parse of one sentence (see `_word_spans` for multiword tokens); raises InputError naming the place."""
    name = f"{place}, sentence {sentence.metadata.get('sent_id', sentence_text(sentence)[:40])}"
    spans = _word_spans(sentence, name)
    words = {word["id"]: word for word in sentence if isinstance(word["id"], int)}
    for number, word in words.items():
        if word["head"] != 0 and word["head"] not in spans:
            raise InputError(
                f"{name}: word {number} has head {word['head']}, which is no word: mend the file"
            )
    below = [word for word in words.values() if word["head"] != 0]
    arcs = [(word["deprel"], *spans[word["id"]], *spans[word["head"]]) for word in below]
    return Parse(arcs, [(words[number]["upos"] or "", *span) for number, span in spans.items()])


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
        # `don't` = do + n't: each word has its part of the span. Words that are spelled otherwise share the span.
        divides = "".join(words[member] for member in members) == token["form"]
        for member in members:
            end = start + len(words[member]) if divides else position
            spans[member] = (start, end)
            start = end if divides else start
    return spans
