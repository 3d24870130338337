"""A tiny local API for the examples: paginated orders, endpoints that fail at first, a slow job, private pages, a webhook.

python examples/api.py          # prints its address and serves until Ctrl-C
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

REGIONS = ("north", "south", "west")
CUSTOMERS = ("ada", "bob", "cyd", "dan")
TOKEN = "demo-token"

ORDERS = [
    {
        "id": number,
        "region": REGIONS[number % len(REGIONS)],
        "customer": CUSTOMERS[number * 7 % len(CUSTOMERS)],
        "amount": round(5 + number * 37 % 101 + number % 4 * 0.25, 2),
    }
    for number in range(1, 61)
]

RATES = {"2026-01": {"EUR": 1.0, "GBP": 0.8, "NOK": 11.0}, "2026-02": {"EUR": 1.0, "GBP": 0.75, "NOK": 11.5}}
"""What one euro is worth, by month."""

INVOICES = [
    {
        "id": f"{region}-{number}",
        "account": region,
        "amount": f"{number}.{number:02}",
        "changed_at": f"2026-03-{number:02}T08:00:00",
    }
    for region in REGIONS
    for number in range(1, 13)
]

PAGE = 5
CUT_OFF = object()
"""Stands for an answer of which only the beginning arrives."""

Answer = tuple[int, Any]


class Api:
    """What the server knows. One per server, so that two runs of an example see the same things."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.hooks: list[Any] = []
        self.invoices: list[dict[str, str]] = []
        """Those that came later."""
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: Any) -> Answer:
        with self._lock:
            self.calls[path] += 1
            call = self.calls[path]
        match method, path:
            case "GET", "/orders":
                return self._orders(query)
            case "GET", "/customers":
                return (503, {"error": "try again"}) if call <= 2 else (200, {"data": _customers()})
            case "GET", "/rates":
                return (503, {"error": "try again"}) if call == 1 else (200, {"rates": _rates(query.get("month", ""))})
            case "GET", "/jobs/7":
                return 200, {"id": 7, "state": "done" if call >= 3 else "running"}
            case "GET", "/private" | "/changes" if headers.get("authorization") != f"Bearer {TOKEN}":
                return 401, {"error": "who are you?"}
            case "GET", "/private":
                return 200, {"balance": 42}
            case "GET", "/changes":
                return self._changes(query, call)
            case "POST", "/hook":
                self.hooks.append(body)
                return 200, {"ok": True}
        return 404, {"error": f"there is no {path}"}

    def _changes(self, query: dict[str, str], call: int) -> Answer:
        """Five invoices at a time, after a cursor. The second request is one too many, the answer to the fourth is cut off."""
        if call == 2:
            return 429, {"error": "slow down"}
        if call == 4:
            return 200, CUT_OFF
        found = [one for one in INVOICES + self.invoices if one["account"] == query.get("account")]
        found = [one for one in found if one["changed_at"] > query.get("since", "")]
        begin = int(query.get("cursor") or 0)
        more = begin + PAGE < len(found)
        return 200, {"invoices": found[begin : begin + PAGE], "next": str(begin + PAGE) if more else None}

    def _orders(self, query: dict[str, str]) -> Answer:
        page, size = int(query.get("page", 1)), int(query.get("pageSize", 10))
        found = [order for order in ORDERS if order["region"] == query.get("region", order["region"])]
        rows = found[(page - 1) * size : page * size]
        return 200, {"data": rows, "paging": {"page": page, "hasMore": page * size < len(found)}}


def _customers() -> list[dict[str, str]]:
    return [
        {"customer": name, "city": city} for name, city in zip(CUSTOMERS, ("Oslo", "Rome", "Lyon", "Bonn"), strict=True)
    ]


def _rates(month: str) -> list[dict[str, str | float]]:
    return [{"currency": currency, "rate": rate} for currency, rate in RATES.get(month, {}).items()]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: Api
    delay: float

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        raw = self.rfile.read(int(headers.get("content-length", 0)))
        time.sleep(self.delay)
        status, answer = self.api.answer(method, url.path, query, headers, json.loads(raw) if raw else None)
        data = b'{"invoices": [{"id": "nor' if answer is CUT_OFF else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status == 429:
            self.send_header("Retry-After", "0.2")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """The examples speak for themselves."""


@contextmanager
def serving(port: int = 0, delay: float = 0.0) -> Iterator[tuple[str, Api]]:
    """A server of its own, on a free port unless told otherwise: its address and what it knows. `delay` slows every answer."""
    api = Api()
    handler = type("Handler", (_Handler,), {"api": api, "delay": delay})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    with serving(8765) as (url, _):
        print(f"serving {url}; Ctrl-C ends it")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
