"""Controls on a tiny encoder: what shuffling and uniform attention leave of every score."""

from pathlib import Path

import numpy as np
import pytest
import torch

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.errors import InputError
from analysis.papers.pande2021.ceilings import uniform_head
from analysis.scores.extraction import extract
from analysis.scores.maps import shuffled, uniform
from analysis.statistics.roles import compose
from analysis.texts.syntax import parse
from analysis.texts.tasks import load_examples
from analysis.texts.treebank import treebank_examples

KEPT = ["cls", "sep", "sep_first", "sep_last", "delimiter"]


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def examples():
    return load_examples("mrpc", "bundled", "dev", 6)


def run(encoder, examples, **options):
    return extract(encoder, examples, parse(examples), progress=False, **options)


def local(batch: list[Layout]) -> torch.Tensor:
    """Attention of one head per sequence that looks at the token itself, padded."""
    longest = max(map(len, batch))
    return torch.eye(longest).expand(len(batch), 1, longest, longest)


def next_token(batch: list[Layout]) -> torch.Tensor:
    """Attention of one head per sequence that looks at the next token."""
    return local(batch).roll(1, dims=-1)


def test_shuffling_keeps_the_scores_of_special_tokens(tiny, examples):
    real, control = run(tiny, examples), run(tiny, examples, change=shuffled(0))
    np.testing.assert_allclose(control.sel(role=KEPT), real.sel(role=KEPT), rtol=1e-5)
    for role in ("window_2", "nsubj", "own_sentence"):
        assert not np.allclose(control.sel(role=role), real.sel(role=role), rtol=1e-2, equal_nan=True)
    assert (control.isnull() == real.isnull()).all()


def test_shuffling_destroys_a_planted_head(tiny, examples):
    """A head that looks at the next token scores T / |S| in a window; in random order it hardly does."""

    def planted(attention, batch):
        return next_token(batch).expand_as(attention)

    def both(attention, batch):
        return shuffled(0)(planted(attention, batch), batch)

    real, control = (run(tiny, examples, roles=["window_1", "cls"], change=how) for how in (planted, both))
    assert (real.sel(role="window_1") > 3).all()
    assert (control.sel(role="window_1") < real.sel(role="window_1") / 2).all()


def test_rows_and_columns_take_the_same_order(tiny, examples):
    """A head that looks at the token itself does so in any order; special tokens stay."""
    batch = layouts(tiny.tokenizer, examples)
    np.testing.assert_array_equal(shuffled(1)(local(batch), batch), local(batch))
    moved = shuffled(1)(next_token(batch), batch)
    for layout, attention in zip(batch, moved[:, 0], strict=True):
        size = len(layout)
        assert (attention[:size, :size].sum(-1)[: size - 1] == 1).all()
        assert layout.text[attention[0].argmax()] >= 0  # [CLS] still looks at a word


def test_the_order_depends_on_seed_and_sequence_not_on_the_batch(tiny, examples):
    first, again, other = (run(tiny, examples, roles=["window_1"], change=shuffled(s)) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    alone = run(tiny, examples[2:3], roles=["window_1"], change=shuffled(0))
    np.testing.assert_allclose(alone[0], first[2], rtol=1e-4)


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
def test_uniform_attention_scores_what_the_formula_says(tiny, examples, arithmetic):
    singles = load_examples("sst-2", "bundled", "dev", 4)
    found = compose(run(tiny, [*examples, *singles], change=uniform), arithmetic=arithmetic)
    np.testing.assert_allclose(found, uniform_head(found), rtol=1e-5)
    assert found.sel(role="block").notnull().any()


def test_sentences_of_a_treebank_have_gold_relations(tmp_path: Path):
    sentence = "# text = {0}s run .\n" + "".join(
        f"{row}\t{form}\t_\t_\t_\t_\t{head}\t{label}\t_\t_\n"
        for row, form, head, label in [(1, "{0}s", 2, "nsubj"), (2, "run", 0, "root"), (3, ".", 2, "punct")]
    )
    words = ("dog", "cat", "cow", "cat")
    path = tmp_path / "bank.conllu"
    path.write_text("\n".join(sentence.format(word) for word in words) + "\n", encoding="utf-8")
    found = treebank_examples(path)
    assert [example.text_a for example in found] == ["dogs run .", "cats run .", "cows run ."]
    assert [relation.label for relation in found[1].relations] == ["nsubj", "punct"]
    assert found[1].relations[0].dependent == (0, 4)
    sampled = treebank_examples(path, 2, seed=3)
    assert len(sampled) == 2
    assert {example.id for example in sampled} < {example.id for example in found}


def test_missing_treebank(tmp_path: Path):
    with pytest.raises(InputError, match="is not readable as CoNLL-U") as raised:
        treebank_examples(tmp_path / "none.conllu")
    assert "\n" not in str(raised.value)
