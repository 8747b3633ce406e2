"""The webserver of the deployment in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE_MS, chromium, launched_browser
from tests.deploy.deployment import Deployment

pytestmark = pytest.mark.services


def test_a_run_the_graph_and_the_state_of_the_daemon(deployment: Deployment, tmp_path: Path) -> None:
    if chromium() is None:
        pytest.skip("no Chromium on this machine; Debian and Ubuntu: sudo apt-get install chromium")
    run = deployment.ended(deployment.launch())
    with launched_browser() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{deployment.url}/runs/{run.run_id}")
        expect(page.get_by_text("RUN_SUCCESS")).to_be_visible()
        page.screenshot(path=tmp_path / "run.png")
        page.goto(f"{deployment.url}/asset-groups")
        expect(page.locator("svg foreignObject.group").get_by_text("publish")).to_be_visible()
        page.screenshot(path=tmp_path / "graph.png")
        page.goto(f"{deployment.url}/deployment/daemons")
        expect(page.get_by_text("Running", exact=True).first).to_be_visible()
        expect(page.get_by_text("Not running", exact=True)).to_have_count(0)
        page.screenshot(path=tmp_path / "daemons.png")
