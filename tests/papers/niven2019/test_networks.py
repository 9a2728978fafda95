import numpy as np
import pytest
import torch

from analysis.papers.niven2019.arguments import Argument, expanded, load_arguments
from analysis.papers.niven2019.networks import PooledWords, Recipe, answers, points, train_words, vocabulary

ARGUMENTS = [
    Argument("a", "we need it", "it helps", ("help counts", "help does not count at all"), 0),
    Argument("b", "we want it", "it helps more people", ("it costs", "it is free"), 1),
]


def numbered(arguments: list[Argument], size: int) -> tuple[dict[str, int], np.ndarray]:
    """The words of arguments, numbered from 1, and random vectors; those of number 0 are zeros."""
    texts = [text for argument in arguments for text in (argument.claim, argument.reason, *argument.warrants)]
    words = sorted({word for text in texts for word in expanded(text)})
    values = np.random.default_rng(0).normal(size=(len(words) + 1, size)).astype(np.float32)
    values[0] = 0
    return {word: place for place, word in enumerate(words, 1)}, values


WORDS, VECTORS = numbered(ARGUMENTS, 5)


def by_hand(model: PooledWords, texts: list[str]) -> float:
    """The score of one warrant: a linear function of the maxima over the words of each text, one text at a time."""
    pooled = []
    for text in texts:
        read = torch.tensor(VECTORS[[WORDS[word] for word in expanded(text)]])
        if model.lstm is not None:
            read = model.lstm(read[None])[0][0]
        pooled.append(read.max(dim=0).values)
    return float(model.linear(torch.cat(pooled)))


@pytest.mark.parametrize("hidden", [None, 3])
@pytest.mark.parametrize(
    ("setup", "shared"), [("full", ["{claim} {reason}"]), ("W", []), ("CW", ["{claim}"])]
)
def test_scores_are_those_of_single_texts(hidden: int | None, setup: str, shared: list[str]):
    torch.manual_seed(0)
    model = PooledWords(VECTORS, len(shared), Recipe(0.1, 0.5, 1, hidden=hidden)).eval()
    read = points(ARGUMENTS, setup, WORDS, joined=True)
    with torch.no_grad():
        expected = [
            [by_hand(model, [text.format(**vars(argument)) for text in shared] + [warrant])
             for warrant in argument.warrants]
            for argument in ARGUMENTS
        ]  # fmt: skip
    np.testing.assert_allclose(answers(model, read), expected, atol=1e-5)


def test_a_bag_learns_a_planted_cue_and_repeats_itself():
    train, dev = (load_arguments("bundled", split, 200, 0, 1.0, 1.0) for split in ("train", "dev"))
    words, values = numbered([*train, *dev], 20)
    read = [points(part, "W", words, joined=True) for part in (train, dev)]
    first, again = (train_words(read[0], values, Recipe(0.05, 0.0, 2), seed=3) for _ in range(2))
    logits = answers(first, read[1])
    assert (logits.argmax(1) == read[1].labels.numpy()).mean() > 0.95
    np.testing.assert_array_equal(logits, answers(again, read[1]))


def test_vocabulary_of_the_encoder(tiny):
    vocabulary_of_tiny = vocabulary(tiny, ARGUMENTS)
    assert sorted(vocabulary_of_tiny.words) == sorted(WORDS)
    assert len(vocabulary_of_tiny.vectors) == len(WORDS) + 1
    assert not vocabulary_of_tiny.vectors[0].any()
