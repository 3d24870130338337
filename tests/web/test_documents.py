"""Documents: the editor knows what `penstock validate` knows, offers what may come next, saves without overwriting, and runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import warm
from tests.web.documents import HELLO, ORDERS, PLAYBOOK
from tests.web.looks import card, panel, see_status, until
from tests.web.scenes import Server, environment, page_of, write

BROKEN = (
    PLAYBOOK.replace("NAME", "broken")
    + """workload: {who: world}
workflow:
  - step: start
    tool:
      - name: greet
        kind: pyton
        code: "result = 1"
    next: {arcs: [{step: nowhere}]}
  - step: fin
    tool: [{name: said, kind: noop, value: "{{ start.text }"}]
"""
)
MEND = (("kind: pyton", "kind: python"), ("step: nowhere", "step: fin"), ("{{ start.text }", "{{ start }}"))


@pytest.fixture(scope="module")
def local(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("documents")
    write(folder / "project", "hello", "orders")
    with page_of(folder) as server:
        server.api.http.put("/api/documents/a/hello", json={"text": HELLO}).raise_for_status()
        yield server


@pytest.fixture
def file(local: Server, tmp_path: Path) -> Path:
    """A file of the test's own in the folder of the project."""
    return local.folder / f"{tmp_path.name}.yaml"


def editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name=re.compile("^The text of"))


def edit(page: Page, before: str, after: str) -> None:
    """Finds a text in the editor and types another one in its place, as a person does with the keys of the search."""
    editor(page).click()
    page.keyboard.press("Control+f")
    find = page.get_by_role("textbox", name="Find")
    find.fill("")
    find.press_sequentially(before)
    find.press("Enter")
    find.press("Escape")
    page.keyboard.insert_text(after)


def opened(local: Server, page: Page, file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    local.sign_in(page.context)
    local.open(page, f"/documents/file/{file.name}")
    expect(editor(page)).to_be_visible()


def summary(page: Page) -> Locator:
    return page.get_by_role("region", name="Problems").get_by_role("status")


def see_valid(page: Page) -> None:
    expect(summary(page)).to_have_text("Valid")


def codes(page: Page) -> list[str]:
    return [code for code in page.locator(".problem-code").all_inner_texts() if code]


def validated(local: Server, file: Path) -> list[str]:
    """The codes of `penstock validate`."""
    done = warm.called("validate", file.name, "--json", cwd=local.folder, env=environment(local.folder.parent))
    return [problem["code"] for problem in json.loads(done.stdout)["problems"]]


def test_a_broken_document_has_the_problems_that_validate_finds(local: Server, page: Page, file: Path) -> None:
    opened(local, page, file, BROKEN)
    expect(summary(page)).to_contain_text("error")
    expected = validated(local, file)
    assert len(expected) >= 2
    expect(page.locator(".problem-code")).to_have_count(len(expected))
    assert sorted(codes(page)) == sorted(expected)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    # A problem leads to its line.
    page.locator("button.problem").first.click()
    expect(editor(page)).to_be_focused()
    expect(page.locator(".cm-lintRange-error").first).to_be_visible()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_numbers_of_lines_are_beside_their_lines(
    local: Server, page: Page, motion: Literal["reduce", "no-preference"]
) -> None:
    page.emulate_media(reduced_motion=motion)
    local.sign_in(page.context)
    # Three times: whether the editor measured its lines too early was a matter of chance.
    for address in (
        "/documents/file/orders.yaml?view=lineage",
        "/documents/catalog/a/hello",
        "/documents/file/hello.yaml",
    ):
        local.open(page, address)
        see_valid(page)
        for line, number in ((0, 1), (9, 10), (15, 16)):
            text = page.locator(".cm-line").nth(line).bounding_box()
            beside = page.locator(
                ".cm-lineNumbers .cm-gutterElement", has_text=re.compile(f"^{number}$")
            ).bounding_box()
            assert text is not None
            assert beside is not None
            assert abs(text["y"] - beside["y"]) < 1, f"{address}, line {number}"


def test_a_document_is_repaired_saved_and_run_to_its_end(local: Server, page: Page, file: Path) -> None:
    opened(local, page, file, BROKEN)
    expect(summary(page)).to_contain_text("error")
    for before, after in MEND:
        edit(page, before, after)
    see_valid(page)
    assert "pyton" in file.read_text(encoding="utf-8")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("unsaved")).to_have_count(0)
    assert validated(local, file) == []
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(re.compile("/runs/"))
    see_status(page, "Completed")


def test_the_form_of_a_run_is_made_from_the_workload(local: Server, page: Page) -> None:
    local.sign_in(page.context)
    local.open(page, "/documents/file/hello.yaml")
    page.get_by_role("button", name="Run", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("textbox", name="who text")).to_have_value("world")
    expect(dialog.get_by_role("checkbox", name="loud")).not_to_be_checked()
    dialog.get_by_role("textbox", name="times whole number").fill("many")
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(dialog.get_by_role("textbox", name="times whole number")).to_be_focused()
    dialog.get_by_role("textbox", name="times whole number").fill("3")
    dialog.get_by_role("textbox", name="who text").fill("form")
    dialog.get_by_role("button", name="Run", exact=True).click()
    see_status(page, "Completed")
    card(page, "start").click()
    expect(panel(page, "Values")).to_contain_text("hello form")


