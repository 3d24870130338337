"""`noop`, `sleep`, `log` and `playbook`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.base import ToolFailure
from penstock.tools.registry import Registry
from tests.tools.support import make_call, run

registry = Registry()


class HandClock:
    """A clock that nobody waits for."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def test_noop_gives_none_or_the_value_it_was_given(tmp_path: Path):
    call = make_call(tmp_path)
    assert run(registry.get("noop"), {}, call) is None
    assert run(registry.get("noop"), {"value": {"a": [1]}}, call) == {"a": [1]}


def test_sleep_waits_by_the_clock_of_the_run(tmp_path: Path):
    clock = HandClock()
    assert run(registry.get("sleep"), {"seconds": 3600.5}, make_call(tmp_path, clock=clock)) == {"slept": 3600.5}
    assert clock.slept == [3600.5]


@pytest.mark.parametrize("seconds", [-1, "soon", float("nan"), None])
def test_sleep_refuses_what_is_no_time(seconds: Any):
    with pytest.raises(ToolFailure, match="`seconds`: expected a number") as caught:
        registry.convert("sleep", {"seconds": seconds})
    assert caught.value.kind == "parameters"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"message": "hello"}, ["hello"]),
        ({"message": "two\nlines", "level": "info"}, ["two", "lines"]),
        ({"message": "careful", "level": "warning", "data": {"rows": 3}}, ['warning: careful {"rows":3}']),
        ({"message": {"a": [1, None]}}, ['{"a":[1,null]}']),
        ({"message": 5}, ["5"]),
    ],
)
def test_log_says_its_message_and_gives_it_back(tmp_path: Path, params: dict[str, Any], said: list[str]):
    lines: list[str] = []
    assert run(registry.get("log"), params, make_call(tmp_path, say=lines.append)) == params["message"]
    assert lines == said


def test_noop_and_log_run_without_the_event_loop_and_sleep_does_not():
    assert [registry.get(kind).inline for kind in ("noop", "log", "sleep")] == [True, True, False]


def test_playbook_hands_path_args_and_return_step_to_the_engine(tmp_path: Path):
    played: list[tuple[Any, ...]] = []

    async def play(*arguments: Any) -> Any:
        played.append(arguments)
        return {"rows": 3}

    call = make_call(tmp_path, play=play)
    tool = registry.get("playbook")
    assert run(tool, {"path": "child.yaml", "args": {"n": 1}, "return_step": "end"}, call) == {"rows": 3}
    assert asyncio.run(tool.run(registry.convert("playbook", {"path": "child.yaml"}), call)) == {"rows": 3}
    assert played == [("child.yaml", {"n": 1}, "end"), ("child.yaml", {}, None)]


@pytest.mark.parametrize("kind", ["noop", "sleep", "log", "playbook"])
def test_an_unknown_parameter_is_refused(kind: str):
    with pytest.raises(ToolFailure, match="`messsage`: there is no such parameter"):
        registry.convert(kind, {"messsage": "x"})
