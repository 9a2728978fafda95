"""Links between the pages of `make report`: previous, contents and next, at the head and foot of each notebook."""

import re
import sys
from pathlib import Path

from analysis.files import write_text

NAVIGATION = '<nav style="display: flex; justify-content: space-between; padding: 0.5em 2em">{}</nav>'


def link_pages(site: Path) -> None:
    """Adds navigation to the pages of notebooks in the order in which `index.html` lists them."""
    index = (site / "index.html").read_text(encoding="utf-8")
    listed = index.split('id="Notebooks-and-figures"')[-1]
    pages = [*dict.fromkeys(re.findall(r'href="notebooks/([\w.-]+\.html)"', listed))]
    for before, page, after in zip(["", *pages], pages, [*pages[1:], ""], strict=False):
        links = [_link(before, "previous: {}"), _link("../index.html", "contents"), _link(after, "next: {}")]
        navigation = NAVIGATION.format("".join(links))
        path = site / "notebooks" / page
        head, body, content = re.split(r"(<body[^>]*>)", path.read_text(encoding="utf-8"), maxsplit=1)
        content = content.replace("</body>", f"{navigation}</body>")
        write_text(path, "".join((head, body, navigation, content)))


def _link(page: str, text: str) -> str:
    """A link, or an empty place where there is no page."""
    return f'<a href="{page}">{text.format(page.removesuffix(".html"))}</a>' if page else "<span></span>"


if __name__ == "__main__":
    link_pages(Path(sys.argv[1]))
