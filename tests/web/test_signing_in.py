"""Who may see and do what: tokens and their scopes on a server, and the token in the address of `penstock ui`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.documents import FAILS, HELLO, WAITS
from tests.web.looks import see_status
from tests.web.scenes import Server, page_of, served, write


@dataclass(frozen=True)
class Guarded:
    server: Server
    secrets: dict[str, str]
    failed: str
    going: str
    gate: Path


@pytest.fixture(scope="module")
def guarded(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server with a token of each scope, a run that failed and one that is going, a document and a schedule."""
    folder = tmp_path_factory.mktemp("guarded")
    with served(folder) as server:
        gate = folder / "gate"
        failed = server.api.done(FAILS)
        going = server.api.submit(WAITS, payload={"gate": str(gate)})
        server.api.http.put("/api/documents/a/hello", json={"text": HELLO}).raise_for_status()
        schedule = {"cron": "@daily", "zone": "UTC", "path": "a/hello"}
        server.api.http.put("/api/schedules/daily", json=schedule).raise_for_status()
        boss = server.token("boss", "admin")
        server.api.http.headers["Authorization"] = f"Bearer {boss}"
        secrets = {"admin": boss, "read": server.token("reader", "read"), "run": server.token("runner", "run")}
        yield Guarded(server, secrets, failed, going, gate)
        gate.touch()


def sign_in(page: Page, secret: str) -> None:
    page.get_by_label("Token", exact=True).fill(secret)
    page.get_by_role("button", name="Sign in").click()


def test_without_a_token_every_address_leads_to_the_sign_in_and_shows_nothing(guarded: Guarded, page: Page) -> None:
    for path in ("/", f"/runs/{guarded.failed}", "/documents", "/fleet"):
        guarded.server.open(page, path)
        expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()
        expect(page.get_by_role("navigation")).to_have_count(0)
        expect(page.get_by_text(guarded.failed)).to_have_count(0)


def test_a_wrong_token_is_refused_and_the_right_one_leads_to_where_one_was_going(guarded: Guarded, page: Page) -> None:
    guarded.server.open(page, f"/runs/{guarded.failed}?view=events")
    sign_in(page, "pk_wrong")
    expect(page.get_by_text("This token is unknown here, or has expired")).to_be_visible()
    expect(page.get_by_label("Token", exact=True)).to_have_attribute("aria-invalid", "true")
    sign_in(page, guarded.secrets["read"])
    expect(page).to_have_url(re.compile(rf"/runs/{guarded.failed}\?view=events"))
    see_status(page, "Failed")


def test_the_sign_in_leads_nowhere_else(guarded: Guarded, page: Page) -> None:
    for elsewhere in ("https://example.com/", "//example.com/", "/\\example.com", "javascript:alert(1)"):
        page.context.clear_cookies()
        guarded.server.open(page, f"/sign-in?to={elsewhere}")
        sign_in(page, guarded.secrets["read"])
        expect(page).to_have_url(f"{guarded.server.url}/runs")


def test_no_script_can_read_the_cookie_and_the_token_is_kept_nowhere(guarded: Guarded, page: Page) -> None:
    guarded.server.open(page, "/")
    sign_in(page, guarded.secrets["admin"])
    expect(page.get_by_role("grid", name="Runs")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href, history.state])")
    assert guarded.secrets["admin"] not in kept
    (cookie,) = page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
    assert guarded.secrets["admin"] not in str(cookie.get("value"))


def test_what_a_token_to_read_may_not_do_is_not_offered(guarded: Guarded, page: Page) -> None:
    server = guarded.server
    server.sign_in(page.context, guarded.secrets["read"])
    wrong = re.compile(r"^(Cancel|Resume|Run|Run again|Run now|Save|New|Delete|Edit|Pause|Drain|Put|Backfill)\b")
    for path, shown in (
        ("/runs", guarded.failed[:8]),
        (f"/runs/{guarded.failed}", "import"),
        (f"/runs/{guarded.going}", "nightly"),
        ("/documents/catalog/a/hello", "a/hello"),
        ("/schedules?name=daily", "daily"),
        ("/fleet", "Workers"),
    ):
        server.open(page, path)
        expect(page.get_by_role("main").get_by_text(shown).first).to_be_visible()
        expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
        expect(page.get_by_role("button", name=wrong)).to_have_count(0)
    server.open(page, "/runs")
    row = page.get_by_role("row").filter(has_text="nightly")
    row.get_by_role("button", name=re.compile("^Actions on run")).click()
    expect(page.get_by_role("menuitem", name="Open")).to_be_visible()
    expect(page.get_by_role("menuitem", name=re.compile("Cancel|Resume"))).to_have_count(0)


