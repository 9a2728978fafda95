"""Links of a file and of the bundled grammar; a row that is wrong is named."""

import json

import pytest
from studies import error_of

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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"frame_elements": ["she"]}, "'she' is not in its sentence"),
        ({"target": "agit"}, "'agit' is not in its sentence"),
        ({"frame_elements": []}, "no frame element"),
        ({"sentence": 3}, "no object with the texts"),
        ({"frame_elements": "he"}, "frame_elements as a list of texts"),
        ({"frame_elements": ["he", " "]}, "frame_elements as a list of texts"),
        ({"target": ""}, "give a target with words"),
    ],
)
def test_wrong_row_is_named(tmp_path, change, said):
    path = tmp_path / "links.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n\n{json.dumps(ROW | change)}\n")
    message = error_of(read_links, path)
    assert f"{path}, line 3" in message
    assert said in message


def test_no_file_and_an_empty_one(tmp_path):
    assert "cannot be read" in error_of(read_links, tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    assert "is empty" in error_of(read_links, tmp_path / "empty.jsonl")


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
