"""The dashboard as a reader uses it: by mouse and keyboard, on a phone, in the dark, and on paper."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import serious_violations
from tests.browser.demo import explored
from tests.conftest import Folder
from tests.publish.dashboard.conftest import MARKUP, filterable  # noqa: F401
from tests.publish.test_query import fingerprint

pytestmark = pytest.mark.browser

# Starting the server and the first figures take seconds on a busy machine; what is waited for is never a time.
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def results(filterable: Folder, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """Results of this file alone, for comments."""
    copied = shutil.copytree(filterable.root, tmp_path_factory.mktemp("dashboard") / "copy", symlinks=True)
    return Folder(Path(copied)).output


@pytest.fixture(scope="module")
def address(results: Path) -> Iterator[str]:
    """The address that the command prints. Nothing but comments may change under the results."""
    before = fingerprint(results)
    with explored(results) as found:
        yield found
    for file in results.glob("*comments.json*"):
        file.unlink()
    assert fingerprint(results) == before


@pytest.fixture
def dashboard(page: Page, address: str) -> Page:
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    expect(page.get_by_role("heading", name="Leaderboard")).to_be_visible()
    return page


def row(page: Page, name: str) -> Locator:
    return page.locator("tbody tr", has=page.get_by_role("cell", name=name, exact=True)).first


def open_row(page: Page, name: str) -> None:
    """Click far from the name of a row: its link covers all of it."""
    row(page, name).locator("td").last.click(force=True)


def test_a_click_on_a_row_opens_it_and_the_address_can_be_sent(dashboard: Page) -> None:
    dashboard.locator("summary", has_text="Suites").click()
    dashboard.get_by_label("web").press("Space")
    expect(dashboard.get_by_label("web")).to_be_checked()
    dashboard.get_by_role("button", name="Apply").click()
    expect(dashboard.get_by_text("n = 8 problems, 128 attempts, 4 rows")).to_be_visible()
    open_row(dashboard, "m")
    expect(dashboard.get_by_role("heading", name="Problems of m, tier")).to_be_visible()
    open_row(dashboard, "p1")
    expect(dashboard.get_by_role("heading", name="at p1")).to_be_visible()
    open_row(dashboard, "3")
    expect(dashboard.get_by_role("heading", name="p1, attempt 3: ")).to_be_visible()
    expect(dashboard).to_have_url(re.compile("suite=web.*of_model=m.*problem=p1.*attempt=3"))
    assert "token" not in dashboard.url
    again = dashboard.context.new_page()
    again.goto(dashboard.url)
    expect(again.get_by_role("heading", name="p1, attempt 3: ")).to_be_visible()
    assert serious_violations(again) == []


def test_the_keyboard_opens_a_row_and_sorts(dashboard: Page) -> None:
    dashboard.get_by_role("link", name="cost of pass").press("Enter")
    expect(dashboard.get_by_role("columnheader", name="cost of pass")).to_have_attribute("aria-sort", "descending")
    row(dashboard, "one-suite").get_by_role("link").press("Enter")
    expect(dashboard.get_by_role("heading", name="Problems of one-suite")).to_be_visible()


def test_a_comment_is_written_shown_and_changed(dashboard: Page, address: str) -> None:
    base = address.partition("?")[0]
    dashboard.goto(f"{base}attempt?of_model=m&of_tier=T0&problem=p2&attempt=1")
    for text in ("<b>why</b>\nsee line 2", "understood"):
        dashboard.locator("#comment summary").click()
        dashboard.get_by_role("textbox").fill(text)
        dashboard.get_by_role("button", name="Save the comment").click()
        expect(dashboard.locator(".comment")).to_have_text(text)
    assert serious_violations(dashboard) == []


def test_a_query_is_answered_and_the_tables_are_listed_beside_it(dashboard: Page) -> None:
    dashboard.get_by_role("link", name="SQL").click()
    box = dashboard.get_by_label("One SELECT over the tables")
    dashboard.locator("aside summary", has_text="problem_frontier").click()
    expect(dashboard.locator("aside dt", has_text="mean_pass_rate")).to_be_visible()
    dashboard.locator("summary", has_text="Examples").click()
    dashboard.get_by_role("link", name="Hardest problems").click()
    expect(box).to_have_value(re.compile("FROM problem_frontier"))
    box.fill("SELECT model, count(*) AS attempts FROM attempts GROUP BY model ORDER BY model")
    dashboard.get_by_role("button", name="Run").click()
    expect(row(dashboard, "128")).to_be_visible()
    assert serious_violations(dashboard) == []


def test_charts_and_files_follow_the_filters(dashboard: Page) -> None:
    dashboard.get_by_role("link", name="Charts").click()
    expect(dashboard.get_by_role("img", name="Leaderboard n = 8 to 16 problems.")).to_be_visible()
    dashboard.goto(f"{dashboard.url}?suite=web")
    expect(dashboard.get_by_role("img", name="Leaderboard n = 8 problems.")).to_be_visible()
    with dashboard.expect_download() as saved:
        dashboard.get_by_role("link", name="SVG").click()
    assert saved.value.suggested_filename == "chart.svg" and "n = 8 problems" in Path(saved.value.path()).read_text()


def test_two_models_side_by_side(dashboard: Page) -> None:
    dashboard.get_by_role("link", name="Side by side").click()
    dashboard.get_by_label("Baseline model").select_option("m")
    dashboard.get_by_label("Current model").select_option("one-suite")
    dashboard.get_by_role("button", name="Compare").click()
    expect(dashboard.get_by_text(re.compile("^Cases: .*regression"))).to_be_visible()
    assert serious_violations(dashboard) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", "attempts", "sql", "charts"])
def test_a_phone_scrolls_tables_not_the_page(
    dashboard: Page, address: str, path: str, scheme: Literal["light", "dark"]
) -> None:
    dashboard.set_viewport_size({"width": 390, "height": 800})
    dashboard.emulate_media(color_scheme=scheme)
    dashboard.goto(address.partition("?")[0] + path)
    assert dashboard.evaluate("document.documentElement.scrollWidth") <= 390
    assert serious_violations(dashboard) == []


def test_names_of_others_are_text(dashboard: Page) -> None:
    """The page fixture fails if anything is fetched or runs."""
    open_row(dashboard, "m")
    expect(row(dashboard, MARKUP)).to_be_visible()
    expect(dashboard.locator("td img, td b")).to_have_count(0)
