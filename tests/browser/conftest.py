"""A real browser for pages: Debian's Chromium driven by Playwright.

Every test gets a fresh `page`. It fails if the page asked for anything beyond this machine, wrote an error to the
console or threw one. Run these tests with `make test-browser`.
"""

import shutil
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        pytest.skip("no Chromium on this machine; Debian and Ubuntu: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of 1,280 x 900 pixels whose trouble fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, trouble = context.new_page(), list[str]()
    page.on("request", lambda request: None if _is_local(request.url) else trouble.append(f"request: {request.url}"))
    page.on("console", lambda line: trouble.append(f"console: {line.text}") if line.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(f"exception: {error}"))
    yield page
    context.close()
    assert not trouble, "\n".join(trouble)


def serious_violations(page: Page) -> list[str]:
    """The accessibility rules that the page breaks seriously or critically, with the first element of each."""
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['nodes'][0]['html'][:200]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("file", "data", "blob", "about") or parts.netloc.rsplit(":", 1)[0] in _LOCAL
