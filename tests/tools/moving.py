"""What the tests of the transfer tool share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.transfer.tool import TransferTool
from tests.tools.support import make_call, run

Move = Callable[..., Any]


@pytest.fixture
def move(tmp_path: Path) -> Move:
    def run_one(source: dict[str, Any], target: dict[str, Any], *, spec: Any = None, **params: Any) -> Any:
        call = make_call(tmp_path, spec=spec or {})
        return run(TransferTool(), {"source": source, "target": target, **params}, call).result

    return run_one


def asked(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def rows(*values: Any) -> dict[str, Any]:
    """A source of rows with the columns a, b, c."""
    return {"kind": "rows", "rows": [dict(zip("abc", row, strict=False)) for row in values]}


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]
