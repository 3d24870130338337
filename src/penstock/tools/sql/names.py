"""Names of tables and columns, quoted the way each database wants it: whatever a name holds, it stays a name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.tools.base import ToolFailure
from penstock.tools.sql.lexer import Dialect

_PART = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^."`]+')


def quote(name: str, dialect: Dialect) -> str:
    if not name or "\0" in name:
        raise ToolFailure("parameters", f"`{name!r}` cannot be the name of a table or column")
    mark = "`" if dialect is Dialect.MYSQL else '"'
    return mark + name.replace(mark, mark * 2) + mark


def table_parts(name: str) -> list[str]:
    """`schema.table` as its parts; a part that holds a dot itself is written in quotes."""
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(name, position)
        if match is None:
            raise ToolFailure("parameters", f"`{name}` cannot be the name of a table; hint: `table`, `schema.table`")
        part = match.group()
        parts.append(part[1:-1].replace(part[0] * 2, part[0]) if part[0] in '"`' else part)
        position = match.end()
        if position == len(name):
            return parts
        if name[position] != ".":
            raise ToolFailure("parameters", f"`{name}` cannot be the name of a table; hint: `table`, `schema.table`")
        position += 1


def quote_table(name: str, dialect: Dialect) -> str:
    return ".".join(quote(part, dialect) for part in table_parts(name))


def quote_all(names: Sequence[str], dialect: Dialect) -> str:
    return ", ".join(quote(name, dialect) for name in names)


def on_conflict(keys: Sequence[str], update: Sequence[str], dialect: Dialect) -> str:
    """The tail of an INSERT that makes it an upsert."""
    if dialect is Dialect.MYSQL:
        changed = update or keys[:1]  # setting a key to itself is MySQL's way of doing nothing
        return "ON DUPLICATE KEY UPDATE " + ", ".join(
            f"{quote(name, dialect)} = VALUES({quote(name, dialect)})" for name in changed
        )
    target = f"ON CONFLICT ({quote_all(keys, dialect)}) "
    if not update:
        return target + "DO NOTHING"
    return (
        target
        + "DO UPDATE SET "
        + ", ".join(f"{quote(name, dialect)} = excluded.{quote(name, dialect)}" for name in update)
    )


def insert_into(table: str, columns: Sequence[str], dialect: Dialect) -> str:
    return f"INSERT INTO {quote_table(table, dialect)} ({quote_all(columns, dialect)})"


def table_options(dialect: Dialect) -> str:
    """What comes behind the columns of a table that is made: a server of MySQL's kind may take another charset for granted, which
    has no room for most of Unicode."""
    return " CHARACTER SET utf8mb4" if dialect is Dialect.MYSQL else ""
