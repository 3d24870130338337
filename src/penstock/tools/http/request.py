"""From parameters to a request: the query, the body, and who is asking.

Law: a credential enters a request in one place, here, and the places it went to are handed on, so that it can be kept out of
redirects, results and messages.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta

from penstock.ports.meanings import READS_FILE
from penstock.tools.base import Call, ToolFailure
from penstock.tools.paths import local_path, open_regular

if TYPE_CHECKING:
    from penstock.tools.http.tool import HttpParams

Scalar: TypeAlias = str | int | float | bool | None
Fields: TypeAlias = dict[str, Scalar | list[Scalar]]
"""Form fields or query parameters; a list stands for the same name several times."""

# RFC 9110, without the bytes above ASCII that servers do not agree on.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?")

CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LONGEST_KEY = 255
AUTH_TYPES = ("basic", "bearer", "api_key")


class Upload(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One file of a multipart form."""

    name: Annotated[str, Meta(description="Name of the form field.")]
    path: Annotated[
        str, Meta(description="The file to send, relative to the document's folder.", extra_json_schema=READS_FILE)
    ]
    filename: Annotated[str | None, Meta(description="The name the server is told; that of the file if left out.")] = (
        None
    )
    content_type: Annotated[str | None, Meta(description="Media type; guessed from the name if left out.")] = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a credential goes."""

    headers: dict[str, str] = field(default_factory=dict, repr=False)
    query: dict[str, str] = field(default_factory=dict, repr=False)


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def pairs(fields: Fields) -> list[tuple[str, str]]:
    """Fields as they go over the wire: null is left out, a list repeats the name."""
    return [
        (name, _text(each))
        for name, value in fields.items()
        for each in (value if isinstance(value, list) else [value])
        if each is not None
    ]


def _shape_of(entry: Mapping[str, Any]) -> str | None:
    """Which way of asking a keychain entry is made for, from the fields it has."""
    if entry.get("type") in AUTH_TYPES:
        return str(entry["type"])
    if "username" in entry:
        return "basic"
    if "header" in entry or "query" in entry:
        return "api_key"
    if {"token", "access_token", "value"} & entry.keys():
        return "bearer"
    return None


def _required(entry: Mapping[str, Any], shape: str, *names: str) -> str:
    for name in names:
        if entry.get(name) is not None:
            # A secret read from a file often brings the line break at its end along.
            return str(entry[name]).strip()
    raise ToolFailure("parameters", f"`auth` of type `{shape}` needs `{'` or `'.join(names)}`")


def identity(auth: str | dict[str, Any] | None, call: Call) -> Identity:
    """The headers and query parameters that `auth` stands for: a keychain entry by name, or a mapping."""
    if auth is None:
        return Identity()
    entry: dict[str, Any] = call.credential(auth) if isinstance(auth, str) else dict(auth)
    named = entry.pop("credential", None) if isinstance(auth, dict) else None
    if named is not None:
        entry = {**call.credential(str(named)), **entry}
    if "type" in entry and entry["type"] not in AUTH_TYPES and isinstance(auth, dict):
        raise ToolFailure("parameters", f"`auth.type` is `{entry['type']}`; it can be `{'`, `'.join(AUTH_TYPES)}`")
    shape = _shape_of(entry)
    if shape == "basic":
        user, password = _required(entry, shape, "username"), str(entry.get("password") or "")
        return Identity({"authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"})
    if shape == "bearer":
        return Identity({"authorization": f"Bearer {_required(entry, shape, 'token', 'access_token', 'value')}"})
    if shape == "api_key":
        value = _required(entry, shape, "value", "token", "key")
        if entry.get("query") is not None:
            return Identity(query={str(entry["query"]): value})
        return Identity({str(entry.get("header") or "x-api-key").lower(): value})
    where = f"keychain entry `{auth}`" if isinstance(auth, str) else "mapping in `auth`"
    raise ToolFailure(
        "parameters",
        f"the {where} cannot be used to ask with: it needs `username` and `password`, or `token`, "
        "or `header` (or `query`) and `value`",
    )


def headers_of(params: HttpParams, call: Call, known: Identity) -> dict[str, str]:
    """All headers, names in lower case; what `auth` sets stands above what the author wrote."""
    headers = {name.lower(): _text(value).strip(" \t") for name, value in params.headers.items() if value is not None}
    if isinstance(params.idempotency_key, str):
        headers["idempotency-key"] = params.idempotency_key
    elif params.idempotency_key is True:
        headers["idempotency-key"] = _key_of(call)
    elif params.idempotency_key is None and params.method.strip().upper() in CHANGING:
        headers.setdefault("idempotency-key", _key_of(call))
    if params.json is not UNSET:
        headers.setdefault("content-type", "application/json")
    if params.body is not None:
        headers.setdefault("content-type", "text/plain; charset=utf-8")
    headers |= known.headers
    for name, value in headers.items():
        # Checked here because the client would print the value, which may be a secret.
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ToolFailure(
                "parameters", f"the header `{name}` cannot be sent: it has characters that headers may not have"
            )
    return headers


def _key_of(call: Call) -> str:
    """The name of the effect, if it can be a header; servers take no longer ones than this."""
    name = call.idempotency_key
    if len(name) <= LONGEST_KEY and _VALUE.fullmatch(name):
        return name
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def check_body(params: HttpParams) -> None:
    given = [name for name in ("json", "form", "body", "files") if _is_given(params, name)]
    if len(given) > 1 and given != ["form", "files"]:
        raise ToolFailure("parameters", f"a request has one body: `{'` and `'.join(given)}` cannot stand together")


def _is_given(params: HttpParams, name: str) -> bool:
    value = getattr(params, name)
    return value is not UNSET if name == "json" else value is not None and value != []


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolFailure("parameters", f"`json` cannot be written as JSON: {error}") from error


def form_text(params: HttpParams) -> str:
    """What a form says beside the content of its files."""
    fields = [f"{name}={value}" for name, value in pairs(params.form or {})]
    return "\n".join([*fields, *(f"{each.name}={each.filename or ''}" for each in params.files or ())])


def body_of(params: HttpParams, call: Call, opened: ExitStack) -> dict[str, Any]:
    """Arguments for the client's request builder. Runs in a thread, as it opens files; `opened` closes them."""
    if params.json is not UNSET:
        return {"content": _json_text(params.json).encode()}
    if params.body is not None:
        return {"content": params.body.encode()}
    body: dict[str, Any] = {}
    if params.form is not None:
        fields: dict[str, list[str]] = {}
        for name, value in pairs(params.form):
            fields.setdefault(name, []).append(value)
        body["data"] = fields
    if params.files:
        body["files"] = [
            (each.name, (each.filename or local_path(each.path, call).name, file, each.content_type))
            for each in params.files
            for file in [opened.enter_context(open_regular(local_path(each.path, call)))]
        ]
    return body
