"""The site of the three samples and of two other tools' files in a real browser: links, search, keyboard, widths."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import serious_violations
from tests.conftest import PROJECT
from tests.ingest.adapters.formats import FILES
from touchstone import evaluate
from touchstone.publish.site import file_name, write_site

pytestmark = pytest.mark.browser

SAMPLES = {"sample": "", "python": "python", "terraform": "terraform"}
TOOLS = ("human_eval", "promptfoo")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    for name, folder in SAMPLES.items():
        config = PROJECT / "data" / "sample" / folder / "evaluation_config.json"
        # Two snapshots of the first: one more model.
        for only in (["atlas-large"], []) if name == "sample" else ([],):
            evaluate(config, output_dir=root / name, only=only)
    for tool in TOOLS:
        evaluate(shutil.copytree(FILES / tool, root / "files" / tool), output_dir=root / tool)
    (root / "python" / "report.html").unlink()  # a stand-in in tests; without it, the site draws the report
    unread = write_site([root / name for name in (*SAMPLES, *TOOLS, "none")], root / "public")
    assert len(unread) == 1
    return root / "public"


def pages(site: Path) -> list[Path]:
    """One page of each kind."""
    return [
        site / "index.html",
        site / "models" / file_name("atlas-large"),
        site / "benchmarks" / file_name("sample"),
        site / "reports" / file_name("python"),
    ]


@pytest.mark.parametrize("width", [390, 1440])
def test_no_page_is_wider_than_the_window_or_seriously_inaccessible(page: Page, site: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for file in pages(site)[:3]:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(file.as_uri())
            assert serious_violations(page) == [], file
        assert page.evaluate("document.documentElement.scrollWidth") <= width, file


@pytest.mark.parametrize("width", [390, 1440])
def test_by_keyboard_from_the_search_to_a_models_problems_and_back(page: Page, site: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(pages(site)[0].as_uri())
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the results")).to_be_focused()
    page.get_by_role("searchbox").focus()
    page.keyboard.type("LARGE")
    expect(page.get_by_role("status")).to_have_text("1 found")
    page.keyboard.press("Tab")
    expect(page.locator("#search").get_by_role("link", name="atlas-large")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("atlas-large")
    page.get_by_role("link", name="8 of 8").press("Enter")
    expect(page.get_by_role("dialog", name="atlas-large")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="python").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("python")
    page.get_by_role("link", name="All evaluations").press("Enter")
    page.get_by_role("searchbox").fill("nothing like it")
    expect(page.get_by_role("status")).to_have_text("0 found")
    page.get_by_role("searchbox").fill("promptfoo")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("promptfoo")


def test_without_scripts_all_but_the_search_remains(browser: Browser, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages(site)[0].as_uri())
    expect(page.get_by_role("searchbox")).to_have_count(0)
    assert page.locator("#leaderboard-table tbody tr").count() >= 8
    expect(page.locator("#unread-table")).to_contain_text("none: no results here")
    page.get_by_role("link", name="sample", exact=True).click()
    expect(page.locator("#chart-leaderboard svg")).to_be_visible()
    context.close()


def test_print_has_neither_search_nor_navigation(page: Page, site: Path) -> None:
    page.goto(pages(site)[0].as_uri())
    expect(page.get_by_role("searchbox")).to_be_visible()
    page.emulate_media(media="print")
    assert not page.get_by_role("searchbox").is_visible() and not page.get_by_label("Sections").is_visible()
