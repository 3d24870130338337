"""A database of each kind for tests that say the same of all: how to change and to ask it, and how a task names it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from penstock.kernel.values import JsonMap
from penstock.tools.base import Tool
from penstock.tools.registry import Registry
from penstock.tools.sql.duckdb import connect

KINDS = ["postgres", "sqlite", "duckdb", "mysql"]


@dataclass(frozen=True)
class Place:
    kind: str
    do: Callable[[str], list[Any]]
    """Runs a statement by itself, and gives its rows."""
    names: JsonMap
    folder: Path

    @property
    def tool(self) -> Tool[Any]:
        return Registry().get(self.kind)

    @property
    def helper(self) -> str:
        return "pg" if self.kind == "postgres" else self.kind


@contextmanager
def opened(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Place]:
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")
        with psycopg.connect(url, autocommit=True) as server:

            def ask(sql: str) -> list[Any]:
                cursor = server.execute(sql.encode())
                return cursor.fetchall() if cursor.description else []

            yield Place(kind, ask, {"url": url}, folder)
    elif kind == "mysql":
        url = request.getfixturevalue("mariadb_url")
        socket, name = request.getfixturevalue("mariadb_server"), url.partition("?")[0].rpartition("/")[2]
        with pymysql.connect(
            unix_socket=socket, user="root", database=name, autocommit=True, ssl_disabled=True
        ) as connection:

            def run(sql: str) -> list[Any]:
                with connection.cursor() as cursor:
                    cursor.execute(sql)
                    return list(cursor.fetchall())

            yield Place(kind, run, {"url": url}, folder)
    elif kind == "sqlite":

        def do(sql: str) -> list[Any]:
            with closing(sqlite3.connect(folder / "it.db", isolation_level=None)) as file:
                return file.execute(sql).fetchall()

        do("VACUUM")  # makes the file
        yield Place(kind, do, {"path": "it.db"}, folder)
    else:
        # As the tool opens it: within a process a file is opened in one way only. Opening it is most of what a task with it costs,
        # and it stays open from the first to the last of a test.
        with connect(str(folder / "it.duckdb")) as file:

            def duck(sql: str) -> list[Any]:
                with file.cursor() as cursor:
                    return cursor.execute(sql).fetchall()

            yield Place(kind, duck, {"path": "it.duckdb"}, folder)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with opened(request.param, request, tmp_path) as found:
        yield found
