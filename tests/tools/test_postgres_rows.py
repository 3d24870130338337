"""The postgres tool, against a real PostgreSQL: many rows in and out, by upsert and COPY."""

from __future__ import annotations

from pathlib import Path

from penstock.ports.blobs import ResultRef
from penstock.tools.sql.postgres import PostgresTool
from tests.servers import postgres_server, postgres_url
from tests.tools.asking import Do, do, failed
from tests.tools.support import make_call, run

__all__ = ["do", "postgres_server", "postgres_url"]


def test_an_upsert_can_be_run_again(do: Do) -> None:
    do(command="CREATE TABLE t (id int PRIMARY KEY, \"Na me\" text, extra jsonb, kept text DEFAULT 'old')")
    rows = [{"id": 1, "Na me": "a", "extra": {"x": 1}}, {"id": 2, "Na me": "b"}, {"id": 1, "Na me": "c"}]
    for _ in range(2):
        assert do(upsert={"table": "t", "keys": ["id"], "rows": rows})["row_count"] == 3
    assert do(query="SELECT * FROM t ORDER BY id")["rows"] == [
        {"id": 1, "Na me": "c", "extra": None, "kept": "old"},
        {"id": 2, "Na me": "b", "extra": None, "kept": "old"},
    ]
    do(upsert={"table": "t", "keys": ["id"], "update": [], "rows": [{"id": 1, "Na me": "no"}, {"id": 3}]})
    assert [row["Na me"] for row in do(query="SELECT * FROM t ORDER BY id")["rows"]] == ["c", "b", None]
    assert do(upsert={"table": "t", "keys": ["id"], "rows": []})["row_count"] == 0


def test_a_name_in_an_upsert_is_never_read_as_sql(do: Do) -> None:
    do(command="CREATE TABLE t (id int PRIMARY KEY)")
    evil = 'id") VALUES (1); DROP TABLE t; --'
    failure = failed(do, upsert={"table": "t", "keys": ["id"], "rows": [{"id": 1, evil: 2}]})
    assert failure.kind == "not_found"
    assert do(query="SELECT * FROM t")["rows"] == []


def test_rows_of_a_stored_result_can_be_upserted(postgres_url: str, tmp_path: Path, do: Do) -> None:
    do(command="CREATE TABLE t (id int PRIMARY KEY)")
    call = make_call(tmp_path)
    ref = call.blobs.put([b'[{"id": 5}]'])
    run(PostgresTool(), {"url": postgres_url, "upsert": {"table": "t", "keys": ["id"], "rows": ref.as_json()}}, call)
    assert do(query="SELECT * FROM t")["rows"] == [{"id": 5}]


def test_copy_takes_rows_and_files_in_and_out(do: Do, tmp_path: Path) -> None:
    do(command='CREATE TABLE t (id int, "a,b" text, j jsonb)')
    rows = [{"id": 1, "a,b": 'x,"y"\n', "j": {"k": 1}}, {"id": 2, "a,b": None, "j": None}]
    assert do(copy={"table": "t", "from": rows})["row_count"] == 2
    out = do(copy={"table": "t", "to": "out/t.csv"})
    assert (out["row_count"], out["columns"], out["file"]) == (2, ["id", "a,b", "j"], str(tmp_path / "out" / "t.csv"))
    # The header says which column is which, in whatever order the file has them.
    swapped = tmp_path / "swapped.csv"
    swapped.write_text('\ufeff"a,b",id\nnew,3\n', encoding="utf-8")
    result = do(
        commands=[
            "TRUNCATE t",
            {"copy": {"table": "t", "from": "out/t.csv"}},
            {"copy": {"table": "t", "from": "swapped.csv"}},
            "SELECT * FROM t ORDER BY id",
        ]
    )
    assert result["command_1"]["row_count"] == 2
    assert result["rows"] == [*rows, {"id": 3, "a,b": "new", "j": None}]
    assert list(tmp_path.glob("**/.copy-*")) == []


def test_copy_out_goes_to_the_result_store_or_to_rows(postgres_url: str, tmp_path: Path) -> None:
    call = make_call(tmp_path)
    copy = {"query": "SELECT n, :word AS word FROM generate_series(1, 2) n WHERE n > :n"}
    params = {"word": "it's", "n": 1}
    task = {"url": postgres_url, "copy": copy, "params": params}
    result = run(PostgresTool(), task, call).result
    assert call.blobs.get(ResultRef.from_json(result["blob"])) == b"n,word\n2,it's\n"
    assert (result["row_count"], result["columns"]) == (1, ["n", "word"])
    rows = run(PostgresTool(), {**task, "copy": {**copy, "to": "rows"}}, make_call(tmp_path)).result
    assert rows["rows"] == [{"n": 2, "word": "it's"}]


def test_a_failed_copy_leaves_neither_rows_nor_files(do: Do, tmp_path: Path) -> None:
    do(command="CREATE TABLE t (a int)")
    (tmp_path / "bad.csv").write_text("a\n1\nx\n")
    failure = failed(do, copy={"table": "t", "from": "bad.csv"})
    assert failure.helpers["pg"]["code"] == "22P02"
    assert do(query="SELECT * FROM t")["rows"] == []
    assert failed(do, copy={"query": "SELECT 1 / 0", "to": "out.csv"}).helpers["pg"]["code"] == "22012"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".blobs", "bad.csv"]
    assert failed(do, copy={"table": "t", "from": "missing.csv"}).kind == "not_found"
