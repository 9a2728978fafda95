"""Sentences as lines of CoNLL-U."""

from collections.abc import Iterator, Mapping, Sequence

from conllu.models import Token

from analysis.texts.bundled.grammar import Sentence, Word


def fused(words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """First and last position (0-based) of each run of words written together, such as `does` and `n't`."""
    joined = [
        before.span[1] == word.span[0] and word.upos != "PUNCT"
        for before, word in zip(words, words[1:], strict=False)
    ]
    start = 0
    for index, together in enumerate([*joined, False]):
        if not together:
            if start < index:
                yield start, index
            start = index + 1


def row(identifier: int | tuple, form: str, misc: Mapping[str, str], **columns: str | int) -> Token:
    """One line of a CoNLL-U file."""
    names = ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps")
    return Token(
        {"id": identifier, "form": form, **{name: columns.get(name) for name in names}, "misc": misc or None}
    )


def word_row(number: int, word: Word, misc: Mapping[str, str]) -> Token:
    """The line of a word, `number` from 1."""
    columns = {
        "lemma": word.lemma,
        "upos": word.upos,
        "xpos": word.xpos,
        "head": word.head,
        "deprel": word.label,
    }
    return row(number, word.form, misc, **columns)


def spacing(sentence: Sentence, word: Word) -> dict[str, str]:
    """The content of MISC about the space after a word."""
    return {} if sentence.text[word.span[1] : word.span[1] + 1] in {" ", ""} else {"SpaceAfter": "No"}


def rows(sentence: Sentence) -> Iterator[Token]:
    """The lines of a sentence: its words; a range line precedes each run of words written together."""
    words = sentence.words
    ranges = dict(fused(words))
    inside = {index for first, last in ranges.items() for index in range(first, last + 1)}
    for index, word in enumerate(words):
        if index in ranges:
            last = ranges[index]
            form = sentence.text[word.span[0] : words[last].span[1]]
            yield row((index + 1, "-", last + 1), form, spacing(sentence, words[last]))
        # Within a range, only the range line says whether a space follows.
        yield word_row(index + 1, word, {} if index in inside else spacing(sentence, word))


def entity_rows(sentence: Sentence, entities: Mapping[int, str]) -> Iterator[Token]:
    """The lines of a sentence, one per word, with the `Entity` brackets by the word's position (0-based)."""
    for index, word in enumerate(sentence.words):
        brackets = {"Entity": entities[index]} if index in entities else {}
        yield word_row(index + 1, word, brackets | spacing(sentence, word))
