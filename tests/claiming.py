"""A table of jobs and a playbook that claims them, as tests of work queues share them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.ports.log import Entry
from penstock.ports.results import decode

CLAIM = (
    "UPDATE jobs SET taken_by = :claim WHERE id IN (SELECT id FROM jobs WHERE taken_by IS NULL ORDER BY id LIMIT :rows) "
    "RETURNING id, n"
)


@dataclass(frozen=True)
class Jobs:
    """A SQLite file: who took each job, and how often each was worked on."""

    path: Path

    @staticmethod
    def at(folder: Path, count: int) -> Jobs:
        jobs = Jobs(folder / "jobs.db")
        jobs.path.unlink(missing_ok=True)
        jobs.do("CREATE TABLE jobs (id INTEGER PRIMARY KEY, n INTEGER, taken_by TEXT)")
        jobs.do("CREATE TABLE work (id INTEGER)")
        jobs.add(range(count))
        return jobs

    def do(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as file:
            return file.execute(sql).fetchall()

    def add(self, ids: range) -> None:
        for number in ids:
            self.do(f"INSERT INTO jobs VALUES ({number}, {number * 10}, NULL)")

    def taken(self) -> set[int]:
        return {row[0] for row in self.do("SELECT id FROM jobs WHERE taken_by IS NOT NULL")}

    def worked(self) -> Counter[int]:
        return Counter(row[0] for row in self.do("SELECT id FROM work"))

    def free(self, *, but: set[int]) -> None:
        """The leases of claims run out, but those of jobs that a run knows of."""
        for number in self.taken() - but:
            self.do(f"UPDATE jobs SET taken_by = NULL WHERE id = {number}")


WORK = {
    "name": "work",
    "kind": "sqlite",
    "path": "jobs.db",
    "command": "INSERT INTO work VALUES (:id)",
    "params": {"id": "{{ iter.job.id }}"},
}


def queue(
    *tasks: dict[str, Any],
    at_once: int = 1,
    rows: int = 1,
    mode: str = "local",
    failure: str = "fail_fast",
    sql: str = CLAIM,
    **more: Any,
) -> dict[str, Any]:
    """The step that claims. `more` goes into its `spec`."""
    loop: dict[str, Any] = {
        "in": {"claim": {"kind": "sqlite", "path": "jobs.db", "rows": rows, "sql": sql}},
        "iterator": "job",
    }
    if at_once > 1:
        loop["spec"] = {"mode": "parallel", "max_in_flight": at_once}
    return {
        "step": "start",
        "spec": {"loop_mode": mode, "policy": {"failure": {"mode": failure}}, **more},
        "loop": loop,
        "tool": [*tasks, WORK],
    }


def book(*steps: dict[str, Any]) -> str:
    return f"workflow: {json.dumps(steps)}"


def recorded(entries: list[Entry]) -> dict[int, int]:
    """Index -> the job that was claimed, as the log of a local loop tells it."""
    found: dict[int, int] = {}
    for entry in entries:
        if entry.type == "loop.claimed":
            data: Any = decode(entry.payload)
            found.update({data["lo"] + at: row["id"] for at, row in enumerate(data["items"])})
    return found


def worked_on(entries: list[Entry]) -> set[int]:
    """The indexes of the iterations whose work is known to be done."""
    found: set[int] = set()
    for entry in entries:
        data: Any = decode(entry.payload)
        if entry.type == "task.done" and data["task"] == "work" and data["outcome"]["status"] == "ok":
            found.add(int(entry.scope[entry.scope.rindex("[") + 1 : -1]))
    return found
