"""A disk that is full, a database that somebody else holds: a clear error, nothing lost, and a resume that completes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.memory.log import MemoryLog
from penstock.adapters.sqlite.log import SqliteLog
from penstock.app.embedded import Embedded
from penstock.kernel.errors import Unavailable
from tests.chaos import playbooks, trials
from tests.chaos.engines import MemoryHome, Told, entries_on_disk, on_disk, really, resumed, started, virtually, write
from tests.chaos.logs import FullLog
from tests.chaos.workshop import Workshop, marks
from tests.chaos.zygote import Zygote
from tests.depth import some

HANGS_AFTER_S = 60.0
VIRTUALLY_HANGS_AFTER_S = 20_000.0  # Virtual time runs away while a thread works.


@pytest.mark.parametrize("durability", ["grouped", "strict"])
def test_a_disk_that_is_full_after_any_entry_stops_the_run_and_a_resume_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = playbooks.small(tmp_path, durability)
    whole: Told = virtually(MemoryHome.at(tmp_path).open, lambda engine: started(engine, file))
    for room in some(range(len(whole.entries) - 1), 12):
        home = MemoryHome.at(tmp_path)

        async def body(engine: Embedded) -> None:
            async with asyncio.timeout(VIRTUALLY_HANGS_AFTER_S):
                with pytest.raises(Unavailable, match="the disk is full") as caught:
                    await started(engine, file)
            assert "make room and resume" in str(caught.value.hint)
            assert len(asyncio.all_tasks()) == 1  # Nothing goes on behind our back.

        virtually(lambda home=home, room=room: home.open(FullLog(MemoryLog(home.store), room)), body)
        assert len(home.entries()) <= room
        if home.entries():
            (tmp_path / "marks").unlink(missing_ok=True)
            done = {entry.task for entry in home.entries() if entry.type == "task.done"}
            again: Told = virtually(home.open, resumed)
            assert again.outcome == whole.outcome, room
            assert not done & set(marks(tmp_path / "marks"))


def test_a_full_disk_in_a_parallel_loop_is_told_as_what_it_is(tmp_path: Path) -> None:
    text = """
    executor: {spec: {durability: strict}}
    workflow:
      - step: start
        loop: {in: {range: 50}, iterator: n, spec: {mode: parallel, max_in_flight: 5}}
        tool: [{kind: noop}, {kind: sleep, seconds: 1}]
    """
    home, file = MemoryHome.at(tmp_path), write(tmp_path, text)
    with pytest.raises(Unavailable, match="the disk is full"):
        virtually(lambda: home.open(FullLog(MemoryLog(home.store), 40)), lambda engine: started(engine, file))
    told: Told = virtually(home.open, resumed)
    assert told.summary.result["done"] == 50  # type: ignore[index,call-overload]


BIG = """
executor: {spec: {policy: {limits: {max_payload_bytes: 100000}}}}
workflow:
  - step: start
    loop: {in: {range: 60}, iterator: n, spec: {mode: parallel, max_in_flight: 3}}
    tool: {name: work, kind: python, args: {n: "{{ iter.n }}"}, code: "result = {'n': n, 'pad': 'x' * 20_000}"}
    next: {arcs: [{step: end, args: {done: "{{ event.result.done }}"}}]}
  - step: end
    tool: {name: last, kind: mark, file: marks, value: "{{ args.done }}"}
"""


def test_a_real_limit_on_the_size_of_files_leaves_a_run_that_completes_when_it_is_lifted(
    zygote: Zygote, tmp_path: Path
) -> None:
    file = write(tmp_path, BIG)
    ended = zygote.call(trials.start, home=str(tmp_path), file=str(file), file_limit=400_000)
    assert ended.code == 0, ended.error
    assert ended.value["refused"] == "Unavailable"
    assert "penstock.db" in ended.value["message"]
    assert "nothing that was acknowledged is lost" in ended.value["hint"]
    kept = entries_on_disk(tmp_path)
    assert 0 < len(kept) < 200
    again = zygote.call(trials.resume, home=str(tmp_path))
    assert (again.value["status"], again.value["result"]) == ("completed", 60)
    assert entries_on_disk(tmp_path)[: len(kept)] == kept


def test_a_result_store_without_room_fails_the_task_with_a_clear_reason_and_a_resume_completes(tmp_path: Path) -> None:
    class FullBlobs(FileBlobs):
        def put(self, *given: Any, **more: Any) -> Any:
            from penstock.adapters.files.folders import full_disk

            raise full_disk("blobs")

    text = "- {step: start, tool: [{name: a, kind: python, code: \"result = {'rows': ['x' * 100] * 20_000}\"}, {name: b, kind: noop, value: '{{ a.rows | length }}'}]}"
    file = write(tmp_path, text)

    async def first(engine: Embedded) -> Told:
        engine.blobs = FullBlobs(engine.home)
        return await started(engine, file)

    told: Told = really(tmp_path, first)
    assert told.status == "failed"
    error: Any = told.summary.error
    assert error["kind"] == "unavailable"
    assert "the disk is full" in error["message"]
    assert error["retryable"]
    again: Told = really(tmp_path, resumed)
    assert (again.status, again.summary.result) == ("completed", 20_000)


def test_a_database_that_another_process_holds_for_a_while_only_delays_the_run(tmp_path: Path) -> None:
    file = write(tmp_path, BIG)
    really(tmp_path, _nothing)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        connection = sqlite3.connect(tmp_path / ".penstock" / "penstock.db", isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        held.set()
        release.wait(30)
        connection.execute("ROLLBACK")
        connection.close()

    other = threading.Thread(target=hold)
    other.start()
    held.wait(30)
    threading.Timer(0.4, release.set).start()
    told: Told = really(tmp_path, lambda engine: started(engine, file))
    other.join()
    assert told.status == "completed"


def test_a_database_that_is_held_for_good_is_told_of_and_a_resume_completes(tmp_path: Path) -> None:
    text = "- {step: start, tool: [{name: a, kind: mark, file: marks}, {kind: sleep, seconds: 0.2}, {name: b, kind: mark, file: marks}]}"
    file = write(tmp_path, text.replace("file: marks", f"file: {tmp_path / 'marks'}"))
    other = None

    async def body(engine: Embedded) -> Told:
        async def hold(run: Any) -> None:
            nonlocal other
            deadline = time.monotonic() + HANGS_AFTER_S
            while not marks(tmp_path / "marks") and time.monotonic() < deadline:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            other = sqlite3.connect(tmp_path / ".penstock" / "penstock.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")

        async with asyncio.timeout(HANGS_AFTER_S):
            return await started(engine, file, None, hold)

    async def impatient() -> Told:
        engine = on_disk(tmp_path, Workshop())
        await engine.log.close()
        engine.log = SqliteLog(tmp_path / ".penstock", busy_seconds=0.1)
        try:
            return await body(engine)
        finally:
            await engine.log.close()

    with pytest.raises(Unavailable) as caught:
        asyncio.run(impatient())
    assert "penstock.db" in caught.value.message
    assert other is not None
    other.execute("ROLLBACK")
    other.close()
    told: Told = really(tmp_path, resumed)
    assert told.status == "completed"
    assert marks(tmp_path / "marks")["start@0/a#1"] == 1


async def _nothing(engine: Embedded) -> None:
    return None
