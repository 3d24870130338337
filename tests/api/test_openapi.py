"""The OpenAPI document is true: whatever it allows is answered as it says, and never with a mistake of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tests.api.routes import all_routes, application
from tests.api.service import QUICK, Api, asking
from tests.depth import times

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
EXAMPLES = times(2)

DOCUMENT = application().openapi()
schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(path="/api/stream")
# Each has an id of its own, without which pytest-xdist would take all of them for one test, and run one.
OPERATIONS = {found.label: found for found in (result.ok() for result in schema.get_all_operations())}


@pytest.fixture(scope="module")
def open_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Open to everybody, whatever tokens are made; with something in it to be found."""
    with asking(tmp_path_factory.mktemp("open"), no_auth=True) as api:
        api.done(QUICK, label="0")
        api.http.put("/api/documents/0", json={"text": QUICK})
        api.http.put("/api/hooks/0", json={"path": "0"})
        api.http.put("/api/schedules/0", json={"cron": "@yearly", "path": "0"})
        yield api


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_answers_as_the_document_says(operation: str, open_api: Api) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(OPERATIONS[operation].as_strategy())
    def holds(case: Any) -> None:
        case.call_and_validate(base_url=open_api.url, checks=CHECKS)

    holds()


def test_the_document_is_served_and_names_every_route(open_api: Api) -> None:
    served = open_api.get("/api/openapi.json").json()
    assert served["paths"] == DOCUMENT["paths"]
    listed = {(method.upper(), path) for path, item in served["paths"].items() for method in item}
    assert listed == {(route.method, route.template) for route in all_routes()}


def test_every_operation_has_a_summary_a_tag_a_name_and_the_one_error() -> None:
    names = []
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert len(operation["tags"]) == 1, where
            names.append(operation["operationId"])
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    content = response["content"]["application/json"]["schema"]
                    assert content == {"$ref": "#/components/schemas/ErrorOut"}, f"{where} {status}"
    assert len(set(names)) == len(names)
    assert {tag["name"] for tag in DOCUMENT["tags"]} == {
        operation["tags"][0] for item in DOCUMENT["paths"].values() for operation in item.values()
    }
