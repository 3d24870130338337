"""What the written pages show is true: playbooks and jobs compile, Python code runs, the README's playbook gives what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from penstock.components.registry import ComponentRegistry
from penstock.dialects.job import compile_text as compile_job
from penstock.dialects.playbook import compile_text
from penstock.dialects.problems import Problem, Severity
from penstock.tools.registry import Registry
from tests.docs.pages import DOCS, PROJECT, Block, blocks, written_pages
from tests.docs.sessions import PAGES

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: snippet }\nworkflow:\n"
YAML = [block for page in written_pages() for block in blocks(page, "yaml")]
CODE_PAGES = ("write-a-tool", "write-a-component", "embedding")


def whole(text: str) -> str:
    """A whole document of a snippet: of steps, of tasks, or of what is whole already."""
    if text.startswith("- step:"):
        return HEADER + textwrap.indent(text, "  ")
    if text.startswith("- "):
        return HEADER + "  - step: start\n    tool:\n" + textwrap.indent(text, "      ")
    return text


def is_run_elsewhere(block: Block) -> bool:
    """Its page is played from top to bottom by another test, with all its files in place."""
    return block.page.stem in CODE_PAGES or (block.page in PAGES and block.file is not None)


def problems_of(block: Block) -> tuple[Problem, ...]:
    if "\nkind: Job" in block.text or block.text.startswith("components:"):
        return compile_job(block.text, str(block.page.parent / "snippet.yaml"), ComponentRegistry()).problems
    return compile_text(whole(block.text), block.name, Registry()).problems


@pytest.mark.parametrize(
    "block", [block for block in YAML if not is_run_elsewhere(block)], ids=lambda block: block.name
)
def test_every_playbook_and_every_job_on_a_page_is_valid(block: Block) -> None:
    if block.text.startswith("# yaml-language-server"):
        assert len(block.text.splitlines()) == 1
        return
    problems = problems_of(block)
    # A single task may read what stands around it on the page; apart from that there is not even a warning.
    aside = {"P0701", "P0702"} if block.text.startswith("- name:") else set()
    assert [one for one in problems if one.severity is not Severity.NOTE and one.code not in aside] == []


@pytest.mark.parametrize("name", CODE_PAGES)
def test_the_code_on_a_page_runs_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    page = DOCS / "how-to" / f"{name}.md"
    for block in blocks(page, "yaml"):
        assert block.file is not None
        (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    script = tmp_path / "page.py"
    script.write_text("\n".join(block.text for block in blocks(page, "python")), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_playbook_of_the_readme_gives_what_the_readme_says(tmp_path: Path) -> None:
    readme = PROJECT / "README.md"
    block = next(block for block in blocks(readme, "yaml") if block.file == "pumps.yaml")
    (tmp_path / "pumps.yaml").write_text(block.text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "XDG_STATE_HOME": str(tmp_path / "xdg")}
    command = [sys.executable, "-m", "penstock", "run", "pumps.yaml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    shown = next(
        block.text for block in blocks(readme, "console") if block.text.startswith("$ penstock run pumps.yaml")
    )
    assert done.stdout.strip() == shown.splitlines()[-1]
    assert [_bare(line) for line in done.stderr.splitlines()[1:-1]] == [
        _bare(line) for line in shown.splitlines()[2:-2]
    ]


def _bare(line: str) -> str:
    """Without the time of day, the durations and the folder."""
    words = line.split()[1:]
    return " ".join(words).partition(" in ")[0].partition(" (line")[0]


def test_the_tutorial_gives_what_it_says(tmp_path: Path) -> None:
    page = DOCS / "how-to" / "first-playbook.md"
    (tmp_path / "stock.csv").write_text(next(blocks(page, "text")).text, encoding="utf-8")
    first, second, policy = (block.text for block in blocks(page, "yaml"))
    head, _, rest = second.partition("      - name: multiply\n")
    third = head + textwrap.indent(policy, "      ") + rest[rest.index("    next:") :]
    wanted = [
        json.loads(block.text.splitlines()[-1]) for block in blocks(page, "console") if block.text.endswith("}\n")
    ]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "XDG_STATE_HOME": str(tmp_path / "xdg")}
    answers = []
    for text in (first, second, third):
        (tmp_path / "stock.yaml").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "penstock", "run", "stock.yaml", "--json"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        answers.append(json.loads(done.stdout))
    assert answers[0]["result"]["data"] == wanted[0]["data"]
    assert (answers[1]["status"], answers[1]["error"]["iteration"]) == ("failed", 2)
    assert {key: answers[2][key] for key in ("status", "ctx", "result", "counts")} == {
        key: wanted[1][key] for key in ("status", "ctx", "result", "counts")
    }


def test_the_readme_has_a_place_for_the_figures() -> None:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert text.index("<!-- figures:start -->") < text.index("<!-- figures:end -->")
