"""What others wrote stays text, what other sites ask for is refused, and the page keeps to its own strict policy."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.web import chromium
from tests.web.documents import HELLO
from tests.web.looks import card, panel, see_live, see_status, view
from tests.web.scenes import Server, page_of, served, write

PAYLOADS = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(2)</script>",
    '"><svg onload=alert(3)>',
    "'-alert(4)-'",
    "javascript:alert(5)",
    "<iframe srcdoc='<script>parent.alert(6)</script>'></iframe>",
    "</textarea></title></style><script>alert(7)</script>",
    "{{constructor.constructor('alert(8)')()}}",
    "<a href=javascript:alert(9)>x</a>",
    "\u202e<b onclick=alert(10)>",
)
ALL = " ".join(PAYLOADS)
INJECTED = "img[src=x], svg[onload], iframe, a[href^='javascript'], b[onclick], [onerror], script:not([src])"
"""None of these is ever made by the page itself."""


def quoted(text: str) -> str:
    """A string of YAML."""
    return json.dumps(text)


PLAYBOOK = f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: {quoted(PAYLOADS[0])}, description: {quoted(ALL)}}}
workload: {{{quoted(PAYLOADS[1])}: {quoted(ALL)}, who: {quoted(PAYLOADS[2])}}}
workflow:
  - step: start
    desc: {quoted(ALL)}
    tool:
      - name: said
        kind: python
        args: {{text: {quoted(ALL.replace("{{", "{ {"))}}}
        code: |
          print(text)
          print("\\x1b[31m" + text + "\\x1b[0m")
          result = {{"<script>alert(11)</script>": text, "list": [text]}}
    next: {{arcs: [{{step: fails}}]}}
  - step: fails
    tool:
      - name: boom
        kind: python
        args: {{text: {quoted(ALL.replace("{{", "{ {"))}}}
        code: |
          raise ValueError(text)
"""

JOB = f"""
apiVersion: penstock/v1
kind: Job
metadata: {{name: {quoted(PAYLOADS[1])}, description: {quoted(ALL)}}}
components:
  - name: rows
    type: fixed_rows
    description: {quoted(ALL)}
    params:
      columns: [{quoted(PAYLOADS[0])}, n]
      rows: [[{quoted(PAYLOADS[1])}, 1], [{quoted(PAYLOADS[2])}, 2]]
  - {{name: shown, type: log_rows}}
connections:
  data: rows.main -> shown.input
"""


@dataclass(frozen=True)
class Scene:
    server: Server
    playbook: str
    job: str


FILE = "<img src=x onerror=alert(12)>.yaml"


@pytest.fixture(scope="module")
def scene(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("security")
    write(folder / "project", "hello")
    (folder / "project" / FILE).write_text(PLAYBOOK, encoding="utf-8")
    with page_of(folder) as server:
        label = PAYLOADS[0]
        playbook = server.api.done(PLAYBOOK, label=label)
        job = server.api.done(JOB, label=PAYLOADS[2], keep=["rows.main"])
        yield Scene(server, playbook, job)


@pytest.fixture
def wary(scene: Scene, page: Page) -> Iterator[Page]:
    """A tab that tells of dialogs, of elements that were injected and of violations of the policy."""
    dialogs: list[str] = []

    def on_dialog(dialog: object) -> None:
        dialogs.append(dialog.message)  # type: ignore[attr-defined]
        dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", on_dialog)
    page.add_init_script(
        "window.violations = [];"
        "addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective));"
    )
    scene.server.sign_in(page.context)
    yield page
    assert dialogs == []


def untouched(page: Page) -> None:
    expect(page.locator(INJECTED)).to_have_count(0)
    assert page.evaluate("window.violations") == []


def test_the_policy_of_the_page_allows_no_script_but_its_own(scene: Scene) -> None:
    answer = scene.server.api.get("/runs")
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] in ("no-referrer", "same-origin")
    assert "script-src" in policy
    assert re.search(r"<script(?![^>]*\bsrc=)", answer.text) is None


def test_names_and_labels_in_the_list_of_runs_are_text(scene: Scene, wary: Page) -> None:
    scene.server.open(wary, "/runs")
    expect(wary.get_by_role("link", name=PAYLOADS[0]).first).to_be_visible()
    expect(wary.get_by_role("link", name=PAYLOADS[1])).to_be_visible()
    expect(wary.get_by_role("button", name=PAYLOADS[2])).to_be_visible()
    untouched(wary)


