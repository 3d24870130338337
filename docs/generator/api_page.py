"""The HTTP API, from its own OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docs.generator.markdown import code, page, table, words
from penstock import __version__


def api_page() -> str:
    from penstock.api.app import described
    from penstock.api.backend import Limits
    from penstock.api.errors import CODES

    app = described(__version__)
    document: Any = app.openapi()
    limits, texts = Limits(), words("api")
    parts: list[str] = []
    for tag in document["tags"]:
        parts += [f"## {tag['name'].capitalize()}", tag["description"], *_operations(document, tag["name"])]
    return page(
        "HTTP API",
        "What a server (`penstock serve`, `penstock up`) answers. The machine-readable form of this page is at "
        "`/api/openapi.json`. Bodies and answers are JSON unless a row says otherwise.",
        code("console", texts["example"]),
        "## Tokens and scopes",
        "Send a token as `Authorization: Bearer TOKEN`. `read` may look, `run` may also start, cancel and resume runs and keep "
        "documents, `admin` may do everything. A server that only its own machine can reach is open until it has its first "
        "token; one that others can reach does not start without one, unless `--no-auth` is written out.",
        "## Errors",
        "Every error has one shape, also for places and methods that are not there:",
        code("json", texts["error"]),
        table(
            ("status", "`code`, unless a more exact one says more"), [(f"`{k}`", f"`{v}`") for k, v in CODES.items()]
        ),
        "## Limits",
        table(
            ("what", "how much"),
            [
                ("a request", f"{limits.body_bytes:,} bytes (`--max-body`); to a hook 1,048,576"),
                ("a payload", "64 levels of nesting"),
                ("a list", f"{limits.page:,} entries; `next` leads to the next page"),
                ("a stream", f"{limits.watched} executions; {limits.streams} streams at a time"),
                ("a reader that takes nothing", f"is cut off after {limits.stall_s:g} s"),
            ],
        ),
        "## One stream for everything",
        "`GET /api/stream` tells a client all it watches, as server-sent events: `start` (at once: who answers), `entry` (an "
        "event of the log), `line` (what a tool said), `status` (when it has caught up, and after each change) and `run` (a "
        "change in the list of runs). With `ticks=true` there is `tick` in place of `entry` and `line`: how far a run is (`seq`, "
        "`status`, `lines`), at most four times a second for each run, and always the last one. `id` is "
        "the place in every watched execution; who comes back with the same executions and `Last-Event-ID` misses nothing and "
        "gets nothing twice.",
        code("console", texts["stream"]),
        *parts,
    )


def _operations(document: Any, tag: str) -> Iterator[str]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if operation["tags"] == [tag]:
                yield from _operation(document, f"{method.upper()} {path}", operation)


def _operation(document: Any, title: str, operation: Any) -> Iterator[str]:
    yield f"### {title}"
    scope = f" Needs `{operation['x-scope']}`." if "x-scope" in operation else ""
    yield f"{operation['summary']}.{scope} {operation.get('description', '')}".strip()
    rows = [
        (f"`{one['name']}`", one["in"], _kind(document, one["schema"]), one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    yield table(("parameter", "in", "type", ""), rows)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        yield from _model(document, "Body", body)
    good = {status: answer for status, answer in operation["responses"].items() if int(status) < 400}
    for status, answer in good.items():
        for media, content in answer.get("content", {}).items():
            if media != "application/json":
                yield f"Answers {status} with `{media}`."
            else:
                yield from _model(document, f"Answers {status}", content.get("schema", {}))
    if all("content" not in answer for answer in good.values()):
        yield f"Answers {', '.join(good)}."


def _model(document: Any, title: str, schema: Any) -> Iterator[str]:
    found = _resolved(document, schema)
    rows = [
        (
            f"`{name}`",
            _kind(document, one),
            "yes" if name in found.get("required", ()) else "",
            one.get("description", ""),
        )
        for name, one in found.get("properties", {}).items()
    ]
    if rows:
        yield f"{title}:"
        yield table(("field", "type", "always" if title.startswith("Answers") else "required", ""), rows)


def _resolved(document: Any, schema: Any) -> Any:
    for option in schema.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolved(document, option)
    name = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"][name] if name else schema


def _kind(document: Any, schema: Any) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(document, one) for one in schema["anyOf"]))
    if "$ref" in schema:
        found = _resolved(document, schema)
        fields = ", ".join(f"`{name}`" for name in found.get("properties", {}))
        return f"object ({fields})" if fields else "object"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_kind(document, schema.get('items', {}))}"
    return str(schema.get("type", "anything"))
