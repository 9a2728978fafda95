import numpy as np
import pandas as pd

from analysis.encoders.models import load_encoder
from analysis.papers.clark2019 import attachment as module
from analysis.papers.clark2019 import coreference
from analysis.papers.clark2019.attachment import dependency_table
from analysis.scores.words import DIRECTIONS, attach, split_words, word_maps
from analysis.texts.chains import read_chains
from analysis.texts.dependencies import arcs


def test_first_hit_and_first_miss_of_each_relation(tiny, words, monkeypatch):
    monkeypatch.setattr(module, "LENGTHS", (4, 14))
    scored, attachment = arcs(words), attach(tiny, words, progress=False)
    table = dependency_table(attachment, scored, minimum=20, resamples=99).head(3)
    forms = words.groupby("sentence")["form"].agg(list)
    maps = {
        number: word_maps(tiny, split_words(tiny.tokenizer, [sentence]).kept[0])[..., 1:-1, 1:-1]
        for number, sentence in forms.items()
    }
    examples = iter(module.head_examples(tiny, attachment, scored, table))
    for row in table.itertuples():
        rows = scored[(scored["relation"] == row.relation) & (scored["head"] > 0)]
        first = {}
        for arc in rows[rows["length"].between(4, 14)].itertuples():
            inside = maps[arc.sentence][row.layer, row.head] * (1 - np.eye(arc.length))
            attention = inside[arc.word] if row.direction == DIRECTIONS[0] else inside[:, arc.word]
            first.setdefault(bool(attention.argmax() == arc.head - 1), arc)
        for hit, arc in sorted(first.items(), reverse=True):
            example = next(examples)
            outcome, arrow = "hit" if hit else "miss", module.ARROWS[row.direction]
            assert example.title == f"{row.relation} {row.layer}-{row.head}: {outcome}\n{arrow}"
            assert example.forms == forms[arc.sentence]
            step = 1 if row.direction == DIRECTIONS[0] else -1
            assert example.arc == (arc.word, arc.head - 1)[::step]
            inside = maps[arc.sentence][row.layer, row.head]
            others, axis = inside * (1 - np.eye(arc.length)), 1 if row.direction == DIRECTIONS[0] else 0
            np.testing.assert_allclose(example.attention, others / others.sum(axis, keepdims=True), rtol=1e-5)
            compared = example.attention[example.arc[0]] if axis else example.attention[:, example.arc[1]]
            assert hit == (compared.max() == example.attention[example.arc])  # what is drawn shows the hit
    assert next(examples, None) is None


def test_a_hit_and_a_miss_of_each_head_for_antecedents(bundled, monkeypatch):
    monkeypatch.setattr(module, "DISTANCES", (1, 30))
    encoder = load_encoder("minilm")  # heads with random weights hit nothing
    texts = coreference.beginnings(encoder, read_chains([bundled]).documents)
    examples = module.coreference_examples(encoder, texts, 2, 9)
    titles = [example.title.splitlines()[0] for example in examples]
    assert titles == ["coreference 2-9: hit", "coreference 2-9: miss"]
    for example in examples:
        mention, antecedent = example.arc
        assert 0 <= antecedent < mention < len(example.forms) <= 33
        if "hit" in example.title:  # no word of the excerpt but the mention itself gets more
            others = np.delete(example.attention[mention], mention)
            assert example.attention[mention, antecedent] >= others.max()


def test_linguistic_heads_beat_the_offset_or_find_antecedents():
    dependencies = pd.DataFrame({
        "relation": ["obj", "det", "amod", "case"], "layer": [0, 0, 1, 1], "head": [1, 1, 0, 0],
        "gain": [0.3, 0.2, -0.1, 0.1], "p_adjusted": [0.01, 0.01, 0.01, 0.5],
    })  # fmt: skip
    readings = pd.DataFrame({"layer": [2], "head": [3]}, dtype="Int64")
    expected = [[0, 1, "obj, det"], [2, 3, "coreference"]]
    assert module.linguistic_heads(dependencies, readings).to_numpy().tolist() == expected
