"""The `http` tool: one request per task run, with everything that can go wrong given a kind.

Law: one task run gives one outcome, however many requests it took. A status the author did not accept is an error outcome.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import mimetypes
import re
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from penstock.kernel.values import Json, JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, READS_FILE, WEB
from penstock.tools.base import Call, Success, Tool, ToolFailure, local_path, open_regular
from penstock.tools.http.response import form_of, media_type, read_value, stream_to_store, text_of, value_of
from penstock.tools.network import Resolver, resolve_host
from penstock.tools.parameters import about

if TYPE_CHECKING:
    import aiohttp

    from penstock.tools.http import exchange as wire
    from penstock.tools.http.exchange import Body, Client, Exchange, OpenSocket, Request


# ---- From parameters to a request: the query, the body, and who is asking.
# Law: a credential enters a request in one place, here, and the places it went to are handed on, so that it can be kept out
# of redirects, results and messages.

Scalar: TypeAlias = str | int | float | bool | None
Fields: TypeAlias = dict[str, Scalar | list[Scalar]]
"""Form fields or query parameters; a list stands for the same name several times."""

# RFC 9110, without the bytes above ASCII that servers do not agree on.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?")

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LONGEST_KEY = 255
AUTH_TYPES = ("basic", "bearer", "api_key")


class Upload(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One file of a multipart form."""

    name: Annotated[str, about("Name of the form field.")]
    path: Annotated[str, about("The file to send, relative to the document's folder.", schema=READS_FILE)]
    filename: Annotated[str | None, about("The name the server is told; that of the file if left out.")] = None
    content_type: Annotated[str | None, about("Media type; guessed from the name if left out.")] = None


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
        if not can_be_sent(name, value):
            raise ToolFailure(
                "parameters", f"the header `{name}` cannot be sent: it has characters that headers may not have"
            )
    return headers


def can_be_sent(name: str, value: str) -> bool:
    """As a header."""
    return _NAME.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None


def _key_of(call: Call) -> str:
    """The name of the effect, if it can be a header; servers take no longer ones than this."""
    name = call.idempotency_key
    if len(name) <= LONGEST_KEY and _VALUE.fullmatch(name):
        return name
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def check_body(params: HttpParams) -> None:
    given = {
        "json": params.json is not UNSET,
        "form": params.form is not None,
        "body": params.body is not None,
        "files": bool(params.files),
    }
    if sum(given.values()) > 1 and (given["json"] or given["body"]):
        names = "` and `".join(name for name, is_given in given.items() if is_given)
        raise ToolFailure("parameters", f"a request has one body: `{names}` cannot stand together")


def plain(params: HttpParams) -> HttpParams:
    """The same request with a mapping or list in `body` as what it is sent as: `json` or `form`."""
    check_body(params)
    if params.body is None or isinstance(params.body, str):
        return params
    given = next((value for name, value in params.headers.items() if name.lower() == "content-type"), None)
    media = str(given or "").partition(";")[0].strip().lower()
    if media == MULTIPART:
        raise ToolFailure("parameters", f"a `body` is not sent as `{MULTIPART}`; use `files`, with fields in `form`")
    if media != FORM:
        return replace(params, body=None, json=params.body)
    try:
        return replace(params, body=None, form=msgspec.convert(params.body, Fields))
    except msgspec.ValidationError:
        message = (
            "`body` as form fields is a mapping of texts, numbers, or lists of these; use `json` for anything else"
        )
        raise ToolFailure("parameters", message) from None


def _json_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolFailure("parameters", f"the body cannot be written as JSON: {error}") from error


def body_of(params: HttpParams, call: Call, opened: ExitStack) -> tuple[Body, str | None] | None:
    """The body and its media type, where it says one. Runs in a thread if it opens files; `opened` closes them."""
    if params.json is not UNSET:
        return wire.Body([_json_text(params.json).encode()]), None
    if isinstance(params.body, str):
        return wire.Body([params.body.encode()]), None
    if params.files:
        return _multipart(params, call, opened)
    if params.form is not None:
        return wire.Body([urlencode(pairs(params.form)).encode()]), FORM
    return None


