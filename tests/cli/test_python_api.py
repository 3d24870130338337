"""`penstock.run`, `penstock.arun`, `penstock.tool`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import penstock
from penstock.tools.registry import _registered
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
        _registered.pop("shout")


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
        _registered.pop("chatty")
    assert (run.error["kind"], run.error["message"], run.error["type"]) == ("exception", "SystemExit: 5", "SystemExit")
    assert capsys.readouterr().out == ""
    assert [line["line"] for line in call(capsys, "logs", "@last", "--json").lines] == ["the token is ***"] * 2


def test_what_is_not_there_is_said_to_be_not_there() -> None:
    assert set(penstock.__all__) == set(dir(penstock))
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = penstock.nonesuch
