from analysis.encoders import load_encoder
from analysis.papers.pande2021.short_sequence import illustration
from analysis.scores import read_sieves
from analysis.statistics.roles import RELATIONS, ROLES
from analysis.texts import parse


def test_words_of_the_relations_stand_where_they_say():
    for pair in (True, False):
        example = illustration(pair)
        assert (example.text_b is not None) == pair
        for relation in example.relations:
            for start, end in (relation.dependent, relation.head):
                word = example.texts[relation.text][start:end]
                assert word in example.texts[relation.text].split()
        assert {relation.label for relation in example.relations} == {*RELATIONS}


def test_every_role_has_a_sieve_and_the_sequence_is_short():
    example = illustration()
    sieves = read_sieves(load_encoder("tiny"), example, parse([example]), ROLES, 128)
    assert {*sieves} == {*ROLES}
    assert all(sieve.any() for sieve in sieves.values())
    assert len(" ".join(example.texts).split()) + 3 <= 12
