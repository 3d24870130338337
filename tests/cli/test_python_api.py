"""`penstock.run`, `penstock.arun`, `penstock.tool`."""

from __future__ import annotations

import asyncio
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

import penstock
from penstock.tools.registry import Registry
from tests.cli.support import FAILS, HELLO, WAITS, call, write

pytestmark = pytest.mark.usefixtures("folder")


def test_a_file_and_inputs_go_in_and_a_run_comes_out() -> None:
    run = penstock.run(write("hello.yaml", HELLO), {"who": "python"})
    assert (run.status, run.ok, run.result, run.ctx, run.error) == ("completed", True, "hello python", {}, None)
    assert run.home == Path.cwd() / ".penstock"
    events = list(run.events())
    assert [event["event_type"] for event in events][::16] == ["playbook.started", "playbook.completed"]
    assert {event["execution_id"] for event in events} == {run.execution_id}


def test_a_failed_run_does_not_raise() -> None:
    run = penstock.run(write("fails.yaml", FAILS), home="state")
    assert (run.status, run.ok) == ("failed", False)
    assert run.error["kind"] == "exception"
    assert Path("state/penstock.db").exists()


def test_a_bad_document_raises_with_all_its_problems() -> None:
    Path("bad.yaml").write_text("kind: Pod\n")
    with pytest.raises(penstock.DocumentInvalid) as caught:
        penstock.run("bad.yaml")
    assert caught.value.problems
    assert not Path(".penstock").exists()


def test_the_async_twin_runs_several_at_once() -> None:
    file = write("hello.yaml", HELLO)

    async def both() -> list[penstock.Run]:
        return await asyncio.gather(*(penstock.arun(file, {"who": str(number)}) for number in range(4)))

    assert [run.result for run in asyncio.run(both())] == [f"hello {number}" for number in range(4)]


def test_run_works_inside_a_running_event_loop_as_in_a_notebook() -> None:
    file = write("hello.yaml", HELLO)

    async def cell() -> tuple[object, int]:
        run = penstock.run(file, {"who": "notebook"})
        return run.result, len(list(run.events()))

    assert asyncio.run(cell()) == ("hello notebook", 17)


def test_an_error_inside_a_running_event_loop_reaches_the_caller() -> None:
    async def cell() -> None:
        penstock.run("missing.yaml")

    with pytest.raises(penstock.DocumentInvalid, match="there is no file"):
        asyncio.run(cell())


def test_inputs_that_json_cannot_say_are_refused() -> None:
    with pytest.raises(penstock.Refused, match="cannot be written as JSON"):
        penstock.run(write("hello.yaml", HELLO), {"who": object()})


def test_cancelling_the_async_twin_leaves_a_run_that_can_be_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    file = write("waits.yaml", WAITS)

    async def cut_short() -> None:
        running = asyncio.ensure_future(penstock.arun(file))
        while not Path("waiting").exists():
            assert not running.done()
            await asyncio.sleep(0.01)
        running.cancel()
        await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cut_short())
    assert call(capsys, "show", "@last", "--json").json["status"] == "interrupted"
    Path("gate").touch()
    assert call(capsys, "resume", "@last", "--json").json["result"] == "finished"


def test_a_decorated_function_is_a_tool_of_this_process() -> None:
    @penstock.tool("shout", example="- name: loud\n  kind: shout\n  text: hello")
    def shout(text: str, times: int = 1) -> str:
        """Say it loud."""
        return text.upper() * times

    try:
        file = write("shout.yaml", "- step: start\n  tool: [{name: loud, kind: shout, text: hey, times: 2}]")
        assert penstock.run(file).result == "HEYHEY"
    finally:
        Registry.registered.pop("shout")


def test_what_a_tool_of_ones_own_prints_goes_to_the_log_without_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-v4lue")

    @penstock.tool("chatty")
    def chatty(token: str, leave: bool = False) -> None:
        """Print."""
        print("the token is", token)
        if leave:
            raise SystemExit(5)

    text = """
    keychain: [{name: t, kind: env, var: TOKEN}]
    workflow: [{step: start, tool: [
      {name: a, kind: chatty, token: "{{ keychain.t }}"},
      {name: b, kind: chatty, token: "{{ keychain.t }}", leave: true}]}]
    """
    try:
        run = penstock.run(write("chatty.yaml", text))
    finally:
        Registry.registered.pop("chatty")
    assert (run.error["kind"], run.error["message"], run.error["type"]) == ("exception", "SystemExit: 5", "SystemExit")
    assert capsys.readouterr().out == ""
    assert [line["line"] for line in call(capsys, "logs", "@last", "--json").lines] == ["the token is ***"] * 2


