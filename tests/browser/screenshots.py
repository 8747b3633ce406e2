"""The pictures of README.md and docs/, taken anew: `make screenshots`. Look at each before you commit it."""

import re
import tempfile
from pathlib import Path

from playwright.sync_api import FloatRect, Locator, Page

from tests.browser.conftest import PATIENCE_MS, launched_browser
from tests.browser.demo import Demo, explored
from tests.conftest import PROJECT

IMAGES = PROJECT / "docs" / "images"
_SETTLE_MS = 3000
_MARGIN = 20


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder:
        demo = Demo(Path(folder))
        demo.run()
        demo.call("snapshots", "pin", "latest", "baseline", "--data", "results")
        demo.run("--force")
        with demo.ui() as address, launched_browser() as browser:
            context = browser.new_context(viewport={"width": 1600, "height": 900})
            context.set_default_timeout(PATIENCE_MS)
            take_dagster(context.new_page(), address)
        with explored(demo.folder / "results") as address, launched_browser() as browser:
            context = browser.new_context()
            context.set_default_timeout(PATIENCE_MS)
            take_pages(context.new_page(), demo.folder / "results" / "report.html", address)


def take_pages(page: Page, report: Path, dashboard: str) -> None:
    page.set_viewport_size({"width": 1100, "height": 1120})
    page.goto(report.as_uri())
    page.locator("#leaderboard .chart svg").first.wait_for()
    take(page, "report")
    page.set_viewport_size({"width": 1100, "height": 860})
    page.goto(dashboard)
    page.get_by_role("heading", name="Leaderboard").wait_for()
    page.locator("tbody tr").first.get_by_role("link").click()
    page.get_by_role("heading", name="Problems of").wait_for()
    take(page, "explore")


def take_dagster(page: Page, ui: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    take_graph(page, ui)
    take_asset(page, ui)
    page.goto(f"{ui}/assets/quarantine?view=checks&checkDetail=quarantine_share")
    page.get_by_text("Evaluation result").wait_for()
    take(page, "check")
    page.goto(f"{ui}/runs")
    page.get_by_text("touchstone/verdict: passed").wait_for()
    take(page, "runs")
    page.locator("a[href^='/runs/']").first.click()
    page.get_by_text("RUN_SUCCESS").wait_for()
    take(page, "run")


def take_graph(page: Page, ui: str) -> None:
    page.goto(f"{ui}/asset-groups")
    groups = page.locator("svg foreignObject.group")
    groups.get_by_text("publish").wait_for()
    page.wait_for_timeout(_SETTLE_MS)
    boxes = groups.evaluate_all("all => all.map(each => each.getBoundingClientRect())")
    left, top = (min(box[edge] for box in boxes) - _MARGIN for edge in ("left", "top"))
    # The zoom bar begins right of the last group.
    right, bottom = max(box["right"] for box in boxes), max(box["bottom"] for box in boxes) + _MARGIN
    clip = FloatRect(x=left, y=top, width=right - left, height=bottom - top)
    page.screenshot(path=IMAGES.parent / "graph.png", clip=clip)
    groups.get_by_text("metrics").click()
    page.locator("svg foreignObject").get_by_text("pass_at_k", exact=True).click()
    page.get_by_text("View in Asset Catalog").wait_for()
    take(page, "graph")


def take_asset(page: Page, ui: str) -> None:
    page.goto(f"{ui}/assets/pass_at_k")
    metadata(page, "leaderboard").wait_for()
    take(page, "asset")


def metadata(page: Page, key: str) -> Locator:
    """The row of the asset's page that shows a piece of metadata."""
    return page.locator("tr", has=page.locator("td:first-child", has_text=re.compile(f"^{re.escape(key)}$"))).first


def take(page: Page, name: str) -> None:
    # What moves must stand still, and nothing says when it does.
    page.wait_for_timeout(_SETTLE_MS)
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