def _multipart(params: HttpParams, call: Call, opened: ExitStack) -> tuple[Body, str]:
    boundary = secrets.token_hex(16)
    pieces: list[bytes | IO[bytes]] = []
    fields = pairs(params.form or {})
    for name, value in fields:
        pieces.append(_part(boundary, [f'name="{_quoted(name)}"'], None) + value.encode() + b"\r\n")
    for each in params.files:
        path = local_path(each.path, call)
        filename = each.filename or path.name
        media = each.content_type or mimetypes.guess_type(filename)[0] or "application/octet-stream"
        named = [f'name="{_quoted(each.name)}"', f'filename="{_quoted(filename)}"']
        pieces += [_part(boundary, named, media), opened.enter_context(open_regular(path)), b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    said = [f"{name}={value}" for name, value in fields]
    said += [f"{each.name}={each.filename or ''}" for each in params.files]
    return wire.Body(pieces, "\n".join(said)), f"{MULTIPART}; boundary={boundary}"


def _part(boundary: str, named: list[str], media: str | None) -> bytes:
    if media is not None and not _VALUE.fullmatch(media):
        raise ToolFailure("parameters", "a `content_type` in `files` has characters that headers may not have")
    more = "" if media is None else f"Content-Type: {media}\r\n"
    return f"--{boundary}\r\nContent-Disposition: form-data; {'; '.join(named)}\r\n{more}\r\n".encode()


def _quoted(text: str) -> str:
    """As browsers write names in a form."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
DEFAULT_MAX_BYTES = 100 * 1024 * 1024
MAX_RETRY_AFTER = 300.0


class HttpParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, about("Where to: an `http` or `https` URL.", schema=WEB)]
    method: Annotated[str, about("`GET`, `POST`, `PUT`, `PATCH`, `DELETE`, `HEAD`, `OPTIONS` …")] = "GET"
    params: Annotated[Fields, about("Query parameters. A list repeats the name; null leaves the parameter out.")] = {}
    headers: Annotated[dict[str, Scalar], about("Request headers. Null leaves a header out.")] = {}
    json: Annotated[Any, about("A body sent as JSON; any value, null included.")] = UNSET
    form: Annotated[Fields | None, about("A body sent as form fields, or the fields beside `files`.")] = None
    body: Annotated[
        str | dict[str, Any] | list[Any] | None,
        about(
            "A body: text is sent as it is, a mapping or list as JSON, or a mapping as form fields if the header "
            "`Content-Type` says `application/x-www-form-urlencoded`."
        ),
    ] = None
    files: Annotated[list[Upload], about("Files to send as a multipart form.")] = []
    auth: Annotated[
        str | dict[str, Any] | None,
        about(
            "The name of a keychain entry, or a mapping: `{type: basic, username, password}`, "
            "`{type: bearer, token}`, `{type: api_key, header or query, value}`; `credential: name` takes what is "
            "missing from the keychain.",
            schema=KEYCHAIN_ENTRY,
        ),
    ] = None
    follow_redirects: Annotated[
        bool, about("Follow up to 10 redirects. Credentials are not sent on to another host.")
    ] = True
    verify: Annotated[
        bool | str, about("Check the server's certificate; a path names the file of certificates to trust.")
    ] = True
    response: Annotated[
        Literal["auto", "json", "text", "bytes", "stream"],
        about(
            "What `data` is: `auto` goes by the content type; `bytes` is base64 text; `stream` puts the "
            "body into the result store piece by piece and gives a reference to it."
        ),
    ] = "auto"
    max_response_bytes: Annotated[
        int, about("The largest body accepted, counted after decompression (100 MiB).", gt=0)
    ] = DEFAULT_MAX_BYTES
    ok_status: Annotated[
        int | str | list[int | str] | None,
        about("Statuses that are ok: `404`, `200-299`, `2xx`, or a list of these. Otherwise all below 400."),
    ] = None
    idempotency_key: Annotated[
        bool | str | None,
        about(
            "`Idempotency-Key`: a key that is the same over all retries, and another for each element of a loop, is "
            "sent with `POST`, `PUT`, `PATCH` and `DELETE`, unless `headers` has one. True sends it always, false never; or a "
            "text of your own."
        ),
    ] = None


def _number(value: Json, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ToolFailure("parameters", f"`{name}` is `{value}`: it must be a number of seconds")
    return float(value)


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds. `total` is for the whole task run, retries and redirects included."""

    connect: float = 10.0
    read: float = 60.0
    write: float = 60.0
    total: float | None = None

    @staticmethod
    def of(spec: JsonMap) -> TimeLimits:
        given = spec.get("timeout")
        if not isinstance(given, dict):
            return TimeLimits(total=_number(given, "spec.timeout"))
        known = ("connect", "read", "write", "total")
        for name in given:
            if name not in known:
                raise ToolFailure("parameters", f"`spec.timeout` has no `{name}`; it has `{'`, `'.join(known)}`")
        found = {name: _number(given.get(name), f"spec.timeout.{name}") for name in known}
        return TimeLimits(**{name: value for name, value in found.items() if value is not None})


@dataclass(frozen=True, slots=True)
class InnerRetry:
    """`spec.retry`: trying again inside one task run. Policies, which can see each attempt, are the stronger tool."""

    attempts: int = 1
    delay: float = 1.0
    statuses: frozenset[int] = RETRYABLE

    @staticmethod
    def of(spec: JsonMap) -> InnerRetry:
        given = spec.get("retry")
        if given is None:
            return InnerRetry()
        if not isinstance(given, dict) or given.keys() - {"attempts", "delay", "statuses"}:
            raise ToolFailure("parameters", "`spec.retry` is a mapping of `attempts`, `delay` and `statuses`")
        attempts, statuses = given.get("attempts", 3), given.get("statuses")
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ToolFailure("parameters", f"`spec.retry.attempts` is `{attempts}`: it must be a whole number from 1")
        if statuses is not None and not isinstance(statuses, list):
            raise ToolFailure("parameters", "`spec.retry.statuses` must be a list of numbers")
        delay = _number(given.get("delay"), "spec.retry.delay")
        chosen = RETRYABLE if statuses is None else frozenset(each for each in statuses if isinstance(each, int))
        return InnerRetry(attempts, 1.0 if delay is None else delay, chosen)

    def wants(self, failure: ToolFailure) -> bool:
        if failure.kind == "http_status":
            return failure.detail.get("status") in self.statuses
        return failure.retryable

    def pause(self, failure: ToolFailure) -> float:
        """`delay`, or longer when the server says in `Retry-After` how long it wants to be left alone."""
        headers = failure.helpers.get("http", {}).get("headers")
        after = str(headers.get("retry-after", "")) if isinstance(headers, dict) else ""
        return max(self.delay, min(float(after), MAX_RETRY_AFTER)) if after.isdigit() else self.delay


def accepts(wanted: int | str | list[int | str] | None, status: int) -> bool:
    """Is this status an ok outcome?"""
    if wanted is None:
        return status < 400
    return any(_matches(each, status) for each in (wanted if isinstance(wanted, list) else [wanted]))


def _matches(wanted: int | str, status: int) -> bool:
    text = str(wanted).strip().lower()
    if text.isdigit():
        return int(text) == status
    if len(text) == 3 and text[0].isdigit() and text[1:] == "xx":
        return int(text[0]) == status // 100
    low, dash, high = text.partition("-")
    if dash and low.strip().isdigit() and high.strip().isdigit():
        return int(low) <= status <= int(high)
    raise ToolFailure("parameters", f"`ok_status`: `{wanted}` is not a status; write `404`, `200-299` or `2xx`")


@asynccontextmanager
async def within(seconds: float | None, what: str) -> AsyncIterator[None]:
    """The block, or a `timeout` failure."""
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            yield
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise ToolFailure(
            "timeout", f"{what}: not done within {seconds:g} s", retryable=True, seconds=seconds
        ) from error


class HttpTool(Tool[HttpParams]):
    """Sends one HTTP request and gives the answer.

    The result is `{data, status, headers, url, elapsed_ms}`: `data` is the body, decoded by its content type (see
    `response`); header names are in lower case, and `set-cookie` is left out because the result is kept in the log. It can also
    be read as `status_code` (`status`) and `body` (`data`).
    Policies see `outcome.http.status` and `outcome.http.headers`, after failures too.

    A status of 400 or more is an error of kind `http_status`, unless `ok_status` says otherwise; `outcome.error.data` then
    has the beginning of the body (up to 64 KiB). It is retryable for 408, 425, 429, 500, 502, 503 and 504. Other kinds:
    `connect`, `timeout`, `dns`, `tls`, `protocol`, `decode`, `redirects`, `too_large`, `address_refused`,
    `unsupported_scheme`, `parameters`.

    Time limits stand in `spec.timeout`: a number of seconds for all of it, or `{connect, read, write, total}`. Without them a
    connection may take 10 s, and the server may stay silent for 60 s. `spec.retry: {attempts, delay, statuses}` tries again
    inside the same task run, and waits longer when the server asks for it with `Retry-After`.

    A request that changes something (`POST`, `PUT`, `PATCH`, `DELETE`) carries the header `Idempotency-Key`, by which a server
    can tell that it has had the same one before: it is the name of this task's effect, also readable as `{{ _effect }}`.

    Connections are shared by all tasks of a run; cookies are not, they last for the redirects of one request. Proxies from
    the environment (`HTTPS_PROXY`, `NO_PROXY` …) are used. Where the operator has closed the private network, only public
    addresses can be reached, redirects included, and directly, without a proxy.
    """

    kind: ClassVar[str] = "http"
    gives: ClassVar[tuple[str, ...]] = ("data", "status", "headers", "url", "elapsed_ms", "status_code", "body")
    makes_files: ClassVar[bool] = False
    defaults: ClassVar[JsonMap] = {"timeout": {"connect": 10, "read": 60, "write": 60}}

    def __init__(self, resolve: Resolver = resolve_host, open_socket: OpenSocket = socket.socket) -> None:
        """`resolve` and `open_socket` are how names are looked up and sockets made."""
        self._resolve = resolve
        self._open_socket = open_socket
        self._known_spec: tuple[JsonMap, TimeLimits, InnerRetry] = {}, TimeLimits(), InnerRetry()
        """The spec of the last run, which all elements of a loop share, and what it says."""

    async def run(self, params: HttpParams, call: Call) -> Success:
        spec, limits, retry = self._known_spec
        if spec is not call.spec:
            limits, retry = TimeLimits.of(call.spec), InnerRetry.of(call.spec)
            self._known_spec = call.spec, limits, retry
        if limits.total is None:
            return await self._tries(params, call, limits, retry)
        async with within(limits.total, f"{params.method.upper()} request"):
            return await self._tries(params, call, limits, retry)

    async def _tries(self, params: HttpParams, call: Call, limits: TimeLimits, retry: InnerRetry) -> Success:
        params = plain(params)
        accepts(params.ok_status, 0)
        started = call.clock.now()
        client = await self._client(params, call)
        for number in range(1, retry.attempts + 1):
            try:
                return await self._once(client, params, call, limits, started, number)
            except ToolFailure as failure:
                failure.helpers.setdefault("http", {})["requests"] = number
                if number == retry.attempts or not retry.wants(failure):
                    raise
                call.say(f"request {number} of {retry.attempts}: {failure.message}")
                await call.clock.sleep(retry.pause(failure))
        raise AssertionError("the last attempt returns or raises")

    async def _client(self, params: HttpParams, call: Call) -> Client:
        verify = str(local_path(params.verify, call)) if isinstance(params.verify, str) else params.verify

        def load() -> None:
            global wire
            from penstock.tools.http import exchange as wire  # Slow to import: a request is the first to need it.

        async def make() -> Any:
            await call.threads.run(load)
            client = wire.Client(verify, call.settings.addresses, self._resolve, self._open_socket)
            return client, client.close

        client: Client = await call.resources.get(("http", verify), make)
        return client

    def exchange_for(self, params: HttpParams, known: Identity, call: Call) -> Exchange:
        """How the request and its redirects are handled, and what of them is shown."""
        secret_query = next(iter(known.query), None)
        return wire.Exchange(params.follow_redirects, frozenset(known.headers), secret_query, call.holds_secret)

    async def _once(
        self, client: Client, params: HttpParams, call: Call, limits: TimeLimits, started: float, number: int
    ) -> Success:
        known = identity(params.auth, call)
        exchange = self.exchange_for(params, known, call)
        if not params.files:
            request = _request(params, call, known, limits, body_of(params, call, _NOTHING_OPENED))
            return await self._exchanged(client, exchange, request, params, call, started, number)
        with ExitStack() as opened:
            body = await call.threads.run(body_of, params, call, opened)
            request = _request(params, call, known, limits, body)
            return await self._exchanged(client, exchange, request, params, call, started, number)

    async def _exchanged(
        self,
        client: Client,
        exchange: Exchange,
        request: Request,
        params: HttpParams,
        call: Call,
        started: float,
        number: int,
    ) -> Success:
        async with client.places:
            response, last = await exchange.send(client, request)
            try:
                headers = wire.recorded_headers(response.headers)
                about: JsonMap = {"status": response.status, "headers": headers, "requests": number}
                url = exchange.shown(last.url)
                try:
                    data = await _data(response, params, call, exchange, last, url)
                except ToolFailure as failure:
                    failure.helpers.setdefault("http", about)
                    raise
            finally:
                response.release()
        result: JsonMap = {
            "data": data,
            "status": response.status,
            "headers": headers,
            "url": url,
            "elapsed_ms": max(0, round((call.clock.now() - started) * 1000)),
        }
        return Success(result, {"http": about})


_NOTHING_OPENED = ExitStack()


def _request(
    params: HttpParams, call: Call, known: Identity, limits: TimeLimits, body: tuple[Body, str | None] | None
) -> Request:
    headers = headers_of(params, call, known)
    if body is not None and body[1] is not None:
        headers.setdefault("content-type", body[1])
    try:
        url = wire.with_query(wire.url_of(params.url), [*pairs(params.params), *known.query.items()])
    except ValueError as error:
        raise ToolFailure("parameters", f"this is not a request that can be sent: {error}") from error
    method = params.method.strip().upper()
    if not _NAME.fullmatch(method):
        raise ToolFailure("parameters", f"`method` is `{params.method}`: that is not a method of HTTP")
    return wire.Request(method, url, headers, body and body[0], limits.connect, limits.read, limits.write)


async def _data(
    response: aiohttp.ClientResponse, params: HttpParams, call: Call, exchange: Exchange, request: Request, url: str
) -> Json:
    if not accepts(params.ok_status, response.status):
        raise await _status_failure(response, url)
    try:
        if params.response == "stream":
            return await stream_to_store(response, call, params.max_response_bytes, url)
        return await read_value(response, call, params.response, params.max_response_bytes, url)
    except wire.TROUBLE as error:
        raise exchange.failure(error, request) from error


async def _status_failure(response: aiohttp.ClientResponse, url: str) -> ToolFailure:
    status = response.status
    try:
        body = await wire.excerpt(response)
    except wire.TROUBLE:
        body = b""
    try:
        data = value_of(body, response, "auto")
    except ToolFailure:
        # Cut off in the middle, or mislabelled: the text still says more than nothing.
        data = text_of(body, response.charset)
    if form_of(media_type(response)) == "bytes":
        data = None
    named = f"{response.method} {url} answered {status} {response.reason or ''}".rstrip()
    if words := _words_in(data):
        named = f"{named}: {words}"
    return ToolFailure("http_status", named, retryable=status in RETRYABLE, status=status, url=url, data=data)


MOST_WORDS = 200


def _words_in(data: Json) -> str:
    """What the body of an error says, for a sentence: exactly that, or nothing. What is cut off or set otherwise could hold part
    of a secret, which would not be found and masked any more. A page for people to look at says nothing in a line."""
    if not data or (isinstance(data, str) and data.lstrip().startswith("<")):
        return ""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return text if len(text) <= MOST_WORDS and text.isprintable() else ""
