"""Dependencies for scoring the argmax of a head: Stanford-like relations and fixed-offset baselines."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Int

# Clark 2019 does not try +3; SYMMETRIC does. An offset of 0 gives the word itself.
OFFSETS = (-3, -2, -1, 0, 1, 2)
SYMMETRIC = (-3, -2, -1, 0, 1, 2, 3)
RIGHT_BRANCHING = 1
ROOT = 0
NOWHERE = -1  # a prediction that differs from every gold head

POSSESSIVE_MARKS = frozenset({"'s", "’s", "'", "’", "s'", "s’"})

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
    """The arcs on which each relation is scored: relation, sentence, word, head, length.

    `words` is that of `treebank.read_trees`. An arc is right if the head predicted for `word` (from 0) equals `head`
    (0 is ROOT, else from 1). A word has an arc for every relation that it counts for, including `all`. With
    `possessive`, if `'s` follows a possessor (nmod:poss), the prediction for `'s` is scored against the possessor's
    head, since attention treats the clitic as the dependent. This also holds at the end of a sentence and for `'`,
    where the authors' code fails. `prep` and `pobj` are rebuilt, one each for a word with adpositions, from its first
    one: pobj from the word to the adposition, prep from the adposition to the word's head. Source: Clark 2019, 4.2;
    CONDITIONS lists the relations of Universal Dependencies that replace Stanford's.
    """
    dependents = {relation: words[condition(words)] for relation, condition in CONDITIONS.items()}
    if possessive:
        dependents["nmod:poss"] = _moved_to_mark(dependents["nmod:poss"], words)
    dependents |= _prepositions(words)
    columns = ["relation", "sentence", "word", "head", "length"]
    tables = [rows.assign(relation=relation)[columns] for relation, rows in dependents.items() if len(rows)]
    return pd.concat(tables, ignore_index=True)


def _moved_to_mark(possessors: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """The possessors; if a possessive mark follows, its position replaces that of the possessor."""
    next_forms = words.groupby("sentence")["form"].shift(-1)
    before_mark = next_forms[possessors.index].isin(POSSESSIVE_MARKS)
    return possessors.assign(word=possessors["word"] + before_mark)


def _prepositions(words: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Stanford's prep and pobj: a word's first adposition c gives the arcs (word, c) and (c, word's head)."""
    first = words[CONDITIONS["case"](words)].drop_duplicates(["sentence", "head"])
    nouns = words.assign(noun=words["word"] + 1)[["sentence", "noun", "head"]]
    pairs = first.rename(columns={"head": "noun"}).merge(
        nouns, on=["sentence", "noun"], validate="one_to_one"
    )
    return {"prep": pairs, "pobj": pairs.assign(word=pairs["noun"] - 1, head=pairs["word"] + 1)}


def fixed_offset(words: pd.DataFrame, offset: int, clamp: bool = True) -> Int[np.ndarray, " word"]:
    """The head (0 is ROOT, else from 1) that lies `offset` words after each word; `words` may be arcs.

    `clamp` moves a head outside the sentence to ROOT or the last word, as in the code of Clark et al. Otherwise
    it is NOWHERE and ROOT is never predicted, since attention heads cannot predict ROOT.
    """
    target = (words["word"] + 1 + offset).to_numpy()
    length = words["length"].to_numpy()
    if clamp:
        return np.clip(target, ROOT, length)
    return np.where((target > ROOT) & (target <= length), target, NOWHERE)


def offset_table(arcs: pd.DataFrame, offsets: Sequence[int] = OFFSETS, clamp: bool = True) -> pd.DataFrame:
    """Accuracy of every fixed offset on every relation that has arcs: relation, n, offset, accuracy.

    Accuracies are proportions of the relation's arcs. Source: Clark 2019, 4.2 (its baseline in Table 1).
    """
    correct = pd.DataFrame(
        {offset: fixed_offset(arcs, offset, clamp) == arcs["head"].to_numpy() for offset in offsets}
    )
    accuracy = correct.groupby(arcs["relation"].to_numpy(), sort=False).mean()
    table = accuracy.rename_axis(index="relation", columns="offset").stack().rename("accuracy").reset_index()
    table.insert(1, "n", table["relation"].map(arcs["relation"].value_counts()))
    return table


def best_offsets(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `offset_table` with each relation's best offset; of equal offsets, the larger one."""
    ranked = table.sort_values(["accuracy", "offset"], kind="stable").drop_duplicates("relation", keep="last")
    return ranked.sort_index().reset_index(drop=True)


def uas(predicted: Int[np.ndarray, " word"], gold: pd.DataFrame, punctuation: bool = False) -> float:
    """Unlabelled attachment score: the proportion of words whose predicted head is right.

    `predicted` has a head (0 is ROOT, else from 1) for every row of `gold`, the words of a treebank. Words
    with the gold relation `punct` count only with `punctuation`; ROOT as a head counts. Source: Clark 2019, 5.
    """
    correct = predicted == gold["head"].to_numpy()
    counted = np.full(len(gold), True) if punctuation else (gold["relation"] != "punct").to_numpy()
    return float(correct[counted].mean())


def right_branching(words: pd.DataFrame) -> Int[np.ndarray, " word"]:
    """The head of every word is the next word; that of the last word is itself. Source: Clark 2019, 5."""
    return fixed_offset(words, RIGHT_BRANCHING)
