"""A chart's page in a browser: it draws offline, tooltips show names as text, and it follows light and dark."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import serious_violations
from tests.publish.charts.tables import HOSTILE, model_comparison, names, pass_at_k, problem_statistics
from touchstone.publish.charts import spec
from touchstone.publish.charts.rendering import html

pytestmark = pytest.mark.browser


@pytest.fixture
def leaderboard(page: Page, tmp_path: Path) -> Page:
    file = tmp_path / "chart.html"
    file.write_text(html(spec("leaderboard", pass_at_k([HOSTILE, "plain"]))))
    page.goto(file.as_uri())
    expect(page.locator("#chart svg.marks").first).to_be_visible()
    return page


def test_a_tooltip_shows_the_whole_name_as_text(leaderboard: Page) -> None:
    expect(leaderboard.get_by_text("n = 8 problems")).to_be_visible()
    leaderboard.locator("#chart .mark-symbol path").first.hover()
    tooltip = leaderboard.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text("wilson-t")
    leaderboard.locator("#chart .mark-symbol path").last.hover()
    expect(tooltip).to_contain_text('<script>alert("1")</script> \\u202egnp.exe')
    assert leaderboard.locator("#vg-tooltip-element script").count() == 0


def test_a_page_follows_the_readers_colours(leaderboard: Page) -> None:
    picture = leaderboard.locator("#chart svg.marks")
    expect(picture).to_have_css("background-color", "rgb(255, 255, 255)")
    leaderboard.emulate_media(color_scheme="dark")
    expect(picture).to_have_css("background-color", "rgb(24, 26, 27)")


def test_a_page_has_no_serious_accessibility_violation(leaderboard: Page) -> None:
    expect(leaderboard.get_by_role("img", name="Leaderboard n = 8 problems.")).to_be_visible()
    assert serious_violations(leaderboard) == []


@pytest.mark.parametrize(
    ("name", "table"),
    [("problem_heatmap", problem_statistics(names(134), 800)), ("pairwise_verdicts", model_comparison(names(134)))],
)
def test_large_charts_are_drawn(page: Page, tmp_path: Path, name: str, table: object) -> None:
    file = tmp_path / "chart.html"
    file.write_text(html(spec(name, table)))  # type: ignore[arg-type]
    page.goto(file.as_uri())
    expect(page.locator("#chart canvas, #chart svg.marks").first).to_be_visible()
    assert serious_violations(page) == []
