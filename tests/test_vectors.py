"""Vectors of words from a file and from an encoder."""

from pathlib import Path

import numpy as np
import pytest

from analysis.errors import InputError
from analysis.models import load_encoder
from analysis.vectors import word_vectors

FORMS = ["The", "xylophonists", "saw", "the", "saw"]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny")


def glove(folder: Path, text: str) -> Path:
    path = folder / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_glove_is_looked_up_in_lower_case(encoder, tmp_path: Path):
    found = word_vectors(encoder, FORMS, glove(tmp_path, "the 1 2\nsaw -1 0.5\nother 3 3\n"))
    assert found.values.tolist() == [[1, 2], [0, 0], [-1, 0.5], [1, 2], [-1, 0.5]]
    assert (found.label, found.unknown) == ("vectors", 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2\nsaw 1\n", "line 2: 1 numbers where others have 2"),
        ("the 1 x\n", "not readable as GloVe"),
        ("other 1 2\n", "none of the words"),
    ],
)
def test_broken_files(encoder, tmp_path: Path, text: str, message: str):
    with pytest.raises(InputError, match=message):
        word_vectors(encoder, FORMS, glove(tmp_path, text))
    with pytest.raises(InputError, match="not readable"):
        word_vectors(encoder, FORMS, tmp_path / "absent.txt")


def test_components_span_the_differences_of_the_means_of_pieces(encoder):
    found = word_vectors(encoder, FORMS)
    table = encoder.model.get_input_embeddings().weight.detach().numpy()
    means = np.stack(
        [table[encoder.tokenizer(form, add_special_tokens=False)["input_ids"]].mean(axis=0) for form in FORMS]
    )
    ours, theirs = (np.linalg.norm(each[:, None] - each, axis=-1) for each in (found.values, means))
    scale = ours[0, 1] / theirs[0, 1]
    np.testing.assert_allclose(ours, scale * theirs, atol=1e-3 * scale)
    assert "principal components" in found.label
    assert (word_vectors(encoder, FORMS).values == found.values).all()
