"""Scores of whole runs against loops over eager attention, sequence by sequence, and what goes with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from architectures import ARCHITECTURES, HEADS, LAYERS, save
from oracles import Oracle, random_maps, random_pairs
from transformers import AutoModel

from analysis.encoders.layout import layouts, token_pairs
from analysis.encoders.models import Encoder, build_tiny, load_encoder
from analysis.errors import InputError
from analysis.scores.extraction import (
    Scored,
    extract,
    read_attention,
    score_batch,
    stack,
)
from analysis.scores.sieves import RELATIONS, SIEVES, resolve, sieve
from analysis.texts.examples import Example, Relation, clusters
from analysis.texts.syntax import parse

DIRECTIONS = [label + suffix for suffix in ("", "_reversed") for label in RELATIONS]
OWN = [name for name, entry in SIEVES.items() if entry.function.__module__ == sieve.__module__]  # no paper's
BANK = [name for name in OWN if SIEVES[name].bank]
COMPOSED = [name for name in OWN if not SIEVES[name].bank]
ROLES = [*BANK, *COMPOSED, *DIRECTIONS]


def relation(
    label: str, texts: tuple[str, ...], text: int, dependent: str, head: str, which: int = 0
) -> Relation:
    """A relation between two words given by their spelling; `which` occurrence of the dependent counts."""
    start = -1
    for _ in range(which + 1):
        start = texts[text].index(dependent, start + 1)
    first = texts[text].index(head)
    return Relation(label, text, (start, start + len(dependent)), (first, first + len(head)))


def example(name: str, texts: tuple[str, ...], *arcs: tuple) -> Example:
    """An example with gold relations (label, text, dependent, head)."""
    return Example(name, *texts, relations=tuple(relation(arc[0], texts, *arc[1:]) for arc in arcs))


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
    example("single", ("The cat saw the cat !",), ("nsubj", 0, "cat", "saw"), ("dobj", 0, "cat", "saw", 1)),
    example("long", ("It was the dog , " * 4 + "it ran .", "Yes"), ("nsubj", 1, "Yes", "Yes")),
    example("plain", ("Hello there , you", "Is it ?"), ("nsubj", 1, "it", "Is")),
]


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    """Three layers of four heads."""
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def scores(tiny) -> xr.DataArray:
    """The scores of all examples for all roles."""
    return run(tiny, EXAMPLES, roles=ROLES)


def run(encoder: Encoder, examples: list[Example], **options) -> xr.DataArray:
    """Scores with the examples' gold relations."""
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


