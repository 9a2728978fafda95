"""The page in a real browser: mouse, keyboard, links, saved files, safety, colours, widths."""

import re
import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from headtables import HEADS, LAYERS, role_tables, value_tables
from PIL import Image
from scipy import stats

from analysis.explorer.packing import unpacked_attention
from analysis.explorer.view import explorer, head_view
from analysis.statistics.roles import LABELS

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
expect = api.expect
pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"
CONTRAST = 4.5  # of text, by the Web Content Accessibility Guidelines


def cell_name(page, head: int) -> str:
    return page.locator(f'td[data-h="{head}"]').get_attribute("aria-label")


def text_of(page, selector: str) -> str:
    return page.locator(selector).inner_text()


def number_in(text: str) -> float:
    return float(text.replace("−", "-"))


def true_maps(sentence) -> np.ndarray:
    length = len(sentence["tokens"])
    return unpacked_attention(sentence["attention"]["pretrained"], (LAYERS, HEADS, length, length))


def test_mouse_and_keys_choose_a_head_and_a_role(show):
    page = show()
    page.click('td[data-h="9"]')
    expect(page).to_have_url(re.compile("head=2-1"))
    assert text_of(page, "#h-card").startswith("Head 2-1 (layer 2, head 1)")
    assert "head 2-1" in text_of(page, "#h-attention")
    assert page.locator('td[aria-selected="true"]').get_attribute("data-h") == "9"
    page.click('button[data-role="nsubj"]')
    assert text_of(page, "#heads-title") == "3 × 4 heads: mean score of nsubj"
    page.click('#card tr[data-role="delimiter"] button')
    expect(page).to_have_url(re.compile("role=delimiter"))
    assert page.locator('[role="radio"][aria-checked="true"]').get_attribute("data-role") == "delimiter"
    page.focus('td[data-h="9"]')
    for key, expected in {
        "ArrowDown": "1-1", "ArrowUp": "2-1", "ArrowUp ": "2-1", "ArrowRight": "2-2", "End": "2-3", "Home": "2-0",
        "PageDown": "0-0", "ArrowLeft": "0-0", "PageUp": "2-0",
    }.items():  # fmt: skip
        page.keyboard.press(key.strip())
        expect(page).to_have_url(re.compile(f"head={expected}"))
        assert page.evaluate("document.activeElement.ariaSelected") == "true"


def test_everything_is_reached_by_tab(show):
    page = show()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.closest('[id]')?.id"))
    assert reached >= {*"skip task state by roles grid top card sentence toggles tokens".split()}


def test_a_study_opens_on_its_best_matching_head(visit, tables, tmp_path):
    """In the first task after fine-tuning, unless the address names a head; coloured by the first other number."""
    match = tables[tables["role"] == "local"].assign(role="match", mean=0.5)
    best = {"mrpc": 2 * HEADS + 1, "sst-2": 3}
    for (task, _), rows in match.groupby(["task", "state"]):
        match.loc[rows.index[best[task]], "mean"] = 9
    for values, coloured in ((None, "mean"), (value_tables(), "value:ablation effect")):
        path = explorer(pd.concat([tables, match]), values=values).save(tmp_path / "page.html")
        page = visit(path).ready().page
        assert text_of(page, "#h-card").startswith("Head 2-1 ")
        assert page.locator('[role="radio"][aria-checked="true"]').get_attribute("data-role") == "match"
        expect(page.locator("#by")).to_have_value(coloured)
    assert text_of(visit(path, "#head=0-2").ready().page, "#h-card").startswith("Head 0-2 ")


