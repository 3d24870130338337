"""What the written pages show is true: playbooks and jobs compile, Python code runs, commands can be typed, figures are the measured
ones. Pages whose commands are run from top to bottom are tested in `test_jobs`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.cases import CASES, group_of
from benchmarks.report import cases, headlines, into_page
from benchmarks.rows import Row
from penstock.cli.arguments import COMMANDS, CommandLineError, parser_for
from penstock.components.registry import ComponentRegistry
from penstock.dialects.job import compile_text as compile_job
from penstock.dialects.playbook import compile_text
from penstock.dialects.problems import Problem, Severity
from penstock.tools.registry import Registry
from tests.cases import cases as each_of
from tests.docs.pages import DOCS, PROJECT, Block, blocks, written_pages
from tests.docs.sessions import PAGES

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: snippet }\nworkflow:\n"
YAML = [block for page in written_pages() for block in blocks(page, "yaml")]
ONE_AFTER_ANOTHER = """
import os, runpy, sys
for name in sys.argv[1:]:
    os.chdir(name)
    runpy.run_path("page.py", run_name="__main__")
    os.chdir("..")
"""
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


@each_of("block", [block for block in YAML if not is_run_elsewhere(block)])
def test_every_playbook_and_every_job_on_a_page_is_valid(block: Block) -> None:
    if block.text.startswith("# yaml-language-server"):
        assert len(block.text.splitlines()) == 1
        return
    problems = problems_of(block)
    # A single task may read what stands around it on the page; apart from that there is not even a warning.
    aside = {"P0701", "P0702"} if block.text.startswith("- name:") else set()
    assert [one for one in problems if one.severity is not Severity.NOTE and one.code not in aside] == []


def test_the_code_on_a_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    """Each page in a folder of its own, one after another in a process that treats warnings as errors."""
    for name in CODE_PAGES:
        page, folder = DOCS / "how-to" / f"{name}.md", tmp_path / name
        folder.mkdir()
        for block in blocks(page, "yaml"):
            assert block.file is not None
            (folder / block.file).write_text(block.text, encoding="utf-8")
        code = "\n".join(block.text for block in blocks(page, "python"))
        (folder / "page.py").write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, *CODE_PAGES],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_readme_shows_five_figures_of_the_page_that_has_them_all() -> None:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    shown = text.partition("<!-- figures:start -->\n")[2].partition("\n<!-- figures:end -->")[0]
    assert shown == headlines((DOCS / "figures.md").read_text(encoding="utf-8"))
    assert len(shown.splitlines()) == 2 + 5


@pytest.mark.parametrize("group", sorted({group_of(case) for case in CASES}))
def test_every_case_has_a_place_on_the_page_of_figures(group: str, tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    page.write_text((DOCS / "figures.md").read_text(encoding="utf-8"), encoding="utf-8")
    into_page(page, group, {"cpu": "one"}, [Row("a new case", 1.0, "s")])
    assert cases(page.read_text(encoding="utf-8"))["a new case"][0][:1] == ("a new case",)


def test_what_was_measured_replaces_its_own_case_on_the_page_of_figures_and_no_other(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    page.write_text((DOCS / "figures.md").read_text(encoding="utf-8"), encoding="utf-8")
    before = cases(page.read_text(encoding="utf-8"))
    title = "`penstock --help`"
    rows = [Row(title, 0.5, "s", 0.25), Row("  floor: `python -c pass`", 0.1, "s"), Row("a new case", 7.0, "ms")]
    into_page(page, group_of("start"), {"cpu": "other"}, rows)
    after = cases(page.read_text(encoding="utf-8"))
    assert after.pop("a new case")[0][1] == "7 ms"
    assert [line[1] for line in after.pop(title)] == ["0.5 s", "0.1 s"]
    before.pop(title)
    assert after == before
    assert page.read_text(encoding="utf-8").count("Machine: cpu other.") == 1


def commands() -> Iterator[tuple[str, str]]:
    """Every call of `penstock` in a block of commands on any page."""
    for page in written_pages():
        for block in blocks(page, "console", "sh"):
            for line in block.text.splitlines():
                given = line.removeprefix("$ ") if block.language == "sh" or line.startswith("$ ") else ""
                for part in re.split(r"&&|\||;|\$\(", given.partition(" #")[0]):
                    words = part.strip()
                    if words.startswith("penstock "):
                        yield block.name, words


def test_every_command_on_a_page_is_one_that_can_be_typed() -> None:
    wrong, seen = [], 0
    for where, line in commands():
        words = shlex.split(re.split(r"\s[<>&]|\s2>", line)[0].replace("…", "x").replace("\\", ""))[1:]
        seen += 1
        if words[0] in ("--help", "--version", "help", "COMMAND") or words[0].isupper():
            continue
        try:
            parser_for(words[0], COMMANDS[words[0]]).parsed(words[1:])
        except (KeyError, CommandLineError) as error:
            wrong.append(f"{where}: {line}: {getattr(error, 'message', error)}")
        except SystemExit:
            continue  # `--help`
    assert wrong == []
    assert seen > 50


def test_every_target_of_make_that_a_page_names_is_one() -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    for page in written_pages():
        for block in blocks(page, "console", "sh"):
            for target in re.findall(r"^(?:\$ )?make ([\w-]+)", block.text, re.MULTILINE):
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{block.name}: make {target}"
