"""Links of a file and of the bundled grammar; a row that is wrong is named."""

import json

from analysis.papers.kovaleva2019.frames import APART, bundled_links, read_links, row_link

ROW = {
    "sentence": "he saw that he was so agitated",
    "target": "agitated",
    "frame_elements": ["he", "so agitated"],
}


def test_row_takes_first_occurrences():
    link = row_link(json.dumps(ROW), "here")
    assert link.words == tuple("he saw that he was so agitated".split())
    assert (link.target, link.elements) == ((6,), ((0,), (5, 6)))


def test_bundled_links_are_arguments_at_a_distance():
    links = bundled_links(20)
    assert len(links) == 20
    for link in links:
        assert len(link.target) == 1
        assert all(abs(place - link.target[0]) >= APART for (place,) in link.elements)
    assert links == bundled_links(20)


def test_released_sentences(data_dir):
    links = read_links(data_dir / "framenet" / "links.jsonl")
    assert len(links) == 473
    assert max(len(link.words) for link in links) <= 12
    assert len(read_links(data_dir / "framenet" / "links.jsonl", 50)) == 50