def test_what_is_not_there_is_said_to_be_not_there() -> None:
    assert set(penstock.__all__) == set(dir(penstock))
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = penstock.nonesuch


NEEDS = """
- step: start
  tool: [{name: look, kind: python, code: "__import__('os').stat('flag')\\nresult = 'old'"}]
"""

JOB = """
apiVersion: penstock/v1
kind: Job
metadata: { name: j }
context: { flag: "" }
components:
  - name: rows
    type: generate_rows
    params:
      count: 2
      columns:
        n: i + 1
        day: CASE WHEN i = 0 THEN DATE '2026-01-31' END
        price: (1.5 + i * 0.75)::DECIMAL(10, 2)
        big: CASE WHEN i = 0 THEN 170141183460469231731687303715884105727::HUGEINT ELSE 1::HUGEINT END
        words: "CASE WHEN i = 0 THEN ['a', 'b'] ELSE []::VARCHAR[] END"
  - name: few
    type: filter
    params: { where: n = 1 }
  - name: out
    type: write_csv
    params: { path: out.csv }
  - name: gate
    type: python
    params: { code: "__import__('os').stat('flag')" }
connections:
  data: |
    rows.main -> few.input
    few.main -> out.input
  control: gate (ok) rows
"""

LOOP = """
apiVersion: penstock/v1
kind: Job
metadata: { name: loop }
components:
  - name: each
    type: iterate_list
    params: { items: [10, 20, 30] }
  - name: made
    type: generate_rows
    params: { count: 2, columns: { n: "i + {{ iteration.item }}" } }
  - name: out
    type: log_rows
connections:
  data: made.main -> out.input
  control: each (iterate) made
"""


def test_a_file_is_checked_without_being_run() -> None:
    good = penstock.validate(write("hello.yaml", HELLO))
    assert (good.ok, good.errors, str(good)) == (True, (), "hello.yaml: valid")
    bad = penstock.validate(write("bad.yaml", HELLO.replace("kind: noop", "kind: nop")))
    assert not bad.ok
    assert [(one.code, one.place.line) for one in bad.errors] == [("P0504", 17)], bad.errors
    assert "did you mean `noop`?" in str(bad)
    missing = penstock.validate("missing.yaml")
    assert [one.code for one in missing.problems] == ["Y0001"]
    assert not Path(".penstock").exists()


def test_a_failed_run_is_resumed_with_the_text_it_was_started_with() -> None:
    file = write("p.yaml", NEEDS)
    failed = penstock.run(file)
    assert failed.status == "failed"
    Path(file).write_text(Path(file).read_text().replace("'old'", "'new'"))
    Path("flag").touch()
    run = penstock.resume(failed)
    assert (run.status, run.result, run.execution_id) == ("completed", "old", failed.execution_id)
    assert [Path(one.file).name for one in run.changed] == ["p.yaml"]
    assert "'new'" in run.changed[0].diff
    with pytest.raises(penstock.Refused, match="nothing to resume"):
        penstock.resume()
    with pytest.raises(penstock.Refused, match="there is no run `nobody`"):
        penstock.resume("nobody")


def test_resuming_and_replaying_work_inside_a_running_event_loop_and_in_async_code() -> None:
    file = write("p.yaml", NEEDS)
    failed = penstock.run(file, name="mine")

    async def cell() -> tuple[str, bool, str]:
        again = penstock.resume("mine")
        is_same = penstock.replay(again).ok
        Path("flag").touch()
        done = await penstock.aresume(failed)
        return again.status, is_same, done.status

    assert asyncio.run(cell()) == ("failed", True, "completed")


def test_a_replay_of_a_run_however_it_is_named_decides_the_same() -> None:
    run = penstock.run(write("hello.yaml", HELLO), name="mine")
    for named in (run, run.execution_id, run.execution_id[:6], "mine", "@last"):
        found = penstock.replay(named)
        assert (found.ok, found.difference, found.execution_id) == (True, None, run.execution_id)


