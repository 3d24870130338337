"""A browser for tests of the page. See tests/web/chromium.py for what can be done with it.

Of a test that fails, pictures of its tabs and what their console said are kept in build/screens/failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from tests.web import chromium

WAIT_MS = 45_000
"""How long a locator may take: the machine may be busy."""
expect.set_options(timeout=WAIT_MS)

FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder of the page."""
    if not (chromium.PAGE / "index.html").is_file():
        pytest.fail("the page is not built: src/penstock/web/index.html is missing\nhint: `make web`", pytrace=False)
    return chromium.PAGE


# Not for the session: Playwright leaves an event loop running in this thread, and tests of other folders call `asyncio.run`.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = chromium.chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """A profile of the test's own: no cookies, no storage, no cache."""
    with profile(browser) as (made, said):
        yield made
        if request.node.stash.get(FAILED, False):
            keep(made, said, request.node.nodeid)


@contextmanager
def profile(browser: Browser) -> Iterator[tuple[BrowserContext, list[str]]]:
    """A profile, and what the consoles of its tabs say."""
    made = browser.new_context(
        viewport={"width": 1280, "height": 800}, locale="en-GB", timezone_id="Europe/Vienna", reduced_motion="reduce"
    )
    made.set_default_timeout(WAIT_MS)
    said: list[str] = []
    made.on("console", lambda one: said.append(f"{one.type}: {one.text}"))
    made.on("weberror", lambda one: said.append(f"failed: {one.error}"))
    try:
        yield made, said
    finally:
        made.close()


def keep(context: BrowserContext, said: list[str], name: str) -> None:
    """What the tabs of a test that failed show and said."""
    folder = chromium.SCREENS / "failed"
    folder.mkdir(parents=True, exist_ok=True)
    file = re.sub(r"[^A-Za-z0-9_]+", "-", name.removeprefix("tests/web/"))[:150]
    (folder / f"{file}.txt").write_text("\n".join([*(page.url for page in context.pages), *said]), encoding="utf-8")
    for number, page in enumerate(context.pages):
        with suppress(Error):  # A tab that hangs must not hide why the test failed.
            page.screenshot(path=folder / f"{file}-{number}.png", timeout=5_000)


@pytest.fixture
def page(built: Path, context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A tab. The test fails if a script of the page fails in it, or does what the policy of the page forbids."""
    opened, mistakes = watched(context)
    yield opened
    request.node.stash[FAILED] = request.node.stash.get(FAILED, False) or mistakes != []
    assert mistakes == []


@pytest.fixture
def another_page(built: Path, context: BrowserContext) -> Callable[[], Page]:
    """Opens further tabs of the same profile."""
    return lambda: watched(context)[0]


def watched(context: BrowserContext) -> tuple[Page, list[str]]:
    page = context.new_page()
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(f"{error.name}: {error.message}"))
    page.on("console", lambda said: mistakes.append(said.text) if _is_mistake(said.type, said.text) else None)
    return page, mistakes


def _is_mistake(kind: str, text: str) -> bool:
    # What the server refuses is shown to the user; that the browser lists it as well is not a mistake of the page.
    return kind == "error" and not text.startswith("Failed to load resource")
