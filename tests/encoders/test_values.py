import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES
from classifiers import PAIRS, classifier

from analysis.encoders import values
from analysis.encoders.interventions import predict, sets
from analysis.encoders.layout import layouts
from analysis.encoders.tap import Reading, ValueReader, read_layers
from analysis.encoders.values import ChangedValues, flag_directions
from analysis.errors import InputError

FIRST_LAYER = [(0, 1), (0, 2)]
TYPES = ChangedValues("types", values.exchanged_types)
POSITIONS = ChangedValues("positions", values.exchanged_positions)


@pytest.mark.parametrize("name", ["types", "positions", "words", "flag"])
def test_a_batch_of_one_gives_what_a_batch_of_many_gives_and_dose_0_changes_nothing(name: str):
    encoder = classifier("bert", 2)
    sequences = layouts(encoder.tokenizer, PAIRS[:3])
    flag = values.Flag(flag_directions(encoder, sequences))
    words = values.other_words(sequences)
    operator = {"types": TYPES, "positions": POSITIONS, "words": words, "flag": flag}[name]
    edits = sets(encoder, {"nothing": FIRST_LAYER}, operator, 0)
    edits += sets(encoder, {"both": FIRST_LAYER}, operator)
    result, by_one = (predict(encoder, PAIRS[:3], edits, batch_size=size, progress=False) for size in (3, 1))
    np.testing.assert_allclose(by_one, result, atol=1e-5)
    np.testing.assert_allclose(result[1], result[0], atol=1e-5)
    assert abs(result[2] - result[0]).sel(sequence="two").max() > 1e-5


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_positions_are_those_of_the_texts_in_the_other_order(architecture: str):
    encoder = classifier(architecture, 2)
    [layout] = layouts(encoder.tokenizer, PAIRS[1:2])
    tokens = np.array(layout.tokens)
    places = values.places_in_other_order(layout)
    reordered = tokens[np.argsort(places)].tolist()
    first, second = (tokens[layout.text == text].tolist() for text in (0, 1))
    assert [token for token in reordered if token in {*first, *second}] == second + first
    assert sorted(reordered) == sorted(tokens)
    positions = values.exchanged_positions(encoder, [layout])["position_ids"][0].numpy()
    assert (positions - positions.min()).tolist() == places.tolist()


def test_equal_types_or_positions_make_no_difference():
    encoder = classifier("bert", 2)
    embeddings = encoder.model.base_model.embeddings
    embeddings.token_type_embeddings.weight.data[1] = embeddings.token_type_embeddings.weight.data[0]
    embeddings.position_embeddings.weight.data[:] = embeddings.position_embeddings.weight.data[0]
    edits = sets(encoder, {"types": FIRST_LAYER}, TYPES)
    edits += sets(encoder, {"positions": FIRST_LAYER}, POSITIONS)
    result = predict(encoder, PAIRS[:3], edits, progress=False)
    np.testing.assert_allclose(result[1:], np.stack([result[0]] * 2), atol=1e-6)
    one_type = classifier("distilbert", 2)
    with pytest.raises(InputError, match="one token type"):
        predict(one_type, PAIRS[:3], sets(one_type, {"both": FIRST_LAYER}, TYPES), progress=False)


def test_the_flag_is_the_mean_of_other_text_minus_own_text():
    encoder = classifier("bert", 2)
    sequences = layouts(encoder.tokenizer, PAIRS[:3])
    directions, expected = flag_directions(encoder, sequences), []
    for layout in sequences:
        readings: dict[int, Reading] = {}
        read_layers(encoder, [layout], ValueReader(readings.__setitem__))
        vectors = readings[0].values[0][2]
        words = (layout.text >= 0) & ~layout.punctuation
        first, second = (np.flatnonzero(words & (layout.text == text)) for text in (0, 1))
        for query in np.flatnonzero(layout.text == 1):
            spelling = layout.spellings[query]
            other = [key for key in first if not spelling or layout.spellings[key] != spelling]
            own = [key for key in second if key != query and words[query]]
            if other and own:
                expected.append(vectors[other].mean(0) - vectors[own].mean(0))
    torch.testing.assert_close(directions[1, 0, 2], torch.stack(expected).mean(0), atol=1e-5, rtol=1e-4)
    shares = values.output_shares(encoder, sequences, [(0, 2)], directions)
    assert shares[["layer", "head", "text"]].to_numpy().tolist() == [[0, 2, 0], [0, 2, 1]]
    assert shares["share"].between(0, 1, inclusive="right").all()
    assert shares["cosine"].between(0, 1).all()
