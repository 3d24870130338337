"""The story of a newcomer: a job fails, its page says when and why, the document is repaired there, and the job completes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.web.chromium import ROOT, screen
from tests.web.looks import card, link, moment, panel, see_live, see_moment, see_status, slider
from tests.web.scenes import Process

EXAMPLE = ROOT / "examples" / "repair"


def test_a_newcomer_sees_a_job_fail_reads_why_repairs_it_and_runs_it_again(
    built: Path, page: Page, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns(".penstock", "out"))
    terminal = Process(project, "run", "repair.yaml", "--ui", "--no-open", "--store", "../home")
    try:
        # The one command prints the address of the run.
        address = terminal.until_said(r"the page: (http://\S+#token=\S+)")[1]
        page.goto(address)
        see_live(page)
        see_status(page, "Failed")
        expect(card(page, "plausible", "failed")).to_be_visible()
        expect(card(page, "report", "skipped")).to_be_visible()
        screen(page, "story-1-failed")

        drag_to_the_failure(page)
        expect(card(page, "plausible", "failed")).to_be_visible()
        expect(card(page, "report", "waiting")).to_be_visible()
        expect(link(page, "paid", "plausible")).to_have_accessible_name(re.compile(r"\b5 rows"))
        card(page, "plausible").click()
        expect(panel(page, "Why?")).to_contain_text("is not between 0 and 500")
        screen(page, "story-2-why")

        page.get_by_role("link", name="Documents").click()
        page.get_by_role("link", name="repair.yaml").click()
        text = page.get_by_role("textbox", name=re.compile("^The text of"))
        text.click()
        page.keyboard.press("Control+f")
        find = page.get_by_role("textbox", name="Find")
        find.press_sequentially("amount: [0, 500]")
        find.press("Enter")
        find.press("Escape")
        page.keyboard.insert_text("amount: [0, 5000]")
        expect(page.get_by_role("region", name="Problems").get_by_role("status")).to_have_text("Valid")
        screen(page, "story-3-repaired")
        page.get_by_role("button", name="Save and run").click()
        page.get_by_role("dialog").get_by_role("button", name="Save and run").click()
        expect(page).to_have_url(re.compile("/runs/"))
        see_status(page, "Completed")
        expect(card(page, "report", "completed")).to_be_visible()
        screen(page, "story-4-completed")
        assert "[0, 5000]" in (project / "repair.yaml").read_text(encoding="utf-8")
        assert (project / "out" / "paid.csv").read_text(encoding="utf-8").count("\n") == 5
    finally:
        terminal.stop()
    assert "Traceback" not in terminal.said


def drag_to_the_failure(page: Page) -> None:
    """To where the mark of the failure is on the track."""
    mark = page.locator(".run-mark[data-kind=failure]")
    expect(mark).to_be_visible()
    track, sign = slider(page).bounding_box(), mark.bounding_box()
    assert track is not None
    assert sign is not None
    y = track["y"] + track["height"] / 2
    page.mouse.move(track["x"] + track["width"], y)
    page.mouse.down()
    page.mouse.move(sign["x"] + sign["width"] / 2, y, steps=10)
    page.mouse.up()
    expect(page).to_have_url(re.compile("at="))
    see_moment(page, moment(page))
