"""A web service with bad days, for the playbooks of the corpus. What it remembers it keeps for each run: `run` in the query.

/orders?cursor=         pages by a cursor                     /token                 a token for a form with the right secret
/customers?offset=      pages by an offset                    /account               for whoever has a token that is still good
/products?page=         numbered pages; each fails once       /exports, /exports/1   a job that is done when asked for the third time
/events                 keeps what is posted                  /limited/N             429 with `Retry-After` at first
/flaky/N                answers after N failures              /big?items=            a large answer
/broken, /missing       500, 404                              /echo                  what was asked
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

SECRET = "open-sesame"
REGIONS = ("north", "south", "west")
ORDERS = [{"id": n, "region": REGIONS[n % 3], "amount": n * 2.5} for n in range(1, 24)]
CUSTOMERS = [{"id": n, "name": f"customer {n}"} for n in range(1, 18)]
PRODUCTS = [{"sku": f"P{n:02}", "price": n + 0.5} for n in range(1, 12)]
GOOD_FOR = 2
"""How often a token is accepted."""

Answer = tuple[int, Any, dict[str, str]]


@dataclass
class Memory:
    """What the service knows of one run."""

    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    events: list[Any] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


@dataclass
class Shop:
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    runs: dict[str, Memory] = field(default_factory=lambda: defaultdict(Memory))

    def answer(self, asked: Request) -> Answer:
        memory = self.runs[asked.query.get("run", "")]
        memory.calls[asked.path] += 1
        _, name, *rest = asked.path.split("/")
        return getattr(self, name, _nowhere)(asked, memory, *rest)

    def orders(self, asked: Request, memory: Memory) -> Answer:
        at, size = int(asked.query.get("cursor") or 0), int(asked.query.get("limit", 5))
        rows = [row for row in ORDERS if asked.query.get("region", row["region"]) == row["region"]]
        following = str(at + size) if at + size < len(rows) else None
        return 200, {"items": rows[at : at + size], "next_cursor": following}, {}

    def customers(self, asked: Request, memory: Memory) -> Answer:
        at, size = int(asked.query["offset"]), int(asked.query["limit"])
        return 200, {"data": CUSTOMERS[at : at + size], "total": len(CUSTOMERS)}, {}

    def products(self, asked: Request, memory: Memory) -> Answer:
        page, size = int(asked.query["page"]), int(asked.query.get("per_page", 4))
        memory.calls[f"page {page}"] += 1
        if memory.calls[f"page {page}"] == 1:
            return 503, {"error": "come back"}, {}
        rows = PRODUCTS[(page - 1) * size : page * size]
        return 200, {"products": rows, "has_more": page * size < len(PRODUCTS)}, {}

    def events(self, asked: Request, memory: Memory, *key: str) -> Answer:
        if asked.method == "GET":
            return 200, {"events": memory.events}, {}
        if asked.method == "DELETE":
            gone = [one for one in memory.events if one.get("id") == int(asked.query["id"])]
            memory.events[:] = [one for one in memory.events if one not in gone]
            return 200, {"deleted": len(gone)}, {}
        memory.events.append(asked.json)
        return 201, {"id": len(memory.events)}, {}

    def token(self, asked: Request, memory: Memory) -> Answer:
        form = parse_qs(asked.body.decode())
        if form.get("client_secret") != [SECRET]:
            return 401, {"error": "invalid_client"}, {}
        name = f"token-{len(memory.tokens) + 1}"
        memory.tokens[name] = GOOD_FOR
        return 200, {"access_token": name, "token_type": "Bearer", "expires_in": 3600}, {}

    def account(self, asked: Request, memory: Memory, *page: str) -> Answer:
        name = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if name == SECRET:
            return 200, {"balance": 42}, {}
        if memory.tokens.get(name, 0) == 0:
            return 401, {"error": "expired"}, {}
        memory.tokens[name] -= 1
        return 200, {"page": page[0] if page else None, "balance": 42}, {}

    def exports(self, asked: Request, memory: Memory, *number: str) -> Answer:
        if asked.method == "POST":
            return 202, {"id": 1, "status": "queued"}, {"Location": "/exports/1"}
        done = memory.calls[asked.path] >= 3
        return 200, {"status": "done" if done else "running", "rows": 7 if done else None}, {}

    def limited(self, asked: Request, memory: Memory, number: str) -> Answer:
        if memory.calls[asked.path] == 1:
            return 429, {"error": "slow down"}, {"Retry-After": "0"}
        return 200, {"number": int(number), "calls": memory.calls[asked.path]}, {}

    def flaky(self, asked: Request, memory: Memory, failures: str) -> Answer:
        calls = memory.calls[asked.path]
        return (200, {"calls": calls}, {}) if calls > int(failures) else (500, {"error": "not yet"}, {})

    def big(self, asked: Request, memory: Memory) -> Answer:
        rows = [{"id": n, "text": f"{n:06} " * 12, "kind": REGIONS[n % 3]} for n in range(int(asked.query["items"]))]
        return 200, {"rows": rows}, {}

    def broken(self, asked: Request, memory: Memory) -> Answer:
        return 500, {"error": "always"}, {}

    def echo(self, asked: Request, memory: Memory) -> Answer:
        kind = asked.headers.get("content-type", "")
        body = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()} if "form" in kind else None
        query = {name: value for name, value in asked.query.items() if name != "run"}
        said = body if body is not None else asked.json if "json" in kind else asked.body.decode()
        return 200, {"method": asked.method, "query": query, "type": kind, "body": said}, {}


def _nowhere(asked: Request, memory: Memory, *rest: str) -> Answer:
    return 404, {"error": f"nothing at {asked.path}"}, {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    shop: Shop

    def log_message(self, *arguments: object) -> None: ...

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.shop.lock:
            status, said, more = self.shop.answer(Request(self.command, parts.path, query, headers, body))
        data = json.dumps(said).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle


@contextmanager
def open_shop() -> Iterator[Shop]:
    shop = Shop()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"shop": shop}))
    server.daemon_threads = True
    shop.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield shop
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
