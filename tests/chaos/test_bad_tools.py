"""A tool may do what it likes: its task fails with a kind that says how, and the run goes on."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.app.embedded import Embedded
from penstock.ports.results import decode
from penstock.tools.base import Call, Settings
from tests.chaos.engines import Told, really, started, write
from tests.chaos.workshop import Workshop, behaving

HANGS_AFTER_S = 60.0
CATCH = """
- step: start
  tool: {name: bad, kind: bad}
  next: {arcs: [{step: mend, when: "{{ event.name == 'step.failed' }}", args: {kind: "{{ event.error.kind }}"}}, {step: fine}]}
- step: mend
  tool: {kind: noop, value: "{{ args.kind }}"}
- step: fine
  tool: {kind: noop, value: fine}
"""


def run(folder: Path, text: str, tools: Workshop | None = None, **more: Any) -> Told:
    file = write(folder, text)

    async def body(engine: Embedded) -> Told:
        async with asyncio.timeout(HANGS_AFTER_S):
            return await started(engine, file)

    told: Told = really(folder, body, tools, **more)
    return told


def outcome(told: Told) -> Any:
    done = next(entry for entry in told.entries if entry.type == "task.done")
    return decode(done.payload)["outcome"]  # type: ignore[index,call-overload]


class Rude(BaseException):
    pass


def raising(error: BaseException) -> Callable[[Call], Awaitable[Any]]:
    async def behave(call: Call) -> Any:
        await asyncio.sleep(0)
        raise error

    return behave


def returning(value: Any) -> Callable[[Call], Awaitable[Any]]:
    async def behave(call: Call) -> Any:
        return value

    return behave


def circle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def well(depth: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(depth):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("no"), "exception"),
        (SystemExit(3), "exception"),
        (Rude("no"), "exception"),
        (StopAsyncIteration(), "exception"),
        (MemoryError(), "exception"),
        (RecursionError("too deep"), "exception"),
        (TimeoutError("the far side was slow"), "timeout"),
        (asyncio.CancelledError(), "cancelled"),
        (OSError(28, "No space left on device"), "exception"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "exception"),
    ],
)
def test_whatever_a_tool_raises_is_an_error_outcome(tmp_path: Path, error: BaseException, kind: str) -> None:
    told = run(tmp_path, CATCH, Workshop(behaving("bad", raising(error))))
    assert (told.status, told.summary.result) == ("completed", kind)
    failure = outcome(told)["error"]
    assert failure["kind"] == kind
    assert failure["message"]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="object"),
        pytest.param({"inner": [threading.Lock()]}, id="a lock deep inside"),
        pytest.param(lambda: None, id="function"),
        pytest.param("\ud800", id="half a character"),
        pytest.param(circle(), id="circle"),
        pytest.param(well(100_000), id="well"),
        pytest.param({1j: 1}, id="a complex key"),
    ],
)
def test_a_result_that_cannot_be_written_is_an_error_outcome(tmp_path: Path, value: Any) -> None:
    told = run(tmp_path, CATCH, Workshop(behaving("bad", returning(value))))
    assert (told.status, told.summary.result) == ("completed", "not_serialisable")
    assert "cannot be written as JSON" in outcome(told)["error"]["message"]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ((1, 2), [1, 2]),
        ({"a": {3}}, {"a": [3]}),
        (float("nan"), None),
        (b"\x00\xff", "AP8="),
        ({1: "one"}, {"1": "one"}),
        ({"large": 2**100}, {"large": 2**100}),
    ],
)
def test_a_result_that_json_can_say_in_another_way_is_said_so(tmp_path: Path, value: Any, wanted: Any) -> None:
    told = run(tmp_path, "- {step: start, tool: {kind: bad}}", Workshop(behaving("bad", returning(value))))
    assert (told.status, told.summary.result) == ("completed", wanted)


def test_a_tool_that_tries_to_close_the_event_loop_fails_alone(tmp_path: Path) -> None:
    async def behave(call: Call) -> Any:
        asyncio.get_running_loop().close()

    told = run(tmp_path, CATCH, Workshop(behaving("bad", behave)))
    assert told.summary.result == "exception"


def test_a_tool_that_cancels_its_own_task_fails_or_is_stopped_but_never_hangs_the_run(tmp_path: Path) -> None:
    async def behave(call: Call) -> Any:
        inner = asyncio.get_running_loop().create_future()
        inner.cancel()
        await inner

    told = run(tmp_path, CATCH, Workshop(behaving("bad", behave)))
    assert told.summary.result == "cancelled"


HANG = """
- step: start
  spec: {policy: {lifecycle: {timeout_s: 0.2}}}
  tool: {name: bad, KIND}
  next: {arcs: [{step: mend, when: "{{ event.error.kind == 'timeout' }}"}]}
