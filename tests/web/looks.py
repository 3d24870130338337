"""Where things are on the page of a run, by what they are to a person who cannot see it: roles and names."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

PATIENCE_S = 60.0


def card(page: Page, node: str, state: str = "") -> Locator:
    """A node of the graph, in a state if one is given: `completed`, `failed`, `waiting`, `running`, `retrying`, …"""
    return page.get_by_role("button", name=re.compile(rf"^{re.escape(node)}, {state}"))


def frame(page: Page, subjob: str, state: str = "") -> Locator:
    """The frame of a sub-job whose components are shown."""
    return page.get_by_role("button", name=re.compile(rf"^{re.escape(subjob)}, {state}.*sub-job, open"))


def link(page: Page, source: str, target: str) -> Locator:
    """A link of the graph; its name says whether it fired, and how many rows went along it."""
    return page.get_by_role("button", name=re.compile(rf"(link|Arc) {re.escape(source)} to {re.escape(target)}\b"))


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Moment of the run")


def moment(page: Page) -> int:
    return int(slider(page).get_attribute("aria-valuenow") or 0)


def see_moment(page: Page, seq: int) -> None:
    expect(slider(page)).to_have_attribute("aria-valuenow", str(seq))


def status(page: Page) -> Locator:
    """The badge of the run beside its name."""
    return page.locator(".run-head .ui-status")


def see_status(page: Page, word: str) -> None:
    expect(status(page)).to_have_text(word)


def view(page: Page, name: str) -> Locator:
    """Chooses a view of the run: Graph, Timeline, Events, Logs, Document."""
    page.get_by_role("tablist", name="Views of the run").get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel", name=name)


def panel(page: Page, name: str) -> Locator:
    """Chooses what is said about the selection: Why?, Values, Data."""
    page.get_by_role("tablist", name="About the selection").get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel", name=name)


def connection(page: Page) -> Locator:
    """What the top bar says about the server."""
    return page.get_by_role("banner").get_by_role("status")


def see_live(page: Page) -> None:
    expect(connection(page)).to_have_text("Live")


def run_row(page: Page, text: str) -> Locator:
    """A row of the list of runs."""
    return page.get_by_role("grid", name="Runs").get_by_role("row").filter(has_text=text)


def until(page: Page, is_so: Callable[[], bool]) -> None:
    """Waits for something outside of the page, which goes on meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        page.wait_for_timeout(20)
