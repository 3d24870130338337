from __future__ import annotations

import duckdb
import pytest

from penstock.data.types import TypeMistake, duckdb_type
from tests.cases import cases


@cases(
    "written, meant",
    [
        ("string", "VARCHAR"),
        ("Text", "VARCHAR"),
        ("varchar(20)", "VARCHAR"),
        ("integer", "BIGINT"),
        ("INT32", "INTEGER"),
        ("number", "DOUBLE"),
        ("float", "DOUBLE"),
        ("decimal", "DECIMAL(18,3)"),
        ("decimal(10, 2)", "DECIMAL(10,2)"),
        ("numeric(5)", "DECIMAL(5,0)"),
        ("boolean", "BOOLEAN"),
        ("date", "DATE"),
        ("time", "TIME"),
        ("timestamp", "TIMESTAMP"),
        ("timestamp with time zone", "TIMESTAMP WITH TIME ZONE"),
        ("timestamptz", "TIMESTAMP WITH TIME ZONE"),
        ("json", "JSON"),
        ("bytes", "BLOB"),
        ("uuid", "UUID"),
        ("integer[]", "BIGINT[]"),
        ("list(string)", "VARCHAR[]"),
        ("map(string, number)", "MAP(VARCHAR, DOUBLE)"),
        ('struct(a integer, "b c" string[])', 'STRUCT(a BIGINT, "b c" VARCHAR[])'),
        ("enum('a', 'b')", "ENUM('a', 'b')"),
    ],
)
def test_a_type_is_spelt_as_duckdb_describes_it(written: str, meant: str) -> None:
    assert duckdb_type(written) == meant
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t (x {meant})")
        assert [str(type) for type in connection.table("t").types] == [meant]


@cases(
    "written, message, hint",
    [
        ("strng", "`strng` is not a type", "did you mean `string`?"),
        ("money", "`money` is not a type", "types are `string`, `integer`, `number`, `decimal(p,s)`, `boolean`, …"),
        ("decimal(50)", "`decimal(50)`: a decimal has 1 to 38 digits, not 50", ""),
        ("decimal(2,5)", "`decimal(2,5)`: of 2 digits, 5 cannot stand after the point", ""),
        ("int[", "`int[` is not a type: a name is missing", ""),
        ("map(string)", "`map(string)` is not a type: `,` is missing before `)`", ""),
        ("date time", "`date time` is not a type: `time` is not expected", ""),
        ("", "`` is not a type: a name is missing", ""),
        ("int; drop", "`int; drop` is not a type", ""),
        ("enum(a)", "`enum(a)` is not a type: the values of an enum stand in single quotes", ""),
    ],
)
def test_what_is_not_a_type_is_refused_with_what_would_be(written: str, message: str, hint: str) -> None:
    with pytest.raises(TypeMistake) as raised:
        duckdb_type(written)
    assert (raised.value.message, raised.value.hint) == (message, hint)
