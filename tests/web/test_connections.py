"""The way between the page and the server: it breaks, it buffers, it is shared by tabs, and the server stops and comes back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.web.documents import LOOP, WAITS
from tests.web.looks import card, connection, run_row, see_live, see_status, until, view
from tests.web.proxy import Proxy, proxied
from tests.web.scenes import Server, page_of, write

AWAY = re.compile("The server is not answering")


@pytest.fixture(scope="module")
def local(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with page_of(tmp_path_factory.mktemp("connections")) as server:
        yield server


@pytest.fixture
def proxy(local: Server) -> Iterator[Proxy]:
    with proxied(local.port) as made:
        yield made


@pytest.fixture
def gate(tmp_path: Path) -> str:
    return str(tmp_path / "gate")


def sign_in(context: BrowserContext, server: Server, url: str) -> None:
    answer = context.request.post(f"{url}/api/session", data={"token": server.secret}, headers={"Origin": url})
    assert answer.ok, answer.text()


def shown_events(page: Page, last: int) -> list[int]:
    """The numbers of the events in the list, which is in sight as a whole."""
    rows = page.get_by_role("listbox", name="Events").get_by_role("option")
    expect(rows).to_have_count(last)
    expect(page.locator(".ev-waiting")).to_have_count(0)
    return [int(row.get_attribute("aria-posinset") or 0) for row in rows.all()]


def test_a_page_that_lost_the_server_says_so_and_then_shows_every_event_once(
    local: Server, proxy: Proxy, page: Page, gate: str
) -> None:
    page.set_viewport_size({"width": 1280, "height": 2400})
    sign_in(page.context, local, proxy.url)
    run = local.api.submit(WAITS, payload={"gate": gate})
    page.goto(f"{proxy.url}/runs/{run}")
    see_live(page)
    expect(card(page, "wait", "running")).to_be_visible()
    expect(view(page, "Events").get_by_role("listbox", name="Events")).to_contain_text("step.scheduled")
    proxy.cut()
    expect(connection(page)).to_have_text(AWAY)
    # What happens meanwhile is not seen, and is not lost.
    Path(gate).touch()
    local.api.ended(run)
    see_status(page, "Running")
    proxy.mend()
    see_live(page)
    see_status(page, "Completed")
    last = len(local.api.events(run))
    assert shown_events(page, last) == list(range(1, last + 1))
    types = [str(event["event_type"]) for event in local.api.events(run)]
    assert page.locator(".ev-type").all_inner_texts()[-last:] == types


def test_a_stream_that_is_cut_again_and_again_misses_nothing(
    local: Server, proxy: Proxy, page: Page, gate: str
) -> None:
    page.set_viewport_size({"width": 1280, "height": 2400})
    sign_in(page.context, local, proxy.url)
    run = local.api.submit(LOOP, payload={"gate": gate})
    page.goto(f"{proxy.url}/runs/{run}?view=events")
    see_live(page)
    for number in range(6):
        asked = proxy.streams_asked
        proxy.cut_streams()
        Path(f"{gate}-{number}").touch()
        expect(page.get_by_role("listbox", name="Events")).to_contain_text(f"[{number}]")
        until(page, lambda: proxy.streams_asked > asked)
    see_status(page, "Completed")
    last = len(local.api.events(run))
    assert shown_events(page, last) == list(range(1, last + 1))


def test_a_view_that_is_first_opened_while_the_server_is_away_comes_when_it_is_back(
    local: Server, proxy: Proxy, page: Page, gate: str
) -> None:
    Path(gate).touch()
    run = local.api.done(WAITS, payload={"gate": gate})
    sign_in(page.context, local, proxy.url)
    page.goto(f"{proxy.url}/runs/{run}")
    expect(card(page, "last", "completed")).to_be_visible()
    proxy.cut()
    expect(connection(page)).to_have_text(AWAY)
    page.get_by_role("tab", name="Timeline").click()
    # The rest of the page stays.
    see_status(page, "Completed")
    proxy.mend()
    expect(page.get_by_role("tabpanel", name="Timeline").get_by_text("wait", exact=True).first).to_be_visible()
    see_live(page)
    see_status(page, "Completed")


def test_the_page_is_live_behind_a_proxy_that_buffers(local: Server, page: Page, gate: str) -> None:
    with proxied(local.port, is_buffering=True) as proxy:
        sign_in(page.context, local, proxy.url)
        run = local.api.submit(WAITS, payload={"gate": gate})
        page.goto(f"{proxy.url}/runs/{run}")
        see_live(page)
        expect(card(page, "wait", "running")).to_be_visible()
        Path(gate).touch()
        see_status(page, "Completed")
        page.goto("about:blank")


def test_eight_tabs_share_one_stream(
    local: Server, proxy: Proxy, page: Page, another_page: Callable[[], Page], gate: str
) -> None:
    sign_in(page.context, local, proxy.url)
    runs = [local.api.submit(WAITS, payload={"gate": gate}, label=f"tab {number}") for number in range(4)]
    tabs = [page, *(another_page() for _ in range(7))]
    for number, tab in enumerate(tabs):
        tab.goto(f"{proxy.url}/runs/{runs[number]}" if number < 4 else f"{proxy.url}/runs")
        see_live(tab)
    # A stream with a further run takes the place of the one before, of whose end the proxy may hear a little later.
    until(page, lambda: proxy.streams == 1)
    Path(gate).touch()
    for tab in tabs[:4]:
        see_status(tab, "Completed")
    for tab in tabs[4:]:
        for number in range(4):
            expect(run_row(tab, f"tab {number}")).to_contain_text("Completed")
    # HTTP/1.1 allows six connections: with a stream for each tab, none would be left to ask for anything.
    until(page, lambda: proxy.streams == 1)


def test_the_next_tab_goes_on_when_the_first_is_closed(
    local: Server, proxy: Proxy, context: BrowserContext, another_page: Callable[[], Page], gate: str
) -> None:
    sign_in(context, local, proxy.url)
    run = local.api.submit(WAITS, payload={"gate": gate})
    first, second = another_page(), another_page()
    for tab in (first, second):
        tab.goto(f"{proxy.url}/runs/{run}")
        see_live(tab)
    first.close()
    Path(gate).touch()
    see_status(second, "Completed")


def test_a_server_that_was_stopped_and_started_again_is_found_by_the_page(
    built: Path, page: Page, tmp_path: Path, gate: str
) -> None:
    write(tmp_path / "project", "nightly")
    with page_of(tmp_path) as first:
        run = first.api.submit(WAITS, payload={"gate": gate})
        proxy = Proxy(first.port)
        sign_in(page.context, first, proxy.url)
        page.goto(f"{proxy.url}/runs/{run}")
        expect(card(page, "wait", "running")).to_be_visible()
    expect(connection(page)).to_have_text(AWAY)
    with page_of(tmp_path, listen=f"127.0.0.1:{first.port}") as second:
        # The token of the folder is another one now: the page asks for it, and then is where it was.
        expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()
        page.get_by_role("textbox", name="Token").fill(second.secret or "")
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(re.compile(rf"/runs/{run}"))
        see_live(page)
        see_status(page, "Interrupted")
        Path(gate).touch()
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("dialog").get_by_role("button", name="Resume").click()
        see_status(page, "Completed")
    proxy.close()
