"""Hooks: turn a request from outside into a run. Verifies it, detects repetition, and selects what the run gets to see of it.

Law: the sender determines `workload.event` and nothing else: all other inputs are those of the hook. Nothing in a request is
parsed before its signature has been verified.

    signed by                                      signature of                     against repetition
    X-Hub-Signature-256: sha256=HEX                the body                         the same body within 10 minutes is one request
    X-Penstock-Signature: t=SECONDS,v1=HEX[,v1=…]  SECONDS, a full stop, the body   5 minutes, and the signature is the key

Both are HMAC-SHA256 with the secret of the hook. If both are given, the second one counts, as it cannot be repeated later. No
signature covers headers, so anyone who has seen a signed request can give it another `Idempotency-Key`: signed content runs once,
whatever the headers say. Requests to hooks without a secret are identified by `Idempotency-Key`, else by `X-GitHub-Delivery`.

A run sees `workload.event`:

    hook      the name of the hook
    body      application/json as it is; a form as a mapping, with lists for repeated fields; text/* as text; null if it is
              empty. Without a Content-Type it is JSON if it can be parsed as such, otherwise text.
    headers   those of `SHOWN_HEADERS`, in lower case: none that could hold a credential
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, quote

import msgspec

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap, merge_deeply
from penstock.ports.blobs import is_ref
from penstock.ports.control import HIDDEN, ControlStore, Hook
from penstock.ports.json_text import json_mistake
from penstock.ports.results import decode

LARGEST_BODY = 1024 * 1024
DEEPEST_BODY = 64
MOST_FORM_FIELDS = 1000
LONGEST_KEY = 255
LONGEST_HEADER = 1000
TOLERANCE_S = 300.0
"""How far a sender's clock may be off, and how long a request may be in transit."""
REPEATED_S = 600.0
"""How long a repeated body counts as the same request if the signature covers only the body."""
MOST_REMEMBERED = 10_000
SHORTEST_SECRET = 16
MOST_SIGNATURES = 5

