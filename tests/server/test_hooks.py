"""Requests from outside: which are believed, which came before, and what a run gets to see of them."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest

from penstock.adapters.sqlite.control import MemoryControl
from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap
from penstock.ports.control import HIDDEN, Hook
from penstock.server.hooks import (
    LARGEST_BODY,
    MOST_REMEMBERED,
    REPEATED_S,
    SHOWN_HEADERS,
    NotReadable,
    NotSigned,
    Recent,
    SwitchedOff,
    TooLarge,
    check_size,
    keep_hook,
    key_of,
    payload_of,
    sign,
    verify,
)

NOW = 1_700_000_000.0
SECRET = "It's a Secret to Everybody"
BODY = b"Hello, World!"
# The example in GitHub's own documentation of webhook signatures.
GITHUB = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

OPEN = Hook("pushed", "sales/orders")
SIGNED = replace(OPEN, secret=SECRET)


def mac(message: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


# ---- signatures


def test_a_signature_as_github_makes_it_is_good() -> None:
    verify(SIGNED, {"X-Hub-Signature-256": GITHUB}, BODY, NOW)
    verify(SIGNED, {"x-hub-signature-256": GITHUB.upper().replace("SHA", "sha")}, BODY, NOW)


def test_a_signature_of_our_own_kind_is_good() -> None:
    assert sign(SECRET, BODY, NOW + 0.9) == f"t=1700000000,v1={mac(b'1700000000.' + BODY)}"
    verify(SIGNED, {"X-Penstock-Signature": sign(SECRET, BODY, NOW)}, BODY, NOW)


@pytest.mark.parametrize("off", [-299, -1, 0, 299])
def test_clocks_may_differ_by_five_minutes(off: int) -> None:
    verify(SIGNED, {"X-Penstock-Signature": sign(SECRET, BODY, NOW + off)}, BODY, NOW)


@pytest.mark.parametrize("off", [-301, 301, -NOW, 10**9])
def test_a_signature_of_another_time_is_refused(off: float) -> None:
    with pytest.raises(NotSigned, match="another time"):
        verify(SIGNED, {"X-Penstock-Signature": sign(SECRET, BODY, NOW + off)}, BODY, NOW)


def test_one_good_signature_of_several_is_enough_so_that_secrets_can_be_changed() -> None:
    others = ",".join(f"v1={mac(BODY, str(number))}" for number in range(4))
    good = sign(SECRET, BODY, NOW).removeprefix("t=1700000000,")
    verify(SIGNED, {"X-Penstock-Signature": f"t=1700000000, {others}, {good}"}, BODY, NOW)


GOOD = mac(b"1700000000." + BODY)
WRONG: dict[str, dict[str, str]] = {
    "no signature": {},
    "another header": {"Authorization": f"Bearer {SECRET}", "X-Hub-Signature": GITHUB},
    "empty": {"X-Hub-Signature-256": ""},
    "no hex": {"X-Hub-Signature-256": "sha256="},
    "another hash": {"X-Hub-Signature-256": GITHUB.replace("sha256", "sha1")},
    "one letter off": {"X-Hub-Signature-256": GITHUB[:-1] + "8"},
    "too short": {"X-Hub-Signature-256": GITHUB[:-1]},
    "too long": {"X-Hub-Signature-256": GITHUB + "7"},
    "not ascii": {"X-Hub-Signature-256": "sha256=" + "é" * 64},
    "another secret": {"X-Hub-Signature-256": f"sha256={mac(BODY, 'another')}"},
    "another body": {"X-Hub-Signature-256": f"sha256={mac(BODY + b' ')}"},
    "ours: empty": {"X-Penstock-Signature": ""},
    "ours: no time": {"X-Penstock-Signature": f"v1={GOOD}"},
    "ours: no signature": {"X-Penstock-Signature": "t=1700000000"},
    "ours: two times": {"X-Penstock-Signature": f"t=1700000000,t=1,v1={GOOD}"},
    "ours: a time in words": {"X-Penstock-Signature": f"t=now,v1={GOOD}"},
    "ours: digits of another script": {"X-Penstock-Signature": f"t=١٧٠٠٠٠٠٠٠٠,v1={GOOD}"},
    "ours: a time before time": {"X-Penstock-Signature": f"t=-1700000000,v1={GOOD}"},
    "ours: a time without end": {"X-Penstock-Signature": f"t={'9' * 5000},v1={GOOD}"},
    "ours: another version": {"X-Penstock-Signature": f"t=1700000000,v0={GOOD}"},
    "ours: the time is signed": {"X-Penstock-Signature": f"t=1700000001,v1={GOOD}"},
    "ours: the body alone": {"X-Penstock-Signature": f"t=1700000000,v1={mac(BODY)}"},
    "ours: too many": {"X-Penstock-Signature": "t=1700000000" + f",v1={GOOD}" * 6},
    "ours goes before the other": {
        "X-Hub-Signature-256": GITHUB,
        "X-Penstock-Signature": "t=1700000000,v1=" + "0" * 64,
    },
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
def test_what_is_not_signed_with_the_secret_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(NotSigned) as raised:
        verify(SIGNED, headers, BODY, NOW)
    assert SECRET not in f"{raised.value.message}{raised.value.hint}"
    assert GOOD not in f"{raised.value.message}{raised.value.hint}"


def test_a_hook_without_a_secret_takes_what_comes() -> None:
    verify(OPEN, {}, BODY, NOW)
    verify(OPEN, {"X-Hub-Signature-256": "nonsense", "X-Penstock-Signature": "nonsense"}, BODY, NOW)


def test_a_hook_that_is_off_takes_nothing() -> None:
    for hook in (OPEN, SIGNED):
        with pytest.raises(SwitchedOff, match="`pushed`"):
            verify(replace(hook, is_on=False), {"X-Hub-Signature-256": GITHUB}, BODY, NOW)


def test_what_is_too_large_is_refused_before_it_is_looked_at() -> None:
    check_size(LARGEST_BODY)
    verify(OPEN, {}, b"x" * LARGEST_BODY, NOW)
    for look in (lambda: verify(SIGNED, {}, b"x" * (LARGEST_BODY + 1), NOW), lambda: check_size(LARGEST_BODY + 1)):
        with pytest.raises(TooLarge, match="1,048,577 bytes"):
            look()


# ---- repetition


KEYS: dict[str, tuple[dict[str, str], str | None]] = {
    "none": ({}, None),
    "empty": ({"Idempotency-Key": " ", "X-GitHub-Delivery": ""}, None),
    "key": ({"Idempotency-Key": "order 17"}, "hook:pushed:key:order 17"),
    "delivery": ({"X-GitHub-Delivery": "72d3162e"}, "hook:pushed:delivery:72d3162e"),
    "both": ({"x-github-delivery": "72d3162e", "idempotency-key": "a:b"}, "hook:pushed:key:a:b"),
}


@pytest.mark.parametrize(("headers", "key"), KEYS.values(), ids=KEYS)
def test_a_request_is_known_by_the_key_of_its_sender(headers: dict[str, str], key: str | None) -> None:
    assert key_of(OPEN, headers, BODY, NOW, Recent()) == key


def test_a_signed_request_that_is_repeated_is_the_same_request() -> None:
    first = {"X-Penstock-Signature": sign(SECRET, BODY, NOW)}
    key = key_of(SIGNED, first, BODY, NOW, Recent())
    assert key is not None
    assert key_of(SIGNED, dict(first), BODY, NOW, Recent()) == key
    another = f"{first['X-Penstock-Signature']},v1={'0' * 64}"
    assert key_of(SIGNED, {"X-Penstock-Signature": another}, BODY, NOW, Recent()) == key
    later = {"X-Penstock-Signature": sign(SECRET, BODY, NOW + 1)}
    assert key_of(SIGNED, later, BODY, NOW, Recent()) != key
    other = {"X-Penstock-Signature": sign(SECRET, b"other", NOW)}
    assert key_of(SIGNED, other, b"other", NOW, Recent()) != key
    assert SECRET not in key


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-GitHub-Delivery"])
@pytest.mark.parametrize("signature", ["X-Penstock-Signature", "X-Hub-Signature-256"])
def test_another_key_does_not_make_a_signed_request_another_one(signature: str, header: str) -> None:
    signed = {signature: sign(SECRET, BODY, NOW) if signature == "X-Penstock-Signature" else GITHUB}
    recent = Recent()
    keys = {key_of(SIGNED, {**signed, header: key}, BODY, NOW, recent) for key in ("a", "b", "")}
    assert len(keys) == 1


def test_a_body_that_comes_again_within_the_window_is_the_same_request_and_later_another() -> None:
    recent, signed = Recent(), {"X-Hub-Signature-256": GITHUB}
    first = key_of(SIGNED, signed, BODY, NOW, recent)
    assert {key_of(SIGNED, signed, BODY, NOW + after, recent) for after in (1, 300, REPEATED_S - 1)} == {first}
    assert key_of(SIGNED, signed, BODY, NOW + REPEATED_S, recent) != first
    assert key_of(SIGNED, signed, b"other", NOW, recent) != first


def test_no_more_signatures_are_remembered_than_fit() -> None:
    recent = Recent()
    for number in range(MOST_REMEMBERED + 5):
        recent.since(str(number), NOW)
    assert len(recent._first) == MOST_REMEMBERED


def test_no_two_hooks_share_a_key() -> None:
    one = key_of(replace(OPEN, name="a"), {"Idempotency-Key": "b:key:c"}, BODY, NOW, Recent())
    two = key_of(replace(OPEN, name="a:key:b"), {"Idempotency-Key": "c"}, BODY, NOW, Recent())
    assert one != two


@pytest.mark.parametrize("key", ["x" * 256, "a\nb", "a\u0000b", "\u202e"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(Refused, match="is not a key"):
        key_of(OPEN, {"Idempotency-Key": key}, BODY, NOW, Recent())


# ---- what a run sees

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
BODIES: dict[str, tuple[str, bytes, Json]] = {
    "json": (JSON, b'{"a": [1, 2.5, null, true, "\xc3\xa4"]}', {"a": [1, 2.5, None, True, "ä"]}),
    "json of a kind": ("application/cloudevents+json; charset=utf-8", b'{"a": 1}', {"a": 1}),
    "json in capitals": ("Application/JSON", b"[1]", [1]),
    "json that is a text": (JSON, b'"{{ ctx.secret }}"', "{{ ctx.secret }}"),
    "nothing": (JSON, b"", None),
    "only space": ("", b" \r\n", None),
    "a form": (FORM, b"a=1&b=x+y%C3%A4&a=2&c=", {"a": ["1", "2"], "b": "x yä", "c": ""}),
    "text": ("text/plain; charset=utf-8", b'{"a": 1}', '{"a": 1}'),
    "xml": ("text/xml", b"<a/>", "<a/>"),
    "no type, json": ("", b'{"a": 1}', {"a": 1}),
    "no type, text": ("", b"a: 1", "a: 1"),
    "a reference of JSON Schema": (JSON, b'{"$ref": "#/defs/a"}', {"$ref": "#/defs/a"}),
}


@pytest.mark.parametrize(("kind", "body", "seen"), BODIES.values(), ids=BODIES)
def test_a_body_is_read_as_what_it_is(kind: str, body: bytes, seen: Json) -> None:
    headers = {"Content-Type": kind} if kind else {}
    shown: JsonMap = {"content-type": kind} if kind else {}
    event: JsonMap = {"hook": "pushed", "body": seen, "headers": shown}
    assert payload_of(OPEN, headers, body) == {"event": event}


UNREADABLE: dict[str, tuple[str, bytes, type[Refused]]] = {
    "half of it": (JSON, b'{"a": ', Refused),
    "not a number": (JSON, b"NaN", Refused),
    "beyond numbers": (JSON, b"1e999", Refused),
    "no characters": (JSON, b'"\xff"', Refused),
    "half a character": (JSON, b'"\\ud800"', Refused),
    "deep": (JSON, b"[" * 66 + b"]" * 66, Refused),
    "very deep": (JSON, b"[" * 400_000 + b"]" * 400_000, Refused),
    "deep in mappings": (JSON, b'{"a":' * 66 + b"1" + b"}" * 66, Refused),
    "text in another encoding": ("text/plain", b"\xe4", Refused),
    "no type, no text": ("", b"\xe4\xff", Refused),
    "a form of no text": (FORM, b"a=%ff", Refused),
    "a form without end": (FORM, b"a=1&" * 1001, Refused),
    "a picture": ("image/png", b"\x89PNG", NotReadable),
    "many parts": ("multipart/form-data; boundary=x", b"--x", NotReadable),
    "too large": (JSON, b" " * (LARGEST_BODY + 1), TooLarge),
    "a result of a run": (JSON, b'{"a": [{"$ref": "result", "store": "file", "key": "ab"}]}', Refused),
}


@pytest.mark.parametrize(("kind", "body", "error"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_refused(kind: str, body: bytes, error: type[Refused]) -> None:
    with pytest.raises(error) as raised:
        payload_of(OPEN, {"Content-Type": kind} if kind else {}, body)
    assert raised.value.hint


def test_as_deep_as_allowed_is_read() -> None:
    assert payload_of(OPEN, {"Content-Type": JSON}, b"[" * 64 + b"1" + b"]" * 64)["event"]


def test_headers_that_could_hold_a_credential_are_not_shown() -> None:
    shown = {name: f"v-{name}" for name in SHOWN_HEADERS if name != "content-type"}
    hidden = ("authorization", "cookie", "x-hub-signature-256", "x-penstock-signature", "x-gitlab-token", "x-api-key")
    headers = {name.title(): value for name, value in shown.items()} | dict.fromkeys(hidden, "s3cret")
    payload = payload_of(OPEN, headers, b"")
    assert payload == {"event": {"hook": "pushed", "body": None, "headers": shown}}
    assert list(payload["event"]["headers"]) == sorted(shown)  # type: ignore[index,call-overload,arg-type]


def test_a_header_without_end_is_left_out() -> None:
    payload = payload_of(OPEN, {"User-Agent": "x" * 1001, "X-Request-Id": "x" * 1000}, b"")
    assert payload["event"] == {"hook": "pushed", "body": None, "headers": {"x-request-id": "x" * 1000}}


def test_the_sender_decides_on_the_event_and_on_nothing_else() -> None:
    hook = replace(OPEN, payload={"region": "eu", "event": {"note": "kept", "body": {"a": 0, "b": 0}, "hook": "x"}})
    payload = payload_of(hook, {"Content-Type": JSON}, b'{"region": "us", "a": 1}')
    assert payload == {
        "region": "eu",
        "event": {
            "note": "kept",
            "hook": "pushed",
            "body": {"region": "us", "a": 1, "b": 0},
            "headers": {"content-type": JSON},
        },
    }
    assert hook.payload["event"] == {"note": "kept", "body": {"a": 0, "b": 0}, "hook": "x"}


# ---- hooks as people write them


def test_a_hook_is_kept_and_shown_without_its_secret() -> None:
    control = MemoryControl()
    secret = "pks_not-a-real-secret"
    assert keep_hook(control, replace(OPEN, secret=secret)) == replace(OPEN, secret=HIDDEN)
    assert control.hook("pushed") == replace(OPEN, secret=secret)
    assert keep_hook(control, replace(OPEN, secret=HIDDEN, is_on=False)) == replace(OPEN, secret=HIDDEN, is_on=False)
    assert control.hook("pushed") == replace(OPEN, secret=secret, is_on=False)
    assert keep_hook(control, OPEN) == OPEN == control.hook("pushed")


@pytest.mark.parametrize(
    "change",
    [{"name": "a/b"}, {"name": "a:b"}, {"name": ""}, {"name": ".a"}, {"secret": "short"}, {"secret": ""}, {"path": ""}],
    ids=str,
)
def test_a_hook_that_could_not_work_is_not_kept(change: dict[str, Any]) -> None:
    control = MemoryControl()
    with pytest.raises(Refused) as raised:
        keep_hook(control, replace(OPEN, **change))
    assert "short`" not in raised.value.message
    assert control.hooks() == []