def test_card_and_cells_against_the_tables(visit, tmp_path):
    """Interval, three labels, rank, change by fine-tuning and sequences of a head; mean and labels of every head."""
    tables = role_tables(controlled=True)
    path = explorer(tables).save(tmp_path / "explorer.html")
    page = visit(path, "#task=mrpc&state=finetuned&role=local&head=1-2").ready().page
    group = tables.query("task == 'mrpc' and state == 'finetuned'")
    before = tables.query("task == 'mrpc' and state == 'pretrained'").set_index(["role", "layer", "head"])[
        "mean"
    ]
    for row in group.query("layer == 1 and head == 2").itertuples():
        cells = page.locator(f'#card tr[data-role="{row.role}"] td').all_inner_texts()
        _, interval, published, corrected, controlled, share, rank, change, n = cells
        numbers = [float(number) for number in re.findall(r"[\d.]+", interval)]
        assert numbers == pytest.approx([row.mean, row.low, row.high], abs=0.006)
        labels = [text.endswith("yes") for text in (published, corrected, controlled)]
        assert labels == [getattr(row, column) for column in LABELS]
        assert float(share) == pytest.approx(row.control_mean / row.mean, abs=0.006)
        assert rank == f"{int((group.loc[group['role'] == row.role, 'mean'] > row.mean).sum()) + 1}/12"
        assert number_in(change) == pytest.approx(row.mean - before[row.role, 1, 2], abs=0.011)
        assert int(n) == row.n
    rows = group.query("role == 'local'")
    assert rows[[*LABELS]].drop_duplicates().shape[0] > 4
    for row in rows.itertuples():
        words = cell_name(page, row.layer * HEADS + row.head)
        assert words.startswith(f"layer {row.layer} head {row.head}: {row.mean:.1f}")
        expected = {label for column, label in LABELS.items() if getattr(row, column)}
        assert {label for label in LABELS.values() if label in words} == expected


def largest(weights: np.ndarray, tokens: list[str]) -> str:
    """The three tokens with the largest weights, as the page names them."""
    best = np.argsort(-weights, kind="stable")[:3]
    return ", ".join(f"{tokens[j]} {100 * weights[j]:.{int(weights[j] < 0.0995)}f} %" for j in best)


def test_words_matrix_and_score_of_a_sentence(show, sentences, tables):
    sentence = sentences[1]
    page = show(f"#task=mrpc&state=pretrained&role=local&head=2-3&sentence={sentence['id']}&token=4")
    weights, tokens = true_maps(sentence)[2, 3], sentence["tokens"]
    assert text_of(page, "#words").endswith(largest(weights[4], tokens))
    page.click("#direction")
    expect(page.locator("#words")).to_contain_text("gets most attention from")
    assert text_of(page, "#words").endswith(largest(weights[:, 4], tokens))
    box = page.locator("#map canvas").bounding_box()
    cell = box["width"] / len(tokens)
    page.mouse.move(box["x"] + 5.5 * cell, box["y"] + 3.5 * cell)
    expect(page.locator("#weight")).to_contain_text(f"{tokens[3]} → {tokens[5]}: {100 * weights[3, 5]:.1f} %")
    score = sentence["scores"]["local"]["pretrained"][2 * HEADS + 3]
    query = "task == 'mrpc' and state == 'pretrained' and role == 'local' and layer == 2 and head == 3"
    mean = tables.query(query)["mean"].item()
    assert f"score {score:.2f}; mean over the mrpc sample {mean:.2f}." in text_of(page, "#score")


def test_other_numbers_on_the_card_and_in_the_grid(show):
    page = show("#task=mrpc&state=finetuned&head=2-1")
    medians = value_tables()["ablation effect"].groupby(["layer", "head"])["value"].median()
    _, value, rank = text_of(page, '[data-value="ablation effect"]').split("\t")
    assert number_in(value) == pytest.approx(medians[2, 1], rel=0.01)
    assert rank == f"{(medians > medians[2, 1]).sum() + 1}/12"
    page.click('[data-value="ablation effect"] button')
    assert text_of(page, "#heads-title") == "3 × 4 heads: ablation effect"
    for (layer, head), median in medians.items():
        words = cell_name(page, layer * HEADS + head).split(": ")[1]
        assert number_in(words) == pytest.approx(median, rel=0.01)
    page.select_option("#task", "sst-2")  # which has only the numbers of the encoder
    expect(page.locator("#by")).to_have_value("mean")
    [row] = page.locator("#values [data-value]").all()
    assert row.get_attribute("data-value") == "norm"