def test_messages_logs_values_and_the_document_of_a_run_are_text(scene: Scene, wary: Page) -> None:
    scene.server.open(wary, f"/runs/{scene.playbook}")
    expect(wary.get_by_role("heading", level=1)).to_contain_text(PAYLOADS[0])
    see_status(wary, "Failed")
    card(wary, "fails").click()
    expect(panel(wary, "Why?")).to_contain_text(PAYLOADS[0])
    untouched(wary)
    card(wary, "start").click()
    values = panel(wary, "Values")
    expect(values).to_contain_text("<script>alert(11)</script>")
    expect(values).to_contain_text(PAYLOADS[0])
    untouched(wary)
    events = view(wary, "Events")
    for seq in range(1, 5):
        events.get_by_role("option").nth(seq).click()
    untouched(wary)
    expect(view(wary, "Logs")).to_contain_text(PAYLOADS[0])
    untouched(wary)
    expect(view(wary, "Document")).to_contain_text("<iframe")
    untouched(wary)
    view(wary, "Timeline")
    expect(wary.get_by_role("tabpanel", name="Timeline")).to_contain_text("fails")
    untouched(wary)


def test_column_names_and_rows_of_a_job_are_text(scene: Scene, wary: Page) -> None:
    scene.server.open(wary, f"/runs/{scene.job}?node=rows&panel=data")
    table = wary.get_by_role("table", name=re.compile("Rows of rows.main"))
    expect(table.get_by_role("columnheader", name=PAYLOADS[0])).to_be_visible()
    expect(table.get_by_role("cell", name=PAYLOADS[1])).to_be_visible()
    untouched(wary)


def test_the_names_and_texts_of_documents_are_text(scene: Scene, wary: Page) -> None:
    scene.server.open(wary, "/documents")
    wary.get_by_role("link", name=FILE).click()
    expect(wary.get_by_role("heading", level=1)).to_have_text(FILE)
    expect(wary.get_by_role("textbox", name=re.compile("The text of"))).to_contain_text("<iframe")
    expect(card(wary, "fails")).to_be_visible()
    untouched(wary)
    wary.get_by_role("button", name="Run", exact=True).click()
    expect(wary.get_by_role("dialog")).to_contain_text(PAYLOADS[0])
    untouched(wary)


def test_the_inputs_of_schedules_and_the_documents_of_the_catalog_are_text(scene: Scene, wary: Page) -> None:
    """Their names cannot hold markup: the API takes letters, digits and a few signs."""
    api = scene.server.api
    assert api.http.put(f"/api/documents/{quote(PAYLOADS[0])}", json={"text": PLAYBOOK}).status_code == 422
    api.http.put("/api/documents/a/hostile", json={"text": PLAYBOOK}).raise_for_status()
    daily = {"cron": "@daily", "zone": "UTC", "path": "a/hostile", "payload": {"who": PAYLOADS[4]}}
    assert api.http.put(f"/api/schedules/{quote(PAYLOADS[0])}", json=daily).status_code == 422
    api.http.put("/api/schedules/hostile", json=daily).raise_for_status()
    scene.server.open(wary, "/schedules?name=hostile")
    wary.get_by_role("button", name="Edit").click()
    dialog = wary.get_by_role("dialog")
    expect(dialog.get_by_role("textbox", name=re.compile("^who"))).to_have_value(PAYLOADS[4])
    expect(dialog).to_contain_text(PAYLOADS[1])
    untouched(wary)
    wary.keyboard.press("Escape")
    scene.server.open(wary, "/documents/catalog/a/hostile?view=versions")
    expect(wary.get_by_role("textbox", name=re.compile("The text of"))).to_contain_text("<iframe")
    untouched(wary)


def test_two_runs_are_compared_as_text(scene: Scene, wary: Page) -> None:
    other = scene.server.api.done(PLAYBOOK, payload={"who": PAYLOADS[3]})
    scene.server.open(wary, f"/compare?left={scene.playbook}&right={other}")
    expect(wary.get_by_role("main")).to_contain_text(PAYLOADS[0])
    expect(wary.get_by_role("main")).to_contain_text(PAYLOADS[3])
    untouched(wary)


