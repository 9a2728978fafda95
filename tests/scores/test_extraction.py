from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from architectures import ARCHITECTURES, HEADS, LAYERS, save
from oracles import Oracle, random_maps
from transformers import AutoModel

from analysis.encoders.layout import layouts, token_pairs
from analysis.encoders.models import Encoder, build_tiny, load_encoder
from analysis.encoders.tap import read_layers
from analysis.errors import InputError
from analysis.papers.clark2019 import surface
from analysis.scores import extraction
from analysis.scores.extraction import Scored, extract, read_attention, score_batch, stack
from analysis.scores.sieves import RELATIONS, SIEVES, sieve
from analysis.texts.examples import Example, Relation, clusters
from analysis.texts.syntax import parse

DIRECTIONS = [label + suffix for suffix in ("", "_reversed") for label in RELATIONS]
MODULES = (sieve.__module__, surface.__name__)
OWN = [name for name, entry in SIEVES.items() if entry.function.__module__ in MODULES]
BANK = [name for name in OWN if SIEVES[name].bank]
COMPOSED = [name for name in OWN if not SIEVES[name].bank]
ROLES = [*BANK, *COMPOSED, *DIRECTIONS]


def example(name: str, texts: tuple[str, ...], *arcs: tuple) -> Example:
    """An example with gold relations (label, text, dependent, head), the words given by their spelling."""

    def span(text: int, word: str) -> tuple[int, int]:
        start = texts[text].index(word)
        return start, start + len(word)

    relations = (
        Relation(label, text, span(text, word), span(text, head)) for label, text, word, head in arcs
    )
    return Example(name, *texts, relations=tuple(relations))


EXAMPLES = [
    example(
        "pair",
        ("She didn't see the old red car .", "The car unhesitatingly hit a dog ."),
        ("nsubj", 0, "She", "see"),
        ("dobj", 0, "car", "see"),
        ("amod", 0, "old", "car"),
        ("amod", 0, "red", "car"),
        ("advmod", 0, "n't", "see"),
        ("nsubj", 1, "car", "hit"),
        ("dobj", 1, "dog", "hit"),
        ("advmod", 1, "unhesitatingly", "hit"),
    ),
    example("word", ("Run",)),
    example("single", ("The cat saw the dog !",), ("nsubj", 0, "cat", "saw"), ("dobj", 0, "dog", "saw")),
    example("long", ("It was the dog , " * 4 + "it ran .", "Yes"), ("nsubj", 1, "Yes", "Yes")),
    example("plain", ("Hello there , you", "Is it ?"), ("nsubj", 1, "it", "Is")),
    example("lopsided", ("Yes", "No , never did anyone see the quick brown fox jump .")),
    example("two words", ("Hello", "there")),
]


@pytest.fixture(scope="module")
def scores(tiny) -> xr.DataArray:
    return run(tiny, EXAMPLES, roles=ROLES)


def run(encoder: Encoder, examples: list[Example], **options) -> xr.DataArray:
    return extract(encoder, examples, parse(examples), progress=False, **options)


def loops(encoder: Encoder, one: Example, roles: list[str], max_tokens: int = 128) -> np.ndarray:
    """Role x layer x head: loops over eager attention to one sequence that was never padded."""
    layout = layouts(encoder.tokenizer, [one], max_tokens)[0]
    before = encoder.model.config._attn_implementation
    encoder.model.set_attn_implementation("eager")
    with torch.inference_mode():
        attention = encoder.model(**encoder.inputs([layout]), output_attentions=True).attentions
    encoder.model.set_attn_implementation(before)
    maps = torch.cat(attention).double().numpy()
    oracle = Oracle(layout.tokens, token_pairs(layout, one.relations or ()))
    return np.stack([oracle.scores(role, maps) for role in roles])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scores_equal_loops_over_eager_attention_without_padding(architecture: str, tmp_path: Path):
    encoder = load_encoder(save(architecture, tmp_path))
    assert (encoder.layers, encoder.heads) == (LAYERS, HEADS)
    result = run(encoder, EXAMPLES, roles=ROLES)
    for one in EXAMPLES:
        expected = loops(encoder, one, ROLES)
        np.testing.assert_allclose(result.sel(sequence=one.id), expected, rtol=1e-5, atol=1e-5)
    assert result.sel(sequence="pair").separators == (3 if architecture in ("roberta", "mpnet") else 2)


