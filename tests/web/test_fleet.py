"""The fleet on the page: servers, workers and what they hold, a worker that is killed, and one that is drained; and runs of a fleet."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.service import GATED
from tests.servers import fresh_schema, postgres_server
from tests.web.chromium import axe, screen
from tests.web.documents import WAITS
from tests.web.looks import card, link, see_live, see_status, until, view
from tests.web.scenes import Process, Server, served

__all__ = ["postgres_server"]

LEASE = ("--lease", "2")
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@dataclass
class Fleet:
    server: Server
    database: str
    folder: Path
    stack: ExitStack
    workers: dict[str, Process] = field(default_factory=dict)

    def work(self, name: str, pool: str) -> Process:
        words = ("worker", "--database", self.database, "--grace", "0", "--store", f"../{name}", "--name", name)
        worker = Process(self.server.folder, *words, "--pool", pool, *LEASE)
        self.stack.callback(worker.stop)
        worker.until_said("worker ")
        self.workers[name] = worker
        return worker


@pytest.fixture(scope="module")
def fleet(built: Path, postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with ExitStack() as stack:
        database = stack.enter_context(fresh_schema(postgres_server))
        server = stack.enter_context(served(folder, "--database", database, *LEASE))
        made = Fleet(server, database, folder, stack)
        made.work("anna", "default")
        yield made


def worker_row(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name="Workers", exact=True).get_by_role("row").filter(has_text=name)


def in_pool(pool: str) -> str:
    """A playbook whose waiting step only workers of this pool may take."""
    return WAITS.replace("- step: wait\n", f"- step: wait\n    spec: {{pool: {pool}}}\n")


def test_servers_workers_and_what_they_hold_are_listed(fleet: Fleet, page: Page, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = fleet.server.api.submit(WAITS, payload={"gate": str(gate)})
    fleet.server.open(page, "/fleet")
    expect(page.get_by_role("table", name="Servers").get_by_role("row")).to_have_count(2)
    expect(worker_row(page, "anna")).to_contain_text("alive", ignore_case=True)
    held = page.get_by_role("table", name="Held leases").get_by_role("row").filter(has_text=run[:12])
    expect(held).to_contain_text("anna")
    expect(held).to_contain_text("wait")
    gate.touch()
    expect(page.get_by_role("table", name="Held leases").get_by_role("row").filter(has_text=run[:12])).to_have_count(0)
    assert fleet.server.api.ended(run) == "completed"


def test_a_worker_that_was_killed_is_shown_as_lost_and_its_lease_with_who_has_it_now(
    fleet: Fleet, page: Page, tmp_path: Path
) -> None:
    bert = fleet.work("bert", "night")
    gate = tmp_path / "gate"
    run = fleet.server.api.submit(in_pool("night"), payload={"gate": str(gate)})
    bert.until(Path(f"{gate}-waiting").exists)
    fleet.server.open(page, "/fleet")
    see_live(page)
    expect(worker_row(page, "bert")).to_contain_text("1/")
    bert.stop(signal.SIGKILL)
    fleet.work("cora", "night")
    expect(worker_row(page, "bert")).to_contain_text("lost", ignore_case=True)
    losses = page.get_by_role("table", name=re.compile("What became of the leases"))
    lost = losses.get_by_role("row").filter(has_text=run[:12])
    expect(lost).to_contain_text("bert")
    expect(lost).to_contain_text("cora")
    lost.scroll_into_view_if_needed()
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        screen(page, f"fleet-lost-{theme}")
        assert axe(page) == []
    lost.get_by_role("link").first.click()
    # The log has not heard of cora yet; who holds the lease now is known to the server.
    until(page, lambda: lease_bars(page, "wait") == ["wait, lost or given back, failed: bert", "wait, running: cora"])
    gate.touch()
    see_status(page, "Completed")
    until(page, lambda: lease_bars(page, "wait") == ["wait, lost or given back, failed: bert", "wait, ok: cora"])
    view(page, "Graph")
    expect(card(page, "wait", "completed")).to_be_visible()
    # And so it was at the moment of the loss, for whoever looks at it later.
    page.locator(".run-mark[data-kind=lost]").click()
    expect(page).to_have_url(re.compile("at="))
    see_status(page, "Running")
    until(page, lambda: lease_bars(page, "wait")[:1] == ["wait, lost or given back, failed: bert"])
    view(page, "Graph")
    expect(card(page, "wait", "running")).to_be_visible()
    expect(card(page, "last", "waiting")).to_be_visible()
    # Another server of the fleet knows it as well, and so does one that is started later.
    with served(tmp_path / "later", "--database", fleet.database, *LEASE) as later:
        known = [one for one in later.api.get("/api/losses").json()["losses"] if one["execution_id"] == run]
        assert [(one["worker"].partition("#")[0], one["outcome"]) for one in known] == [("bert", "ended by `cora`")]


def lease_bars(page: Page, lane: str) -> list[str]:
    """The leases in a lane of the timeline with their workers, as the keys go from bar to bar."""
    row = view(page, "Timeline").locator(".run-lane").filter(has_text=re.compile(rf"^{re.escape(lane)}")).first
    name = row.locator(".run-lane-name")
    name.focus()
    bars = row.locator(".run-bar").count()
    said: list[str] = []
    for _ in range(bars):
        name.press("ArrowRight")
        text = name.get_attribute("aria-label") or ""
        if found := re.search(r"lease of (.*?, (?:ok|failed|running)),.*worker (\w+)", text):
            said.append(f"{found[1]}: {found[2]}")
    for _ in range(bars):
        name.press("ArrowLeft")
    return said


def test_rows_on_a_link_are_counted_while_a_component_of_another_process_runs(
    fleet: Fleet, page: Page, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run = fleet.server.api.submit(GATED.replace("GATE", str(gate)))
    fleet.server.open(page, f"/runs/{run}")
    expect(card(page, "slow", "running")).to_be_visible()
    # No event comes meanwhile: the component has begun, and has not ended.
    expect(link(page, "slow", "show")).to_have_accessible_name(re.compile(r"\b2 rows, .* rows/s"))
    # In the past there is only what the log tells: how many rows there were when a component had ended.
    page.get_by_role("button", name="One event back").click()
    expect(page).to_have_url(re.compile("at="))
    expect(link(page, "slow", "show")).not_to_have_accessible_name(re.compile("rows"))
    page.keyboard.press(".")
    expect(link(page, "rows", "slow")).to_have_accessible_name(re.compile(r"\b3 rows"))
    expect(link(page, "slow", "show")).to_have_accessible_name(re.compile(r"\b2 rows, .* rows/s"))
    gate.touch()
    see_status(page, "Completed")
    expect(link(page, "slow", "show")).to_have_accessible_name(re.compile(r"\b3 rows"))


def test_what_no_worker_can_take_says_why_it_waits(fleet: Fleet, page: Page, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    run = fleet.server.api.submit(in_pool("nobody"), payload={"gate": str(gate)})
    fleet.server.open(page, "/fleet")
    waiting = page.get_by_role("table", name="Waiting leases").get_by_role("row").filter(has_text="nobody")
    expect(waiting).to_contain_text("no worker can take it")
    fleet.server.open(page, f"/runs/{run}")
    expect(page.locator(".run-head")).to_contain_text("waits for a worker")
    expect(page.locator(".run-head")).to_contain_text("nobody")
    fleet.work("dora", "nobody")
    see_status(page, "Completed")


def test_a_worker_is_drained_from_the_page(fleet: Fleet, page: Page, tmp_path: Path) -> None:
    erik = fleet.work("erik", "drained")
    gate = tmp_path / "gate"
    run = fleet.server.api.submit(in_pool("drained"), payload={"gate": str(gate)})
    erik.until(Path(f"{gate}-waiting").exists)
    fleet.server.open(page, "/fleet")
    page.get_by_role("button", name="Drain erik").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 lease")
    dialog.get_by_role("button", name="Drain the worker").click()
    expect(worker_row(page, "erik")).to_contain_text("drain", ignore_case=True)
    # It finishes what it has, and stops.
    gate.touch()
    assert fleet.server.api.ended(run) == "completed"
    assert erik.process.wait(60) == 0
    expect(page.get_by_role("button", name="Drain erik")).to_have_count(0)
