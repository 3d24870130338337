"""join, map and lookup: rows of several inputs side by side."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.components import runner
from penstock.components.base import ComponentFailure
from penstock.data.duckdb_engine import DuckDbEngine
from penstock.worker.services import SharedResources
from tests.cases import cases
from tests.components.harness import REGISTRY, columns, infer, make_call, mistakes, run, schema

ORDERS = [
    {"id": 1, "customer": 7, "amount": 250},
    {"id": 2, "customer": 8, "amount": 40},
    {"id": 3, "customer": 9, "amount": 10},
    {"id": 4, "customer": None, "amount": 5},
]
CUSTOMERS = [{"id": 7, "name": "Ada"}, {"id": 8, "name": "Bob"}, {"id": 8, "name": "Bea"}, {"id": 6, "name": "Zoe"}]
SHAPES = {
    "main": schema(id="BIGINT", customer="BIGINT", amount="BIGINT"),
    "lookup": schema(id="BIGINT", name="VARCHAR"),
}


def joined(**params: Any) -> list[tuple[Any, ...]]:
    ran = run("join", {"on": {"customer": "id"}, **params}, {"main": ORDERS, "lookup": CUSTOMERS}, connected=["main"])
    return sorted(((row["id"], row["customer"], row["name"]) for row in ran.main), key=str)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [(1, 7, "Ada"), (2, 8, "Bea"), (2, 8, "Bob")]),
        ("left", [(1, 7, "Ada"), (2, 8, "Bea"), (2, 8, "Bob"), (3, 9, None), (4, None, None)]),
        ("right", [(1, 7, "Ada"), (2, 8, "Bea"), (2, 8, "Bob"), (None, 6, "Zoe")]),
        ("full", [(1, 7, "Ada"), (2, 8, "Bea"), (2, 8, "Bob"), (3, 9, None), (4, None, None), (None, 6, "Zoe")]),
    ],
)
def test_join_keeps_the_rows_it_says(how: str, expected: list[tuple[Any, ...]]) -> None:
    assert joined(how=how) == sorted(expected, key=str)


@pytest.mark.parametrize(("match", "name"), [("first", "Bob"), ("last", "Bea"), ("unique", "Bea")])
def test_join_takes_one_of_several_matches(match: str, name: str) -> None:
    assert joined(match=match) == [(1, 7, "Ada"), (2, 8, name)]


@pytest.mark.parametrize(("match", "at"), [("first", 0), ("last", 149_000)])
def test_join_takes_the_first_or_last_of_many_whatever_the_threads_do(match: str, at: int) -> None:
    lookup = [{"k": number % 1_000, "at": number} for number in range(150_000)]
    main = [{"k": number} for number in range(1_000)]
    ran = run(
        "join", {"on": ["k"], "match": match, "keep_order": True}, {"main": main, "lookup": lookup}, connected=["main"]
    )
    assert ran.main == [{"k": number, "at": at + number} for number in range(1_000)]


def test_join_can_keep_the_order_of_main() -> None:
    main = [{"k": (number * 7919) % 100_000, "at": number} for number in range(150_000)]
    lookup = [{"k": number, "n": number} for number in range(100_000)]
    ran = run(
        "join", {"on": ["k"], "how": "left", "keep_order": True}, {"main": main, "lookup": lookup}, connected=["main"]
    )
    assert [row["at"] for row in ran.main] == list(range(150_000))


def test_join_rejects_rows_of_main_without_a_match() -> None:
    ran = run("join", {"on": {"customer": "id"}}, {"main": ORDERS, "lookup": CUSTOMERS})
    assert [row["id"] for row in ran.outputs["reject"]] == [3, 4]
    assert ran.outputs["reject"][0] == ORDERS[2] | {
        "error_code": "NO_MATCH",
        "error_message": "no row of the lookup matches by `customer`",
    }
    left = run("join", {"on": {"customer": "id"}, "how": "left"}, {"main": ORDERS, "lookup": CUSTOMERS})
    assert left.outputs["reject"] == []


def test_join_has_key_columns_once_and_a_suffix_for_names_that_clash() -> None:
    main, lookup = [{"k": 1, "v": "m", "v_lookup": "x"}], [{"k": 1, "V": "l", "w": "l"}]
    (row,) = run("join", {"on": ["K"]}, {"main": main, "lookup": lookup}).main
    assert list(row.items()) == [("k", 1), ("v", "m"), ("v_lookup", "x"), ("V_lookup_lookup", "l"), ("w", "l")]
    (row,) = run("join", {"on": ["k"], "suffix": "_right"}, {"main": main, "lookup": lookup}).main
    assert row["V_right"] == "l"


def test_join_by_several_columns() -> None:
    main = [{"a": 1, "b": 1, "x": "p"}, {"a": 1, "b": 2, "x": "q"}]
    lookup = [{"a": 1, "b": 2, "y": "r"}]
    assert run("join", {"on": ["a", "b"]}, {"main": main, "lookup": lookup}).main == [
        {"a": 1, "b": 2, "x": "q", "y": "r"}
    ]


def test_join_with_an_empty_lookup() -> None:
    ran = run("join", {"on": {"customer": "id"}}, {"main": ORDERS, "lookup": []}, schemas={"lookup": SHAPES["lookup"]})
    assert ran.main == []
    assert len(ran.outputs["reject"]) == 4


@pytest.mark.parametrize(
    ("params", "path", "words"),
    [
        ({"on": ["nmae"]}, ("on", 0), "`main` has no column `nmae`"),
        ({"on": {"customer": "ID2"}}, ("on", "customer"), "`lookup` has no column `ID2`"),
        (
            {"on": {"customer": "name"}},
            ("on", "customer"),
            "`customer` of `main` is BIGINT, and `name` of `lookup` is VARCHAR",
        ),
        ({"on": []}, ("on",), ""),
        ({"on": {"customer": "id"}, "how": "outer"}, ("how",), "`outer`"),
        ({"on": {"customer": "id"}, "how": "full", "keep_order": True}, ("keep_order",), "not in `main`"),
    ],
)
def test_join_says_what_is_wrong_and_where(params: dict[str, Any], path: tuple[Any, ...], words: str) -> None:
    assert words in next(one for one in mistakes("join", params, SHAPES) if one.path == path).message


def test_join_knows_its_columns_and_where_they_come_from() -> None:
    found = infer("join", {"on": {"customer": "id"}, "match": "first"}, SHAPES, ["main"])
    assert found.outputs["main"] == (*SHAPES["main"], *schema(name="VARCHAR"))
    assert found.lineage["main"]["name"] == (("lookup", "name"),)


MAP: dict[str, Any] = {
    "lookups": {"lookup_c": {"on": {"id": "input.customer"}, "how": "inner", "match": "first"}},
    "variables": {"gross": "amount * 2", "label": "name || ':' || gross"},
    "outputs": {
        "large": {"columns": {"id": None, "label": "var.label"}, "where": "gross > 100"},
        "all": {"columns": ["input.id", "name"]},
        "lost": {"reject": "lookup", "columns": ["id"]},
    },
}


def mapped(params: Mapping[str, Any], **more: Any) -> dict[str, list[dict[str, Any]]]:
    return run("map", {"keep_order": True, **params}, {"input": ORDERS, "lookup_c": CUSTOMERS}, **more).outputs


def test_map_looks_up_computes_and_routes() -> None:
    assert mapped(MAP) == {
        "large": [{"id": 1, "label": "Ada:500"}],
        "all": [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}],
        "lost": [
            {"id": 3, "error_code": "NO_MATCH", "error_message": "no row of `lookup_c` matches"},
            {"id": 4, "error_code": "NO_MATCH", "error_message": "no row of `lookup_c` matches"},
        ],
    }


@pytest.mark.parametrize("port", ["large", "all", "lost"])
def test_map_gives_the_same_rows_on_a_port_alone(port: str) -> None:
    assert mapped(MAP, connected=[port])[port] == mapped(MAP)[port]


def test_map_rejects_what_no_output_takes() -> None:
    params = {
        "lookups": {"lookup_c": {"on": {"id": "customer"}, "how": "inner"}},
        "outputs": {
            "main": {"where": "amount > 100"},
            "rest": {"columns": ["id"], "reject": True},
            "few": {"columns": ["id"], "reject": "filter"},
        },
    }
    outputs = mapped(params)
    assert [row["id"] for row in outputs["main"]] == [1]
    assert [(row["id"], row["error_code"]) for row in outputs["rest"]] == [
        (2, "FILTER"),
        (3, "NO_MATCH"),
        (4, "NO_MATCH"),
    ]
    assert [(row["id"], row["error_message"]) for row in outputs["few"]] == [(2, "no output takes this row")]


def test_map_without_outputs_has_all_columns_on_main() -> None:
    outputs = mapped({"lookups": {"lookup_c": {"on": {"id": "customer"}}}})
    assert outputs["main"][1] == {"id": 2, "customer": 8, "amount": 40, "name": "Bea"}
    assert outputs["main"][3] == {"id": 4, "customer": None, "amount": 5, "name": None}


def test_map_gives_all_matches_when_asked() -> None:
    outputs = mapped({"lookups": {"lookup_c": {"on": {"id": "customer"}, "match": "all", "how": "inner"}}})
    assert sorted(row["name"] for row in outputs["main"]) == ["Ada", "Bea", "Bob"]


def test_a_lookup_of_map_may_use_an_earlier_one() -> None:
    countries = [{"code": "UK", "title": "Kingdom"}]
    people = [{"id": 7, "code": "UK"}]
    params = {
        "lookups": {"lookup_p": {"on": {"id": "customer"}}, "lookup_c": {"on": {"code": "lookup_p.code"}}},
        "outputs": {"main": {"columns": ["id", "title"]}},
        "keep_order": True,
    }
    ran = run("map", params, {"input": ORDERS[:2], "lookup_p": people, "lookup_c": countries})
    assert ran.main == [{"id": 1, "title": "Kingdom"}, {"id": 2, "title": None}]


def test_variables_of_map_throw_dice_once() -> None:
    params = {
        "variables": {"d": "random()"},
        "outputs": {"a": {"columns": {"id": "id", "d": "d"}}, "b": {"columns": {"e": "d"}}},
    }
    ran = run("map", params, {"input": [{"id": number} for number in range(50)]})
    assert [row["d"] for row in ran.outputs["a"]] == [row["e"] for row in ran.outputs["b"]]


def test_map_reads_structures_and_lambdas() -> None:
    rows = [{"who": {"name": "Ada"}, "list": [1, 2], "n": 10}]
    made = {"name": "who.name", "also": "input.who.name", "more": "list_transform(list, x -> x + n)"}
    assert run("map", {"outputs": {"main": {"columns": made}}}, {"input": rows}).main == [
        {"name": "Ada", "also": "Ada", "more": [11, 12]}
    ]


@cases("change, path, words, offset",
    [
        ({"variables": {"x": "amuont * 2"}}, ("variables", "x"), "no column `amuont`; did you mean `amount`", 0),
        ({"variables": {"x": "1 + lookup_c.nmae"}}, ("variables", "x"), "did you mean `lookup_c.name`", 4),
        ({"variables": {"x": "name + 1"}}, ("variables", "x"), "", 0),
        ({"variables": {"x": "y", "y": "1"}}, ("variables", "x"), "no column `y`", 0),
        ({"lookups": {"lookup_c": {"on": ["name"]}}}, ("lookups", "lookup_c", "on", 0), "`input` has no column `name`", 0),
        ({"lookups": {"lookup_c": {"on": {"name": "customer"}}}}, ("lookups", "lookup_c", "on", "name"), "is VARCHAR", None),
        ({"lookups": {"lookup_c": {"on": {"id": "nix"}}}}, ("lookups", "lookup_c", "on", "id"), "no column `nix`", 0),
        ({"outputs": {"main": {"where": "amount +"}}}, ("outputs", "main", "where"), "", None),
        ({"outputs": {"main": {"where": "amount"}}}, ("outputs", "main", "where"), "", None),
        ({"outputs": {"main": {"columns": ["nix"]}}}, ("outputs", "main", "columns", 0), "no column `nix`", 0),
        ({"outputs": {"main": {"reject": True}}}, ("outputs",), "every output is a reject output", None),
        ({"lookups": {"lookup_c": {"on": ["id"]}}, "outputs": {"a": {}, "b": {"reject": "lookup"}}}, ("outputs", "b", "reject"), "no lookup is `inner`", None),
    ],
)  # fmt: skip
def test_map_says_what_is_wrong_and_where(
    change: dict[str, Any], path: tuple[Any, ...], words: str, offset: int | None
) -> None:
    params = {"lookups": {"lookup_c": {"on": {"id": "customer"}, "how": "inner"}}} | change
    (mistake,) = mistakes("map", params, {"input": SHAPES["main"], "lookup_c": SHAPES["lookup"]})
    assert mistake.path == path
    assert words in mistake.message
    if offset is not None:
        assert mistake.offset == offset


def test_a_bare_name_that_two_lookups_have_must_be_qualified() -> None:
    params = {
        "lookups": {"lookup_a": {"on": {"id": "customer"}}, "lookup_b": {"on": {"id": "customer"}}},
        "outputs": {"main": {"columns": {"n": "name"}}},
    }
    inputs = {"input": SHAPES["main"], "lookup_a": SHAPES["lookup"], "lookup_b": SHAPES["lookup"]}
    (mistake,) = mistakes("map", params, inputs)
    assert mistake.message == "`name` is in several lookups: say `lookup_a.name` or `lookup_b.name`"


def test_a_bare_name_is_a_column_of_the_input_first_whichever_port_was_fed_first() -> None:
    params = {"lookups": {"lookup_c": {"on": {"id": "customer"}}}, "outputs": {"main": {"columns": ["id", "name"]}}}
    assert mistakes("map", params, {"lookup_c": SHAPES["lookup"], "input": SHAPES["main"]}) == []


def test_map_knows_its_columns_and_where_they_come_from() -> None:
    inputs = {"input": SHAPES["main"], "lookup_c": SHAPES["lookup"]}
    assert columns("map", MAP, inputs, "large") == {"id": "BIGINT", "label": "VARCHAR"}
    lineage = infer("map", MAP, inputs).lineage["large"]
    assert set(lineage["label"]) == {("lookup_c", "name"), ("input", "amount")}
    assert columns("map", MAP, inputs, "lost") == {"id": "BIGINT", "error_code": "VARCHAR", "error_message": "VARCHAR"}


CODES = [{"code": "DE", "name": "Germany"}, {"code": "FR", "name": "France"}]
SALES = [{"id": 1, "country": "DE"}, {"id": 2, "country": "XX"}]


def test_lookup_in_rows_of_its_own() -> None:
    ran = run("lookup", {"on": {"country": "code"}, "rows": CODES}, {"input": SALES}, connected=["main"])
    assert sorted(ran.main, key=str) == [
        {"id": 1, "country": "DE", "name": "Germany"},
        {"id": 2, "country": "XX", "name": None},
    ]


def test_lookup_rejects_when_it_is_inner() -> None:
    ran = run("lookup", {"on": {"country": "code"}, "rows": CODES, "how": "inner"}, {"input": SALES})
    assert [row["id"] for row in ran.main] == [1]
    assert [row["id"] for row in ran.outputs["reject"]] == [2]


@pytest.mark.parametrize("cache", [True, False])
def test_lookup_in_a_file(tmp_path: Path, cache: bool) -> None:
    (tmp_path / "codes.csv").write_text("code,name,id\nDE,Germany,49\nFR,France,33\n")
    params = {"on": {"country": "code"}, "path": "codes.csv", "cache": cache}
    ran = run("lookup", params, {"input": SALES[:1]}, folder=tmp_path, connected=["main"])
    assert ran.main == [{"id": 1, "country": "DE", "name": "Germany", "id_lookup": 49}]
    chosen = run(
        "lookup", params | {"columns": {"land": "NAME"}}, {"input": SALES[:1]}, folder=tmp_path, connected=["main"]
    )
    assert chosen.main == [{"id": 1, "country": "DE", "land": "Germany"}]


def test_lookup_in_a_database(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "codes.db")) as database, database:
        database.execute("CREATE TABLE codes (code TEXT, name TEXT)")
        database.execute("INSERT INTO codes VALUES ('DE', 'Germany')")
    params = {"on": {"country": "code"}, "connection": f"sqlite:///{tmp_path}/codes.db", "table": "codes"}
    ran = run("lookup", params, {"input": SALES[:1]}, folder=tmp_path, connected=["main"])
    assert ran.main == [{"id": 1, "country": "DE", "name": "Germany"}]


def test_lookup_reads_its_source_once_per_execution(tmp_path: Path) -> None:
    file = tmp_path / "codes.csv"
    file.write_text("code,name\nDE,Germany\n")
    params = REGISTRY.convert("lookup", {"on": {"country": "code"}, "path": "codes.csv"})

    async def whole() -> list[Any]:
        resources, engine, names = SharedResources(), DuckDbEngine(tmp_path / "rows"), list[Any]()
        for _ in range(2):
            session = engine.session()
            rows = session.load_mappings([SALES[:1]])
            call = make_call(
                session, tmp_path, inputs={"input": [rows]}, connected=frozenset({"main"}), resources=resources
            )
            await runner.run(REGISTRY.get("lookup"), params, call)
            names += [
                row
                for batch in session.rows("SELECT name FROM found", {"found": call.outputs["main"]})
                for row in batch
            ]
            session.close()
            file.write_text("code,name\nDE,Changed\n")
        await resources.close()
        engine.close()
        return names

    assert asyncio.run(whole()) == [("Germany",), ("Germany",)]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "exactly one of `rows`, `path`, `table` and `query`"),
        ({"rows": CODES, "path": "a.csv"}, "exactly one of `rows`, `path`, `table` and `query`"),
        ({"table": "codes"}, "`table` needs a database"),
        ({"path": "codes.dat"}, "cannot be told from its name"),
        ({"rows": []}, "at least one row"),
        ({"rows": [{"kode": "DE"}]}, "`lookup` has no column `code`; did you mean `kode`"),
        ({"rows": [{"code": 1}]}, "is VARCHAR"),
        ({"rows": CODES, "columns": ["nmae"]}, "`lookup` has no column `nmae`"),
    ],
)
def test_lookup_says_what_is_wrong(params: dict[str, Any], words: str) -> None:
    inputs = {"input": schema(id="BIGINT", country="VARCHAR")}
    (mistake,) = mistakes("lookup", {"on": {"country": "code"}, **params}, inputs)
    assert words in mistake.message


def test_lookup_in_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ComponentFailure) as failure:
        run("lookup", {"on": {"country": "code"}, "path": "none.csv"}, {"input": SALES}, folder=tmp_path)
    assert failure.value.kind == "missing_file"
    assert str(tmp_path / "none.csv") in failure.value.message
