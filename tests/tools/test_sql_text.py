"""SQL text: where code stops, which placeholders are code, how values become JSON."""

from __future__ import annotations

import datetime
import sqlite3
from decimal import Decimal
from typing import Any

import duckdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.tools.base import ToolFailure
from penstock.tools.sql.results import distinct, from_duration, to_json
from penstock.tools.sql.text import Dialect, Kind, bind, on_conflict, quote, quote_table, scan, split, table_parts
from tests.cases import cases

PG, MY, LITE, DUCK = Dialect.POSTGRES, Dialect.MYSQL, Dialect.SQLITE, Dialect.DUCKDB

NOISE = st.text(alphabet=":%$?@;'\"`[](){}-/*#\\ \nabs1_.=", max_size=30)


def bound(text: str, params: Any, dialect: Dialect = PG) -> tuple[str, Any]:
    (statement,) = split(text, dialect)
    result = bind(statement, params, dialect)
    return result.text, result.args


def texts(sql: str, dialect: Dialect = PG) -> list[str]:
    return [statement.text for statement in split(sql, dialect)]


@given(text=NOISE | st.text(), dialect=st.sampled_from(list(Dialect)))
def test_the_pieces_of_any_text_give_it_back_character_for_character(text: str, dialect: Dialect) -> None:
    assert "".join(piece.text for piece in scan(text, dialect)) == text


def _string(content: str) -> str:
    return "'" + content.replace("'", "''") + "'"


def _name(content: str) -> str:
    return '"' + content.replace('"', '""') + '"'


HIDDEN = st.one_of(
    NOISE.map(_string),
    NOISE.filter(bool).map(_name),
    NOISE.map(lambda text: "$x$" + text.replace("$", "") + "$x$"),
    NOISE.map(lambda text: "-- " + text.replace("\n", " ") + "\n"),
    NOISE.map(lambda text: "/* " + text.replace("*", " ").replace("/", " ") + " */"),
)


@given(hidden=st.lists(HIDDEN, min_size=1, max_size=5))
def test_nothing_in_strings_names_and_comments_is_taken_for_a_placeholder_or_a_separator(hidden: list[str]) -> None:
    text = " ".join(["SELECT", *(f"{piece} , :value" for piece in hidden)])
    written, args = bound(text, {"value": 7})
    assert written == " ".join(["SELECT", *(f"{piece} , $1" for piece in hidden)])
    assert args == {"p1": 7}


@given(hidden=st.lists(HIDDEN, min_size=1, max_size=5))
def test_text_without_parameters_reaches_the_driver_unchanged(hidden: list[str]) -> None:
    text = " ".join(["SELECT 10 % 3", *hidden, "x"])
    assert bound(text, None) == (text, None)


@given(value=NOISE, other=NOISE)
def test_a_database_reads_the_same_strings_and_placeholders_as_the_lexer(value: str, other: str) -> None:
    text = f"SELECT {_string(value)} AS a, :other AS b /* :x '{other.replace('*', '')} */ -- ; :y"
    written, args = bound(text, {"other": other}, LITE)
    connection = sqlite3.connect(":memory:")
    assert connection.execute(written, args).fetchone() == (value, other)
    connection.close()


def test_a_mapping_fills_all_named_spellings() -> None:
    assert bound("SELECT :a, %(b)s, :a", {"a": 1, "b": 2}) == ("SELECT $1, $2, $1", {"p1": 1, "p2": 2})
    assert bound("SELECT :a, $b, @c", {"a": 1, "b": 2, "c": 3}, LITE)[0] == "SELECT :p1, :p2, :p3"
    assert bound("SELECT :a, $b", {"a": 1, "b": 2}, DUCK)[0] == "SELECT $p1, $p2"
    assert bound("SELECT :a, :a % 2, '%'", {"a": 1}, MY) == ("SELECT %s, %s %% 2, '%%'", [1, 1])


def test_a_list_fills_positions() -> None:
    assert bound("SELECT %s, %s", [1, 2]) == ("SELECT $1, $2", {"p1": 1, "p2": 2})
    assert bound("SELECT $2, $1, $2", ["a", "b"]) == ("SELECT $1, $2, $1", {"p1": "b", "p2": "a"})
    assert bound("SELECT ?, ?", [1, 2], LITE)[0] == "SELECT :p1, :p2"


def test_casts_slices_assignments_and_json_operators_are_no_placeholders() -> None:
    text = "SELECT x::int, a[1:n], f(b := 1), d ? 'k', :v::text"
    assert bound(text, {"v": 1})[0] == "SELECT x::int, a[1:n], f(b := 1), d ? 'k', $1::text"
    assert bound("SELECT {'a':x, 'b': :v}", {"v": 1}, DUCK)[0] == "SELECT {'a':x, 'b': $p1}"


def test_a_doubled_percent_sign_in_code_is_the_operator_when_there_are_parameters() -> None:
    assert bound("SELECT :a %% 2, 5 % 2, '%%'", {"a": 1})[0] == "SELECT $1 % 2, 5 % 2, '%%'"


def test_an_array_cast_to_json_in_the_text_is_marked_to_go_as_json() -> None:
    (statement,) = split("SELECT :a::jsonb, :b ::json, :c::jsonb[], :d", PG)
    result = bind(statement, {"a": [1], "b": [1], "c": [], "d": [1]}, PG)
    assert result.as_json == {"p1", "p2"}


