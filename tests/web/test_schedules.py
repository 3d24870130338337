"""Schedules and hooks on the page: made with a look at the times to come, paused, and run at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.chromium import axe, screen
from tests.web.documents import HELLO
from tests.web.looks import card
from tests.web.scenes import Server, page_of


@pytest.fixture(scope="module")
def local(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with page_of(tmp_path_factory.mktemp("schedules")) as server:
        server.api.http.put("/api/documents/a/hello", json={"text": HELLO}).raise_for_status()
        yield server


def test_a_schedule_is_made_with_a_preview_of_its_times_and_paused_and_run(local: Server, page: Page) -> None:
    local.sign_in(page.context)
    local.open(page, "/schedules")
    page.get_by_role("button", name="New schedule").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name").fill("hourly")
    dialog.get_by_label(re.compile("^Document")).fill("a/hello")
    dialog.get_by_label(re.compile("^Cron expression")).fill("30 * * * *")
    times = dialog.get_by_role("region", name="The next ten times").get_by_role("listitem")
    expect(times).to_have_count(10)
    expect(times.first).to_contain_text(":30")
    assert axe(page) == []
    screen(page, "schedule-new")
    dialog.get_by_role("button", name="Create the schedule").click()
    details = page.get_by_role("region", name="The schedule hourly")
    details.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("row").filter(has_text="hourly")).to_contain_text("paused")
    details.get_by_role("button", name="Run now").click()
    page.get_by_role("dialog").get_by_role("button", name="Run").click()
    expect(page).to_have_url(re.compile(r"/runs/\w+"))
    expect(card(page, "fin", "completed")).to_be_visible()


def test_what_is_no_time_is_said_where_it_was_typed(local: Server, page: Page) -> None:
    local.sign_in(page.context)
    local.open(page, "/schedules")
    page.get_by_role("button", name="New schedule").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(re.compile("^Cron expression")).fill("99 * * * *")
    expect(dialog.get_by_label(re.compile("^Cron expression"))).to_have_attribute("aria-invalid", "true")


def test_a_hook_is_made_and_its_secret_address_is_shown(local: Server, page: Page) -> None:
    local.sign_in(page.context)
    local.open(page, "/schedules?view=hooks")
    page.get_by_role("button", name="New hook").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name").fill("push")
    dialog.get_by_label(re.compile("^Document")).fill("a/hello")
    assert axe(page) == []
    dialog.get_by_role("button", name=re.compile("^Create")).click()
    expect(page.get_by_text(re.compile("/hooks/push")).first).to_be_visible()


def test_what_is_missing_gets_the_focus_and_what_is_refused_is_said_until_it_is_changed(
    local: Server, page: Page
) -> None:
    local.sign_in(page.context)
    local.open(page, "/schedules?view=hooks")
    page.get_by_role("button", name="New hook").first.click()
    dialog = page.get_by_role("dialog")
    path = dialog.get_by_label(re.compile("^Document"))
    dialog.get_by_role("textbox", name="Name").fill("lost")
    dialog.get_by_role("button", name=re.compile("^Create")).click()
    expect(path).to_be_focused()
    path.fill("a/nothing")
    dialog.get_by_role("button", name=re.compile("^Create")).click()
    expect(dialog.get_by_role("alert")).to_contain_text("a/nothing")
    screen(page, "hook-refused")
    path.fill("a/hello")
    expect(dialog.get_by_role("alert")).to_have_count(0)