def test_an_address_with_markup_in_it_is_shown_as_text(scene: Scene, wary: Page) -> None:
    for path in (f"/runs/{PAYLOADS[0]}", f"/nothing/{PAYLOADS[0]}", f"/runs?q={PAYLOADS[2]}", f"/reference?q={ALL}"):
        scene.server.open(wary, path)
        see_live(wary)
        untouched(wary)


# ---- pages of other sites


ATTACK = """<!doctype html><title>another site</title><body><script>
const at = new URLSearchParams(location.search).get("at");
const body = JSON.stringify({document: {text: decodeURIComponent(new URLSearchParams(location.search).get("text"))}});
const tried = async (name, ask) => { try { return [name, await ask()]; } catch (error) { return [name, String(error)]; } };
const read = async (answer) => (answer.type === "opaque" ? "opaque" : answer.status + " " + (await answer.text()).slice(0, 200));
window.attack = async () => Object.fromEntries([
  await tried("read", async () => read(await fetch(at + "/api/executions", {credentials: "include"}))),
  await tried("start", async () => read(await fetch(at + "/api/executions", {method: "POST", body, credentials: "include",
    headers: {"content-type": "application/json"}}))),
  await tried("simple", async () => read(await fetch(at + "/api/executions", {method: "POST", body, credentials: "include",
    mode: "no-cors", headers: {"content-type": "text/plain"}}))),
  await tried("stream", async () => read(await fetch(at + "/api/stream?runs=true", {credentials: "include"}))),
  await tried("sign out", async () => read(await fetch(at + "/api/session", {method: "DELETE", credentials: "include"}))),
]);
window.framed = () => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  frame.onload = () => resolve(null);
  frame.src = at + "/runs"; document.body.append(frame);
});
</script></body>"""


@contextmanager
def other_site() -> Iterator[int]:
    """A server of somebody else on this machine: its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(ATTACK.encode())

        def log_message(self, *arguments: object) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def open_server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks for no token: only the origin and the host of a request stand between it and other sites."""
    with served(tmp_path_factory.mktemp("open")) as server:
        server.api.done(HELLO)
        yield server


def runs_of(server: Server) -> int:
    return len(server.api.get("/api/executions").json()["runs"])


@pytest.mark.parametrize("is_open", [False, True], ids=["signed in", "open server"])
def test_a_page_of_another_port_can_neither_read_nor_start_runs(
    scene: Scene, open_server: Server, context: BrowserContext, is_open: bool
) -> None:
    server = open_server if is_open else scene.server
    if not is_open:
        server.sign_in(context)
    before = runs_of(server)
    with other_site() as port:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/?at={server.url}&text={HELLO}")
        found = page.evaluate("attack()")
        page.evaluate("framed()")
        framed = page.frames[1].url
    assert found["simple"] == "opaque"
    assert all(not value.startswith("2") for value in found.values()), found
    assert framed.startswith("chrome-error:"), "the page let itself be framed"
    assert runs_of(server) == before
    # Nobody was signed out by it.
    if not is_open:
        page = context.new_page()
        server.open(page, "/runs")
        expect(page.get_by_role("grid", name="Runs")).to_be_visible()


@pytest.fixture(scope="module")
def rebound(browser: Browser) -> Iterator[Browser]:
    """A browser in whose world a name of somebody else leads to this machine."""
    rules = "--host-resolver-rules=MAP attacker.example 127.0.0.1"
    started = browser.browser_type.launch(executable_path=chromium.chromium(), args=[*chromium.FLAGS, rules])
    yield started
    started.close()


def test_a_name_that_was_pointed_at_this_machine_reads_and_starts_nothing(
    scene: Scene, open_server: Server, rebound: Browser
) -> None:
    asked = """async (text) => {
        const asking = [
            fetch("/api/executions"), fetch("/api/session"), fetch("/api/stream?runs=true"),
            fetch("/api/executions", {method: "POST", body: JSON.stringify({document: {text}}),
                headers: {"content-type": "application/json"}}),
        ];
        return (await Promise.all(asking)).map((answer) => answer.status);
    }"""
    for server in (open_server, scene.server):
        before = runs_of(server)
        context = rebound.new_context()
        page = context.new_page()
        page.goto(f"http://attacker.example:{server.port}/runs")
        statuses = page.evaluate(asked, HELLO)
        assert all(status in (400, 401, 403, 421) for status in statuses), statuses
        assert runs_of(server) == before
        context.close()