@cases(
    "text, params, words",
    [
        ("SELECT :nme", {"name": 1}, "did you mean `name`?"),
        ("SELECT :a", {}, "not in `params`; it has none"),
        ("SELECT %s, %s", [1], "placeholder for value 2, but `params` has 1 value"),
        ("SELECT %s", [1, 2], "placeholders for 1 of the 2 values"),
        ("SELECT %s, $1", [1, 2], "mixes"),
    ],
)
def test_a_mismatch_between_text_and_parameters_is_explained(text: str, params: Any, words: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        bound(text, params)
    assert caught.value.kind == "parameters"
    assert words in caught.value.message


def test_statements_end_at_semicolons_in_code_only() -> None:
    assert texts("SELECT 1; SELECT ';' -- ;\n; /* ; */ ;;\n") == ["SELECT 1", "SELECT ';' -- ;"]
    assert texts("SELECT $$a;b$$; SELECT $q$;$$;$q$") == ["SELECT $$a;b$$", "SELECT $q$;$$;$q$"]
    assert texts("SELECT E'\\';'; SELECT 2") == ["SELECT E'\\';'", "SELECT 2"]
    assert texts("SELECT 1 /* a /* ; */ ; */; SELECT 2") == ["SELECT 1 /* a /* ; */ ; */", "SELECT 2"]
    assert texts("SELECT 'a\\'; SELECT 2") == ["SELECT 'a\\'", "SELECT 2"]
    assert texts("SELECT 'a\\'; SELECT 2'", MY) == ["SELECT 'a\\'; SELECT 2'"]
    assert texts("SELECT `a;b` # ;\n; SELECT 2", MY) == ["SELECT `a;b` # ;", "SELECT 2"]
    assert texts("SELECT [a;b]; SELECT 2", LITE) == ["SELECT [a;b]", "SELECT 2"]
    assert texts("-- nothing\n /* at all */ ;") == []


def test_bodies_of_triggers_and_routines_stay_in_one_piece() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET b = CASE WHEN 1 THEN 2 END; DELETE FROM c; END"
    assert texts(f"{trigger}; SELECT 1", LITE) == [trigger, "SELECT 1"]
    body = "BEGIN IF n > 1 THEN SET n = 1; END IF; WHILE n < 3 DO SET n = n + 1; END WHILE; SELECT n; END"
    assert texts(f"CREATE PROCEDURE p(n int) {body}; CALL p(1)", MY) == [
        f"CREATE PROCEDURE p(n int) {body}",
        "CALL p(1)",
    ]
    function = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END"
    assert texts(f"{function}; SELECT 3") == [function, "SELECT 3"]
    assert texts("CREATE TABLE event (begin int); SELECT 1") == ["CREATE TABLE event (begin int)", "SELECT 1"]


@pytest.mark.parametrize("text", ["SELECT $$a;:b$$", "SELECT $t$ $$ $t$", "SELECT E'\\';:a'", "SELECT 1 /* /* */ ; */"])
def test_duckdb_agrees_with_the_lexer_on_where_a_statement_ends(text: str) -> None:
    assert len(split(text, DUCK)) == len(duckdb.extract_statements(text)) == 1
    assert not [piece for piece in scan(text, DUCK) if piece.kind is Kind.NAMED]


@given(name=st.text(min_size=1).filter(lambda name: "\0" not in name))
def test_a_quoted_name_stays_one_name_whatever_it_holds(name: str) -> None:
    for dialect in Dialect:
        (piece,) = scan(quote(name, dialect), dialect)
        assert piece.kind is Kind.QUOTED


def test_table_names_have_parts_and_parts_may_be_quoted() -> None:
    assert table_parts("orders") == ["orders"]
    assert table_parts('sales."Orders.2024"') == ["sales", "Orders.2024"]
    assert quote_table("a.b c", PG) == '"a"."b c"'
    for wrong in ("", ".a", "a.", 'a"b', "a..b"):
        with pytest.raises(ToolFailure):
            table_parts(wrong)


def test_an_upsert_without_columns_to_change_does_nothing_to_known_rows() -> None:
    assert on_conflict(["id"], [], PG) == 'ON CONFLICT ("id") DO NOTHING'
    assert on_conflict(["id"], ["a"], LITE) == 'ON CONFLICT ("id") DO UPDATE SET "a" = excluded."a"'
    assert on_conflict(["id"], [], MY) == "ON DUPLICATE KEY UPDATE `id` = VALUES(`id`)"


@cases(
    "value, said",
    [
        (Decimal("10.50"), 10.5),
        (Decimal("3.00"), 3),
        (Decimal("0.1"), 0.1),
        (Decimal("12345678901234567890.12"), "12345678901234567890.12"),
        (Decimal("NaN"), "NaN"),
        (Decimal("1E+100000"), "1E+100000"),
        (2**63 - 1, 2**63 - 1),
        (2**63, str(2**63)),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC), "2024-01-02T03:04:05+00:00"),
        (datetime.timedelta(days=1, hours=2, seconds=3.5), "P1DT2H3.5S"),
        (b"\xab\xcd", "q80="),
        ({1: (Decimal("1.5"), None)}, {"1": [1.5, None]}),
    ],
)
def test_values_are_said_as_json_can_say_them(value: Any, said: Any) -> None:
    assert to_json(value) == said
    assert type(to_json(value)) is type(said)


@given(value=st.decimals(allow_nan=False, allow_infinity=False, places=None))
def test_a_decimal_never_loses_a_digit(value: Decimal) -> None:
    said = to_json(value)
    msgspec.json.encode(said)
    assert Decimal(repr(said) if isinstance(said, float) else str(said)) == value


def test_durations_are_iso_8601() -> None:
    assert from_duration(datetime.timedelta(0)) == "PT0S"
    assert from_duration(datetime.timedelta(minutes=-90)) == "-PT1H30M"
    assert from_duration(datetime.timedelta(days=2)) == "P2D"


def test_columns_of_the_same_name_are_told_apart() -> None:
    assert distinct(["id", "id", "id_2", "id"]) == ["id", "id_3", "id_2", "id_4"]
