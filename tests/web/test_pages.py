"""Every page at its own address: what it shows, whether people with disabilities can use it, in both themes, wide and narrow.

Each is loaded once, and its colours and width are changed in place; the tests look at what was found. Pictures of all
of them are kept in build/screens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.web.chromium import axe, screen
from tests.web.conftest import profile, watched
from tests.web.documents import FAILS, HELLO, LOOP, ORDERS
from tests.web.looks import card, see_moment, until
from tests.web.scenes import Server, page_of, write


@dataclass(frozen=True)
class View:
    """An address, and words that are there when it shows what it should."""

    path: str
    shown: tuple[str, ...]
    isolated: bool = False
    """In a browser that is not signed in."""
    press: str = ""
    """The button, or the key, that opens what it is about."""


VIEWS = {
    "runs": View("/runs", ("import", "orders", "hello", "Failed")),
    "runs-filtered": View("/runs?status=failed&kind=playbook", ("import", "1 run")),
    "runs-nothing": View("/runs?q=nothing-like-it", ("No run matches",)),
    "run-graph": View("/runs/{import}", ("fetch", "publish", "a price is not a number")),
    "run-job": View("/runs/{orders}", ("large", "3 rows", "totals")),
    "run-loop": View("/runs/{regions}?node=load", ("6 of 6",)),
    "run-timeline": View("/runs/{import}?view=timeline", ("fetch", "check", "report")),
    "run-events": View("/runs/{import}?view=events&event={failure}", ("step.failed", "playbook.failed")),
    "run-logs": View("/runs/{import}?view=logs", ("fetching prices", "telling somebody")),
    "run-document": View("/runs/{import}?view=document&node=check", ("verify",)),
    "run-why": View("/runs/{import}?node=check&panel=why", ("a price is not a number",)),
    "run-values": View("/runs/{import}?node=fetch&panel=values", ("prices", "n/a")),
    "run-data": View("/runs/{orders}?node=large&panel=data", ("customer", "carl")),
    "run-then": View("/runs/{import}?at={failure}&node=check", ("To the end", "no token has come to it yet")),
    "run-missing": View("/runs/nowhere", ("There is no such run",)),
    "compare": View("/compare?left={hello}&right={other}", ("hello", "who", "other")),
    "compare-choose": View("/compare", ("Compare",)),
    "documents": View("/documents", ("import.yaml", "orders.yaml", "Catalog", "a/hello")),
    "document-file": View("/documents/file/orders.yaml", ("fixed_rows", "Valid", "totals")),
    "document-broken": View("/documents/file/broken.yaml", ("Problems", "error")),
    "document-lineage": View("/documents/file/orders.yaml?view=lineage", ("amount",)),
    "document-catalog": View("/documents/catalog/a/hello", ("a/hello", "greet")),
    "document-new": View("/documents?view=new", ("New document",)),
    "document-run": View("/documents/file/hello.yaml", ("Run hello", "who", "Label"), press="Run"),
    "document-versions": View("/documents/catalog/a/hello?view=versions", ("Versions",)),
    "reference": View("/reference", ("fixed_rows", "python")),
    "reference-entry": View("/reference/component/filter", ("filter", "where")),
    "schedules": View("/schedules?name=daily", ("daily", "Europe/Vienna", "a/hello")),
    "hooks": View("/schedules?view=hooks", ("push", "a/hello")),
    "schedule-edit": View("/schedules?name=daily", ("Edit daily", "The next ten times"), press="Edit"),
    "hook-new": View("/schedules?view=hooks", ("New hook", "Secret"), press="New hook"),
    "alerts": View("/schedules?view=alerts", ("There are no alerts",)),
    "run-again": View("/runs/{hello}", ("Run again", "who", "times"), press="Run again"),
    "run-workers": View("/runs/{import}?view=timeline&panel=data", ("Steps have no rows",)),
    "keys": View("/runs", ("Keys", "Everywhere", "Next run"), press="?"),
    "fleet": View("/fleet", ("Servers", "Workers")),
    "missing": View("/nowhere", ("There is no",)),
    "sign-in": View("/sign-in", ("Sign in to Penstock", "Token"), isolated=True),
}


RUNS = ("hello", "other", "orders", "regions", "import")


@dataclass(frozen=True)
class Scene:
    server: Server
    runs: dict[str, str]
    """Their ids, and `failure`: the number of the event with which `import` failed first."""
    signed_in: BrowserContext
    stranger: BrowserContext
    visits: dict[str, Visit] = field(default_factory=dict)

    def path(self, view: View) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self.runs[found[1]], view.path)


@dataclass
class Visit:
    """What was found at one address."""

    missing: list[str] = field(default_factory=list)
    barriers: list[str] = field(default_factory=list)
    too_wide: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    title: str = ""


@pytest.fixture(scope="module")
def scene(built: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("pages")
    project = folder / "project"
    write(project, "hello", "import", "orders")
    (project / "broken.yaml").write_text(HELLO.replace("kind: python", "kind: pyton"), encoding="utf-8")
    for number in range(6):
        (folder / f"gate-{number}").touch()
    with page_of(folder) as server, profile(browser) as (signed_in, _), profile(browser) as (stranger, _):
        api = server.api
        runs = {
            "hello": api.done(HELLO),
            "other": api.done(HELLO, payload={"who": "other"}, label="other"),
            "orders": api.done(ORDERS, keep=["large.main", "orders.main"]),
            "regions": api.done(LOOP, payload={"gate": str(folder / "gate")}),
            "import": api.done(FAILS),
        }
        api.http.put("/api/documents/a/hello", json={"text": HELLO}).raise_for_status()
        daily = {"cron": "0 6 * * 1-5", "zone": "Europe/Vienna", "path": "a/hello"}
        api.http.put("/api/schedules/daily", json=daily).raise_for_status()
        api.http.put("/api/hooks/push", json={"path": "a/hello"}).raise_for_status()
        runs["failure"] = str(api.get(f"/api/executions/{runs['import']}/marks").json()["first_error"])
        server.sign_in(signed_in)
        yield Scene(server, runs, signed_in, stranger)


@pytest.fixture(params=list(VIEWS))
def visit(scene: Scene, request: pytest.FixtureRequest) -> Visit:
    name = str(request.param)
    if name not in scene.visits:
        scene.visits[name] = visited(scene, name)
    return scene.visits[name]


WIDE = """() => {
    const wide = document.documentElement.clientWidth;
    const found = document.documentElement.scrollWidth > wide ? [`the page: ${document.documentElement.scrollWidth}`] : [];
    for (const element of document.querySelectorAll("header, main, nav, footer, [role=tablist], [role=toolbar], h1, button, dialog")) {
        if (element.closest(".react-flow__viewport, .run-marks, .tall, .rp-tall, .visually-hidden, .shell-skip") !== null) continue;
        if (getComputedStyle(element).position === "absolute" && element.classList.contains("visually-hidden")) continue;
        const box = element.getBoundingClientRect();
        let inside = element.parentElement;
        while (inside !== null && !["auto", "scroll"].includes(getComputedStyle(inside).overflowX)) inside = inside.parentElement;
        if (inside === null && box.width > 0 && box.right > wide + 1) {
            found.push(`${element.tagName} ${(element.getAttribute("aria-label") ?? element.textContent).slice(0, 40)}: ${Math.round(box.right)}`);
        }
    }
    return found;
}"""


def visited(scene: Scene, name: str) -> Visit:
    view, visit = VIEWS[name], Visit()
    page, visit.mistakes = watched(scene.stranger if view.isolated else scene.signed_in)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light")
    scene.server.open(page, scene.path(view))
    if view.press == "?":
        expect(page.get_by_role("grid", name="Runs")).to_be_visible()
        page.keyboard.press("?")
    elif view.press:
        page.get_by_role("button", name=view.press, exact=True).click()
    for words in view.shown:
        try:
            expect(page.locator("body")).to_contain_text(words)
        except AssertionError:
            visit.missing.append(words)
    settled(page)
    visit.title = page.title()
    for width, theme in ((1280, "light"), (1280, "dark"), (800, "light"), (800, "dark")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        settled(page)
        screen(page, f"{name}-{width}-{theme}")
        visit.barriers += [f"{theme}, {width} wide: {one}" for one in axe(page)]
    visit.too_wide = page.evaluate(WIDE)
    page.close()
    return visit


def settled(page: Page) -> None:
    """Nothing is being loaded any more."""
    expect(page.locator("[aria-busy=true], .ui-loading")).to_have_count(0)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


def test_a_page_shows_at_its_own_address_what_it_is_about(visit: Visit) -> None:
    assert visit.missing == []
    assert "Penstock" in visit.title


def test_axe_finds_nothing_in_either_theme_wide_or_narrow(visit: Visit) -> None:
    assert visit.barriers == []


def test_nothing_is_wider_than_800_pixels(visit: Visit) -> None:
    assert visit.too_wide == []


def test_no_script_fails_and_the_policy_is_kept(visit: Visit) -> None:
    assert visit.mistakes == []


# ---- addresses


def test_what_is_shown_is_in_the_address_and_comes_back_with_it(scene: Scene, page: Page) -> None:
    scene.server.sign_in(page.context)
    run, failure = scene.runs["import"], scene.runs["failure"]
    scene.server.open(page, f"/runs/{run}")
    card(page, "check").click()
    page.get_by_role("tab", name="Values").click()
    page.get_by_role("button", name="First failure", exact=True).click()
    expect(page).to_have_url(re.compile(rf"at={failure}\b"))
    page.get_by_role("tab", name="Logs").click()
    expect(page.get_by_role("tabpanel", name="Logs")).to_contain_text("checking 3 prices")
    address = page.url
    for part in ("node=check", "panel=values", f"at={failure}", "view=logs"):
        assert part in address
    # As if it were sent to somebody else.
    other = page.context.new_page()
    other.goto(address)
    see_moment(other, int(failure))
    expect(other.get_by_role("tabpanel", name="Logs")).to_contain_text("checking 3 prices")
    expect(other.get_by_role("tabpanel", name="Values")).to_contain_text("n/a")
    other.get_by_role("tab", name="Graph").click()
    expect(card(other, "check")).to_have_attribute("aria-pressed", "true")
    expect(card(other, "report", "waiting")).to_be_visible()
    other.go_back()
    expect(other.get_by_role("tab", name="Logs")).to_have_attribute("aria-selected", "true")


def test_filters_of_the_runs_are_in_the_address(scene: Scene, page: Page) -> None:
    scene.server.sign_in(page.context)
    scene.server.open(page, "/runs")
    rows = page.get_by_role("grid", name="Runs").get_by_role("row")
    expect(rows).to_have_count(len(RUNS) + 1)
    page.get_by_role("button", name="Failed", exact=True).click()
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile("status=failed"))
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_role("combobox", name="Kind").select_option("Jobs")
    expect(rows).to_have_count(2)
    page.reload()
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("orders")
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("searchbox", name="Label").fill("other")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("hello")


def test_the_theme_is_that_of_the_system_until_one_is_chosen(scene: Scene, page: Page) -> None:
    scene.server.sign_in(page.context)
    page.emulate_media(color_scheme="dark")
    scene.server.open(page, "/runs")
    expect(page.get_by_role("grid", name="Runs")).to_be_visible()
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    until(page, lambda: page.evaluate(ground) != dark)
    page.get_by_role("button", name="Theme").click()
    page.get_by_role("menuitemcheckbox", name="Dark").click()
    until(page, lambda: page.evaluate(ground) == dark)
    page.reload()
    expect(page.get_by_role("grid", name="Runs")).to_be_visible()
    assert page.evaluate(ground) == dark


def test_the_worker_inside_a_server_is_not_offered_to_be_drained(scene: Scene, page: Page) -> None:
    scene.server.sign_in(page.context)
    scene.server.open(page, "/fleet")
    workers = page.get_by_role("table", name="Workers", exact=True)
    expect(workers.get_by_role("row")).to_have_count(2)
    expect(workers).to_contain_text("Alive")
    expect(page.get_by_role("button", name=re.compile("^Drain"))).to_have_count(0)


def test_two_runs_are_compared_down_to_their_first_difference(scene: Scene, page: Page) -> None:
    scene.server.sign_in(page.context)
    scene.server.open(page, "/runs?name=hello")
    for run in ("hello", "other"):
        row = page.get_by_role("row").filter(has_text=scene.runs[run][:12])
        row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    main = page.get_by_role("main")
    expect(main).to_contain_text(re.compile("first difference", re.IGNORECASE))
    expect(main).to_contain_text("world")
    expect(main).to_contain_text("other")
