"""Runs as they happen: what the page shows changes by itself, and what it is asked to do comes true."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.documents import FAILS, GROWS, HELLO, LOOP, ORDERS, RETRIED, WAITS
from tests.web.looks import card, frame, link, moment, panel, run_row, see_live, see_moment, see_status, until, view
from tests.web.scenes import Process, Server, page_of, write


@pytest.fixture(scope="module")
def local(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("live")
    write(folder / "project", "nightly")
    with page_of(folder) as server:
        yield server


@pytest.fixture
def gate(tmp_path: Path) -> str:
    return str(tmp_path / "gate")


@pytest.fixture
def opened(local: Server, page: Page) -> Callable[[str], None]:
    """Opens the page of a run."""

    def open(run: str) -> None:
        local.sign_in(page.context)
        local.open(page, f"/runs/{run}")
        see_live(page)

    return open


def test_states_and_the_progress_of_a_loop_change_without_loading_the_page_again(
    local: Server, page: Page, opened: Callable[[str], None], gate: str
) -> None:
    run = local.api.submit(LOOP, payload={"gate": gate})
    opened(run)
    page.evaluate("window.isTheSame = true")
    see_status(page, "Running")
    expect(card(page, "load", "running, 0 of 6")).to_be_visible()
    expect(card(page, "fin", "waiting")).to_be_visible()
    for done in range(5):
        Path(f"{gate}-{done}").touch()
        expect(card(page, "load", f"running, {done + 1} of 6")).to_be_visible()
    Path(f"{gate}-5").touch()
    see_status(page, "Completed")
    expect(card(page, "load", "completed, 6 of 6")).to_be_visible()
    expect(card(page, "fin", "completed")).to_be_visible()
    expect(link(page, "load", "fin")).to_have_accessible_name(re.compile("fired"))
    lines = view(page, "Logs").get_by_role("region", name="Lines")
    expect(lines).to_contain_text("loaded 0")
    expect(lines).to_contain_text("loaded 5")
    assert page.evaluate("window.isTheSame") is True


def test_rows_on_a_link_are_counted_while_a_job_runs(
    local: Server, page: Page, opened: Callable[[str], None], gate: str
) -> None:
    run = local.api.submit(GROWS, payload={"gate": gate})
    opened(run)
    page.get_by_role("button", name="Open all frames").click()
    for done in range(3):
        Path(f"{gate}-{done}").touch()
        expect(link(page, "rows", "shown")).to_have_accessible_name(re.compile(rf"\b{4 * (done + 1)} rows"))
    see_status(page, "Completed")


def test_a_run_that_begins_appears_in_the_list_and_its_row_follows_it(local: Server, page: Page, gate: str) -> None:
    local.sign_in(page.context)
    local.open(page, "/runs")
    see_live(page)
    run = local.api.submit(WAITS, payload={"gate": gate}, label="appears")
    row = run_row(page, "appears")
    expect(row).to_contain_text("Running")
    Path(gate).touch()
    expect(row).to_contain_text("Completed")
    row.get_by_role("link", name="nightly").click()
    expect(page).to_have_url(re.compile(rf"/runs/{run}$"))


def test_a_failing_run_is_shown_as_it_was_at_its_first_failure(
    local: Server, page: Page, opened: Callable[[str], None]
) -> None:
    run = local.api.done(FAILS)
    first = local.api.get(f"/api/executions/{run}/marks").json()["first_error"]
    opened(run)
    see_status(page, "Failed")
    expect(card(page, "report", "failed")).to_be_visible()
    page.get_by_role("button", name="First failure", exact=True).click()
    see_moment(page, first)
    see_status(page, "Running")
    expect(card(page, "fetch", "completed")).to_be_visible()
    expect(card(page, "check", "failed")).to_be_visible()
    # What came later had not begun.
    expect(card(page, "report", "waiting")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"at={first}\b"))
    lines = view(page, "Logs").get_by_role("region", name="Lines")
    expect(lines).to_contain_text("checking 3 prices")
    expect(lines).not_to_contain_text("telling somebody")


def test_why_says_the_reason_and_leads_to_the_event_and_to_the_line(
    local: Server, page: Page, opened: Callable[[str], None]
) -> None:
    run = local.api.done(FAILS)
    opened(run)
    card(page, "check").click()
    why = panel(page, "Why?")
    expect(why).to_contain_text("a price is not a number: n/a")
    values = panel(page, "Values")
    expect(values).to_contain_text("n/a")
    why = panel(page, "Why?")
    why.get_by_role("button", name=re.compile(r"^#\d+")).first.click()
    expect(page.get_by_role("tabpanel", name="Events")).to_be_visible()
    expect(page.get_by_role("listbox", name="Events").get_by_role("option", selected=True)).to_be_visible()
    why.get_by_role("button", name=re.compile("line ")).first.click()
    expect(page.get_by_role("tabpanel", name="Document").locator(".cm-marked").first).to_be_visible()


def test_values_are_those_of_the_moment(local: Server, page: Page, opened: Callable[[str], None]) -> None:
    run = local.api.done(HELLO, payload={"who": "you"})
    opened(run)
    card(page, "start").click()
    expect(panel(page, "Values")).to_contain_text("hello you")
    page.get_by_role("slider", name="Moment of the run").press("Home")
    see_moment(page, 1)
    expect(page.get_by_role("tabpanel", name="Values")).to_contain_text("has not run by this moment")


def test_a_retried_task_counts_down_to_its_next_attempt(
    local: Server, page: Page, opened: Callable[[str], None], gate: str
) -> None:
    run = local.api.submit(RETRIED, payload={"gate": gate})
    opened(run)
    counting = card(page, "call", r"retrying, attempt 2 in \d+ s")
    expect(counting).to_be_visible()
    said = counting.get_attribute("aria-label") or ""
    expect(card(page, "call")).not_to_have_accessible_name(said)
    expect(counting).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("dialog").get_by_role("textbox", name="Reason").fill("long enough")
    page.get_by_role("button", name="Cancel the run").click()
    see_status(page, "Cancelled")
    expect(page.locator(".run-head")).to_contain_text("Long enough")


def test_a_run_that_got_through_shows_its_attempts(
    local: Server, page: Page, opened: Callable[[str], None], gate: str
) -> None:
    run = local.api.submit(RETRIED, payload={"gate": gate, "delay": 0.2})
    opened(run)
    expect(card(page, "call", r"(retrying, attempt ([3-9]|\d\d+)|running, ([3-9]|\d\d+) attempts)")).to_be_visible()
    Path(gate).touch()
    see_status(page, "Completed")
    expect(card(page, "call", r"completed, \d+ attempts")).to_be_visible()


def test_at_the_moment_of_a_retry_a_run_that_has_ended_still_says_when_the_next_attempt_was_due(
    local: Server, page: Page, opened: Callable[[str], None], gate: str
) -> None:
    run = local.api.submit(RETRIED, payload={"gate": gate, "delay": 2})
    opened(run)
    # Any attempt will do: on a slow machine the second is over before the page is there.
    expect(card(page, "call", r"retrying, attempt \d+ in")).to_be_visible()
    Path(gate).touch()
    see_status(page, "Completed")
    page.locator(".run-mark[data-kind=retry]").first.click()
    expect(page).to_have_url(re.compile("at="))
    see_status(page, "Running")
    # Nothing counts down in the past.
    waits = card(page, "call", "retrying, attempt 2 in 2 s")
    expect(waits).to_be_visible()
    page.wait_for_timeout(1500)
    expect(waits).to_be_visible()


def test_sub_jobs_are_frames_with_a_state_of_their_own_at_every_moment(
    local: Server, page: Page, opened: Callable[[str], None]
) -> None:
    run = local.api.done(ORDERS)
    opened(run)
    expect(frame(page, "orders", "completed")).to_be_visible()
    expect(frame(page, "done", "completed")).to_be_visible()
    begun = next(one for one in local.api.events(run) if one["event_type"] == "component.started")
    local.open(page, f"/runs/{run}?at={begun['seq']}")
    expect(frame(page, "orders", "running")).to_be_visible()
    expect(frame(page, "done", "waiting")).to_be_visible()
    page.get_by_role("button", name="Close orders").click()
    closed = page.get_by_role("button", name=re.compile("^orders, running.*sub-job of 5 components, closed"))
    expect(closed).to_be_visible()
    expect(card(page, "totals")).to_have_count(0)


def test_a_run_is_cancelled_from_the_list(local: Server, page: Page, gate: str) -> None:
    local.sign_in(page.context)
    local.open(page, "/runs")
    local.api.submit(WAITS, payload={"gate": gate}, label="unwanted")
    row = run_row(page, "unwanted")
    expect(row).to_contain_text("Running")
    row.get_by_role("checkbox").check()
    page.get_by_role("region", name="Selected runs").get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()
    expect(row).to_contain_text("Cancelled")


def test_several_runs_are_resumed_from_the_list(local: Server, page: Page) -> None:
    runs = [local.api.done(FAILS, label=f"again {number}") for number in range(2)]
    before = [len(local.api.events(run)) for run in runs]
    local.sign_in(page.context)
    local.open(page, "/runs?q=again")
    for number in range(2):
        run_row(page, f"again {number}").get_by_role("checkbox").check()
    page.get_by_role("region", name="Selected runs").get_by_role("button", name="Resume").click()
    expect(page.get_by_text("2 runs will go on")).to_be_visible()
    for run, events in zip(runs, before, strict=True):
        until(page, lambda run=run, events=events: len(local.api.events(run)) > events)
        assert local.api.ended(run) == "failed"


def test_a_run_whose_process_was_killed_is_shown_as_crashed_and_resumed_from_the_page(
    local: Server, page: Page, gate: str
) -> None:
    words = ("run", "nightly.yaml", "--store", "../home", "--set", f"gate={gate}", "--name", "killed")
    terminal = Process(local.folder, *words)
    terminal.until(Path(f"{gate}-waiting").exists)
    local.sign_in(page.context)
    local.open(page, "/runs")
    row = run_row(page, "killed")
    expect(row).to_contain_text("Running")
    terminal.stop(signal.SIGKILL)
    expect(row).to_contain_text("Crashed")
    row.get_by_role("link", name="nightly").click()
    see_status(page, "Crashed")
    expect(page.locator(".run-head")).to_contain_text("The process that worked on it is gone")
    before = moment(page)
    page.get_by_role("button", name="Resume").click()
    Path(gate).touch()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    see_status(page, "Completed")
    assert moment(page) > before
    expect(card(page, "last", "completed")).to_be_visible()


def test_a_run_is_started_again_with_other_inputs(local: Server, page: Page, opened: Callable[[str], None]) -> None:
    run = local.api.done(HELLO, payload={"who": "you"})
    opened(run)
    page.get_by_role("button", name="Run again").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("textbox", name="who text")).to_have_value("you")
    dialog.get_by_role("textbox", name="who text").fill("everybody")
    dialog.get_by_role("button", name="Run again").click()
    expect(page).not_to_have_url(re.compile(run))
    see_status(page, "Completed")
    card(page, "start").click()
    expect(panel(page, "Values")).to_contain_text("hello everybody")


def test_a_replay_says_that_the_decisions_are_the_same(
    local: Server, page: Page, opened: Callable[[str], None]
) -> None:
    opened(local.api.done(HELLO))
    page.get_by_role("main").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Replay and compare").click()
    expect(page.get_by_role("dialog")).to_contain_text("The same decisions")
