"""The names of types: what an author may write in a schema, and what DuckDB calls it.

`integer` is a whole number of 64 bits and `number` a DOUBLE, whatever the case: an author thinks of numbers, not of widths.
A width that matters is written as DuckDB's own `INT32`, `SMALLINT`, `DECIMAL(10,2)` … What comes back is spelt as DuckDB
spells it when it describes a table, so that a declared schema and a found one can be compared as texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Generic, TypeVar

from penstock.ports.rows import Column, Schema

_NAMES = {
    "VARCHAR": "string str text varchar char bpchar",
    "BIGINT": "integer int long bigint int8 int64",
    "INTEGER": "int4 int32 signed",
    "SMALLINT": "smallint int2 int16 short",
    "TINYINT": "tinyint int1",
    "HUGEINT": "hugeint int128",
    "UHUGEINT": "uhugeint uint128",
    "UBIGINT": "ubigint uint64",
    "UINTEGER": "uinteger uint32",
    "USMALLINT": "usmallint uint16",
    "UTINYINT": "utinyint uint8",
    "BIGNUM": "bignum varint",
    "DOUBLE": "number float double float8 float64",
    "FLOAT": "real float4 float32",
    "BOOLEAN": "boolean bool logical",
    "DATE": "date",
    "TIME": "time",
    "TIME WITH TIME ZONE": "timetz",
    "TIMESTAMP": "timestamp datetime timestamp_us",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP_S": "timestamp_s",
    "TIMESTAMP_MS": "timestamp_ms",
    "TIMESTAMP_NS": "timestamp_ns",
    "INTERVAL": "interval duration",
    "JSON": "json object any",
    "BLOB": "bytes binary blob bytea varbinary",
    "UUID": "uuid guid",
    "BIT": "bit bitstring",
}
_CANONICAL = {name: canonical for canonical, names in _NAMES.items() for name in names.split()}
_TOKEN = re.compile(r"""\s*(?:(?P<word>\w+)|(?P<quoted>"(?:[^"]|"")*")|(?P<text>'(?:[^']|'')*')|(?P<sign>[()\[\],]))""")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")


class TypeMistake(ValueError):
    """A name that is not a type. The message says what would be right."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def duckdb_type(text: str) -> str:
    """DuckDB's name of a type: `string` -> `VARCHAR`, `decimal(10, 2)` -> `DECIMAL(10,2)`, `integer[]` -> `BIGINT[]`."""
    reader = _Reader(text)
    found = reader.type()
    reader.end()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()
        self.at = 0

    def _tokens(self) -> list[str]:
        found, at = [], 0
        while self.text[at:].strip():
            token = _TOKEN.match(self.text, at)
            if token is None:
                raise TypeMistake(f"`{self.text}` is not a type")
            found.append(token.group().strip())
            at = token.end()
        return found

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            missing = f"`{wanted}`" if wanted else "a name"
            raise TypeMistake(
                f"`{self.text}` is not a type: {missing} is missing{f' before `{token}`' if token else ''}"
            )
        self.at += 1
        return token

    def end(self) -> None:
        if self.peek():
            raise TypeMistake(f"`{self.text}` is not a type: `{self.peek()}` is not expected")

    def type(self) -> str:
        found = self._one()
        while self.peek() == "[":
            self.take("[")
            size = "" if self.peek() == "]" else self._number()
            self.take("]")
            found += f"[{size}]"
        return found

    def _one(self) -> str:
        word = self.take().lower()
        match word:
            case "decimal" | "numeric" | "dec":
                return self._decimal()
            case "struct" | "row" | "union":
                return f"{'UNION' if word == 'union' else 'STRUCT'}({self._fields()})"
            case "map":
                self.take("(")
                key = self.type()
                self.take(",")
                value = self.type()
                self.take(")")
                return f"MAP({key}, {value})"
            case "list" | "array" if self.peek() == "(":
                self.take("(")
                element = self.type()
                self.take(")")
                return f"{element}[]"
            case "enum":
                return self._enum()
        if word in ("varchar", "char", "string", "text") and self.peek() == "(":
            self._length()
        canonical = _CANONICAL.get(word)
        if canonical is None:
            raise self._unknown(word)
        return self._zoned(canonical)

    def _zoned(self, canonical: str) -> str:
        following = [token.lower() for token in self.tokens[self.at : self.at + 3]]
        if canonical in ("TIME", "TIMESTAMP") and following == ["with", "time", "zone"]:
            self.at += 3
            return f"{canonical} WITH TIME ZONE"
        return canonical

    def _decimal(self) -> str:
        if self.peek() != "(":
            return "DECIMAL(18,3)"
        self.take("(")
        width, scale = int(self._number()), 0
        if self.peek() == ",":
            self.take(",")
            scale = int(self._number())
        self.take(")")
        if not 1 <= width <= 38:
            raise TypeMistake(f"`{self.text}`: a decimal has 1 to 38 digits, not {width}")
        if scale > width:
            raise TypeMistake(f"`{self.text}`: of {width} digits, {scale} cannot stand after the point")
        return f"DECIMAL({width},{scale})"

    def _fields(self) -> str:
        self.take("(")
        fields = []
        while True:
            name = self.take()
            plain = name if name.startswith('"') or _PLAIN.match(name) else f'"{name}"'
            fields.append(f"{plain} {self.type()}")
            if self.peek() != ",":
                break
            self.take(",")
        self.take(")")
        return ", ".join(fields)

    def _enum(self) -> str:
        self.take("(")
        values = [self._word()]
        while self.peek() == ",":
            self.take(",")
            values.append(self._word())
        self.take(")")
        return f"ENUM({', '.join(values)})"

    def _word(self) -> str:
        if not self.peek().startswith("'"):
            raise TypeMistake(f"`{self.text}` is not a type: the values of an enum stand in single quotes")
        return self.take()

    def _length(self) -> None:
        """DuckDB knows no length of texts, but people write one."""
        self.take("(")
        self._number()
        self.take(")")

    def _number(self) -> str:
        number = self.take()
        if not number.isdecimal():
            raise TypeMistake(f"`{self.text}` is not a type: `{number}` is not a whole number")
        return number

    def _unknown(self, word: str) -> TypeMistake:
        names = [*_CANONICAL, "decimal", "struct", "map", "enum"]
        near = get_close_matches(word, names, n=1)
        hint = (
            f"did you mean `{near[0]}`?"
            if near
            else "types are `string`, `integer`, `number`, `decimal(p,s)`, `boolean`, …"
        )
        return TypeMistake(f"`{word}` is not a type", hint)


