"""Heads that find antecedents, compared with one map at a time; truncated documents; the halves of the table."""

import numpy as np
import pytest
from treebanks import write

from analysis.encoders.models import load_encoder
from analysis.papers.clark2019.coreference import (
    AMONG,
    CANDIDATES,
    EVERYTHING,
    HALVES,
    HELD_OUT,
    SAME_DATA,
    SYSTEM_COLUMNS,
    SYSTEMS,
    answers,
    antecedent_table,
    attended,
    attended_antecedents,
    coreference_table,
    fit,
    held_out_systems,
)
from analysis.scores.attachment import halves
from analysis.scores.words import word_maps
from analysis.texts.bundled import bundled_documents
from analysis.texts.chains import read_documents


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("documents"), bundled_documents(4, "train", 0))
    return read_documents(path).documents


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_batched_answers_against_one_map_at_a_time(encoder, documents, candidates: str):
    texts = fit(encoder, documents, limit=60)
    found = attended_antecedents(encoder, texts, candidates, progress=False)
    expected = [
        attended(word_maps(encoder, pieces)[:, :, 1:-1, 1:-1], text, candidates)
        for text, pieces in zip(texts.documents, texts.pieces, strict=True)
    ]
    assert found.shape[0] == len(answers(texts.documents))
    assert (found == np.moveaxis(np.concatenate(expected, axis=-1), -1, 0)).all()


def test_table(encoder, documents):
    texts = fit(encoder, documents)
    ruled = answers(texts.documents)
    by_head = np.zeros((len(ruled), 3, 4), bool)
    by_head[:, 2, 1] = True
    table = antecedent_table(texts, by_head, resamples=99).set_index(["scored_on", "system"])
    best = table.loc[[(EVERYTHING, SAME_DATA), (HALVES, HELD_OUT)]]
    assert (best[["layer", "head", "all"]] == [2, 1, 1]).all(axis=None)
    rules = coreference_table(ruled).set_index("system")
    shown = table.loc[EVERYTHING].drop(index=SAME_DATA)
    assert (shown[["all", "n"]] == rules[["all", "n"]]).all(axis=None)
    assert shown["layer"].isna().all()
    again = table.loc[HALVES].drop(index=HELD_OUT)
    assert again[["all", "low", "n"]].equals(shown[["all", "low", "n"]])


def test_the_scored_half_has_no_say_in_the_choice(encoder, documents):
    """Head (0, 1) is right only in one half, head (1, 0) only in the other: each is chosen where it is right and
    scored where it is wrong."""
    texts = fit(encoder, documents)
    ruled = answers(texts.documents)
    chooses = halves(ruled["document"], 5)
    by_head = np.zeros((len(ruled), 2, 2), bool)
    by_head[~chooses, 0, 1] = by_head[chooses, 1, 0] = True
    found = antecedent_table(texts, by_head, resamples=99, seed=5).set_index("system")
    assert found.loc[HELD_OUT, ["all", "n"]].tolist() == [0, len(ruled)]
    larger = max(chooses.mean(), 1 - chooses.mean())
    assert found.loc[SAME_DATA, "all"] == pytest.approx(larger)


def test_systems_of_several_readings(encoder, documents):
    """The rules once, as in each reading; every reading's own head."""
    texts = fit(encoder, documents)
    ruled = answers(texts.documents)
    tables = {}
    for place, reading in enumerate(CANDIDATES):
        by_head = np.zeros((len(ruled), 3, 4), bool)
        by_head[:, place, 1] = True
        tables[reading] = antecedent_table(texts, by_head, resamples=99)
    found = held_out_systems(tables)
    assert [*found][:6] == SYSTEM_COLUMNS == ["system", "all", "pronoun", "proper", "nominal", "n"]
    assert found["system"].tolist() == [*SYSTEMS, *(f"best head among {words}" for words in AMONG.values())]
    assert found["layer"].tolist()[-3:] == [0, 1, 2]
    half = tables["all_words"].query("scored_on == @HALVES")
    assert found["n"].eq(half["n"].iloc[0]).all()
    assert (found["all"][: len(SYSTEMS)].to_numpy() == half["all"][: len(SYSTEMS)].to_numpy()).all()


def test_baselines_of_real_documents(ontogum, encoder):
    """Truncated by words, documents give the same answers by the rules as without an encoder, except those left out."""
    texts = fit(encoder, ontogum, unit="words")
    ruled = coreference_table(answers(texts.documents)).set_index("system")
    if sum(texts.left_out.values()) == texts.left_out["no anaphor"]:
        assert round(100 * ruled.loc["rule-based", "all"], 1) == 76.9
        assert ruled.loc["nearest", "n"] == 580
