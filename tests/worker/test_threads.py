"""The pool that runs blocking code: nothing that hangs, exits or raises in it reaches further than its caller."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from penstock.kernel.errors import Bug
from penstock.worker.threads import DaemonThreads, Escaped

colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


def done_within(main: Coroutine[Any, Any, Any], seconds: float = 20) -> Any:
    """The test fails, and does not hang, when something never comes."""

    async def whole() -> Any:
        async with asyncio.timeout(seconds):
            return await main

    return asyncio.run(whole())


async def eventually(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def test_a_function_runs_in_a_daemon_thread_with_its_arguments():
    def where(left: int, right: int) -> tuple[int, bool, bool]:
        return left + right, threading.current_thread().daemon, threading.current_thread() is threading.main_thread()

    assert done_within(DaemonThreads().run(where, 2, 3)) == (5, True, False)


def test_an_exception_comes_back_with_the_frames_of_the_function():
    def breaks() -> None:
        raise ValueError("no")

    async def main() -> str:
        try:
            await DaemonThreads().run(breaks)
        except ValueError as error:
            return "".join(traceback.format_exception(error))
        return ""

    assert "in breaks" in done_within(main())


def test_the_callers_context_is_copied_and_never_written_back():
    def paint() -> str:
        before = colour.get()
        colour.set("red")
        return before

    async def main() -> tuple[str, str]:
        colour.set("green")
        return await DaemonThreads().run(paint), colour.get()

    assert done_within(main()) == ("green", "green")


def test_idle_threads_are_used_again():
    pool = DaemonThreads()

    async def main() -> set[int]:
        return {await pool.run(threading.get_ident) for _ in range(20)}

    assert len(done_within(main())) == 1
    assert pool.alive == 1


def test_no_more_than_the_limit_run_at_once_and_the_rest_wait_their_turn():
    pool, lock, gate = DaemonThreads(limit=3), threading.Lock(), threading.Event()
    running: list[int] = []
    most: list[int] = []

    def work(number: int) -> int:
        with lock:
            running.append(number)
            most.append(len(running))
        gate.wait()
        with lock:
            running.remove(number)
        return number

    async def main() -> list[int]:
        tasks = [asyncio.ensure_future(pool.run(work, number)) for number in range(8)]
        await eventually(lambda: len(running) == 3)
        assert pool.busy == 8
        gate.set()
        return await asyncio.gather(*tasks)

    assert done_within(main()) == list(range(8))
    assert max(most) == 3
    assert pool.busy == 0
    assert pool.alive == 3


def test_a_hung_call_that_timed_out_gives_its_place_to_the_next_one():
    pool, hang = DaemonThreads(limit=1), threading.Event()

    async def main() -> str:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.run(hang.wait), 0.02)
        assert pool.busy == 0
        return await pool.run(lambda: "next")

    assert done_within(main()) == "next"
    assert pool.alive == 1
    hang.set()


def test_a_call_that_waits_takes_over_from_a_hung_one_that_is_cancelled():
    pool, hang = DaemonThreads(limit=1), threading.Event()

    async def main() -> str:
        first = asyncio.ensure_future(pool.run(hang.wait))
        second = asyncio.ensure_future(pool.run(lambda: "second"))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert done_within(main()) == "second"
    hang.set()


def test_a_call_cancelled_while_it_waits_is_never_run():
    pool, gate = DaemonThreads(limit=1), threading.Event()
    ran: list[str] = []

    async def main() -> None:
        first = asyncio.ensure_future(pool.run(gate.wait))
        second = asyncio.ensure_future(pool.run(ran.append, "second"))
        third = asyncio.ensure_future(pool.run(ran.append, "third"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, third)

    done_within(main())
    assert ran == ["third"]


def test_a_late_result_is_dropped_and_its_thread_ends():
    pool, gate = DaemonThreads(), threading.Event()
    threads: list[threading.Thread] = []

    def late() -> str:
        threads.append(threading.current_thread())
        gate.wait()
        return "too late"

    async def main() -> None:
        call = asyncio.ensure_future(pool.run(late))
        await eventually(lambda: bool(threads))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.set()
        await eventually(lambda: not threads[0].is_alive())

    done_within(main())
    assert (pool.alive, pool.busy) == (0, 0)


def test_a_result_that_comes_after_its_event_loop_was_closed_is_no_error():
    pool, gate, ended = DaemonThreads(), threading.Event(), threading.Event()

    def late() -> None:
        gate.wait()
        ended.set()

    loop = asyncio.new_event_loop()
    call = loop.create_task(pool.run(late))
    loop.run_until_complete(asyncio.sleep(0))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(call)
    loop.close()
    gate.set()
    assert ended.wait(20)
    assert done_within(pool.run(lambda: 1)) == 1


@pytest.mark.parametrize(
    "raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError("theirs"), StopIteration(1)]
)
def test_what_is_no_plain_exception_reaches_the_caller_as_one(raised: BaseException):
    def escapes() -> None:
        raise raised

    with pytest.raises(Escaped, match=type(raised).__name__) as caught:
        done_within(DaemonThreads().run(escapes))
    assert caught.value.__cause__ is raised


def test_one_pool_serves_several_event_loops_one_after_another():
    pool = DaemonThreads()
    assert [done_within(pool.run(lambda: 1)) for _ in range(3)] == [1, 1, 1]
    assert pool.alive == 1


def test_an_idle_thread_keeps_no_result_alive():
    class Big:
        pass

    async def main() -> None:
        pool = DaemonThreads()
        big = await pool.run(Big)
        alive = weakref.ref(big)
        del big
        await eventually(lambda: gc.collect() >= 0 and alive() is None)

    done_within(main())


def test_threads_retire_when_nothing_is_to_be_done():
    pool = DaemonThreads(idle_seconds=0.01)

    async def main() -> None:
        await asyncio.gather(*(pool.run(time.sleep, 0.005) for _ in range(4)))
        await eventually(lambda: pool.alive == 0)
        assert await pool.run(lambda: "again") == "again"

    done_within(main())


def test_a_closed_pool_ends_its_threads_and_takes_no_more_calls():
    pool, gate = DaemonThreads(), threading.Event()

    async def main() -> None:
        await pool.run(lambda: None)
        under_way = asyncio.ensure_future(pool.run(gate.wait))
        await asyncio.sleep(0)
        pool.close()
        gate.set()
        assert await under_way
        with pytest.raises(Bug, match="closed"):
            await pool.run(lambda: None)

    done_within(main())
    assert pool.alive == 0


def test_a_hung_thread_does_not_keep_the_process_alive():
    program = """
import asyncio, threading
from penstock.worker.threads import DaemonThreads

async def main():
    pool = DaemonThreads()
    for _ in range(3):
        try:
            await asyncio.wait_for(pool.run(threading.Event().wait), 0.01)
        except TimeoutError:
            print("left behind")

asyncio.run(main())
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=env)
    assert ended.stdout == "left behind\n" * 3
    assert ended.stderr == ""


def test_thousands_of_calls_with_random_cancellations_lose_no_place():
    pool = DaemonThreads(limit=4)

    async def one(number: int) -> int | None:
        call = asyncio.ensure_future(pool.run(time.sleep, 0.0001 * (number % 5)))
        if number % 3 == 0:
            await asyncio.sleep(0.0001 * (number % 7))
            call.cancel()
        await asyncio.wait([call])
        return None if call.cancelled() else number

    async def main() -> None:
        await asyncio.gather(*(one(number) for number in range(1500)))
        assert pool.busy == 0
        assert pool.alive <= 4
        assert await asyncio.gather(*(pool.run(abs, -number) for number in range(20))) == list(range(20))

    done_within(main(), 60)
