"""Readers and writers on files that are not on this machine: the same rows as from a path."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

import duckdb
import obstore
import pytest
from backports import zstd

import penstock
from penstock.components.base import ComponentFailure
from tests.components.harness import Ran, columns, mistakes, run, schema
from tests.contracts.blobs_servers import BUCKET, S3, s3
from tests.tools.web_site import web_site

__all__ = ["s3"]

ROWS = [
    {"id": 1, "name": "Ann", "amount": 1.5},
    {"id": 2, "name": "Žofie, the “second”", "amount": None},
    {"id": 3, "name": "", "amount": -3.25},
]


class Lake:
    """A folder of the bucket, with the keychain entry that opens it."""

    def __init__(self, server: S3, folder: str) -> None:
        self.server, self.folder = server, folder
        self.credentials = {"lake": dict(server.options())}

    def url(self, name: str = "") -> str:
        return f"s3://{BUCKET}/{self.folder}/{name}"

    def put(self, name: str, data: bytes) -> str:
        obstore.put(self.server.bucket(), f"{self.folder}/{name}", data)
        return self.url(name)

    def get(self, name: str) -> bytes:
        return bytes(obstore.get(self.server.bucket(), f"{self.folder}/{name}").bytes())

    def names(self) -> list[str]:
        found = [one["path"] for page in obstore.list(self.server.bucket(), self.folder) for one in page]
        return sorted(name.removeprefix(f"{self.folder}/") for name in found)

    def run(self, type: str, params: dict[str, Any], *inputs: Any, **more: Any) -> Ran:
        given = {"input": inputs[0]} if inputs else {}
        return run(type, {"credentials": "lake", **params}, given, credentials=self.credentials, **more)


@pytest.fixture
def lake(s3: S3, request: pytest.FixtureRequest) -> Lake:
    return Lake(s3, request.node.name.replace("[", "-").replace("]", ""))


FORMATS = {
    "csv": ("read_csv", "write_csv", {}),
    "csv.gz": ("read_csv", "write_csv", {}),
    "json": ("read_json", "write_json", {}),
    "jsonl": ("read_json", "write_json", {}),
    "parquet": ("read_parquet", "write_parquet", {}),
    "arrow": ("read_arrow", "write_arrow", {}),
    "orc": ("read_orc", "write_orc", {}),
    "avro": ("read_avro", "write_avro", {}),
    "xlsx": ("read_excel", "write_excel", {}),
    "xml": ("read_xml", "write_xml", {"rows": "rows/row"}),
}


@pytest.mark.parametrize("ending", FORMATS)
def test_what_is_written_to_a_bucket_is_what_is_written_to_a_path(lake: Lake, tmp_path: Path, ending: str) -> None:
    reader, writer, more = FORMATS[ending]
    run(writer, {"path": str(tmp_path / f"rows.{ending}")}, {"input": ROWS})
    written = lake.run(writer, {"path": lake.url(f"rows.{ending}")}, ROWS)
    assert written.main == ROWS
    here = run(reader, {"path": str(tmp_path / f"rows.{ending}"), **more})
    there = lake.run(reader, {"path": lake.url(f"rows.{ending}"), **more})
    assert there.main == here.main
    assert there.schemas == here.schemas
    assert len(here.main) == 3


def test_text_of_fixed_width_and_plain_files_lie_in_a_bucket_as_well(lake: Lake) -> None:
    columns = [{"name": "id", "width": 4}, {"name": "name", "width": 6}]
    rows = [{"id": 1, "name": "Ann"}, {"id": 22, "name": "Bob"}]
    lake.run("write_positional", {"path": lake.url("rows.txt"), "columns": columns}, rows)
    assert lake.run("read_positional", {"path": lake.url("rows.txt"), "columns": columns}).main == rows
    lake.run("write_file", {"path": lake.url("note.txt"), "content": "one\n"})
    result = lake.run("write_file", {"path": lake.url("note.txt"), "content": "two\n", "append": True}).result
    assert result == {"path": lake.url("note.txt"), "bytes": 4}
    assert lake.get("note.txt") == b"one\ntwo\n"
    lines = lake.run("read_file", {"path": lake.url("*.txt"), "lines": True}).main
    assert lines[:2] == [
        {"path": lake.url("note.txt"), "line": 1, "text": "one"},
        {"path": lake.url("note.txt"), "line": 2, "text": "two"},
    ]


def test_rows_of_a_pattern_come_in_the_order_of_names_and_say_which_file_they_are_from(lake: Lake) -> None:
    for number in (3, 1, 2):
        lake.put(f"2024-0{number}/rows.csv", f"n\n{number}\n".encode())
        lake.put(f"2024-0{number}/rows.json", f'[{{"n": {number}}}]'.encode())
    lake.put("2024-01/.hidden/rows.csv", b"n\n9\n")
    lake.put("2025/rows.csv", b"n\n8\n")
    for ending, reader in (("csv", "read_csv"), ("json", "read_json")):
        found = lake.run(reader, {"path": lake.url(f"2024-*/rows.{ending}"), "file_column": "file"}).main
        assert found == [{"n": n, "file": lake.url(f"2024-0{n}/rows.{ending}")} for n in (1, 2, 3)]
    assert [row["n"] for row in lake.run("read_csv", {"path": lake.url("**/*.csv")}).main] == [1, 2, 3, 8]
    with pytest.raises(ComponentFailure, match="no file matches `s3://tests/") as failure:
        lake.run("read_csv", {"path": lake.url("2023-*/rows.csv")})
    assert failure.value.kind == "missing_file"


def test_a_refused_line_is_named_by_its_url_and_its_line(lake: Lake) -> None:
    url = lake.put("bad.csv", b'id,note\n1,"two\nlines"\nx,y\n2,z\n')
    ran = lake.run("read_csv", {"path": url, "types": {"id": "integer"}})
    assert [(row["file"], row["line"], row["column"]) for row in ran.outputs["reject"]] == [(url, 4, "id")]
    with pytest.raises(ComponentFailure) as failure:
        lake.run("read_csv", {"path": url, "types": {"id": "integer"}}, connected=["main"])
    assert f"`{url}`, line 4, column `id`" in failure.value.message
    assert failure.value.detail["file"] == url
    url = lake.put("bad.jsonl", b'{"id": 1}\nnot json\n')
    assert [(row["file"], row["line"]) for row in lake.run("read_json", {"path": url}).outputs["reject"]] == [(url, 2)]


def test_files_of_a_bucket_are_listed_iterated_and_asked_about(lake: Lake) -> None:
    for name in ("in/a.csv", "in/b.csv", "in/deep/c.csv", "in/note.txt"):
        lake.put(name, b"n\n1\n")
    found = lake.run("file_list", {"path": lake.url("in"), "pattern": "*.csv"}).main
    assert [(row["path"], row["name"], row["stem"], row["extension"], row["size"]) for row in found] == [
        (lake.url("in/a.csv"), "a.csv", "a", "csv", 4),
        (lake.url("in/b.csv"), "b.csv", "b", "csv", 4),
    ]
    deep = lake.run(
        "iterate_files", {"path": lake.url("in"), "pattern": "*.csv", "recursive": True, "order": "descending"}
    )
    assert [one["name"] for one in deep.result] == ["c.csv", "b.csv", "a.csv"]
    folders = lake.run("file_list", {"path": lake.url("in"), "what": "folders"}).main
    assert [(row["name"], row["type"]) for row in folders] == [("deep", "folder")]
    assert lake.run("file_exists", {"path": lake.url("in/a.csv")}).result == {
        "exists": True,
        "path": lake.url("in/a.csv"),
    }
    assert lake.run("file_exists", {"path": lake.url("in/z.csv")}).after["EXISTS"] is False
    assert lake.run("file_properties", {"path": lake.url("in/a.csv")}).result["size"] == 4
    same = lake.run("file_compare", {"path": lake.url("in/a.csv"), "other": lake.url("in/b.csv")}).result
    assert same == {"equal": True, "difference": None, "path": lake.url("in/a.csv"), "other": lake.url("in/b.csv")}
    checked = lake.run("file_checksum", {"path": lake.url("in/a.csv"), "algorithm": "md5"}).result
    digest = hashlib.md5(b"n\n1\n").hexdigest()
    assert checked == {"checksum": digest, "algorithm": "md5", "size": 4, "path": lake.url("in/a.csv")}
    with pytest.raises(ComponentFailure, match="there is no folder") as failure:
        lake.run("file_list", {"path": lake.url("nowhere")})
    assert failure.value.kind == "missing_file"
    assert lake.run("file_list", {"path": lake.url("nowhere"), "missing_ok": True}).main == []


def test_files_go_from_place_to_place(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.txt").write_text("two")
    here = {"path": str(tmp_path), "pattern": "*.txt", "recursive": True}
    sent = lake.run("file_copy", {**here, "to": lake.url("in")}).result
    assert sent["files"][1] == {"path": str(tmp_path / "deep/b.txt"), "to": lake.url("in/deep/b.txt")}
    assert lake.names() == ["in/a.txt", "in/deep/b.txt"]
    lake.run("file_move", {"path": lake.url("in/a.txt"), "to": lake.url("done/")})
    assert lake.names() == ["done/a.txt", "in/deep/b.txt"]
    lake.run("file_move", {"path": lake.url("done/a.txt"), "to": str(tmp_path / "back.txt")})
    assert (tmp_path / "back.txt").read_text() == "one"
    with pytest.raises(ComponentFailure) as failure:
        lake.run("file_copy", {"path": str(tmp_path / "a.txt"), "to": lake.url("in/deep/b.txt"), "overwrite": False})
    assert failure.value.kind == "file_exists"
    with pytest.raises(ComponentFailure) as failure:
        lake.run("file_delete", {"path": lake.url("in")})
    assert failure.value.kind == "file"
    assert lake.run("file_delete", {"path": lake.url("in"), "recursive": True}).result["count"] == 1
    assert lake.names() == []
    with pytest.raises(ComponentFailure, match="there is no file `s3://") as failure:
        lake.run("file_move", {"path": lake.url("in/a.txt"), "to": lake.url("x")})
    assert failure.value.kind == "missing_file"


def test_a_lookup_and_a_query_read_only_the_parts_of_parquet_that_they_need(tmp_path: Path) -> None:
    rows = [{"id": n, "text": f"{n:0100d}", "more": n * 7919 % 1_000_003} for n in range(60_000)]
    run(
        "write_parquet",
        {"path": str(tmp_path / "x.parquet"), "row_group_size": 2048, "compression": "uncompressed"},
        {"input": rows},
    )
    data = (tmp_path / "x.parquet").read_bytes()
    with web_site({"x.parquet": data}) as site:
        path = site.url("x.parquet")
        found = run("read_parquet", {"path": path, "columns": ["id"]})
        assert [row["id"] for row in found.main] == list(range(60_000))
        assert site.sent < len(data) / 2
        joined = run("lookup", {"on": ["id"], "path": path}, {"input": [{"id": 5}]}).main
        assert joined == [{"id": 5, "text": f"{5:0100d}", "more": 5 * 7919}]
    with web_site({"x.parquet": data}, has_parts=False) as site:
        assert run("read_parquet", {"path": site.url("x.parquet")}).main == rows
    with web_site({"x.parquet": data}, faults=["", "500", "short", "", "reset"]) as site:
        assert run("read_parquet", {"path": site.url("x.parquet")}).main == rows


def test_what_fails_while_a_query_reads_is_said_as_what_it_is(tmp_path: Path) -> None:
    run("write_parquet", {"path": str(tmp_path / "x.parquet")}, {"input": ROWS})
    with web_site({"x.parquet": (tmp_path / "x.parquet").read_bytes()}, faults=["", "403"]) as site:
        with pytest.raises(ComponentFailure, match="the server says 403") as failure:
            run("read_parquet", {"path": site.url("x.parquet")})
        assert (failure.value.kind, failure.value.retryable) == ("permission", False)
    with web_site({"x.parquet": b"PAR1 and no more"}) as site:
        with pytest.raises(ComponentFailure) as failure:
            run("read_parquet", {"path": site.url("x.parquet")})
        assert failure.value.kind == "format"


def test_a_job_is_checked_without_the_network() -> None:
    assert mistakes("read_csv", {"path": "s3://no-such-bucket/x.csv", "credentials": "lake"}) == []
    assert columns("read_parquet", {"path": "https://no-such-host.invalid/x.parquet"}) is None
    assert mistakes("write_csv", {"path": "sftp://no-such-host.invalid/x.csv"}, {"input": None}) == []


def test_a_writer_that_fails_sends_nothing(lake: Lake) -> None:
    lake.put("rows.csv", b"before")
    with pytest.raises(ComponentFailure):
        lake.run("write_csv", {"path": lake.url("rows.csv"), "encoding": "ascii"}, ROWS)
    assert lake.get("rows.csv") == b"before"
    with web_site({}) as site, pytest.raises(ComponentFailure, match="cannot be written to"):
        run("write_csv", {"path": site.url("rows.csv")}, {"input": ROWS})


PACKED = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress, ".zst": zstd.decompress}


@pytest.mark.parametrize("ending", PACKED)
def test_files_are_packed_and_unpacked_by_their_ending(lake: Lake, tmp_path: Path, ending: str) -> None:
    rows = [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Žofie"}]
    columns = [{"name": "id", "width": 4}, {"name": "name", "width": 6}]
    kinds: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
        ("read_csv", "write_csv", "x.csv", {}, {}),
        ("read_csv", "write_csv", "utf16.csv", {"encoding": "utf-16"}, {"encoding": "utf-16"}),
        ("read_json", "write_json", "x.json", {}, {}),
        ("read_json", "write_json", "x.jsonl", {}, {}),
        ("read_xml", "write_xml", "x.xml", {"rows": "rows/row"}, {}),
        ("read_positional", "write_positional", "x.txt", {"columns": columns}, {"columns": columns}),
    ]
    for reader, writer, name, to_read, to_write in kinds:
        path = tmp_path / f"{name}{ending}"
        run(writer, {"path": str(path), **to_write}, {"input": rows})
        assert b"Ann" in PACKED[ending](path.read_bytes()).replace(b"\0", b""), path
        assert run(reader, {"path": str(path), **to_read}).main == rows, path
        url = lake.put(f"{name}{ending}", path.read_bytes())
        assert lake.run(reader, {"path": url, **to_read}).main == rows, url
    found = run("read_csv", {"path": str(tmp_path / f"x.csv{ending}"), "file_column": "file"}).main
    assert {row["file"] for row in found} == {str(tmp_path / f"x.csv{ending}")}
    lines = run("read_file", {"path": str(tmp_path / f"x.jsonl{ending}"), "lines": True}).main
    assert [row["line"] for row in lines] == [1, 2]


@pytest.mark.parametrize("ending", PACKED)
def test_a_reject_of_a_packed_file_is_on_its_line(tmp_path: Path, ending: str) -> None:
    text = b'id,note\n1,"two\nlines"\nx,y\n'
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}[ending]
    path = tmp_path / f"bad.csv{ending}"
    path.write_bytes(pack(text))
    refused = run("read_csv", {"path": str(path), "types": {"id": "integer"}}).outputs["reject"]
    assert [(row["file"], row["line"]) for row in refused] == [(str(path), 4)]
    path.write_bytes(pack(text * 1_000)[:-20])
    with pytest.raises(ComponentFailure):
        run("read_csv", {"path": str(path), "columns": ["id"]}, connected=["main"])
    path.write_bytes(b"this is not packed")
    with pytest.raises(ComponentFailure):
        run("read_file", {"path": str(path), "lines": True})


SALES = [
    {"id": 1, "country": "DE", "year": 2023},
    {"id": 2, "country": "DE", "year": 2024},
    {"id": 3, "country": "a/b c", "year": 2024},
    {"id": 4, "country": None, "year": 2024},
]


@pytest.mark.parametrize("where", ["here", "bucket"])
def test_a_data_set_with_partitions_is_written_and_read(lake: Lake, tmp_path: Path, where: str) -> None:
    root = str(tmp_path / "sales") if where == "here" else lake.url("sales")

    def ids(rows: list[dict[str, Any]]) -> list[int]:
        return sorted(row["id"] for row in rows)

    by = {"path": root, "partition_by": ["year", "country"]}
    written = lake.run("write_parquet", by, SALES)
    assert written.main == SALES
    read = {"path": root, "partitions": True}
    found = sorted(lake.run("read_parquet", read).main, key=lambda row: row["id"])
    assert [{name: row[name] for name in ("id", "country", "year")} for row in found] == SALES
    one = lake.run("read_parquet", {"path": f"{root}/year=2024/*/*.parquet", "partitions": True}).main
    assert ids(one) == [2, 3, 4]
    lake.run("write_parquet", by, [{"id": 9, "country": "DE", "year": 2024}], idempotency_key="another run")
    assert ids(lake.run("read_parquet", read).main) == [1, 3, 4, 9]
    lake.run(
        "write_parquet", {**by, "append": True}, [{"id": 10, "country": "DE", "year": 2024}], idempotency_key="third"
    )
    assert ids(lake.run("read_parquet", read).main) == [1, 3, 4, 9, 10]


def test_what_cannot_be_a_partition_is_said_before_the_run() -> None:
    known = {"input": schema(a="BIGINT", b="BIGINT")}
    for params, place in (
        ({"append": True}, "append"),
        ({"partition_by": ["c"]}, "partition_by"),
        ({"partition_by": ["a", "b"]}, "partition_by"),
    ):
        (mistake,) = mistakes("write_parquet", {"path": "x", **params}, known)
        assert mistake.path == (place,)


TYPED = "select 1::bigint as id, 2::smallint as small, 1.5::double as d, 12.34::decimal(10,2) as money, 'x' as t, 'ab'::blob as b, "
TYPED += "date '2024-02-29' as day, timestamp '2024-02-29 12:30:00.123456' as at, timestamptz '2024-02-29 12:30:00+00' as zoned, "
TYPED += "[1, 2]::bigint[] as many, {'x': 1::bigint, 'y': 'z'} as part, true as yes, '7f3c1f0e-0d2b-4c55-9f3b-0a1b2c3d4e5f'::uuid as key"


def test_types_survive_avro_and_orc(tmp_path: Path) -> None:
    source = tmp_path / "typed.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (({TYPED}) UNION ALL SELECT {', '.join(['NULL'] * 13)}) TO '{source}'")
    typed = run("read_parquet", {"path": str(source)})
    run(
        "write_avro",
        {"path": str(tmp_path / "x.avro")},
        {"input": typed.main},
        schemas={"input": typed.schemas["main"]},
    )
    back = run("read_avro", {"path": str(tmp_path / "x.avro")})
    assert back.main == typed.main
    types = {column.name: column.type for column in back.schemas["main"]}
    wanted = {column.name: column.type for column in typed.schemas["main"]}
    assert types == {**wanted, "small": "INTEGER"}
    plain = [column for column in typed.schemas["main"] if column.name not in ("key", "b")]
    rows = [{column.name: row[column.name] for column in plain} for row in typed.main]
    run("write_orc", {"path": str(tmp_path / "x.orc")}, {"input": rows}, schemas={"input": tuple(plain)})
    assert run("read_orc", {"path": str(tmp_path / "x.orc")}).main == rows
    assert run("read_orc", {"path": str(tmp_path / "x.orc"), "columns": ["t", "id"]}).main[0] == {"t": "x", "id": 1}


def test_what_is_no_avro_or_orc_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"neither")
    for reader in ("read_avro", "read_orc"):
        with pytest.raises(ComponentFailure) as failure:
            run(reader, {"path": str(tmp_path / "x")})
        assert failure.value.kind == "format"
    with pytest.raises(ComponentFailure, match="Avro takes no column `a b`"):
        run("write_avro", {"path": str(tmp_path / "y")}, {"input": [{"a b": 1}]})
    run("write_avro", {"path": str(tmp_path / "y.avro")}, {"input": [{"n": n} for n in range(20_000)]})
    (tmp_path / "y.avro").write_bytes((tmp_path / "y.avro").read_bytes()[:-100])
    with pytest.raises(ComponentFailure, match="cut off or damaged"):
        run("read_avro", {"path": str(tmp_path / "y.avro")})
    with pytest.raises(ComponentFailure, match="has no column `m`"):
        run("read_avro", {"path": str(tmp_path / "y.avro"), "columns": ["m"]})


JOB = """
apiVersion: penstock/v1
kind: Job
metadata: {{ name: anywhere }}
components:
  - name: read
    type: read_parquet
    params: {{ path: "{source}" }}
  - name: few
    type: filter
    params: {{ where: "id >= 59900" }}
  - name: parts
    type: derive
    params: {{ columns: {{ half: id / 2 }} }}
  - name: slim
    type: select
    params: {{ columns: [id, half] }}
  - name: write
    type: write_csv
    params: {{ path: "{target}", credentials: lake }}
connections:
  data: |
    read -> few
    few -> parts
    parts -> slim
    slim -> write
"""


def test_a_fused_query_reads_the_parts_it_needs_and_the_job_sends_the_rows(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": n, "text": f"{n:0100d}"} for n in range(60_000)]
    run("write_parquet", {"path": str(tmp_path / "x.parquet"), "compression": "uncompressed"}, {"input": rows})
    data = (tmp_path / "x.parquet").read_bytes()
    monkeypatch.setenv("PENSTOCK_LAKE", json.dumps(lake.credentials["lake"]))
    with web_site({"x.parquet": data}) as site:
        (tmp_path / "job.yaml").write_text(JOB.format(source=site.url("x.parquet"), target=lake.url("out.csv")))
        done = penstock.run(tmp_path / "job.yaml")
        assert done.status == "completed", done.error
        assert site.sent < len(data) / 2
    assert lake.get("out.csv").decode().splitlines()[:2] == ["id,half", "59900,29950.0"]
    assert len(lake.get("out.csv").splitlines()) == 101
    assert not list(tmp_path.rglob("mirror-*"))
