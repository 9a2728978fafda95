"""What docs/encoders.md says of every family of encoders: each use works, or is refused in one line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from architectures import BYTE_LEVEL, FAMILIES, HEADS, SENTENCES, save, tokenizer_of
from classifiers import EXAMPLES
from torch import Tensor

from analysis.encoders.classifiers import load_classifier
from analysis.encoders.finetuning import Recipe, columns_of, finetune
from analysis.encoders.interventions import predict, single_heads
from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.pruning import prune
from analysis.encoders.redirection import blocked_across
from analysis.encoders.tap import tap
from analysis.errors import InputError
from analysis.explorer.view import head_view
from analysis.files import ROOT
from analysis.papers.pascual2021.attribution import attributed
from analysis.scores.extraction import extract, read_attention
from analysis.scores.sieves import match
from analysis.scores.words import split_words
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "encoders.md").read_text().splitlines()
    if line.startswith("|")
]
OFFERED = {family: dict(zip(ROWS[0][1:], cells, strict=True)) for family, *cells in ROWS[2:]}


def test_the_table_has_the_families():
    assert {*OFFERED} == {*FAMILIES}


def hidden_states(encoder: Encoder, layout: Layout) -> Tensor:
    """The last hidden states, which depend on the attention of every layer."""
    with torch.no_grad():
        return encoder.model(**encoder.inputs([layout])).last_hidden_state


def blocked_states(encoder: Encoder, layout: Layout) -> Tensor:
    with blocked_across(encoder, [(0, 1)]):
        return hidden_states(encoder, layout)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_use_works_or_is_refused_in_one_line(family: str, tmp_path: Path):
    folder, tuned = save(family, tmp_path), tmp_path / "tuned"
    alone = load_encoder(folder)
    gate = np.eye(alone.layers, alone.heads)
    [layout] = layouts(alone.tokenizer, EXAMPLES[:1])
    uses: dict[str, Callable] = {
        "fine-tuning": lambda: finetune(folder, "mrpc", EXAMPLES[:4], EXAMPLES[:4], tuned, Recipe(1, 4))[
            "accuracy"
        ],
        "extract": lambda: extract(alone, EXAMPLES, roles=["sep", "local"], progress=False),
        "head_view": lambda: len(head_view(alone, *EXAMPLES[0].texts).page),
        "blocking": lambda: blocked_states(alone, layout),
        "ablation": lambda: predict(load_classifier(tuned, "mrpc"), EXAMPLES, single_heads(alone)),
        "pruning": lambda: predict(prune(load_classifier(tuned, "mrpc"), gate), EXAMPLES, []),
        "attribution": lambda: attributed(alone, layout),
    }
    assert uses.keys() == OFFERED[family].keys()
    for use, call in uses.items():
        if OFFERED[family][use] == "yes":
            assert np.isfinite(call()).all(), use
        else:
            with pytest.raises(InputError, match="^[^\n]+: use [^\n]+$"):
                call()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_blocked_head_attends_to_its_own_text_alone(family: str, tmp_path: Path):
    """The texts are read from the separators, since not every family has token types."""
    encoder = load_encoder(save(family, tmp_path))
    [layout] = layouts(encoder.tokenizer, EXAMPLES[:1])
    text = torch.from_numpy(layout.text)
    across = (text >= 0) & (text == 1 - text[:, None])

    def replace(layer: int, weights: Tensor, _: Tensor) -> Tensor:
        weights = weights.clone()
        if layer == 0:
            rest = weights[:, 1].masked_fill(across, 0)
            weights[:, 1] = rest / rest.sum(-1, keepdim=True)
        return weights

    with tap(encoder.model, replace=replace):
        expected = hidden_states(encoder, layout)
    torch.testing.assert_close(blocked_states(encoder, layout), expected, atol=1e-5, rtol=0)
    assert (hidden_states(encoder, layout) - expected).abs().max() > 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_sequences_may_be_as_long_as_the_positions(family: str, tmp_path: Path):
    encoder = load_encoder(save(family, tmp_path))
    assert encoder.positions == 128
    tokenizer, text = encoder.tokenizer, Example("long", " ".join(SENTENCES * 9))
    tokenizer.model_max_length = 200
    longest, longer = (layouts(tokenizer, [text], length) for length in (128, 129))
    assert encoder.model(**encoder.inputs(longest)).last_hidden_state.shape == (1, 128, HEADS * 8)
    for call in (
        lambda: encoder.inputs(longer),
        lambda: read_attention(encoder, text, 129),
        lambda: finetune(
            tmp_path / family, "mrpc", EXAMPLES, EXAMPLES, tmp_path / "tuned", Recipe(max_tokens=129)
        ),
    ):
        with pytest.raises(InputError, match=r"^max_tokens is 129: .+ has 128 positions$"):
            call()


@pytest.mark.parametrize("family", FAMILIES)
def test_names_of_special_tokens_in_a_text_are_text(family: str):
    """Also where the vocabulary puts them together, and in words; ordinary texts have the ids of the library."""
    tokenizer = tokenizer_of(family)
    names = {tokenizer.cls_token, tokenizer.sep_token, tokenizer.mask_token, tokenizer.pad_token}
    special = {*tokenizer.convert_tokens_to_ids([*names])}
    for name in names:
        [layout] = layouts(tokenizer, [Example("a", f"He said {name} twice.", f"A{name}{name}b")])
        assert layout.sep.sum() == (2 if tokenizer.num_special_tokens_to_add(True) == 3 else 3)
        assert not special & {*layout.input_ids[layout.text >= 0].tolist()}
        ids = columns_of(tokenizer, Example("a", name, name), 128)["input_ids"]
        assert ids == layouts(tokenizer, [Example("a", name, name)])[0].input_ids.tolist()
        [words] = split_words(tokenizer, [["He", name, f"{name}b"]]).kept
        assert not special & {*words.input_ids[1:-1].tolist()}
    examples = load_examples("toy-mrpc", split="dev", n=100)
    plain = {"split_special_tokens": False, "truncation": True, "max_length": 128}
    expected = [tokenizer(*example.texts, **plain)["input_ids"] for example in examples]
    assert [layout.input_ids.tolist() for layout in layouts(tokenizer, examples)] == expected


@pytest.mark.parametrize("family", sorted({*FAMILIES} - {*BYTE_LEVEL}))
def test_unknown_pieces_match_nothing(family: str):
    """Two emoji have one id, and so has one emoji twice; what the vocabulary knows still matches."""
    tokenizer = tokenizer_of(family)
    for first, second in (("😀", "🎉"), ("😀", "😀")):
        pairs = [Example("a", first, second), Example("b", f"a {first}", f"{second} a")]
        alone, beside = layouts(tokenizer, pairs)
        assert alone.unknown.sum() == beside.unknown.sum() == 2
        assert match(alone, {}) is None
        rows = match(beside, {}).any(axis=1)
        assert rows.sum() == 2
        assert not (rows & beside.unknown).any()
