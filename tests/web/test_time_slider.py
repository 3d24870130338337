"""The time slider: by hand, by keys, by playing; and for a run that is much longer than what a browser should load."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Response, expect

from tests.web.documents import FAILS, HELLO, MANY, WAITS
from tests.web.looks import card, moment, see_live, see_moment, see_status, slider, view
from tests.web.scenes import Server, page_of


@pytest.fixture(scope="module")
def local(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with page_of(tmp_path_factory.mktemp("slider")) as server:
        yield server


@pytest.fixture(scope="module")
def failed(local: Server) -> tuple[str, int, int]:
    """A run that failed, its first failure and its last event."""
    run = local.api.done(FAILS)
    marks = local.api.get(f"/api/executions/{run}/marks").json()
    return run, marks["first_error"], marks["last_seq"]


def drag(page: Page, share: float) -> None:
    """Takes the thumb and drags it to a share of the length of the track."""
    box = slider(page).bounding_box()
    assert box is not None
    at = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * (moment(page) - 1) / (_last(page) - 1), at)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * share, at, steps=8)
    page.mouse.up()


def _last(page: Page) -> int:
    return int(slider(page).get_attribute("aria-valuemax") or 0)


def opened(server: Server, page: Page, run: str, search: str = "") -> None:
    server.sign_in(page.context)
    server.open(page, f"/runs/{run}{search}")
    expect(slider(page)).to_be_visible()


def test_dragging_shows_every_view_as_it_was_at_that_moment(
    local: Server, page: Page, failed: tuple[str, int, int]
) -> None:
    run, first, last = failed
    opened(local, page, run)
    see_moment(page, last)
    expect(card(page, "report", "failed")).to_be_visible()
    drag(page, 0)
    see_moment(page, 1)
    for node in ("fetch", "check", "publish", "report"):
        expect(card(page, node, "waiting")).to_be_visible()
    drag(page, (first - 1) / (last - 1))
    see_moment(page, first)
    expect(card(page, "check", "failed")).to_be_visible()
    expect(card(page, "report", "waiting")).to_be_visible()
    see_status(page, "Running")
    drag(page, 1)
    see_moment(page, last)
    see_status(page, "Failed")
    expect(page).not_to_have_url(re.compile("at="))


def test_the_moment_is_in_the_address_and_comes_back_with_it(
    local: Server, page: Page, failed: tuple[str, int, int]
) -> None:
    run, first, _ = failed
    opened(local, page, run, f"?at={first}&node=check&view=graph&panel=why")
    see_moment(page, first)
    expect(card(page, "check", "failed")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("tabpanel", name="Why?")).to_contain_text("a price is not a number")
    page.reload()
    see_moment(page, first)
    expect(card(page, "report", "waiting")).to_be_visible()
    slider(page).press("ArrowLeft")
    expect(page).to_have_url(re.compile(rf"at={first - 1}\b"))


def test_keys_move_the_slider(local: Server, page: Page, failed: tuple[str, int, int]) -> None:
    run, first, last = failed
    opened(local, page, run)
    track = slider(page)
    track.focus()
    for key, at in (
        ("Home", 1),
        ("ArrowRight", 2),
        ("ArrowUp", 3),
        ("ArrowLeft", 2),
        ("Shift+ArrowRight", 12),
        ("End", last),
        ("ArrowLeft", last - 1),
        ("PageDown", 1),
    ):
        track.press(key)
        see_moment(page, at)
    page.get_by_role("heading", level=1).click()
    for key, at in (("e", first), ("]", first + 1), ("[", first), (".", last), ("{", first), ("}", last)):
        page.keyboard.press(key)
        if key in "{}":  # Between the marks there may be others than the first failure.
            expect(track).not_to_have_attribute("aria-valuenow", str(first if key == "}" else last))
        else:
            see_moment(page, at)


def test_it_steps_and_says_when_nothing_is_left(local: Server, page: Page, failed: tuple[str, int, int]) -> None:
    run, _, last = failed
    opened(local, page, run)
    on, back = page.get_by_role("button", name="One event forward"), page.get_by_role("button", name="One event back")
    expect(on).to_be_disabled()
    back.click()
    see_moment(page, last - 1)
    on.click()
    see_moment(page, last)
    slider(page).press("Home")
    see_moment(page, 1)
    expect(back).to_be_disabled()


def test_it_plays_to_the_end_and_can_be_paused(local: Server, page: Page) -> None:
    run = local.api.done(HELLO)
    opened(local, page, run)
    last = _last(page)
    page.get_by_role("combobox", name="Playback speed").select_option("10 events/s")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("To the end|go live"))).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    held = moment(page)
    assert held < last
    page.get_by_role("button", name="Play").click()
    see_moment(page, last)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    see_status(page, "Completed")


def test_a_run_that_goes_on_stays_at_the_moment_that_was_chosen_until_the_latest_is_asked_for(
    local: Server, page: Page, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run = local.api.submit(WAITS, payload={"gate": str(gate)})
    opened(local, page, run)
    see_live(page)
    expect(card(page, "wait", "running")).to_be_visible()
    slider(page).press("Home")
    expect(card(page, "wait", "waiting")).to_be_visible()
    gate.touch()
    local.api.ended(run)
    latest = page.get_by_role("button", name=re.compile("To the end|go live"))
    # The track grows, and what is shown stays.
    expect(slider(page)).to_have_attribute("aria-valuemax", str(len(local.api.events(run))))
    see_moment(page, 1)
    expect(card(page, "wait", "waiting")).to_be_visible()
    latest.click()
    see_status(page, "Completed")
    expect(card(page, "last", "completed")).to_be_visible()


# ---- a long run


@pytest.fixture(scope="module")
def long(local: Server) -> tuple[str, int]:
    run = local.api.done(MANY)
    last = int(local.api.get(f"/api/executions/{run}/header").json()["events"])
    assert last > 20_000
    return run, last


def _loaded(page: Page) -> list[Any]:
    """The pages of events that the browser asks for from now on."""
    asked: list[Any] = []

    def on(response: Response) -> None:
        if "/event-page" in response.url:
            asked.append(json.loads(response.text()))
        assert not urlsplit(response.url).path.endswith("/events"), "all events were asked for"
        limit = parse_qs(urlsplit(response.url).query).get("limit", ["0"])[0]
        assert int(limit) <= 1000

    page.on("response", on)
    return asked


def test_of_a_long_run_only_what_is_in_sight_is_loaded(local: Server, page: Page, long: tuple[str, int]) -> None:
    run, last = long
    asked = _loaded(page)
    opened(local, page, run)
    expect(slider(page)).to_have_attribute("aria-valuemax", str(last))
    expect(card(page, "work", "completed, 6,000 of 6,000")).to_be_visible()
    events = view(page, "Events").get_by_role("listbox", name="Events")
    expect(events.get_by_role("option").first).to_have_attribute("aria-setsize", str(last))
    expect(page.locator(".ev-waiting")).to_have_count(0)
    assert events.get_by_role("option").count() < 200
    drag(page, 0.5)
    half = moment(page)
    assert last * 0.4 < half < last * 0.6
    expect(page).to_have_url(re.compile(rf"at={half}\b"))
    expect(page.locator(".ev-moment")).to_have_attribute("aria-posinset", str(half))
    expect(page.locator(".ev-waiting")).to_have_count(0)
    page.get_by_role("listbox", name="Events").press("End")
    expect(events).to_contain_text("playbook.completed")
    loaded = sum(len(one["events"]) for one in asked)
    assert 0 < loaded < last / 4


def test_any_moment_of_a_long_run_is_shown(local: Server, page: Page, long: tuple[str, int]) -> None:
    run, last = long
    opened(local, page, run)
    expect(card(page, "work", "completed, 6,000 of 6,000")).to_be_visible()
    drag(page, 0.5)
    expect(card(page, "work", r"running, [23],\d{3} of 6,000")).to_be_visible()
    expect(card(page, "fin", "waiting")).to_be_visible()
    drag(page, 0.0)
    expect(card(page, "work", "waiting")).to_be_visible()
    drag(page, 1.0)
    see_moment(page, last)
    expect(card(page, "fin", "completed")).to_be_visible()
