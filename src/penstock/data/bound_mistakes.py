"""What is wrong with SQL that could not be bound, in words for its author, and where in the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

import duckdb

from penstock.data.failures import Trouble, plain, trouble
from penstock.data.sql_rules import MistakeKind, SqlMistake
from penstock.ports.rows import Schema

_NO_SUCH_COLUMN = re.compile(
    r'(?:Table|[Vv]alues list) "(?P<table>.+?)" does not have a column named "(?P<column>.+?)"'
)
_NO_SUCH_TABLE = re.compile(r'Referenced table "(?P<table>.+?)" not found')
_NO_SUCH_FUNCTION = re.compile(r"(?:Scalar |Aggregate |Window )?Function with name (?P<name>\S+) does not exist")
_BAD_CALL = re.compile(r"""(?:argument types '|function call ")(?P<name>[^(]+)\((?P<types>.*?)\)['"]""")
_CANNOT_COMPARE = re.compile(r"Cannot compare values of type (?P<one>.+?) and type (?P<other>.+?) - ")
_NO_SUCH_TYPE = re.compile(r"Type with name (?P<name>\S+) does not exist")
_NOT_GROUPED = re.compile(r'column "(?P<column>.+?)" must appear in the GROUP BY clause')
_WORD = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+(?:\.\w+)*|[^\s\w]+""")
_LITERALS = {"STRING_LITERAL": "a text", "INTEGER_LITERAL": "a whole number", '"NULL"': "NULL"}


def mistake_of(error: duckdb.Error, text: str, start: int, inputs: Mapping[str, Schema]) -> SqlMistake:
    """`start` is where the author's text begins in what was bound, in bytes."""
    told = trouble(error)
    message, hint, kind = _words(told, inputs)
    offset, length = _span(told, text, start)
    return SqlMistake(message, offset, length, hint, kind)


def _span(told: Trouble, text: str, start: int) -> tuple[int | None, int]:
    written = text.encode()
    if told.offset is None or not 0 <= told.offset - start <= len(written):
        return None, 1
    at = told.offset - start
    offset = len(written[:at].decode(errors="ignore"))
    if told.length:
        return offset, max(1, len(written[at : at + told.length].decode(errors="ignore").rstrip()))
    word = _WORD.match(text, offset)
    return offset, len(word.group()) if word else 1


def _words(told: Trouble, inputs: Mapping[str, Schema]) -> tuple[str, str, MistakeKind]:
    said = told.message
    if told.subtype == "COLUMN_NOT_FOUND" and told.name:
        return _no_column(
            told.name.rsplit(".", 1)[-1], [column.name for schema in inputs.values() for column in schema]
        )
    if found := _NO_SUCH_COLUMN.search(said):
        schema = inputs.get(found["table"], ())
        return _no_column(found["column"], [column.name for column in schema], found["table"])
    if found := _NO_SUCH_TABLE.search(said):
        return f"`{found['table']}` is not an input here", _near(found["table"], list(inputs)), "column"
    if found := _NO_SUCH_FUNCTION.search(said):
        near = re.search(r'Did you mean "(.+?)"', said)
        return f"there is no function `{found['name']}`", f"did you mean `{near[1]}`?" if near else "", "value"
    if found := _NO_SUCH_TYPE.search(said):
        return f"there is no type `{found['name']}`", "", "type"
    if found := _NOT_GROUPED.search(said):
        return f"`{found['column']}` stands neither in an aggregate nor in GROUP BY", "", "type"
    if found := _BAD_CALL.search(said):
        return _bad_call(found["name"].strip(), found["types"])
    if found := _CANNOT_COMPARE.search(said):
        return f"{found['one']} and {found['other']} cannot be compared", "cast one of them to the other's type", "type"
    kind: MistakeKind = "syntax" if told.type == "Parser" else "type"
    return _plain(said), "", kind


def _plain(said: str) -> str:
    message = plain("sql", said)
    return message[0].lower() + message[1:] if message[:2].istitle() else message


def _no_column(name: str, known: list[str], table: str | None = None) -> tuple[str, str, MistakeKind]:
    where = f" in `{table}`" if table else ""
    if not known:
        return f"there is no column `{name}`{where}", "", "column"
    hint = (
        _near(name, known) or f"there are {', '.join(f'`{one}`' for one in known[:8])}{' …' if len(known) > 8 else ''}"
    )
    return f"there is no column `{name}`{where}", hint, "column"


def _near(name: str, known: list[str]) -> str:
    by_low = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), list(by_low), n=1)
    return f"did you mean `{by_low[near[0]]}`?" if near else ""


def _bad_call(name: str, types: str) -> tuple[str, str, MistakeKind]:
    given = [_LITERALS.get(one.strip(), one.strip()) for one in re.split(r",\s*(?![^(]*\))", types)] if types else []
    what = " and ".join(given) or "nothing"
    verb = "be called with" if name[:1].isalpha() or name[:1] == "_" else "take"
    return f"`{name}` cannot {verb} {what}", "cast to a type that fits", "type"
