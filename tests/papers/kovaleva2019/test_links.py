"""Links of a file, of the bundled grammar and of a folder of FrameNet."""

import json

from framenet import SENTENCES, write_framenet

from analysis.papers.kovaleva2019.frames import APART, bundled_links, read_links, row_link


def test_row_takes_first_occurrences():
    words = "he saw that he was so agitated"
    row = {"sentence": words, "target": "agitated", "frame_elements": ["he", "so agitated"]}
    link = row_link(json.dumps(row), "here")
    assert link.words == tuple(words.split())
    assert (link.target, link.elements) == ((6,), ((0,), (5, 6)))


def test_bundled_links_are_arguments_at_a_distance():
    links = bundled_links(20)
    assert len(links) == 20
    for link in links:
        assert all(abs(place - link.target[0]) >= APART for (place,) in link.elements)


def test_only_what_passes_the_filter_is_linked(tmp_path):
    [link] = read_links(write_framenet(tmp_path / "framenet_v17"))
    assert " ".join(link.words) == SENTENCES["kept"][0]
    assert (link.target, link.elements) == ((6,), ((1, 2, 3),))


def test_released_sentences(data_dir):
    links = read_links(data_dir / "framenet" / "links.jsonl")
    assert len(links) == 473
    assert max(len(link.words) for link in links) <= 12
