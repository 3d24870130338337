"""One component run: what it is given, what becomes of what it raises, and how it is stopped."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.components import runner
from penstock.components.base import Action, Call, ComponentFailure, PlanCall, Port, Relational, Sink
from penstock.components.registry import ComponentRegistry
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.ports.rows import Copy, Relation, Schema
from penstock.tools.base import Source, ToolFailure
from tests.cases import cases
from tests.components.harness import make_call, run, schema

ROWS = [{"n": 1}, {"n": 2}, {"n": 3}]


class Nothing(msgspec.Struct):
    pass


class Acting(Action[Nothing]):
    type = "acting"
    Params = Nothing

    def __init__(self, act: Callable[[Call], Any]) -> None:
        self._act = act

    def run(self, params: Nothing, call: Call) -> Any:
        return self._act(call)


def raises(error: BaseException) -> Acting:
    def act(call: Call) -> None:
        raise error

    return Acting(act)


@cases(
    "error, kind, words",
    [
        (ComponentFailure("mine", "no luck"), "mine", "no luck"),
        (ToolFailure("http", "503", retryable=True), "http", "503"),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "/in/a.csv"),
            "missing_file",
            "`/in/a.csv`: there is no such file",
        ),
        (PermissionError(errno.EACCES, "denied", "/in"), "permission", "`/in`: permission denied"),
        (OSError(errno.ENOSPC, "No space left on device", "/out"), "disk", "`/out`: the disk is full"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "/in"), "file", "`/in`: it is a folder"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), "connection", "Connection reset by peer"),
        (TimeoutError(), "connection", "TimeoutError"),
        (OSError("odd"), "system", "odd"),
        (MemoryError(), "memory", "ran out of memory"),
        (ValueError("bad"), "exception", "ValueError: bad"),
        (SystemExit(3), "exception", "SystemExit: 3"),
        (StopIteration(), "exception", "StopIteration"),
        (RecursionError("too deep"), "exception", "RecursionError: too deep"),
    ],
)
def test_whatever_is_raised_is_a_failure_with_a_kind(error: BaseException, kind: str, words: str) -> None:
    with pytest.raises(ComponentFailure) as failure:
        run(raises(error), {})
    assert failure.value.kind == kind
    assert words in failure.value.message


def test_advice_to_try_again_is_kept() -> None:
    for error in (ToolFailure("http", "503", retryable=True), ConnectionResetError("gone")):
        with pytest.raises(ComponentFailure) as failure:
            run(raises(error), {})
        assert failure.value.retryable


def test_a_failing_query_names_the_line_of_the_only_parameter_with_sql() -> None:
    with pytest.raises(ComponentFailure) as failure:
        run(
            "filter",
            {"where": "CAST(n AS INTEGER) > 1"},
            {"input": [{"n": "one"}]},
            source=Source("jobs/a.yaml", {"where": 7}),
        )
    assert failure.value.kind == "conversion"
    assert failure.value.message.endswith("(jobs/a.yaml:7)")
    assert failure.value.detail == {"file": "jobs/a.yaml", "line": 7}


def test_sql_from_a_template_that_cannot_be_read_is_a_failure_of_kind_sql() -> None:
    with pytest.raises(ComponentFailure, match="`'` is opened here and never closed") as failure:
        run("filter", {"where": "n = 'x"}, {"input": ROWS})
    assert failure.value.kind == "sql"


@pytest.mark.clause("J10.2")
def test_several_relations_on_one_port_are_stacked_by_name() -> None:
    several = [[{"a": 1, "b": "x"}], [{"b": "y"}, {"b": "z", "c": 2.5}]]
    assert run("filter", {"where": "true"}, {"input": several}, connected=["main"]).main == [
        {"a": 1, "b": "x", "c": None},
        {"a": None, "b": "y", "c": None},
        {"a": None, "b": "z", "c": 2.5},
    ]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_an_action_puts_rows_and_returns_a_result(how: str) -> None:
    class Doubling(Action[Nothing]):
        type = "doubling"
        Params = Nothing
        inputs = (Port("input"),)
        outputs = (Port("main"),)

        def double(self, call: Call) -> str:
            call.put("main", call.engine.select('SELECT n * 2 AS n FROM "input"', {"input": call.input()}))
            call.after["SEEN"] = call.input().rows
            return "done"

    class Now(Doubling):
        def run(self, params: Nothing, call: Call) -> str:
            return self.double(call)

    class Later(Doubling):
        async def run(self, params: Nothing, call: Call) -> str:
            return await call.threads.run(self.double, call)

    done = run(Now() if how == "sync" else Later(), {}, {"input": ROWS})
    assert (done.main, done.result, done.after) == ([{"n": 2}, {"n": 4}, {"n": 6}], "done", {"SEEN": 3})


def test_a_port_that_is_read_and_was_not_written_is_an_error() -> None:
    forgetful = Acting(lambda call: None)
    with pytest.raises(ComponentFailure, match="`it` put no rows on its port `main`, which is read"):
        run(forgetful, {}, {"input": ROWS}, connected=["main"])


def test_a_reject_port_that_was_not_written_is_empty() -> None:
    class Careful(Acting):
        outputs = (Port("reject", reject=True),)

    done = run(Careful(lambda call: None), {}, {"input": ROWS})
    assert done.outputs == {"reject": []}
    assert [column.name for column in done.schemas["reject"]] == ["n", "error_code", "error_message"]


class Writing(Sink[Nothing]):
    type = "writing"
    Params = Nothing

    def __init__(self) -> None:
        self.finished: list[int] = []

    def copy(self, params: Nothing, schema: Schema, call: PlanCall) -> Copy:
        return Copy(call.resolve("out.csv"), "csv", {"header": True})

    def finish(self, params: Nothing, call: PlanCall, rows: int) -> None:
        self.finished.append(rows)


def test_a_sink_writes_and_passes_its_rows_on_when_somebody_reads_them(tmp_path: Path) -> None:
    sink = Writing()
    assert run(sink, {}, {"input": ROWS}, folder=tmp_path).main == ROWS
    assert (tmp_path / "out.csv").read_text() == "n\n1\n2\n3\n"
    assert run(sink, {}, {"input": ROWS}, folder=tmp_path, connected=[]).outputs == {}
    assert sink.finished == [3, 3]


def test_a_sink_that_cannot_write_fails_in_plain_words(tmp_path: Path) -> None:
    class Nowhere(Writing):
        def copy(self, params: Nothing, schema: Schema, call: PlanCall) -> Copy:
            (tmp_path / "file").write_text("")
            return Copy(tmp_path / "file" / "out.csv", "csv")

    with pytest.raises(ComponentFailure):
        run(Nowhere(), {}, {"input": ROWS})


def test_a_relational_component_that_cannot_be_fused_runs_its_own_way() -> None:
    class Either(Relational[Nothing]):
        type = "either"
        Params = Nothing
        inputs = (Port("input"),)
        outputs = (Port("main"),)

        def __init__(self, fusable: bool) -> None:
            self.fusable = fusable

        def is_fusable(self, params: Nothing, connected: frozenset[str]) -> bool:
            return self.fusable

        def selects(self, params: Nothing, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, str]:
            return {"main": "SELECT 'select' AS how"}

        def run(self, params: Nothing, call: Call) -> None:
            call.put("main", call.engine.select("SELECT 'run' AS how", {}))

    assert run(Either(True), {}, {"input": ROWS}).main == [{"how": "select"}]
    assert run(Either(False), {}, {"input": ROWS}).main == [{"how": "run"}]


def test_which_components_want_to_be_fused() -> None:
    known = ComponentRegistry()

    def wants(type_: str, params: dict[str, Any], *connected: str) -> bool:
        return runner.wants_fusion(known.get(type_), known.convert(type_, params), connected)

    assert wants("filter", {"where": "n > 1"}, "main")
    assert wants("filter", {"where": "n > 1"}, "main", "reject")
    assert not wants("filter", {"where": "random() > 0.5"}, "main", "reject")
    assert not wants("replicate", {}, "output_a", "output_b")
    assert not runner.wants_fusion(Acting(lambda call: None), Nothing(), [])


def test_a_stage_has_the_queries_of_the_connected_ports(tmp_path: Path) -> None:
    known = ComponentRegistry()
    component = known.get("derive")
    rows = Relation("t1", schema(n="BIGINT"), 3)
    made = runner.stage(
        component,
        "double",
        known.convert("derive", {"columns": {"m": "n * 2"}}),
        {"input": rows},
        {"input": rows.schema},
        PlanCall(tmp_path, frozenset({"main"})),
        ["main"],
    )
    assert made.name == "double"
    assert made.selects == {"main": 'SELECT "n", n * 2 AS "m" FROM "input"'}
    assert made.inputs == {"input": rows}
    assert made.wanted == {"main"}
    assert made.keeps_count
    assert made.copy is None


def test_a_stage_of_a_sink_has_what_to_write(tmp_path: Path) -> None:
    made = runner.stage(
        Writing(),
        "w",
        Nothing(),
        {"input": ("a", "main")},
        {"input": schema(n="BIGINT")},
        PlanCall(tmp_path, frozenset()),
    )
    assert made.copy == Copy(tmp_path / "out.csv", "csv", {"header": True})
    assert made.selects == {}


def test_a_stage_fails_as_a_run_would(tmp_path: Path) -> None:
    known = ComponentRegistry()
    params = known.convert("unique", {"by": ["m"]})
    with pytest.raises(ComponentFailure, match="`by\\[0\\]`: `input` has no column `m`"):
        runner.stage(
            known.get("unique"),
            "u",
            params,
            {},
            {"input": schema(n="BIGINT")},
            PlanCall(tmp_path, frozenset({"unique"})),
        )


def test_the_outputs_of_a_stage_can_be_said_before_it_runs(tmp_path: Path) -> None:
    known = ComponentRegistry()
    inputs = {"input": schema(n="BIGINT")}
    made = runner.stage(
        known.get("derive"), "d", known.convert("derive", {"columns": {"m": "n / 2"}}), {}, inputs,
        PlanCall(tmp_path, frozenset({"main"})),
    )  # fmt: skip
    assert runner.outputs_of(made, inputs) == {"main": schema(n="BIGINT", m="DOUBLE")}


def _cancelled(component: Action[Any], tmp_path: Path, started: threading.Event) -> Call:
    """Run, cancel once it has started, and give back the call."""

    async def whole() -> Call:
        engine = DuckDbEngine(tmp_path / "rows")
        session = engine.session()
        call = make_call(session, tmp_path)
        try:
            task = asyncio.create_task(runner.run(component, Nothing(), call))
            while not started.is_set():
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            session.close()
            engine.close()
        return call

    return asyncio.run(whole())


def test_a_cancelled_run_interrupts_its_query_and_waits_for_its_thread(tmp_path: Path) -> None:
    started, ended = threading.Event(), threading.Event()

    def endless(call: Call) -> None:
        started.set()
        try:
            call.engine.select(
                "SELECT count(*) AS n FROM range(1000000000) a, range(1000) b WHERE a.range + b.range = -1", {}
            )
        finally:
            ended.set()

    _cancelled(Acting(endless), tmp_path, started)
    assert ended.is_set()


def test_a_cancelled_run_gives_a_thread_between_two_queries_no_further_one(tmp_path: Path) -> None:
    started, queries = threading.Event(), list[int]()

    def busy(call: Call) -> None:
        while True:
            started.set()
            call.engine.select("SELECT sum(range) AS n FROM range(2000000)", {})
            queries.append(1)

    _cancelled(Acting(busy), tmp_path, started)
    so_far = len(queries)
    time.sleep(0.05)
    assert len(queries) == so_far


def test_python_code_that_does_not_stop_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "GRACE_SECONDS", 0.05)
    started, let_go = threading.Event(), threading.Event()

    def deaf(call: Call) -> None:
        started.set()
        let_go.wait(30)

    _cancelled(Acting(deaf), tmp_path, started)
    assert not let_go.is_set()
    let_go.set()


def test_an_async_action_is_cancelled_like_any_coroutine(tmp_path: Path) -> None:
    started, cleaned = threading.Event(), threading.Event()

    class Waiting(Action[Nothing]):
        type = "waiting"
        Params = Nothing

        async def run(self, params: Nothing, call: Call) -> None:
            started.set()
            try:
                await asyncio.sleep(3600)
            finally:
                cleaned.set()

    _cancelled(Waiting(), tmp_path, started)
    assert cleaned.is_set()
