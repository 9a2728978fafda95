"""Heads that find antecedents, compared with one map at a time; the halves of the table."""

import numpy as np
import pandas as pd
import pytest

from analysis.papers.clark2019.coreference import (
    AMONG,
    CANDIDATES,
    EVERYTHING,
    HELD_OUT,
    SAME_DATA,
    SYSTEMS,
    Texts,
    answers,
    antecedent_table,
    attended,
    attended_antecedents,
    coreference_table,
    fit,
    held_out_systems,
)
from analysis.papers.clark2019.published import BOTH_HALVES
from analysis.scores.attachment import halves
from analysis.scores.words import word_maps
from analysis.texts.chains import Document, read_documents


@pytest.fixture(scope="module")
def documents(bundled) -> list[Document]:
    return read_documents(bundled).documents


@pytest.fixture(scope="module")
def texts(encoder, documents) -> Texts:
    return fit(encoder, documents)


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_batched_answers_against_one_map_at_a_time(encoder, documents, candidates: str):
    texts = fit(encoder, documents, limit=60)
    assert 50 < max(map(len, texts.pieces)) <= 60
    found = attended_antecedents(encoder, texts, candidates)
    expected = [
        attended(word_maps(encoder, pieces)[:, :, 1:-1, 1:-1], text, candidates)
        for text, pieces in zip(texts.documents, texts.pieces, strict=True)
    ]
    assert found.shape[0] == len(answers(texts.documents))
    assert (found == np.moveaxis(np.concatenate(expected, axis=-1), -1, 0)).all()


def table_of(texts: Texts, layer: int) -> pd.DataFrame:
    """The table if one head of a layer is always right and the others never are."""
    by_head = np.zeros((len(answers(texts.documents)), 3, 4), bool)
    by_head[:, layer, 1] = True
    return antecedent_table(texts, by_head, resamples=99).set_index(["scored_on", "system"])


def test_table(texts):
    table = table_of(texts, 2)
    best = table.loc[[(EVERYTHING, SAME_DATA), (BOTH_HALVES, HELD_OUT)]]
    assert (best[["layer", "head", "all"]] == [2, 1, 1]).all(axis=None)
    rules = coreference_table(answers(texts.documents)).set_index("system")
    shown = table.loc[EVERYTHING].drop(index=SAME_DATA)
    assert (shown[["all", "n"]] == rules[["all", "n"]]).all(axis=None)
    again = table.loc[BOTH_HALVES].drop(index=HELD_OUT)
    assert again[["all", "low", "n"]].equals(shown[["all", "low", "n"]])


def test_the_scored_half_has_no_say_in_the_choice(texts):
    """Head (0, 1) is right only in one half, head (1, 0) only in the other: each is chosen where it is right and
    scored where it is wrong."""
    ruled = answers(texts.documents)
    chooses = halves(ruled["document"], 5)
    by_head = np.zeros((len(ruled), 2, 2), bool)
    by_head[~chooses, 0, 1] = by_head[chooses, 1, 0] = True
    found = antecedent_table(texts, by_head, resamples=99, seed=5).set_index("system")
    assert found.loc[HELD_OUT, ["all", "n"]].tolist() == [0, len(ruled)]
    assert found.loc[SAME_DATA, "all"] == pytest.approx(max(chooses.mean(), 1 - chooses.mean()))


def test_systems_of_several_readings(texts):
    """The rules once, and every reading's own head."""
    tables = {name: table_of(texts, layer).reset_index() for layer, name in enumerate(CANDIDATES)}
    found = held_out_systems(tables)
    assert found["system"].tolist() == [*SYSTEMS, *(f"best head among {words}" for words in AMONG.values())]
    assert found["layer"].tolist()[-3:] == [0, 1, 2]