NOTHING = '"NULL"'
"""DuckDB's type of a column that has never had a value. Text would not go with numbers, and a day without rows would break a job
that adds up its amounts."""

OPEN = "(no columns)"
"""The name of the only column of an empty relation whose columns are unknown, because only rows would define them."""
UNKNOWN_COLUMNS: Schema = (Column(OPEN, NOTHING),)

_GUESSES = ("TIMESTAMP", "DATE", "VARCHAR", "DOUBLE", "BOOLEAN", "VARCHAR[]")
"""The types to try with functions that refuse the type above, the likeliest first."""

ColumnRef = tuple[str, str]
Inputs = Mapping[str, Schema]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MissingColumn:
    """A column that is asked for and is not there; `table` is the input that should have it, where that is known."""

    column: str
    table: str | None = None


@dataclass(frozen=True, slots=True)
class Bound(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class Stuck:
    """The query did not bind. `at` grows with how far the binding came; None when it says nothing about types."""

    at: int | None


def is_open(schema: Schema) -> bool:
    """May there be columns that are not known yet?"""
    return any(column.name == OPEN for column in schema)


def has_untyped(inputs: Inputs) -> bool:
    return any(column.type == NOTHING for schema in inputs.values() for column in schema)


def bound_under_some_types(text: str, inputs: Inputs, bind: Callable[[Inputs], Bound[T] | Stuck]) -> T | None:
    """What `bind` gives under the first types that it accepts for the untyped columns that the text names; None without any."""
    named = [column for column in _untyped(inputs) if column[1].lower() in text.lower()]
    settled: dict[ColumnRef, str] = {}
    reached = bind(inputs)
    if isinstance(reached, Bound):
        return reached.value
    if reached.at is None:
        return None
    for guess in _GUESSES:
        for column in named:
            found = bind(retyped(inputs, settled | {column: guess})) if column not in settled else reached
            if isinstance(found, Bound):
                return found.value
            if found.at is not None and found.at > reached.at:
                settled[column], reached = guess, found
        # Two columns that are subtracted, for example, need the same type at once.
        found = bind(retyped(inputs, dict.fromkeys(named, guess) | settled))
        if isinstance(found, Bound):
            return found.value
    return None


def retyped(inputs: Inputs, types: Mapping[ColumnRef, str]) -> dict[str, Schema]:
    return {
        name: tuple(replace(column, type=types.get((name, column.name), column.type)) for column in schema)
        for name, schema in inputs.items()
    }


def _untyped(inputs: Inputs) -> Iterator[ColumnRef]:
    for name, schema in inputs.items():
        for column in schema:
            if column.type == NOTHING:
                yield name, column.name
