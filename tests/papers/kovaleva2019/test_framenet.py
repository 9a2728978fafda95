"""A folder in the form of FrameNet 1.7, of one frame, through NLTK's reader and the filter."""

from pathlib import Path

import pytest
from framenet import SENTENCES, write_framenet

from analysis.papers.kovaleva2019.frames import read_links


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_framenet(tmp_path_factory.mktemp("framenet") / "framenet_v17")


def test_only_what_passes_the_filter_is_linked(folder):
    [link] = read_links(folder)
    assert " ".join(link.words) == SENTENCES["kept"][0]
    assert (link.target, link.elements) == ((6,), ((1, 2, 3),))