SHOWN_HEADERS = frozenset(
    {
        "ce-id",
        "ce-source",
        "ce-specversion",
        "ce-subject",
        "ce-time",
        "ce-type",
        "content-type",
        "idempotency-key",
        "user-agent",
        "x-event-key",
        "x-event-type",
        "x-github-delivery",
        "x-github-event",
        "x-github-hook-id",
        "x-gitlab-event",
        "x-gitlab-event-uuid",
        "x-request-id",
    }
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HEX = re.compile(r"[0-9a-f]{64}")
_SECONDS = re.compile(r"[0-9]{1,12}")


class SwitchedOff(Refused):
    """The hook exists, but is switched off."""


class NotSigned(Refused):
    """The signature is missing, wrong, or out of date."""


class TooLarge(Refused):
    pass


class NotReadable(Refused):
    """Hooks do not read bodies of this content type."""


# ---- hooks as people write them


def keep_hook(control: ControlStore, hook: Hook) -> Hook:
    """Check a hook and store it; returns what is stored, without its secret."""
    if _NAME.fullmatch(hook.name) is None:
        raise Refused(
            f"`{hook.name[:200]}` cannot be the name of a hook",
            "use up to 100 letters, digits, `.`, `_` and `-`, a letter or digit first",
        )
    if hook.secret not in (None, HIDDEN) and len(hook.secret or "") < SHORTEST_SECRET:
        raise Refused(
            f"the secret of hook `{hook.name}` is too short to be one", f"give it {SHORTEST_SECRET} characters or more"
        )
    control.put_hook(hook)
    return next((one for one in control.hooks() if one.name == hook.name), hook)


# ---- is it to be believed?


def verify(hook: Hook, headers: Mapping[str, str], body: bytes, now: float) -> None:
    """Refused (`SwitchedOff`, `TooLarge`, `NotSigned`) if the request must not be accepted. A hook without a secret accepts
    every request."""
    if not hook.is_on:
        raise SwitchedOff(f"hook `{hook.name}` is switched off")
    check_size(len(body))
    if hook.secret is None:
        return
    said = _lowered(headers)
    if (stamped := said.get("x-penstock-signature")) is not None:
        at, given = _stamped(stamped)
        if abs(now - at) > TOLERANCE_S:
            raise NotSigned(
                f"the signature is of another time: it is {abs(now - at):,.0f} s {'old' if now > at else 'early'}",
                f"sign each request when it is sent; clocks may differ by {TOLERANCE_S:g} s",
            )
        expected = _mac(hook.secret, _stamp(at) + body)
    elif (plain := said.get("x-hub-signature-256")) is not None:
        given = [plain.strip().lower().removeprefix("sha256=")]
        expected = _mac(hook.secret, body)
    else:
        raise NotSigned(
            f"hook `{hook.name}` takes signed requests only",
            "sign with `X-Penstock-Signature: t=SECONDS,v1=HEX` or `X-Hub-Signature-256: sha256=HEX`",
        )
    if not any(hmac.compare_digest(expected, one) for one in given if _HEX.fullmatch(one)):
        raise NotSigned(
            "the signature is wrong", "check the secret, and that the body is signed byte by byte as it is sent"
        )


def check_size(size: int) -> None:
    """For callers that know the size of a body before it has been read."""
    if size > LARGEST_BODY:
        raise TooLarge(f"the body has {size:,} bytes", f"hooks take {LARGEST_BODY:,}: send a reference to the rest")


def sign(secret: str, body: bytes, at: float) -> str:
    """The `X-Penstock-Signature` of a request that is sent now."""
    return f"t={int(at)},v1={_mac(secret, _stamp(int(at)) + body)}"


def _mac(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def _stamp(at: int) -> bytes:
    return f"{at}.".encode()


def _stamped(header: str) -> tuple[int, list[str]]:
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value.lower() for name, _, value in parts if name == "v1"]
    if len(times) != 1 or _SECONDS.fullmatch(times[0]) is None or not 1 <= len(given) <= MOST_SIGNATURES:
        raise NotSigned("the signature cannot be read", "write `X-Penstock-Signature: t=SECONDS,v1=HEX`")
    return int(times[0]), given


# ---- did it come before?


class Recent:
    """Signatures of the bodies this server received within `REPEATED_S`. For that long after its first arrival, the same
    body gets the same key; other servers agree, except across the start of a new time window."""

    def __init__(self) -> None:
        self._first: dict[str, float] = {}

    def since(self, signature: str, now: float) -> int:
        first = self._first.get(signature)
        if first is None or not 0 <= now - first < REPEATED_S:
            self._first.pop(signature, None)
            while len(self._first) >= MOST_REMEMBERED:
                self._first.pop(next(iter(self._first)))
            first = self._first[signature] = now
        return int(first // REPEATED_S)


def key_of(hook: Hook, headers: Mapping[str, str], body: bytes, now: float, recent: Recent) -> str | None:
    """The submission key of a verified request; None if nothing distinguishes it from others."""
    said = _lowered(headers)
    place = f"hook:{quote(hook.name, safe='')}"
    if hook.secret is not None:
        if (stamped := said.get("x-penstock-signature")) is not None:
            at, _ = _stamped(stamped)
            return f"{place}:signature:{_mac(hook.secret, _stamp(at) + body)}"
        signature = _mac(hook.secret, body)
        return f"{place}:body:{signature}:{recent.since(f'{place}:{signature}', now)}"
    for header, kind in (("idempotency-key", "key"), ("x-github-delivery", "delivery")):
        if key := said.get(header, "").strip():
            if len(key) > LONGEST_KEY or not key.isprintable():
                raise Refused(f"the `{header}` is not a key", f"use up to {LONGEST_KEY} characters that can be printed")
            return f"{place}:{kind}:{key}"
    return None


# ---- what does the run see?


def payload_of(hook: Hook, headers: Mapping[str, str], body: bytes) -> JsonMap:
    """The payload of the run that a request starts. Refused (`TooLarge`, `NotReadable`) if the body cannot be read."""
    check_size(len(body))
    said = _lowered(headers)
    shown: JsonMap = {
        name: value for name, value in sorted(said.items()) if name in SHOWN_HEADERS and len(value) <= LONGEST_HEADER
    }
    read = _read(said.get("content-type", ""), body)
    _check_depth(read)
    return merge_deeply(hook.payload, {"event": {"hook": hook.name, "body": read, "headers": shown}})


def _read(content_type: str, body: bytes) -> Json:
    if not body.strip():
        return None
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return _json(body)
    if kind == "application/x-www-form-urlencoded":
        return _form(body)
    if kind.startswith("text/"):
        return _text(body)
    if not kind:
        try:
            return _json(body)
        except Refused:
            return _text(body)
    raise NotReadable(f"hooks do not read `{kind[:100]}`", "send `application/json`, a form, or `text/plain`")


def _json(body: bytes) -> Json:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refused(
            f"the body is not JSON: {json_mistake(body, error)}", "correct it, or its `Content-Type`"
        ) from None


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise Refused("the body is not text in UTF-8", "send `application/json`, a form, or text in UTF-8") from None


def _form(body: bytes) -> Json:
    try:
        fields = parse_qs(_text(body), keep_blank_values=True, max_num_fields=MOST_FORM_FIELDS, errors="strict")
    except ValueError as error:
        raise Refused(f"the form cannot be read: {error}", f"forms have up to {MOST_FORM_FIELDS} fields") from None
    return {name: values[0] if len(values) == 1 else list(values) for name, values in fields.items()}


def _check_depth(value: Json) -> None:
    """Refuse bodies nested too deeply, and references to results: these are the engine's own, and not accepted from outside."""
    level: list[Json] = [value]
    for _ in range(DEEPEST_BODY + 1):
        if any(is_ref(one) for one in level):
            raise Refused("the body has a reference to a result of a run in it", "send the value itself")
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise Refused(f"the body is nested more than {DEEPEST_BODY} deep", "send it flatter")


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
