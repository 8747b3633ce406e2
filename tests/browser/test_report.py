"""The report in a real browser: tables, charts, the way to an attempt, phone, dark, print, accessibility."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import serious_violations
from tests.publish.report.results import Row, figure, outcome, pair, write_results
from touchstone.publish.report import report_html

pytestmark = pytest.mark.browser

MODELS = [f"model-{place:02}" for place in range(30)]
OIDS = [f"problem-{place}" for place in range(14)]


def tables() -> dict[str, list[Row]]:
    rates = {model: 0.9 - place / 50 for place, model in enumerate(MODELS)}
    keys = [
        {"model": model, "tier": "T0", "oid": oid, "iteration_id": str(attempt)}
        for model in MODELS[:3]
        for oid in OIDS
        for attempt in range(3)
    ]
    return {
        "pass_at_k": [figure(model, rate) for model, rate in rates.items()],
        "model_comparison": [pair(MODELS[0], model, "worse", pairs=29) for model in MODELS[1:]],
        "problem_statistics": [
            {"model": model, "tier": "T0", "oid": oid, "n": 3, "c": place % 4}
            for model in MODELS
            for place, oid in enumerate(OIDS)
        ],
        "problem_frontier": [{"oid": oid, "mean_pass_rate": place / 20} for place, oid in enumerate(OIDS)],
        "problems": [{"oid": oid, "suite": "python"} for oid in OIDS],
        "attempts": [key | {"input_tokens": 900, "output_tokens": 80, "fix_sha": "f" * 64} for key in keys],
        "outcomes": [
            outcome(
                key["model"], key["oid"], key["iteration_id"], passed=place % 2 == 0, diagnostics="line 3: <b>bad</b>"
            )
            for place, key in enumerate(keys)
        ],
        "attempt_scores": [key | {"cost_usd": 0.002, "duration_seconds": 3.0} for key in keys],
        "quarantine": [{"source_file": "m_fixes.csv", "line": 7, "kind": "ragged", "reason": "6 cells"}],
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    file = root / "report.html"
    file.write_text(report_html(write_results(root, **tables())))
    return file


@pytest.fixture
def opened(page: Page, report: Path) -> Page:
    page.goto(report.as_uri())
    expect(page.locator("#leaderboard-table.dataTable")).to_be_visible()
    return page


def first_cell(page: Page, table: str = "leaderboard-table") -> Locator:
    return page.locator(f"#{table} tbody tr").first.locator("td").first


def test_tables_sort_search_and_turn_pages(opened: Page) -> None:
    expect(first_cell(opened)).to_have_text("model-00")
    rate = opened.locator("#leaderboard-table thead th", has_text="pass@1")
    rate.click()
    expect(rate, "by the figure, the highest first").to_have_attribute("aria-sort", "descending")
    expect(first_cell(opened)).to_have_text("model-00")
    rate.get_by_role("button").press("Enter")
    expect(first_cell(opened), "by keyboard, the lowest first").to_have_text("model-29")
    opened.get_by_label("Search").first.fill("model-17")
    expect(opened.locator("#leaderboard-table tbody tr")).to_have_count(1)
    opened.get_by_label("Search").first.fill("")
    rate.click()
    expect(opened.locator("#leaderboard .dt-info")).to_have_text("Showing 1 to 25 of 30 entries")
    opened.locator("#leaderboard .dt-paging-button.next").click()
    expect(first_cell(opened)).to_have_text("model-25")


def test_from_a_model_to_an_attempt_by_keyboard(opened: Page) -> None:
    opened.locator("#leaderboard-table a", has_text="model-00").focus()
    opened.keyboard.press("Enter")
    dialog = opened.get_by_role("dialog", name="model-00")
    expect(dialog).to_be_visible()
    expect(opened).to_have_url(re.compile("#model-0$"))
    case = dialog.get_by_role("link").first
    case.focus()
    opened.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    expect(opened).to_have_url(re.compile("#case-"))
    summary = opened.locator("details.case[open] > summary")
    expect(summary).to_be_focused()
    opened.keyboard.press("Tab")
    opened.keyboard.press("Tab")
    opened.keyboard.press("Enter")
    expect(opened.locator("details.attempt[open] pre").last).to_have_text("line 3: <b>bad</b>")


def test_escape_closes_the_dialog_and_the_address_leads_to_a_case(opened: Page, report: Path) -> None:
    opened.goto(f"{report.as_uri()}#model-1")
    expect(opened.get_by_role("dialog", name="model-01")).to_be_visible()
    opened.keyboard.press("Escape")
    expect(opened.get_by_role("dialog")).to_have_count(0)
    expect(opened).to_have_url(re.compile("#leaderboard$"))
    opened.goto(f"{report.as_uri()}#case-2")
    expect(opened.locator("#case-2")).to_have_attribute("open", "")


def test_a_phone_scrolls_tables_not_the_page(opened: Page) -> None:
    opened.set_viewport_size({"width": 360, "height": 740})
    _scroll_through(opened)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    region = opened.locator("#comparison .scroll").first
    assert region.evaluate("element => element.scrollWidth > element.clientWidth")
    region.focus()
    expect(region).to_be_focused()
    for _ in range(50):
        opened.keyboard.press("ArrowRight")
        if region.evaluate("element => element.scrollLeft") > 0:
            break
    else:
        pytest.fail("the arrow keys do not scroll the table")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_violation(opened: Page, scheme: str) -> None:
    opened.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    _scroll_through(opened)
    opened.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert serious_violations(opened) == []
    opened.locator("#leaderboard-table a").first.click()
    assert serious_violations(opened) == []


def test_dark_follows_the_system(opened: Page) -> None:
    colour = "getComputedStyle(document.querySelector('#leaderboard-table td.number')).color"
    light = opened.evaluate(colour)
    opened.emulate_media(color_scheme="dark")
    assert opened.evaluate(colour) != light


def test_charts_follow_the_system_and_are_printed_in_light_colours(opened: Page) -> None:
    label = opened.locator("#chart-leaderboard svg text", has_text="model-00").first
    colour = "element => getComputedStyle(element).fill"
    light = label.evaluate(colour)
    opened.emulate_media(color_scheme="dark")
    assert label.evaluate(colour) != light
    opened.emulate_media(color_scheme="dark", media="print")
    assert label.evaluate(colour) == light


def test_print_leaves_the_attempts_out_unless_they_are_wanted(opened: Page) -> None:
    attempts = opened.locator("details.case").first
    opened.emulate_media(media="print")
    assert not attempts.is_visible() and opened.get_by_text("left out of this print").is_visible()
    assert not opened.get_by_label("Sections").is_visible() and not opened.get_by_label("Search").first.is_visible()
    short = len(opened.pdf(format="A4"))
    opened.emulate_media(media="screen")
    # By the keyboard: tables that are drawn meanwhile may move the box between press and release of a mouse.
    wanted = opened.get_by_label("Print the attempts as well")
    wanted.press("Space")
    expect(wanted).to_be_checked()
    assert len(opened.pdf(format="A4")) > short
    assert opened.locator("details:not([open])").count() == 0
    opened.emulate_media(media="print")
    assert attempts.is_visible() and not opened.get_by_text("left out of this print").is_visible()


def test_without_scripts_the_paragraph_first_rows_and_charts_remain(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "model-00 repairs 90 of 100 problems at the first try" in page.locator("#summary").inner_text()
    assert page.locator("#leaderboard-table tbody tr").count() == 25
    expect(page.locator("#chart-leaderboard svg text", has_text="model-00")).to_be_visible()
    context.close()


def test_the_page_paints_before_the_scripts_are_read(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    early: Callable[[str], object] = page.evaluate
    assert early("document.getElementById('report-data').compareDocumentPosition(document.getElementById('main')) & 2")


def _scroll_through(page: Page) -> None:
    """Bring every part into view, so that it is drawn."""
    for element in page.locator("table.grid").all():
        element.scroll_into_view_if_needed()
    expect(page.locator("table.grid:not([data-drawn])")).to_have_count(0)
