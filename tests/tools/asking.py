"""What the tests of the postgres tool share: one task run after another, or several of one execution."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.base import Call, Success, ToolFailure
from penstock.tools.sql.postgres import PostgresTool
from tests.tools.support import SharedResources, make_call, run

Do = Callable[..., Any]


@pytest.fixture
def do(postgres_url: str, tmp_path: Path) -> Do:
    """One task run: its result, as a policy would see it."""

    def run_one(*, spec: Any = None, **params: Any) -> Any:
        call = make_call(tmp_path, spec=spec or {}, credentials={"pg": {"url": postgres_url}})
        outcome = run(PostgresTool(), {"auth": "pg", **params}, call)
        assert isinstance(outcome, Success)
        return outcome.result

    return run_one


def failed(do: Do, *arguments: Any, **params: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        do(*arguments, **params)
    return caught.value


def together(call: Call, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Several task runs of one execution, on one loop and one set of resources."""

    async def whole() -> Any:
        try:
            return await work()
        finally:
            assert isinstance(call.resources, SharedResources)
            await call.resources.close()

    return asyncio.run(whole())


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(3000):
        if await holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to pass")
