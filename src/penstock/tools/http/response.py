"""From a response to a value: bounded, decoded by its media type, or streamed into the result store.

Law: nothing is read past `max_response_bytes`, counted after decompression, and a streamed body is never whole in memory.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from penstock.kernel.values import Json
from penstock.ports.json_text import json_mistake
from penstock.tools.base import Call, ToolFailure, os_failure

if TYPE_CHECKING:
    import aiohttp


Form = Literal["json", "text", "bytes"]

JSON_MEDIA = "application/json"
_CHUNK = 256 * 1024
_OFF_LOOP = 1024 * 1024
"""From this size on, decoding is long enough to be felt by the other tasks on the event loop."""
_TEXTUAL = (
    "xml", "javascript", "ecmascript", "x-www-form-urlencoded", "yaml", "ndjson", "jsonl", "json-seq", "csv",
    "graphql",
)  # fmt: skip
# Python's own notations, not character sets: they can yield text that no JSON can carry.
_NOT_CHARSETS = {"unicode_escape", "raw_unicode_escape", "undefined", "idna", "punycode"}


def media_type(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def form_of(media: str) -> Form | None:
    """How a body of this media type is best given to a playbook; None when the type says nothing."""
    if media in ("application/json", "text/json") or media.endswith("+json"):
        return "json"
    if media.startswith("text/") or any(media.endswith(word) for word in _TEXTUAL):
        return "text"
    return "bytes" if media else None


def too_large(limit: int, url: str) -> ToolFailure:
    return ToolFailure(
        "too_large",
        f"the body of {url} is larger than `max_response_bytes` ({limit:,} bytes): raise it, or use `response: stream`",
        limit=limit,
    )


async def bounded(response: aiohttp.ClientResponse, limit: int, url: str) -> AsyncGenerator[bytes, None]:
    """The decoded body in chunks; fails as soon as it is, or says it is, longer than `limit`."""
    _check_announced(response, limit, url)
    seen, gathered = 0, bytearray()
    while chunk := await response.content.readany():
        seen += len(chunk)
        if seen > limit:
            raise too_large(limit, url)
        gathered += chunk
        if len(gathered) >= _CHUNK:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def _check_announced(response: aiohttp.ClientResponse, limit: int, url: str) -> None:
    announced = response.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit and response.method != "HEAD":
        raise too_large(limit, url)


def text_of(body: bytes, charset: str | None) -> str:
    """Text in the charset the headers name, else UTF-8; bytes that do not fit are replaced, as browsers do."""
    try:
        codec = codecs.lookup(charset or "utf-8").name.replace("-", "_")
        return body.decode("utf-8" if codec in _NOT_CHARSETS else codec, "replace").removeprefix("\ufeff")
    except LookupError:
        return body.decode("utf-8", "replace")


def json_of(body: bytes, charset: str | None) -> Json:
    if charset is not None and charset.lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
        body = text_of(body, charset).encode()
    value: Json = msgspec.json.decode(body.removeprefix(codecs.BOM_UTF8))
    return value


def value_of(body: bytes, response: aiohttp.ClientResponse, wanted: Literal["auto", "json", "text", "bytes"]) -> Json:
    """The body as a value. An empty one is null, unless JSON was asked for and the status promises some."""
    media, charset = media_type(response), response.charset
    silent = response.status in (204, 205, 304) or response.method == "HEAD"
    if not body and (wanted == "auto" or silent):
        return None
    form = form_of(media) if wanted == "auto" else wanted
    if form is None:
        try:
            return body.decode()
        except UnicodeDecodeError:
            form = "bytes"
    if form == "bytes":
        return base64.b64encode(body).decode()
    if form == "text":
        return text_of(body, charset)
    try:
        return json_of(body, charset)
    except (ValueError, RecursionError) as error:
        raise ToolFailure(
            "decode",
            f"the body is not JSON: {json_mistake(body, error)}" if body else "the body is empty, not JSON",
            data=text_of(body[:1000], charset),
        ) from error


async def read_value(
    response: aiohttp.ClientResponse, call: Call, wanted: Literal["auto", "json", "text", "bytes"], limit: int, url: str
) -> Json:
    _check_announced(response, limit, url)
    body = await response.content.readany()
    if not response.content.at_eof():
        rest = bytearray(body)
        while chunk := await response.content.readany():
            rest += chunk
            if len(rest) > limit:
                raise too_large(limit, url)
        body = bytes(rest)
    if len(body) > limit:
        raise too_large(limit, url)
    if len(body) < _OFF_LOOP:
        return value_of(body, response, wanted)
    value: Json = await call.threads.run(value_of, body, response, wanted)
    return value


class _Stopped(Exception):
    """Tells the store's thread that no more will come, so that it drops what it has."""


class _Pulled(Iterator[bytes]):
    """Lets a thread iterate over chunks that the event loop reads: one at a time, so the server waits for the disk."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._loop = asyncio.get_running_loop()
        self._reading: asyncio.Task[bytes | None] | None = None
        self._stopped = False
        self._begins = b""

    async def _next(self) -> bytes | None:
        if self._stopped:
            raise _Stopped
        self._reading = asyncio.current_task()
        return await anext(self._chunks, None)

    def __next__(self) -> bytes:
        try:
            chunk = asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()
        except CancelledError as error:
            raise _Stopped from error
        if chunk is None:
            raise StopIteration
        self._begins = self._begins or chunk.lstrip()[:1]
        return chunk

    def shape(self) -> Json:
        """What a JSON body is, by how it begins: lets templates look inside without reading it here."""
        kind = {b"{": "object", b"[": "array"}.get(self._begins)
        return {"type": kind} if kind is not None else None

    def stop(self) -> None:
        self._stopped = True
        if self._reading is not None:
            self._reading.cancel()


async def stream_to_store(response: aiohttp.ClientResponse, call: Call, limit: int, url: str) -> Json:
    """Hand the body to the result store chunk by chunk; gives the reference as JSON."""
    async with aclosing(bounded(response, limit, url)) as chunks:
        pulled = _Pulled(chunks)
        media = media_type(response) or "application/octet-stream"
        storing = asyncio.ensure_future(call.threads.run(call.blobs.put, pulled, media))
        try:
            ref = await asyncio.shield(storing)
        except asyncio.CancelledError:
            pulled.stop()
            # The thread ends only when the reading has, so the chunks can be closed safely after this.
            await asyncio.wait({storing})
            if not storing.cancelled():
                storing.exception()
            raise
        except OSError as error:
            raise os_failure(error, Path(error.filename or "the result store")) from error
    value: Json = replace(ref, schema_hint=pulled.shape()).as_json() if media == JSON_MEDIA else ref.as_json()
    return value


# ---- What an answer over HTTP says of where to go on: links in its headers, and values in its body.

_LINK = re.compile(r'<([^>]*)>\s*((?:;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^\s;,]+)\s*)*)')


def next_link(header: str) -> str | None:
    for found in _LINK.finditer(header):
        relations = re.findall(r'rel\s*=\s*"?([^";,]*)"?', found[2])
        if any("next" in relation.lower().split() for relation in relations):
            return found[1]
    return None


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def value_at(value: Any, path: str) -> Any:
    """What a path such as `data.items` or `pages.0.rows` leads to; None when it leads nowhere."""
    for step in (step for step in path.removeprefix("$").split(".") if step):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
