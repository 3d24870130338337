"""What an HTTP interface lists page by page, as a collection; against a real server on loopback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.values import JsonMap
from penstock.tools.base import ToolFailure
from tests.cases import cases
from tests.tools.fetching import TicklessClock
from tests.tools.paging import SIZES, Collection, all_of, check, failing, played
from tests.tools.support import Reply, Request, make_call, serve

Answer = Callable[[Request], Reply]


def orders(count: int) -> list[JsonMap]:
    return [{"id": n, "name": f"order {n}"} for n in range(count)]


def by_cursor(items: list[JsonMap], size: int) -> Answer:
    def answer(request: Request) -> Reply:
        first = int(request.query.get("cursor", ["0"])[0])
        following = first + size if first + size < len(items) else None
        return Reply(
            200, {"data": {"orders": items[first : first + size]}, "meta": {"next": following and str(following)}}
        )

    return answer


def by_number(items: list[JsonMap], size: int) -> Answer:
    def answer(request: Request) -> Reply:
        first = (int(request.query["page"][0]) - 1) * size
        return Reply(200, items[first : first + size])

    return answer


CURSOR: JsonMap = {"kind": "http", "items": "data.orders", "next": "meta.next", "key": "id"}


@pytest.mark.clause("F2.1", "F8.1")
@pytest.mark.parametrize("count", [0, 1, 9, 10])
def test_a_cursor_leads_from_page_to_page(tmp_path: Path, count: int) -> None:
    with serve(by_cursor(orders(count), 3)) as server:
        check(tmp_path, {**CURSOR, "url": server.url}, orders(count))


@pytest.mark.parametrize("count", [0, 1, 9, 10])
def test_pages_are_counted_until_one_is_empty(tmp_path: Path, count: int) -> None:
    with serve(by_number(orders(count), 3)) as server:
        check(tmp_path, {"kind": "http", "url": server.url, "page_param": "page"}, orders(count))


def test_an_offset_is_a_number_with_a_step(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        first = int(request.query["offset"][0])
        return Reply(200, orders(10)[first : first + 4])

    with serve(answer) as server:
        description: JsonMap = {"kind": "http", "url": server.url, "page_param": "offset", "start": 0, "step": 4}
        check(tmp_path, description, orders(10))


@pytest.mark.parametrize("form", ["header", "relative", "absolute"])
def test_a_link_leads_from_page_to_page(tmp_path: Path, form: str) -> None:
    def answer(request: Request) -> Reply:
        first = int(request.query.get("from", ["0"])[0])
        assert request.query["status"] == ["open"]
        there = f"/orders?status=open&from={first + 4}"
        if first + 4 >= 10:
            return Reply(200, {"items": orders(10)[first:], "next": None})
        link = f'<{there}>; rel="next", </orders>; rel="first"' if form == "header" else ""
        body = {"items": orders(10)[first : first + 4], "next": server.url + there if form == "absolute" else there}
        return Reply(200, body, {"link": link})

    with serve(answer) as server:
        description: JsonMap = {
            "kind": "http",
            "url": f"{server.url}/orders",
            "params": {"status": "open"},
            "items": "items",
        }
        if form != "header":
            description["next"] = "next"
        check(tmp_path, description, orders(10))


def test_an_answer_without_a_next_page_is_all(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, orders(5))) as server:
        check(tmp_path, {"kind": "http", "url": server.url}, orders(5))


@pytest.mark.clause("F3.1")
def test_a_page_of_the_server_is_asked_for_once_however_it_is_handed_out(tmp_path: Path) -> None:
    call = make_call(tmp_path)
    with serve(by_cursor(orders(10), 5)) as server:

        async def scene() -> None:
            collection = Collection({**CURSOR, "url": server.url}, call)
            reads = await collection.walk(2)
            assert [len(read.items) for read in reads] == [2, 2, 1, 2, 2, 1]
            assert [read.page.keys for read in reads[2:4]] == [["4"], ["5", "6"]]
            assert len(server.requests) == 2
            for read in reads:
                assert (await collection.again(read)).items == read.items
            assert len(server.requests) == 2

        played(call, scene)


def test_empty_pages_on_the_way_are_passed_over(tmp_path: Path) -> None:
    pages: dict[str, JsonMap] = {
        "": {"items": [], "next": "b"},
        "b": {"items": [1], "next": "c"},
        "c": {"items": [], "next": "d"},
        "d": {"items": [], "next": ""},
    }
    with serve(lambda request: Reply(200, pages[request.query.get("cursor", [""])[0]])) as server:
        check(tmp_path, {"kind": "http", "url": server.url, "items": "items", "next": "next"}, [1])


def test_elements_without_a_key_are_called_by_page_and_place(tmp_path: Path) -> None:
    call = make_call(tmp_path)
    with serve(by_number(orders(5), 3)) as server:

        async def scene() -> None:
            reads = await Collection({"kind": "http", "url": server.url, "page_param": "page"}, call).walk(2)
            keys = [key for read in reads for key in read.page.keys or ()]
            assert keys == ["0.0", "0.1", "0.2", "1.0", "1.1"]

        played(call, scene)


def test_a_body_takes_the_cursor_where_pages_are_posted(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        assert (request.method, request.json["size"]) == ("POST", 2)
        assert "idempotency-key" not in request.headers
        first = request.json.get("after", 0)
        return Reply(200, {"hits": orders(5)[first : first + 2], "after": first + 2 if first + 2 < 5 else None})

    with serve(answer) as server:
        description: JsonMap = {
            "kind": "http",
            "url": server.url,
            "method": "POST",
            "json": {"size": 2},
            "items": "hits",
            "next": "after",
            "next_param": "after",
        }
        check(tmp_path, description, orders(5))


def test_headers_and_credentials_go_with_every_page(tmp_path: Path) -> None:
    with serve(by_cursor(orders(6), 2)) as server:
        call = make_call(tmp_path, credentials={"api": {"token": "t-1"}})
        assert all_of({**CURSOR, "url": server.url, "auth": "api", "headers": {"x-tenant": "a"}}, call) == orders(6)
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer t-1"}
        assert {request.headers["x-tenant"] for request in server.requests} == {"a"}


def test_a_key_in_a_link_does_not_get_into_a_token(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        assert request.query["key"] == ["secret-word"]
        first = int(request.query.get("from", ["0"])[0])
        link = f"/?from={first + 2}&key=secret-word&x=%26" if first < 4 else None
        return Reply(200, {"items": [first, first + 1], "next": link})

    call = make_call(tmp_path, credentials={"api": {"query": "key", "value": "secret-word"}})
    with serve(answer) as server:

        async def scene() -> None:
            description: JsonMap = {"kind": "http", "url": server.url, "auth": "api", "items": "items", "next": "next"}
            reads = await Collection(description, call).walk(2)
            assert [item for read in reads for item in read.items] == [0, 1, 2, 3, 4, 5]
            assert "secret-word" not in str([read.page.next for read in reads])
            assert server.requests[1].query["x"] == ["&"]

        played(call, scene)


def test_a_server_that_is_busy_is_asked_again_when_it_says_so(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        if len(server.requests) in (1, 2):
            return Reply(429 if len(server.requests) == 1 else 503, "busy", {"retry-after": "7"})
        return by_cursor(orders(3), 5)(request)

    clock = TicklessClock()
    with serve(answer) as server:
        assert all_of({**CURSOR, "url": server.url}, make_call(tmp_path, clock=clock)) == orders(3)
    assert clock.slept == [7, 7]


def test_a_server_that_stays_busy_is_given_up(tmp_path: Path) -> None:
    with serve(lambda request: Reply(503, "busy")) as server:
        failure = failing({**CURSOR, "url": server.url}, make_call(tmp_path, clock=TicklessClock()))
        assert len(server.requests) == 5
    assert (failure.kind, failure.retryable) == ("http_status", True)


@cases(
    "answer, more, words",
    [
        ({"rows": []}, {}, "the answer is not a list; hint: say in `items` where the list is"),
        ({"rows": []}, {"items": "data.rows"}, "the answer has no `data.rows`; it has `rows`"),
        ({"rows": {}}, {"items": "rows"}, "`rows` of the answer is not a list"),
        ([{"a": 1}], {"key": "id"}, "element 0 of page 1 has no `id` to be called by"),
        ({"rows": [1], "next": {"a": 1}}, {"items": "rows", "next": "next"}, "neither a text nor a whole number"),
        ({"rows": [1], "next": "http://elsewhere.test/x"}, {"items": "rows", "next": "next"}, "another server than"),
        ({"rows": [], "next": "same"}, {"items": "rows", "next": "next"}, "page 2 leads to itself"),
        ("no json", {}, "the body is not JSON"),
    ],
)
def test_what_is_wrong_with_an_answer_is_told(tmp_path: Path, answer: Any, more: JsonMap, words: str) -> None:
    with serve(lambda request: Reply(200, answer)) as server:
        failure = failing({"kind": "http", "url": server.url, **more}, make_call(tmp_path))
    assert words in failure.message
    assert not failure.retryable


@cases(
    "more, words",
    [
        ({"next": "a", "page_param": "b"}, "two ways to go on"),
        ({"json": {}}, "needs `method: POST`"),
        ({"method": "PUT"}, "expected one of `GET`, `POST`, got `PUT`"),
        ({"url": "ftp://h/x"}, "only `http` and `https`"),
        ({"max_pages": 0}, "`max_pages`"),
    ],
)
def test_what_is_wrong_with_a_description_is_told(tmp_path: Path, more: JsonMap, words: str) -> None:
    assert words in failing({"kind": "http", "url": "http://127.0.0.1:1", **more}, make_call(tmp_path)).message


def test_pages_without_end_are_a_failure(tmp_path: Path) -> None:
    with (
        serve(lambda request: Reply(200, [1])) as server,
        pytest.raises(ToolFailure, match=r"there are more than `max_pages` \(3\) pages"),
    ):
        all_of({"kind": "http", "url": server.url, "page_param": "page", "max_pages": 3}, make_call(tmp_path))


def test_many_pages(tmp_path: Path) -> None:
    with serve(by_cursor(orders(2000), 100)) as server:
        assert all_of({**CURSOR, "url": server.url}, make_call(tmp_path), SIZES[-1]) == orders(2000)
        assert len(server.requests) == 20