def test_scores_equal_loops_over_eager_attention_without_padding(tiny, scores):
    assert scores.dims == ("sequence", "role", "layer", "head")
    assert scores.shape == (len(EXAMPLES), len(ROLES), 3, 4)
    for one in EXAMPLES:
        expected = loops(tiny, one, ROLES)
        assert not np.isnan(expected).all()
        np.testing.assert_allclose(scores.sel(sequence=one.id), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_architectures_load_from_a_folder_and_score_alike(architecture: str, tmp_path: Path):
    encoder = load_encoder(save(architecture, tmp_path))
    assert (encoder.layers, encoder.heads) == (LAYERS, HEADS)
    found = run(encoder, EXAMPLES, roles=ROLES)
    for one in EXAMPLES[:3]:
        np.testing.assert_allclose(
            found.sel(sequence=one.id), loops(encoder, one, ROLES), rtol=1e-5, atol=1e-5
        )
    assert found.sel(sequence="pair").separators == (3 if architecture == "roberta" else 2)
    assert found.sel(sequence="word").separators == 1
    assert found.attrs["encoder"] == architecture


@pytest.mark.parametrize("members", [[0], [1], [2, 0, 1], [3, 1, 4]])
def test_contraction_equals_loops_on_random_maps(tiny, members: list[int]):
    batch = [
        Scored(layout, random_pairs(len(layout), seed))
        for seed, layout in enumerate(layouts(tiny.tokenizer, [EXAMPLES[index] for index in members]))
    ]
    sieves = resolve(ROLES, {"nsubj", "case"}, "corrected")
    contraction, units = stack(batch, sieves)
    longest, heads = max(len(sequence.layout) for sequence in batch), 5
    # Give the rows of padding random weights on every position.
    attention = random_maps(longest, heads * len(batch)).reshape(len(batch), heads, longest, longest)
    for index, sequence in enumerate(batch):
        size = len(sequence.layout)
        attention[index, :, :size] = 0
        attention[index, :, :size, :size] = random_maps(size, heads, seed=index)
    found = contraction(torch.from_numpy(attention).float()).numpy()
    for index, sequence in enumerate(batch):
        size = len(sequence.layout)
        oracle = Oracle(sequence.layout.tokens, sequence.pairs)
        expected = np.stack([oracle.scores(role, attention[index, :, :size, :size]) for role in ROLES])
        absent = np.isnan(expected).all(axis=1)
        assert ((units[index] == 0) == absent).all()
        np.testing.assert_allclose(found[index][~absent] * size, expected[~absent], rtol=1e-5)
        assert (found[index][absent] == 0).all()


def test_stacked_sieves_sum_to_one_and_leave_padding_alone(tiny):
    batch = [Scored(layout, random_pairs(len(layout))) for layout in layouts(tiny.tokenizer, EXAMPLES)]
    sieves = {
        role: replace(entry, entropy=False) for role, entry in resolve(ROLES, set(), "corrected").items()
    }
    contraction, units = stack(batch, sieves)
    longest = max(len(sequence.layout) for sequence in batch)
    ones = torch.full((len(batch), 1, longest, longest), 1e6)
    for index, sequence in enumerate(batch):
        ones[index, :, : len(sequence.layout), : len(sequence.layout)] = 1
    totals = contraction(ones)[:, :, 0].double().numpy()
    published = np.array(["published" in role for role in ROLES])
    np.testing.assert_allclose(totals[:, ~published], units[:, ~published] > 0, atol=1e-5)
    assert (totals[:, published] <= 1 + 1e-6).all()


def test_word_pairs_may_be_weighed_by_the_entropy_of_their_rows(tiny):
    nsubj = resolve(["nsubj"], set(), "corrected")["nsubj"]
    sieves = {"weighed": replace(nsubj, entropy=True), "nsubj": nsubj}
    batch = [Scored(layout, random_pairs(len(layout))) for layout in layouts(tiny.tokenizer, EXAMPLES[:2])]
    contraction, _ = stack(batch, sieves)
    longest = max(len(sequence.layout) for sequence in batch)
    uniform = torch.zeros(len(batch), 1, longest, longest)
    for index, sequence in enumerate(batch):
        size = len(sequence.layout)
        uniform[index, :, :size, :size] = 1 / size
        np.testing.assert_allclose(size * contraction(uniform)[index, :, 0], [np.log(size), 1], rtol=1e-5)


def test_uniform_model_scores_one_everywhere_and_block_the_logarithm(tiny):
    model = build_tiny(AutoModel)
    for name, weight in model.named_parameters():
        if ".query." in name:
            weight.data.zero_()
    found = run(Encoder("uniform", model.eval(), tiny.tokenizer), EXAMPLES, roles=ROLES)
    for one in EXAMPLES:
        sequence = found.sel(sequence=one.id)
        size = int(sequence.tokens)
        for role in ROLES:
            values = sequence.sel(role=role).values
            if np.isnan(values).all():
                continue
            if role.endswith("published"):
                assert (values <= 1 + 1e-6).all()
            else:
                np.testing.assert_allclose(values, np.log(size) if role == "block" else 1, rtol=2e-6)


def test_coordinates(tiny, scores):
    found = {layout.id: layout for layout in layouts(tiny.tokenizer, EXAMPLES)}
    assert scores.sequence.values.tolist() == [one.id for one in EXAMPLES]
    assert scores.role.values.tolist() == ROLES
    assert scores.layer.values.tolist() == [0, 1, 2]
    assert scores["head"].values.tolist() == [0, 1, 2, 3]
    assert scores.dtype == np.float32
    for one in EXAMPLES:
        sequence = scores.sel(sequence=one.id)
        assert sequence.tokens == len(found[one.id].tokens)
        assert sequence.separators == found[one.id].tokens.count("[SEP]") == len(one.texts)
    assert scores.tokens.dims == scores.separators.dims == ("sequence",)
    assert scores.units.dims == ("sequence", "role")
    assert scores.cluster.values.tolist() == clusters(EXAMPLES)
    assert scores.attrs["arithmetic"] == "corrected"
    assert scores.attrs["max_tokens"] == 128
    assert scores.attrs["sequences_truncated"] == scores.attrs["tokens_truncated"] == 0
    assert {key: scores.attrs[key] for key in tiny.provenance} == tiny.provenance


def test_nan_where_absent_and_only_there(scores):
    absent = scores.units == 0
    assert absent.any()
    assert (scores.isnull().all(["layer", "head"]) == absent).all()
    assert (scores.isnull().any(["layer", "head"]) == absent).all()
    assert scores.sel(sequence="single", role=["block", "own_sentence", "sep_last"]).isnull().all()


def test_first_and_second_occurrence_of_a_word_are_told_apart(tiny):
    texts = ("The cat saw the cat !",)
    first = example("first", texts, ("dobj", 0, "cat", "saw", 0))
    second = example("second", texts, ("dobj", 0, "cat", "saw", 1))
    found = run(tiny, [first, second], roles=["dobj", "dobj_reversed"])
    maps = attention_maps(tiny, first)
    # [CLS] the cat saw the cat ! [SEP]
    for name, position in [("first", 2), ("second", 5)]:
        sequence = found.sel(sequence=name)
        np.testing.assert_allclose(sequence.sel(role="dobj"), 8 * maps[:, :, position, 3], rtol=1e-5)
        np.testing.assert_allclose(sequence.sel(role="dobj_reversed"), 8 * maps[:, :, 3, position], rtol=1e-5)


def attention_maps(encoder: Encoder, one: Example) -> np.ndarray:
    """Layer x head x token x token by eager attention."""
    encoder.model.set_attn_implementation("eager")
    with torch.inference_mode():
        inputs = encoder.inputs(layouts(encoder.tokenizer, [one]))
        maps = torch.cat(encoder.model(**inputs, output_attentions=True).attentions).numpy()
    encoder.model.set_attn_implementation("sdpa")
    return maps


def test_contracted_word_is_the_mean_of_its_pieces(tiny):
    one = example("only", ("I don't go",), ("advmod", 0, "n't", "go"), ("aux", 0, "do", "go"))
    found = run(tiny, [one], roles=["advmod", "aux"])
    maps = attention_maps(tiny, one)
    # [CLS] i don ' t go [SEP]: the span of n't begins inside the piece `don`, which both words overlap
    np.testing.assert_allclose(found[0, 0], 7 * maps[:, :, 2:5, 5].mean(-1), rtol=1e-5)
    np.testing.assert_allclose(found[0, 1], 7 * maps[:, :, 2, 5], rtol=1e-5)


def test_relations_of_words_cut_off_are_absent_and_counted(tiny):
    text = "We saw him before the big dog ran"
    one = example(
        "cut",
        (text,),
        ("nsubj", 0, "We", "saw"),
        ("amod", 0, "big", "dog"),
        ("nsubj", 0, "dog", "ran"),
    )
    whole = Example("whole", "We saw", relations=())
    found = run(tiny, [one, whole], roles=["nsubj", "amod", "sep"], max_tokens=8)
    sequence = found.sel(sequence="cut")
    assert sequence.tokens == 8
    assert sequence.separators == 1
    assert sequence.units.values.tolist() == [1, 0, 8]
    assert sequence.sel(role="amod").isnull().all()
    expected = loops(tiny, one, ["nsubj", "amod", "sep"], 8)
    np.testing.assert_allclose(sequence, expected, rtol=1e-5)
    assert found.attrs["sequences_truncated"] == 1
    assert found.attrs["tokens_truncated"] == 2
    assert found.attrs["max_tokens"] == 8


@pytest.mark.parametrize("budget", [1, 40, 100_000])
def test_batch_size_and_order_do_not_matter(tiny, scores, budget: int):
    order = [3, 0, 4, 2, 1]
    found = run(tiny, [EXAMPLES[index] for index in order], roles=ROLES, budget=budget)
    assert found.sequence.values.tolist() == [EXAMPLES[index].id for index in order]
    xr.testing.assert_allclose(found.sel(sequence=scores.sequence), scores, rtol=0, atol=1e-5)
    assert (found.units.sel(sequence=scores.sequence) == scores.units).all()


def test_composed_roles_equal_what_their_parts_give(scores):
    separators = scores.separators
    delimiter = (scores.sel(role="cls") + separators * scores.sel(role="sep")) / (separators + 1)
    assert np.allclose(delimiter, scores.sel(role="delimiter"), atol=1e-5)
    assert (scores.sel(role="local") == scores.sel(role="window_2")).all()
    parts = scores.sel(role=list(RELATIONS))
    pooled = (parts.fillna(0) * parts.units).sum("role") / parts.units.sum("role")
    assert np.allclose(pooled, scores.sel(role="syntactic"), atol=1e-5, equal_nan=True)


def test_published_arithmetic_changes_the_local_scores_only(tiny, scores):
    roles = ["local", "delimiter", "syntactic", "block", "cls", "sep", *RELATIONS]
    published = run(tiny, EXAMPLES, roles=roles, arithmetic="published")
    assert published.attrs["arithmetic"] == "published"
    assert published.role.values.tolist() == roles
    others = roles[1:]
    assert np.allclose(published.sel(role=others), scores.sel(role=others), atol=1e-5, equal_nan=True)
    assert np.allclose(published.sel(role="local"), scores.sel(role="window_2_published"), atol=1e-5)
    assert (published.sel(role="local") < scores.sel(role="local")).all()


def test_sieve_of_a_user_works_as_a_role(tiny):
    @sieve("next_of_first")
    def next_of_first(layout, pairs):
        if len(layout) < 4:
            return None
        matrix = np.zeros((len(layout), len(layout)), np.float32)
        matrix[0, 1] = 1
        return matrix

    try:
        found = run(tiny, EXAMPLES[:2], roles=["next_of_first", "cls"])
    finally:
        del SIEVES["next_of_first"]
    maps = attention_maps(tiny, EXAMPLES[0])
    sequence = found.sel(sequence="pair", role="next_of_first")
    np.testing.assert_allclose(sequence, maps.shape[-1] * maps[:, :, 0, 1], rtol=1e-5)
    assert sequence.units == 1
    assert found.sel(sequence="word", role="next_of_first").isnull().all()


def test_model_is_as_before(tiny):
    before = tiny.model.config._attn_implementation
    run(tiny, EXAMPLES[:1], roles=["cls"])
    assert tiny.model.config._attn_implementation == before
    assert not tiny.model._forward_pre_hooks


def test_guard_watches_over_a_run_whose_padding_is_attended_to(tiny, monkeypatch):
    from analysis.encoders import tap

    def forget_the_mask(module, query, key, value, attention_mask, **options):
        return tap._active[id(module.config)].attend(module, query, key, value, None, **options)

    monkeypatch.setitem(tap.AttentionInterface._global_mapping, tap.NAME, forget_the_mask)
    with pytest.raises(RuntimeError, match="falls on padding"):
        run(tiny, EXAMPLES, roles=["cls"])


def test_damaged_weights_are_not_taken_for_absent_roles(tiny):
    model = build_tiny(AutoModel).eval()
    model.encoder.layer[1].attention.self.query.weight.data[0, 0] = torch.nan
    damaged = Encoder("damaged", model, tiny.tokenizer)
    layout = layouts(tiny.tokenizer, EXAMPLES[:1])
    contraction, _ = stack([Scored(layout[0], {})], {"cls": SIEVES["cls"]})
    with pytest.raises(InputError, match="^damaged: attention has NaN"):
        score_batch(damaged, layout, contraction)
    with pytest.raises(RuntimeError, match="do not sum to 1"):
        run(damaged, EXAMPLES, roles=["cls"])


def test_half_precision_scores_are_close_and_kept_in_full(tiny, scores):
    half = run(load_encoder("tiny", precision="bfloat16"), EXAMPLES, roles=ROLES)
    assert half.dtype == np.float32
    assert half.attrs["precision"] == "bfloat16"
    difference = np.abs(half - scores)
    assert 1e-5 < difference.max() < 2
    assert difference.mean() < 0.05
    # Sums are float32: the float32 values of a map are not on the grid of bfloat16.
    values = torch.from_numpy(half.sel(role="local").values)
    assert not torch.equal(values, values.bfloat16().float())


def test_statistics_stand_after_the_sieves(tiny, scores):
    """Statistics get each layer's attention once; results have the order of the sequences, whatever the batches."""
    statistics = {
        "first": lambda attention, batch: attention[:, :, 0, 0],
        "tokens": lambda attention, batch: attention.new_tensor([[len(layout)] * 4 for layout in batch]),
    }
    found = run(tiny, EXAMPLES, roles=["cls", "nsubj"], statistics=statistics, budget=32)
    assert found.role.values.tolist() == ["cls", "nsubj", "first", "tokens"]
    np.testing.assert_allclose(found.sel(role="nsubj"), scores.sel(role="nsubj"), rtol=1e-4)
    for one in EXAMPLES:
        layout, attention = read_attention(tiny, one)
        sequence = found.sel(sequence=one.id)
        np.testing.assert_allclose(sequence.sel(role="first"), attention[:, :, 0, 0], atol=1e-5)
        assert (sequence.sel(role="tokens") == len(layout)).all()
        assert sequence.units.sel(role="first") == len(layout)


def test_examples_with_choices_are_scored_as_their_sequences(tiny):
    example = Example("q", "It rains .", label=0, choices=("We go in .", "We stay out ."))
    found = extract(tiny, [example], roles=["local", "cls"], progress=False)
    written_out = [Example(f"q#{i}", "It rains .", text) for i, text in enumerate(example.choices)]
    expected = extract(tiny, written_out, roles=["local", "cls"], progress=False)
    xr.testing.assert_identical(found, expected)
    assert found["sequence"].values.tolist() == ["q#0", "q#1"]
    assert len(set(found["cluster"].values)) == 1
