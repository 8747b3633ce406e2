"""The dashboard as a reader uses it: filters, drill-down, charts, two models side by side, SQL and files."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import polars as pl
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import serious_violations
from tests.browser.demo import explored
from tests.conftest import Folder
from tests.publish.dashboard.conftest import ADDRESS, FORMULA, MARKUP, PROBLEMS, filterable  # noqa: F401
from tests.publish.test_query import fingerprint
from touchstone.publish.dashboard.figures import leaderboard
from touchstone.publish.dashboard.markup import cell, column_cell
from touchstone.publish.dashboard.run_tables import RunTables
from touchstone.publish.dashboard.selection import Filters, Selection

pytestmark = pytest.mark.browser

# Starting the server and the first figures take seconds on a busy machine; what is waited for is never a time.
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def address(filterable: Folder) -> Iterator[str]:  # noqa: F811
    """The address that the command prints. Nothing under the results may change while it is open."""
    before = fingerprint(filterable.output)
    with explored(filterable.output) as found:
        yield found
    assert fingerprint(filterable.output) == before


@pytest.fixture
def dashboard(page: Page, address: str) -> Page:
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    expect(table(page, 0).get_by_role("row").nth(1)).to_be_visible()
    return page


def table(page: Page, number: int) -> Locator:
    return page.locator("marimo-table").nth(number)


def column(rows: Locator, name: str) -> Locator:
    """The cells of a column."""
    return rows.locator(f'td[data-cell-id$="_{name}"]')


def choose(page: Page, label: str, *values: str) -> None:
    """Choose values of a filter, as with the mouse."""
    page.get_by_label(label, exact=True).click()
    for value in values:
        page.get_by_role("option", name=value, exact=True).click()
    page.keyboard.press("Escape")


def open_view(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def test_filters_change_the_figures_to_the_right_ones(dashboard: Page, filterable: Folder) -> None:  # noqa: F811
    run = RunTables(filterable.output)
    expect(dashboard.get_by_text("n = 16 problems, 192 attempts, 4 rows")).to_be_visible()
    choose(dashboard, "Suites", "web")
    expect(dashboard.get_by_text("n = 8 problems, 128 attempts, 4 rows")).to_be_visible()
    board = leaderboard(Selection(run, Filters(suites=("web",))))
    shown = table(dashboard, 0).get_by_role("row")
    for name in ("pass_at_1", "ci_low", "ci_high", "cost_of_pass"):
        for place, value in enumerate(board[name]):
            expect(shown.nth(place + 1)).to_contain_text(column_cell(board[name])(value))
    choose(dashboard, "Models", "m")
    expect(dashboard.get_by_text("n = 8 problems, 64 attempts, 2 rows")).to_be_visible()
    dashboard.get_by_label("Slice by").select_option("difficulty")
    choose(dashboard, "Values of the slice", "hard")
    expect(dashboard.get_by_text("n = 4 problems, 32 attempts, 2 rows")).to_be_visible()
    assert serious_violations(dashboard) == []


def test_an_undefined_figure_shows_as_undefined(dashboard: Page) -> None:
    choose(dashboard, "Suites", "<b>core</b>")
    expect(dashboard.get_by_text("2 undefined")).to_be_visible()
    expect(table(dashboard, 0).get_by_role("row").last).to_contain_text("one-suite")
    expect(table(dashboard, 0).get_by_role("row").last).to_contain_text("—")


def test_from_the_leaderboard_to_one_attempt(dashboard: Page) -> None:
    select_row(table(dashboard, 0), "m")
    expect(dashboard.get_by_role("heading", name="Problems of m, tier")).to_be_visible()
    table(dashboard, 1).get_by_placeholder("Search").fill("onerror")
    expect(table(dashboard, 1).get_by_role("row")).to_have_count(2)
    select_row(table(dashboard, 1), MARKUP)
    expect(dashboard.get_by_role("heading", name=f"Attempts at {MARKUP}")).to_be_visible()
    expect(table(dashboard, 2).get_by_role("row")).to_have_count(5)
    select_row(table(dashboard, 2), "3")
    expect(dashboard.get_by_role("heading", name=f"{MARKUP}, attempt 3: ")).to_be_visible()
    expect(dashboard.get_by_role("heading", name="Diff of the fix")).to_be_visible()
    assert serious_violations(dashboard) == []


def test_foreign_names_are_text(dashboard: Page) -> None:
    """An address in a cell is no link and no picture; the page fixture fails if anything is fetched or runs."""
    select_row(table(dashboard, 0), "m")
    rows = table(dashboard, 1)
    for name, part in ((MARKUP, "onerror"), (FORMULA, "=cmd"), (ADDRESS, "evil")):
        rows.get_by_placeholder("Search").fill(part)
        expect(rows.get_by_role("row").nth(1)).to_contain_text(cell(name))
        expect(rows.locator("td img, td a, td b")).to_have_count(0)


def test_charts_follow_the_filters(dashboard: Page) -> None:
    open_view(dashboard, "Charts")
    expect(dashboard.get_by_role("img", name="Leaderboard n = 8 to 16 problems.")).to_be_visible()
    choose(dashboard, "Suites", "web")
    expect(dashboard.get_by_role("img", name="Leaderboard n = 8 problems.")).to_be_visible()
    dashboard.set_viewport_size({"width": 390, "height": 800})
    assert serious_violations(dashboard) == []


def test_two_models_side_by_side(dashboard: Page) -> None:
    open_view(dashboard, "Side by side")
    dashboard.get_by_label("Baseline model").select_option("m")
    expect(dashboard.get_by_text("choose a model on both sides")).to_be_visible()
    dashboard.get_by_label("Current model").select_option("one-suite")
    expect(dashboard.get_by_text(re.compile("^Cases: .*regression"))).to_be_visible()
    expect(dashboard.get_by_role("listitem").first).to_contain_text("current")
    assert serious_violations(dashboard) == []


def test_a_query_is_answered_and_a_forbidden_one_refused(dashboard: Page) -> None:
    open_view(dashboard, "SQL")
    run_query(dashboard, "SELECT model, count(*) AS attempts FROM attempts GROUP BY model ORDER BY model")
    expect(table(dashboard, 0).get_by_role("row").nth(1)).to_contain_text("128")
    for sql, refusal in (
        ("COPY attempts TO '/tmp/copy.csv'", "only one SELECT is allowed, got COPY"),
        ("SELECT * FROM read_text('/etc/hostname')", "the table function read_text is not allowed"),
        ("SELECT '<img src=x onerror=alert(1)>' FROM nothing", "Table with name nothing does not exist"),
    ):
        run_query(dashboard, sql)
        expect(dashboard.get_by_text(refusal)).to_be_visible()
        expect(dashboard.locator("marimo-table")).to_have_count(0)
    dashboard.get_by_label("Example").select_option("Hardest problems")
    expect(query_box(dashboard)).to_have_value(re.compile("FROM problem_frontier"))
    assert serious_violations(dashboard) == []


def test_what_is_shown_can_be_saved(dashboard: Page, filterable: Folder, tmp_path: Path) -> None:  # noqa: F811
    select_row(table(dashboard, 0), "m")
    expect(dashboard.get_by_role("link", name="CSV")).to_have_count(2)
    with dashboard.expect_download() as saved:
        dashboard.get_by_role("link", name="CSV").last.click()
    assert saved.value.suggested_filename == "problems.csv"
    assert "\n'=cmd()," in Path(saved.value.path()).read_text()
    with dashboard.expect_download() as saved:
        dashboard.get_by_role("link", name="Parquet").first.click()
    saved.value.save_as(tmp_path / "leaderboard.parquet")
    assert pl.read_parquet(tmp_path / "leaderboard.parquet").equals(
        leaderboard(Selection(RunTables(filterable.output)))
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_page_without_scrolling_sideways(dashboard: Page, scheme: Literal["light", "dark"]) -> None:
    dashboard.set_viewport_size({"width": 390, "height": 800})
    dashboard.emulate_media(color_scheme=scheme)
    expect(dashboard.get_by_role("tab", name="SQL")).to_be_in_viewport()
    assert dashboard.evaluate("document.querySelector('#App').scrollWidth") <= 390
    assert serious_violations(dashboard) == []


def select_row(rows: Locator, text: str) -> None:
    """Select the first row with a cell of that text."""
    row = rows.get_by_role("row").filter(has=rows.page.get_by_role("cell", name=text, exact=True)).first
    row.get_by_role("checkbox").click()


def query_box(page: Page) -> Locator:
    return page.get_by_label("One SELECT over the tables")


def run_query(page: Page, sql: str) -> None:
    query_box(page).fill(sql)
    page.get_by_role("button", name="Run").click()
