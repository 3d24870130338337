"""The SQLite log between processes: one owner, many writers, and kill -9 at any moment."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from penstock.adapters.sqlite.log import SqliteLog
from penstock.kernel.errors import Refused
from tests.adapters import children
from tests.contracts.entries import entries, header


def read_all(home: Path, name: str) -> list[object]:
    async def read() -> list[object]:
        log = SqliteLog(home)
        try:
            return list(log.read(name))
        finally:
            await log.close()

    return asyncio.run(read())


def make_run(home: Path, name: str = "run-1") -> None:
    async def make() -> None:
        log = SqliteLog(home)
        await log.create(header(name), b"")
        await log.close()

    asyncio.run(make())


def test_a_second_process_is_refused_and_told_who_holds_the_run_and_since_when(tmp_path: Path) -> None:
    make_run(tmp_path)
    child = children.start("hold", tmp_path, "run-1")
    _, pid = child.stdout.readline().split()  # type: ignore[union-attr]

    async def claim() -> None:
        log = SqliteLog(tmp_path)
        assert log.has_owner("run-1")
        with pytest.raises(Refused) as refused:
            await log.claim("run-1", "the parent")
        assert f"process {pid} on {os.uname().nodename} (`the child`), since 20" in refused.value.message
        assert refused.value.hint
        children.finish(child)
        assert not log.has_owner("run-1")
        assert await log.claim("run-1", "the parent") == 2
        await log.close()

    asyncio.run(claim())


def test_kill_9_of_the_owner_frees_the_run_at_once(tmp_path: Path) -> None:
    make_run(tmp_path)
    child = children.start("hold", tmp_path, "run-1")
    child.stdout.readline()  # type: ignore[union-attr]
    children.kill(child)

    async def claim() -> None:
        log = SqliteLog(tmp_path)
        assert not log.has_owner("run-1")
        assert await log.claim("run-1", "the parent") == 2
        await log.close()

    asyncio.run(claim())


@pytest.mark.parametrize("size", [1, 40])
def test_kill_9_while_appending_loses_nothing_acknowledged_and_leaves_no_gap(tmp_path: Path, size: int) -> None:
    chance = random.Random(size)
    acknowledged = 0
    for _ in range(4):
        child = children.start("append_for_ever", tmp_path, "run-1", size)
        said = [child.stdout.readline() for _ in range(chance.randint(1, 60))]  # type: ignore[union-attr]
        said += children.kill(child).splitlines(keepends=True)
        # The last line may have been cut off in the middle.
        heard = [int(line) for line in said if line.endswith("\n")]
        assert heard[0] > acknowledged
        acknowledged = heard[-1]
        found = read_all(tmp_path, "run-1")
        assert len(found) >= acknowledged
        assert found == entries(1, len(found))
        acknowledged = len(found)


def test_processes_that_open_a_new_log_at_the_same_moment_all_succeed(tmp_path: Path) -> None:
    home = tmp_path / "not" / "there" / "yet"
    together = [children.start("create_many", home, f"p{number}", 4) for number in range(4)]
    for child in together:
        child.stdout.readline()  # type: ignore[union-attr]
    for child in together:
        child.stdin.write("\n")  # type: ignore[union-attr]
        child.stdin.flush()  # type: ignore[union-attr]
    for child in together:
        children.finish(child)

    async def look() -> None:
        log = SqliteLog(home)
        found = log.headers()
        assert {one.execution_id for one in found} == {f"p{n}-{m}" for n in range(4) for m in range(4)}
        assert {(one.status, one.last_seq) for one in found} == {("completed", 50)}
        for one in found:
            assert list(log.read(one.execution_id)) == entries(1, 50)
        await log.close()

    asyncio.run(look())


def test_a_process_may_leave_a_request_for_a_run_another_process_holds(tmp_path: Path) -> None:
    make_run(tmp_path)
    child = children.start("hold", tmp_path, "run-1")
    child.stdout.readline()  # type: ignore[union-attr]
    log = SqliteLog(tmp_path)
    log.ask("run-1", "cancel")
    assert [request.what for request in log.asked("run-1")] == ["cancel"]
    children.finish(child)
    asyncio.run(log.close())


def test_looking_for_an_owner_never_makes_a_claim_fail(tmp_path: Path) -> None:
    make_run(tmp_path)

    async def claim_and_look() -> None:
        log, looker = SqliteLog(tmp_path), SqliteLog(tmp_path)
        looking = True

        def look() -> None:
            while looking:
                looker.has_owner("run-1")

        thread = asyncio.create_task(asyncio.to_thread(look))
        for epoch in range(1, 61):
            assert await log.claim("run-1", "me") == epoch
            await log.release("run-1")
        looking = False
        await thread
        await log.close()
        await looker.close()

    asyncio.run(claim_and_look())


def test_no_lock_files_are_left_behind(tmp_path: Path) -> None:
    make_run(tmp_path)

    async def claim() -> None:
        log = SqliteLog(tmp_path)
        await log.claim("run-1", "me")
        assert [file.name for file in (tmp_path / "locks").iterdir()] == ["run-1.lock"]
        await log.release("run-1")
        await log.claim("run-1", "me")
        await log.close()
        with pytest.raises(Refused):
            await log.claim("run-1", "me")
        assert list((tmp_path / "locks").iterdir()) == []

    asyncio.run(claim())


def test_a_program_the_owner_starts_does_not_inherit_the_run(tmp_path: Path) -> None:
    make_run(tmp_path)

    async def claim() -> None:
        log = SqliteLog(tmp_path)
        await log.claim("run-1", "me")
        child = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
        await log.close()
        other = SqliteLog(tmp_path)
        assert not other.has_owner("run-1")
        await other.close()
        child.stdin.close()  # type: ignore[union-attr]
        await child.wait()

    asyncio.run(claim())
