from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.scores.extraction import extract
from analysis.scores.maps import Source, find_source, twin
from analysis.statistics.significance import published_table
from analysis.texts.examples import Example, sample
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse
from analysis.texts.treebank import read_sentences


def maps_of(encoder: Encoder, sequences: list[Layout], source: str | Source, budget: int = 2048):
    """The maps of every sequence, (layer, head, token, token), made in batches of one."""
    ready, measured = find_source(source).prepared(encoder, sequences, budget, progress=False), []
    for layout in sequences:
        layers = []
        ready(encoder, [layout], lambda _, maps, layers=layers: layers.append(maps[0].numpy()))
        measured.append(np.stack(layers))
    return measured


def place(layout: Layout, row: int, column: int) -> tuple:
    """The kind of the row's token, and the kind of the column's or the distance to a word piece."""
    kinds = [token if token in ("[CLS]", "[SEP]") else "word" for token in layout.tokens]
    return kinds[row], column - row if kinds[column] == "word" else kinds[column]


def looped(sequences: list[Layout], maps: list[np.ndarray]) -> list[np.ndarray]:
    """The twins of these maps, cell by cell."""
    seen = defaultdict(list)
    for layout, measured in zip(sequences, maps, strict=True):
        for row, column in np.ndindex(measured.shape[2:]):
            seen[place(layout, row, column)].append(measured[:, :, row, column])
    means = {where: np.mean(values, axis=0) for where, values in seen.items()}
    result = []
    for layout in sequences:
        size = range(len(layout))
        cells = np.array([[means[place(layout, row, column)] for column in size] for row in size])
        result.append(np.moveaxis(cells / cells.sum(axis=1, keepdims=True), (2, 3), (0, 1)))
    return result


@pytest.mark.parametrize("of", ["attention", "shuffled"])
def test_twins_equal_loops(tiny, examples, of):
    sequences = layouts(tiny.tokenizer, [*examples, *load_examples("toy-sst-2", split="dev", n=5)])
    expected = looped(sequences, maps_of(tiny, sequences, of))
    for measured, own_rows in zip(maps_of(tiny, sequences, twin(of=of)), expected, strict=True):
        np.testing.assert_allclose(measured, own_rows, rtol=1e-4, atol=1e-7)


RATIOS = {"syntactic": 0.65, "nsubj": 0.55, "dobj": 0.49, "amod": 0.68, "advmod": 0.63}
RATIOS |= {"det": 0.42, "case": 0.37}


def test_heads_of_relations_keep_a_part_of_their_score_for_position_alone(data_dir: Path):
    """Of the labelled heads of all 400 sentences, the twins have the median shares in RATIOS."""
    sentences = enumerate(read_sentences(data_dir / "ud_english_ewt" / "en_ewt-ud-dev.conllu"))
    sentences = [
        Example(f"en_ewt-ud-dev.conllu-{number}", sentence.text, relations=tuple(sentence.parse.relations()))
        for number, sentence in sentences
    ]
    examples = sample([*{sentence.text_a: sentence for sentence in sentences}.values()], 120, 0)
    encoder, relations = load_encoder("minilm"), parse(examples)
    real, control = (
        extract(encoder, examples, relations, [*RATIOS], maps=maps, progress=False)
        for maps in ("attention", "twin")
    )
    heads, copies = (
        published_table(measured).set_index(["role", "layer", "head"]) for measured in (real, control)
    )
    labelled = heads["assigned"].fillna(False).astype(bool)
    share = (copies["mean"] / heads["mean"])[labelled].groupby("role").median()
    for role, ratio in RATIOS.items():
        assert share[role] == pytest.approx(ratio, abs=0.15), role
    assert copies["assigned"].sum() < labelled.sum() / 2
