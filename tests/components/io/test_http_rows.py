"""`http_rows`: pages of a real server on loopback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from penstock.data.types import UNKNOWN_COLUMNS
from tests.components.harness import columns, mistakes, run, schema
from tests.tools.support import Reply, Request, serve

ITEMS = [{"id": number, "name": f"n{number}"} for number in range(1, 26)]


def fetch(
    answer: Callable[[Request], Reply], tmp_path: Path, path: str = "/items", **params: Any
) -> tuple[Any, list[Request]]:
    with serve(answer) as server:
        url = params.pop("url", f"{server.url}{path}").replace("SERVER", server.url)
        ran = run("http_rows", {"url": url, "retry_delay": 0, **params}, folder=tmp_path)
    return ran, server.requests


def paged(request: Request) -> Reply:
    """Ten a page, asked for in any of the ways there are."""
    query = {name: values[0] for name, values in request.query.items()}
    size = int(query.get("limit", 10))
    start = int(query["offset"]) if "offset" in query else (int(query.get("page", 1)) - 1) * size
    start = int(query.get("cursor", start))
    following = start + size if start + size < len(ITEMS) else None
    body = {"data": {"items": ITEMS[start : start + size]}, "next": following}
    link = {"link": f'</items?cursor=0>; rel="first", </items?cursor={following}>; rel="next"'} if following else {}
    return Reply(200, body, link)


@pytest.mark.parametrize(
    ("pagination", "requests"),
    [
        ({"kind": "page"}, 4),
        ({"kind": "page", "size_param": "limit", "size": 10}, 3),
        ({"kind": "offset", "size": 5}, 6),
        ({"kind": "offset", "size": 10}, 3),
        ({"kind": "cursor", "next": "next"}, 3),
        ({"kind": "link"}, 3),
    ],
)
def test_all_pages_are_read_in_order(tmp_path: Path, pagination: dict[str, Any], requests: int) -> None:
    ran, seen = fetch(paged, tmp_path, rows="data.items", pagination=pagination)
    assert ran.main == ITEMS
    assert ran.result == {"pages": requests, "rows": 25}
    assert len(seen) == requests


def test_one_answer_is_one_page(tmp_path: Path) -> None:
    assert fetch(lambda request: Reply(200, ITEMS), tmp_path)[0].main == ITEMS
    assert fetch(lambda request: Reply(200, {"id": 1}), tmp_path)[0].main == [{"id": 1}]
    assert fetch(lambda request: Reply(200, [1, 2]), tmp_path)[0].main == [{"value": 1}, {"value": 2}]


def test_a_cursor_may_be_a_url_and_pages_may_be_asked_for_in_the_body(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        if request.method == "POST":
            page = request.json["page"]
            return Reply(200, ITEMS[page * 10 : page * 10 + 10])
        more = "page" not in request.query
        return Reply(200, {"rows": ITEMS[:1], "next": "/items?page=2" if more else None})

    ran, seen = fetch(answer, tmp_path, rows="rows", params={"q": "x"}, pagination={"kind": "cursor", "next": "next"})
    assert len(ran.main) == 2
    assert [request.target for request in seen] == ["/items?q=x", "/items?page=2"]
    paging = {"kind": "page", "start": 0, "into": "json"}
    ran, seen = fetch(answer, tmp_path, method="POST", json={"filter": "open"}, pagination=paging)
    assert ran.main == ITEMS
    assert seen[1].json == {"filter": "open", "page": 1}


def test_columns_are_the_keys_of_all_rows_or_those_that_are_named(tmp_path: Path) -> None:
    rows = [{"a": 1}, {"a": 2.5, "b": {"c": [1]}}]
    ran, _ = fetch(lambda request: Reply(200, rows), tmp_path)
    assert [column.name for column in ran.schemas["main"]] == ["a", "b"]
    assert ran.main[0]["a"] == 1.0
    named = [{"name": "z", "type": "date"}, {"name": "a", "type": "string"}]
    ran, _ = fetch(lambda request: Reply(200, rows), tmp_path, columns=named)
    assert ran.main == [{"z": None, "a": "1.0"}, {"z": None, "a": "2.5"}]
    with pytest.raises(ComponentFailure, match="the answer has no column `zz`"):
        fetch(lambda request: Reply(200, rows), tmp_path, columns=["zz"])
    assert columns("http_rows", {"url": "http://x", "columns": named}) == {"z": "DATE", "a": "VARCHAR"}


def test_no_rows_have_the_columns_that_are_named_or_none_that_are_known(tmp_path: Path) -> None:
    named = [{"name": "id", "type": "integer"}]
    ran, _ = fetch(lambda request: Reply(200, []), tmp_path, columns=named)
    assert (ran.main, ran.schemas["main"]) == ([], schema(id="BIGINT"))
    ran, _ = fetch(lambda request: Reply(200, []), tmp_path)
    assert (ran.main, ran.schemas["main"]) == ([], UNKNOWN_COLUMNS)


def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    seen: list[int] = []

    def answer(request: Request) -> Reply:
        seen.append(1)
        return Reply((429, 503, 500)[len(seen) - 1], "busy") if len(seen) < 4 else Reply(200, ITEMS)

    ran, _ = fetch(answer, tmp_path)
    assert len(ran.main) == 25
    seen.clear()
    with pytest.raises(ComponentFailure) as failed:
        fetch(answer, tmp_path, attempts=2)
    assert (failed.value.kind, failed.value.retryable) == ("http_status", True)
    with pytest.raises(ComponentFailure, match="404"):
        fetch(lambda request: Reply(404, "gone"), tmp_path)


def test_credentials_are_sent_and_never_to_another_server(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, ITEMS)) as other:

        def answer(request: Request) -> Reply:
            return Reply(200, ITEMS[:1], {"link": f'<{other.url}/next>; rel="next"'})

        with serve(answer) as server:
            params = {"url": f"{server.url}/x", "auth": "api", "pagination": {"kind": "link"}}
            with pytest.raises(ComponentFailure, match=r"page 1 leads to `http://.*`, another server than") as failed:
                run("http_rows", params, credentials={"api": {"token": "s3cret"}}, folder=tmp_path)
        assert failed.value.kind == "refused"
        assert server.requests[0].headers["authorization"] == "Bearer s3cret"
        assert other.requests == []


def test_a_server_that_leads_in_circles_is_left(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return Reply(200, {"rows": ITEMS[:1], "next": "same"})

    with pytest.raises(ComponentFailure, match="page 2 leads to itself"):
        fetch(answer, tmp_path, rows="rows", pagination={"kind": "cursor", "next": "next"})
    with pytest.raises(ComponentFailure, match=r"more than `max_pages` \(3\) pages"):
        fetch(lambda request: Reply(200, ITEMS[:1]), tmp_path, pagination={"kind": "page", "max_pages": 3})


def test_an_answer_that_is_not_what_was_expected_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        ComponentFailure, match=r"page 1: there is nothing at `rows: data\.items`; the answer has `datum`"
    ):
        fetch(lambda request: Reply(200, {"datum": 1}), tmp_path, rows="data.items")
    with pytest.raises(ComponentFailure, match="is not JSON"):
        fetch(lambda request: Reply(200, "<html>"), tmp_path)
    with pytest.raises(ComponentFailure) as failed:
        run("http_rows", {"url": "http://127.0.0.1:1/", "attempts": 1}, folder=tmp_path)
    assert (failed.value.kind, failed.value.retryable) == ("connect", True)


def test_wrong_parameters_are_mistakes() -> None:
    paging = {"kind": "page", "into": "json"}
    assert [one.path for one in mistakes("http_rows", {"url": "http://x", "pagination": paging})] == [("pagination",)]
    (mistake,) = mistakes("http_rows", {"url": "http://x", "pagination": {"kind": "pages"}})
    assert mistake.path[0] == "pagination"
