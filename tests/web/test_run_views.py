"""The views of a run, each with what can be done in it: events, logs, timeline, document, rows, and runs inside of the run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.web.documents import FAILS, HELLO, ORDERS, job, playbook
from tests.web.looks import card, link, panel, see_live, see_moment, see_status, view
from tests.web.scenes import Server, page_of, write

PARENT = playbook(
    "parent",
    """
    workflow:
      - step: begin
        tool: [{name: one, kind: noop, value: 1}]
        next: {arcs: [{step: call}]}
      - step: call
        tool: [{name: child, kind: playbook, path: hello.yaml}]
    """,
)

LARGE = playbook(
    "large",
    """
    workflow:
      - step: list
        tool: [{name: all, kind: noop, value: {few: [1, 2], many: "{{ range(20000) | list }}"}}]
    """,
)

PRICES = job(
    "prices",
    """
    components:
      - name: prices
        type: read_csv
        params: {path: PATH, types: {price: integer}}
      - {name: shown, type: log_rows}
      - {name: wrong, type: log_rows}
    connections:
      data: |
        prices.main -> shown.input
        prices.reject -> wrong.input
    """,
)


@dataclass(frozen=True)
class Scene:
    server: Server
    runs: dict[str, str]

    def open(self, page: Page, name: str, search: str = "") -> None:
        self.server.sign_in(page.context)
        self.server.open(page, f"/runs/{self.runs[name]}{search}")


@pytest.fixture(scope="module")
def scene(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("views")
    project = folder / "project"
    write(project, "hello")
    prices = project / "prices.csv"
    prices.write_text("item,price\npen,3\nink,cheap\nnib,4\n", encoding="utf-8")
    with page_of(folder) as server:
        file = str(project / "hello.yaml")
        submitted = server.api.post("/api/executions", {"document": {"text": HELLO, "file": file}})
        hello = str(submitted.json()["execution_id"])
        server.api.ended(hello)
        runs = {
            "hello": hello,
            "import": server.api.done(FAILS),
            "orders": server.api.done(ORDERS, keep=["large.main"]),
            "parent": server.api.done(PARENT),
            "large": server.api.done(LARGE),
            "prices": server.api.done(PRICES.replace("PATH", str(prices)), keep=["prices.reject"]),
        }
        yield Scene(server, runs)


def test_a_run_that_has_ended_is_asked_for_once(scene: Scene, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda one: asked.append(re.sub(r"[?].*|.*/api/", "", one.url)) if "/api/" in one.url else None)
    scene.open(page, "import")
    see_status(page, "Failed")
    see_live(page)
    # A tick of the run comes next, and says nothing new; then everything would long have been asked for again.
    page.wait_for_timeout(1500)
    run = f"executions/{scene.runs['import']}"
    assert sorted(one for one in asked if one.startswith(run)) == [
        f"{run}/{what}" for what in ("header", "marks", "moment", "net")
    ]


def test_events_are_filtered_by_type_place_and_text(scene: Scene, page: Page) -> None:
    scene.open(page, "import", "?view=events")
    events = page.get_by_role("tabpanel", name="Events")
    expect(events.get_by_role("listbox", name="Events")).to_contain_text("task.started")
    page.get_by_label("Only events of this node or scope").fill("check")
    page.keyboard.press("Enter")
    found = events.get_by_role("listbox", name="Events found")
    expect(found).to_contain_text("check@")
    expect(found).not_to_contain_text("fetch@")
    page.get_by_role("searchbox", name="Text in events").fill("not a number")
    expect(events.get_by_role("status")).to_contain_text("found in")
    expect(found).to_contain_text("failed")
    expect(found).not_to_contain_text("step.scheduled")
    page.get_by_role("button", name="Clear the filter").click()
    expect(events.get_by_role("listbox", name="Events", exact=True)).to_contain_text("fetch@")


def test_an_event_leads_to_its_cause_to_its_node_and_to_its_moment(scene: Scene, page: Page) -> None:
    failure = scene.server.api.get(f"/api/executions/{scene.runs['import']}/marks").json()["first_error"]
    scene.open(page, "import", f"?view=events&event={failure}")
    detail = page.get_by_role("region", name=f"Event {failure}")
    expect(detail).to_contain_text("a price is not a number")
    detail.get_by_role("button", name="Go to this moment").click()
    see_moment(page, failure)
    detail.get_by_role("button", name="Select check").click()
    expect(page).to_have_url(re.compile("node=check"))
    detail.get_by_role("button", name=re.compile(r"#\d+ ")).click()
    expect(page.get_by_role("region", name=f"Event {failure}")).to_have_count(0)
    expect(page.get_by_role("region", name=re.compile(r"^Event \d+"))).to_be_visible()


def test_logs_are_those_of_the_selected_node_and_are_searched(scene: Scene, page: Page) -> None:
    scene.open(page, "import", "?view=logs&node=check")
    lines = page.get_by_role("region", name="Lines")
    expect(lines).to_contain_text("checking 3 prices")
    expect(lines).not_to_contain_text("fetching prices")
    page.get_by_role("button", name="All nodes").click()
    expect(lines).to_contain_text("fetching prices")
    page.get_by_role("searchbox", name="Search lines").fill("telling")
    page.get_by_role("button", name="Only lines that match").click()
    expect(lines).to_contain_text("telling somebody")
    expect(lines).not_to_contain_text("fetching prices")


def test_the_timeline_has_a_lane_for_each_node_and_selects_it(scene: Scene, page: Page) -> None:
    scene.open(page, "import", "?view=timeline")
    timeline = page.get_by_role("tabpanel", name="Timeline")
    for node in ("fetch", "check", "report"):
        expect(timeline.get_by_text(node, exact=True).first).to_be_visible()
    timeline.get_by_text("check", exact=True).first.click()
    expect(page).to_have_url(re.compile("node=check"))
    expect(page.get_by_role("tabpanel", name="Why?")).to_contain_text("a price is not a number")


def test_the_document_marks_the_selected_node_and_is_compared_with_the_file_as_it_is_now(
    scene: Scene, page: Page
) -> None:
    file = scene.server.folder / "hello.yaml"
    scene.open(page, "hello", "?view=document&node=fin")
    text = page.get_by_role("tabpanel", name="Document")
    expect(text.locator(".cm-marked").first).to_contain_text("fin")
    choose = text.get_by_role("combobox", name="Compare with")
    file.write_text(HELLO.replace("who: world", "who: everyone"), encoding="utf-8")
    try:
        choose.select_option("Compare with the file as it is now")
        expect(text).to_contain_text("who: everyone")
        expect(text).to_contain_text("who: world")
    finally:
        file.write_text(HELLO, encoding="utf-8")


def test_rows_of_a_link_are_shown_and_made_when_they_were_not_kept(scene: Scene, page: Page) -> None:
    scene.open(page, "orders")
    expect(link(page, "orders", "large")).to_have_accessible_name(re.compile("4 rows"))
    expect(link(page, "large", "totals")).to_have_accessible_name(re.compile("3 rows"))
    expect(link(page, "large", "small")).to_have_accessible_name(re.compile("1 row"))
    card(page, "large").click()
    data = panel(page, "Data")
    expect(data.get_by_role("table", name=re.compile("Rows of large.main"))).to_contain_text("carl")
    data.get_by_role("button", name=re.compile("^reject")).click()
    data.get_by_role("button", name="Compute the first rows again").click()
    expect(data).to_contain_text("ben")


def test_a_reject_says_why_and_where_its_row_came_from(scene: Scene, page: Page) -> None:
    scene.open(page, "prices", "?node=prices&panel=data")
    data = page.get_by_role("tabpanel", name="Data")
    data.get_by_role("button", name=re.compile("^reject")).click()
    reject = data.get_by_role("listitem").filter(has_text="line 3")
    expect(reject).to_contain_text("prices.csv")
    expect(reject).to_contain_text("column price")
    expect(reject).to_contain_text("ink,cheap")


def test_times_are_local_and_exact_on_hover(scene: Scene, page: Page) -> None:
    scene.open(page, "hello")
    started = page.locator(".run-head time").first
    at = datetime.fromisoformat(
        scene.server.api.get(f"/api/executions/{scene.runs['hello']}/header").json()["started_at"]
    )
    local = at.astimezone(ZoneInfo("Europe/Vienna"))
    expect(started).to_have_text(f"{local:%Y-%m-%d %H:%M:%S}")
    expect(started).to_have_attribute("title", re.compile(rf"{local:%H:%M:%S}\.\d{{3}}.*\+0[12]:00"))


def test_a_column_says_where_it_comes_from(scene: Scene, page: Page) -> None:
    scene.open(page, "orders", "?node=large&panel=data")
    data = page.get_by_role("tabpanel", name="Data")
    data.get_by_role("columnheader", name=re.compile("amount")).get_by_role("button").click()
    lineage = data.get_by_role("region", name="Lineage of amount")
    expect(lineage).to_contain_text("orders")
    expect(lineage).to_contain_text("totals")


def test_a_large_value_is_fetched_as_it_is_opened_by_keys(scene: Scene, page: Page) -> None:
    scene.open(page, "large", "?node=list&panel=values")
    tree = page.get_by_role("tree", name="result", exact=True)
    row = tree.get_by_role("treeitem", selected=True)
    tree.focus()
    page.keyboard.press("End")
    expect(row).to_have_text("many: […] 20,000 items")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(tree).to_contain_text("5: 5")
    # Also if the second key came while it was being fetched.
    expect(row).to_have_text(re.compile(r"^(many: \[|0: 0)$"))
    page.keyboard.press("End")
    expect(row).to_have_text("Show more: 19,800 entries left")
    page.keyboard.press("Enter")
    expect(row).to_have_text("200: 200")
    expect(row).to_have_attribute("aria-setsize", "20000")
    page.keyboard.press("End")
    expect(row).to_have_text("Show more: 19,600 entries left")


def test_a_run_inside_of_the_run_is_stepped_into_and_left(scene: Scene, page: Page) -> None:
    scene.open(page, "parent")
    see_status(page, "Completed")
    page.get_by_role("button", name="Step into what call runs").click()
    expect(card(page, "start", "completed")).to_be_visible()
    expect(page).to_have_url(re.compile("scope="))
    expect(view(page, "Logs")).to_contain_text("greeting world")
    page.go_back()
    page.go_back()
    expect(card(page, "call", "completed")).to_be_visible()
