from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from oracles import entropy

from analysis.encoders import tap
from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.scores.extraction import extract, read_attention
from analysis.scores.maps import Source, changed, find_source, shuffled, twin
from analysis.scores.sieves import SIEVES
from analysis.statistics.significance import published_table
from analysis.texts.examples import Example, sample
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse
from analysis.texts.treebank import read_sentences

KEPT = ["cls", "sep", "sep_first", "sep_last", "delimiter", "offset_+0"]


def run(encoder, examples, **options):
    return extract(encoder, examples, parse(examples), progress=False, **options)


def test_shuffling_keeps_the_scores_of_special_tokens_and_of_the_token_itself(tiny, examples):
    real, control = run(tiny, examples), run(tiny, examples, maps="shuffled")
    np.testing.assert_allclose(control.sel(role=KEPT), real.sel(role=KEPT), rtol=1e-5)
    for role in ("window_2", "nsubj", "own_sentence"):
        assert not np.allclose(control.sel(role=role), real.sel(role=role), rtol=1e-2, equal_nan=True)
    assert (control.isnull() == real.isnull()).all()


def test_the_order_depends_on_seed_and_sequence_not_on_the_batch(tiny, examples):
    sources = "shuffled", shuffled(), shuffled(seed=1)
    first, again, other = (run(tiny, examples, roles=["window_1"], maps=source) for source in sources)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    alone = run(tiny, examples[2:3], roles=["window_1"], maps="shuffled")
    np.testing.assert_allclose(alone[0], first[2], rtol=1e-4)
    copies = [replace(examples[2], id=name) for name in ("one", "two")]
    one, two = run(tiny, copies, roles=["window_1"], maps="shuffled")
    assert not np.allclose(one, two)


def test_uniform_attention_scores_one_and_block_the_logarithm_of_the_length(tiny, examples):
    scores = run(tiny, examples, maps="uniform", roles=["window_2", "cls", "own_sentence", "block"])
    expected = xr.where(scores.role == "block", np.log(scores.tokens), 1).broadcast_like(scores)
    np.testing.assert_allclose(scores, expected.transpose(*scores.dims), rtol=1e-5)


def test_a_change_sees_every_layer_of_every_batch(tiny, examples):
    seen = []

    def only_layer_one(layer, attention, batch):
        seen.extend((layer, layout.id) for layout in batch)
        next_token = torch.eye(attention.shape[-1]).roll(1, dims=-1)
        return attention if layer == 1 else next_token.expand_as(attention)

    result = run(tiny, examples, roles=["offset_+1"], maps=changed(only_layer_one), budget=100)
    real = run(tiny, examples, roles=["offset_+1"])
    np.testing.assert_allclose(result.sel(layer=1), real.sel(layer=1), rtol=1e-5)
    planted = result.sel(layer=[0, 2])  # the token after each: T for each of the T - 1 that have one
    np.testing.assert_allclose(planted, planted.tokens.broadcast_like(planted), rtol=1e-5)
    assert sorted(seen) == sorted((layer, name) for layer in range(3) for name in real.sequence.values)
    assert result.attrs["maps"] == "only_layer_one"


def test_the_guard_watches_over_the_attention_that_maps_are_made_of(tiny, examples, monkeypatch):
    monkeypatch.setattr(tap.torch, "softmax", lambda logits, dim: 2 * logits.softmax(dim))
    for maps in ("attention", "shuffled", changed(lambda layer, attention, batch: attention / 2)):
        with pytest.raises(RuntimeError, match="do not sum to 1"):
            run(tiny, examples, roles=["cls"], maps=maps)


def test_spread_rows_have_the_entropies_of_the_head(tiny, examples):
    result = run(tiny, examples, maps="spread", roles=["block", "own_sentence"], budget=100)
    for number, example in enumerate(examples):
        layout, attention = read_attention(tiny, example)
        matrix, size = SIEVES["block"].function(layout, {}), len(layout)
        for layer, head in np.ndindex(attention.shape[:2]):
            weights = [entropy(row) for row in attention[layer, head]]
            cells = [matrix[i, j] * weights[i] / size for i in range(size) for j in range(size)]
            score = result.sel(role="block")[number, layer, head]
            np.testing.assert_allclose(score, size * sum(cells), rtol=1e-5)
    np.testing.assert_allclose(result.sel(role="own_sentence"), 1, rtol=1e-5)


def maps_of(encoder: Encoder, sequences: list[Layout], source: str | Source):
    """The maps of every sequence, (layer, head, token, token), made in batches of one."""
    read_maps, measured = find_source(source).prepare(encoder, sequences), []
    for layout in sequences:
        layers = []
        read_maps([layout], lambda _, maps, layers=layers: layers.append(maps[0].numpy()))
        measured.append(np.stack(layers))
    return measured


def place(layout: Layout, row: int, column: int) -> tuple:
    """The kind of the row's token, and the kind of the column's or the distance to a word piece."""
    kinds = [token if token in ("[CLS]", "[SEP]") else "word" for token in layout.tokens]
    return kinds[row], column - row if kinds[column] == "word" else kinds[column]


def looped(sequences: list[Layout], maps: list[np.ndarray]) -> list[np.ndarray]:
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
    by_text = {}
    for number, sentence in enumerate(read_sentences(data_dir / "ud_english_ewt" / "en_ewt-ud-dev.conllu")):
        name, relations = f"en_ewt-ud-dev.conllu-{number}", tuple(sentence.parse.relations())
        by_text[sentence.text] = Example(name, sentence.text, relations=relations)
    examples = sample([*by_text.values()], 120, 0)
    encoder, tables = load_encoder("minilm"), []
    for maps in ("attention", "twin"):
        scores = extract(encoder, examples, parse(examples), [*RATIOS], maps=maps, progress=False)
        tables.append(published_table(scores).set_index(["role", "layer", "head"]))
    heads, copies = tables
    labelled = heads["assigned"].fillna(False).astype(bool)
    share = (copies["mean"] / heads["mean"])[labelled].groupby("role").median()
    for role, ratio in RATIOS.items():
        assert share[role] == pytest.approx(ratio, abs=0.15), role
    assert copies["assigned"].sum() < labelled.sum() / 2