- step: mend
  tool: {kind: noop, value: mended}
"""


@pytest.mark.parametrize(
    "kind",
    [
        "kind: bad",
        'kind: python, code: "import time\\nwhile True: time.sleep(0.01)"',
        'kind: python, code: "import time\\nwhile True:\\n  try:\\n    time.sleep(0.01)\\n  except Exception: pass"',
        'kind: python, code: "async def main():\\n  import asyncio\\n  await asyncio.Event().wait()"',
        'kind: python, isolation: process, code: "while True: pass"',
        'kind: shell, command: [sleep, "600"]',
    ],
)
def test_a_tool_that_hangs_is_left_behind_when_the_steps_time_is_over(tmp_path: Path, kind: str) -> None:
    async def behave(call: Call) -> Any:
        await asyncio.Event().wait()

    told = run(tmp_path, HANG.replace("KIND", kind), Workshop(behaving("bad", behave)))
    assert (told.status, told.summary.result) == ("completed", "mended")


@pytest.mark.parametrize(
    "kind",
    [
        "kind: python, code: \"for n in range(200_000): print('line', n, 'x' * 50)\"",
        "kind: python, isolation: process, code: \"for n in range(200_000): print('line', n, 'x' * 50)\"",
        'kind: shell, command: "i=0; while [ $i -lt 20000 ]; do echo line $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done"',
        "kind: python, code: \"print('y' * 20_000_000)\"",
    ],
)
def test_a_tool_that_floods_its_output_is_cut_short_and_neither_the_log_nor_the_result_grows(
    tmp_path: Path, kind: str
) -> None:
    told = run(
        tmp_path, f"- {{step: start, tool: {{name: flood, {kind}}}}}", settings=Settings(max_output_bytes=20_000)
    )
    assert told.status in ("completed", "failed")
    lines = tmp_path / ".penstock" / "logs" / "run-1.ndjson"
    assert not lines.exists() or lines.stat().st_size < 200_000
    assert sum(len(entry.payload) for entry in told.entries) < 200_000


def test_a_very_large_result_does_not_go_through_the_log(tmp_path: Path) -> None:
    text = "- {step: start, tool: [{kind: python, code: \"result = {'rows': ['r' * 100] * 50_000}\"}, {name: n, kind: noop, value: '{{ _prev.rows | length }}'}]}"
    told = run(tmp_path, text)
    assert (told.status, told.summary.result) == ("completed", 50_000)
    assert max(len(entry.payload) for entry in told.entries) < 5_000


def test_code_that_ends_the_interpreter_or_the_thread_ends_its_task_only(tmp_path: Path) -> None:
    for number, code in enumerate(
        ("import sys; sys.exit(3)", "raise KeyboardInterrupt", "raise GeneratorExit", "exit()")
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = run(folder, CATCH.replace("kind: bad", f'kind: python, code: "{code}"'))
        assert told.status == "completed"
        assert outcome(told)["status"] == "error"
    assert sys.exc_info() == (None, None, None)


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ("in: '{{ workload.nothing }}'", "`workload.nothing` is undefined"),
        ("in: '{{ workload.none }}'", "undefined or null, not a list"),
        ("in: '{{ workload.text }}'", "not a list"),
        ("in: {range: '{{ workload.text }}'}", "`range` takes whole numbers"),
        ("in: {range: {start: 1, stop: '{{ workload.none }}'}}", "`range` takes whole numbers"),
        ("in: {range: {start: 1, stop: 5, step: '{{ workload.zero }}'}}", "`range` takes whole numbers"),
        ("in: {range: '{{ 10 ** 30 }}'}", "`range` takes whole numbers"),
    ],
)
def test_a_collection_that_is_none_fails_the_step_with_a_reason(tmp_path: Path, loop: str, message: str) -> None:
    text = f"workload: {{none: ~, text: abc, zero: 0}}\nworkflow:\n  - {{step: start, loop: {{{loop}, iterator: n}}, tool: {{kind: noop}}}}"
    told = run(tmp_path, text)
    assert told.status == "failed"
    assert message in told.summary.error["message"]  # type: ignore[index,call-overload,operator]