def test_a_link_opens_the_same_view(show, sentences):
    first = show()
    first.select_option("#sentence", sentences[3]["id"])
    first.click('td[data-h="6"]')
    first.click("text=Lines")
    first.click('[data-token="3"]')
    first.select_option("#by", "value:norm")
    expect(first).to_have_url(re.compile("by=value%3Anorm"))
    second = show("#" + first.url.split("#")[1])
    expect(second.locator("#by")).to_have_value("value:norm")
    assert second.url == first.url
    for part in ("#h-card", "#h-attention", "#words", "#heads-title"):
        assert text_of(second, part) == text_of(first, part)


def test_the_dial_says_the_answer_at_each_dose(visit, tables, sentences, tmp_path):
    first, second = [sentence["id"] for sentence in sentences[:2]]
    dial = {"heads": ["1-1", "2-3"], "doses": [0, 0.5, 1]}
    dial |= {"across": [-1.0, 0.5, 2.0], "own": [-1.0, -0.8, 0.0]}
    path = explorer(tables, sentences, dials={first: dial}).save(tmp_path / "explorer.html")
    page = visit(path, f"#task=mrpc&sentence={first}").ready().page
    assert "heads 1-1, 2-3" in text_of(page, "#dose-words")
    assert "match logit of −1.00 (p 0.27)" in text_of(page, "#dose-words")
    before = {name: place_of(page, name) for name in ("across", "own")}
    assert before["across"] == before["own"]
    page.focus("#dose")
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("dose=1"))
    assert text_of(page, "#dose-words").startswith("50 % of the attention of heads 1-1, 2-3")
    assert "0.50 (p 0.62) to the other text, −0.80 (p 0.31) to their own text" in text_of(page, "#dose-words")
    after = {name: place_of(page, name) for name in ("across", "own")}
    assert before["across"][0] < after["across"][0] == after["own"][0]
    assert after["across"][1] < after["own"][1] < before["own"][1]  # upwards is less
    page.select_option("#sentence", second)
    expect(page.locator("#dial")).to_be_hidden()
    again = visit(path, f"#task=mrpc&sentence={first}&dose=2").ready().page
    assert "2.00 (p 0.88) to the other text" in text_of(again, "#dose-words")
    assert again.locator("#dose").get_attribute("aria-valuetext") == "100 %"
    again.goto(again.url.partition("#")[0] + f"#task=mrpc&sentence={first}")  # a link made at dose 0
    expect(again.locator("#dose")).to_have_value("0")
    broken = visit(path, f"#task=mrpc&sentence={first}&dose=3").ready().page
    expect(broken.locator("#dose")).to_have_value("0")


def place_of(page, name: str) -> tuple[float, float]:
    mark = page.locator(f'[data-dial="{name}"]')
    return float(mark.get_attribute("cx")), float(mark.get_attribute("cy"))


def saved(page, button: str) -> bytes:
    with page.expect_download() as download:
        page.click(button)
    return download.value.path().read_bytes()


def test_pictures_are_saved(show, sentences):
    sentence = sentences[0]
    page = show(f"#task=mrpc&state=pretrained&head=1-1&role=local&sentence={sentence['id']}&special=off")
    words = [place for place, number in enumerate(sentence["text"]) if number >= 0]
    drawing = ElementTree.fromstring(saved(page, "#attention-svg"))
    image = drawing.find(f"{SVG}image")
    with Image.open(BytesIO(b64decode(image.get("href").split(",")[1]))) as matrix:
        assert matrix.size == (2 * int(image.get("width")), 2 * int(image.get("height")))
        cell = matrix.width / len(words)
        grey = np.asarray(matrix.convert("L")).astype(float)
    middles = ((np.arange(len(words)) + 0.5) * cell).astype(int)
    weights = true_maps(sentence)[1, 1][np.ix_(words, words)]
    shades = grey[np.ix_(middles, middles)]
    assert stats.spearmanr(shades.ravel(), -weights.ravel()).statistic > 0.99  # dark = large
    with Image.open(BytesIO(saved(page, "#attention-png"))) as picture:
        assert picture.size == (2 * int(drawing.get("width")), 2 * int(drawing.get("height")))
        left, top = 2 * float(image.get("x")), 2 * float(image.get("y"))
        box = (round(left), round(top), round(left) + matrix.width, round(top) + matrix.height)
        inside = np.asarray(picture.crop(box).convert("L")).astype(float)
    assert np.median(np.abs(inside - grey)) <= 2  # but for the outline of the sieve
    page.keyboard.press("v")
    lines = ElementTree.fromstring(saved(page, "#attention-svg")).findall(f"{SVG}line")
    assert len(lines) == (weights >= 0.02).sum()
    cells = ElementTree.fromstring(saved(page, "#heads-svg")).findall(f"{SVG}rect")
    assert len(cells) == 1 + LAYERS * HEADS
    with Image.open(BytesIO(saved(page, "#heads-png"))) as picture:
        assert picture.width == 2 * (30 + 46 * HEADS + 4)


