"""The reference is made from the code: nothing in the code is missing from it, and the pages on disk are the ones it makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from docs.generator.check import dead_links, differences, unknown_codes
from docs.generator.reference import reference, write
from penstock.cli.arguments import COMMANDS, parser_for
from penstock.dialects import diagnostics
from penstock.dialects.playbook.words import SCOPES
from penstock.dialects.words import KEYCHAIN_KINDS
from penstock.expr.words.table import TABLES
from penstock.kernel.facts import CLASSES
from penstock.keychain.kinds import KINDS
from penstock.server.runs import EXIT_CODES
from penstock.tools.registry import BUILT_IN, Registry
from tests.cases import cases
from tests.docs.pages import PROJECT, REFERENCE


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference()


def test_the_pages_on_disk_are_the_ones_the_code_makes(pages: dict[str, str]) -> None:
    assert differences(pages, REFERENCE) == [], "`make docs` writes them anew"


def test_no_link_in_the_documentation_is_dead() -> None:
    assert dead_links(PROJECT) == []


def test_every_code_that_stands_in_the_source_is_explained() -> None:
    assert unknown_codes() == []


@pytest.mark.parametrize("kind", [*BUILT_IN, "workbook"])
def test_every_tool_has_a_page_and_is_in_the_index(pages: dict[str, str], kind: str) -> None:
    assert f"tools/{kind}.md" in pages
    assert f"]({kind}.md)" in pages["tools/index.md"]


@cases("kind", BUILT_IN)
def test_every_parameter_of_a_tool_is_on_its_page_with_a_description(pages: dict[str, str], kind: str) -> None:
    description = Registry().describe(kind)
    assert description is not None
    assert description.summary
    for param in description.params.values():
        assert f"| `{param.name}` |" in pages[f"tools/{kind}.md"]
        assert param.description, f"`{param.name}` of `{kind}` has no description"


def test_every_code_has_an_entry(pages: dict[str, str]) -> None:
    for code, doc in diagnostics.pages().items():
        assert f'<a id="{code.lower()}"></a>\n\n### {code}: {doc.title}\n' in pages["diagnostics.md"]


def test_every_event_type_has_an_entry(pages: dict[str, str]) -> None:
    for event_type in CLASSES:
        assert f"\n## {event_type}\n" in pages["events.md"]


def test_every_command_and_option_has_an_entry(pages: dict[str, str]) -> None:
    for name, command in COMMANDS.items():
        _, _, section = pages["command-line.md"].partition(f"\n## {name}\n")
        assert section, name
        section = section.partition("\n## ")[0]
        for action in parser_for(name, command)._actions:
            for option in action.option_strings:
                assert option in ("-h", "--help") or f"`{option}" in section, f"{name} {option}"


def test_every_word_of_expressions_is_listed(pages: dict[str, str]) -> None:
    for table in TABLES.values():
        for name in table:
            page = pages["expressions.md"]
            assert f"`{name}`" in page or f"`{name}(" in page, name


def test_every_key_of_a_playbook_is_listed(pages: dict[str, str]) -> None:
    for name, scope in SCOPES.items():
        _, _, section = pages["playbook.md"].partition(f'<a id="{name}"></a>')
        section = section.partition("<a id=")[0]
        for key in scope.words:
            assert f"| `{key}` |" in section, f"{name}.{key}"


def test_every_kind_of_secret_has_an_entry_and_both_tables_know_the_same_kinds(pages: dict[str, str]) -> None:
    assert set(KINDS) == set(KEYCHAIN_KINDS)
    for kind in KINDS:
        assert f"\n## {kind}\n" in pages["keychain.md"]


def test_every_exit_code_of_a_run_is_explained(pages: dict[str, str]) -> None:
    for status, code in EXIT_CODES.items():
        row = next(line for line in pages["exit-codes.md"].splitlines() if line.startswith(f"| `{code}`"))
        assert f"`{status}`" in row


def test_the_check_in_another_process_fails_on_a_changed_page_a_stray_one_and_a_missing_one_alone(
    pages: dict[str, str], tmp_path: Path
) -> None:
    """All other pages are the ones this process made: they depend on the code, and on nothing else."""
    folder = tmp_path / "docs" / "reference"
    write(pages, folder)
    assert differences(pages, folder) == []
    (folder / "events.md").write_text("old", encoding="utf-8")
    (folder / "tools" / "telegraph.md").write_text("gone", encoding="utf-8")
    (folder / "exit-codes.md").unlink()
    different = ["exit-codes.md: missing", "events.md: out of date", "tools/telegraph.md: made by nothing"]
    assert [line.partition("reference/")[2] for line in differences(pages, folder)] == different
    environment = {"PYTHONPATH": str(PROJECT / "src"), "PYTHONHASHSEED": "7", "COLUMNS": "40", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "docs.generator", str(folder), "--check"]
    checked = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, cwd=PROJECT)
    assert checked.returncode == 1
    said = [line.partition("reference/")[2] for line in checked.stderr.splitlines() if "`make docs`" in line]
    assert said == [f"{line}; `make docs` writes it" for line in different]


def test_links_to_missing_files_and_headings_are_found_and_links_in_code_are_not(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "# A title\n[a](docs/a.md) [b](docs/a.md#two-words) [c](docs/a.md#other) [d](docs/gone.md) [e](#a-title) [f](#b)\n"
        "[g](https://example.com/x) `[h](gone.md)`\n```\n[i](gone.md)\n```\n![j](docs/j.svg)\n",
        encoding="utf-8",
    )
    (tmp_path / "docs" / "a.md").write_text("# Two `words`\n", encoding="utf-8")
    assert dead_links(tmp_path) == [
        "README.md: the link `docs/a.md#other` leads to no heading of that page",
        "README.md: the link `docs/gone.md` leads to nothing",
        "README.md: the link `#b` leads to no heading of that page",
        "README.md: the link `docs/j.svg` leads to nothing",
    ]
