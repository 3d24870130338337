"""Tables of a lake: Delta and Iceberg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.tools.addresses import PUBLIC_ONLY
from penstock.tools.base import Settings
from tests.components.harness import mistakes, run, schema
from tests.components.io.test_files_anywhere import Lake, lake
from tests.contracts.blobs_servers import s3

__all__ = ["lake", "s3"]

ROWS = [{"id": 1, "city": "Ulm"}, {"id": 2, "city": "Kiel"}, {"id": 3, "city": None}]


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.parametrize("where", ["here", "bucket"])
def test_a_delta_table_is_made_added_to_and_read(lake: Lake, tmp_path: Path, where: str) -> None:
    path = str(tmp_path / "deep" / "table") if where == "here" else lake.url("table")
    assert lake.run("write_delta", {"path": path, "partition_by": ["city"]}, ROWS).result == {"version": 0}
    assert by_id(lake.run("read_delta", {"path": path}).main) == ROWS
    more = [{"id": 4, "city": "Ulm"}]
    assert lake.run("write_delta", {"path": path}, more, idempotency_key="second").result == {"version": 1}
    found = lake.run("read_delta", {"path": path, "columns": ["city", "id"], "where": "city = 'Ulm'"})
    assert by_id(found.main) == [{"city": "Ulm", "id": 1}, {"city": "Ulm", "id": 4}]
    assert found.after["VERSION"] == 1
    assert by_id(lake.run("read_delta", {"path": path, "version": 0}).main) == ROWS
    lake.run("write_delta", {"path": path, "mode": "overwrite"}, more, idempotency_key="third")
    assert lake.run("read_delta", {"path": path}).main == more


def test_a_run_that_is_resumed_appends_once(tmp_path: Path) -> None:
    for _ in range(2):
        run("write_delta", {"path": str(tmp_path / "t")}, {"input": ROWS})
        run("write_iceberg", {"catalog": catalog(tmp_path), "table": "shop.orders"}, {"input": ROWS})
    assert by_id(run("read_delta", {"path": str(tmp_path / "t")}).main) == ROWS
    assert by_id(run("read_iceberg", {"catalog": catalog(tmp_path), "table": "shop.orders"}).main) == ROWS


def test_what_does_not_fit_a_delta_table_is_said(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with pytest.raises(ComponentFailure, match="there is no Delta table") as failure:
        run("read_delta", {"path": path})
    assert failure.value.kind == "missing_file"
    run("write_delta", {"path": path}, {"input": ROWS})
    with pytest.raises(ComponentFailure) as failure:
        run("write_delta", {"path": path}, {"input": [{"other": 1}]}, idempotency_key="other")
    assert failure.value.kind == "columns"
    wider = [{"id": 9, "city": "Bonn", "new": 1.5}]
    run("write_delta", {"path": path, "new_columns": True}, {"input": wider}, idempotency_key="wider")
    assert by_id(run("read_delta", {"path": path}).main)[-1] == wider[0]
    with pytest.raises(ComponentFailure, match="has no column `towns`"):
        run("read_delta", {"path": path, "columns": ["towns"]})
    with pytest.raises(ComponentFailure) as failure:
        run("read_delta", {"path": "https://host/table"})
    assert failure.value.kind == "unsupported_scheme"
    (mistake,) = mistakes("write_delta", {"path": "t", "partition_by": ["x"]}, {"input": schema(a="BIGINT")})
    assert mistake.path == ("partition_by",)


def catalog(folder: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def test_an_iceberg_table_is_made_added_to_and_read(tmp_path: Path) -> None:
    known = {"catalog": "lake", "table": "shop.orders"}
    entry = {"lake": catalog(tmp_path)}
    first = run("write_iceberg", known, {"input": ROWS}, credentials=entry)
    more = [{"id": 4, "city": "Ulm"}]
    run("write_iceberg", known, {"input": more}, credentials=entry, idempotency_key="second")
    assert by_id(run("read_iceberg", known, credentials=entry).main) == [*ROWS, *more]
    found = run("read_iceberg", {**known, "columns": ["city", "id"], "where": "city = 'Ulm'"}, credentials=entry).main
    assert by_id(found) == [{"city": "Ulm", "id": 1}, {"city": "Ulm", "id": 4}]
    earlier = {**known, "snapshot": first.result["snapshot"]}
    assert by_id(run("read_iceberg", earlier, credentials=entry).main) == ROWS
    run("write_iceberg", {**known, "mode": "overwrite"}, {"input": more}, credentials=entry, idempotency_key="third")
    assert run("read_iceberg", known, credentials=entry).main == more


def test_what_does_not_fit_an_iceberg_table_is_said(tmp_path: Path) -> None:
    known = {"catalog": catalog(tmp_path), "table": "shop.orders"}
    with pytest.raises(ComponentFailure, match=r"no table `shop\.orders`") as failure:
        run("read_iceberg", known)
    assert failure.value.kind == "missing_file"
    with pytest.raises(ComponentFailure) as failure:
        run("write_iceberg", {**known, "create": False}, {"input": ROWS})
    assert failure.value.kind == "missing_file"
    run("write_iceberg", known, {"input": ROWS})
    with pytest.raises(ComponentFailure):
        run("write_iceberg", known, {"input": [{"other": 1}]}, idempotency_key="other")
    assert by_id(run("read_iceberg", known).main) == ROWS


def test_addresses_of_a_lake_are_those_that_were_opened(lake: Lake) -> None:
    guarded = Settings(addresses=PUBLIC_ONLY)
    rest = {"type": "rest", "uri": "http://169.254.169.254/catalog"}
    with pytest.raises(ComponentFailure) as failure:
        run("read_iceberg", {"catalog": rest, "table": "a.b"}, settings=guarded)
    assert failure.value.kind == "address_refused"
    with pytest.raises(ComponentFailure) as failure:
        lake.run("read_delta", {"path": lake.url("t")}, settings=guarded)
    assert failure.value.kind == "address_refused"
