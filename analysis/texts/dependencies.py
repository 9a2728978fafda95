"""Treebanks as tables of words, with Stanford-like relations and fixed-offset baselines for scoring a head."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from analysis.errors import InputError
from analysis.files import expand, write_text
from analysis.texts.folders import files_of
from analysis.texts.passages import bundled_documents
from analysis.texts.syntax import CONLLU
from analysis.texts.treebank import LEFT_OUT, Word, paragraphs, read_sentences

# Clark 2019 does not try +3; SYMMETRIC does. An offset of 0 gives the word itself.
OFFSETS = (-3, -2, -1, 0, 1, 2)
SYMMETRIC = (-3, -2, -1, 0, 1, 2, 3)
POSSESSIVE_MARKS = frozenset({"'s", "’s", "'", "’", "s'", "s’"})


class Treebank(NamedTuple):
    """The words of CoNLL-U files, and how many multiword tokens and empty nodes were left out, with their entities.

    `words` has a row per syntactic word: document, sentence (0-based, over all files), word (0-based, in its sentence),
    length (words of the sentence), and the fields of `Word`.
    """

    words: pd.DataFrame
    left_out: dict[str, int]


def read_trees(files: Iterable[str | Path]) -> Treebank:
    """The words of CoNLL-U files."""
    rows, number, left_out = [], 0, Counter(dict.fromkeys(LEFT_OUT.values(), 0))
    for path in map(expand, files):
        sentences = read_sentences(path)
        for sentence, (document, _) in zip(sentences, paragraphs(sentences, path), strict=True):
            length = len(sentence.words)
            rows += [(document, number, index, length, *word) for index, word in enumerate(sentence.words)]
            left_out.update(sentence.left_out)
            number += 1
    columns = ["document", "sentence", "word", "length", *Word._fields]
    return Treebank(pd.DataFrame(rows, columns=columns), dict(left_out))


def conllu_files(names: Sequence[str], folder: Path, n: int, split: str, seed: int) -> list[Path]:
    """The CoNLL-U files with these names or in these folders; without names, a new file of bundled documents."""
    if not names:
        path = folder / f"bundled-{split}{CONLLU}"
        write_text(path, bundled_documents(n, split, seed))
        return [path]
    files = []
    for path in map(expand, names):
        members = files_of(path, {CONLLU}, "*") if path.is_dir() else [path]
        if not members:
            raise InputError(f"{path} holds no .conllu file: name a CoNLL-U file or a folder of them")
        files += members
    return files


Condition = Callable[[pd.DataFrame], pd.Series]


def relation_is(*relations: str) -> Condition:
    """Words with exactly one of these relations: `nsubj` does not include `nsubj:pass`."""
    return lambda words: words["relation"].isin(relations)


def _infinitival(words: pd.DataFrame) -> pd.Series:
    """`to` before a verb: `aux` in Stanford Dependencies, `mark` in Universal Dependencies."""
    return relation_is("mark")(words) & (words["xpos"] == "TO")


# The words that count for a relation. A name that is also a UD relation means that relation without its subtypes.
# `prep` and `pobj` have arcs that UD does not have; they are rebuilt from adpositions.
CONDITIONS: dict[str, Condition] = {
    "all": lambda words: words["relation"].notna(),
    "all but punct": lambda words: words["relation"] != "punct",
    "case": lambda words: relation_is("case")(words) & (words["upos"] == "ADP"),
    "possessive": lambda words: relation_is("case")(words) & words["form"].isin(POSSESSIVE_MARKS),
    "advmod": lambda words: words["relation"].str.startswith("advmod"),
    "aux": lambda words: relation_is("aux")(words) | _infinitival(words),
    "mark": lambda words: relation_is("mark")(words) & ~_infinitival(words),
    "compound+flat": relation_is("compound", "flat"),
    "det+det:predet": relation_is("det", "det:predet"),
    "obl:unmarked": relation_is("obl:unmarked", "obl:tmod", "obl:npmod"),
    "nmod:unmarked": relation_is("nmod:unmarked", "nmod:tmod", "nmod:npmod"),
    **{
        relation: relation_is(relation)
        for relation in """det compound nsubj nsubj:pass amod obj iobj nummod cc conj nmod:poss aux:pass cop ccomp
        xcomp advcl appos acl acl:relcl compound:prt""".split()
    },
}

# The name in Table 1 of Clark 2019, if the relation has a counterpart there.
STANFORD = {
    "all": "all", "prep": "prep", "pobj": "pobj", "det": "det", "compound": "nn", "nsubj": "nsubj",
    "nsubj:pass": "nsubjpass", "amod": "amod", "obj": "dobj", "iobj": "iobj", "advmod": "advmod", "aux": "aux",
    "aux:pass": "auxpass", "nummod": "num", "cc": "cc", "conj": "conj", "nmod:poss": "poss",
    "possessive": "possessive", "cop": "cop", "mark": "mark", "ccomp": "ccomp", "xcomp": "xcomp",
    "advcl": "advcl", "appos": "appos", "acl:relcl": "rcmod", "acl": "partmod", "obl:unmarked": "tmod",
    "nmod:unmarked": "npadvmod", "compound:prt": "prt",
}  # fmt: skip


def arcs(words: pd.DataFrame, possessive: bool = True) -> pd.DataFrame:
    """The arcs on which each relation is scored: relation, sentence, word, head, length (Clark 2019, 4.2).

    A head's prediction for `word` (from 0) is right if it equals `head` (0 is ROOT, else from 1). A word has an arc for
    every relation of CONDITIONS that it counts for. `prep` and `pobj` are rebuilt from the first adposition of a word:
    pobj from the word to the adposition, prep from the adposition to the word's head. With `possessive`, the prediction
    for `'s` is scored against the possessor's head, since attention treats the clitic as the dependent; this also holds
    for `'` and at the end of a sentence, where the authors' code fails.
    """
    dependents = {relation: words[condition(words)] for relation, condition in CONDITIONS.items()}
    if possessive:
        possessors = dependents["nmod:poss"]
        next_forms = words.groupby("sentence")["form"].shift(-1)[possessors.index]
        moved = possessors["word"] + next_forms.isin(POSSESSIVE_MARKS)
        dependents["nmod:poss"] = possessors.assign(word=moved)
    dependents |= _prepositions(words)
    columns = ["relation", "sentence", "word", "head", "length"]
    tables = [rows.assign(relation=relation)[columns] for relation, rows in dependents.items() if len(rows)]
    return pd.concat(tables, ignore_index=True)


def _prepositions(words: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Stanford's prep and pobj: a word's first adposition c gives the arcs (word, c) and (c, word's head)."""
    first = words[CONDITIONS["case"](words)].drop_duplicates(["sentence", "head"])
    nouns = words.assign(noun=words["word"] + 1)[["sentence", "noun", "head"]]
    pairs = first.rename(columns={"head": "noun"}).merge(
        nouns, on=["sentence", "noun"], validate="one_to_one"
    )
    return {"prep": pairs, "pobj": pairs.assign(word=pairs["noun"] - 1, head=pairs["word"] + 1)}


