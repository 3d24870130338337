"""`isolation: process`: what the code breaks is its own, and it ends, with all it started, when it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.base import ToolFailure
from penstock.tools.python.code import Code
from penstock.tools.python.isolation import Bounds, run_isolated
from tests.tools.running import Runner, is_gone, is_reaped, open_descriptors, python_process, waits_for

GRANDCHILD = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "1000"])
print(os.getpid(), child.pid)
"""


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner("python", tmp_path, isolation="process")


def test_code_over_its_memory_limit_is_told_so(run: Runner):
    ended = run({"code": "x = 1\ny = bytearray(400 * 1024 * 1024)", "limits": {"memory_mb": 100}})
    assert (ended.kind, ended.py["exception_type"]) == ("memory", "MemoryError")
    assert ended.detail["line"] == 2


def test_code_that_eats_memory_little_by_little_is_told_so_too(run: Runner):
    ended = run({"code": "x = []\nwhile True:\n    x.append('x' * 1000)", "limits": {"memory_mb": 20}})
    assert ended.kind == "memory"


def test_code_within_its_memory_limit_runs(run: Runner):
    assert (
        run({"code": "result = len(bytearray(40 * 1024 * 1024))", "limits": {"memory_mb": 60}}).result
        == 40 * 1024 * 1024
    )


def test_code_over_its_cpu_limit_is_ended(run: Runner):
    ended = run({"code": "while True:\n    pass", "limits": {"cpu_s": 0.2}})
    assert (ended.kind, ended.message) == ("cpu_limit", "the code used more than its 0.2 s of CPU time")


def test_a_crash_names_its_signal(run: Runner):
    ended = run({"code": "import os, signal\nprint('before')\nos.kill(os.getpid(), signal.SIGKILL)"})
    assert (ended.kind, ended.detail) == ("crashed", {"signal": "SIGKILL"})
    assert ended.said == ["before"]


def test_a_segmentation_fault_shows_the_line_in_the_log(run: Runner):
    ended = run({"code": "import ctypes\nctypes.string_at(0)"})
    assert (ended.kind, ended.detail) == ("crashed", {"signal": "SIGSEGV"})
    assert any('"flow.yaml", line 26' in line for line in ended.said)


def test_an_interpreter_that_ends_itself_gives_no_result(run: Runner):
    ended = run({"code": "import os; os._exit(7)"})
    assert (ended.kind, ended.detail) == ("crashed", {"exit_code": 7})


def test_all_that_the_code_started_ends_with_its_time(run: Runner):
    ended = run({"code": GRANDCHILD + "time.sleep(1000)", "limits": {"time_s": 2}})
    own, grandchild = map(int, ended.said[0].split())
    assert ended.kind == "timeout"
    assert is_reaped(own)
    waits_for(lambda: is_gone(grandchild))


def test_all_that_the_code_started_ends_with_the_code(run: Runner):
    ended = run({"code": GRANDCHILD})
    own, grandchild = map(int, ended.said[0].split())
    assert ended.failure is None
    assert is_reaped(own)
    waits_for(lambda: is_gone(grandchild))


def test_all_that_the_code_started_ends_when_the_task_is_cancelled(run: Runner):
    said = run.cancelled({"code": GRANDCHILD + "time.sleep(1000)"})
    own, grandchild = map(int, said[0].split())
    assert is_reaped(own)
    waits_for(lambda: is_gone(grandchild))


def test_the_code_does_not_outlive_an_engine_that_was_killed(tmp_path: Path):
    program = """
import sys
from pathlib import Path
from tests.tools.running import Runner
run = Runner("python", Path(sys.argv[1]), isolation="process")
run({"code": sys.argv[2]}, say=lambda line: print(line, flush=True))
"""
    engine = python_process(program, str(tmp_path), GRANDCHILD + "time.sleep(1000)")
    assert engine.stdout is not None
    own, grandchild = map(int, engine.stdout.readline().split())
    engine.send_signal(signal.SIGKILL)
    engine.communicate(timeout=60)
    waits_for(lambda: is_gone(own) and is_gone(grandchild))


def test_the_engines_environment_is_not_handed_on(run: Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    ended = run({"code": "import os; result = dict(os.environ)", "env": {"MODE": "test", "SIZE": 5}})
    assert "DATABASE_PASSWORD" not in ended.result
    assert (ended.result["MODE"], ended.result["SIZE"], ended.result["PATH"]) == ("test", "5", os.environ["PATH"])
    assert not [name for name in ended.result if name.startswith("PENSTOCK")]


def test_arguments_do_not_show_in_the_list_of_processes(run: Runner):
    code = (
        "import os; result = open(f'/proc/{os.getpid()}/cmdline').read() + open(f'/proc/{os.getpid()}/environ').read()"
    )
    assert "hunter2" not in run({"code": code, "args": {"password": "hunter2"}}).result


def test_large_arguments_and_results_go_through(run: Runner):
    text = "ä" * 1_000_000
    assert run({"code": "result = text", "args": {"text": text}}).result == text


def test_input_is_empty(run: Runner):
    assert run({"code": "import sys; result = sys.stdin.read()"}).result == ""


def test_files_left_open_are_written_out_at_the_end(run: Runner, tmp_path: Path):
    ended = run({"code": "f = open(path, 'w')\nf.write('kept')", "args": {"path": str(tmp_path / "out")}})
    assert ended.failure is None
    assert (tmp_path / "out").read_text() == "kept"


def test_a_result_over_the_bound_is_refused(run: Runner):
    async def main(limit: int) -> Any:
        code = Code("result = 'x' * 5000", "flow.yaml", 1)
        return await run_isolated(code, {}, run.call([]), Bounds(result_bytes=limit), {})

    failure = asyncio.run(main(1000)).failure
    assert failure["kind"] == "too_large"
    assert asyncio.run(main(6000)).result == "x" * 5000


def test_a_pipe_that_the_code_scribbles_into_is_a_crash_and_not_ours(run: Runner):
    code = r"""
import os
for fd in range(3, 20):
    try: os.write(fd, b'\0' * 7 + b'\1{')
    except OSError: pass
os._exit(0)
"""
    assert run({"code": code}).kind == "crashed"


def test_no_descriptor_is_left_open(run: Runner):
    run({"code": "result = 1"})
    before = open_descriptors()
    for params in (
        {"code": "result = 1"},
        {"code": "1/0"},
        {"code": "import time; time.sleep(9)", "limits": {"time_s": 0.05}},
    ):
        run(params)
    waits_for(lambda: open_descriptors() <= before)


def test_many_run_at_once(run: Runner):
    async def main() -> list[Any]:
        return await asyncio.gather(*(run.start([], {"code": f"result = {number}"}) for number in range(6)))

    assert asyncio.run(main()) == list(range(6))


def test_an_interpreter_that_is_missing_is_named(run: Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(ToolFailure, match="there is no program `/nowhere/python`"):
        asyncio.run(run.start([], {"code": ""}))
