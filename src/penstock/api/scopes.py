"""What each route needs, read from the routes themselves: for the OpenAPI document, the reference and the tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.routing import APIRoute

from penstock.ports.control import Scope

FIELD = "x-scope"


class Needed(NamedTuple):
    method: str
    path: str
    scope: Scope | None
    """None: everybody may, or the route asks for itself."""


def needed(app: FastAPI) -> list[Needed]:
    found = []
    for route in _flat(app.routes):
        if isinstance(route, APIRoute):
            scopes = [scope for call in _called(route.dependant) if (scope := getattr(call, "scope", None)) is not None]
            path = route.path.replace(":path}", "}")
            found += [Needed(method, path, scopes[0] if scopes else None) for method in sorted(route.methods or ())]
    return found


def say_scopes(app: FastAPI) -> None:
    """Let the OpenAPI document say what each operation needs."""
    plain = app.openapi

    def with_scopes() -> dict[str, Any]:
        document = plain()
        for method, path, scope in needed(app):
            if scope is not None:
                document["paths"][path][method.lower()][FIELD] = scope.value
        return document

    app.openapi = with_scopes  # type: ignore[method-assign]


def _flat(routes: Iterable[Any]) -> Iterator[Any]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is None:
            yield route
        else:
            yield from _flat(inner.routes)


def _called(dependant: Any) -> Iterator[Any]:
    for inner in dependant.dependencies:
        yield inner.call
        yield from _called(inner)
