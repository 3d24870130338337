"""The page `docs/how-to/fleet-first-steps.md`, played with real processes: what it shows comes, in its order."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

from tests.api.service import Api
from tests.cli.children import running
from tests.cli.support import Called, ended, process, started
from tests.docs.pages import DOCS, blocks
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

PAGE = DOCS / "how-to" / "fleet-first-steps.md"
TEXT = PAGE.read_text(encoding="utf-8")
MANY = "120"


def shown(words: str) -> str:
    """The page says this, so it must be so."""
    assert words in TEXT, words
    return words


def test_the_first_steps_with_a_fleet_are_as_the_page_says(folder: Path, postgres_url: str) -> None:
    for block in blocks(PAGE, "yaml"):
        if block.file is not None:
            Path(block.file).write_text(block.text, encoding="utf-8")
    quick = ["--database", postgres_url, "--listen", "127.0.0.1:0", "--lease", "2", "--grace", "1"]
    with running(*shown("penstock up --workers 2").split()[1:], *quick, "--store", "home") as up:
        os.environ["PENSTOCK_SERVER"] = up.url
        try:
            _played(up.url, up.until_said)
        finally:
            del os.environ["PENSTOCK_SERVER"]
        assert up.stop(signal.SIGINT) == 0
        assert shown("SIGINT: stopping; once more ends it at once") in up.text
        assert up.text.rstrip().endswith(shown("all have stopped"))


def _played(url: str, until_said: object) -> None:
    assert callable(until_said)
    until_said(r"worker-2 \| worker .* in pool `default`, 4 at a time")
    run = started(*shown("penstock run squares.yaml").split()[1:], "--set", f"many={MANY}")
    victim = _busy_worker()
    os.kill(victim, signal.SIGKILL)
    until_said(r"worker-\d \| died \(SIGKILL\); again in 0.5 s")
    shown("died (SIGKILL); again in 0.5 s")
    said = ended(run)
    assert (said.code, said.out) == (0, f'"{MANY} of {MANY}"\n'), said.err
    assert re.search(r"work: worker was lost with range \d+; \[\d+\]", said.err), said.err
    shown("worker was lost with range 3; [107] to [117] again")
    page = process("show", "@last")
    assert "fan-out complete: " in page.out
    assert "lost with their workers" in page.out or "lost with its worker" in page.out
    kept = process(*shown("penstock catalog put demo/squares squares.yaml").split()[1:])
    assert shown("`demo/squares` is kept as version 1") in kept.err
    body = json.loads(shown('{"document": {"path": "demo/squares"}, "payload": {"many": 10}}'))
    api = Api(url)
    first, second = (api.post("/api/executions", body, headers={"Idempotency-Key": "monday"}).json() for _ in range(2))
    assert (first["created"], second["created"]) == (True, False)
    assert first["execution_id"] == second["execution_id"]
    assert api.ended(first["execution_id"]) == "completed"
    api.close()


def _busy_worker() -> int:
    """The process of a worker that holds something; seen in the table that the page shows."""
    titles = shown("WORKER            POOL     SLOTS  HOLDS  STATUS   SEEN       VERSION").split()
    while True:
        table: Called = process(*shown("penstock workers --leases").split()[1:])
        head, *rows = table.out.splitlines()
        assert head.split() == titles
        for row in rows:
            cells = row.split()
            if len(cells) > 3 and "#" in cells[0] and cells[3].isdigit() and int(cells[3]):
                return int(cells[0].partition("#")[0].rpartition(":")[2])
