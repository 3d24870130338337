"""One question to an issuer of secrets over HTTP, and its answer.

Law: redirects are not followed, for they would carry the credential elsewhere; errors name the address without its query and
never quote what was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from penstock.kernel.errors import Unavailable
from penstock.kernel.values import JsonMap
from penstock.keychain.errors import Unresolved
from penstock.ports.ambient import Clock
from penstock.tools.addresses import OPEN, Addresses

_TRIES = 3
_FIRST_DELAY_S = 0.2
_WHOLE_S = 20.0
_MAX_BYTES = 1024 * 1024
_WORTH_ANOTHER_TRY = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: JsonMap
    """Empty when the answer was not a JSON mapping."""


async def ask(
    method: Literal["GET", "POST"],
    url: str,
    *,
    clock: Clock,
    headers: Mapping[str, str],
    form: Mapping[str, str] | None = None,
    allowed: Addresses = OPEN,
) -> Answer:
    """`allowed`: where the issuer may be, when a document names it. Raises Unavailable when there is no answer, or only
    ones that promise to be better later."""
    place = shown(url)
    why = ""
    for number in range(_TRIES):
        if number:
            await clock.sleep(_FIRST_DELAY_S * 4 ** (number - 1))
        answer = await _once(method, url, headers, form, allowed)
        if isinstance(answer, Answer) and answer.status not in _WORTH_ANOTHER_TRY:
            return answer
        why = answer if isinstance(answer, str) else f"it answers with status {answer.status}"
    raise Unavailable(f"`{place}` cannot be used now: {why}", "check the address and the network, then try again")


async def _once(
    method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None, allowed: Addresses
) -> Answer | str:
    import httpx2

    from penstock.tools.base import ToolFailure
    from penstock.tools.http.exchange import open_client

    client, close = open_client(True, allowed)
    try:
        async with asyncio.timeout(_WHOLE_S), AsyncExitStack() as stack:
            stack.push_async_callback(close)
            data = None if form is None else dict(form)
            asked = client.stream(
                method, url, headers=dict(headers), data=data, timeout=_WHOLE_S / 2, follow_redirects=False
            )
            async with asked as response:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        return "its answer is too large"
                return Answer(response.status_code, _mapping(bytes(body)))
    except ToolFailure as failure:
        if failure.retryable:
            return failure.message
        raise Unresolved(failure.message) from None
    except TimeoutError:
        return f"no answer within {_WHOLE_S:g} seconds"
    except httpx2.TimeoutException:
        return "no answer in time"
    except httpx2.NetworkError as error:
        return str(error) or "the connection broke"
    except (httpx2.LocalProtocolError, httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError):
        # The message of these quotes what could not be sent, and that may be the credential.
        raise Unresolved(
            f"the request to `{shown(url)}` cannot be sent: address or credential hold characters that are not allowed"
        ) from None
    except httpx2.HTTPError as error:
        return f"the exchange failed with `{type(error).__name__}`"


def _mapping(body: bytes) -> JsonMap:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def shown(url: str) -> str:
    """An address as it may stand in a message: no user, no password, no query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the address"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def check_address(field: str, url: str) -> str:
    """A warning when the secret would travel in the open, else an empty text. Raises Unresolved when it is no web address."""
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme, parts.hostname
    except ValueError:
        scheme, host = "", None
    if scheme not in ("http", "https") or not host:
        raise Unresolved(f"`{field}` is not a web address", "it begins with `https://`")
    if scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        return f"`{field}` is not encrypted: secrets travel in the open to `{host}`; use `https://`"
    return ""
