"""docs/architecture.md names files that there are."""

import re

from analysis.files import ROOT

PAGE = ROOT / "docs" / "architecture.md"


def test_every_file_is_there():
    text = PAGE.read_text(encoding="utf-8")
    modules = {*re.findall(r"`(\w+/(?:<paper>/)?\w+\.py)`", text)}
    assert len(modules) >= 15
    for name in modules:
        pattern = name.replace("<paper>", "*")
        assert [*(ROOT / "analysis").glob(pattern), *ROOT.glob(pattern)], name
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []
