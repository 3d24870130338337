"""The stores of lines, by one contract; and what each has to itself."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from penstock.adapters.files.lines import FileLines, LineLog
from penstock.adapters.postgres.lines import PostgresLines
from penstock.kernel.errors import Refused
from penstock.ports.ambient import SystemClock
from penstock.ports.lines import LineStore
from tests.contracts.lines_contract import LinesContract, said, told
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


class TestFileLines(LinesContract):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.home = tmp_path / "state"

    def opened(self) -> LineStore:
        return FileLines(self.home)


class TestPostgresLines(LinesContract):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.url = postgres_url

    def opened(self) -> LineStore:
        return PostgresLines(self.url)


def test_files_are_those_that_an_embedded_run_writes(tmp_path: Path) -> None:
    log = LineLog(tmp_path / "logs" / "run-1.ndjson", SystemClock(), lambda text: text, [])
    log.say("load@0", "load@0/print#1", "from the engine")
    log.close()
    store = FileLines(tmp_path)
    store.append("run-1", said(1))
    first, second = store.read("run-1")
    assert (first["scope"], first["task_run_id"], first["line"]) == ("load@0", "load@0/print#1", "from the engine")
    assert first.keys() == second.keys()
    assert second == told(1)[0]


def test_a_line_that_a_killed_process_left_half_spoils_no_other(tmp_path: Path) -> None:
    store = FileLines(tmp_path)
    store.append("run-1", said(1))
    with (tmp_path / "logs" / "run-1.ndjson").open("ab") as file:
        file.write(b'{"ts": 1.0, "scope": "lo')
    assert store.read("run-1") == told(1)
    FileLines(tmp_path).append("run-1", said(1, first=1))
    first, half, second = store.read("run-1")
    assert [first, second] == told(2)
    assert half["line"] == '{"ts": 1.0, "scope": "lo'


def test_lines_that_no_file_could_take_are_counted_in_the_next_one(tmp_path: Path) -> None:
    store = FileLines(tmp_path)
    (tmp_path / "logs").write_text("in the way of the folder")
    store.append("run-1", said(3))
    store.append("run-1", said(2))
    (tmp_path / "logs").unlink()
    store.append("run-1", said(1))
    texts = [record["line"] for record in store.read("run-1")]
    assert texts == ["5 lines were lost here: they could not be kept", "line 0"]


def test_more_lines_than_may_wait_are_counted(postgres_url: str) -> None:
    store = PostgresLines(postgres_url, most_waiting=10)
    store.append("run-1", said(25))
    store.flush()
    records = store.read("run-1")
    store.close()
    assert records[:10] == told(10)
    assert [record["line"] for record in records[10:]] == ["15 lines were lost here: they could not be kept"]


def test_a_connection_that_dies_costs_no_line(postgres_url: str) -> None:
    name = f"lines-{uuid4().hex[:12]}"
    store = PostgresLines(f"{postgres_url}&application_name={name}")
    store.append("run-1", said(2))
    store.flush()
    with psycopg.connect(postgres_url, autocommit=True) as other:
        ended = other.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name LIKE %s",
            (f"{name} %",),
        ).fetchall()
        assert ended == [(True,)]
    store.append("run-1", said(2, first=2))
    store.flush()
    assert store.read("run-1") == told(4)
    store.close()
    store.append("run-1", said(1))
    store.flush()
    with pytest.raises(Refused):
        store.read("run-1")


def test_a_database_that_is_not_there_holds_nobody_up() -> None:
    store = PostgresLines("postgresql://nobody@127.0.0.1:1/nothing", patience_s=0.1)
    store.append("run-1", said(2))
    store.flush()
    store.close()
