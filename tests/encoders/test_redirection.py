from itertools import product

import numpy as np
import pytest
import torch
from architectures import ARCHITECTURES, tokenizer_of
from classifiers import PAIRS, classifier

from analysis.encoders import redirection
from analysis.encoders.interventions import predict, sets
from analysis.encoders.layout import Layout, layouts
from analysis.encoders.prefixes import Prefix, ordinary_pass
from analysis.encoders.redirection import NOWHERE, TARGETS, Redirection, Unread
from analysis.encoders.tap import tap
from analysis.texts.examples import Example

HEADS = [(0, 1), (1, 2)]
EDITS = [*product(redirection.ROWS, [*TARGETS, NOWHERE], redirection.MOVED, [None])]
EDITS.append(("matched", "own text", "all attention", 1))


def edited_row(weights: np.ndarray, query: int, edit: Redirection, layout: Layout, dose: float) -> np.ndarray:
    """The row of one query after the edit, piece by piece."""
    words = {
        place: token.casefold()
        for place, token in enumerate(layout.tokens)
        if layout.text[place] >= 0 and not layout.punctuation[place] and token != "[UNK]"
    }

    def equal(place: int) -> bool:
        across = layout.text[place] != layout.text[query]
        return query in words and words.get(place) == words[query] and across

    matched = any(map(equal, range(len(layout))))
    unmatched = query in words and not matched
    in_rows = {"matched": matched, "unmatched": unmatched, "all": layout.text[query] >= 0}
    if not in_rows[edit.rows] or edit.text not in (None, layout.text[query]):
        return weights
    moved = {
        "all attention": [True] * len(layout),
        "matching pieces": [*map(equal, range(len(layout)))],
        "other text": [layout.text[place] == 1 - layout.text[query] for place in range(len(layout))],
    }[edit.moved]
    taken = np.where(moved, dose * weights, 0)
    if edit.to == NOWHERE:
        rest = weights - taken
        return rest / rest.sum() if rest.sum() > 1e-6 else weights
    targets = TARGETS[edit.to](layout)[query]
    return weights - taken + taken.sum() * targets / targets.sum() if targets.any() else weights


@pytest.mark.parametrize(
    ("target", "of_cat", "of_a"),
    [
        ("other text", "the sat", "the cat sat"),
        ("unmatched other text", "the sat", "the sat"),
        ("own text", "a ran", "cat ran"),
        ("cls", "[CLS]", "[CLS]"),
        ("sep", "[SEP] [SEP]", "[SEP] [SEP]"),
    ],
)
def test_targets_by_hand(target: str, of_cat: str, of_a: str):
    [layout] = layouts(tokenizer_of("bert"), [Example("a", "A cat ran .", "The cat sat .")])
    for query, expected in {"cat": of_cat, "a": of_a}.items():
        marks = TARGETS[target](layout)[layout.tokens.index(query)]
        assert np.array(layout.tokens)[marks].tolist() == expected.split()
    one, others = (TARGETS[name](layout) for name in ("one other word", "other text"))
    assert (one.sum(axis=1) == others.any(axis=1)).all()
    assert not (one & ~others).any()


@pytest.mark.parametrize(("rows", "to", "moved", "text"), EDITS)
def test_rows_move_as_said_and_other_heads_stay(rows: str, to: str, moved: str, text: int | None):
    encoder, edit, dose = classifier("bert", 2), Redirection(rows, to, moved, text), 0.7
    batch = layouts(encoder.tokenizer, PAIRS)
    gates = torch.ones(len(batch), encoder.layers, encoder.heads)
    gates[:, 0, 1] -= dose
    replace = edit.changes(ordinary_pass(encoder, batch))(gates)["replace"]
    longest = max(map(len, batch))
    weights = torch.rand(len(batch), encoder.heads, longest, longest)
    for number, layout in enumerate(batch):
        weights[number, :, :, len(layout) :] = 0
    weights /= weights.sum(-1, keepdim=True)
    real = weights[:, 0, 0] > 0
    result = replace(0, weights, real)
    torch.testing.assert_close(result.sum(-1), torch.ones(result.shape[:3]))
    assert torch.equal(result[:, [0, 2]], weights[:, [0, 2]])
    assert replace(1, weights, real) is weights
    for number, layout in enumerate(batch):
        for query in range(len(layout)):
            expected = edited_row(weights[number, 1, query, : len(layout)].numpy(), query, edit, layout, dose)
            np.testing.assert_allclose(result[number, 1, query, : len(layout)], expected, atol=1e-6)


