"""The `python` tool, in a thread and in a process: both must say the same things about the same code."""

from __future__ import annotations

import asyncio
import io
import sys
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from penstock.ports.blobs import ResultRef
from penstock.tools.base import Settings, Source
from penstock.tools.output import Lines, captured
from tests.cases import cases
from tests.tools.running import Ended, Runner, python_process, threads, waits_for


@pytest.fixture(params=["thread", "process"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    return Runner("python", tmp_path, isolation=request.param)


@pytest.fixture
def in_thread(tmp_path: Path) -> Runner:
    return Runner("python", tmp_path, isolation="thread")


# ---- what the code gets and gives


def test_args_are_variables_and_result_is_the_result(run: Runner):
    assert run({"code": "result = a + b['c']", "args": {"a": 1, "b": {"c": 2}}}).result == 3


def test_code_that_sets_no_result_gives_none(run: Runner):
    ended = run({"code": "x = 1"})
    assert (ended.result, ended.failure) == (None, None)


def test_main_is_called_with_the_args_it_accepts(run: Runner):
    code = "def main(a, /, b, *, c=3):\n    return [a, b, c, unused]"
    assert run({"code": code, "args": {"a": 1, "b": 2, "unused": 4}}).result == [1, 2, 3, 4]


def test_keyword_arguments_of_main_take_all_other_args(in_thread: Runner):
    code = "def main(a, *args, **rest):\n    return [a, args, rest]"
    assert in_thread({"code": code, "args": {"a": 1, "b": 2, "args": 3, "rest": 4}}).result == [
        1,
        [],
        {"b": 2, "rest": 4},
    ]


def test_main_wins_over_result(in_thread: Runner):
    assert in_thread({"code": "result = 1\ndef main():\n    return 2"}).result == 2


def test_a_missing_argument_of_main_is_named(in_thread: Runner):
    ended = in_thread({"code": "def main(a, b, c=1):\n    return a", "args": {"a": 1}})
    assert ended.kind == "parameters"
    assert ended.message == "`main` needs `b`, and `args` gives only `a`"


def test_an_async_main_is_awaited(run: Runner):
    code = "import asyncio\nasync def main(a):\n    await asyncio.sleep(0)\n    return a"
    assert run({"code": code, "args": {"a": 5}}).result == 5


def test_another_function_can_be_named(in_thread: Runner):
    code = "def main():\n    return 1\ndef other():\n    return 2"
    assert in_thread({"code": code, "function": "other"}).result == 2
    ended = in_thread({"code": code, "function": "third"})
    assert (ended.kind, ended.message) == ("parameters", "the code defines no function `third`")


def test_data_classes_with_postponed_annotations_work(in_thread: Runner):
    code = """
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Row:
    a: int
result = [Row(1)]
"""
    assert in_thread({"code": code}).result == [{"a": 1}]


def test_the_code_may_change_its_args_without_changing_anybody_elses(in_thread: Runner):
    shared: dict[str, Any] = {"rows": [{"n": 1}], "deep": {"list": [1, 2]}}
    code = "rows[0]['n'] = 9\ndeep['list'].clear()\nrows.append(1)"
    assert in_thread({"code": code, "args": shared}).failure is None
    assert shared == {"rows": [{"n": 1}], "deep": {"list": [1, 2]}}


def test_runs_share_no_variables(run: Runner):
    assert run({"code": "leftover = 1"}).failure is None
    assert run({"code": "result = 'leftover' in globals()"}).result is False


def test_a_reference_among_the_args_is_read(run: Runner):
    ref = ResultRef("file", "key", 3, "sha256:0")
    ended = run(
        {"code": "result = big['rows'][1]", "args": {"big": ref.as_json()}}, load=lambda given: {"rows": [1, given.key]}
    )
    assert ended.result == "key"


def test_files_that_the_code_opens_are_relative_to_the_process(
    run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "here.txt").write_text("yes")
    monkeypatch.chdir(elsewhere)
    assert run({"code": "from pathlib import Path; result = Path('here.txt').read_text()"}).result == "yes"


# ---- scripts


def test_a_script_is_found_beside_the_document_and_may_import_its_neighbours(run: Runner, tmp_path: Path):
    neighbour = f"neighbour_{tmp_path.name.replace('-', '_')}"
    (tmp_path / "steps").mkdir()
    (tmp_path / f"{neighbour}.py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "steps" / "load.py").write_text(f"from {neighbour} import double\ndef main(x):\n    return double(x)\n")
    assert run({"script": "steps/load.py", "args": {"x": 4}}).result == 8


def test_an_error_in_a_script_names_the_script_and_its_line(run: Runner, tmp_path: Path):
    (tmp_path / "bad.py").write_text("def main():\n\n    return 1 / 0\n")
    ended = run({"script": "bad.py"})
    assert ended.message == "ZeroDivisionError: division by zero (line 3 of `bad.py`)"
    assert (ended.detail["line"], "yaml_line" in ended.detail) == (3, False)


def test_a_script_that_is_not_there_is_named(in_thread: Runner, tmp_path: Path):
    ended = in_thread({"script": "nowhere.py"})
    assert (ended.kind, ended.message) == (
        "not_found",
        f"there is no script `nowhere.py` (looked for `{tmp_path}/nowhere.py`)",
    )


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"# coding: no-such\n"])
def test_a_script_that_is_not_text_is_a_syntax_error(run: Runner, tmp_path: Path, content: bytes):
    (tmp_path / "binary.py").write_bytes(content)
    assert run({"script": "binary.py"}).kind == "syntax"


# ---- errors


@pytest.mark.clause("P5.2")
def test_an_exception_names_the_line_of_the_code_and_of_the_playbook(run: Runner):
    ended = run({"code": "x = 1\ny = 2\nraise ValueError('bad value')\n"})
    assert ended.kind == "exception"
    assert ended.message == "ValueError: bad value (line 3 of `code`, flow.yaml:27)"
    assert ended.py == {"exception_type": "ValueError", "exception_module": "builtins"}
    assert (ended.detail["line"], ended.detail["yaml_line"]) == (3, 27)
    assert ended.detail["traceback"] == (
        "  File \"flow.yaml\", line 27, in <module>\n    raise ValueError('bad value')\nValueError: bad value"
    )


def test_the_line_is_the_innermost_one_of_the_authors_own(in_thread: Runner):
    code = "import json\ndef read(text):\n    return json.loads(text)\n\ndef main():\n    return read('{')"
    ended = in_thread({"code": code})
    assert ended.py == {"exception_type": "JSONDecodeError", "exception_module": "json.decoder"}
    assert (ended.detail["line"], ended.detail["yaml_line"]) == (3, 27)
    frames = [line for line in ended.detail["traceback"].splitlines() if line.startswith("  File")]
    assert frames == ['  File "flow.yaml", line 30, in main', '  File "flow.yaml", line 27, in read']


def test_an_error_in_an_async_main_has_the_authors_frames_alone(run: Runner):
    ended = run({"code": "async def main():\n    raise KeyError('k')"})
    assert ended.message == "KeyError: 'k' (line 2 of `code`, flow.yaml:26)"
    assert ended.detail["traceback"].count("File") == 1


def test_a_cause_is_told_before_its_effect(in_thread: Runner):
    code = "def main():\n    try:\n        {}['k']\n    except KeyError as error:\n        raise RuntimeError('no k') from error"
    lines = in_thread({"code": code}).detail["traceback"].splitlines()
    assert (
        lines.index("KeyError: 'k'")
        < lines.index("The above was the direct cause of:")
        < lines.index("RuntimeError: no k")
    )


def test_without_a_known_place_only_the_line_of_the_code_is_named(in_thread: Runner):
    ended = in_thread({"code": "\n1/0"}, source=Source("flow.yaml", {}))
    assert ended.message == "ZeroDivisionError: division by zero (line 2 of `code`)"
    assert "yaml_line" not in ended.detail


def test_an_exception_of_the_authors_own_class_can_say_that_it_is_worth_retrying(run: Runner):
    ended = run({"code": "class Busy(Exception):\n    retryable = True\nraise Busy('later')"})
    assert ended.failure is not None
    assert ended.failure.retryable
    assert ended.py == {"exception_type": "Busy", "exception_module": "__main__"}
    assert ended.message.startswith("Busy: later (line 3")


def test_code_may_raise_a_failure_with_a_kind_of_its_own(run: Runner):
    code = "from penstock.tools.base import ToolFailure\nraise ToolFailure('quota', 'used up', retryable=True, left=0)"
    ended = run({"code": code})
    assert (ended.kind, ended.message) == ("quota", "used up (line 2 of `code`, flow.yaml:26)")
    assert ended.detail["left"] == 0


@cases(
    "code, line, says",
    [
        ("x = 1\ny = (", 2, "'(' was never closed"),
        ("if True:\nx = 1", 2, "IndentationError: expected an indented block"),
        ("x = 1\n\nawait x", 3, "top-level `await` is not supported: put it into `async def main(): …`"),
        ("return await x", 1, "top-level `await` is not supported: put it into `async def main(): …`"),
        ("x = 1\nclass A:\n    return 3", 3, "'return' outside function"),
        ("x = 1\nreturn (", 2, "'(' was never closed"),
    ],
)
def test_a_syntax_error_names_its_line_and_what_would_be_right(in_thread: Runner, code: str, line: int, says: str):
    ended = in_thread({"code": code})
    assert ended.kind == "syntax"
    assert says in ended.message
    assert f"(line {line} of `code`, flow.yaml:{24 + line})" in ended.message
    assert (ended.detail["line"], ended.detail["yaml_line"]) == (line, 24 + line)
    assert ended.py["exception_type"] in ("SyntaxError", "IndentationError")


def test_code_that_cannot_even_be_parsed_is_a_syntax_error(in_thread: Runner):
    assert in_thread({"code": "a\0b"}).kind == "syntax"
    assert in_thread({"code": "(" * 500 + ")" * 500}).kind == "syntax"


@cases(
    "code, name",
    [
        ("import sys; sys.exit(3)", "SystemExit"),
        ("raise SystemExit", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import asyncio\nasync def main():\n    raise asyncio.CancelledError", "CancelledError"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("def main():\n    main()", "RecursionError"),
        ("raise StopIteration", "StopIteration"),
    ],
)
def test_nothing_the_code_raises_ends_the_engine(run: Runner, code: str, name: str):
    ended = run({"code": code})
    assert (ended.kind, ended.py["exception_type"]) == ("exception", name)


def test_hostile_exceptions_are_still_told(run: Runner):
    code = """
class Hostile(Exception):
    def __str__(self): raise ValueError
    @property
    def retryable(self): raise ValueError
raise Hostile
"""
    assert run({"code": code}).message.startswith("Hostile: (its text cannot be shown)")
    assert run({"code": "raise ValueError('\\ud800')"}).message.startswith("ValueError: ?")


def test_long_errors_are_cut(run: Runner):
    ended = run({"code": "def f(n):\n    if n: f(n - 1)\n    raise ValueError('x' * 100000)\nf(200)"})
    assert len(ended.message) < 2_200
    assert len(ended.detail["traceback"]) < 8_200
    assert "more frames" in ended.detail["traceback"]


def test_one_of_code_and_script_is_needed(in_thread: Runner):
    for params in ({}, {"code": "", "script": "x.py"}):
        ended = in_thread(params)
        assert ended.kind == "parameters"
        assert "one of `code` and `script` is needed, and not both" in ended.message


# ---- results that JSON cannot say


def test_a_result_that_json_cannot_say_names_type_and_place(run: Runner):
    ended = run({"code": "result = {'rows': [1, 2, 3, {'when': object()}]}"})
    assert (ended.kind, ended.detail) == ("not_serialisable", {"path": "result.rows[3].when", "type": "object"})
    assert ended.message == "`result.rows[3].when` is of type `object`, which JSON cannot say"


def test_a_result_that_contains_itself_is_refused(in_thread: Runner):
    ended = in_thread({"code": "result = {}\nresult['self'] = [result]"})
    assert (ended.kind, ended.detail["path"]) == ("not_serialisable", "result.self[0]")


def test_a_result_that_is_too_deep_is_refused(run: Runner):
    ended = run({"code": "result = []\nfor _ in range(100000):\n    result = [result]"})
    assert ended.kind == "not_serialisable"
    assert "nested more than 200 levels deep" in ended.message


def test_a_generator_that_fails_half_way_is_an_exception(in_thread: Runner):
    ended = in_thread({"code": "def main():\n    yield 1\n    raise ValueError('half way')"})
    assert (ended.kind, ended.detail["line"]) == ("exception", 3)
    assert in_thread({"code": "def main():\n    yield 1\n    yield 2"}).result == [1, 2]


# ---- output


def test_what_is_printed_is_said_line_by_line(run: Runner):
    code = r"""
import sys
print('one\ntwo')
print('err', file=sys.stderr)
sys.stdout.buffer.write(b'raw\n')
print('end', end='')
"""
    said = run({"code": code}).said
    assert sorted(said) == ["end", "err", "one", "raw", "two"]
    assert [line for line in said if line in ("one", "two", "end")] == ["one", "two", "end"]


def test_code_that_closes_its_output_closes_nobody_elses(in_thread: Runner, capsys: pytest.CaptureFixture[str]):
    in_thread({"code": "import sys\nsys.stdout.close()\nsys.stdout.buffer.close()\nsys.stderr.close()"})
    print("still open")
    assert capsys.readouterr().out == "still open\n"


def test_output_before_an_error_is_said(run: Runner):
    ended = run({"code": "print('before')\n1/0"})
    assert (ended.said, ended.kind) == (["before"], "exception")


def test_a_flood_of_output_is_cut(run: Runner):
    code = "for i in range(2000):\n    print('x' * 99)\nresult = 'done'"
    ended = run({"code": code}, settings=Settings(max_output_bytes=1000))
    assert ended.result == "done"
    assert ended.said == ["x" * 99] * 10 + ["… output truncated"]


def test_a_print_that_is_under_way_when_the_last_capture_ends_reaches_the_real_stream(monkeypatch: pytest.MonkeyPatch):
    task = copy_context()
    capture = captured(Lines(lambda _: None, 1_000))

    class Real(io.StringIO):
        def write(self, text: str) -> int:
            if text == "engine":
                task.run(capture.__exit__, None, None, None)
            return super().write(text)

    real = Real()
    monkeypatch.setattr(sys, "stdout", real)
    task.run(capture.__enter__)
    print("engine")
    assert (real.getvalue(), sys.stdout) == ("engine\n", real)


def test_concurrent_tasks_and_the_engine_keep_their_output_apart(in_thread: Runner, capsys: pytest.CaptureFixture[str]):
    code = """
import asyncio
async def main(name):
    for i in range(20):
        print(name, i)
        await asyncio.sleep(0)
"""
    said: dict[str, list[str]] = {name: [] for name in "abc"}

    async def main() -> None:
        runs = [
            asyncio.ensure_future(in_thread.start(said[name], {"code": code, "args": {"name": name}})) for name in "abc"
        ]
        while not all(run.done() for run in runs):
            print("engine")
            await asyncio.sleep(0)

    asyncio.run(main())
    assert said == {name: [f"{name} {i}" for i in range(20)] for name in "abc"}
    assert set(capsys.readouterr().out.split()) == {"engine"}


def test_the_real_streams_are_back_when_all_code_has_ended(in_thread: Runner):
    import sys

    before = sys.stdout, sys.stderr
    in_thread({"code": "print(1)"})
    waits_for(lambda: (sys.stdout, sys.stderr) == before)


# ---- time


def test_code_that_hangs_is_ended_by_its_time_limit(run: Runner):
    ended = run({"code": "import time\ntime.sleep(1000)", "limits": {"time_s": 0.1}})
    assert ended.failure is not None
    assert (ended.kind, ended.message) == ("timeout", "the code was still running after 0.1 s")
    assert ended.failure.retryable


def test_the_time_out_of_the_spec_holds_as_well(run: Runner):
    ended = run({"code": "import time\ntime.sleep(1000)", "limits": {"time_s": 500}}, spec={"timeout": 0.1})
    assert ended.kind == "timeout"


def test_an_endless_loop_in_a_thread_is_stopped_when_nobody_waits_for_it_any_more(in_thread: Runner, tmp_path: Path):
    code = "try:\n    while True:\n        print('x')\nfinally:\n    open(path, 'w').close()"
    in_thread.cancelled({"code": code, "args": {"path": str(tmp_path / "ended")}})
    waits_for((tmp_path / "ended").exists)
    assert threads.busy == 0


def test_an_async_main_is_cancelled_when_nobody_waits_for_it_any_more(in_thread: Runner, tmp_path: Path):
    code = """
import asyncio
async def main(path):
    print("under way")
    try:
        await asyncio.sleep(1000)
    finally:
        open(path, 'w').close()
"""
    in_thread.cancelled({"code": code, "args": {"path": str(tmp_path / "ended")}})
    waits_for((tmp_path / "ended").exists)


def test_what_is_printed_when_nobody_waits_any_more_is_dropped(in_thread: Runner, tmp_path: Path):
    go, gone = tmp_path / "go", tmp_path / "gone"
    code = """
import os, time
print("in time")
try:
    while not os.path.exists(go): time.sleep(0.001)
finally:
    while not os.path.exists(go): pass
    print("late")
    open(gone, "w").close()
"""
    said = in_thread.cancelled({"code": code, "args": {"go": str(go), "gone": str(gone)}})
    go.touch()
    waits_for(gone.exists)
    assert said == ["in time"]


def test_blocking_code_in_an_async_main_does_not_block_the_engine(in_thread: Runner, tmp_path: Path):
    ready, go = tmp_path / "ready", tmp_path / "go"
    code = """
import os, time
async def main(ready, go):
    open(ready, "w").close()
    while not os.path.exists(go): time.sleep(0.001)
    return "went on"
"""

    async def main() -> Any:
        task = asyncio.ensure_future(in_thread.start([], {"code": code, "args": {"ready": str(ready), "go": str(go)}}))
        async with asyncio.timeout(30):
            while not ready.exists():
                await asyncio.sleep(0.001)
            go.touch()
            return await task

    assert asyncio.run(main()) == "went on"


def test_a_process_with_code_that_hangs_in_a_thread_still_exits(tmp_path: Path):
    program = """
import sys
from pathlib import Path
from tests.tools.running import Runner
ended = Runner("python", Path(sys.argv[1]))({"code": "import threading; threading.Event().wait()", "limits": {"time_s": 0.1}})
print(ended.kind)
"""
    process = python_process(program, str(tmp_path))
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (0, "timeout\n", "")


# ---- what needs a process


@pytest.mark.parametrize("params", [{"limits": {"cpu_s": 1}}, {"limits": {"memory_mb": 64}}, {"env": {"A": "b"}}])
def test_limits_that_a_thread_cannot_keep_are_refused(in_thread: Runner, params: dict[str, Any]):
    ended = in_thread({"code": "", **params})
    assert ended.kind == "parameters"
    assert "needs `isolation: process`" in ended.message


def test_isolation_can_come_from_the_spec(tmp_path: Path):
    run = Runner("python", tmp_path)
    code = "import os; result = os.getpid()"
    own: Ended = run({"code": code})
    assert run({"code": code}, spec={"isolation": "process"}).result != own.result
    assert run({"code": code}, spec={"isolation": "process"}).failure is None
    wrong = run({"code": code}, spec={"isolation": "cell"})
    assert (wrong.kind, wrong.message) == ("parameters", "`isolation` is `thread` or `process`, not `cell`")
