"""Every route of the API with a request that would be all right, for tests that go through all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI

from penstock.api.app import described
from penstock.api.routing import needed
from penstock.ports.control import Scope

DOCUMENT = {"text": "workflow: []", "file": "p.yaml"}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/executions"): {"document": DOCUMENT},
    ("POST", "/api/executions/{run}/cancel"): {"reason": "x"},
    ("PUT", "/api/documents/{path}"): {"text": "workflow: []"},
    ("POST", "/api/validate"): {"document": DOCUMENT},
    ("POST", "/api/plan"): {"document": DOCUMENT},
    ("POST", "/api/graph"): {"document": DOCUMENT},
    ("PUT", "/api/schedules/{name}"): {"cron": "@daily", "path": "nothing"},
    ("POST", "/api/schedules/{name}/backfill"): {"from": "2026-01-01", "to": "2026-01-02", "dry_run": True},
    ("PUT", "/api/alerts/{name}"): {"on": ["failed"], "url": "http://127.0.0.1:9/"},
    ("PUT", "/api/state"): {"document": "nobody", "key": "x", "value": 1},
    ("PUT", "/api/hooks/{name}"): {"path": "nothing"},
    ("POST", "/api/tokens"): {"name": "x", "scope": "read"},
    ("POST", "/api/prune"): {"older_than_s": 1e9, "dry_run": True},
    ("POST", "/api/session"): {"token": "x"},
    ("PUT", "/api/files/{path}"): {"text": "workflow: []"},
    ("POST", "/api/times"): {"cron": "@daily"},
    ("POST", "/hooks/{name}"): {},
}
QUERIES = {
    "/api/state": "?document=nobody",
    "/api/executions/{run}/explain": "?node=x",
    "/api/stream": "?execution=nobody",
}
OPEN = {"/health", "/ready"}
SIGN_IN = {"/api/session"}
BY_SIGNATURE = {"/hooks/{name}"}


@dataclass(frozen=True)
class Route:
    method: str
    template: str
    needs: Scope | None = field(compare=False)

    @property
    def path(self) -> str:
        path = self.template
        for name in ("run", "path", "name", "token", "worker"):
            path = path.replace(f"{{{name}}}", "nobody")
        path = path.replace("{kind}", "playbook" if "/schema/" in path else "tool")
        return path.replace("{store}", "file").replace("{checksum}", "0" * 64) + QUERIES.get(self.template, "")

    @property
    def body(self) -> Any:
        return BODIES.get((self.method, self.template))

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def application() -> FastAPI:
    return described("0")


def all_routes() -> list[Route]:
    return [Route(method, path, scope) for method, path, scope in needed(application())]
