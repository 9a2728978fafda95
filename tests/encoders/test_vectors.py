from pathlib import Path

import numpy as np
import pytest

from analysis.encoders.vectors import word_vectors

FORMS = ["The", "xylophonists", "saw", "the", "saw"]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_as_glove_is_distributed(tiny, tmp_path: Path, mark: str):
    """Words and 100 numbers a line, no heading; among them punctuation and a word beyond ASCII."""
    vectors = np.random.default_rng(0).normal(size=(5, 100)).round(5)
    words = ["the", ",", ".", "saw", "café"]
    lines = [f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, vectors, strict=True)]
    path = tmp_path / "vectors.txt"
    path.write_text(mark + "".join(lines), encoding="utf-8")
    result = word_vectors(tiny, ["SAW", "Café", "unheard-of", ".", "The"], path)
    expected = [vectors[3], vectors[4], np.zeros(100), vectors[2], vectors[0]]
    np.testing.assert_array_equal(result.values, np.array(expected, np.float32))
    assert result.label == "vectors"


def test_components_span_the_differences_of_the_means_of_pieces(tiny):
    result = word_vectors(tiny, FORMS)
    table = tiny.model.get_input_embeddings().weight.detach().numpy()
    pieces = tiny.tokenizer(FORMS, add_special_tokens=False)["input_ids"]
    means = np.stack([table[ids].mean(axis=0) for ids in pieces])
    ours, theirs = (np.linalg.norm(item[:, None] - item, axis=-1) for item in (result.values, means))
    scale = ours[0, 1] / theirs[0, 1]
    np.testing.assert_allclose(ours, scale * theirs, atol=1e-3 * scale)