@pytest.mark.parametrize("region", redirection.REGIONS)
def test_what_is_read_in_a_region_is_left_out_and_the_other_weights_stay(region: str):
    encoder, dose = classifier("bert", 2), 0.7
    batch = layouts(encoder.tokenizer, PAIRS)
    gates = torch.ones(len(batch), encoder.layers, encoder.heads)
    gates[:, 0, 1] -= dose
    replace = Unread(region).changes(ordinary_pass(encoder, batch))(gates)["replace"]
    longest = max(map(len, batch))
    weights = torch.rand(len(batch), encoder.heads, longest, longest)
    result = replace(0, weights, weights[:, 0, 0] > 0)
    assert torch.equal(result[:, [0, 2]], weights[:, [0, 2]])
    for number, layout in enumerate(batch):
        size, texts = len(layout), layout.text
        words = (texts >= 0) & ~layout.punctuation
        tokens = np.array([token.casefold() for token in layout.tokens])
        other = (texts[:, None] == 1 - texts) & words
        expected = {
            "[CLS]": np.tile(np.arange(size) == 0, (size, 1)),
            "[SEP]": np.tile(tokens == "[sep]", (size, 1)),
            "punctuation": np.tile(layout.punctuation, (size, 1)),
            "own text": (texts[:, None] == texts) & words & words[:, None],
            "other text": other,
            "copies alone": other & words[:, None] & (tokens[:, None] == tokens) & (tokens != "[unk]"),
        }[region]
        factor = np.where(expected, 1 - dose, 1)
        actual = result[number, 1, :size, :size] / weights[number, 1, :size, :size]
        np.testing.assert_allclose(actual, factor, atol=1e-5)


REMOVED = Redirection("matched", NOWHERE, "matching pieces")


@pytest.mark.parametrize("operator", [Redirection(), REMOVED], ids=str)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_answers_are_those_of_one_whole_pass_for_each_text(architecture: str, operator: Redirection):
    encoder = classifier(architecture, 2)
    edits = [
        *sets(encoder, {"nothing": HEADS}, operator, 0),
        *sets(encoder, {"both": HEADS, "last layer": HEADS[1:]}, operator, 0.6),
    ]
    result = predict(encoder, PAIRS, edits, progress=False)
    np.testing.assert_allclose(result[1], result[0], atol=1e-5)
    assert abs(result[2] - result[0]).sel(sequence="one").max() > 1e-4
    assert abs(result[3] - result[0]).max() < 1e-5  # in the last layer only [CLS] counts, which is in no row
    assert abs(result - result[0]).sel(sequence="single").max() < 1e-5
    for number, layout in enumerate(layouts(encoder.tokenizer, PAIRS)):
        for row, edit in zip(result[2:], edits[1:], strict=True):
            changes = operator.changes(ordinary_pass(encoder, [layout]))(torch.from_numpy(edit.gate)[None])
            with tap(encoder.model, **changes), torch.no_grad():
                expected = encoder.model(**encoder.inputs([layout])).logits[0]
            np.testing.assert_allclose(row[number], expected, atol=1e-5)


def test_redirect_names_its_sets_and_reads_its_cache(tmp_path, monkeypatch):
    encoder = classifier("bert", 2)
    arguments = (encoder, PAIRS, {"both": HEADS, "one": HEADS[:1]}, "matched", "own text", 1.0, True)
    result = redirection.redirect(*arguments, cache=tmp_path, progress=False)
    assert result.dims == ("heads", "sequence", "class")
    assert result["heads"].values.tolist() == ["none", "both", "one"]
    monkeypatch.delattr(Prefix, "resume")
    again = redirection.redirect(*arguments, cache=tmp_path, progress=False)
    np.testing.assert_array_equal(result, again)


def test_blocking_in_training_is_removal_and_lets_gradients_pass():
    encoder = classifier("bert", 2)
    removed = sets(encoder, {"both": HEADS}, Redirection("all", NOWHERE, "other text"))
    expected = predict(encoder, PAIRS, removed, progress=False)[1]
    batch = layouts(encoder.tokenizer, PAIRS)
    with redirection.blocked_across(encoder, HEADS):
        logits = encoder.model(**encoder.inputs(batch)).logits
        logits.sum().backward()
    np.testing.assert_allclose(logits.detach(), expected, atol=1e-5)
    assert encoder.model.base_model.encoder.layer[0].attention.self.query.weight.grad.abs().sum() > 0
    plain = encoder.model(**encoder.inputs(batch)).logits.detach()
    assert abs(plain - logits.detach())[:3].max() > 1e-4
