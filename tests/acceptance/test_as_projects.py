"""Examples put into a catalog as they lie in their folders: they run there unchanged, and write below the base folder."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.project_folder import gather
from penstock.ports.folders import CATALOG
from penstock.ports.projects import compressed, packed
from tests.acceptance.examples import EXAMPLES
from tests.api.service import Api, asking


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deployed")


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Api]:
    with asking(place / "home", base=place / "base") as api:
        yield api


@pytest.mark.parametrize(
    ("project", "document", "written"),
    [
        ("joblets", "joblets", "out/customers.csv"),
        ("sub-playbooks", "cities", None),
        ("file-drop", "file-drop", "out/archive/sales.zip"),
        ("scd-customers", "scd-customers", "warehouse.duckdb"),
    ],
)
def test_an_example_runs_as_a_project(
    server: Api, place: Path, project: str, document: str, written: str | None
) -> None:
    archive = base64.b64encode(compressed(packed(gather(EXAMPLES / project).files))).decode()
    put = server.http.put(f"/api/documents/{project}", json={"archive": archive})
    assert put.status_code == 201, put.text
    asked = server.post("/api/executions", {"document": {"path": f"{project}/{document}"}})
    assert asked.status_code == 201, asked.text
    run = asked.json()["execution_id"]
    assert server.ended(run) == "completed", server.get(f"/api/executions/{run}").text
    assert written is None or (place / "base" / project / written).is_file()
    assert not list(place.rglob(CATALOG))
