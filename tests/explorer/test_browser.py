"""The page in a real browser: mouse, keyboard, links, saved files, safety, colours, widths."""

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from headtables import HEADS, LAYERS, measure_tables, other_tables
from PIL import Image

from analysis.explorer.packing import unpacked_attention
from analysis.explorer.view import head_view
from analysis.files import ROOT

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
expect = api.expect

COMMITTED = ROOT / "results" / "glue-minilm" / "tables"
CONTRAST = 4.5  # of text, by the Web Content Accessibility Guidelines


def cell_name(page, head: int) -> str:
    return page.locator(f'td[data-h="{head}"]').get_attribute("aria-label")


def text_of(page, selector: str) -> str:
    return page.locator(selector).inner_text()


def card(page) -> dict[str, list[str]]:
    """The rows of the card by role."""
    rows = page.locator("#card tbody tr")
    return {row.get_attribute("data-role"): row.locator("td").all_inner_texts() for row in rows.all()}


# --- mouse and keyboard -------------------------------------------------------------------------------------------


def test_clicks_on_a_head_on_a_role_and_on_a_name_in_the_card(show):
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


def test_keys_move_in_the_grid(show):
    page = show("#head=1-1")
    page.focus('td[data-h="5"]')
    for key, expected in {
        "ArrowUp": "2-1", "ArrowUp ": "2-1", "ArrowRight": "2-2", "End": "2-3", "Home": "2-0",
        "PageDown": "0-0", "ArrowLeft": "0-0", "PageUp": "2-0", "ArrowDown": "1-0",
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


# --- what is shown is what the tables and the model say -----------------------------------------------------------


def test_card_against_the_tables(show, tables):
    page = show("#task=mrpc&state=finetuned&head=1-2")
    rows = tables[(tables["task"] == "mrpc") & (tables["layer"] == 1) & (tables["head"] == 2)]
    here, there = (rows[rows["state"] == state].set_index("role") for state in ("finetuned", "pretrained"))
    group = tables[(tables["task"] == "mrpc") & (tables["state"] == "finetuned")]
    for role, (_, interval, published, audited, rank, change, n) in card(page).items():
        row = here.loc[role]
        found = [float(number) for number in re.findall(r"[\d.]+", interval)]
        assert found == pytest.approx([row["mean"], row["low"], row["high"]], abs=0.006)
        labels = [published.endswith("yes"), audited.endswith("yes")]
        assert labels == [row["assigned"], row["assigned_audited"]]
        means = group.loc[group["role"] == role, "mean"]
        assert rank == f"{int((means > row['mean']).sum()) + 1}/12"
        difference = row["mean"] - there.loc[role, "mean"]
        assert float(change.replace("−", "-")) == pytest.approx(difference, abs=0.011)
        assert int(n) == row["n"]


def test_card_against_the_committed_results(visit, write):
    """The study's own tables, whatever columns they have by now."""
    paths = sorted(COMMITTED.glob("roles-*.csv"))
    parts = [path.stem.removeprefix("roles-").rsplit("-", 1) for path in paths]
    loaded = {(task, state): pd.read_csv(path) for path, (task, state) in zip(paths, parts, strict=True)}
    table = pd.concat([part.assign(task=task, state=state) for (task, state), part in loaded.items()])
    task, state = "mrpc", "finetuned"
    page = visit(write(table), f"#task={task}&state={state}&head=2-8").ready().page
    own = loaded[task, state].query("layer == 2 and head == 8").set_index("role")
    found = card(page)
    assert found.keys() == set(own.index)
    for role, cells in found.items():
        if np.isfinite(own.loc[role, "mean"]):
            assert float(cells[1].split()[0]) == pytest.approx(own.loc[role, "mean"], abs=0.006)


def test_cells_against_the_tables(show, tables):
    page = show("#task=sst-2&state=pretrained&role=nsubj")
    words = {(True, True): "published and audited", (True, False): "published only"}
    words[False, True] = "audited only"
    for row in tables.query("task == 'sst-2' and state == 'pretrained' and role == 'nsubj'").itertuples():
        name = cell_name(page, row.layer * HEADS + row.head)
        label = words.get((bool(row.assigned), bool(row.assigned_audited)), "")
        assert name == f"layer {row.layer} head {row.head}: {row.mean:.1f}{', ' * bool(label)}{label}"


def test_three_labels(visit, write, controlled_tables):
    page = visit(write(controlled_tables), "#task=mrpc&state=finetuned&role=local&head=0-1").ready().page
    row = controlled_tables.query("task == 'mrpc' and state == 'finetuned' and layer == 0 and head == 1")
    own = row.set_index("role").loc["local"]
    cells = card(page)["local"]
    labels = [own["assigned"], own["assigned_audited"], own["assigned_controlled"]]
    assert [text.endswith("yes") for text in cells[2:5]] == labels
    assert float(cells[5]) == pytest.approx(own["control_share"], abs=0.006)
    all_three = controlled_tables.query("task == 'mrpc' and state == 'finetuned' and role == 'local'")
    for each in all_three.itertuples():
        starred = "audited and controlled" in cell_name(page, each.layer * HEADS + each.head)
        assert starred == (each.assigned and each.assigned_audited and each.assigned_controlled)


def true_maps(sentence) -> np.ndarray:
    length = len(sentence["tokens"])
    return unpacked_attention(sentence["attention"]["pretrained"], (LAYERS, HEADS, length, length))


def test_words_say_the_largest_weights(show, sentences):
    sentence = sentences[0]
    page = show(f"#task=mrpc&state=pretrained&head=2-3&sentence={sentence['id']}&token=4")
    weights = true_maps(sentence)[2, 3]
    for direction, row in {"given": weights[4], "received": weights[:, 4]}.items():
        best = np.argsort(-row, kind="stable")[:3]
        expected = ", ".join(f"{sentence['tokens'][j]} {shown(row[j])}" for j in best)
        assert text_of(page, "#words").endswith(expected)
        if direction == "given":
            page.click("#direction")
            expect(page.locator("#words")).to_contain_text("gets most attention from")


def shown(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def test_matrix_says_the_exact_weight(show, sentences):
    sentence = sentences[0]
    page = show(f"#task=mrpc&state=pretrained&head=1-2&sentence={sentence['id']}")
    box = page.locator("#map canvas").bounding_box()
    length = len(sentence["tokens"])
    cell = box["width"] / length
    page.mouse.move(box["x"] + 5.5 * cell, box["y"] + 3.5 * cell)
    weight = true_maps(sentence)[1, 2, 3, 5]
    expected = f"{sentence['tokens'][3]} → {sentence['tokens'][5]}: {100 * weight:.1f} %"
    expect(page.locator("#weight")).to_contain_text(expected)


def test_score_of_the_sentence_beside_the_mean_of_the_task(show, sentences, tables):
    page = show(f"#task=mrpc&state=pretrained&role=local&head=0-3&sentence={sentences[1]['id']}")
    own = sentences[1]["scores"]["local"]["pretrained"][3]
    row = tables.query(
        "task == 'mrpc' and state == 'pretrained' and role == 'local' and layer == 0 and head == 3"
    )
    assert f"score {own:.2f}; mean over the mrpc sample {row['mean'].item():.2f}." in text_of(page, "#score")


# --- tables of later papers ---------------------------------------------------------------------------------------


def rounded(value: float) -> str:
    text = f"{abs(float(f'{value:.3g}')):g}"
    return f"−{text}" if value < 0 else f"+{text}"


def test_measures_on_the_card(visit, write, tables, sentences):
    path = write(tables, sentences, others=other_tables() | measure_tables())
    page = visit(path, "#task=mrpc&state=finetuned&role=nsubj&head=2-1").ready().page
    rows = page.locator("#measures tr:has(td)").all()
    found = {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}
    own = {name: table.query("layer == 2 and head == 1") for name, table in measure_tables().items()}
    off = own["michel_ablation"].query("metric == 'loss'")
    lowest, middle, highest = (rounded(value) for value in off["change"].sort_values())
    small = f"p ≤ 0.05 in {(off['p_by'] <= 0.05).sum()} of 3"
    assert found["switched off, loss"] == [middle, f"{lowest} to {highest} over 3 seeds", small]
    even = own["kovaleva_disable"].iloc[0]
    change, low, high = (rounded(even[name]) for name in ("change", "low", "high"))
    expected = [change, f"[{low}, {high}], seed 0", f"p {even['p_by']:.3g}"]
    assert found["uniform attention instead, accuracy"] == expected
    assert found["pattern"] == ["diagonal 60 %, vertical 10 %"]
    role = own["roles-attribution-mrpc-finetuned"].set_index("role").loc["nsubj"]
    value, interval, labels = found["role on attribution: nsubj"]
    assert float(value) == pytest.approx(role["mean"], rel=0.01)
    ends = [float(text) for text in re.findall(r"[\d.]+", interval)]
    assert ends == pytest.approx([role["low"], role["high"]], rel=0.01)
    columns = {"assigned": "published", "assigned_audited": "audited", "assigned_controlled": "controlled"}
    assert labels == (", ".join(word for column, word in columns.items() if role[column]) or "no label")
    assert found.keys() == {
        "importance, head, normalised",
        "importance, head, not normalised",
        "switched off, accuracy",
        "switched off, loss",
        "uniform attention instead, accuracy",
        "pattern",
        "role on effective attention: nsubj",
        "role on attribution: nsubj",
    }


def test_claims_of_every_paper(visit, write, tables):
    claims = other_tables()["claims"]
    others = {"claims": claims, "claims_seeds": claims.iloc[:1], "claims-clark2019": claims}
    papers = {"pande2021": "The Heads Hypothesis", "clark2019": "What Does BERT Look At?"}
    page = visit(write(tables, others=others, papers=papers)).ready().page
    assert page.locator("#claims > details > summary").all_inner_texts() == [
        "The Heads Hypothesis: 1 holds, 1 undecided",
        "What Does BERT Look At?: 1 holds, 1 undecided",
    ]
    page.locator("#claims > details > summary").first.click()
    assert "claims seeds: 1 holds" in page.locator("#claims > details").first.inner_text()


# --- links --------------------------------------------------------------------------------------------------------


def test_a_link_opens_the_same_view(show, sentences):
    first = show()
    first.select_option("#sentence", sentences[3]["id"])
    first.click('td[data-h="6"]')
    first.click("text=Lines")
    first.click('[data-token="3"]')
    first.select_option("#by", "masses:cls")
    expect(first).to_have_url(re.compile("by=masses"))
    second = show("#" + first.url.split("#")[1])
    expect(second.locator("#by")).to_have_value("masses:cls")
    assert second.url == first.url
    for part in ("#h-card", "#h-attention", "#words", "#heads-title"):
        assert text_of(second, part) == text_of(first, part)


# --- saving -------------------------------------------------------------------------------------------------------


def saved(page, button: str) -> str:
    with page.expect_download() as download:
        page.click(button)
    return download.value.path().read_text(encoding="utf-8")


def test_attention_is_saved(show, sentences):
    sentence = sentences[0]
    page = show(f"#task=mrpc&state=pretrained&head=1-1&role=local&sentence={sentence['id']}&special=off")
    rows = [*csv.DictReader(io.StringIO(saved(page, "#attention-csv")))]
    words = sum(number >= 0 for number in sentence["text"])
    assert len(rows) == words**2
    weights = true_maps(sentence)[1, 1]
    for row in rows:
        i, j = int(row["from_position"]), int(row["to_position"])
        assert float(row["weight"]) == pytest.approx(weights[i, j], rel=0.01, abs=1e-5)
        assert (row["from"], row["to"]) == (sentence["tokens"][i], sentence["tokens"][j])
        assert row["sieve_local"] == str(int(abs(i - j) <= 2))
    picture = ElementTree.fromstring(saved(page, "#attention-svg"))
    image = picture.find("{http://www.w3.org/2000/svg}image")
    with Image.open(BytesIO(b64decode(image.get("href").split(",")[1]))) as opened:
        assert opened.size == (int(image.get("width")), int(image.get("height")))
    page.keyboard.press("v")
    lines = ElementTree.fromstring(saved(page, "#attention-svg")).findall("{http://www.w3.org/2000/svg}line")
    inner = weights[np.ix_(*[[i for i, number in enumerate(sentence["text"]) if number >= 0]] * 2)]
    assert len(lines) == (inner >= 0.02).sum()


# --- safety -------------------------------------------------------------------------------------------------------


def test_texts_stay_texts(visit, tiny, tmp_path):
    text = "</script><script>document.title = 'lost'</script><img src=x onerror=alert(1)> dog"
    page = visit(head_view(tiny, text).save(tmp_path / "x.html")).ready().page
    assert page.title() == "Head explorer"
    assert page.locator("img").count() == 0
    assert "script" in text_of(page, "#tokens")


def test_the_browser_refuses_the_network(visit, study_page):
    """The rule also holds for scripts, not only for the page's own behaviour."""
    visited = visit(study_page).ready()
    page = visited.page
    refused = page.evaluate(
        """() => new Promise((resolve) => {
          document.addEventListener("securitypolicyviolation", (event) => resolve(event.violatedDirective));
          document.body.append(Object.assign(new Image(), { src: "https://example.invalid/x.png" }));
        })"""
    )
    assert refused == "img-src"
    assert page.evaluate("fetch('https://example.invalid').then(() => 'sent', () => 'refused')") == "refused"
    visited.asked.clear()  # the browser may report a refused request as a started one


# --- colours and widths -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_on_every_colour_of_a_cell(visit, study_page, scheme):
    """All possible colours of a cell, not just those of one table; gives the test access to the page's functions."""
    shown = study_page.with_name(f"open-{scheme}.html")
    text = study_page.read_text(encoding="utf-8")
    assert text.count("\nstart();") == 1
    named = "\nwindow.colours = { ramp, changeColour, inkOn, luminance };\nstart();"
    shown.write_text(text.replace("\nstart();", named), encoding="utf-8")
    page = visit(shown, color_scheme=scheme).ready().page
    least = page.evaluate(
        """() => {
          const { ramp, changeColour, inkOn, luminance } = window.colours;
          const shares = Array.from({ length: 2001 }, (_, i) => i / 1000 - 1);
          const found = [...shares.map((share) => ramp((share + 1) / 2)), ...shares.map(changeColour)];
          const ratio = (colour) => {
            const [ink, paper] = [inkOn(colour) === "#000000" ? 0 : 1, luminance(colour)];
            return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
          };
          return Math.min(...found.map(ratio));
        }"""
    )
    assert least >= CONTRAST


@pytest.mark.parametrize("width", [390, 1024, 1600])
def test_nothing_leaves_the_page_sideways(show, width):
    page = show(width=width)
    for mode in ("mean", "attention"):
        page.select_option("#by", mode)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("v")
    expect(page.locator("#map line").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# --- notebooks ----------------------------------------------------------------------------------------------------


def test_views_of_a_notebook_stand_side_by_side(visit, tiny, tables, tmp_path):
    views = [head_view(tiny, "A dog sees a cat ."), head_view(tiny, "Birds sing .", table=tables)]
    path = tmp_path / "notebook.html"
    path.write_text("<!doctype html><title>notebook</title>" + "".join(view._repr_html_() for view in views))
    visited = visit(path)
    frames = [visited.page.frame_locator("iframe").nth(number) for number in range(2)]
    for frame, tokens in zip(frames, (8, 6), strict=True):
        expect(frame.locator("body[data-tables]")).to_have_count(1)
        frame.locator('td[data-h="7"]').click()
        expect(frame.locator("#h-attention")).to_contain_text("head 1-3")
        assert frame.locator("#tokens button").count() >= tokens - 2
    expect(frames[0].locator("#card-section")).to_be_hidden()
    expect(frames[1].locator("#card-section")).to_be_visible()
    expect(visited.page.locator("p")).to_have_count(2)
    expect(visited.page.locator("p").first).to_be_hidden()
    assert "#" not in visited.page.url
    with visited.page.expect_download() as download:
        frames[0].locator("#attention-csv").click()
    assert download.value.suggested_filename.endswith(".csv")


# --- speed --------------------------------------------------------------------------------------------------------


def test_ready_within_two_seconds(show):
    """The fastest of three visits: other programs may slow a visit down."""
    assert min(show().evaluate("window.__ready") for _ in range(3)) < 2000
