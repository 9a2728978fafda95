from pathlib import Path

import numpy as np
import pytest
from treebanks import read_document

from analysis.papers.clark2019 import coreference
from analysis.papers.clark2019.coreference import NOTHING, SAME_DATA, SYSTEMS, accuracies, choices, rule_hits
from analysis.scores.words import halves
from analysis.texts.chains import KINDS, Document, read_chains, truncated

# Mentions by row: 0 Ann (chain 1), 1 the cats (2), 2 a dog (3), 3 the cats (2), 4 her (1), 5 Ann (1), 6 it (3).
STORY = """
Ann  PROPN NNP 2 nsubj (1)
fed  VERB VBD 0 root
the  DET DT 4 det (2
cats NOUN NNS 2 obj 2)
and  CCONJ CC 7 cc
a    DET DT 7 det (3
dog  NOUN NN 4 conj 3)
;    PUNCT : 2 punct
the  DET DT 10 det (2
cats NOUN NNS 11 nsubj 2)
saw  VERB VBD 2 parataxis
her  PRON PRP 11 obj (1)
,    PUNCT , 15 punct
Ann  PROPN NNP 15 nsubj (1)
left VERB VBD 2 parataxis
it   PRON PRP 15 obj (3)
"""
ANAPHORS = [3, 4, 5, 6]
BOOTSTRAP = (0.05, 99, 0)  # alpha, resamples, seed


@pytest.fixture
def story(tmp_path: Path) -> Document:
    return read_document(tmp_path, STORY)


def test_candidates_sort_before_and_have_another_head(tmp_path: Path):
    """`Ann 's cat`: the mention `Ann` sorts before the whole, and `cat` alone has the head of the whole."""
    text = read_document(tmp_path, "Ann X NNP 3 nmod:poss (1)(2\n's X POS 1 case\ncat X NN 0 root (3)2)")
    assert text.mentions["string"].tolist() == ["ann", "ann 's cat", "cat"]
    first = [True, False, False]
    assert coreference.preceding(text).tolist() == [[False] * 3, first, first]
    assert coreference.either_side(text).tolist() == [[False, True, True], first, first]


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("nearest", [2, 3, 4, 5]),
        ("nearest, either side", [4, 3, 4, 5]),
        ("head match", [1, NOTHING, 0, NOTHING]),
        ("head match, else nearest", [1, 3, 0, 5]),
        ("rule-based", [1, 2, 0, 5]),
    ],
)
def test_choices(story: Document, system: str, expected: list[int]):
    assert choices(system, story)[ANAPHORS].tolist() == expected


def test_the_string_sieve_comes_before_the_head_sieve(tmp_path: Path):
    first = "red ADJ JJ 2 amod (1\ncats NOUN NNS 0 root 1)\nblue ADJ JJ 4 amod (2\ncats NOUN NNS 2 dep 2)"
    text = read_document(tmp_path, f"{first}\nRed ADJ JJ 6 amod (1\nCats NOUN NNS 2 dep 1)")
    assert choices("rule-based", text)[2] == 0
    assert choices("head match", text)[2] == 1


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ("he PRON PRP", "him PRON PRP", True),
        ("he PRON PRP", "her PRON PRP", False),
        ("Ann PROPN NNP", "her PRON PRP", True),
        ("cats NOUN NNS", "it PRON PRP", False),
        ("cats NOUN NNS", "they PRON PRP", True),
        ("you PRON PRP", "yourselves PRON PRP", False),
        ("I PRON PRP", "we PRON PRP", False),
        ("I PRON PRP", "he PRON PRP", False),
    ],
)
def test_the_feature_sieve(tmp_path: Path, first: str, second: str, agree: bool):
    text = read_document(tmp_path, f"{first} 0 root (1)\nours PRON PRP 1 dep (2)\n{second} 1 dep (1)")
    text.mentions.loc[1, "number"] = "another"  # so that the nearest mention never agrees with the second
    assert choices("rule-based", text)[2] == (0 if agree else 1)