def test_kept_rows_come_back_as_they_were_in_every_form() -> None:
    Path("j.yaml").write_text(JOB)
    Path("flag").touch()
    run = penstock.run("j.yaml", keep=["rows", "few.main"])
    assert run.ok, run.error
    rows = run.rows("rows.main")
    big = 170141183460469231731687303715884105727
    day, price = date(2026, 1, 31), Decimal("1.50")
    assert list(rows) == [
        {"n": 1, "day": day, "price": price, "big": big, "words": ["a", "b"]},
        {"n": 2, "day": None, "price": Decimal("2.25"), "big": 1, "words": []},
    ]
    assert (len(rows), rows.columns["price"], rows.columns["day"]) == (2, "DECIMAL(10,2)", "DATE")
    assert repr(rows) == "<Rows of rows.main: 2 rows, 5 columns>"
    table = run.rows("few").arrow()
    assert (table.num_rows, table.column("day").to_pylist(), str(table.schema.field("price").type)) == (
        1,
        [day],
        "decimal128(10, 2)",
    )
    assert rows.pandas()["n"].tolist() == [1, 2]
    assert rows.polars()["price"].to_list() == [price, Decimal("2.25")]
    assert penstock.replay(run).ok


def test_rows_that_were_not_kept_are_refused_with_what_would_keep_them() -> None:
    Path("j.yaml").write_text(JOB)
    Path("flag").touch()
    run = penstock.run("j.yaml")
    with pytest.raises(penstock.Refused, match=r"rows of `few\.main` were not kept") as caught:
        run.rows("few.main")
    assert "keep=['few.main']" in str(caught.value.hint)
    with pytest.raises(penstock.Refused, match="no rows came out of `nobody`") as caught:
        run.rows("nobody")
    assert "`few.main`" in str(caught.value.hint)
    with pytest.raises(penstock.Refused, match="is a playbook"):
        penstock.run(write("hello.yaml", HELLO)).rows("start")
    with pytest.raises(penstock.Refused, match="did you mean `few`"):
        penstock.run("j.yaml", keep=["fwe.main"])
    with pytest.raises(penstock.Refused, match="a playbook has no rows"):
        penstock.run("hello.yaml", keep=["start"])


def test_what_is_to_be_kept_is_known_after_a_resume() -> None:
    Path("j.yaml").write_text(JOB)
    failed = penstock.run("j.yaml", keep=["few"])
    assert failed.status == "failed"
    Path("flag").touch()
    run = penstock.resume(failed)
    assert run.ok, run.error
    assert [row["n"] for row in run.rows("few")] == [1]


def test_the_rows_of_all_iterations_come_together_or_one_by_one() -> None:
    Path("loop.yaml").write_text(LOOP)
    run = penstock.run("loop.yaml", keep="made")
    assert run.ok, run.error
    assert [row["n"] for row in run.rows("made")] == [10, 11, 20, 21, 30, 31]
    assert [row["n"] for row in run.rows("each[#1].made.main")] == [20, 21]


def test_kept_rows_that_were_pruned_are_told_of() -> None:
    Path("loop.yaml").write_text(LOOP)
    run = penstock.run("loop.yaml", keep=["made"])
    shutil.rmtree(".penstock/blobs")
    with pytest.raises(penstock.Refused, match="were deleted"):
        run.rows("made").arrow()


def test_rows_that_the_command_line_kept_are_read_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    Path("loop.yaml").write_text(LOOP)
    assert call(capsys, "run", "loop.yaml", "--keep", "made", "--name", "kept").code == 0
    assert len(penstock.rows("kept", "made.main")) == 6
    assert [row["n"] for row in penstock.rows("@last", "each[#0].made.main", home=".penstock")] == [10, 11]
    with pytest.raises(penstock.Refused, match="there is no run"):
        penstock.rows("nobody", "made")
    refused = call(capsys, "run", "loop.yaml", "--keep", "mad")
    assert (refused.code, "did you mean `made`" in refused.err) == (2, True)
    assert len(call(capsys, "runs", "--json").json["runs"]) == 1
