"""Changed values: attention stays, one pass equals many, and only the other text's values or one vector change."""

import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES
from classifiers import PAIRS, classifier

from analysis.encoders.interventions import predict, sets
from analysis.encoders.layout import layouts
from analysis.encoders.redirection import (
    ChangedValues,
    Flag,
    exchanged_positions,
    exchanged_types,
    flag_directions,
    other_words,
    output_shares,
    places_in_other_order,
)
from analysis.encoders.tap import ValueReader, read_layers
from analysis.errors import InputError

HEADS = [(0, 1), (0, 2)]
TYPES = ChangedValues("types", exchanged_types)
POSITIONS = ChangedValues("positions", exchanged_positions)


@pytest.mark.parametrize("name", ["types", "positions", "words", "flag"])
def test_a_batch_of_one_gives_what_a_batch_of_many_gives_and_dose_0_changes_nothing(name: str):
    encoder = classifier("bert", 2)
    sequences = layouts(encoder.tokenizer, PAIRS[:3])
    flag = Flag(flag_directions(encoder, sequences))
    operator = {"types": TYPES, "positions": POSITIONS, "words": other_words(sequences), "flag": flag}[name]
    edits = [*sets(encoder, {"nothing": HEADS}, operator, 0), *sets(encoder, {"both": HEADS}, operator)]
    result, by_one = (predict(encoder, PAIRS[:3], edits, batch_size=size, progress=False) for size in (3, 1))
    np.testing.assert_allclose(by_one, result, atol=1e-5)
    np.testing.assert_allclose(result[1], result[0], atol=1e-5)
    assert abs(result[2] - result[0]).sel(sequence="two").max() > 1e-5


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_positions_are_those_of_the_texts_in_the_other_order(architecture: str):
    encoder = classifier(architecture, 2)
    [layout] = layouts(encoder.tokenizer, PAIRS[1:2])
    tokens = np.array(layout.tokens)
    reordered = tokens[np.argsort(places_in_other_order(layout))].tolist()
    first, second = (tokens[layout.text == text].tolist() for text in (0, 1))
    inner = [token for token in reordered if token in {*first, *second}]
    assert inner == second + first
    assert sorted(reordered) == sorted(tokens)
    positions = exchanged_positions(encoder, [layout])["position_ids"][0].numpy()
    assert (positions - positions.min()).tolist() == places_in_other_order(layout).tolist()


def test_equal_types_or_positions_make_no_difference():
    encoder = classifier("bert", 2)
    embeddings = encoder.model.base_model.embeddings
    embeddings.token_type_embeddings.weight.data[1] = embeddings.token_type_embeddings.weight.data[0]
    embeddings.position_embeddings.weight.data[:] = embeddings.position_embeddings.weight.data[0]
    edits = [
        edit for operator in (TYPES, POSITIONS) for edit in sets(encoder, {str(operator): HEADS}, operator)
    ]
    result = predict(encoder, PAIRS[:3], edits, progress=False)
    np.testing.assert_allclose(result[1:], np.stack([result[0]] * 2), atol=1e-6)


def test_an_encoder_with_one_token_type_is_refused():
    encoder = classifier("distilbert", 2)
    with pytest.raises(InputError, match="one token type"):
        predict(encoder, PAIRS[:3], sets(encoder, {"both": HEADS}, TYPES), progress=False)


def test_the_flag_is_the_mean_of_other_text_minus_own_text():
    encoder = classifier("bert", 2)
    sequences = layouts(encoder.tokenizer, PAIRS[:3])
    directions, expected = flag_directions(encoder, sequences), []
    for layout in sequences:
        values: list[torch.Tensor] = []
        read_layers(
            encoder, [layout], ValueReader(lambda _, reading, kept=values: kept.append(reading.values[0]))
        )
        words = (layout.text >= 0) & ~layout.punctuation
        for query in np.flatnonzero(layout.text == 1):
            spelling = layout.spellings[query]
            other = [
                key
                for key in np.flatnonzero(words & (layout.text == 0))
                if not spelling or layout.spellings[key] != spelling
            ]
            own = [key for key in np.flatnonzero(words & (layout.text == 1)) if key != query and words[query]]
            if other and own:
                expected.append(values[0][2, other].mean(0) - values[0][2, own].mean(0))
    torch.testing.assert_close(directions[1, 0, 2], torch.stack(expected).mean(0), atol=1e-5, rtol=1e-4)
    shares = output_shares(encoder, sequences, [(0, 2)], directions)
    assert {*shares} == {(0, 2, 0), (0, 2, 1)}
    assert all(0 < share <= 1 and 0 <= cosine <= 1 for share, cosine in shares.values())