def fixed_offset(words: pd.DataFrame, offset: int) -> Int[np.ndarray, " word"]:
    """The head (0 is ROOT, else from 1) that lies `offset` words after each word; `words` may be arcs.

    A head outside the sentence is moved to ROOT or to the last word, as in the authors' code.
    """
    return np.clip((words["word"] + 1 + offset).to_numpy(), 0, words["length"].to_numpy())


def offset_table(arcs: pd.DataFrame, offsets: Sequence[int] = OFFSETS) -> pd.DataFrame:
    """The accuracy of each fixed offset on each relation (Clark 2019, 4.2): relation, n (arcs), offset, accuracy."""
    correct = pd.DataFrame(
        {offset: fixed_offset(arcs, offset) == arcs["head"].to_numpy() for offset in offsets}
    )
    accuracy = correct.groupby(arcs["relation"].to_numpy(), sort=False).mean()
    table = accuracy.rename_axis(index="relation", columns="offset").stack().rename("accuracy").reset_index()
    table.insert(1, "n", table["relation"].map(arcs["relation"].value_counts()))
    return table


def best_offsets(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `offset_table` with the best offset of each relation; of equally good ones, the larger."""
    ranked = table.sort_values(["accuracy", "offset"], kind="stable").drop_duplicates("relation", keep="last")
    return ranked.sort_index().reset_index(drop=True)


def uas(predicted: Int[np.ndarray, " word"], gold: pd.DataFrame, punctuation: bool = False) -> float:
    """Unlabelled attachment score: the share of words of a treebank whose predicted head is right (Clark 2019, 5).

    A head is 0 (ROOT) or counts from 1. Words with the gold relation `punct` count only with `punctuation`.
    """
    correct = predicted == gold["head"].to_numpy()
    counted = np.full(len(gold), True) if punctuation else (gold["relation"] != "punct").to_numpy()
    return float(correct[counted].mean())


def right_branching(words: pd.DataFrame) -> Int[np.ndarray, " word"]:
    """The next word as the head of every word; that of the last word is itself (Clark 2019, 5)."""
    return fixed_offset(words, 1)
