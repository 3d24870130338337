"""Shards over pages on a fleet whose workers and servers die: every element is worked on as it was, and writes once."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.depth import times
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet
from tests.tools.support import Reply, Request, serve

COUNT = 40
WORK = """
- step: start
  spec: {{loop_mode: fanout, fanout: {{range_size: 7, max_job_retries: 20}}}}
  loop: {{in: {collection}, iterator: row}}
  tool:
    - name: write
      kind: sqlite
      path: it.db
      busy_timeout: 30
      commands:
        - "INSERT INTO written VALUES (:id, :name)"
        - "UPDATE total SET n = n + 1"
      params: {{id: "{{{{ iter.row.id }}}}", name: "{{{{ iter.row.name }}}}"}}
      idempotency: true
    - name: take
      kind: sqlite
      path: it.db
      busy_timeout: 30
      command: DELETE FROM orders WHERE id = :id
      params: {{id: "{{{{ iter.row.id }}}}"}}
    - {{name: wait, kind: sleep, seconds: 0.4}}
    - {{name: out, kind: noop, value: "{{{{ iter.row.id ~ ' ' ~ iter.iter_key }}}}"}}
"""
ROWS = "{sql: {kind: sqlite, path: it.db, query: 'SELECT id, name FROM orders', key: id}}"


def database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
        file.execute("CREATE TABLE written (id INT, name TEXT)")
        file.execute("CREATE TABLE total (n INT)")
        file.execute("INSERT INTO total VALUES (0)")
        file.executemany("INSERT INTO orders VALUES (?, ?)", [(3 * n, f"order {n}") for n in range(COUNT)])
        file.commit()


def check(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        written = file.execute("SELECT id, name FROM written ORDER BY id").fetchall()
        assert written == [(3 * n, f"order {n}") for n in range(COUNT)]
        assert file.execute("SELECT n FROM total").fetchone() == (COUNT,)


def _at_work(fleet: Fleet) -> list[str]:
    """Workers that hold a range, of whose elements none can be done yet: each takes longer than it takes to see them."""
    return [
        name
        for name, one in fleet.workers.items()
        if any(holding.held.is_range for holding in one.worker.lease_runs.values())
    ]


async def die_now_and_then(fleet: Fleet, run: str, chance: random.Random) -> None:
    """The first that works on elements is killed at it; then, until the run has ended, a worker or the server every few seconds,
    and another one comes."""
    await fleet.until(lambda: _at_work(fleet) != [])
    await fleet.kill_worker(_at_work(fleet)[0])
    fleet.work("w9", slots=2)
    for turn in range(12):
        if fleet.header(run).status != "running":
            return
        end = fleet.clock.now() + chance.uniform(0.2, 6)
        await fleet.until(lambda end=end: fleet.clock.now() > end or fleet.header(run).status != "running")  # type: ignore[misc]
        if chance.random() < 0.2:
            await fleet.kill_server(next(iter(fleet.servers)))
            await fleet.serve(f"s{turn + 2}")
        else:
            await fleet.kill_worker(chance.choice(list(fleet.workers)))
            fleet.work(f"w{turn + 10}", slots=2)


@pytest.mark.clause("F3.1", "F7.2")
@pytest.mark.parametrize("seed", range(times(1)))
def test_rows_of_a_table_that_shards_empty_are_each_written_once(tmp_path: Path, seed: int) -> None:
    database(tmp_path / "it.db")
    file = tmp_path / "it.yaml"
    file.write_text(document(WORK.format(collection=ROWS)))

    async def scenario(fleet: Fleet) -> None:
        await fleet.serve()
        for n in range(3):
            fleet.work(f"w{n}", slots=2)
        run = await fleet.submit(file)
        await die_now_and_then(fleet, run, random.Random(seed))
        header = await fleet.ended(run)
        assert header.status == "completed", await fleet.state()
        assert "loop.shard.returned" in {entry.type for entry in fleet.entries(run)}
        await fleet.check_replay(run)

    on_fleet(tmp_path / "home", scenario)
    check(tmp_path / "it.db")


@pytest.mark.clause("F3.1", "F7.2", "F8.1")
@pytest.mark.parametrize("seed", range(times(1)))
def test_elements_that_an_interface_lists_are_each_written_once(tmp_path: Path, seed: int) -> None:
    database(tmp_path / "it.db")
    rows = [{"id": 3 * n, "name": f"order {n}"} for n in range(COUNT)]

    def answer(request: Request) -> Reply:
        first = int(request.query.get("cursor", ["0"])[0])
        return Reply(200, {"rows": rows[first : first + 20], "next": first + 20 if first + 20 < COUNT else None})

    with serve(answer) as server:
        collection = f"{{http: {{url: '{server.url}', items: rows, next: next, key: id}}}}"
        file = tmp_path / "it.yaml"
        file.write_text(document(WORK.format(collection=collection)))

        async def scenario(fleet: Fleet) -> None:
            await fleet.serve()
            for n in range(3):
                fleet.work(f"w{n}", slots=2)
            run = await fleet.submit(file)
            await die_now_and_then(fleet, run, random.Random(seed))
            assert (await fleet.ended(run)).status == "completed", await fleet.state()

        on_fleet(tmp_path / "home", scenario)
    check(tmp_path / "it.db")
