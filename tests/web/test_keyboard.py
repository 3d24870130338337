"""Without a mouse: every action can be reached and used with keys alone, and the focus is never lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.documents import FAILS, GROWS, HELLO, WAITS
from tests.web.looks import card, run_row, see_moment, see_status, slider
from tests.web.scenes import Server, page_of, write


@pytest.fixture(scope="module")
def local(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("keyboard")
    write(folder / "project", "hello")
    with page_of(folder) as server:
        server.api.done(HELLO, label="older")
        server.api.done(HELLO, label="newer")
        yield server


@pytest.fixture
def keys(local: Server, page: Page) -> Page:
    local.sign_in(page.context)
    return page


def tab_to(page: Page, wanted: Locator, most: int = 60) -> None:
    """Presses Tab until it has the focus, as a person would."""
    expect(wanted).to_be_visible()
    for _ in range(most):
        if wanted.evaluate("(element) => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached with Tab")


def test_the_first_tab_skips_to_the_content(local: Server, keys: Page) -> None:
    local.open(keys, "/runs")
    expect(keys.get_by_role("grid", name="Runs")).to_be_visible()
    keys.keyboard.press("Tab")
    expect(keys.get_by_role("link", name="Skip to the content")).to_be_focused()
    keys.keyboard.press("Enter")
    expect(keys.get_by_role("main")).to_be_focused()


def test_pages_are_reached_with_two_keys(local: Server, keys: Page) -> None:
    local.open(keys, "/runs")
    expect(keys.get_by_role("grid", name="Runs")).to_be_visible()
    for key, path in (
        ("d", "documents"),
        ("c", "compare"),
        ("s", "schedules"),
        ("f", "fleet"),
        ("r", "runs"),
        ("e", "reference"),
    ):
        keys.keyboard.press("g")
        keys.keyboard.press(key)
        expect(keys).to_have_url(re.compile(rf"/{path}$"))
        expect(keys.get_by_role("navigation", name="Main").locator("li [aria-current=page]")).to_have_count(1)


def test_help_lists_the_keys_and_gives_the_focus_back(local: Server, keys: Page) -> None:
    local.open(keys, "/runs")
    link = keys.get_by_role("link", name="Fleet")
    link.focus()
    keys.keyboard.press("?")
    dialog = keys.get_by_role("dialog", name="Keys")
    for words in ("Go to", "Next run", "Select the run", "Search", "Show the keys"):
        expect(dialog.get_by_text(words).first).to_be_visible()
    keys.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(link).to_be_focused()


def test_runs_are_found_selected_compared_and_opened(local: Server, keys: Page) -> None:
    local.open(keys, "/runs?name=hello")
    expect(run_row(keys, "older")).to_be_visible()
    keys.keyboard.press("/")
    expect(keys.get_by_role("searchbox", name="Search runs")).to_be_focused()
    keys.keyboard.type("older")
    expect(run_row(keys, "newer")).to_have_count(0)
    keys.keyboard.press("Escape")
    expect(run_row(keys, "newer")).to_be_visible()
    keys.keyboard.press("Escape")
    for _ in range(2):
        keys.keyboard.press("j")
        keys.keyboard.press("x")
    selected = keys.get_by_role("region", name="Selected runs")
    expect(selected).to_contain_text("2 runs selected")
    keys.keyboard.press("Escape")
    expect(selected).to_have_count(0)
    keys.keyboard.press("k")
    keys.keyboard.press("x")
    keys.keyboard.press("j")
    keys.keyboard.press("x")
    compare = selected.get_by_role("button", name="Compare")
    tab_to(keys, compare)
    keys.keyboard.press("Enter")
    expect(keys).to_have_url(re.compile("/compare"))
    expect(keys.get_by_role("grid", name="Runs")).to_have_count(0)
    keys.go_back()
    expect(run_row(keys, "older")).to_be_visible()
    keys.keyboard.press("j")
    keys.keyboard.press("Enter")
    expect(keys).to_have_url(re.compile(r"/runs/\w+"))


def test_the_actions_of_a_row_are_reached(local: Server, keys: Page) -> None:
    local.open(keys, "/runs")
    expect(run_row(keys, "older")).to_be_visible()
    tab_to(keys, run_row(keys, "newer").get_by_role("button", name=re.compile("^Actions on run")))
    keys.keyboard.press("Enter")
    expect(keys.get_by_role("menuitem", name="Open")).to_be_focused()
    keys.keyboard.press("ArrowDown")
    expect(keys.get_by_role("menuitem", name="Only hello")).to_be_focused()
    keys.keyboard.press("Escape")
    expect(run_row(keys, "newer").get_by_role("button", name=re.compile("^Actions on run"))).to_be_focused()


def test_a_run_is_cancelled_and_the_focus_comes_back_when_one_thinks_better_of_it(
    local: Server, keys: Page, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run = local.api.submit(WAITS, payload={"gate": str(gate)})
    local.open(keys, f"/runs/{run}")
    see_status(keys, "Running")
    cancel = keys.get_by_role("button", name="Cancel", exact=True)
    tab_to(keys, cancel)
    keys.keyboard.press("Enter")
    dialog = keys.get_by_role("dialog")
    expect(dialog.get_by_role("textbox", name="Reason")).to_be_focused()
    keys.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(cancel).to_be_focused()
    keys.keyboard.press("Enter")
    keys.keyboard.type("by hand")
    keys.keyboard.press("Enter")
    see_status(keys, "Cancelled")


def test_views_and_panels_are_chosen_with_arrows_and_digits(local: Server, keys: Page) -> None:
    run = local.api.done(FAILS)
    local.open(keys, f"/runs/{run}")
    tabs = keys.get_by_role("tablist", name="Views of the run")
    tab_to(keys, tabs.get_by_role("tab", name="Graph"))
    for name in ("Timeline", "Events", "Logs", "Document"):
        keys.keyboard.press("ArrowRight")
        expect(tabs.get_by_role("tab", name=name)).to_be_focused()
        expect(keys.get_by_role("tabpanel", name=name)).to_be_visible()
    keys.keyboard.press("Home")
    expect(tabs.get_by_role("tab", name="Graph")).to_be_focused()
    for digit, name in enumerate(("Graph", "Timeline", "Events", "Logs", "Document"), 1):
        keys.keyboard.press(str(digit))
        expect(tabs.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
    keys.keyboard.press("1")
    for letter, name in (("v", "Values"), ("d", "Data"), ("w", "Why?")):
        keys.keyboard.press("s")
        keys.keyboard.press(letter)
        expect(keys.get_by_role("tabpanel", name=name)).to_be_visible()
    keys.keyboard.press("p")
    expect(keys.get_by_role("complementary", name="About the selection")).to_have_count(0)
    keys.keyboard.press("p")
    expect(keys.get_by_role("complementary", name="About the selection")).to_be_visible()


def test_the_graph_is_walked_with_arrows(local: Server, keys: Page) -> None:
    run = local.api.done(FAILS)
    local.open(keys, f"/runs/{run}")
    expect(card(keys, "fetch")).to_be_visible()
    tab_to(keys, keys.get_by_role("group", name=re.compile("^Graph of import")))
    keys.keyboard.press("ArrowRight")
    expect(card(keys, "fetch")).to_have_attribute("aria-pressed", "true")
    keys.keyboard.press("ArrowRight")
    expect(card(keys, "check")).to_be_focused()
    expect(card(keys, "check")).to_have_attribute("aria-pressed", "true")
    expect(keys.get_by_role("tabpanel", name="Why?")).to_contain_text("a price is not a number")
    keys.keyboard.press("l")
    expect(keys).to_have_url(re.compile("edge="))
    expect(keys.get_by_role("button", name=re.compile(r"^Arc .* to "), pressed=True)).to_have_count(1)


def test_a_frame_is_opened_and_closed_with_enter(local: Server, keys: Page, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"gate-{number}").touch()
    run = local.api.done(GROWS, payload={"gate": str(tmp_path / "gate")})
    local.open(keys, f"/runs/{run}")
    closed = keys.get_by_role("button", name=re.compile("closed, Enter opens it"))
    expect(closed).to_be_visible()
    tab_to(keys, keys.get_by_role("group", name=re.compile("^Graph of grows")))
    keys.keyboard.press("ArrowRight")
    expect(closed).to_be_focused()
    keys.keyboard.press("Enter")
    opened = keys.get_by_role("button", name=re.compile("open, Enter closes it"))
    expect(opened).to_be_visible()
    expect(card(keys, "hold")).to_be_visible()
    expect(opened).to_be_focused()
    keys.keyboard.press("Enter")
    expect(opened).to_have_count(0)


def test_the_slider_and_its_buttons_are_reached(local: Server, keys: Page) -> None:
    run = local.api.done(FAILS)
    first = local.api.get(f"/api/executions/{run}/marks").json()["first_error"]
    local.open(keys, f"/runs/{run}")
    tab_to(keys, slider(keys))
    keys.keyboard.press("Home")
    see_moment(keys, 1)
    tab_to(keys, keys.get_by_role("button", name="First failure", exact=True))
    keys.keyboard.press("Enter")
    see_moment(keys, first)


def test_events_are_walked_and_a_moment_is_chosen_among_them(local: Server, keys: Page) -> None:
    run = local.api.done(FAILS)
    local.open(keys, f"/runs/{run}?view=events")
    events = keys.get_by_role("listbox", name="Events")
    tab_to(keys, events)
    keys.keyboard.press("Home")
    keys.keyboard.press("ArrowDown")
    keys.keyboard.press("ArrowDown")
    expect(events.get_by_role("option", selected=True)).to_have_attribute("aria-posinset", "3")
    keys.keyboard.press("Enter")
    see_moment(keys, 3)


def test_the_editor_can_be_left_and_a_document_is_run(local: Server, keys: Page) -> None:
    local.open(keys, "/documents")
    expect(keys.get_by_role("link", name="hello.yaml")).to_be_visible()
    keys.keyboard.press("j")
    expect(keys.get_by_role("link", name="hello.yaml")).to_be_focused()
    keys.keyboard.press("Enter")
    text = keys.get_by_role("textbox", name=re.compile("^The text of"))
    tab_to(keys, text)
    keys.keyboard.press("Escape")
    keys.keyboard.press("Tab")
    expect(text).not_to_be_focused()
    expect(keys.get_by_role("region", name="Problems").get_by_role("status")).to_have_text("Valid")
    keys.keyboard.press("Control+Enter")
    dialog = keys.get_by_role("dialog")
    expect(dialog.get_by_role("textbox", name="who text")).to_be_visible()
    tab_to(keys, dialog.get_by_role("button", name="Run", exact=True))
    keys.keyboard.press("Enter")
    see_status(keys, "Completed")
