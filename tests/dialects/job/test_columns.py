"""Columns that a document declares."""

import pytest

from penstock.dialects.job.component import column_type
from tests.cases import cases
from tests.dialects.job.support import errors, net_of, problems


def document(schema: str, key: str = "schema") -> str:
    return (
        "components:\n"
        f"  - {{name: a, type: fixed_rows, params: {{columns: [id]}}, {key}: {schema}}}\n"
        "  - {name: b, type: log_rows}\n"
        "connections: {data: a -> b}\n"
    )


@cases(
    "written, meant",
    [
        ("string", "VARCHAR"), ("Int", "INTEGER"), ("long", "BIGINT"), ("decimal", "DECIMAL(18,3)"),
        ("decimal(10, 2)", "DECIMAL(10,2)"), ("numeric(5)", "DECIMAL(5,0)"), ("varchar(20)", "VARCHAR"),
        ("timestamp with time zone", "TIMESTAMP WITH TIME ZONE"), ("int[]", "INTEGER[]"), ("text[3]", "VARCHAR[3]"),
        ("struct(a integer, b varchar)", "STRUCT(a INT, b TEXT)"), ("DATE", "DATE"),
    ],
)  # fmt: skip
def test_types_are_written_as_the_engine_writes_them(written, meant):
    assert column_type(written) == meant


@cases("written", ["strng", "decimal(99,2)", "decimal(3,5)", "int(3", "a b c", "[]", "strng[]", "struct("])
def test_a_type_that_does_not_exist_is_none(written):
    assert column_type(written) is None


@pytest.mark.parametrize(
    "schema",
    [
        "[{id: BIGINT}, {name: at, type: DATE, nullable: false, key: true, pattern: '%Y'}]",
        "{id: BIGINT, at: {type: date, nullable: false, key: true, pattern: '%Y'}}",
        "[{name: id, type: long}, {at: {type: date, nullable: false, key: true, pattern: '%Y'}}]",
    ],
)
def test_all_spellings_of_a_schema_give_one(schema):
    part = net_of(document(schema)).nodes["a"].part
    assert part is not None
    assert part.schemas == {
        "main": [
            {"name": "id", "type": "BIGINT"},
            {"name": "at", "type": "DATE", "nullable": False, "key": True, "pattern": "%Y"},
        ]
    }


def test_a_column_may_be_its_name_alone_and_schemas_are_by_port():
    part = net_of(document("{main: [id, name], reject: [line]}", "schemas")).nodes["a"].part
    assert part is not None
    assert {port: [column["name"] for column in columns] for port, columns in part.schemas.items()} == {
        "main": ["id", "name"],
        "reject": ["line"],
    }


@cases(
    "schema, code",
    [
        ("[{id: BIGNUM}]", "J0205"),
        ("[{id: INT}, {id: INT}]", "J0205"),
        ("[{id: [INT]}]", "J0101"),
        ("[{name: id, tpye: INT}]", "J0102"),
        ("[{type: INT, nullable: true}]", "J0103"),
        ("3", "J0101"),
        ("[[a]]", "J0101"),
        ("[{id: INT}], schemas: {main: [{id: INT}]}", "J0205"),
    ],
)
def test_a_schema_that_is_wrong_is_reported(schema, code):
    assert errors(document(schema)) == [code]


def test_a_misspelt_type_is_found():
    (found,) = problems(document("[{id: BIGIN}]"), "J0205")
    assert found.label == "did you mean `BIGINT`?"


def test_a_declared_column_that_cannot_come_from_anywhere_is_reported():
    text = """
        components:
          - {name: a, type: fixed_rows, params: {columns: [id]}}
          - name: b
            type: filter
            params: {where: id > 0}
            schema: [{id: BIGINT}, {idd: BIGINT}]
          - {name: c, type: log_rows}
        connections: {data: a -> b -> c}
        """
    (found,) = problems(text, "J0601")
    assert (found.position.line, found.position.column) == (7, 29)
    assert found.message == "UNKNOWN_COLUMN: `b` declares the column `idd`, and `main` has no such column"
