"""The Dagster UI in a real browser: from the graph to an asset, its checks and the run, and names that are markup."""

import csv
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import serious_violations
from tests.browser.demo import Demo
from tests.browser.screenshots import metadata

pytestmark = pytest.mark.browser

# Slashes are not possible: a model is named after its file.
MODEL = "<img src=x onerror=alert(1)>🙂 **b** [l](javascript:alert)"
TIER = "=cmd()\u202e\x1b[31m<script>"
SHOWN_TIER = r"=cmd()\u202e\x1b[31m<script>"
CLASS = "![x](http://192.0.2.1/x.png)"


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the UI after a run of the sample, with one more model whose names are markup."""
    demo = Demo(tmp_path_factory.mktemp("ui"))
    with (demo.folder / "data" / f"{MODEL}_fixes.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [["oid", "iteration_id", "tier", "classification", "plausible_fix"]]
        rows += [[f"py-{number:03}", TIER, TIER, CLASS, "false"] for number in range(1, 11)]
        csv.writer(file).writerows(rows)
    demo.run()
    with demo.ui() as address:
        yield address


def test_from_the_graph_to_an_asset_its_checks_and_the_run(ui: str, page: Page) -> None:
    page.goto(f"{ui}/asset-groups")
    groups = page.locator("svg foreignObject.group")
    for group in ("ingest", "validation", "metrics", "scores", "reliability", "economics", "comparison", "publish"):
        expect(groups.get_by_text(group)).to_be_visible()

    groups.get_by_text("metrics").click()
    page.locator("svg foreignObject").get_by_text("pass_at_k", exact=True).click()
    page.get_by_role("link", name="View in Asset Catalog").click()
    expect(page).to_have_url(re.compile("/assets/pass_at_k"))
    rows = metadata(page, "leaderboard").locator("tbody tr")
    expect(rows).to_have_count(7)
    expect(rows.first).to_have_text(re.compile(r"^atlas-large\s*T1\s*0\.779 \[0\.686, 0\.851\]"))
    expect(page.get_by_text("evaluation", exact=True)).to_be_visible()
    # Dagster's own elements break rules here and there; the table in the table is ours.
    assert serious_violations(page, within="table table") == []

    page.get_by_role("tab", name="Checks").click()
    expect(page.get_by_text("Every model and tier attempted enough of the problems.")).to_be_visible()
    page.get_by_text("within_bounds").first.click()
    expect(page.get_by_text("Passed", exact=True)).to_be_visible()

    page.locator("a[href='/runs']").first.click()
    expect(page.get_by_text("touchstone/verdict: no baseline")).to_be_visible()
    expect(page.get_by_text("touchstone/snapshot: ")).to_be_visible()
    page.locator("a[href^='/runs/']").first.click()
    expect(page.get_by_text("RUN_SUCCESS")).to_be_visible()


def test_under_its_other_name_too(ui: str, page: Page) -> None:
    with page.expect_websocket() as subscription:
        page.goto(f"{ui.replace('127.0.0.1', 'localhost')}/runs")
        page.locator("a[href^='/runs/']").first.click()
        expect(page.get_by_text("RUN_SUCCESS")).to_be_visible()
    assert not subscription.value.is_closed()


def test_a_page_of_another_site_gets_no_answer(ui: str, browser: Browser, tmp_path: Path) -> None:
    mutation = quote('mutation { deleteRun(runId: "x") { __typename } }')
    (tmp_path / "index.html").write_text(f"<img src='{ui}/graphql?query={mutation}'><iframe src='{ui}'></iframe>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        page = browser.new_page()
        answers: list[int] = []
        page.on("response", lambda response: answers.append(response.status) if response.url.startswith(ui) else None)
        # Another site for a browser, though the same machine.
        page.goto(f"http://localhost:{elsewhere.server_port}", wait_until="networkidle")
        sent = (
            "url => new Promise(done => { const it = new WebSocket(url); it.onopen = it.onclose = e => done(e.type) })"
        )
        assert page.evaluate(sent, f"{ui.replace('http', 'ws')}/graphql") == "close"
        page.close()
        elsewhere.shutdown()
    assert answers == [403, 403]


def test_an_asset_shows_its_chart_and_figures_at_once_and_before_its_columns(ui: str, page: Page) -> None:
    page.goto(f"{ui}/assets/pass_at_k")
    picture = metadata(page, "chart").get_by_role("img", name="pass@1")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 300
    keys = page.locator("tr td:first-child").all_inner_texts()
    assert keys.index("chart") < keys.index("leaderboard") < keys.index("preview") < keys.index("columns")
    for table in ("attempts", "outcomes", "attempt_scores"):
        page.goto(f"{ui}/assets/{table}")
        expect(metadata(page, "preview").locator("tbody tr", has_text="atlas-large").first).to_be_visible()


def test_names_that_are_markup_show_as_text(ui: str, page: Page) -> None:
    """In metadata and its labels, check messages and partition keys. To ask for a picture elsewhere fails any test."""
    page.goto(f"{ui}/assets/pass_at_k")
    expect(metadata(page, "leaderboard").locator("tbody tr").last).to_contain_text(f"{MODEL}{SHOWN_TIER}")
    expect(metadata(page, f"{MODEL} {SHOWN_TIER} pass@1")).to_contain_text("0")
    page.goto(f"{ui}/assets/pass_at_k?view=checks&checkDetail=coverage")
    expect(page.get_by_text("1 of 7 models and tiers")).to_contain_text(f"({MODEL} {SHOWN_TIER}: 10 of 40)")
    page.goto(f"{ui}/assets/attempt_scores?view=checks&checkDetail=known_classes")
    expect(page.get_by_text("10 of 4,804 attempts have an unknown class")).to_contain_text("score 0: ![x](http:")
    page.goto(f"{ui}/assets/models?view=partitions&partition={quote(MODEL)}")
    expect(page.get_by_text(MODEL).filter(visible=True).first).to_be_visible()
    assert page.locator("img[src=x], strong, b, a[href^=javascript]").count() == 0
