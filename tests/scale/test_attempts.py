"""Attempts are counted for every piece of work apart."""

from analysis.scale.attempts import Attempts


def test_every_piece_of_work_has_its_own_count():
    attempts = Attempts()
    begun = [
        attempts.begin(*work) for work in [("read", 1), ("read", 1), ("score", 1), ("read", 2), ("read", 1)]
    ]
    assert begun == [1, 2, 1, 1, 3]
