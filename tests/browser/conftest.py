"""A real browser for pages: Debian's Chromium driven by Playwright.

Every test gets a fresh `page`. It fails if the page asked for anything beyond this machine, wrote an error to the
console or threw one. Run these tests with `make test-browser`.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

# Generous: a test that fails is rare, and a machine whose cores are busy needs minutes for a page.
PATIENCE_MS = 300_000
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
# What a page asks of another machine fails at once, on every machine alike.
_OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("no Chromium on this machine; Debian and Ubuntu: sudo apt-get install chromium")
    with launched_browser() as launched:
        yield launched


def chromium() -> str | None:
    """The path of the browser, if this machine has one."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def launched_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", _OFFLINE])
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of 1,280 x 900 pixels whose trouble fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page, trouble = context.new_page(), list[str]()
    page.on("request", lambda request: None if _is_local(request.url) else trouble.append(f"request: {request.url}"))
    page.on("websocket", lambda socket: None if _is_local(socket.url) else trouble.append(f"socket: {socket.url}"))
    page.on("console", lambda line: trouble.append(f"console: {line.text}") if line.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(f"exception: {error}"))
    yield page
    context.close()
    assert not trouble, "\n".join(trouble)


def serious_violations(page: Page, within: str | None = None) -> list[str]:
    """The accessibility rules that the page, or an element of it, breaks seriously or critically."""
    found = Axe().run(page, context=within).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['nodes'][0]['html'][:200]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("file", "data", "blob", "about") or parts.netloc.rsplit(":", 1)[0] in _LOCAL