def test_texts_stay_texts_and_the_browser_refuses_the_network(visit, tiny, tmp_path):
    text = "</script><script>document.title = 'lost'</script><img src=x onerror=alert(1)> dog"
    visited = visit(head_view(tiny, text).save(tmp_path / "x.html")).ready()
    page = visited.page
    assert page.title() == "Head explorer"
    assert page.locator("img").count() == 0
    assert "script" in text_of(page, "#tokens")
    refused = page.evaluate(
        """() => new Promise((resolve) => {
          document.addEventListener("securitypolicyviolation", (event) => resolve(event.violatedDirective));
          document.body.append(Object.assign(new Image(), { src: "https://example.invalid/x.png" }));
        })"""
    )
    assert refused == "img-src"
    assert page.evaluate("fetch('https://example.invalid').then(() => 'sent', () => 'refused')") == "refused"
    visited.requests.clear()  # the browser may report a refused request as a started one


def test_contrast_on_every_colour_of_a_cell(visit, study_page):
    """The test needs access to the page's functions."""
    path, text = study_page.with_name("open.html"), study_page.read_text(encoding="utf-8")
    assert text.count("\nstart();") == 1
    named = "\nwindow.colours = { ramp, changeColour, inkOn, luminance };\nstart();"
    path.write_text(text.replace("\nstart();", named), encoding="utf-8")
    least = """() => {
          const { ramp, changeColour, inkOn, luminance } = window.colours;
          const shares = Array.from({ length: 2001 }, (_, i) => i / 1000 - 1);
          const all = [...shares.map((share) => ramp((share + 1) / 2)), ...shares.map(changeColour)];
          const ratio = (colour) => {
            const [ink, paper] = [inkOn(colour) === "#000000" ? 0 : 1, luminance(colour)];
            return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
          };
          return Math.min(...all.map(ratio));
        }"""
    for scheme in ("light", "dark"):
        assert visit(path, color_scheme=scheme).ready().page.evaluate(least) >= CONTRAST


def test_nothing_leaves_the_page_sideways(show):
    for width in (390, 1024, 1600):
        page = show(width=width)
        for mode in ("mean", "attention"):
            page.select_option("#by", mode)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("v")
        expect(page.locator("#map line").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_views_of_a_notebook_stand_side_by_side(visit, tiny, tables, tmp_path):
    views = [head_view(tiny, "A dog sees a cat ."), head_view(tiny, "Birds sing .", table=tables)]
    path = tmp_path / "notebook.html"
    path.write_text("<!doctype html><title>notebook</title>" + "".join(view._repr_html_() for view in views))
    visited = visit(path)
    frames = [visited.page.frame_locator("iframe").nth(number) for number in range(2)]
    for frame, tokens in zip(frames, (8, 6), strict=True):
        expect(frame.locator("body[data-ready]")).to_have_count(1)
        frame.locator('td[data-h="7"]').click()
        expect(frame.locator("#h-attention")).to_contain_text("head 1-3")
        assert frame.locator("#tokens button").count() >= tokens - 2
    expect(frames[0].locator("#card-section")).to_be_hidden()
    expect(frames[1].locator("#card-section")).to_be_visible()
    expect(visited.page.locator("p")).to_have_count(2)
    expect(visited.page.locator("p").first).to_be_hidden()
    assert "#" not in visited.page.url
    with visited.page.expect_download() as download:
        frames[0].locator("#attention-png").click()
    assert download.value.suggested_filename.endswith(".png")
