"""The pages of the site lead to one another."""

import re

from analysis.study.site import link_pages


def test_each_page_leads_to_the_ones_beside_it(tmp_path):
    (tmp_path / "notebooks").mkdir()
    first = '<a href="notebooks/b.html">read first</a>'
    listed = '<h2 id="Notebooks-and-figures"></h2>' + "".join(
        f'<a href="notebooks/{name}.html"></a>' for name in "abc"
    )
    (tmp_path / "index.html").write_text(f"<body>{first}{listed}</body>")
    for name in "abc":
        (tmp_path / "notebooks" / f"{name}.html").write_text(f'<html><body class="x">{name}</body></html>')
    link_pages(tmp_path)
    pages = [(tmp_path / "notebooks" / f"{name}.html").read_text() for name in "abc"]
    links = [re.findall(r'href="([^"]+)"', page) for page in pages]
    assert links == [
        ["../index.html", "b.html"] * 2,
        ["a.html", "../index.html", "c.html"] * 2,
        ["b.html", "../index.html"] * 2,
    ]
    assert re.fullmatch(r'<html><body class="x"><nav.*</nav>b<nav.*</nav></body></html>', pages[1])