def test_coordinates(tiny, scores):
    result = {layout.id: layout for layout in layouts(tiny.tokenizer, EXAMPLES)}
    assert scores.sequence.values.tolist() == [one.id for one in EXAMPLES]
    assert scores.role.values.tolist() == ROLES
    for one in EXAMPLES:
        sequence = scores.sel(sequence=one.id)
        assert sequence.tokens == len(result[one.id].tokens)
        assert sequence.separators == result[one.id].tokens.count("[SEP]") == len(one.texts)
    assert (scores.isnull().all(["layer", "head"]) == (scores.units == 0)).all()
    assert scores.cluster.values.tolist() == clusters(EXAMPLES)
    assert {key: scores.attrs[key] for key in tiny.provenance} == tiny.provenance


def test_relations_of_words_cut_off_are_absent_and_counted(tiny):
    text = "We saw him before the big dog ran"
    arcs = ("nsubj", 0, "We", "saw"), ("amod", 0, "big", "dog"), ("nsubj", 0, "dog", "ran")
    one = example("cut", (text,), *arcs)
    whole = Example("whole", "We saw", relations=())
    result = run(tiny, [one, whole], roles=["nsubj", "amod", "sep"], max_tokens=8)
    sequence = result.sel(sequence="cut")
    assert sequence.units.values.tolist() == [1, 0, 8]
    expected = loops(tiny, one, ["nsubj", "amod", "sep"], 8)
    np.testing.assert_allclose(sequence, expected, rtol=1e-5)
    assert result.attrs["sequences_truncated"] == 1
    assert result.attrs["tokens_truncated"] == 2
    assert result.attrs["max_tokens"] == 8


@pytest.mark.parametrize("budget", [1, 40, 100_000])
def test_batch_size_and_order_do_not_matter(tiny, scores, budget: int):
    order = [3, 0, 4, 6, 2, 5, 1]
    result = run(tiny, [EXAMPLES[index] for index in order], roles=ROLES, budget=budget)
    assert result.sequence.values.tolist() == [EXAMPLES[index].id for index in order]
    xr.testing.assert_allclose(result.sel(sequence=scores.sequence), scores, rtol=0, atol=1e-5)
    assert (result.units.sel(sequence=scores.sequence) == scores.units).all()


def test_many_roles_make_batches_small_and_change_nothing(tiny, scores, monkeypatch):
    sizes = []
    batched = extraction.stack
    monkeypatch.setattr(extraction, "stack", lambda batch, *_: sizes.append(len(batch)) or batched(batch, *_))
    monkeypatch.setattr(extraction, "WEIGHTS", 40 * len(OWN) * max(map(int, scores.tokens)))
    result = run(tiny, EXAMPLES, roles=ROLES)
    assert max(sizes) < len(EXAMPLES)
    xr.testing.assert_allclose(result, scores, rtol=0, atol=1e-5)


@pytest.mark.parametrize("given", [False, True], ids=["own", "replaced"])
def test_sums_have_the_precision_of_single_numbers(tiny, given: bool):
    """Weights and maps of long sequences; also with entropies that replace those of the rows."""
    texts = " ".join("the old dog saw a red cat , and it ran ." for _ in range(11))
    batch = [
        Scored(layout, {})
        for layout in layouts(tiny.tokenizer, [Example("a", texts, texts), EXAMPLES[0], EXAMPLES[2]])
    ]
    contract, _ = stack(batch, {role: SIEVES[role] for role in BANK})
    size = max(len(layout) for layout, _ in batch)
    maps = torch.from_numpy(random_maps(size, 4 * len(batch)).reshape(len(batch), 4, size, size)).double()
    real = torch.arange(size) < torch.tensor([[len(layout)] for layout, _ in batch])
    maps = maps * real[:, None, None]
    entropies = torch.rand(maps.shape[:3], dtype=torch.float64) if given else None
    exact = contract(maps, entropies)
    single = contract(maps.float(), None if entropies is None else entropies.float())
    np.testing.assert_allclose(single, exact, rtol=1e-6)
    if given:
        j = BANK.index("block")
        for i, (layout, _) in enumerate(batch[:2]):
            block = torch.from_numpy(SIEVES["block"].function(layout, {}))
            rows = (maps[i, :, : len(layout), : len(layout)] * block).sum(-1)
            expected = (rows * entropies[i, :, : len(layout)]).sum(-1)
            np.testing.assert_allclose(exact[i, j], expected, rtol=1e-6)


def test_sieve_of_a_user_works_as_a_role(tiny):
    @sieve("next_of_first")
    def next_of_first(layout, pairs):
        matrix = np.zeros((len(layout), len(layout)), np.float32)
        matrix[0, 1] = 1
        return matrix if len(layout) > 3 else None

    try:
        result = run(tiny, EXAMPLES[:2], roles=["next_of_first"]).sel(role="next_of_first")
    finally:
        del SIEVES["next_of_first"]
    _, maps = read_attention(tiny, EXAMPLES[0])
    np.testing.assert_allclose(result.sel(sequence="pair"), maps.shape[-1] * maps[:, :, 0, 1], rtol=1e-5)
    assert result.units.values.tolist() == [1, 0]


def test_damaged_weights_are_not_taken_for_absent_roles(tiny):
    model = build_tiny(AutoModel).eval()
    model.encoder.layer[1].attention.self.query.weight.data[0, 0] = torch.nan
    damaged = Encoder("damaged", model, tiny.tokenizer)
    layout = layouts(tiny.tokenizer, EXAMPLES[:1])
    contract, _ = stack([Scored(layout[0], {})], {"cls": SIEVES["cls"]})
    with pytest.raises(InputError, match="^damaged: attention has NaN"):
        score_batch(damaged, partial(read_layers, damaged), layout, contract)
    with pytest.raises(RuntimeError, match="do not sum to 1"):
        run(damaged, EXAMPLES, roles=["cls"])


def test_half_precision_scores_are_close_and_kept_in_full(tiny, scores):
    half = run(load_encoder("tiny", precision="bfloat16"), EXAMPLES, roles=ROLES)
    assert half.attrs["precision"] == "bfloat16"
    difference = np.abs(half - scores)
    assert 1e-5 < difference.max() < 2
    assert difference.mean() < 0.05
    # Sums are float32: the float32 values of a map are not on the grid of bfloat16.
    values = torch.from_numpy(half.sel(role="local").values)
    assert not torch.equal(values, values.bfloat16().float())


def test_statistics_stand_after_the_sieves(tiny, scores):
    statistics = {
        "first": lambda attention, batch: attention[:, :, 0, 0],
        "tokens": lambda attention, batch: attention.new_tensor([[len(layout)] * 4 for layout in batch]),
    }
    result = run(tiny, EXAMPLES, roles=["cls", "nsubj"], statistics=statistics, budget=32)
    assert result.role.values.tolist() == ["cls", "nsubj", "first", "tokens"]
    np.testing.assert_allclose(result.sel(role="nsubj"), scores.sel(role="nsubj"), rtol=1e-4)
    for one in EXAMPLES:
        layout, attention = read_attention(tiny, one)
        sequence = result.sel(sequence=one.id)
        np.testing.assert_allclose(sequence.sel(role="first"), attention[:, :, 0, 0], atol=1e-5)
        assert (sequence.sel(role="tokens") == len(layout)).all()
        assert sequence.units.sel(role="first") == len(layout)


def test_examples_with_choices_are_scored_as_their_sequences(tiny):
    example = Example("q", "It rains .", label=0, choices=("We go in .", "We stay out ."))
    result = extract(tiny, [example], roles=["local", "cls"], progress=False)
    written_out = [Example(f"q#{i}", "It rains .", text) for i, text in enumerate(example.choices)]
    expected = extract(tiny, written_out, roles=["local", "cls"], progress=False)
    xr.testing.assert_identical(result, expected)
    assert len(set(result["cluster"].values)) == 1