def test_a_job_is_run_with_a_context_and_keeps_rows(local: Server, page: Page) -> None:
    local.sign_in(page.context)
    local.open(page, "/documents/file/orders.yaml")
    page.get_by_role("button", name="Run", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="Context group").select_option("strict")
    dialog.get_by_text("Label and rows to keep").click()
    dialog.get_by_role("checkbox", name="large.main").check()
    dialog.get_by_role("button", name="Run", exact=True).click()
    see_status(page, "Completed")
    card(page, "large").click()
    rows = panel(page, "Data").get_by_role("table", name=re.compile("Rows of large.main"))
    expect(rows.get_by_role("cell", name="31")).to_be_visible()
    expect(rows.get_by_role("row")).to_have_count(2)


def test_completion_offers_the_keys_that_may_come_next(local: Server, page: Page, file: Path) -> None:
    opened(local, page, file, HELLO)
    editor(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type("      ")
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.type("  - step: more\n")
    page.keyboard.press("Control+Space")
    offered = page.get_by_role("listbox").get_by_role("option")
    expect(offered.filter(has_text=re.compile("^tool"))).to_be_visible()
    expect(offered.filter(has_text=re.compile("^next"))).to_be_visible()


def test_the_graph_follows_the_cursor_and_the_cursor_the_graph(local: Server, page: Page, file: Path) -> None:
    opened(local, page, file, HELLO)
    expect(card(page, "fin")).to_be_visible()
    editor(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowUp")
    expect(card(page, "fin")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Control+Home")
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    expect(card(page, "start")).to_have_attribute("aria-pressed", "true")
    card(page, "fin").click()
    expect(page.locator(".cm-marked").first).to_contain_text("fin")


def test_a_step_that_is_written_appears_in_the_graph(local: Server, page: Page, file: Path) -> None:
    opened(local, page, file, HELLO)
    expect(card(page, "fin")).to_be_visible()
    edit(page, "- step: fin", "- step: done")
    edit(page, "[{step: fin}]", "[{step: done}]")
    expect(card(page, "done")).to_be_visible()
    expect(card(page, "fin")).to_have_count(0)


def test_a_file_that_changed_on_disk_is_not_overwritten_unasked(local: Server, page: Page, file: Path) -> None:
    opened(local, page, file, HELLO)
    expect(card(page, "fin")).to_be_visible()
    edit(page, "who: world", "who: mine")
    theirs = HELLO.replace("who: world", "who: theirs")
    file.write_text(theirs, encoding="utf-8")
    page.get_by_role("button", name="Save", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The file has changed since it was opened")
    expect(dialog).to_contain_text("who: mine")
    expect(dialog).to_contain_text("who: theirs")
    assert file.read_text(encoding="utf-8") == theirs
    dialog.get_by_role("button", name="Back to the editor").click()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Overwrite the file with mine").click()
    expect(page.get_by_text("unsaved")).to_have_count(0)
    assert "who: mine" in file.read_text(encoding="utf-8")


def test_what_was_not_saved_is_there_again_after_loading_the_page(local: Server, page: Page, file: Path) -> None:
    opened(local, page, file, HELLO)
    expect(card(page, "fin")).to_be_visible()
    edit(page, "who: world", "who: kept")
    expect(page.get_by_text("unsaved")).to_be_visible()
    page.on("dialog", lambda dialog: dialog.accept())
    until(page, lambda: "who: kept" in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])"))
    page.reload()
    expect(editor(page)).to_contain_text("who: kept")
    assert file.read_text(encoding="utf-8") == HELLO


def test_a_new_document_is_made_and_put_into_the_catalog(local: Server, page: Page, tmp_path: Path) -> None:
    local.sign_in(page.context)
    local.open(page, "/documents?view=new")
    dialog = page.get_by_role("dialog")
    name = f"{tmp_path.name}-new.yaml"
    dialog.get_by_role("textbox").first.fill(name)
    dialog.get_by_role("button", name="Create and open").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    see_valid(page)
    page.get_by_role("banner").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Add to the catalog …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").first.fill(f"made/{tmp_path.name}")
    dialog.get_by_role("button", name=re.compile("^Add")).click()
    expect(dialog).to_have_count(0)
    local.open(page, "/documents")
    expect(page.get_by_role("region", name="Catalog").get_by_role("link", name=f"made/{tmp_path.name}")).to_be_visible()


def test_a_document_of_the_catalog_is_shown_with_its_versions_and_run(local: Server, page: Page) -> None:
    local.api.http.put("/api/documents/a/versions", json={"text": HELLO}).raise_for_status()
    local.api.http.put("/api/documents/a/versions", json={"text": ORDERS}).raise_for_status()
    local.sign_in(page.context)
    local.open(page, "/documents/catalog/a/versions?version=1")
    expect(page.get_by_role("textbox").first).to_contain_text("hello")
    expect(card(page, "fin")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Run", exact=True).click()
    see_status(page, "Completed")