def test_hits_and_accuracies_of_rules(story: Document):
    hits = rule_hits([story])
    assert hits["kind"].tolist() == ["nominal", "pronoun", "proper", "pronoun"]
    assert hits["start"].tolist() == [8, 11, 13, 15]
    assert hits["nearest"].tolist() == [False, False, True, False]
    assert hits["head match"].tolist() == [True, False, True, False]
    table = accuracies(hits, *BOOTSTRAP).set_index("system")
    expected = {"all": 0.5, "pronoun": 0, "proper": 1, "nominal": 1, "n": 4}
    assert table.loc["head match", [*expected]].to_dict() == expected


def test_readings_differ_in_their_candidates(story: Document):
    heads = story.mentions["head"].to_numpy()
    attention = np.zeros((len(story.words), len(story.words)))
    attention[heads, heads] = 0.5  # the mention itself is never a candidate
    attention[heads, 10] = 0.4  # a verb
    attention[heads[3], heads[5]] = 0.3  # a later mention is no candidate of the rules
    attention[heads[3], heads[1]] = 0.2  # the antecedent
    assert not coreference.head_hits(attention, story, "all_words")[0]
    assert coreference.head_hits(attention, story, "preceding_mention_heads")[0]


# all, pronoun, proper and nominal of each system, computed once on OntoGUM's 60 development and test documents.
TARGETS = {
    "nearest": [36.4, 42.0, 35.5, 15.5],
    "nearest, either side": [29.0, 33.8, 26.2, 13.4],
    "head match": [52.2, 49.7, 63.6, 49.5],
    "head match, else nearest": [70.3, 70.2, 79.4, 60.8],
    "rule-based": [76.9, 79.3, 79.4, 64.9],
}


def test_rules_on_ontogum(data_dir: Path):
    documents = read_chains(sorted((data_dir / "ontogum").glob("*/*.conllu"))).documents
    hits = rule_hits([truncated(text) for text in documents])
    assert hits["kind"].value_counts().to_dict() == {"pronoun": 376, "proper": 107, "nominal": 97}
    table = accuracies(hits, *BOOTSTRAP).set_index("system")[["all", *KINDS]]
    assert (100 * table).round(1).T.to_dict("list") == TARGETS


@pytest.fixture(scope="module")
def texts(tiny, bundled) -> coreference.Texts:
    return coreference.beginnings(tiny, read_chains([bundled]).documents, limit=60)


def test_heads_answer_for_each_anaphor_in_beginnings(tiny, texts):
    assert 50 < max(map(len, texts.pieces)) <= 60
    hits = coreference.hits_by_head(tiny, texts)
    assert hits.shape == (len(rule_hits(texts.documents)), tiny.layers, tiny.heads)


def test_the_scored_half_does_not_choose(texts):
    """Each of two heads is right in one half alone: it is chosen there and scored in the other."""
    by_rule = rule_hits(texts.documents)
    first_half = halves(by_rule["document"], 5)
    by_head = np.zeros((len(by_rule), 2, 2), bool)
    by_head[~first_half, 0, 1] = by_head[first_half, 1, 0] = True
    always = np.zeros_like(by_head)
    always[:, 1, 1] = True
    by_reading = dict(zip(coreference.CANDIDATES, (by_head, always), strict=True))
    table, gains = coreference.coreference_tables(texts, by_reading, resamples=99, seed=5)
    table = table.set_index("system")
    divided, planted = map(coreference.best_head_among, coreference.CANDIDATES)
    assert table.loc[[divided, planted], "all"].tolist() == [0, 1]
    larger_half = max(first_half.mean(), 1 - first_half.mean())
    assert table.loc[divided + SAME_DATA, "all"] == pytest.approx(larger_half)
    assert table.loc[planted + SAME_DATA, ["layer", "head", "all", "n"]].tolist() == [1, 1, 1, len(by_rule)]
    rules = accuracies(by_rule, *BOOTSTRAP).set_index("system")["all"]
    assert table.loc[[*SYSTEMS], "all"].tolist() == rules.tolist()
    gains = gains.pivot(index="system", columns="candidates", values="gain").loc[[*SYSTEMS]]
    assert gains["preceding_mention_heads"].tolist() == pytest.approx((1 - rules).tolist())
    assert gains["all_words"].tolist() == pytest.approx((-rules).tolist())