def test_and_the_server_refuses_it_as_well(guarded: Guarded, page: Page) -> None:
    guarded.server.sign_in(page.context, guarded.secrets["read"])
    guarded.server.open(page, "/runs")
    asked = """async ([path, method, body]) => (await fetch(path, {
        method, ...(body && {body: JSON.stringify(body)}), headers: {"content-type": "application/json"},
    })).status"""
    for path, method, body in (
        ("/api/executions", "POST", {"document": {"text": HELLO}}),
        (f"/api/executions/{guarded.going}/cancel", "POST", {}),
        (f"/api/executions/{guarded.failed}/resume", "POST", {}),
        ("/api/documents/a/hello", "PUT", {"text": HELLO}),
        ("/api/schedules/daily", "DELETE", {}),
        ("/api/tokens", "GET", None),
    ):
        assert page.evaluate(asked, [path, method, body]) == 403, path


def test_a_token_to_run_is_offered_to_cancel_and_not_to_change_schedules(guarded: Guarded, page: Page) -> None:
    guarded.server.sign_in(page.context, guarded.secrets["run"])
    guarded.server.open(page, f"/runs/{guarded.going}")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    guarded.server.open(page, "/schedules?name=daily")
    expect(page.get_by_role("button", name="Run now")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^(Delete|Edit|Pause)"))).to_have_count(0)


def test_whoever_signs_out_sees_nothing_more_in_any_tab(guarded: Guarded, page: Page) -> None:
    guarded.server.sign_in(page.context, guarded.secrets["read"])
    guarded.server.open(page, "/runs")
    page.get_by_role("button", name="Account reader").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()
    assert page.context.cookies() == []
    page.go_back()
    expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()
    guarded.server.open(page, f"/runs/{guarded.failed}")
    expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()


def test_a_page_whose_token_was_revoked_asks_for_another_one(guarded: Guarded, page: Page) -> None:
    made = guarded.server.api.post("/api/tokens", {"name": "leaver", "scope": "read"}).json()
    guarded.server.sign_in(page.context, made["secret"])
    guarded.server.open(page, "/runs")
    expect(page.get_by_role("grid", name="Runs")).to_be_visible()
    guarded.server.api.http.delete(f"/api/tokens/{made['id']}").raise_for_status()
    page.keyboard.press("g")
    page.keyboard.press("f")
    expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()


# ---- `penstock ui`


@pytest.fixture(scope="module")
def local(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("ui")
    write(folder / "project", "hello")
    with page_of(folder) as server:
        yield server


def test_the_token_in_the_address_signs_in_and_leaves_the_address_bar(local: Server, page: Page) -> None:
    run = local.api.done(HELLO)
    page.goto(f"{local.url}/runs/{run}?view=logs#token={local.secret}")
    see_status(page, "Completed")
    expect(page).to_have_url(f"{local.url}/runs/{run}?view=logs")
    page.get_by_role("link", name="Documents").click()
    expect(page.get_by_role("link", name="hello.yaml")).to_be_visible()
    # It does not come back with the history either.
    page.go_back()
    expect(page).to_have_url(f"{local.url}/runs/{run}?view=logs")
    page.reload()
    see_status(page, "Completed")


def test_without_the_token_the_page_of_a_folder_shows_nothing(local: Server, page: Page) -> None:
    for path in ("/", "/documents", "/#token=wrong"):
        local.open(page, path)
        expect(page.get_by_role("heading", name="Sign in to Penstock")).to_be_visible()
        expect(page.get_by_text("hello.yaml")).to_have_count(0)
    status = page.evaluate("async () => (await fetch('/api/files')).status")
    assert status == 401
