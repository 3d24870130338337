"""Help and version: there at once, because nothing heavy is imported for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.cli.arguments import COMMANDS
from tests.cases import cases
from tests.cli.support import call, environment, process

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]

HEAVY = {
    "rich",
    "typer",
    "click",
    "asyncio",
    "yaml",
    "msgspec",
    "sqlite3",
    "penstock.app.embedded",
    "aiohttp",
    "httpx2",
    "psycopg",
    "duckdb",
}


def test_help_lists_every_command(capsys: Capture) -> None:
    shown = call(capsys, "--help")
    assert shown.code == 0
    assert all(f"  {name} " in shown.out for name in COMMANDS)


@cases("name", COMMANDS)
def test_every_command_has_help_of_its_own(capsys: Capture, name: str) -> None:
    shown = call(capsys, name, "--help")
    assert shown.code == 0
    assert shown.out.startswith(f"usage: penstock {name}")


def test_the_version_is_printed() -> None:
    shown = process("--version")
    assert (shown.code, shown.out.split()[0]) == (0, "penstock")


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from penstock.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment(), timeout=60
    )
    assert not HEAVY & set(done.stderr.split())


def test_a_run_without_a_terminal_imports_no_rich_and_no_tool_it_does_not_use() -> None:
    from tests.cli.support import write

    write("one.yaml", "- step: start\n  tool: [{name: n, kind: noop}]")
    code = "import sys; from penstock.cli.main import main; main(['run', 'one.yaml']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment(), timeout=60
    )
    loaded = set(done.stdout.split())
    assert "penstock.app.embedded" in loaded
    assert (
        not {"rich", "typer", "aiohttp", "httpx2", "psycopg", "duckdb", "cryptography", "penstock.tools.http.tool"}
        & loaded
    )


def test_importing_penstock_imports_nothing_of_it() -> None:
    code = "import sys, penstock; print(*[name for name in sys.modules if name.startswith('penstock')])"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment(), timeout=60
    )
    assert done.stdout.split() == ["penstock"]
